use std::time::{Duration, SystemTime};

use ::http::header::{LOCATION, RETRY_AFTER};
use ::http::{HeaderMap, HeaderValue, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::BatchStatus;
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::logs::v1::{
    ExportLogsPartialSuccess, ExportLogsServiceResponse,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceResponse,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceResponse,
};
use proptest::prelude::*;
use prost::Message;
use tonic::Code;

use super::delay::{Any, RetryInfo, Span, Status, retry_after, status_details};
use super::*;

/// R: sent again; A: sent again, may double; P: never.
fn class(outcome: &Outcome) -> char {
    match outcome {
        Outcome::Retry { ambiguous: true, .. } => 'A',
        Outcome::Retry { .. } => 'R',
        Outcome::Permanent { .. } => 'P',
        Outcome::Oversize { .. } => 'O',
        Outcome::Accepted { .. } => '+',
        _ => '?',
    }
}

/// Every code of gRPC: without a delay in both readings, and with one.
#[test]
fn grpc_codes() {
    use ResourceExhausted::{Retry, Strict};
    for (code, expected) in [
        (Code::Cancelled, "AAA"),
        (Code::Unknown, "PPP"),
        (Code::InvalidArgument, "PPP"),
        (Code::DeadlineExceeded, "AAA"),
        (Code::NotFound, "PPP"),
        (Code::AlreadyExists, "PPP"),
        (Code::PermissionDenied, "PPP"),
        (Code::ResourceExhausted, "PRR"),
        (Code::FailedPrecondition, "PPP"),
        (Code::Aborted, "RRR"),
        (Code::OutOfRange, "RRR"),
        (Code::Unimplemented, "PPP"),
        (Code::Internal, "PPP"),
        (Code::Unavailable, "AAR"),
        (Code::DataLoss, "AAA"),
        (Code::Unauthenticated, "PPP"),
    ] {
        let delay = Some(Duration::from_secs(3));
        let classes: String = [(None, Strict), (None, Retry), (delay, Strict)]
            .map(|(delay, exhausted)| class(&grpc::classify(code, "no", delay, exhausted)))
            .iter()
            .collect();
        assert_eq!(classes, expected, "{code:?}");
    }
}

/// Every status of HTTP that matters, and all others: permanent.
#[test]
fn http_codes() {
    for status in 300..=599 {
        let status = StatusCode::from_u16(status).expect("a status");
        let expected = match status.as_u16() {
            413 => 'O',
            429 => 'R',
            502..=504 => 'A',
            _ => 'P',
        };
        let outcome = http::classify(status, &HeaderMap::new(), b"no", SystemTime::UNIX_EPOCH);
        assert_eq!(class(&outcome), expected, "{status}");
    }
}

/// Retry-After counts on 429 and 503, and then a 503 comes from the server itself; a redirect says where to.
#[test]
fn http_headers() {
    let mut headers = HeaderMap::new();
    headers.insert(RETRY_AFTER, HeaderValue::from_static("7"));
    headers.insert(LOCATION, HeaderValue::from_static("https://elsewhere/"));
    let answer = |status: u16| {
        let status = StatusCode::from_u16(status).expect("a status");
        http::classify(status, &headers, b"", SystemTime::UNIX_EPOCH)
    };
    for status in [429, 503] {
        let Outcome::Retry { delay, ambiguous, .. } = answer(status) else { panic!("{status}") };
        assert_eq!((delay, ambiguous), (Some(Duration::from_secs(7)), false), "{status}");
    }
    assert!(matches!(answer(502), Outcome::Retry { delay: None, ambiguous: true, .. }));
    assert!(matches!(answer(307), Outcome::Permanent { message } if message.contains("https://elsewhere/")));
}

/// The message of a failure is that of the protobuf status, or the text of the body; it is cut.
#[test]
fn http_bodies() {
    let said = |body: &[u8]| match http::classify(StatusCode::FORBIDDEN, &HeaderMap::new(), body, SystemTime::now()) {
        Outcome::Permanent { message } => message,
        other => panic!("{other:?}"),
    };
    let status = Status { code: 7, message: "not you".to_owned(), details: Vec::new() };
    assert_eq!(said(&status.encode_to_vec()), "HTTP 403: not you");
    assert_eq!(said(b"<html>denied"), "HTTP 403: <html>denied");
    assert!(said("\u{e4}".repeat(3000).as_bytes()).len() < 600);
}

/// Codes of OTAP, each but OK with a new stream behind it.
#[test]
fn otap_codes() {
    for (code, expected) in [
        (0, '+'),
        (1, 'A'),
        (2, 'P'),
        (3, 'P'),
        (4, 'A'),
        (7, 'P'),
        (8, 'R'),
        (10, 'R'),
        (13, 'P'),
        (14, 'R'),
        (16, 'P'),
        (-1, 'P'),
        (99, 'P'),
    ] {
        let status = BatchStatus { batch_id: 1, status_code: code, status_message: String::new() };
        let classified = otap::classify(&status);
        assert_eq!(class(&classified.outcome), expected, "{code}");
        assert_eq!(classified.reset, code != 0, "{code}");
    }
    let message = "Received message larger than max (5000000 vs. 4194304)".to_owned();
    let status = BatchStatus { batch_id: 1, status_code: 8, status_message: message };
    assert_eq!(class(&otap::classify(&status).outcome), 'O');
}

/// The wordings of the libraries, with their sizes; and what only looks like them.
#[test]
fn oversize_wordings() {
    for (text, expected) in [
        ("grpc: received message larger than max (5000000 vs. 4194304)", Some(Some((5_000_000, 4_194_304)))),
        (
            "grpc: received message after decompression larger than max (5000000 vs. 4194304)",
            Some(Some((5_000_000, 4_194_304))),
        ),
        ("grpc: received message after decompression larger than max 4194304", Some(None)),
        ("gRPC message exceeds maximum size 4194304: 5000000", Some(Some((5_000_000, 4_194_304)))),
        ("CLIENT: Received message larger than max (5000000 vs. 4194304)", Some(Some((5_000_000, 4_194_304)))),
        (
            "Error, decoded message length too large: found 5000000 bytes, the limit is: 4194304 bytes",
            Some(Some((5_000_000, 4_194_304))),
        ),
        ("message length too large: found 99999999999999999999999 bytes, the limit is: 1 bytes", Some(None)),
        ("received message larger than max (3 vs. 4194304)", Some(None)),
        ("http: request body too large", Some(None)),
        ("length limit exceeded", Some(None)),
        ("Error decompressing: size limit, of 1000 bytes, exceeded while decompressing message", Some(None)),
        ("too many requests", None),
        ("message queue is larger", None),
        ("", None),
    ] {
        assert_eq!(oversize::recognise(text), expected, "{text}");
    }
    let go = "grpc: received message larger than max (5000000 vs. 4194304)";
    let strict = ResourceExhausted::Strict;
    assert_eq!(class(&grpc::classify(Code::ResourceExhausted, go, None, strict)), 'O');
    let tonic = "decoded message length too large: found 5000000 bytes, the limit is: 4194304 bytes";
    assert_eq!(class(&grpc::classify(Code::OutOfRange, tonic, None, strict)), 'O');
    assert_eq!(class(&grpc::classify(Code::InvalidArgument, tonic, None, strict)), 'P', "another code decides");
}

fn details(seconds: i64, nanos: i32) -> Status {
    let info = RetryInfo { retry_delay: Some(Span { seconds, nanos }) };
    let any = |name: &str, value| Any { type_url: format!("type.googleapis.com/{name}"), value };
    let details = vec![any("google.rpc.DebugInfo", vec![1, 2, 3]), any(delay::RETRY_INFO, info.encode_to_vec())];
    Status { code: 8, message: "later".to_owned(), details }
}

/// RetryInfo with and without padding, in seconds and nanoseconds, and out of range.
#[test]
fn retry_info() {
    for (seconds, nanos, expected) in [
        (3, 500_000_000, Duration::from_millis(3500)),
        (0, 0, Duration::ZERO),
        (-5, -1, Duration::ZERO),
        (-5, 7, Duration::ZERO),
        (1, -7, Duration::from_secs(1)),
        (i64::MAX, i32::MAX, Duration::new(i64::MAX as u64, 999_999_999)),
    ] {
        let bytes = details(seconds, nanos).encode_to_vec();
        for text in [STANDARD.encode(&bytes), STANDARD_NO_PAD.encode(&bytes)] {
            let status = status_details(text.as_bytes()).expect("readable");
            assert_eq!((status.retry_delay(), status.message.as_str()), (Some(expected), "later"));
        }
    }
    let joined = format!("{}, AAAA", STANDARD.encode(details(2, 0).encode_to_vec()));
    assert_eq!(status_details(joined.as_bytes()).and_then(|status| status.retry_delay()), Some(Duration::from_secs(2)));
    assert_eq!(status_details(b"!!!"), None);
    assert_eq!(status_details(b"/////w=="), None);
    assert_eq!(Status::default().retry_delay(), None);
}

/// Retry-After as seconds and as a date, past, future and damaged.
#[test]
fn retry_after_forms() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777 - 90);
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    for (text, expected) in [
        ("120", seconds(120)),
        (" 0 ", seconds(0)),
        ("99999999999999999999999", seconds(u64::from(u32::MAX))),
        ("Sun, 06 Nov 1994 08:49:37 GMT", seconds(90)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", seconds(90)),
        ("Sun, 06 Nov 1994 08:40:00 GMT", seconds(0)),
        ("1.5", None),
        ("-3", None),
        ("soon", None),
        ("", None),
    ] {
        assert_eq!(retry_after(text.as_bytes(), now), expected, "{text:?}");
    }
    assert_eq!(retry_after(b"\xff", now), None);
}

/// Partial success of the three signals, a warning alone, nothing, and a body that cannot be read.
#[test]
fn partial_success() {
    let message = || "bad names".to_owned();
    let logs = ExportLogsPartialSuccess { rejected_log_records: 3, error_message: message() };
    let points = ExportMetricsPartialSuccess { rejected_data_points: 3, error_message: message() };
    let spans = ExportTracePartialSuccess { rejected_spans: 3, error_message: message() };
    for body in [
        ExportLogsServiceResponse { partial_success: Some(logs) }.encode_to_vec(),
        ExportMetricsServiceResponse { partial_success: Some(points) }.encode_to_vec(),
        ExportTraceServiceResponse { partial_success: Some(spans) }.encode_to_vec(),
    ] {
        let Outcome::Accepted { rejected: 3, warning: Some(warning) } = partial::read(&body) else {
            panic!("{body:?}")
        };
        assert!(warning.ends_with("bad names"), "{warning}");
    }
    let answer = |rejected, error_message| {
        let partial_success = Some(ExportLogsPartialSuccess { rejected_log_records: rejected, error_message });
        partial::read(&ExportLogsServiceResponse { partial_success }.encode_to_vec())
    };
    assert_eq!(partial::read(&[]), Outcome::OK);
    assert_eq!(answer(0, String::new()), Outcome::OK);
    assert!(matches!(answer(0, message()), Outcome::Accepted { rejected: 0, warning: Some(_) }));
    assert!(matches!(answer(-4, message()), Outcome::Accepted { rejected: 0, warning: Some(_) }));
    assert!(matches!(partial::read(b"\x0a\xff"), Outcome::Accepted { rejected: 0, warning: Some(_) }));
}

proptest! {
    /// Bytes from a server never panic, and a success stays one.
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200), code in 0_u16..700) {
        let accepted = matches!(partial::read(&bytes), Outcome::Accepted { .. });
        prop_assert!(accepted);
        _ = status_details(&bytes);
        _ = status_details(STANDARD.encode(&bytes).as_bytes()).and_then(|status| status.retry_delay());
        _ = retry_after(&bytes, SystemTime::now());
        _ = oversize::recognise(&String::from_utf8_lossy(&bytes));
        if let Ok(status) = StatusCode::from_u16(code) {
            _ = http::classify(status, &HeaderMap::new(), &bytes, SystemTime::now());
        }
    }
}
