//! A real sink, real connections, and what exporters send: plain, compressed, and broken.

pub(in crate::sink) mod messages;

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use otel_arrow_dfe_pdata::Producer;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::{
    BatchArrowRecords, BatchStatus, StatusCode, arrow_logs_service_client::ArrowLogsServiceClient,
    arrow_metrics_service_client::ArrowMetricsServiceClient, arrow_traces_service_client::ArrowTracesServiceClient,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::logs::v1::{
    ExportLogsServiceRequest, logs_service_client::LogsServiceClient,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::metrics::v1::{
    ExportMetricsServiceRequest, metrics_service_client::MetricsServiceClient,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::trace::v1::{
    ExportTraceServiceRequest, trace_service_client::TraceServiceClient,
};
use prost::Message as _;
use serde_json::json;
use tonic::codec::CompressionEncoding;
use tonic::codegen::tokio_stream;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::*;
use messages::{Broken, logs, logs_batch, metrics, metrics_batch, spans, spans_batch};

/// Generous: it is only used up when something is broken.
pub(in crate::sink) const TIMEOUT: Duration = Duration::from_secs(20);

fn start(record: Recording) -> RunningSink {
    let any = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    Sink::start(SinkOptions { otap: any, otlp_grpc: any, otlp_http: any, record, ..SinkOptions::default() }).unwrap()
}

/// Runs a client to its end.
pub(in crate::sink) fn client<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

pub(in crate::sink) async fn connect(address: Option<SocketAddr>) -> Channel {
    Channel::from_shared(format!("http://{}", address.unwrap())).unwrap().connect().await.unwrap()
}

/// Sends batches on one stream and gives all answers.
pub(in crate::sink) async fn send_logs(
    mut client: ArrowLogsServiceClient<Channel>,
    batches: Vec<BatchArrowRecords>,
) -> Result<Vec<BatchStatus>, Status> {
    let mut answers = client.arrow_logs(tokio_stream::iter(batches)).await?.into_inner();
    let mut all = Vec::new();
    while let Some(answer) = answers.message().await? {
        all.push(answer);
    }
    Ok(all)
}

fn expected_log(number: u64) -> Value {
    json!({
        "time": format!("2026-01-01T00:00:00.{number:09}Z"),
        "observed_time": null,
        "severity_number": 9,
        "severity_text": "INFO",
        "body": format!("line {number}"),
        "attributes": { "host": "edge-1", "number": number },
        "resource": { "service.name": "test" },
        "scope": "scope",
        "trace_id": null,
        "span_id": null,
        "flags": null,
    })
}

/// Two batches of one stream, the second relying on the dictionaries of the first, arrive and are answered in order,
/// whatever the compression.
#[test]
fn otap_logs_plain_and_compressed() {
    let mut bytes = BTreeMap::new();
    for (name, compression) in
        [("plain", None), ("zstd", Some(CompressionEncoding::Zstd)), ("gzip", Some(CompressionEncoding::Gzip))]
    {
        let sink = start(Recording::Memory);
        let mut producer = Producer::new();
        let batches = vec![
            producer.produce_bar(&mut logs_batch(0..40)).unwrap(),
            producer.produce_bar(&mut logs_batch(40..50)).unwrap(),
        ];
        let ids: Vec<i64> = batches.iter().map(|batch| batch.batch_id).collect();
        let answers = client(async {
            let mut client = ArrowLogsServiceClient::new(connect(sink.addresses().otap).await);
            if let Some(compression) = compression {
                client = client.send_compressed(compression);
            }
            send_logs(client, batches).await.unwrap()
        });
        assert_eq!(answers.iter().map(|answer| answer.batch_id).collect::<Vec<_>>(), ids, "{name}");
        assert!(answers.iter().all(|answer| answer.status_code == StatusCode::Ok as i32), "{name}");

        let counts = sink.wait_for(50, TIMEOUT).unwrap();
        assert_eq!((counts.logs, counts.items(), counts.requests, counts.decode_errors), (50, 50, 2, 0), "{name}");
        assert_eq!(sink.records(), (0..50).map(expected_log).collect::<Vec<_>>(), "{name}");
        let _ = bytes.insert(name, counts.wire_bytes);
        assert_eq!(sink.stop().unwrap(), counts, "{name}");
    }
    assert!(bytes["zstd"] < bytes["plain"] && bytes["gzip"] < bytes["plain"], "{bytes:?}");
}

/// Wire bytes are exactly the gRPC messages: their encoding, and a prefix of 5 bytes each.
#[test]
fn wire_bytes_of_plain_messages() {
    let sink = start(Recording::Off);
    let mut producer = Producer::new();
    let batches: Vec<_> = (0..3).map(|_| producer.produce_bar(&mut logs_batch(0..7)).unwrap()).collect();
    let expected: usize = batches.iter().map(|batch| messages::encoded_len(batch) + 5).sum();
    let _ = client(async {
        send_logs(ArrowLogsServiceClient::new(connect(sink.addresses().otap).await), batches).await.unwrap()
    });
    assert_eq!(sink.wait_for(21, TIMEOUT).unwrap().wire_bytes, expected as u64);
    assert!(sink.records().is_empty(), "nothing is recorded unless asked for");
}

/// Points and spans are counted as what they are; points are recorded.
#[test]
fn otap_metrics_and_traces() {
    let sink = start(Recording::Memory);
    client(async {
        let channel = connect(sink.addresses().otap).await;
        let points = Producer::new().produce_bar(&mut metrics_batch(3)).unwrap();
        let answers = ArrowMetricsServiceClient::new(channel.clone()).arrow_metrics(tokio_stream::iter([points])).await;
        assert_eq!(answers.unwrap().into_inner().message().await.unwrap().unwrap().status_code, StatusCode::Ok as i32);
        let spans = Producer::new().produce_bar(&mut spans_batch(4)).unwrap();
        let answers = ArrowTracesServiceClient::new(channel).arrow_traces(tokio_stream::iter([spans])).await;
        assert_eq!(answers.unwrap().into_inner().message().await.unwrap().unwrap().status_code, StatusCode::Ok as i32);
    });
    let counts = sink.wait_for(7, TIMEOUT).unwrap();
    assert_eq!((counts.points, counts.spans, counts.logs, counts.requests), (3, 4, 0, 2));
    let values: Vec<_> = sink.records().iter().map(|point| (point["name"].clone(), point["value"].clone())).collect();
    assert_eq!(values, [(json!("load"), json!(0.5)), (json!("load"), json!(1.5)), (json!("load"), json!(2.5))]);
}

/// OTLP requests of all signals are counted, and recorded in the same shape as OTAP.
#[test]
fn otlp_requests() {
    let sink = start(Recording::Memory);
    client(async {
        let channel = connect(sink.addresses().otlp_grpc).await;
        let request = ExportLogsServiceRequest { resource_logs: logs(0..5) };
        let response = LogsServiceClient::new(channel.clone())
            .send_compressed(CompressionEncoding::Zstd)
            .export(request)
            .await
            .unwrap();
        assert!(response.into_inner().partial_success.is_none());
        let request = ExportMetricsServiceRequest { resource_metrics: metrics(2) };
        let _ = MetricsServiceClient::new(channel.clone()).export(request).await.unwrap();
        let request = ExportTraceServiceRequest { resource_spans: spans(3) };
        let _ = TraceServiceClient::new(channel).export(request).await.unwrap();
    });
    let counts = sink.wait_for(10, TIMEOUT).unwrap();
    assert_eq!((counts.logs, counts.points, counts.spans), (5, 2, 3));
    assert_eq!((counts.requests, counts.decode_errors), (3, 0));
    assert!(counts.wire_bytes > 0);
    let records = sink.records();
    assert_eq!(records[..5], (0..5).map(expected_log).collect::<Vec<_>>());
    assert_eq!(records[5..].iter().map(|point| &point["value"]).collect::<Vec<_>>(), [&json!(0.5), &json!(1.5)]);
}

/// The Go exporter's names for zstd are understood.
#[test]
fn numbered_zstd() {
    let sink = start(Recording::Off);
    client(async {
        let channel = Broken::rename_encoding(connect(sink.addresses().otlp_grpc).await, "zstdarrow7");
        let request = ExportLogsServiceRequest { resource_logs: logs(0..2) };
        let client = LogsServiceClient::new(channel).send_compressed(CompressionEncoding::Zstd);
        let _ = { client }.export(request).await.unwrap();
    });
    assert_eq!(sink.wait_for(2, TIMEOUT).unwrap().decode_errors, 0);
}

/// Each kind of garbage is counted once and refused, and the sink goes on.
#[test]
fn garbage() {
    let sink = start(Recording::Memory);
    client(async {
        let otap = connect(sink.addresses().otap).await;
        let good = Producer::new().produce_bar(&mut logs_batch(0..4)).unwrap();
        let payload_of = |change: &dyn Fn(&mut BatchArrowRecords)| {
            let mut batch = good.clone();
            change(&mut batch);
            batch
        };

        // Protobuf is right, Arrow is not: no stream at all, cut in the middle, bits turned over, an unknown table, a
        // table of another signal.
        let broken = [
            payload_of(&|batch| batch.arrow_payloads[0].record = b"not arrow".to_vec()),
            payload_of(&|batch| batch.arrow_payloads[0].record.clear()),
            payload_of(&|batch| {
                let length = batch.arrow_payloads[0].record.len();
                batch.arrow_payloads[0].record.truncate(length / 2);
            }),
            payload_of(&|batch| batch.arrow_payloads[0].record.iter_mut().for_each(|byte| *byte ^= 0x55)),
            payload_of(&|batch| batch.arrow_payloads[0].r#type = 1_000),
            Producer::new().produce_bar(&mut metrics_batch(1)).unwrap(),
        ];
        for (number, batch) in broken.into_iter().enumerate() {
            let answers =
                send_logs(ArrowLogsServiceClient::new(otap.clone()), vec![batch, good.clone()]).await.unwrap();
            assert_eq!(answers.len(), 1, "the stream ends at broken batch {number}");
            assert_eq!(answers[0].status_code, StatusCode::InvalidArgument as i32, "{number}: {answers:?}");
            assert_eq!(sink.counts().decode_errors, number as u64 + 1);
        }

        // No protobuf, on a stream and as a request.
        let mut client = ArrowLogsServiceClient::new(Broken::replace_body(otap.clone(), "\x7f\x7f\x7f"));
        let mut answers = client.arrow_logs(tokio_stream::iter([good.clone()])).await.unwrap().into_inner();
        assert_eq!(answers.message().await.unwrap_err().code(), Code::Internal);
        assert_eq!(sink.counts().decode_errors, 7);
        let otlp = connect(sink.addresses().otlp_grpc).await;
        let mut client = LogsServiceClient::new(Broken::replace_body(otlp.clone(), "\x7f\x7f\x7f"));
        let request = ExportLogsServiceRequest { resource_logs: logs(0..1) };
        assert_eq!(client.export(request.clone()).await.unwrap_err().code(), Code::Internal);
        assert_eq!(sink.counts().decode_errors, 8);

        // A compression that we do not know.
        let client = LogsServiceClient::new(Broken::rename_encoding(otlp, "snappy"));
        let mut client = client.send_compressed(CompressionEncoding::Zstd);
        assert_eq!(client.export(request).await.unwrap_err().code(), Code::Unimplemented);
        assert_eq!(sink.counts().decode_errors, 9);

        let answers = send_logs(ArrowLogsServiceClient::new(otap), vec![good]).await.unwrap();
        assert_eq!(answers[0].status_code, StatusCode::Ok as i32);
    });
    let counts = sink.wait_for(4, TIMEOUT).unwrap();
    assert_eq!((counts.logs, counts.requests, counts.decode_errors), (4, 1, 9));
    assert_eq!(sink.records().len(), 4);
}

/// No changed byte of a good batch brings the sink down: it counts the batch as arrived or as an error.
#[test]
fn flipped_bytes() {
    let good = Producer::new().produce_bar(&mut logs_batch(0..3)).unwrap();
    let (mut arrived, mut refused) = (0, 0);
    for payload in 0..good.arrow_payloads.len() {
        for at in (0..good.arrow_payloads[payload].record.len()).step_by(3) {
            let mut batch = good.clone();
            batch.arrow_payloads[payload].record[at] ^= 0xff;
            match decode::otap(&mut Default::default(), decode::Signal::Logs, batch, store::Keep::Objects) {
                Ok(_) => arrived += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(arrived > 0 && refused > 0, "{arrived} arrived, {refused} refused");
}

/// The record file has the same objects, one a line, and is complete before the sink stops.
#[test]
fn record_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.jsonl");
    let sink = start(Recording::File(path.clone()));
    let batch = Producer::new().produce_bar(&mut logs_batch(0..9)).unwrap();
    let _ = client(async {
        send_logs(ArrowLogsServiceClient::new(connect(sink.addresses().otap).await), vec![batch]).await.unwrap()
    });
    let _ = sink.wait_for(9, TIMEOUT).unwrap();
    let lines = std::fs::read_to_string(&path).unwrap();
    let objects: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects, (0..9).map(expected_log).collect::<Vec<_>>());
    assert!(sink.records().is_empty());
    assert_eq!(sink.stop().unwrap().logs, 9);
}

/// What cannot be started is refused with the reason.
#[test]
fn refused_options() {
    assert!(matches!(Sink::start(SinkOptions::default()), Err(SinkError::NoAddress)));
    let sink = start(Recording::Off);
    let taken = SinkOptions { otap: sink.addresses().otap, ..SinkOptions::default() };
    assert!(matches!(Sink::start(taken), Err(SinkError::Listen { .. })));
    let nowhere = Recording::File("/nowhere/record.jsonl".into());
    let options = SinkOptions { record: nowhere, otap: Some(([127, 0, 0, 1], 0).into()), ..SinkOptions::default() };
    assert!(matches!(Sink::start(options), Err(SinkError::Record { .. })));
}

/// Waiting ends with the reason; stopping ends a client's open stream.
#[test]
fn waiting_and_stopping() {
    let sink = start(Recording::Off);
    assert_eq!(sink.wait_for(0, Duration::ZERO).unwrap(), Counts::default());
    assert!(matches!(sink.wait_for(1, Duration::ZERO), Err(WaitError::TimedOut { expected: 1, .. })));
    let interrupter = sink.interrupter();
    let waiting = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| sink.wait_for(1, Duration::MAX));
        interrupter.interrupt();
        waiting.join().unwrap()
    });
    assert!(matches!(waiting, Err(WaitError::Interrupted { expected: 1, .. })));

    client(async {
        let mut client = ArrowLogsServiceClient::new(connect(sink.addresses().otap).await);
        let mut answers = client.arrow_logs(tokio_stream::pending()).await.unwrap().into_inner();
        let address = sink.addresses().otap.unwrap();
        let _ = sink.stop().unwrap();
        assert!(answers.message().await.is_err());
        assert!(std::net::TcpStream::connect(address).is_err(), "nobody listens any more");
    });
}

/// OTLP over HTTP: logs and spans are counted, metrics kept as they came; what is no request of OTLP is told and counted.
#[test]
fn otlp_over_http() {
    let sink = start(Recording::Metrics);
    let address = sink.addresses().otlp_http.unwrap();
    let mut connection = std::net::TcpStream::connect(address).unwrap();
    let mut post = |path: &str, kind: &str, body: &[u8]| {
        let length = body.len();
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n");
        connection.write_all(&[head.as_bytes(), body].concat()).unwrap();
        let mut answer = Vec::new();
        // One answer is one write of the sink.
        let mut part = [0; 4_096];
        let length = connection.read(&mut part).unwrap();
        answer.extend_from_slice(&part[..length]);
        String::from_utf8_lossy(&answer).into_owned()
    };
    let protobuf = "application/x-protobuf";
    let logs = ExportLogsServiceRequest { resource_logs: logs(0..5) }.encode_to_vec();
    let points = ExportMetricsServiceRequest { resource_metrics: metrics(2) }.encode_to_vec();
    let spans = ExportTraceServiceRequest { resource_spans: spans(3) }.encode_to_vec();
    for (path, body) in [("/v1/logs", &logs), ("/v1/metrics", &points), ("/v1/traces", &spans)] {
        assert!(post(path, protobuf, body).starts_with("HTTP/1.1 200"), "{path}");
    }
    let counts = sink.counts();
    assert_eq!((counts.logs, counts.points, counts.spans, counts.requests), (5, 2, 3, 3));
    assert_eq!(counts.wire_bytes, (logs.len() + points.len() + spans.len()) as u64);
    for (number, (path, kind, body, expected)) in [
        ("/v1/profiles", protobuf, &logs[..], "404"),
        ("/v1/logs", "application/json", b"{}", "415"),
        ("/v1/metrics", protobuf, b"\x7f\x7f\x7f", "400"),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(post(path, kind, body).starts_with(&format!("HTTP/1.1 {expected}")), "{path}");
        assert_eq!(sink.counts().decode_errors, number as u64 + 1);
    }
    let compressed = zstd::encode_all(&spans[..], 1).unwrap();
    let zstd = "application/x-protobuf\r\ncontent-encoding: zstd";
    assert!(post("/v1/traces", zstd, &compressed).starts_with("HTTP/1.1 200"));
    assert_eq!(sink.counts().spans, 6);
    let kept: Vec<_> = sink.take_metrics().into_iter().map(|message| message.into_metrics().unwrap()).collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].resource_metrics, metrics(2));
    assert!(sink.records().is_empty() && sink.take_metrics().is_empty());
}
