//! Messages for the tests, and a client that breaks them on the way.

use std::ops::Range;
use std::task::{Context, Poll};

use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::encode::{encode_logs_otap_batch, encode_metrics_otap_batch, encode_spans_otap_batch};
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::BatchArrowRecords;
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::{
    AnyValue, InstrumentationScope, KeyValue, any_value::Value,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::logs::v1::{LogRecord, LogsData, ResourceLogs, ScopeLogs};
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::{
    Gauge, Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric::Data, number_data_point,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::resource::v1::Resource;
use otel_arrow_dfe_pdata::proto::opentelemetry::trace::v1::{ResourceSpans, ScopeSpans, Span, TracesData};
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::transport::Channel;

use crate::traffic::DEFAULT_START_UNIX_NANO;

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.into(), value: Some(AnyValue { value: Some(value) }) }
}

fn resource() -> Option<Resource> {
    let attributes = vec![attribute("service.name", Value::StringValue("test".into()))];
    Some(Resource { attributes, ..Resource::default() })
}

fn scope() -> Option<InstrumentationScope> {
    Some(InstrumentationScope { name: "scope".into(), ..InstrumentationScope::default() })
}

/// Numbered log records.
pub(in crate::sink) fn logs(numbers: Range<u64>) -> Vec<ResourceLogs> {
    let log_records = numbers
        .map(|number| LogRecord {
            time_unix_nano: DEFAULT_START_UNIX_NANO + number,
            severity_number: 9,
            severity_text: "INFO".into(),
            body: Some(AnyValue { value: Some(Value::StringValue(format!("line {number}"))) }),
            attributes: vec![
                attribute("host", Value::StringValue("edge-1".into())),
                attribute("number", Value::IntValue(i64::try_from(number).unwrap())),
            ],
            ..LogRecord::default()
        })
        .collect();
    let scope_logs = vec![ScopeLogs { scope: scope(), log_records, ..ScopeLogs::default() }];
    vec![ResourceLogs { resource: resource(), scope_logs, ..ResourceLogs::default() }]
}

/// A gauge with the values 0.5, 1.5 and so on.
pub(in crate::sink) fn metrics(points: u32) -> Vec<ResourceMetrics> {
    let data_points = (0..points)
        .map(|number| NumberDataPoint {
            time_unix_nano: DEFAULT_START_UNIX_NANO,
            value: Some(number_data_point::Value::AsDouble(f64::from(number) + 0.5)),
            ..NumberDataPoint::default()
        })
        .collect();
    let data = Some(Data::Gauge(Gauge { data_points }));
    let metrics = vec![Metric { name: "load".into(), unit: "1".into(), data, ..Metric::default() }];
    let scope_metrics = vec![ScopeMetrics { scope: scope(), metrics, ..ScopeMetrics::default() }];
    vec![ResourceMetrics { resource: resource(), scope_metrics, ..ResourceMetrics::default() }]
}

/// Numbered spans.
pub(in crate::sink) fn spans(count: u8) -> Vec<ResourceSpans> {
    let spans = (0..count)
        .map(|number| Span {
            trace_id: vec![7; 16],
            span_id: vec![number + 1; 8],
            name: format!("span {number}"),
            start_time_unix_nano: DEFAULT_START_UNIX_NANO,
            end_time_unix_nano: DEFAULT_START_UNIX_NANO + 1,
            ..Span::default()
        })
        .collect();
    let scope_spans = vec![ScopeSpans { scope: scope(), spans, ..ScopeSpans::default() }];
    vec![ResourceSpans { resource: resource(), scope_spans, ..ResourceSpans::default() }]
}

pub(in crate::sink) fn logs_batch(numbers: Range<u64>) -> OtapArrowRecords {
    encode_logs_otap_batch(&LogsData { resource_logs: logs(numbers) }).unwrap()
}

pub(in crate::sink) fn metrics_batch(points: u32) -> OtapArrowRecords {
    encode_metrics_otap_batch(&MetricsData { resource_metrics: metrics(points) }).unwrap()
}

pub(in crate::sink) fn spans_batch(count: u8) -> OtapArrowRecords {
    encode_spans_otap_batch(&TracesData { resource_spans: spans(count) }).unwrap()
}

/// Size of the protobuf of a batch without headers, counted by hand (all its fields but the id are length-delimited).
pub(in crate::sink) fn encoded_len(batch: &BatchArrowRecords) -> usize {
    let varint = |value: u64| (64 - (value | 1).leading_zeros() as usize).div_ceil(7);
    let delimited = |length: usize| if length == 0 { 0 } else { 1 + varint(length as u64) + length };
    let number = |value: u64| if value == 0 { 0 } else { 1 + varint(value) };
    assert!(batch.headers.is_empty());
    let payloads = batch.arrow_payloads.iter().map(|payload| {
        let kind = u64::try_from(payload.r#type).unwrap();
        delimited(delimited(payload.schema_id.len()) + number(kind) + delimited(payload.record.len()))
    });
    number(u64::try_from(batch.batch_id).unwrap()) + payloads.sum::<usize>()
}

/// A connection that changes requests.
#[derive(Debug, Clone)]
pub(in crate::sink) struct Broken {
    channel: Channel,
    encoding: Option<&'static str>,
    body: Option<&'static str>,
}

impl Broken {
    /// Claims another compression than there is.
    pub(in crate::sink) fn rename_encoding(channel: Channel, encoding: &'static str) -> Self {
        Self { channel, encoding: Some(encoding), body: None }
    }

    /// Sends this as the only message, uncompressed, whatever the client wanted to send.
    pub(in crate::sink) fn replace_body(channel: Channel, body: &'static str) -> Self {
        Self { channel, encoding: None, body: Some(body) }
    }
}

impl Service<http::Request<Body>> for Broken {
    type Response = <Channel as Service<http::Request<Body>>>::Response;
    type Error = <Channel as Service<http::Request<Body>>>::Error;
    type Future = <Channel as Service<http::Request<Body>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Service::poll_ready(&mut self.channel, context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let (mut head, mut body) = request.into_parts();
        if let Some(encoding) = self.encoding {
            let _ = head.headers.insert("grpc-encoding", http::HeaderValue::from_static(encoding));
        }
        if let Some(text) = self.body {
            let length = u8::try_from(text.len()).unwrap();
            body = Body::new(format!("\0\0\0\0{}{text}", char::from(length)));
        }
        self.channel.call(http::Request::from_parts(head, body))
    }
}
