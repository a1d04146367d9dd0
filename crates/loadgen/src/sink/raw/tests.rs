//! Real clients, and a sink that does not look at what they send.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Instant;

use otel_arrow_dfe_pdata::Producer;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::{
    BatchArrowRecords, StatusCode, arrow_logs_service_client::ArrowLogsServiceClient,
    arrow_metrics_service_client::ArrowMetricsServiceClient, arrow_traces_service_client::ArrowTracesServiceClient,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::logs::v1::{
    ExportLogsServiceRequest, ExportLogsServiceResponse, logs_service_client::LogsServiceClient,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::metrics::v1::{
    ExportMetricsServiceRequest, metrics_service_client::MetricsServiceClient,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::trace::v1::{
    ExportTraceServiceRequest, trace_service_client::TraceServiceClient,
};
use prost::Message as _;
use tonic::codec::CompressionEncoding::{self, Gzip, Zstd};
use tonic::codegen::tokio_stream;

use crate::sink::script::SinkScript;
use crate::sink::tests::messages::{Broken, encoded_len, logs, logs_batch, metrics, metrics_batch, spans, spans_batch};
use crate::sink::tests::{client, connect, send_logs};
use crate::sink::{Counts, Recording, RunningSink, Sink, SinkError, SinkOptions};

const COMPRESSIONS: [Option<CompressionEncoding>; 3] = [None, Some(Zstd), Some(Gzip)];
/// Behind a byte that says whether a message is compressed, its length.
const PREFIX_BYTES: usize = 5;

fn options() -> SinkOptions {
    let any = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    SinkOptions { otap: any, otlp_grpc: any, otlp_http: any, raw: true, ..SinkOptions::default() }
}

fn start() -> RunningSink {
    Sink::start(options()).unwrap()
}

fn requests(counts: Counts) -> (u64, u64, u64) {
    (counts.requests, counts.items(), counts.decode_errors)
}

/// Requests of all signals, compressed or not, are answered with success and counted with their bytes; items are not.
#[test]
fn otlp() {
    for compression in COMPRESSIONS {
        let sink = start();
        let request = ExportLogsServiceRequest { resource_logs: logs(0..50) };
        let plain = request.encoded_len() + PREFIX_BYTES;
        client(async {
            let channel = connect(sink.addresses().otlp_grpc).await;
            let mut client = LogsServiceClient::new(channel.clone());
            if let Some(compression) = compression {
                client = client.send_compressed(compression);
            }
            let answer = client.export(request).await.unwrap();
            assert_eq!(answer.into_inner(), ExportLogsServiceResponse::default());
            let bytes = sink.counts().wire_bytes;
            assert_eq!(bytes == plain as u64, compression.is_none(), "{compression:?}: {bytes} of {plain} bytes");
            assert!((1..=plain as u64).contains(&bytes), "{compression:?}: {bytes} of {plain} bytes");
            let request = ExportMetricsServiceRequest { resource_metrics: metrics(2) };
            let _ = MetricsServiceClient::new(channel.clone()).export(request).await.unwrap();
            let request = ExportTraceServiceRequest { resource_spans: spans(3) };
            let _ = TraceServiceClient::new(channel).export(request).await.unwrap();
        });
        assert_eq!(requests(sink.stop().unwrap()), (3, 0, 0), "{compression:?}");
    }
}

/// Each batch of a stream has a status with its own number, compressed or not.
#[test]
fn otap() {
    for compression in COMPRESSIONS {
        let sink = start();
        let mut producer = Producer::new();
        let batches: Vec<_> = (0..3).map(|_| producer.produce_bar(&mut logs_batch(0..40)).unwrap()).collect();
        let numbers: Vec<i64> = batches.iter().map(|batch| batch.batch_id).collect();
        let plain: usize = batches.iter().map(|batch| encoded_len(batch) + PREFIX_BYTES).sum();
        let before = Instant::now();
        let answers = client(async {
            let mut client = ArrowLogsServiceClient::new(connect(sink.addresses().otap).await);
            if let Some(compression) = compression {
                client = client.send_compressed(compression);
            }
            send_logs(client, batches).await.unwrap()
        });
        assert_eq!(answers.iter().map(|answer| answer.batch_id).collect::<Vec<_>>(), numbers, "{compression:?}");
        assert!(answers.iter().all(|answer| answer.status_code == StatusCode::Ok as i32), "{compression:?}");
        assert!(sink.last_request().is_some_and(|last| (before..=Instant::now()).contains(&last)));
        let counts = sink.stop().unwrap();
        assert_eq!(counts.wire_bytes == plain as u64, compression.is_none(), "{counts:?}, {plain} bytes");
        assert_eq!(requests(counts), (3, 0, 0), "{compression:?}");
    }
}

/// The other signals have streams as well.
#[test]
fn otap_metrics_and_traces() {
    let sink = start();
    assert_eq!(sink.last_request(), None);
    client(async {
        let channel = connect(sink.addresses().otap).await;
        let points = Producer::new().produce_bar(&mut metrics_batch(3)).unwrap();
        let answers = ArrowMetricsServiceClient::new(channel.clone()).arrow_metrics(tokio_stream::iter([points])).await;
        assert!(answers.unwrap().into_inner().message().await.unwrap().is_some());
        let spans = Producer::new().produce_bar(&mut spans_batch(4)).unwrap();
        let answers = ArrowTracesServiceClient::new(channel).arrow_traces(tokio_stream::iter([spans])).await;
        assert!(answers.unwrap().into_inner().message().await.unwrap().is_some());
    });
    assert_eq!(requests(sink.counts()), (2, 0, 0));
}

/// Nobody looks at Arrow; what is no protobuf has no number and is refused.
#[test]
fn rubbish() {
    let sink = start();
    client(async {
        let channel = connect(sink.addresses().otap).await;
        let mut batch = Producer::new().produce_bar(&mut logs_batch(0..4)).unwrap();
        batch.arrow_payloads[0].record = b"not arrow".to_vec();
        let answers = send_logs(ArrowLogsServiceClient::new(channel.clone()), vec![batch]).await.unwrap();
        assert_eq!(answers[0].status_code, StatusCode::Ok as i32);
        let mut client = ArrowLogsServiceClient::new(Broken::replace_body(channel, "\x7f\x7f\x7f"));
        let mut answers =
            client.arrow_logs(tokio_stream::iter([BatchArrowRecords::default()])).await.unwrap().into_inner();
        assert!(answers.message().await.is_err());
    });
    assert_eq!(requests(sink.counts()), (1, 0, 1));
}

/// OTLP over HTTP is read as well.
#[test]
fn otlp_over_http() {
    let sink = start();
    let mut connection = std::net::TcpStream::connect(sink.addresses().otlp_http.unwrap()).unwrap();
    let head = "POST /v1/logs HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\ncontent-length: 4\r\n\r\n";
    connection.write_all(&[head.as_bytes(), b"\x7f\x7f\x7f\x7f"].concat()).unwrap();
    let mut answer = [0; 4_096];
    let length = connection.read(&mut answer).unwrap();
    assert!(answer[..length].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer[..length]));
    let counts = sink.counts();
    assert_eq!((requests(counts), counts.wire_bytes), ((1, 0, 0), 4));
}

/// What a raw sink cannot do is refused.
#[test]
fn refused_options() {
    for options in [
        SinkOptions { record: Recording::Memory, ..options() },
        SinkOptions { record: Recording::Metrics, ..options() },
        SinkOptions { script: Some(SinkScript::default()), ..options() },
    ] {
        assert!(matches!(Sink::start(options), Err(SinkError::Raw)));
    }
}
