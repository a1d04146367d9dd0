//! OTLP requests made up from a seed, and requests in a form in which two of the same meaning are equal.
//!
//! No resource, scope or metric is empty: upstream's transport encoding stops at attributes that belong to no row. Nor
//! is there what upstream's way to OTAP loses: an exemplar of zero, the end of a span without a beginning.
#![allow(dead_code, reason = "each test file uses some of it")]

pub mod meaning;

use otel_arrow_dfe_pdata::encode::{encode_logs_otap_batch, encode_metrics_otap_batch, encode_spans_otap_batch};
use otel_arrow_dfe_pdata::otap::{Logs, Metrics, Traces, from_record_messages};
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::BatchArrowRecords;
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::any_value::Value;
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::logs::v1::{LogRecord, LogsData, ResourceLogs, ScopeLogs};
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::exponential_histogram_data_point::Buckets;
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::summary_data_point::ValueAtQuantile;
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::{
    Exemplar, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint, Metric,
    MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary, SummaryDataPoint, exemplar, metric,
    number_data_point,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::resource::v1::Resource;
use otel_arrow_dfe_pdata::proto::opentelemetry::trace::v1::span::{Event, Link};
use otel_arrow_dfe_pdata::proto::opentelemetry::trace::v1::{ResourceSpans, ScopeSpans, Span, Status, TracesData};
use otel_arrow_dfe_pdata::{Consumer, OtapArrowRecords};
use prost::Message as _;

/// Pseudorandom numbers (splitmix64), the same for the same seed.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    fn some<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.chance(3) { None } else { Some(make(self)) }
    }

    fn many<T>(&mut self, most: u64, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| make(self)).collect()
    }

    fn one_or_more<T>(&mut self, most: u64, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..=self.below(most)).map(|_| make(self)).collect()
    }

    fn text(&mut self) -> String {
        match self.below(6) {
            0 => String::new(),
            1 => format!("a longer text, number {}", self.below(40)),
            _ => format!("t{}", self.below(5)),
        }
    }

    fn id(&mut self, bytes: usize) -> Vec<u8> {
        match self.below(3) {
            0 => Vec::new(),
            1 => vec![7; bytes],
            _ => (0..bytes).map(|_| self.below(256) as u8).collect(),
        }
    }

    fn count(&mut self) -> u32 {
        if self.chance(2) { 0 } else { self.below(400) as u32 }
    }

    fn double(&mut self) -> f64 {
        [0.0, 1.5, -2.0, f64::MAX, 1e-300, f64::INFINITY][self.below(6) as usize]
    }

    fn time(&mut self) -> u64 {
        if self.chance(5) { 0 } else { 1_796_040_000_000_000_000 + self.below(1_000) }
    }

    fn value(&mut self, depth: u64) -> AnyValue {
        let value = match self.below(if depth == 0 { 7 } else { 9 }) {
            0 => Value::IntValue(self.below(5) as i64 - 2),
            1 => Value::IntValue(self.next() as i64),
            2 => Value::DoubleValue(self.double()),
            3 => Value::BoolValue(self.chance(2)),
            4 => Value::BytesValue(self.id(8)),
            5 | 6 => Value::StringValue(self.text()),
            7 => Value::ArrayValue(ArrayValue { values: self.many(3, |random| random.value(depth - 1)) }),
            _ => Value::KvlistValue(KeyValueList {
                values: self.many(3, |random| KeyValue { key: random.text(), value: Some(random.value(depth - 1)) }),
            }),
        };
        AnyValue { value: if self.chance(12) { None } else { Some(value) } }
    }

    fn attributes(&mut self) -> Vec<KeyValue> {
        let first = self.below(3);
        let count = self.below(4);
        (first..first + count).map(|key| KeyValue { key: format!("key{key}"), value: Some(self.value(2)) }).collect()
    }

    fn resource(&mut self) -> Option<Resource> {
        self.some(|random| Resource {
            attributes: random.attributes(),
            dropped_attributes_count: random.count(),
            entity_refs: Vec::new(),
        })
    }

    fn scope(&mut self) -> Option<InstrumentationScope> {
        self.some(|random| InstrumentationScope {
            name: random.text(),
            version: random.text(),
            attributes: random.attributes(),
            dropped_attributes_count: random.count(),
        })
    }

    fn log(&mut self) -> LogRecord {
        LogRecord {
            time_unix_nano: self.time(),
            observed_time_unix_nano: self.time(),
            severity_number: self.below(25) as i32,
            severity_text: self.text(),
            body: self.some(|random| random.value(3)),
            attributes: self.attributes(),
            dropped_attributes_count: self.count(),
            flags: self.count(),
            trace_id: self.id(16),
            span_id: self.id(8),
            event_name: self.text(),
        }
    }

    fn span(&mut self) -> Span {
        let start = self.time().max(1);
        Span {
            trace_id: vec![1 + self.below(4) as u8; 16],
            span_id: vec![1 + self.below(200) as u8; 8],
            trace_state: self.text(),
            parent_span_id: self.id(8),
            flags: self.count(),
            name: self.text(),
            kind: self.below(6) as i32,
            start_time_unix_nano: start,
            end_time_unix_nano: start + self.below(1_000),
            attributes: self.attributes(),
            dropped_attributes_count: self.count(),
            events: self.many(3, |random| Event {
                time_unix_nano: random.time(),
                name: random.text(),
                attributes: random.attributes(),
                dropped_attributes_count: random.count(),
            }),
            dropped_events_count: self.count(),
            links: self.many(3, |random| Link {
                trace_id: vec![1 + random.below(3) as u8; 16],
                span_id: vec![1 + random.below(3) as u8; 8],
                trace_state: random.text(),
                attributes: random.attributes(),
                dropped_attributes_count: random.count(),
                flags: random.count(),
            }),
            dropped_links_count: self.count(),
            status: self.some(|random| Status { message: random.text(), code: random.below(3) as i32 }),
        }
    }

    fn exemplars(&mut self) -> Vec<Exemplar> {
        self.many(2, |random| Exemplar {
            filtered_attributes: random.attributes(),
            time_unix_nano: 5 + random.below(10),
            span_id: random.id(8),
            trace_id: random.id(16),
            value: Some(match random.chance(2) {
                true => exemplar::Value::AsInt(1 + random.below(3) as i64),
                false => exemplar::Value::AsDouble(1.0 + random.double()),
            }),
        })
    }

    fn number(&mut self) -> NumberDataPoint {
        NumberDataPoint {
            attributes: self.attributes(),
            start_time_unix_nano: self.time(),
            time_unix_nano: self.time(),
            exemplars: self.exemplars(),
            flags: self.count(),
            value: self.some(|random| match random.chance(2) {
                true => number_data_point::Value::AsInt(random.below(9) as i64 - 3),
                false => number_data_point::Value::AsDouble(random.double()),
            }),
        }
    }

    fn histogram(&mut self) -> HistogramDataPoint {
        HistogramDataPoint {
            attributes: self.attributes(),
            start_time_unix_nano: self.time(),
            time_unix_nano: self.time(),
            count: self.below(9),
            sum: self.some(Self::double),
            bucket_counts: self.many(4, |random| random.below(1_000)),
            explicit_bounds: self.many(4, Self::double),
            exemplars: self.exemplars(),
            flags: self.count(),
            min: self.some(Self::double),
            max: self.some(Self::double),
        }
    }

    fn buckets(&mut self) -> Buckets {
        Buckets { offset: self.below(9) as i32 - 4, bucket_counts: self.many(4, |random| random.below(1_000)) }
    }

    fn exp_histogram(&mut self) -> ExponentialHistogramDataPoint {
        ExponentialHistogramDataPoint {
            attributes: self.attributes(),
            start_time_unix_nano: self.time(),
            time_unix_nano: self.time(),
            count: self.below(9),
            sum: self.some(Self::double),
            scale: self.below(9) as i32 - 4,
            zero_count: self.below(3),
            positive: self.some(Self::buckets),
            negative: self.some(Self::buckets),
            flags: self.count(),
            exemplars: self.exemplars(),
            min: self.some(Self::double),
            max: self.some(Self::double),
            zero_threshold: self.double(),
        }
    }

    fn summary(&mut self) -> SummaryDataPoint {
        SummaryDataPoint {
            attributes: self.attributes(),
            start_time_unix_nano: self.time(),
            time_unix_nano: self.time(),
            count: self.below(9),
            sum: self.double(),
            quantile_values: self
                .many(3, |random| ValueAtQuantile { quantile: random.double(), value: random.double() }),
            flags: self.count(),
        }
    }

    fn metric(&mut self) -> Metric {
        let aggregation_temporality = self.below(3) as i32;
        let data = match self.below(6) {
            0 => metric::Data::Gauge(Gauge { data_points: self.one_or_more(4, Self::number) }),
            1 | 2 => metric::Data::Sum(Sum {
                data_points: self.one_or_more(4, Self::number),
                aggregation_temporality,
                is_monotonic: self.chance(2),
            }),
            3 => metric::Data::Histogram(Histogram {
                data_points: self.one_or_more(3, Self::histogram),
                aggregation_temporality,
            }),
            4 => metric::Data::ExponentialHistogram(ExponentialHistogram {
                data_points: self.one_or_more(3, Self::exp_histogram),
                aggregation_temporality,
            }),
            _ => metric::Data::Summary(Summary { data_points: self.one_or_more(3, Self::summary) }),
        };
        Metric {
            name: format!("metric{}", self.below(9)),
            description: self.text(),
            unit: self.text(),
            metadata: self.attributes(),
            data: Some(data),
        }
    }
}

/// Logs made up from a seed.
pub fn logs(random: &mut Random) -> LogsData {
    let resource_logs = random.many(3, |random| ResourceLogs {
        resource: random.resource(),
        scope_logs: random.one_or_more(3, |random| ScopeLogs {
            scope: random.scope(),
            log_records: random.one_or_more(6, Random::log),
            schema_url: random.text(),
        }),
        schema_url: random.text(),
    });
    LogsData { resource_logs }
}

/// Metrics made up from a seed.
pub fn metrics(random: &mut Random) -> MetricsData {
    let resource_metrics = random.many(3, |random| ResourceMetrics {
        resource: random.resource(),
        scope_metrics: random.one_or_more(3, |random| ScopeMetrics {
            scope: random.scope(),
            metrics: random.one_or_more(4, Random::metric),
            schema_url: random.text(),
        }),
        schema_url: random.text(),
    });
    MetricsData { resource_metrics }
}

/// Spans made up from a seed.
pub fn traces(random: &mut Random) -> TracesData {
    let resource_spans = random.many(3, |random| ResourceSpans {
        resource: random.resource(),
        scope_spans: random.one_or_more(3, |random| ScopeSpans {
            scope: random.scope(),
            spans: random.one_or_more(5, Random::span),
            schema_url: random.text(),
        }),
        schema_url: random.text(),
    });
    TracesData { resource_spans }
}

pub fn otap_logs(logs: &LogsData) -> OtapArrowRecords {
    encode_logs_otap_batch(logs).expect("logs")
}

pub fn otap_metrics(metrics: &MetricsData) -> OtapArrowRecords {
    encode_metrics_otap_batch(metrics).expect("metrics")
}

pub fn otap_traces(traces: &TracesData) -> OtapArrowRecords {
    encode_spans_otap_batch(traces).expect("spans")
}

/// What a receiver makes of a message: records with plain ids.
pub fn received(consumer: &mut Consumer, message: &[u8], like: &OtapArrowRecords) -> OtapArrowRecords {
    let mut message = BatchArrowRecords::decode(message).expect("a message");
    let records = consumer.consume_bar(&mut message).expect("consumed");
    let mut records = match like {
        OtapArrowRecords::Logs(_) => OtapArrowRecords::Logs(from_record_messages::<Logs>(records).expect("logs")),
        OtapArrowRecords::Metrics(_) => {
            OtapArrowRecords::Metrics(from_record_messages::<Metrics>(records).expect("metrics"))
        }
        OtapArrowRecords::Traces(_) => {
            OtapArrowRecords::Traces(from_record_messages::<Traces>(records).expect("traces"))
        }
    };
    records.decode_transport_optimized_ids().expect("decoded");
    records
}
