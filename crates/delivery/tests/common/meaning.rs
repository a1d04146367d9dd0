//! Requests item by item, in a form in which two of the same meaning are equal.

use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::otlp::logs::LogsProtoBytesEncoder;
use otel_arrow_dfe_pdata::otlp::metrics::MetricsProtoBytesEncoder;
use otel_arrow_dfe_pdata::otlp::traces::TracesProtoBytesEncoder;
use otel_arrow_dfe_pdata::otlp::{ProtoBuffer, ProtoBytesEncoder as _};
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use otel_arrow_dfe_pdata::proto::opentelemetry::logs::v1::LogsData;
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::{Exemplar, Gauge, Metric, MetricsData, Sum, metric};
use otel_arrow_dfe_pdata::proto::opentelemetry::resource::v1::Resource;
use otel_arrow_dfe_pdata::proto::opentelemetry::trace::v1::{Status, TracesData};
use prost::Message;

/// What an item belongs to, and the item. Items of one scope stand in their order; scopes are sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Items(pub Vec<(String, String)>);

impl Items {
    fn sorted(mut items: Vec<(String, String)>) -> Self {
        items.sort_by(|one, other| one.0.cmp(&other.0));
        Self(items)
    }

    /// The items of both.
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        Self::sorted(self.0)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// As they are, but in no order.
    pub fn unordered(mut self) -> Self {
        self.0.sort();
        self
    }

    /// Stops with the first difference, if there is one.
    pub fn assert_same(&self, expected: &Self, what: &str) {
        let differs = self.0.iter().zip(&expected.0).position(|(one, other)| one != other);
        if let Some(at) = differs {
            let texts = [&self.0[at], &expected.0[at]].map(|item| format!("{} {}", item.0, item.1));
            let [found, wanted] = texts.each_ref().map(String::as_bytes);
            let from = found.iter().zip(wanted).position(|(one, other)| one != other).unwrap_or(0).saturating_sub(200);
            let part = |text: &[u8]| String::from_utf8_lossy(&text[from..text.len().min(from + 600)]).into_owned();
            panic!("{what}: item {at} from {from} on\n{}\nexpected\n{}", part(found), part(wanted));
        }
        assert_eq!(self.0.len(), expected.0.len(), "{what}: number of items");
    }
}

fn attributes(attributes: &mut [KeyValue]) {
    for attribute in attributes.iter_mut() {
        // No value and one of no type are the same.
        let _ = attribute.value.get_or_insert_with(AnyValue::default);
    }
    attributes.sort_by_key(|attribute| attribute.encode_to_vec());
}

fn place(
    resource: Option<Resource>,
    resource_url: &str,
    scope: Option<InstrumentationScope>,
    scope_url: &str,
) -> String {
    let (mut resource, mut scope) = (resource.unwrap_or_default(), scope.unwrap_or_default());
    attributes(&mut resource.attributes);
    attributes(&mut scope.attributes);
    format!("{resource:?} {resource_url} {scope:?} {scope_url}")
}

pub fn of_logs(data: LogsData) -> Items {
    let mut items = Vec::new();
    for resource in data.resource_logs {
        for scope in resource.scope_logs {
            let place = place(resource.resource.clone(), &resource.schema_url, scope.scope, &scope.schema_url);
            for mut record in scope.log_records {
                attributes(&mut record.attributes);
                record.body = record.body.filter(|body| body.value.is_some());
                items.push((place.clone(), format!("{record:?}")));
            }
        }
    }
    Items::sorted(items)
}

pub fn of_traces(data: TracesData) -> Items {
    let mut items = Vec::new();
    for resource in data.resource_spans {
        for scope in resource.scope_spans {
            let place = place(resource.resource.clone(), &resource.schema_url, scope.scope, &scope.schema_url);
            for mut span in scope.spans {
                attributes(&mut span.attributes);
                span.events.iter_mut().for_each(|event| attributes(&mut event.attributes));
                span.links.iter_mut().for_each(|link| attributes(&mut link.attributes));
                span.status = span.status.filter(|status| *status != Status::default());
                items.push((place.clone(), format!("{span:?}")));
            }
        }
    }
    Items::sorted(items)
}

/// Upstream leaves out columns of zeros, so that a number that is there and zero is none afterwards.
fn statistics(numbers: [&mut Option<f64>; 3]) {
    for number in numbers {
        *number = number.filter(|number| *number != 0.0);
    }
}

fn exemplars(exemplars: &mut [Exemplar]) {
    for exemplar in exemplars {
        attributes(&mut exemplar.filtered_attributes);
        // Ids of zeros are none.
        for id in [&mut exemplar.span_id, &mut exemplar.trace_id] {
            if id.iter().all(|byte| *byte == 0) {
                id.clear();
            }
        }
    }
}

pub fn of_metrics(data: MetricsData) -> Items {
    let mut items = Vec::new();
    for resource in data.resource_metrics {
        for scope in resource.scope_metrics {
            let place = place(resource.resource.clone(), &resource.schema_url, scope.scope, &scope.schema_url);
            for metric in scope.metrics {
                points(&place, metric, &mut items);
            }
        }
    }
    Items::sorted(items)
}

fn points(place: &str, mut metric: Metric, items: &mut Vec<(String, String)>) {
    attributes(&mut metric.metadata);
    let points: Vec<String> = match metric.data.as_mut() {
        None => Vec::new(),
        Some(metric::Data::Gauge(Gauge { data_points }) | metric::Data::Sum(Sum { data_points, .. })) => {
            let points = std::mem::take(data_points).into_iter();
            let points = points.map(|mut point| {
                attributes(&mut point.attributes);
                exemplars(&mut point.exemplars);
                format!("{point:?}")
            });
            points.collect()
        }
        Some(metric::Data::Histogram(data)) => {
            let points = std::mem::take(&mut data.data_points).into_iter();
            let points = points.map(|mut point| {
                attributes(&mut point.attributes);
                exemplars(&mut point.exemplars);
                statistics([&mut point.sum, &mut point.min, &mut point.max]);
                format!("{point:?}")
            });
            points.collect()
        }
        Some(metric::Data::ExponentialHistogram(data)) => {
            let points = std::mem::take(&mut data.data_points).into_iter();
            let points = points.map(|mut point| {
                attributes(&mut point.attributes);
                exemplars(&mut point.exemplars);
                statistics([&mut point.sum, &mut point.min, &mut point.max]);
                point.positive = point.positive.filter(|buckets| *buckets != Default::default());
                point.negative = point.negative.filter(|buckets| *buckets != Default::default());
                format!("{point:?}")
            });
            points.collect()
        }
        Some(metric::Data::Summary(data)) => {
            let points = std::mem::take(&mut data.data_points).into_iter();
            let points = points.map(|mut point| {
                attributes(&mut point.attributes);
                format!("{point:?}")
            });
            points.collect()
        }
    };
    items.extend(points.into_iter().map(|point| (place.to_owned(), format!("{metric:?} {point}"))));
}

/// The items of a request body of the signal of `records`.
pub fn of_request(records: &OtapArrowRecords, body: &[u8]) -> Items {
    match records {
        OtapArrowRecords::Logs(_) => of_logs(LogsData::decode(body).expect("a request")),
        OtapArrowRecords::Metrics(_) => of_metrics(MetricsData::decode(body).expect("a request")),
        OtapArrowRecords::Traces(_) => of_traces(TracesData::decode(body).expect("a request")),
    }
}

/// The items of records, as upstream's encoder sees them.
pub fn through_upstream(records: &OtapArrowRecords) -> Items {
    let mut buffer = ProtoBuffer::default();
    let mut copy = records.clone();
    if records.root_record_batch().is_none_or(|root| root.num_rows() == 0) {
        return Items(Vec::new());
    }
    match records {
        OtapArrowRecords::Logs(_) => LogsProtoBytesEncoder::new().encode(&mut copy, &mut buffer),
        OtapArrowRecords::Metrics(_) => MetricsProtoBytesEncoder::new().encode(&mut copy, &mut buffer),
        OtapArrowRecords::Traces(_) => TracesProtoBytesEncoder::new().encode(&mut copy, &mut buffer),
    }
    .expect("encoded");
    of_request(records, buffer.as_ref())
}
