//! OTAP against a server that answers in every way.

use h2::SendStream;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::BatchStatus;

use super::*;
use crate::wire::compress::Compression;
use crate::wire::otap::{Otap, OtapSettings};

fn wire(address: SocketAddr, settings: OtapSettings) -> Otap<Listed, Writer> {
    Otap::new(to(address), Writer::default(), settings).expect("a wire")
}

impl Exchange {
    fn open(&mut self) -> SendStream<Bytes> {
        let mut response = Response::new(());
        *response.headers_mut() = map(&[("content-type", "application/grpc")]);
        self.respond.send_response(response, false).expect("open")
    }
}

fn say(stream: &mut SendStream<Bytes>, batch_id: i64, code: i32, message: &str) {
    let status = BatchStatus { batch_id, status_code: code, status_message: message.to_owned() };
    _ = stream.send_data(framed(0, &status.encode_to_vec()).into(), false);
}

/// What came: number of the stream, batch id, whether it is the first as the encoder sees it, items.
type Batches = Arc<Mutex<Vec<(usize, i64, bool, Vec<u64>)>>>;

/// What the server does with a batch.
#[derive(Clone, Copy)]
enum Act {
    Status(i32, &'static str),
    /// Ends the stream by this status.
    End(&'static str, &'static str),
    Reset(Reason),
    Close,
    Silence,
    /// Statuses of other batches first, and this one twice.
    Noise,
}

/// A server with one act for each batch, `OK` for the rest. Ends a stream with status 0 after its client has.
async fn serve_batches(acts: Vec<Act>) -> (SocketAddr, Batches, Arc<AtomicUsize>) {
    let batches = Batches::default();
    let finished = Arc::new(AtomicUsize::new(0));
    let (list, ends, streams) = (batches.clone(), finished.clone(), Arc::new(AtomicUsize::new(0)));
    let acts = Arc::new(acts);
    let address = serve(move |mut exchange| {
        let (list, ends, acts) = (list.clone(), ends.clone(), acts.clone());
        let number = streams.fetch_add(1, Ordering::Relaxed);
        async move {
            assert_eq!(exchange.head.uri.path(), Signal::Logs.otap_path());
            let (mut buffer, mut open) = (Vec::new(), None);
            while let Some(batch) = exchange.batch(&mut buffer).await {
                let payload = &batch.arrow_payloads[0];
                let items = payload.record.chunks(8).map(|item| u64::from_be_bytes(item.try_into().expect("eight")));
                let turn = list.lock().expect("a list").len();
                let fresh = payload.schema_id == "first";
                list.lock().expect("a list").push((number, batch.batch_id, fresh, items.collect()));
                // Headers come with the first status, as from servers that have nothing to say before.
                match acts.get(turn).copied().unwrap_or(Act::Status(0, "")) {
                    Act::End(code, message) if open.is_none() => {
                        let trailers = [("grpc-status", code), ("grpc-message", message)];
                        exchange.answer(200, &trailers, &[], None);
                        return;
                    }
                    Act::End(code, message) => {
                        let trailers = map(&[("grpc-status", code), ("grpc-message", message)]);
                        _ = open.as_mut().map(|open: &mut SendStream<Bytes>| open.send_trailers(trailers));
                        return;
                    }
                    Act::Reset(reason) => return exchange.reset(reason),
                    Act::Close => return exchange.kill.notify_one(),
                    Act::Silence => {}
                    Act::Status(code, message) => {
                        let open = open.get_or_insert_with(|| exchange.open());
                        say(open, batch.batch_id, code, message);
                    }
                    Act::Noise => {
                        let open = open.get_or_insert_with(|| exchange.open());
                        say(open, 77, 13, "");
                        say(open, batch.batch_id, 0, "");
                        say(open, batch.batch_id, 13, "");
                    }
                }
            }
            ends.fetch_add(1, Ordering::Relaxed);
            if let Some(mut open) = open {
                _ = open.send_trailers(map(&[("grpc-status", "0")]));
            }
        }
    })
    .await;
    (address, batches, finished)
}

fn shape(batches: &Batches) -> Vec<(usize, i64, bool)> {
    batches.lock().expect("a list").iter().map(|(stream, id, fresh, _)| (*stream, *id, *fresh)).collect()
}

/// One stream with numbered batches; its end is orderly.
#[tokio::test]
async fn batches_on_one_stream() {
    let (address, batches, finished) = serve_batches(vec![Act::Status(0, ""), Act::Noise, Act::Status(0, "hm")]).await;
    let mut wire = wire(address, OtapSettings::default());
    for expected in ['+', '+', 'W', '+'] {
        assert_eq!(class(&attempt(&mut wire, 0..9).await), expected);
    }
    assert_eq!(shape(&batches), [(0, 1, true), (0, 2, false), (0, 3, false), (0, 4, false)]);
    assert_eq!(batches.lock().expect("a list")[3].3, (0..9).collect::<Vec<_>>());
    Wire::<Records>::close(&mut wire).await;
    assert_eq!(finished.load(Ordering::Relaxed), 1);
    assert_eq!(Wire::<Records>::tally(&mut wire).stream_resets, 0);
}

/// Refusals of a batch, on a stream that is proven; the next batch begins a new one with everything in it.
#[tokio::test]
async fn refused_batches() {
    for (code, message, expected) in [
        (1, "", 'A'),
        (3, "", 'P'),
        (8, "", 'R'),
        (8, "received message larger than max (9 vs. 4)", 'O'),
        (13, "", 'P'),
        (14, "", 'R'),
        (42, "", 'P'),
    ] {
        let (address, batches, _) = serve_batches(vec![Act::Status(0, ""), Act::Status(code, message)]).await;
        let mut wire = wire(address, OtapSettings::default());
        assert_eq!(attempt(&mut wire, 0..3).await, Outcome::OK);
        assert_eq!(class(&attempt(&mut wire, 3..6).await), expected, "{code}");
        assert_eq!(attempt(&mut wire, 3..6).await, Outcome::OK);
        assert_eq!(shape(&batches), [(0, 1, true), (0, 2, false), (1, 1, true)]);
    }
}

/// Ends of a stream with a batch out: in its headers, and after a status. The batch goes first on the next stream.
#[tokio::test]
async fn ended_streams() {
    let oversize = "decoded message length too large: found 9 bytes, the limit is: 4 bytes";
    for (act, first, later) in [
        (Act::End("12", ""), 'D', 'P'),
        (Act::End("0", ""), 'A', 'A'),
        (Act::End("2", ""), 'A', 'A'),
        (Act::End("13", ""), 'A', 'A'),
        (Act::End("14", ""), 'A', 'A'),
        (Act::End("8", ""), 'A', 'A'),
        (Act::End("11", oversize), 'O', 'O'),
        (Act::End("16", ""), 'P', 'P'),
        (Act::End("7", ""), 'P', 'P'),
        (Act::Reset(Reason::REFUSED_STREAM), 'R', 'R'),
        (Act::Reset(Reason::CANCEL), 'A', 'A'),
        (Act::Close, 'A', 'A'),
    ] {
        for (acts, expected) in [(vec![act], first), (vec![Act::Status(0, ""), act], later)] {
            let proven = acts.len() > 1;
            let (address, batches, _) = serve_batches(acts).await;
            let mut wire = wire(address, OtapSettings::default());
            if proven {
                assert_eq!(attempt(&mut wire, 0..3).await, Outcome::OK);
            }
            let outcome = attempt(&mut wire, 3..6).await;
            assert_eq!(class(&outcome), expected, "{outcome:?}");
            let resets = u64::from(expected != 'D');
            assert_eq!(Wire::<Records>::tally(&mut wire).stream_resets, resets, "{outcome:?}");
            assert_eq!(attempt(&mut wire, 3..6).await, Outcome::OK);
            assert_eq!(shape(&batches).last(), Some(&(1, 1, true)));
        }
    }
}

/// Answers that are not gRPC: only "no such page" says that the server does not know the method.
#[tokio::test]
async fn not_grpc() {
    for (status, expected) in [(404, 'D'), (503, 'A'), (401, 'P'), (200, 'A')] {
        let address = serve(move |mut exchange| async move {
            exchange.answer(status, &[("content-type", "text/html")], b"hello", None);
        })
        .await;
        let outcome = attempt(&mut wire(address, OtapSettings::default()), 0..3).await;
        assert_eq!(class(&outcome), expected, "{status}: {outcome:?}");
    }
}

/// A batch without a status in time is in doubt, and is sent again on a new connection.
#[tokio::test]
async fn status_timeout() {
    let (address, batches, _) = serve_batches(vec![Act::Status(0, ""), Act::Silence]).await;
    let settings = OtapSettings { status_timeout: Duration::from_millis(100), ..OtapSettings::default() };
    let mut wire = wire(address, settings);
    for expected in ['+', 'A', '+'] {
        assert_eq!(class(&attempt(&mut wire, 0..3).await), expected);
    }
    assert_eq!(shape(&batches), [(0, 1, true), (0, 2, false), (1, 1, true)]);
}

/// An attempt that is dropped leaves its stream behind, and says that its batch may have arrived.
#[tokio::test]
async fn abandoned() {
    let (address, batches, _) = serve_batches(vec![Act::Silence]).await;
    let mut wire = wire(address, OtapSettings::default());
    {
        let mut attempt = std::pin::pin!(attempt(&mut wire, 0..3));
        while batches.lock().expect("a list").is_empty() {
            tokio::select! {
                biased;
                _ = &mut attempt => panic!("no status"),
                () = tokio::task::yield_now() => {}
            }
        }
    }
    assert!(Wire::<Records>::abandon(&mut wire));
    assert!(!Wire::<Records>::abandon(&mut wire));
    assert_eq!(attempt(&mut wire, 0..3).await, Outcome::OK);
    assert_eq!(shape(&batches), [(0, 1, true), (1, 1, true)]);
}

/// Streams end in an orderly way by age and by number of batches.
#[tokio::test]
async fn lifetimes() {
    let by_age = OtapSettings { max_lifetime: Some(Duration::ZERO), ..OtapSettings::default() };
    let by_batches = OtapSettings { max_batches: Some(1), max_lifetime: None, ..OtapSettings::default() };
    for settings in [by_age, by_batches] {
        let (address, batches, finished) = serve_batches(vec![]).await;
        let mut wire = wire(address, settings);
        for number in 0..3 {
            assert_eq!(attempt(&mut wire, 0..3).await, Outcome::OK);
            assert_eq!(finished.load(Ordering::Relaxed), number, "the last one ends before the next begins");
        }
        assert_eq!(shape(&batches), [(0, 1, true), (1, 1, true), (2, 1, true)]);
        assert_eq!(Wire::<Records>::tally(&mut wire).stream_resets, 0);
    }
}

/// A stream that the server has ended between batches costs no attempt.
#[tokio::test]
async fn ended_between_batches() {
    let ended = Arc::new(Notify::new());
    let (told, streams) = (ended.clone(), Arc::new(AtomicUsize::new(0)));
    let address = serve(move |mut exchange| {
        let (ended, number) = (told.clone(), streams.fetch_add(1, Ordering::Relaxed));
        async move {
            let mut buffer = Vec::new();
            let batch = exchange.batch(&mut buffer).await.expect("a batch");
            let mut open = exchange.open();
            say(&mut open, batch.batch_id, 0, "");
            if number == 0 {
                _ = open.send_trailers(map(&[("grpc-status", "0")]));
                ended.notify_one();
            } else {
                exchange.batch(&mut buffer).await;
            }
        }
    })
    .await;
    let mut wire = wire(address, OtapSettings::default());
    assert_eq!(attempt(&mut wire, 0..3).await, Outcome::OK);
    ended.notified().await;
    // The end has left the server; it is here when something that follows it is.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    let outcome = attempt(&mut wire, 3..6).await;
    assert!(matches!(class(&outcome), '+' | 'A'), "{outcome:?}");
    if class(&outcome) == 'A' {
        assert_eq!(attempt(&mut wire, 3..6).await, Outcome::OK);
    }
}

/// Our own limit, before and behind compression; what the encoder believes that the server knows is forgotten.
#[tokio::test]
async fn own_limit() {
    for compression in [Compression::None, Compression::Zstd(1)] {
        let (address, batches, _) = serve_batches(vec![]).await;
        let settings = OtapSettings { max_request_bytes: 1000, compression, ..OtapSettings::default() };
        let mut wire = wire(address, settings);
        let outcome = attempt(&mut wire, 0..1000).await;
        assert!(matches!(outcome, Outcome::Oversize { sizes: Some((found, 1000)), .. } if found > 8000), "{outcome:?}");
        if compression == Compression::None {
            assert_eq!(attempt(&mut wire, 0..10).await, Outcome::OK);
            assert_eq!(shape(&batches), [(1, 1, true)]);
        }
    }
}
