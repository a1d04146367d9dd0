//! OTAP.

use otel_arrow_dfe_pdata::Producer;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::{
    BatchArrowRecords, arrow_logs_service_client::ArrowLogsServiceClient,
};
use tokio::sync::mpsc;
use tonic::Code;
use tonic::codec::CompressionEncoding;
use tonic::codegen::tokio_stream;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

use super::*;
use crate::sink::tests::messages::logs_batch;
use crate::sink::tests::send_logs;

/// Batches of one stream with two items each; their ids are 0, 1 and so on.
fn batches(count: u64) -> Vec<BatchArrowRecords> {
    let mut producer = Producer::new();
    (0..count).map(|number| producer.produce_bar(&mut logs_batch(number * 2..number * 2 + 2)).unwrap()).collect()
}

async fn open(sink: &RunningSink) -> ArrowLogsServiceClient<Channel> {
    ArrowLogsServiceClient::new(connect(sink.addresses().otap).await)
}

/// Id and code of each status of a stream that ends well.
fn statuses(sink: &RunningSink, count: u64) -> Vec<(i64, i32)> {
    let answers = client(async { send_logs(open(sink).await, batches(count)).await.unwrap() });
    answers.iter().map(|answer| (answer.batch_id, answer.status_code)).collect()
}

/// Every code can be the status of a batch; the stream goes on, and later batches are understood although they rely on
/// dictionaries of those that were not stored.
#[test]
fn batch_statuses() {
    let sink = start(
        "
        steps:
          - { when: { to: 1 }, answer: { batch_status: { code: UNAVAILABLE, message: later } } }
          - { when: { from: 2, to: 2 }, answer: { batch_status: { code: 42 } } }
          - { when: { from: 3, to: 3 }, answer: { batch_status: { code: INVALID_ARGUMENT } } }
          - { when: { from: 4, to: 4 }, store: true, answer: { batch_status: { code: DEADLINE_EXCEEDED } } }
        ",
    );
    assert_eq!(statuses(&sink, 5), [(0, 14), (1, 42), (2, 3), (3, 4), (4, 0)]);
    let report = sink.script_report().unwrap();
    assert_eq!((report.totals.openings, report.totals.requests), (1, 5));
    assert_eq!((report.totals.stored_items, report.totals.ambiguous_items), (4, 2));
    assert_eq!((report.keys[0].refused_for_good, report.keys[0].missing), (4, 2));
    assert_eq!(sink.counts().logs, 4);
}

/// Statuses that are late, out of order, twice, or for nobody.
#[test]
fn wrong_statuses() {
    let sink = start("steps: [{ when: { to: 1 }, answer: { lie: out_of_order } }]");
    assert_eq!(statuses(&sink, 2), [(1, 0), (0, 0)]);
    let sink = start("steps: [{ when: { to: 1 }, delay: 50ms }]");
    assert_eq!(statuses(&sink, 3), [(1, 0), (2, 0), (0, 0)]);
    let sink = start("steps: [{ when: { to: 1 }, answer: { lie: duplicate_status } }]");
    assert_eq!(statuses(&sink, 2), [(0, 0), (0, 0), (1, 0)]);
    let sink = start("steps: [{ when: { to: 1 }, answer: { lie: unknown_batch } }]");
    assert_eq!(statuses(&sink, 2), [(1 << 40, 0), (0, 0), (1, 0)]);
    assert_eq!(sink.counts().logs, 4);
}

/// A stream ends with a status, without one, by a reset, with its connection: the client sees which.
#[test]
fn ends() {
    for (answer, code, message) in [
        ("grpc: { code: UNAVAILABLE, message: restarting }", Some(Code::Unavailable), "restarting"),
        ("grpc: { code: OK }", None, ""),
        ("reset_stream: { code: 7 }", Some(Code::Unavailable), ""),
        ("size_limit: { bytes: 10, wording: tonic }", Some(Code::OutOfRange), "the limit is: 10 bytes"),
    ] {
        let sink = start(&format!("steps: [{{ when: {{ from: 2, to: 2 }}, answer: {{ {answer} }} }}]"));
        client(async {
            let [first, second] = batches(2).try_into().unwrap();
            let (send, receive) = mpsc::channel(2);
            send.send(first).await.unwrap();
            let mut answers = open(&sink).await.arrow_logs(ReceiverStream::new(receive)).await.unwrap().into_inner();
            assert_eq!(answers.message().await.unwrap().unwrap().batch_id, 0);
            send.send(second).await.unwrap();
            match (answers.message().await, code) {
                (Err(status), Some(code)) => {
                    assert_eq!(status.code(), code, "{answer}");
                    assert!(status.message().contains(message), "{status}");
                }
                (Ok(None), None) => {}
                (other, _) => panic!("{answer}: {other:?}"),
            }
        });
        assert_eq!(sink.counts().logs, 2, "{answer}");
    }
    for answer in
        ["end_stream", "{ close: { at: before_body } }", "{ close: { reset: true } }", "{ goaway: { exclude: true } }"]
    {
        let sink = start(&format!("steps: [{{ when: {{ to: 1 }}, answer: {answer} }}]"));
        client(async {
            // The end may come before the head of the answer is read.
            if let Ok(answers) = open(&sink).await.arrow_logs(sending(batches(1))).await {
                let answer = answers.into_inner().message().await;
                assert!(!matches!(answer, Ok(Some(_))), "{answer:?}");
            }
        });
        let outcome = wait_for_outcome(&sink, 1);
        assert_eq!(outcome, Outcome::Cut, "{answer}");
    }
}

/// A stream of requests that stays open.
fn sending(batches: Vec<BatchArrowRecords>) -> ReceiverStream<BatchArrowRecords> {
    let (send, receive) = mpsc::channel(batches.len() + 1);
    for batch in batches {
        send.try_send(batch).unwrap();
    }
    // Kept until the runtime of the client is gone.
    drop(tokio::spawn(async move { send.closed().await }));
    ReceiverStream::new(receive)
}

fn wait_for_outcome(sink: &RunningSink, row: usize) -> Outcome {
    let _ = wait(sink, |totals| totals.requests >= 1);
    loop {
        match rows(sink)[row].outcome {
            Outcome::Open => std::thread::yield_now(),
            outcome => return outcome,
        }
    }
}

/// Openings are refused as by a server without OTAP, not answered, or reset; OTLP is there on the same address.
#[test]
fn openings() {
    let sink = start(
        "
        steps:
          - { when: { on: open, to: 1 }, answer: { grpc: { code: UNIMPLEMENTED, message: no OTAP } } }
          - { when: { on: open, from: 2, to: 2 }, answer: { reset_stream: { code: 7 } } }
          - { when: { on: open, from: 3, to: 3 }, answer: { close: { at: before_body } } }
          - { when: { on: open, from: 4, to: 4 }, answer: never }
        ",
    );
    client(async {
        let status = open(&sink).await.arrow_logs(sending(batches(1))).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Unimplemented, "no OTAP"));
        let mut otlp = LogsServiceClient::new(connect(sink.addresses().otap).await);
        let _ = otlp.export(request(0..1)).await.unwrap();
        for _ in 0..2 {
            assert!(open(&sink).await.arrow_logs(sending(batches(1))).await.is_err());
        }
        let mut never = open(&sink).await;
        let waited = tokio::time::timeout(Duration::from_millis(50), never.arrow_logs(sending(batches(1)))).await;
        assert!(waited.is_err());
        drop(never);
        let answers = send_logs(open(&sink).await, batches(1)).await.unwrap();
        assert_eq!(answers.len(), 1);
    });
    let totals = wait(&sink, |totals| totals.openings == 5);
    assert_eq!(totals.requests, 2);
}

/// A batch without a status does not hold up the others, but the stream stays open.
#[test]
fn never() {
    let sink = start("steps: [{ when: { to: 1 }, store: true, answer: never }]");
    client(async {
        let mut answers = open(&sink).await.arrow_logs(tokio_stream::iter(batches(2))).await.unwrap().into_inner();
        assert_eq!(answers.message().await.unwrap().unwrap().batch_id, 1);
        let waited = tokio::time::timeout(Duration::from_millis(50), answers.message()).await;
        assert!(waited.is_err(), "{waited:?}");
    });
    let totals = wait(&sink, |totals| totals.ambiguous_items == 2);
    assert_eq!(totals.stored_items, 4);
}

/// Compressed messages are understood, and broken ones end the stream with a status.
#[test]
fn compressed_and_broken() {
    let sink = start("");
    client(async {
        let compressed = open(&sink).await.send_compressed(CompressionEncoding::Zstd);
        assert_eq!(send_logs(compressed, batches(3)).await.unwrap().len(), 3);
        let mut broken = batches(2);
        broken[0].arrow_payloads[0].record = b"not arrow".to_vec();
        let answers = send_logs(open(&sink).await, broken).await.unwrap();
        assert_eq!(answers.iter().map(|answer| answer.status_code).collect::<Vec<_>>(), [3]);
    });
    let report = sink.script_report().unwrap();
    assert_eq!((sink.counts().logs, sink.counts().decode_errors), (6, 1));
    assert_eq!((report.keys[0].items, report.keys[0].out_of_order, report.keys[0].missing), (6, 0, 0));
    assert!(report.requests[1].wire_bytes < report.requests[1].decoded_bytes);
}
