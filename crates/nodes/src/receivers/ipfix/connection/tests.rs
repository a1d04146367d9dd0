use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::{JoinHandle, LocalSet, spawn_local, yield_now};

use super::super::tcp::testing::{Recorder, STREAM, tcp};
use super::*;
use crate::ingest::tcp::{Service, serve};

fn peer() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 40_000))
}

/// A connection of `tcp`: the exporter's end, and the task that serves it.
fn connect(tcp: &Rc<Tcp<Recorder>>) -> (DuplexStream, JoinHandle<()>) {
    let (exporter, stream) = tokio::io::duplex(256 * 1024);
    let tcp = Rc::clone(tcp);
    let task = spawn_local(async move { serve(stream, peer(), tcp.connected(peer(), None), &*tcp).await });
    (exporter, task)
}

/// Lets all other tasks run until they wait.
async fn settle() {
    for _ in 0..16 {
        yield_now().await;
    }
}

/// Sends the pieces one after the other, each read before the next one comes, and ends the connection.
async fn send(tcp: &Rc<Tcp<Recorder>>, pieces: impl IntoIterator<Item = &[u8]>) {
    let (mut exporter, task) = connect(tcp);
    for piece in pieces {
        // A connection that was closed takes no more.
        if exporter.write_all(piece).await.is_err() {
            break;
        }
        settle().await;
    }
    drop(exporter);
    task.await.expect("served");
}

/// The smallest message: a header, with a length of its own choice.
fn message(version: u16, length: u16) -> Vec<u8> {
    let mut message = vec![0; 16];
    message[..2].copy_from_slice(&version.to_be_bytes());
    message[2..4].copy_from_slice(&length.to_be_bytes());
    message
}

/// Where messages of [`STREAM`] end.
fn boundaries() -> Vec<usize> {
    let mut ends = vec![0];
    while let Some(length) = stream_message_length(&STREAM[ends[ends.len() - 1]..]).expect("a well-formed stream") {
        ends.push(ends[ends.len() - 1] + length);
    }
    ends
}

/// However the stream is cut into reads, the same messages come, with all their records, and nothing stays behind.
#[tokio::test]
async fn any_cut_gives_the_same_messages() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({}), 8_192).await;
            send(&tcp, [STREAM]).await;
            assert_eq!(tcp.sink.bytes(), STREAM);
            let count = boundaries().len() - 1;
            assert_eq!(tcp.sink.count(), count);
            let whole = tcp.sink.counters();
            assert!(whole.flow_records > 0 && whole.problems.iter().sum::<u64>() == 0, "{whole:?}");
            for cut in 1..STREAM.len() {
                send(&tcp, [&STREAM[..cut], &STREAM[cut..]]).await;
                assert_eq!((tcp.sink.count(), tcp.sink.counters()), (count, whole.clone()), "cut at {cut}");
                let _ = tcp.sink.intake.take_job_for_test();
            }
            send(&tcp, STREAM.chunks(1)).await;
            assert_eq!((tcp.sink.count(), tcp.sink.counters()), (count, whole));
            assert_eq!(tcp.connections.buffered.bytes(), 0);
            let counters = *tcp.counters.borrow();
            assert_eq!((counters.framing_errors, counters.incomplete_messages), (0, 0));
        })
        .await;
}

/// Each connection has a number of its own, and its end is told once.
#[tokio::test]
async fn connections_are_sessions_of_their_own() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({}), 8_192).await;
            let (mut first, first_task) = connect(&tcp);
            let (mut second, second_task) = connect(&tcp);
            let templates = boundaries()[1];
            first.write_all(&STREAM[..templates]).await.expect("written");
            settle().await;
            // Without the templates of the other.
            second.write_all(&STREAM[templates..]).await.expect("written");
            settle().await;
            assert_eq!(tcp.sink.sessions.borrow().len(), 2);
            assert!(tcp.sink.counters().unknown_template_sets > 0);
            first.write_all(&STREAM[templates..]).await.expect("written");
            settle().await;
            assert_eq!(tcp.sink.counters().unknown_template_sets, 0);
            drop((first, second));
            first_task.await.expect("served");
            second_task.await.expect("served");
            let mut closed: Vec<_> = tcp.sink.closed.borrow().iter().map(|connection| connection.number).collect();
            closed.sort_unstable();
            assert_eq!((closed, tcp.sink.sessions.borrow().len()), (vec![1, 2], 0));
        })
        .await;
}

/// A connection that ends inside of a message is counted, wherever that is; what came before it is taken.
#[tokio::test]
async fn a_half_message_at_the_end_is_counted() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({}), 8_192).await;
            let boundaries = boundaries();
            let mut expected = 0;
            for end in 1..STREAM.len() {
                send(&tcp, [&STREAM[..end]]).await;
                expected += u64::from(!boundaries.contains(&end));
                let whole = boundaries.iter().filter(|&&boundary| boundary > 0 && boundary <= end).count();
                assert_eq!(tcp.sink.count(), whole, "ended at {end}");
                assert_eq!(tcp.counters.borrow().incomplete_messages, expected, "ended at {end}");
                let _ = (tcp.sink.counters(), tcp.sink.intake.take_job_for_test());
            }
            assert_eq!(tcp.counters.borrow().framing_errors, 0);
        })
        .await;
}

/// A wrong header is counted and closes the connection: what came before it is taken, what follows is not looked for.
#[tokio::test]
async fn a_wrong_header_closes_the_connection() {
    LocalSet::new()
        .run_until(async {
            for wrong in
                [message(9, 16), message(5, 1), message(10, 15), message(10, 0), b"GET / HTTP/1.1\r\n".to_vec()]
            {
                let tcp = tcp(json!({}), 8_192).await;
                let (mut exporter, task) = connect(&tcp);
                exporter.write_all(&[message(10, 16), wrong, message(10, 16)].concat()).await.expect("written");
                task.await.expect("closed, although the exporter goes on");
                assert!(matches!(exporter.read(&mut [0]).await, Ok(0)));
                let counters = *tcp.counters.borrow();
                assert_eq!((counters.framing_errors, counters.incomplete_messages), (1, 0));
                assert_eq!((tcp.sink.count(), tcp.sink.closed.borrow().len()), (1, 1));
            }
        })
        .await;
}

/// The version is wrong before the rest of the header has come.
#[tokio::test]
async fn a_wrong_version_is_seen_at_once() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({}), 8_192).await;
            let (mut exporter, task) = connect(&tcp);
            exporter.write_all(&[0, 9]).await.expect("written");
            task.await.expect("closed");
            assert_eq!(tcp.counters.borrow().framing_errors, 1);
        })
        .await;
}

/// An exporter that speaks TLS to a port without is turned away, and counted as that.
#[tokio::test]
async fn tls_on_a_plain_port() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({}), 8_192).await;
            let (mut exporter, task) = connect(&tcp);
            exporter.write_all(b"\x16\x03\x01\x02\x00\x01\x00").await.expect("written");
            task.await.expect("closed");
            assert_eq!(
                (tcp.connections.counters.borrow().handshake_errors, tcp.counters.borrow().framing_errors),
                (1, 0)
            );
        })
        .await;
}

/// Messages of the greatest length come whole in pieces of any size, also while connections hold more than they may.
#[tokio::test]
async fn the_longest_messages_come_whole() {
    LocalSet::new()
        .run_until(async {
            for (size, buffered) in [(1_000, "64 MiB"), (65_536, "64 MiB"), (100_000, "64 MiB"), (3_000, "1 KiB")] {
                let tcp = tcp(json!({"max_buffered_bytes": buffered}), 8_192).await;
                let mut long = message(10, 65_535);
                // A set of an unknown template, to the end.
                long.resize(65_535, 7);
                long[16..20].copy_from_slice(&[1, 0, 0xff, 0xef]);
                let stream = [message(10, 16), long.clone(), long, message(10, 16)].concat();
                send(&tcp, stream.chunks(size)).await;
                assert_eq!(tcp.sink.bytes(), stream, "in pieces of {size}");
                assert_eq!((tcp.sink.count(), tcp.connections.buffered.bytes()), (4, 0));
            }
        })
        .await;
}

/// A full batch stops the connection; nothing is lost, and the order stays.
#[tokio::test]
async fn a_full_batch_pushes_back() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({}), 1).await;
            let (mut exporter, task) = connect(&tcp);
            exporter.write_all(STREAM).await.expect("written");
            drop(exporter);
            let mut rounds = 0;
            while !task.is_finished() {
                settle().await;
                assert!(tcp.sink.intake.bytes_waiting() <= 1);
                let _ = tcp.sink.intake.take_job_for_test();
                rounds += 1;
            }
            assert!(rounds >= boundaries().len() - 1);
            assert_eq!(tcp.sink.bytes(), STREAM);
        })
        .await;
}

/// A connection on which nothing comes is closed after its time; what it had begun is counted.
#[tokio::test]
async fn idle_connections_are_closed() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({"idle_timeout": "20ms"}), 8_192).await;
            let (mut exporter, task) = connect(&tcp);
            exporter.write_all(&[message(10, 16), vec![0, 10, 0]].concat()).await.expect("written");
            task.await.expect("closed");
            assert_eq!((tcp.sink.count(), tcp.connections.counters.borrow().idle_closed), (1, 1));
            assert_eq!(tcp.counters.borrow().incomplete_messages, 1);
        })
        .await;
}
