//! What is kept is unchanged, and is the same whether rows or bytes are taken out.

use otel_arrow_dfe_pdata::otap::OtapArrowRecords;
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::logs::v1::ExportLogsServiceRequest;
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::metrics::v1::ExportMetricsServiceRequest;
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::any_value::Value;
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use otel_arrow_dfe_pdata::proto::opentelemetry::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::exemplar::Value as ExemplarValue;
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::metric::Data;
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::number_data_point::Value as Number;
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::{
    Exemplar, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::resource::v1::Resource;
use otel_arrow_dfe_pdata::{OtlpProtoBytes, TryIntoWithOptions};
use proptest::prelude::*;
use prost::Message;

use super::*;
use crate::quantile::{OtlpError, OtlpSignal};

fn attributes(text: &str) -> Vec<KeyValue> {
    let value = Some(AnyValue { value: Some(Value::StringValue(text.to_owned())) });
    vec![KeyValue { key: "a".into(), value }]
}

fn resource(number: usize) -> Option<Resource> {
    Some(Resource { attributes: attributes(&format!("r{number}")), ..Resource::default() })
}

fn scope(number: usize) -> Option<InstrumentationScope> {
    let attributes = attributes(&format!("s{number}"));
    Some(InstrumentationScope { name: "s".into(), attributes, ..InstrumentationScope::default() })
}

/// A metric with so many points, numbered from `first`: gauge, sum or histogram.
fn metric(kind: u8, points: usize, first: usize) -> Metric {
    let numbers = first..first + points;
    let point = |at: usize| NumberDataPoint {
        attributes: if at.is_multiple_of(3) { Vec::new() } else { attributes(&format!("p{at}")) },
        value: Some(Number::AsInt(at as i64)),
        time_unix_nano: 5,
        start_time_unix_nano: 1,
        exemplars: (0..at % 2)
            .map(|_| Exemplar {
                filtered_attributes: attributes(&format!("e{at}")),
                time_unix_nano: 2,
                value: Some(ExemplarValue::AsInt(at as i64)),
                ..Exemplar::default()
            })
            .collect(),
        ..NumberDataPoint::default()
    };
    let data = match kind {
        0 => Data::Gauge(Gauge { data_points: numbers.map(point).collect() }),
        1 => Data::Sum(Sum {
            data_points: numbers.map(point).collect(),
            aggregation_temporality: 1,
            is_monotonic: false,
        }),
        _ => Data::Histogram(Histogram {
            data_points: numbers
                .map(|at| HistogramDataPoint {
                    count: at as u64 + 1,
                    attributes: attributes(&format!("h{at}")),
                    time_unix_nano: 5,
                    start_time_unix_nano: 1,
                    ..HistogramDataPoint::default()
                })
                .collect(),
            aggregation_temporality: 1,
        }),
    };
    Metric { name: format!("m{first}"), data: Some(data), ..Metric::default() }
}

/// Resources of scopes of metrics, each by its kind and number of points.
fn metrics(shape: &[Vec<Vec<(u8, usize)>>]) -> ExportMetricsServiceRequest {
    let (mut points, mut scopes) = (0, 0);
    let resource_metrics = shape.iter().enumerate().map(|(number, shape)| {
        let scope_metrics = shape.iter().map(|shape| {
            scopes += 1;
            let metrics = shape.iter().map(|(kind, count)| {
                points += count;
                metric(*kind, *count, points - count)
            });
            ScopeMetrics { scope: scope(scopes), metrics: metrics.collect(), ..ScopeMetrics::default() }
        });
        let scope_metrics = scope_metrics.collect();
        ResourceMetrics { resource: resource(number), scope_metrics, ..ResourceMetrics::default() }
    });
    ExportMetricsServiceRequest { resource_metrics: resource_metrics.collect() }
}

fn numbers(metric: &mut Metric) -> Option<&mut Vec<NumberDataPoint>> {
    match metric.data.as_mut()? {
        Data::Gauge(data) => Some(&mut data.data_points),
        Data::Sum(data) => Some(&mut data.data_points),
        _ => None,
    }
}

/// What should be kept, by the definition.
fn expected(mut request: ExportMetricsServiceRequest, kept: Kept<'_>) -> ExportMetricsServiceRequest {
    let mut at = 0;
    for resource in &mut request.resource_metrics {
        for scope in &mut resource.scope_metrics {
            scope.metrics.retain_mut(|metric| match numbers(metric) {
                Some(points) => {
                    points.retain(|_| {
                        at += 1;
                        kept.item(at - 1)
                    });
                    !points.is_empty()
                }
                None => kept.others,
            });
        }
        resource.scope_metrics.retain(|scope| !scope.metrics.is_empty());
    }
    request.resource_metrics.retain(|resource| !resource.scope_metrics.is_empty());
    request
}

fn to_records(request: OtlpProtoBytes) -> OtapArrowRecords {
    let mut records: OtapArrowRecords = request.try_into_with_options(Default::default()).expect("converts");
    records.decode_transport_optimized_ids().expect("decodes");
    records
}

fn to_bytes(records: OtapArrowRecords) -> Vec<u8> {
    let request: OtlpProtoBytes = records.try_into_with_options(Default::default()).expect("converts");
    match request {
        OtlpProtoBytes::ExportLogsRequest(bytes) | OtlpProtoBytes::ExportMetricsRequest(bytes) => bytes.to_vec(),
        OtlpProtoBytes::ExportTracesRequest(_) => panic!("no traces"),
    }
}

/// Each point with all that stands above it, in any order.
fn flat(request: &ExportMetricsServiceRequest) -> Vec<String> {
    let mut all = Vec::new();
    for resource in &request.resource_metrics {
        for scope in &resource.scope_metrics {
            for metric in &scope.metrics {
                let owner = format!("{:?} {:?} {}", resource.resource, scope.scope, metric.name);
                match metric.data.as_ref().expect("data") {
                    Data::Gauge(data) => all.extend(data.data_points.iter().map(|point| format!("{owner} {point:?}"))),
                    Data::Sum(data) => all.extend(data.data_points.iter().map(|point| format!("{owner} {point:?}"))),
                    Data::Histogram(data) => {
                        all.extend(data.data_points.iter().map(|point| format!("{owner} {point:?}")));
                    }
                    _ => panic!("no such metrics"),
                }
            }
        }
    }
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Any subset of the points of any metrics: the bytes are those of the request that holds just them, and the rows
    /// convert to the same points.
    #[test]
    fn any_points_can_be_kept(
        shape in prop::collection::vec(
            prop::collection::vec(prop::collection::vec((0u8..3, 1usize..5), 1..4), 1..3),
            1..4,
        ),
        items in prop::collection::vec(any::<bool>(), 100),
        others in any::<bool>(),
        all in prop::option::weighted(0.2, any::<bool>()),
    ) {
        let items: Vec<bool> = items.into_iter().map(|item| all.unwrap_or(item)).collect();
        let kept = Kept { items: &items, others };
        let request = metrics(&shape);
        let bytes = request.encode_to_vec();
        let expected = expected(request, kept);
        let by_bytes = otlp(OtlpSignal::Metrics, &bytes, kept).expect("valid");
        prop_assert_eq!(by_bytes.is_none(), expected.resource_metrics.is_empty());
        prop_assert_eq!(by_bytes.unwrap_or_default(), expected.encode_to_vec());

        // In OTAP number points are one table, in the order of the request.
        let rows = to_records(OtlpProtoBytes::ExportMetricsRequest(bytes.into()));
        let by_rows = records(&rows, kept).expect("valid");
        let read = match &by_rows {
            Some(rows) => {
                let points: usize = rows.num_items();
                prop_assert_eq!(points, flat(&expected).len());
                ExportMetricsServiceRequest::decode(to_bytes(rows.clone()).as_slice()).expect("valid")
            }
            None => ExportMetricsServiceRequest::default(),
        };
        let through = to_bytes(to_records(OtlpProtoBytes::ExportMetricsRequest(expected.encode_to_vec().into())));
        let through = ExportMetricsServiceRequest::decode(through.as_slice()).expect("valid");
        prop_assert_eq!(flat(&read), flat(&through));
    }

    /// The same of log records.
    #[test]
    fn any_records_can_be_kept(
        shape in prop::collection::vec(prop::collection::vec(1usize..6, 1..3), 1..4),
        items in prop::collection::vec(any::<bool>(), 60),
    ) {
        let mut number = 0;
        let mut request = ExportLogsServiceRequest::default();
        for (at, shape) in shape.iter().enumerate() {
            let scope_logs = shape.iter().enumerate().map(|(at, count)| {
                let log_records = (0..*count).map(|_| {
                    number += 1;
                    let attributes =
                        if number % 3 == 0 { Vec::new() } else { attributes(&format!("l{number}")) };
                    LogRecord { time_unix_nano: number, attributes, ..LogRecord::default() }
                });
                ScopeLogs { log_records: log_records.collect(), scope: scope(at), ..ScopeLogs::default() }
            });
            let scope_logs = scope_logs.collect();
            request.resource_logs.push(ResourceLogs { resource: resource(at), scope_logs, ..ResourceLogs::default() });
        }
        let kept = Kept { items: &items, others: false };
        let bytes = request.encode_to_vec();
        let mut at = 0;
        for resource in &mut request.resource_logs {
            for scope in &mut resource.scope_logs {
                scope.log_records.retain(|_| {
                    at += 1;
                    kept.item(at - 1)
                });
            }
            resource.scope_logs.retain(|scope| !scope.log_records.is_empty());
        }
        request.resource_logs.retain(|resource| !resource.scope_logs.is_empty());
        let by_bytes = otlp(OtlpSignal::Logs, &bytes, kept).expect("valid").unwrap_or_default();
        prop_assert_eq!(&by_bytes, &request.encode_to_vec());
        let rows = to_records(OtlpProtoBytes::ExportLogsRequest(bytes.into()));
        let by_rows = records(&rows, kept).expect("valid").map(to_bytes).unwrap_or_default();
        // Records without attributes stand elsewhere in their scope after the conversion.
        let sorted = |bytes: &[u8]| {
            let mut all = Vec::new();
            for resource in ExportLogsServiceRequest::decode(bytes).expect("valid").resource_logs {
                for scope in &resource.scope_logs {
                    let owner = format!("{:?} {:?}", resource.resource, scope.scope);
                    all.extend(scope.log_records.iter().map(|record| format!("{owner} {record:?}")));
                }
            }
            all.sort();
            all
        };
        let through = match by_bytes.is_empty() {
            true => Vec::new(),
            false => to_bytes(to_records(OtlpProtoBytes::ExportLogsRequest(by_bytes.into()))),
        };
        prop_assert_eq!(sorted(&by_rows), sorted(&through));
    }

    /// Whatever the bytes: an answer, never longer than the request.
    #[test]
    fn any_bytes_have_an_answer(
        request in prop::collection::vec(any::<u8>(), 0..80),
        items in prop::collection::vec(any::<bool>(), 8),
        others in any::<bool>(),
    ) {
        for signal in [OtlpSignal::Logs, OtlpSignal::Metrics] {
            if let Ok(Some(bytes)) = otlp(signal, &request, Kept { items: &items, others }) {
                prop_assert!(bytes.len() <= request.len());
            }
        }
    }
}

/// Unknown fields, and parts that come in several pieces, stay as they are.
#[test]
fn unknown_fields_stay() {
    // A scope of two records, each with an unknown field, between unknown fields.
    let record = |number: u8| vec![0x12, 5, 0x09, number, 0xfa, 0x7f, 0];
    let scope = [&[0x28, 1][..], &record(1), &[0x28, 2], &record(2), &[0x28, 3]].concat();
    let resource = [&[0x12, scope.len() as u8][..], &scope, &[0x28, 4]].concat();
    let request = [&[0x0a, resource.len() as u8][..], &resource].concat();
    let kept = Kept { items: &[true, false], others: true };
    let left = otlp(OtlpSignal::Logs, &request, kept).expect("valid").expect("a record");
    let scope = [&[0x28, 1][..], &record(1), &[0x28, 2, 0x28, 3]].concat();
    let resource = [&[0x12, scope.len() as u8][..], &scope, &[0x28, 4]].concat();
    assert_eq!(left, [&[0x0a, resource.len() as u8][..], &resource].concat());
}

/// Empty parts stay with the others, and a request that is cut short is told as such.
#[test]
fn empty_parts_are_others() {
    let request = ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics { resource: resource(0), ..ResourceMetrics::default() }],
    };
    let bytes = request.encode_to_vec();
    let keep = |others| otlp(OtlpSignal::Metrics, &bytes, Kept { items: &[], others });
    assert_eq!(keep(true), Ok(Some(bytes.clone())));
    assert_eq!(keep(false), Ok(None));
    let cut = otlp(OtlpSignal::Metrics, &bytes[..bytes.len() - 1], Kept { items: &[], others: true });
    assert!(matches!(cut, Err(OtlpError::Truncated { .. })), "{cut:?}");
}
