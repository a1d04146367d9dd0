//! OTLP over gRPC.

use std::time::Instant;

use h2::{Ping, Reason};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::metrics::v1::{
    ExportMetricsServiceRequest, metrics_service_client::MetricsServiceClient,
};
use prost::Message as _;
use tonic::Code;
use tonic::codec::CompressionEncoding;

use super::raw::{Raw, answered};
use super::*;
use crate::protobuf::RpcStatus;
use crate::sink::tests::messages::{Broken, metrics};

/// Codes with message and details come as they are; refused data is not stored, and what is lost by it is counted.
#[test]
fn codes() {
    let sink = start(
        "
        steps:
          - when: { to: 1 }
            answer: { grpc: { code: UNAVAILABLE, message: 'later, 100%', retry_info: 1500ms } }
          - when: { from: 2, to: 2 }
            answer: { grpc: { code: RESOURCE_EXHAUSTED, trailers_only: false } }
          - when: { from: 3, to: 3 }
            answer: { grpc: { code: INVALID_ARGUMENT, message: never } }
        ",
    );
    client(async {
        let status = export(&sink, 0..2).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Unavailable, "later, 100%"));
        let details = RpcStatus::decode(status.details()).unwrap();
        assert_eq!((details.code, details.message.as_str()), (14, "later, 100%"));
        assert_eq!(details.details[0].type_url, "type.googleapis.com/google.rpc.RetryInfo");
        // A delay of 1 s and 500,000,000 ns, field by field.
        let expected = [0x0a, 8, 0x08, 1, 0x10, 0x80, 0xca, 0xb5, 0xee, 0x01];
        assert_eq!(details.details[0].value, expected);
        let status = export(&sink, 0..2).await.unwrap_err();
        assert_eq!((status.code(), status.details()), (Code::ResourceExhausted, &[][..]));
        assert_eq!(export(&sink, 2..5).await.unwrap_err().code(), Code::InvalidArgument);
        assert!(export(&sink, 0..2).await.unwrap().partial_success.is_none());
        let _ = export(&sink, 9..10).await.unwrap();
    });
    let report = sink.script_report().unwrap();
    assert_eq!((report.totals.stored_items, report.totals.refused_for_good), (3, 3));
    assert_eq!(report.keys[0].refused_for_good, 3);
    assert_eq!(report.keys[0].missing, 4);
    let actions: Vec<_> = report.requests.iter().map(|row| (row.step, row.action.as_str())).collect();
    assert_eq!(actions[0], (Some(0), "grpc UNAVAILABLE"));
    assert_eq!(actions[3], (None, "ok"));
    assert_eq!(sink.counts().logs, 3);
}

/// What the frames look like: one header block or two, an unknown number, no trailers at all, a body that is none.
#[test]
fn frames() {
    let sink = start(
        "
        steps:
          - { when: { to: 1 }, answer: { grpc: { code: 99, message: new } } }
          - { when: { from: 2, to: 2 }, answer: { grpc: { code: 99, trailers_only: false } } }
          - { when: { from: 3, to: 3 }, answer: end_stream }
          - { when: { from: 4, to: 4 }, answer: { lie: unreadable_body } }
          - { when: { from: 5, to: 5 }, answer: { reset_stream: { code: 7 } } }
        ",
    );
    client(async {
        let mut raw = Raw::connect(sink.addresses().otlp_grpc).await;
        let answer = raw.call(1).await.unwrap();
        assert_eq!(answer.head["grpc-status"], "99");
        assert_eq!(answer.head["grpc-message"], "new");
        assert!(answer.trailers.is_none());
        let answer = raw.call(1).await.unwrap();
        assert!(!answer.head.contains_key("grpc-status"));
        assert_eq!(answer.trailers.unwrap()["grpc-status"], "99");
        let answer = raw.call(1).await.unwrap();
        assert!(answer.trailers.is_none() && answer.body.is_empty() && !answer.head.contains_key("grpc-status"));
        let answer = raw.call(1).await.unwrap();
        assert_eq!(answer.body, [0, 0, 0, 0, 7, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(answer.trailers.unwrap()["grpc-status"], "0");
        assert_eq!(raw.call(1).await.unwrap_err().reason(), Some(Reason::REFUSED_STREAM));
        let answer = raw.call(1).await.unwrap();
        assert_eq!((&answer.body[..], &answer.trailers.unwrap()["grpc-status"]), (&[0; 5][..], &"0".parse().unwrap()));
    });
    use Outcome::{Accepted, Cut, Refused};
    assert_eq!(outcomes(&sink), [Refused, Refused, Cut, Accepted, Cut, Accepted]);
    assert!(rows(&sink).iter().all(|row| row.connection == 1));
}

/// The first items are stored, the last rejected; zero rejected is a warning. Of metrics, points are what counts.
#[test]
fn partial_success() {
    let sink = start(
        "
        steps:
          - { when: { signal: logs, to: 1 }, answer: { partial_success: { rejected: 2, message: too old } } }
          - { when: { signal: logs }, answer: { partial_success: { rejected: 0, message: slow down } } }
          - { when: { signal: metrics }, answer: { partial_success: { rejected: 9 } } }
        ",
    );
    client(async {
        let partial = export(&sink, 0..5).await.unwrap().partial_success.unwrap();
        assert_eq!((partial.rejected_log_records, partial.error_message.as_str()), (2, "too old"));
        let partial = export(&sink, 5..6).await.unwrap().partial_success.unwrap();
        assert_eq!((partial.rejected_log_records, partial.error_message.as_str()), (0, "slow down"));
        let mut client = MetricsServiceClient::new(connect(sink.addresses().otlp_grpc).await);
        let points = ExportMetricsServiceRequest { resource_metrics: metrics(4) };
        let partial = client.export(points).await.unwrap().into_inner().partial_success.unwrap();
        assert_eq!(partial.rejected_data_points, 9);
    });
    let report = sink.script_report().unwrap();
    assert_eq!((report.totals.stored_items, report.totals.refused_for_good), (4, 6));
    assert_eq!((report.keys[0].missing, report.keys[0].refused_for_good), (0, 2));
    let counts = sink.counts();
    assert_eq!((counts.logs, counts.points), (4, 0));
}

/// Stored, but the client hears late, something else, or nothing: all that is ambiguous is counted.
#[test]
fn ambiguous() {
    let sink = start(
        "
        steps:
          - { when: { to: 1 }, delay: 30ms }
          - { when: { from: 2, to: 2 }, store: true, answer: { grpc: { code: DEADLINE_EXCEEDED } } }
          - { when: { from: 3, to: 3 }, store: true, answer: { close: { at: after_body } } }
          - { when: { from: 4, to: 4 }, store: true, answer: never }
          - { when: { from: 5, to: 5 }, delay: 1h }
        ",
    );
    client(async {
        let began = Instant::now();
        let _ = export(&sink, 0..1).await.unwrap();
        assert!(began.elapsed() >= Duration::from_millis(30));
        assert_eq!(export(&sink, 1..3).await.unwrap_err().code(), Code::DeadlineExceeded);
        assert!(export(&sink, 3..7).await.is_err());
        for items in [8, 16] {
            // Given up as soon as it is stored.
            let mut raw = Raw::connect(sink.addresses().otlp_grpc).await;
            let call = raw.send(items).await.unwrap();
            let before = sink.script_totals().unwrap().stored_items;
            while sink.script_totals().unwrap().stored_items == before {
                tokio::task::yield_now().await;
            }
            drop(call);
            tokio::task::yield_now().await;
        }
    });
    let totals = wait(&sink, |totals| totals.ambiguous_items == 2 + 4 + 8 + 16);
    assert_eq!((totals.stored_items, totals.late_items), (31, 17));
    use Outcome::{Accepted, ClientLeft, Cut, Refused};
    assert_eq!(outcomes(&sink), [Accepted, Refused, Cut, ClientLeft, ClientLeft]);
}

/// A connection that ends takes the requests on it along, at each moment; the next connection is another.
#[test]
fn closed() {
    for at in ["before_body", "during_body", "after_body"] {
        for reset in [false, true] {
            let sink = start(&format!(
                "steps: [{{ when: {{ from: 2, to: 2 }}, answer: {{ close: {{ at: {at}, reset: {reset} }} }} }}]"
            ));
            client(async {
                let mut raw = Raw::connect(sink.addresses().otlp_grpc).await;
                let _ = raw.call(1).await.unwrap();
                let (response, mut stream) = raw.begin().await.unwrap();
                if at != "before_body" {
                    // For the end of the body there has to be all of it.
                    let end = at == "after_body";
                    let message = super::super::grpc::framed(&request(0..4).encode_to_vec());
                    stream.send_data(if end { message } else { message.slice(..9) }, end).unwrap();
                }
                let error = answered(response).await.unwrap_err();
                assert!(error.is_io() || error.is_go_away(), "{at}, {reset}: {error:?}");
                let _ = raw.connection.await.unwrap();
                let _ = export(&sink, 0..2).await.unwrap();
            });
            let rows = rows(&sink);
            assert_eq!(outcomes(&sink), [Outcome::Accepted, Outcome::Cut, Outcome::Accepted], "{at}, {reset}");
            assert_eq!(rows.iter().map(|row| row.connection).collect::<Vec<_>>(), [1, 1, 2]);
            assert_eq!(sink.counts().logs, 3);
            // The first answer was given just before the cut: it could have been lost.
            assert!(rows[0].ambiguous && !rows[2].ambiguous);
        }
    }
}

/// After an orderly GOAWAY what is under way is answered, and the connection takes no more.
#[test]
fn goaway() {
    let sink = start(
        "
        steps:
          - { when: { to: 1 }, delay: 50ms }
          - { when: { from: 2, to: 2 }, answer: { goaway: {} } }
        ",
    );
    client(async {
        let mut raw = Raw::connect(sink.addresses().otlp_grpc).await;
        let first = raw.send(1).await.unwrap();
        let answer = raw.call(2).await.unwrap();
        assert_eq!(answer.trailers.unwrap()["grpc-status"], "0");
        assert_eq!(answered(first).await.unwrap().trailers.unwrap()["grpc-status"], "0");
        raw.connection.await.unwrap().unwrap();
        assert!(raw.send.ready().await.is_err());
    });
    assert_eq!(outcomes(&sink), [Outcome::Accepted; 2]);
}

/// A GOAWAY that excludes a request: the client knows that it was not served, and older ones still are.
#[test]
fn goaway_that_excludes() {
    let sink = start(
        "
        steps:
          - { when: { to: 1 }, delay: 50ms }
          - { when: { from: 2, to: 2 }, answer: { goaway: { exclude: true, code: 11 } } }
        ",
    );
    client(async {
        let mut raw = Raw::connect(sink.addresses().otlp_grpc).await;
        let first = raw.send(1).await.unwrap();
        let error = raw.call(2).await.unwrap_err();
        assert!(error.is_go_away() && error.is_remote(), "{error:?}");
        assert_eq!(error.reason(), Some(Reason::ENHANCE_YOUR_CALM));
        assert_eq!(answered(first).await.unwrap().trailers.unwrap()["grpc-status"], "0");
        let _ = export(&sink, 0..4).await.unwrap();
    });
    assert_eq!(outcomes(&sink), [Outcome::Accepted, Outcome::Cut, Outcome::Accepted]);
    assert_eq!(sink.counts().logs, 5);
}

/// Limits on the size, before and after decompression, in both wordings.
#[test]
fn size_limits() {
    let sink = start(
        "
        steps:
          - { when: { to: 3 }, answer: { size_limit: { bytes: 500 } } }
          - { answer: { size_limit: { bytes: 500, wording: tonic } } }
        ",
    );
    let large = request(0..40);
    let size = large.encoded_len();
    client(async {
        let plain = LogsServiceClient::new(connect(sink.addresses().otlp_grpc).await);
        let status = plain.clone().export(large.clone()).await.unwrap_err();
        let words = format!("grpc: received message larger than max ({size} vs. 500)");
        assert_eq!((status.code(), status.message()), (Code::ResourceExhausted, words.as_str()));
        for compression in [CompressionEncoding::Gzip, CompressionEncoding::Zstd] {
            let status = plain.clone().send_compressed(compression).export(large.clone()).await.unwrap_err();
            let words = format!("grpc: received message after decompression larger than max ({size} vs. 500)");
            assert_eq!((status.code(), status.message()), (Code::ResourceExhausted, words.as_str()));
        }
        let status = plain.clone().export(large.clone()).await.unwrap_err();
        let words = format!("decoded message length too large: found {size} bytes, the limit is: 500 bytes");
        assert_eq!(status.code(), Code::OutOfRange);
        assert!(status.message().ends_with(&words), "{}", status.message());
        let _ = plain.clone().export(request(0..1)).await.unwrap();
    });
    let report = sink.script_report().unwrap();
    assert_eq!((report.totals.refused_for_good, report.totals.stored_items), (0, 1));
    assert_eq!(report.requests[0].decoded_bytes, size as u64);
    assert!(report.requests[1].wire_bytes < 500 && report.requests[1].decoded_bytes == size as u64);
    let actions: Vec<_> = report.requests.iter().map(|row| row.action.as_str()).collect();
    assert_eq!(actions[..2], ["grpc RESOURCE_EXHAUSTED"; 2]);
    assert_eq!(actions[3..], ["grpc OUT_OF_RANGE", "ok"]);
}

/// A body that is not read fills its window, and no more is let through until the time is over.
#[test]
fn unread_body() {
    let sink = start("{ window_bytes: 1024, steps: [{ when: { to: 1 }, stop_reading: { for: 100ms } }] }");
    client(async {
        // The window is known once the sink's settings have come, which a ping tells.
        let mut raw = Raw::connect(sink.addresses().otlp_grpc).await;
        let _ = raw.pings.ping(Ping::opaque()).await.unwrap();
        let began = Instant::now();
        let message = super::super::grpc::framed(&request(0..100).encode_to_vec());
        let (response, mut stream) = raw.begin().await.unwrap();
        stream.reserve_capacity(message.len());
        let first = std::future::poll_fn(|context| stream.poll_capacity(context)).await.unwrap().unwrap();
        assert_eq!(first, 1_024);
        stream.send_data(message, true).unwrap();
        assert_eq!(answered(response).await.unwrap().trailers.unwrap()["grpc-status"], "0");
        assert!(began.elapsed() >= Duration::from_millis(100));
    });
    assert_eq!(sink.counts().logs, 100);
}

/// A connection that is not read answers no ping until the time is over.
#[test]
fn unread_connection() {
    let sink = start("steps: [{ when: { to: 1 }, stop_reading: { for: 100ms, of: connection } }]");
    client(async {
        let mut raw = Raw::connect(sink.addresses().otlp_grpc).await;
        let began = Instant::now();
        let call = raw.send(1).await.unwrap();
        let _ = wait_for_request(&sink).await;
        let _ = raw.pings.ping(Ping::opaque()).await.unwrap();
        assert!(began.elapsed() >= Duration::from_millis(100));
        assert_eq!(answered(call).await.unwrap().trailers.unwrap()["grpc-status"], "0");
    });
}

async fn wait_for_request(sink: &RunningSink) -> u64 {
    loop {
        match sink.script_totals().unwrap().requests {
            0 => tokio::task::yield_now().await,
            requests => return requests,
        }
    }
}

/// What is no request is told and counted, script or not.
#[test]
fn garbage() {
    let sink = start("");
    client(async {
        let otlp = connect(sink.addresses().otlp_grpc).await;
        let mut client = LogsServiceClient::new(Broken::replace_body(otlp.clone(), "\x7f\x7f\x7f"));
        assert_eq!(client.export(request(0..1)).await.unwrap_err().code(), Code::InvalidArgument);
        let client = LogsServiceClient::new(Broken::rename_encoding(otlp.clone(), "snappy"));
        let status = { client }.send_compressed(CompressionEncoding::Gzip).export(request(0..1)).await.unwrap_err();
        assert_eq!(status.code(), Code::Unimplemented);
        let client = LogsServiceClient::new(Broken::rename_encoding(otlp, "gzip"));
        let status = { client }.send_compressed(CompressionEncoding::Zstd).export(request(0..1)).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
    });
    assert_eq!(sink.counts().decode_errors, 3);
    assert_eq!(outcomes(&sink), [Outcome::Refused; 2]);
}
