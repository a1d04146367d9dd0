//! OTLP over gRPC against a server that answers in every way.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use flate2::read::GzDecoder;
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::logs::v1::{
    ExportLogsPartialSuccess, ExportLogsServiceResponse,
};
use std::io::Read;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::outcome::delay::{Any, RETRY_INFO, RetryInfo, Span, Status};
use crate::wire::compress::Compression;
use crate::wire::otlp_grpc::{GrpcSettings, OtlpGrpc};

fn wire(address: SocketAddr, settings: GrpcSettings) -> OtlpGrpc<Listed, Writer> {
    OtlpGrpc::new(to(address), Writer::default(), settings).expect("a wire")
}

type Requests = Arc<Mutex<Vec<(http::request::Parts, Vec<u8>)>>>;

/// Headers and frame of a request, in each compression.
#[tokio::test]
async fn requests() {
    for compression in [Compression::None, Compression::Gzip(6), Compression::Zstd(1)] {
        let seen = Requests::default();
        let list = seen.clone();
        let address = serve(move |mut exchange| {
            let list = list.clone();
            async move {
                let body = exchange.read().await;
                list.lock().expect("a list").push((exchange.head.clone(), body));
                exchange.ok();
            }
        })
        .await;
        let headers = map(&[("x-tenant", "blue")]);
        let mut wire = wire(address, GrpcSettings { compression, headers, ..GrpcSettings::default() });
        assert_eq!(attempt(&mut wire, 0..500).await, Outcome::OK);
        assert_eq!(attempt(&mut wire, 500..501).await, Outcome::OK);
        let seen = seen.lock().expect("a list");
        let (head, body) = &seen[0];
        let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        assert_eq!(head.uri.path(), "/opentelemetry.proto.collector.logs.v1.LogsService/Export");
        assert_eq!(header("content-type"), Some("application/grpc"));
        assert_eq!(header("te"), Some("trailers"));
        assert_eq!(header("x-tenant"), Some("blue"));
        assert_eq!(header("grpc-encoding"), compression.name());
        let timeout = header("grpc-timeout").expect("a time-out");
        let millis: u64 = timeout.strip_suffix('m').expect("in milliseconds").parse().expect("a number");
        assert!((10_000..=20_000).contains(&millis), "{timeout}");
        assert_eq!(body[0], u8::from(compression != Compression::None));
        assert_eq!(u32::from_be_bytes([body[1], body[2], body[3], body[4]]) as usize, body.len() - 5);
        let mut plain = Vec::new();
        match compression {
            Compression::None => plain.extend_from_slice(&body[5..]),
            Compression::Gzip(_) => drop(GzDecoder::new(&body[5..]).read_to_end(&mut plain).expect("gzip")),
            Compression::Zstd(_) => plain = zstd::decode_all(&body[5..]).expect("zstd"),
        }
        let request = ExportLogsServiceRequest::decode(plain.as_slice()).expect("a request");
        assert_eq!(numbers_of(&request), (0..500).collect::<Vec<_>>());
        let tally = Wire::<Records>::tally(&mut wire);
        assert_eq!(tally.wire_bytes as usize, seen.iter().map(|(_, body)| body.len()).sum::<usize>());
        assert!(tally.raw_bytes as usize > plain.len());
    }
}

/// A retry sends the same bytes, encoded once.
#[tokio::test]
async fn retries_send_the_same_bytes() {
    let seen: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let list = seen.clone();
    let address = serve(move |mut exchange| {
        let list = list.clone();
        async move {
            let body = exchange.read().await;
            let first = list.lock().expect("a list").is_empty();
            list.lock().expect("a list").push(body);
            if first { exchange.kill.notify_one() } else { exchange.ok() }
        }
    })
    .await;
    let writer = Writer::default();
    let settings = GrpcSettings { compression: Compression::Zstd(3), ..GrpcSettings::default() };
    let mut wire = OtlpGrpc::new(to(address), writer.clone(), settings).expect("a wire");
    let mut kept = None;
    assert_eq!(class(&again(&mut wire, 0..50, &mut kept).await), 'A');
    assert_eq!(class(&again(&mut wire, 0..50, &mut kept).await), '+');
    let seen = seen.lock().expect("a list");
    assert_eq!(seen[0], seen[1]);
    assert_eq!(writer.encoded.load(Ordering::Relaxed), 1);
}

fn partial(rejected: i64) -> Vec<u8> {
    let partial_success =
        Some(ExportLogsPartialSuccess { rejected_log_records: rejected, error_message: "some".to_owned() });
    ExportLogsServiceResponse { partial_success }.encode_to_vec()
}

/// google.rpc.Status with a RetryInfo of 1.5 s, as the header has it.
fn details() -> String {
    let info = RetryInfo { retry_delay: Some(Span { seconds: 1, nanos: 500_000_000 }) };
    let any = Any { type_url: format!("type.googleapis.com/{RETRY_INFO}"), value: info.encode_to_vec() };
    STANDARD_NO_PAD.encode(Status { code: 14, message: "later".to_owned(), details: vec![any] }.encode_to_vec())
}

type Answer = fn(&mut Exchange);

/// Answers of every kind, and what they mean. The server has read the request before.
#[tokio::test]
async fn answers() {
    const GRPC: (&str, &str) = ("content-type", "application/grpc+proto");
    let table: &[(&str, char, Answer)] = &[
        ("ok", '+', |it| it.ok()),
        ("partial success", 'W', |it| it.grpc(&partial(3), &[("grpc-status", "0")])),
        ("unreadable message", 'W', |it| it.grpc(b"\x0a\xff", &[("grpc-status", "0")])),
        ("no message", 'W', |it| it.answer(200, &[GRPC, ("grpc-status", "0")], &[], None)),
        ("large message", 'W', |it| it.grpc(&[0; 200_000], &[("grpc-status", "0")])),
        ("refused behind a large message", 'P', |it| it.grpc(&[0; 200_000], &[("grpc-status", "3")])),
        ("compressed message", '+', |it| {
            let frame = framed(1, &zstd::encode_all(&[][..], 1).expect("zstd"));
            it.answer(200, &[GRPC, ("grpc-encoding", "zstd")], &frame, Some(&[("grpc-status", "0")]));
        }),
        ("message that grows", 'W', |it| {
            let frame = framed(1, &zstd::encode_all(&vec![0; 10_000_000][..], 1).expect("zstd"));
            it.answer(200, &[GRPC, ("grpc-encoding", "zstd")], &frame, Some(&[("grpc-status", "0")]));
        }),
        ("unknown compression", 'W', |it| {
            it.answer(200, &[GRPC, ("grpc-encoding", "lzma")], &framed(1, b"x"), Some(&[("grpc-status", "0")]));
        }),
        ("unavailable in trailers", 'A', |it| it.grpc(&[], &[("grpc-status", "14")])),
        ("unavailable in headers", 'A', |it| it.answer(200, &[GRPC, ("grpc-status", "14")], &[], None)),
        ("overload", 'R', |it| it.answer(200, &[GRPC, ("grpc-status", "8")], &[], None)),
        ("invalid", 'P', |it| it.answer(200, &[GRPC, ("grpc-status", "3"), ("grpc-message", "no%20go")], &[], None)),
        ("too large", 'O', |it| {
            let message = ("grpc-message", "grpc: received message larger than max (2000 vs. 1000)");
            it.answer(200, &[GRPC, ("grpc-status", "8"), message], &[], None);
        }),
        ("code that does not exist", 'P', |it| it.answer(200, &[GRPC, ("grpc-status", "99")], &[], None)),
        ("code that is no number", 'P', |it| it.answer(200, &[GRPC, ("grpc-status", "x")], &[], None)),
        ("no status", 'A', |it| it.answer(200, &[GRPC], &framed(0, &[]), None)),
        ("trailers without a status", 'A', |it| it.grpc(&[], &[("x-other", "1")])),
        ("half a message", 'A', |it| it.answer(200, &[GRPC], &[0, 0, 0, 0, 9, 1], None)),
        ("not gRPC", 'P', |it| it.answer(200, &[("content-type", "text/html")], b"hello", None)),
        ("no such page", 'P', |it| it.answer(404, &[], b"hello", None)),
        ("proxy without its server", 'A', |it| it.answer(503, &[], b"hello", None)),
        ("stream refused", 'R', |it| it.reset(Reason::REFUSED_STREAM)),
        ("stream reset", 'A', |it| it.reset(Reason::INTERNAL_ERROR)),
        ("stream cancelled", 'A', |it| it.reset(Reason::CANCEL)),
        ("connection closed", 'A', |it| it.kill.notify_one()),
    ];
    let next = Arc::new(AtomicUsize::new(0));
    let turn = next.clone();
    let answers: Vec<Answer> = table.iter().map(|(_, _, answer)| *answer).collect();
    let answers = Arc::new(answers);
    let address = serve(move |mut exchange| {
        let answer = answers[turn.load(Ordering::Relaxed)];
        async move {
            exchange.read().await;
            answer(&mut exchange);
        }
    })
    .await;
    let settings = GrpcSettings { max_response_bytes: 100_000, ..GrpcSettings::default() };
    let mut wire = wire(address, settings);
    for (turn, (name, expected, _)) in table.iter().enumerate() {
        next.store(turn, Ordering::Relaxed);
        let outcome = attempt(&mut wire, 0..5).await;
        assert_eq!(class(&outcome), *expected, "{name}: {outcome:?}");
        if *name == "partial success" {
            assert!(matches!(outcome, Outcome::Accepted { rejected: 3, .. }));
        } else if *name == "invalid" {
            assert_eq!(outcome, Outcome::permanent("InvalidArgument: no go"));
        } else if *name == "too large" {
            assert!(matches!(outcome, Outcome::Oversize { sizes: Some((2000, 1000)), .. }));
        }
    }
}

/// The delay of a RetryInfo comes out, from headers and from trailers.
#[tokio::test]
async fn retry_info() {
    let address = serve(|mut exchange| async move {
        exchange.read().await;
        let details = details();
        let status = [("grpc-status", "14"), ("grpc-status-details-bin", details.as_str())];
        if exchange.head.headers.contains_key("x-headers") {
            exchange.answer(200, &status, &[], None);
        } else {
            exchange.grpc(&[], &status);
        }
    })
    .await;
    for headers in [map(&[]), map(&[("x-headers", "1")])] {
        let mut wire = wire(address, GrpcSettings { headers, ..GrpcSettings::default() });
        let outcome = attempt(&mut wire, 0..5).await;
        let Outcome::Retry { delay, ambiguous, .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!((delay, ambiguous), (Some(Duration::from_millis(1500)), false));
    }
}

/// A connection that closes before or during the request, or during the answer, is ambiguous; the next attempt makes a
/// new one.
#[tokio::test]
async fn cut_connections() {
    let turn = Arc::new(AtomicUsize::new(0));
    let address = serve(move |mut exchange| {
        let turn = turn.fetch_add(1, Ordering::Relaxed);
        async move {
            match turn {
                0 => exchange.kill.notify_one(),
                1 => {
                    drop(exchange.body.data().await);
                    exchange.kill.notify_one();
                }
                2 => {
                    exchange.read().await;
                    let mut response = Response::new(());
                    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
                    let mut stream = exchange.respond.send_response(response, false).expect("open");
                    _ = stream.send_data(Bytes::from_static(&[0, 0, 0]), false);
                    tokio::task::yield_now().await;
                    exchange.kill.notify_one();
                }
                _ => {
                    exchange.read().await;
                    assert_eq!(exchange.connection, 3);
                    exchange.ok();
                }
            }
        }
    })
    .await;
    let mut wire = wire(address, GrpcSettings::default());
    for expected in ['A', 'A', 'A', '+'] {
        let outcome = attempt(&mut wire, 0..100_000).await;
        assert_eq!(class(&outcome), expected, "{outcome:?}");
    }
}

/// A server that goes away and says that it has not taken the request: sent again, without doubt, on a new connection.
/// One that says it may have: with doubt.
#[tokio::test]
async fn goes_away() {
    for (last_stream, expected) in [(0_u32, 'R'), (0x7fff_ffff, 'A')] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut preface = [0; 24];
            stream.read_exact(&mut preface).await.expect("a preface");
            stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.expect("settings");
            // Up to the end of the request.
            loop {
                let mut head = [0; 9];
                stream.read_exact(&mut head).await.expect("a frame");
                let mut body = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
                stream.read_exact(&mut body).await.expect("a frame");
                let ends = head[4] & 1 == 1;
                if ends && matches!(head[3], 0 | 1) {
                    break;
                }
            }
            let mut away = vec![0, 0, 8, 7, 0, 0, 0, 0, 0];
            away.extend_from_slice(&last_stream.to_be_bytes());
            away.extend_from_slice(&[0; 4]);
            stream.write_all(&away).await.expect("goes away");
            stream.shutdown().await.expect("closes");
            listener
        });
        let mut wire = wire(address, GrpcSettings::default());
        let outcome = attempt(&mut wire, 0..5).await;
        assert_eq!(class(&outcome), expected, "{outcome:?}");
        let listener = server.await.expect("no panic");
        let second = tokio::spawn(async move { drop(listener.accept().await.expect("a new connection")) });
        _ = attempt(&mut wire, 0..5).await;
        second.await.expect("no panic");
    }
}

/// Our own limit holds before and behind compression, and nothing is sent then.
#[tokio::test]
async fn own_limit() {
    let settings = GrpcSettings { max_request_bytes: 1000, ..GrpcSettings::default() };
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
    for compression in [Compression::None, Compression::Zstd(1)] {
        let mut wire = wire(nowhere, GrpcSettings { compression, ..settings.clone() });
        let outcome = attempt(&mut wire, 0..1000).await;
        assert!(matches!(outcome, Outcome::Oversize { sizes: Some((found, 1000)), .. } if found > 1000), "{outcome:?}");
    }
}
