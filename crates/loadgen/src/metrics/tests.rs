//! Real connections to a sink, over every protocol and in every shape; and servers that refuse.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

use otel_arrow_dfe_pdata::proto::opentelemetry::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceResponse,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::{KeyValue, any_value};
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::{
    MetricsData, NumberDataPoint, metric, number_data_point,
};
use prost::Message as _;

use super::*;
use crate::protobuf::RpcStatus;
use crate::sink::{Recording, RunningSink, Sink, SinkOptions};

const PROTOCOLS: [MetricsProtocol; 3] = [MetricsProtocol::OtlpHttp, MetricsProtocol::OtlpGrpc, MetricsProtocol::Otap];

fn corpus(count: u64) -> Corpus {
    Corpus { source: 3, count, window: NonZeroU64::new(1_000).unwrap(), series: NonZeroU32::new(27).unwrap() }
}

fn options(protocol: MetricsProtocol, shape: MetricsShape) -> MetricsOptions {
    MetricsOptions {
        batch: NonZeroUsize::new(400).unwrap(),
        connections: NonZeroUsize::new(2).unwrap(),
        ..MetricsOptions::new(protocol, shape)
    }
}

fn start() -> RunningSink {
    let any = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let record = Recording::Metrics;
    Sink::start(SinkOptions { otap: any, otlp_grpc: any, otlp_http: any, record, ..SinkOptions::default() }).unwrap()
}

fn address(sink: &RunningSink, protocol: MetricsProtocol) -> SocketAddr {
    let addresses = sink.addresses();
    let address = match protocol {
        MetricsProtocol::OtlpHttp => addresses.otlp_http,
        MetricsProtocol::OtlpGrpc => addresses.otlp_grpc,
        MetricsProtocol::Otap => addresses.otap,
    };
    address.unwrap()
}

/// Text attributes of a point.
fn texts(attributes: &[KeyValue]) -> Vec<(String, String)> {
    let text = |one: &KeyValue| match one.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => (one.key.clone(), text.clone()),
        other => panic!("{other:?}"),
    };
    let mut texts: Vec<_> = attributes.iter().map(text).collect();
    texts.sort();
    texts
}

/// Points of a message by their times, which are different, and the number of metrics.
fn points(data: &MetricsData) -> (BTreeMap<u64, NumberDataPoint>, usize) {
    let metrics: Vec<_> =
        data.resource_metrics.iter().flat_map(|r| &r.scope_metrics).flat_map(|s| &s.metrics).collect();
    let points = metrics.iter().flat_map(|one| {
        assert_eq!((one.name.as_str(), one.unit.as_str()), (METRIC_NAME, "s"));
        match &one.data {
            Some(metric::Data::Gauge(gauge)) => gauge.data_points.clone(),
            other => panic!("{other:?}"),
        }
    });
    (points.map(|point| (point.time_unix_nano, point)).collect(), metrics.len())
}

/// Every point arrives once, with its value, time and attributes, and the answers are counted.
#[test]
fn every_point_arrives() {
    let corpus = corpus(2_100);
    for protocol in PROTOCOLS {
        for (shape, metrics, attributes) in
            [(MetricsShape::MetricPerPoint, 2_100, 7), (MetricsShape::SharedMetric, 6, 3)]
        {
            let sink = start();
            let requests = Requests::encode(&corpus, &options(protocol, shape)).unwrap();
            let sent = send_metrics(address(&sink, protocol), &requests, None).unwrap();
            assert_eq!((sent.points, sent.requests, sent.bytes), (2_100, 6, requests.bytes()), "{protocol:?}");

            let messages = sink.take_metrics();
            let mut all = BTreeMap::new();
            let mut metrics_found = 0;
            for message in messages {
                let (found, metrics) = points(&message.into_metrics().unwrap());
                all.extend(found);
                metrics_found += metrics;
            }
            assert_eq!((all.len(), metrics_found), (2_100, metrics), "{protocol:?} {shape:?}");
            for index in 0..2_100 {
                let point = &all[&corpus.time(index)];
                assert_eq!(point.value, Some(number_data_point::Value::AsDouble(corpus.value(index))));
                let texts = texts(&point.attributes);
                assert_eq!(texts.len(), attributes, "{protocol:?}");
                let expected = corpus.series_attributes(corpus.series_of(index));
                for (key, value) in SERIES_KEYS.iter().zip(expected) {
                    assert!(texts.contains(&((*key).to_owned(), value)), "{key}");
                }
            }
            let counts = sink.stop().unwrap();
            assert_eq!((counts.points, counts.requests, counts.decode_errors), (2_100, 6, 0));
        }
    }
}

/// Sizes of a point on the wire, which are those of the benchmark that is compared with.
#[test]
fn sizes() {
    for (protocol, shape, expected) in [
        (MetricsProtocol::OtlpHttp, MetricsShape::MetricPerPoint, 268.0..278.0),
        (MetricsProtocol::OtlpHttp, MetricsShape::SharedMetric, 102.0..106.0),
        (MetricsProtocol::Otap, MetricsShape::SharedMetric, 5.0..20.0),
    ] {
        let requests = Requests::encode(&corpus(8_000), &MetricsOptions::new(protocol, shape)).unwrap();
        let bytes = requests.bytes() as f64 / requests.points() as f64;
        assert!(expected.contains(&bytes), "{protocol:?} {shape:?}: {bytes}");
    }
}

/// A rate is kept over all connections.
#[test]
fn paced() {
    let sink = start();
    for protocol in PROTOCOLS {
        let requests = Requests::encode(&corpus(1_200), &options(protocol, MetricsShape::SharedMetric)).unwrap();
        let sent = send_metrics(address(&sink, protocol), &requests, NonZeroU64::new(16_000)).unwrap();
        // The third request is due when the 800 points of the first two have had their time.
        assert!(sent.seconds >= 0.05, "{protocol:?}: {sent:?}");
    }
}

/// Batches that cannot be sent, and requests that receivers refuse by default, are not made.
#[test]
fn too_many_points() {
    let all = NonZeroUsize::new(70_000).unwrap();
    let many = |protocol| MetricsOptions { batch: all, ..options(protocol, MetricsShape::SharedMetric) };
    let error = Requests::encode(&corpus(70_000), &many(MetricsProtocol::Otap)).unwrap_err();
    assert!(matches!(error, MetricsError::Batch { batch: 70_000, most: 65_535 }));
    let error = Requests::encode(&corpus(70_000), &many(MetricsProtocol::OtlpGrpc)).unwrap_err();
    assert!(matches!(error, MetricsError::TooLarge { points: 70_000, .. }), "{error}");
    assert!(Requests::encode(&corpus(0), &many(MetricsProtocol::OtlpHttp)).unwrap().is_empty());
}

/// Answers the first request with these bytes.
fn answering(answer: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // The whole request is less than a segment of the loopback.
        let _ = stream.read(&mut [0; 65_536]).unwrap();
        stream.write_all(&answer).unwrap();
    }));
    address
}

fn http_answer(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Whatever the answer of HTTP is but success is an error with the server's text.
#[test]
fn refused_over_http() {
    let one = MetricsOptions::new(MetricsProtocol::OtlpHttp, MetricsShape::SharedMetric);
    let requests = Requests::encode(&corpus(10), &one).unwrap();
    let partial = ExportMetricsPartialSuccess { rejected_data_points: 4, error_message: "too old".to_owned() };
    let partial = ExportMetricsServiceResponse { partial_success: Some(partial) }.encode_to_vec();
    let status = RpcStatus { message: "no room".to_owned(), ..RpcStatus::default() }.encode_to_vec();
    for (answer, expected) in [
        (http_answer("429 Too Many Requests", b"slow down"), "429 Too Many Requests: slow down"),
        (http_answer("503 Service Unavailable", &status), "no room"),
        (http_answer("200 OK", &partial), "4 points were rejected: too old"),
        (http_answer("200 OK", b"\xff\xff"), "with a body that is none"),
    ] {
        let error = send_metrics(answering(answer), &requests, None).unwrap_err();
        assert!(matches!(&error, MetricsError::Refused { accepted, .. } if accepted.points == 0), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let error = send_metrics(answering(Vec::new()), &requests, None).unwrap_err();
    assert!(matches!(error, MetricsError::Connection { .. }), "{error}");
}

/// What a server of gRPC says is in the error: here a sink that gets logs' requests as batches of a stream.
#[test]
fn refused_over_grpc() {
    let sink = start();
    for protocol in [MetricsProtocol::OtlpGrpc, MetricsProtocol::Otap] {
        let mut requests = Requests::encode(&corpus(10), &options(protocol, MetricsShape::SharedMetric)).unwrap();
        requests.all[0].body = bytes::Bytes::from_static(b"\x7f\x7f\x7f");
        let error = send_metrics(address(&sink, protocol), &requests, None).unwrap_err();
        assert!(matches!(error, MetricsError::Refused { .. }) && error.to_string().contains("Internal"), "{error}");
    }
    // Nobody listens any more.
    let gone = address(&sink, MetricsProtocol::OtlpGrpc);
    let _ = sink.stop().unwrap();
    for protocol in PROTOCOLS {
        let requests = Requests::encode(&corpus(10), &options(protocol, MetricsShape::SharedMetric)).unwrap();
        let error = send_metrics(gone, &requests, None).unwrap_err();
        assert!(matches!(error, MetricsError::Connection { .. }), "{error}");
    }
}
