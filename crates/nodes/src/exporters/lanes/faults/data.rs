//! Batches with keys and numbers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use otel_arrow_dfe_otap::pdata::{Context, OtapPdata};
use otel_arrow_dfe_pdata::encode::{encode_logs_otap_batch, encode_metrics_otap_batch, encode_spans_otap_batch};
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::{AnyValue, KeyValue, any_value::Value};
use otel_arrow_dfe_pdata::proto::opentelemetry::logs::v1::{LogRecord, LogsData, ResourceLogs, ScopeLogs};
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::{
    Gauge, Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric::Data, number_data_point,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::resource::v1::Resource;
use otel_arrow_dfe_pdata::proto::opentelemetry::trace::v1::{ResourceSpans, ScopeSpans, Span, TracesData};
use otel_arrow_dfe_pdata::{OtapArrowRecords, OtlpProtoBytes};
use otel_arrow_dfe_pdata_codec::OtapPayload;
use prost::Message as _;

/// What a batch is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Logs,
    Metrics,
    Traces,
}

/// One pdata: items of one key with numbers that follow each other.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    pub(super) key: u8,
    pub(super) first: u64,
    pub(super) items: usize,
    pub(super) signal: Signal,
    /// As a request of OTLP; else as record batches.
    pub(super) otlp: bool,
    /// Bytes that each item has more.
    pub(super) padding: usize,
    /// Names of further attributes begin with this: other names, other columns and dictionaries.
    pub(super) flavour: u8,
    /// Columns of record batches are in the opposite order.
    pub(super) reversed: bool,
    /// Bytes that are no request.
    pub(super) broken: bool,
}

impl Batch {
    /// Logs as record batches, with little in them.
    pub(super) const fn logs(key: u8, first: u64, items: usize) -> Self {
        Self {
            key,
            first,
            items,
            signal: Signal::Logs,
            otlp: false,
            padding: 0,
            flavour: 0,
            reversed: false,
            broken: false,
        }
    }

    /// The pdata; its source says which it is of those that were sent.
    pub(super) fn pdata(&self, number: usize) -> OtapPdata {
        let peer = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, self.key)), 4_000);
        OtapPdata::new(Context::default(), self.payload()).with_peer_addr(peer).add_source_node(number)
    }

    fn payload(&self) -> OtapPayload {
        let numbers = self.first..self.first + self.items as u64;
        if self.broken {
            return OtlpProtoBytes::ExportLogsRequest(vec![0x0a, 0xff, 0x01, 0x12].into()).into();
        }
        let (resource, schema_url) = (Some(self.resource()), String::new());
        match self.signal {
            Signal::Logs => {
                let record = |number| LogRecord {
                    time_unix_nano: 1_700_000_000_000_000_000 + number,
                    severity_number: 9,
                    body: text(&format!("line {number}")),
                    attributes: self.attributes(number),
                    ..LogRecord::default()
                };
                let log_records = numbers.map(record).collect();
                let scope_logs = vec![ScopeLogs { log_records, ..ScopeLogs::default() }];
                let resource_logs = vec![ResourceLogs { resource, scope_logs, schema_url }];
                let data = LogsData { resource_logs };
                if self.otlp {
                    return OtlpProtoBytes::ExportLogsRequest(data.encode_to_vec().into()).into();
                }
                self.arranged(encode_logs_otap_batch(&data).unwrap()).into()
            }
            Signal::Metrics => {
                let point = |number: u64| NumberDataPoint {
                    time_unix_nano: 1_700_000_000_000_000_000 + number,
                    value: Some(number_data_point::Value::AsInt(i64::try_from(number).unwrap())),
                    attributes: self.attributes(number),
                    ..NumberDataPoint::default()
                };
                let data = Some(Data::Gauge(Gauge { data_points: numbers.map(point).collect() }));
                let metrics = vec![Metric { name: "level".into(), unit: "1".into(), data, ..Metric::default() }];
                let scope_metrics = vec![ScopeMetrics { metrics, ..ScopeMetrics::default() }];
                let resource_metrics = vec![ResourceMetrics { resource, scope_metrics, schema_url }];
                let data = MetricsData { resource_metrics };
                if self.otlp {
                    return OtlpProtoBytes::ExportMetricsRequest(data.encode_to_vec().into()).into();
                }
                self.arranged(encode_metrics_otap_batch(&data).unwrap()).into()
            }
            Signal::Traces => {
                let span = |number: u64| Span {
                    trace_id: vec![7; 16],
                    span_id: (number + 1).to_be_bytes().to_vec(),
                    name: format!("span {number}"),
                    start_time_unix_nano: 1_700_000_000_000_000_000 + number,
                    end_time_unix_nano: 1_700_000_000_000_000_001 + number,
                    attributes: self.attributes(number),
                    ..Span::default()
                };
                let scope_spans = vec![ScopeSpans { spans: numbers.map(span).collect(), ..ScopeSpans::default() }];
                let resource_spans = vec![ResourceSpans { resource, scope_spans, schema_url }];
                let data = TracesData { resource_spans };
                if self.otlp {
                    return OtlpProtoBytes::ExportTracesRequest(data.encode_to_vec().into()).into();
                }
                self.arranged(encode_spans_otap_batch(&data).unwrap()).into()
            }
        }
    }

    fn arranged(&self, mut records: OtapArrowRecords) -> OtapArrowRecords {
        if self.reversed {
            for kind in records.allowed_payload_types() {
                if let Some(batch) = records.get(*kind) {
                    let order: Vec<_> = (0..batch.num_columns()).rev().collect();
                    let batch = batch.project(&order).unwrap();
                    records.set(*kind, batch).unwrap();
                }
            }
        }
        records
    }

    fn resource(&self) -> Resource {
        let attributes = vec![attribute("service.instance.id", text(&format!("key-{}", self.key)))];
        Resource { attributes, ..Resource::default() }
    }

    fn attributes(&self, number: u64) -> Vec<KeyValue> {
        let mut attributes = vec![
            attribute("key", text(&format!("key-{}", self.key))),
            attribute("seq", Some(AnyValue { value: Some(Value::IntValue(i64::try_from(number).unwrap())) })),
        ];
        if self.flavour > 0 {
            let name = format!("flavour.{}", self.flavour);
            let value = match self.flavour % 3 {
                0 => Value::DoubleValue(number as f64),
                1 => Value::BoolValue(number.is_multiple_of(2)),
                _ => Value::StringValue(format!("{number}")),
            };
            attributes.push(attribute(&name, Some(AnyValue { value: Some(value) })));
        }
        if self.padding > 0 {
            // Hard to compress, so that limits on the size hold on the wire too.
            let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let letters = (0..self.padding).map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                char::from(b'!' + (state % 90) as u8)
            });
            attributes.push(attribute("padding", text(&letters.collect::<String>())));
        }
        attributes
    }
}

fn attribute(key: &str, value: Option<AnyValue>) -> KeyValue {
    KeyValue { key: key.into(), value }
}

fn text(text: &str) -> Option<AnyValue> {
    Some(AnyValue { value: Some(Value::StringValue(text.to_owned())) })
}
