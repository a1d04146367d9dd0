use std::time::{Duration, Instant};

use otel_arrow_dfe_engine::memory_limiter::MemoryPressureLevel;
use serde_json::json;
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::task::{JoinHandle, LocalSet, spawn_local, yield_now};

use super::super::tcp::Tcp;
use super::super::testing::{press, take_records, tcp, texts};
use super::*;
use crate::ingest::tcp::serve;
use crate::ingest::tcp::testing::until;

fn peer() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 40_000))
}

/// A connection of `tcp`: the sender's end, and the task that serves it.
fn connect(tcp: &Rc<Tcp>) -> (DuplexStream, JoinHandle<()>) {
    let (sender, stream) = tokio::io::duplex(256 * 1024);
    let tcp = Rc::clone(tcp);
    let source = Arc::new(Source::new(
        Some(peer()),
        catchment_columns::syslog::Transport::Tcp,
        Arc::new("UTC".parse().expect("zone")),
    ));
    let frames = Frames::new(peer(), source, Rc::clone(&tcp.shared), tcp.options);
    let task = spawn_local(async move { serve(stream, peer(), frames, &*tcp).await });
    (sender, task)
}

/// Lets all other tasks run until they wait.
async fn settle() {
    for _ in 0..64 {
        yield_now().await;
    }
}

/// However the stream is cut into reads, down to single bytes, the messages are the same.
#[tokio::test]
async fn any_cut_gives_the_same_messages() {
    let stream: &[u8] = b"<34>one\n8 <34>t\nwo<34>three\r\n\n12 CEF:0|broken<34>the end";
    LocalSet::new()
        .run_until(async {
            let mut expected = None;
            for size in [stream.len(), 1, 2, 3, 7] {
                let tcp = tcp(json!({})).await;
                let (mut sender, task) = connect(&tcp);
                for chunk in stream.chunks(size) {
                    sender.write_all(chunk).await.expect("written");
                    settle().await;
                }
                drop(sender);
                task.await.expect("served");
                let found = texts(&take_records(&tcp.shared));
                assert_eq!(found.len(), 5, "{found:?}");
                assert_eq!(*expected.get_or_insert_with(|| found.clone()), found, "in pieces of {size}");
                assert_eq!(tcp.connections.buffered.bytes(), 0);
            }
        })
        .await;
}

/// Messages of one refill have one time of receipt.
#[tokio::test]
async fn one_refill_has_one_time() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({})).await;
            let (mut sender, task) = connect(&tcp);
            sender.write_all(b"<34>a\n<34>b\n<34>c\n").await.expect("written");
            until(|| tcp.shared.intake.books().received == 3).await;
            sender.write_all(b"<34>d").await.expect("written");
            settle().await;
            drop(sender);
            task.await.expect("served");
            let times: Vec<_> =
                take_records(&tcp.shared).iter().map(|record| record["observed_time"].to_string()).collect();
            assert!(times[0] == times[1] && times[1] == times[2] && times[2] < times[3], "{times:?}");
        })
        .await;
}

/// A full batch stops the connection; when it has been taken out, what was read already comes first.
#[tokio::test]
async fn a_full_batch_pushes_back() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({"batch": {"max_messages": 10}})).await;
            let (mut sender, task) = connect(&tcp);
            let lines: String = (0..95).map(|at| format!("<34>{at}\n")).collect();
            sender.write_all(lines.as_bytes()).await.expect("written");
            drop(sender);
            let mut found = Vec::new();
            while !task.is_finished() {
                settle().await;
                assert!(tcp.shared.intake.books().waiting() <= 10);
                found.extend(texts(&take_records(&tcp.shared)));
            }
            found.extend(texts(&take_records(&tcp.shared)));
            let numbers: Vec<usize> =
                found.iter().map(|text| text.trim_start_matches("<34>").parse().expect("number")).collect();
            assert_eq!(numbers, (0..95).collect::<Vec<_>>());
        })
        .await;
}

/// Under memory pressure nothing is read and nothing is lost.
#[tokio::test]
async fn memory_pressure_pushes_back() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({})).await;
            press(&tcp.shared, 1, MemoryPressureLevel::Hard);
            let (mut sender, task) = connect(&tcp);
            sender.write_all(b"<34>a\n<34>b\n").await.expect("written");
            settle().await;
            assert_eq!((tcp.shared.intake.books().received, tcp.connections.buffered.bytes()), (0, 0));
            press(&tcp.shared, 2, MemoryPressureLevel::Normal);
            drop(sender);
            task.await.expect("served");
            let books = tcp.shared.intake.books().clone();
            assert_eq!((books.received, books.shed), (2, 0));
        })
        .await;
}

/// Idle connections hold nothing; one in the middle of a message holds what came of it.
#[tokio::test]
async fn only_incomplete_messages_are_held() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({})).await;
            let mut connections: Vec<_> = (0..100).map(|_| connect(&tcp)).collect();
            for (sender, _) in &mut connections {
                sender.write_all(b"<34>whole\n").await.expect("written");
            }
            until(|| tcp.shared.intake.books().received == 100).await;
            assert_eq!(tcp.connections.buffered.bytes(), 0);
            connections[0].0.write_all(b"<34>par").await.expect("written");
            until(|| tcp.connections.buffered.bytes() == 7).await;
            for (sender, task) in connections {
                drop(sender);
                task.await.expect("served");
            }
            assert_eq!((tcp.connections.buffered.bytes(), tcp.shared.intake.books().received), (0, 101));
        })
        .await;
}

/// Messages longer than the shared buffer come whole, in pieces of any size.
#[tokio::test]
async fn long_messages_come_whole() {
    LocalSet::new()
        .run_until(async {
            for size in [1_000, 50_000, 300_000] {
                let tcp = tcp(json!({"max_message_size": "1 MiB"})).await;
                let (mut sender, task) = connect(&tcp);
                let text = "x".repeat(700_000);
                let stream = format!("<34>{text}\n<34>after\n");
                for chunk in stream.as_bytes().chunks(size) {
                    sender.write_all(chunk).await.expect("written");
                }
                drop(sender);
                task.await.expect("served");
                let found = texts(&take_records(&tcp.shared));
                assert_eq!(found.iter().map(String::len).collect::<Vec<_>>(), [700_000, 5]);
            }
        })
        .await;
}

/// Over the limit of what connections may hold, incomplete messages get complete one after the other: one whose sender
/// has stopped does not keep the others waiting for good.
#[tokio::test]
async fn over_the_limit_messages_still_get_complete() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({"tcp": {"max_buffered_bytes": 10_000}})).await;
            let mut connections: Vec<_> = (0..20).map(|_| connect(&tcp)).collect();
            for (sender, _) in &mut connections {
                sender.write_all(&[b'x'; 3_000]).await.expect("written");
            }
            until(|| tcp.connections.buffered.is_over()).await;
            for (sender, _) in connections.iter_mut().skip(1) {
                sender.write_all(&[b'y'; 60_000]).await.expect("written");
                sender.write_all(b"\n").await.expect("written");
            }
            until(|| tcp.shared.intake.books().received == 19).await;
            for (sender, task) in connections {
                drop(sender);
                task.await.expect("served");
            }
            let records = take_records(&tcp.shared);
            assert_eq!(records.len(), 20);
            assert_eq!(texts(&records).iter().filter(|text| text.len() == 63_000).count(), 19);
            assert_eq!(tcp.connections.buffered.bytes(), 0);
        })
        .await;
}

/// A connection that says nothing for too long is closed; what it had begun is a truncated message.
#[tokio::test]
async fn idle_connections_are_closed() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({"tcp": {"idle_timeout": "20ms"}})).await;
            let (mut sender, task) = connect(&tcp);
            sender.write_all(b"<34>whole\n<34>part").await.expect("written");
            task.await.expect("served");
            let records = take_records(&tcp.shared);
            let cut: Vec<_> = records.iter().map(|record| record["attributes"]["syslog.truncated"].clone()).collect();
            assert_eq!(cut, [json!(null), json!(true)]);
            assert_eq!(tcp.connections.counters.borrow().idle_closed, 1);
        })
        .await;
}

/// A sender over its rate is read more slowly and loses nothing.
#[tokio::test]
async fn a_fast_sender_is_read_slowly() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({"max_messages_per_second_per_source": 50})).await;
            let began = Instant::now();
            let (mut sender, task) = connect(&tcp);
            let lines: String = (0..60).map(|at| format!("<34>{at}\n")).collect();
            sender.write_all(lines.as_bytes()).await.expect("written");
            drop(sender);
            task.await.expect("served");
            assert!(began.elapsed() >= Duration::from_millis(190), "50 at once, ten at 20 ms each");
            assert_eq!((tcp.shared.intake.books().received, tcp.shared.intake.books().rate_limited), (60, 0));
        })
        .await;
}

/// At the drain what has arrived is taken, also by a connection that waits for its rate; what is incomplete is cut.
#[tokio::test]
async fn a_drain_takes_what_has_arrived() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({"max_messages_per_second_per_source": 1})).await;
            let (mut sender, task) = connect(&tcp);
            sender.write_all(b"<34>a\n<34>b\n").await.expect("written");
            until(|| tcp.shared.intake.books().received == 1).await;
            sender.write_all(b"<34>c\n<34>d").await.expect("written");
            tcp.shared.intake.stop.cancel();
            task.await.expect("served");
            let records = take_records(&tcp.shared);
            assert_eq!(records.len(), 4);
            assert_eq!(records[3]["attributes"]["syslog.truncated"], json!(true));
            drop(sender);
        })
        .await;
}

/// Faults of framing are counted by kind; a client that begins TLS is turned away.
#[tokio::test]
async fn faults_are_counted_by_kind() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({"tcp": {"framing": "octet_counting"}})).await;
            for (stream, closes) in [
                (&b"5 <34>a\n5 <34>b"[..], false),
                (b"5 <34>cx", true),
                (b"9 <34>", false),
                (b"\x16\x03\x01\x02\x00\x01\x00", true),
            ] {
                let (mut sender, task) = connect(&tcp);
                sender.write_all(stream).await.expect("written");
                settle().await;
                assert_eq!(task.is_finished(), closes);
                drop(sender);
                task.await.expect("served");
            }
            let counters = tcp.shared.counters.borrow();
            assert_eq!((counters.stray_delimiters, counters.invalid_lengths, counters.unexpected_ends), (1, 1, 1));
            assert_eq!(
                (tcp.connections.counters.borrow().handshake_errors, tcp.shared.intake.books().received),
                (1, 3)
            );
        })
        .await;
}
