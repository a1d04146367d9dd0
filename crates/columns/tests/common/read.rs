//! Reads metrics back: through a view, through OTLP, and row by row.

use std::collections::BTreeMap;

use arrow::array::{
    Array, Float64Array, Int64Array, RecordBatch, StringArray, StructArray, TimestampNanosecondArray, UInt8Array,
    UInt16Array, UInt32Array,
};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use catchment_columns::OtapArrowRecords;
use otel_arrow_dfe_pdata::otap::{Metrics, from_record_messages};
use otel_arrow_dfe_pdata::otlp::metrics::MetricsProtoBytesEncoder;
use otel_arrow_dfe_pdata::otlp::{ProtoBuffer, ProtoBytesEncoder};
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::views::otap::OtapMetricsView;
use otel_arrow_dfe_pdata::views::otlp::bytes::metrics::RawMetricsData;
use otel_arrow_dfe_pdata::{Consumer, Producer};
use otel_arrow_dfe_pdata_views::views::common::{AnyValueView, AttributeView, InstrumentationScopeView};
use otel_arrow_dfe_pdata_views::views::metrics::{
    AggregationTemporality, DataView, GaugeView, MetricView, MetricsView, NumberDataPointView, ResourceMetricsView,
    ScopeMetricsView, SumView, Value,
};
use otel_arrow_dfe_pdata_views::views::resource::ResourceView;

/// A value that can be compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    Int(i64),
    Double(f64),
}

/// What kind of metric a point belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Gauge,
    /// Monotonic.
    Delta,
    /// Monotonic.
    Cumulative,
}

/// Text attributes; other values as their debug form.
pub type Attributes = BTreeMap<String, String>;

/// Everything that makes two points belong to one series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series {
    pub resource: Attributes,
    pub metric: String,
    pub unit: String,
    pub kind: Kind,
    pub attributes: Attributes,
}

/// A point with its series.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    pub series: Series,
    pub start: u64,
    pub time: u64,
    pub value: Number,
}

impl Point {
    /// The point as `json` prints it.
    pub fn printed(&self, scope: &str) -> serde_json::Value {
        let time = |unix_nano: u64| {
            let stamp = jiff::Timestamp::from_nanosecond(unix_nano.cast_signed().into()).expect("a time");
            (unix_nano > 0).then(|| format!("{stamp:.9}"))
        };
        let mut object = serde_json::json!({
            "name": self.series.metric,
            "unit": self.series.unit,
            "type": if self.series.kind == Kind::Gauge { "gauge" } else { "sum" },
            "value": match self.value {
                Number::Int(value) => serde_json::json!(value),
                Number::Double(value) => serde_json::json!(value),
            },
            "time": time(self.time),
            "start_time": time(self.start),
            "attributes": self.series.attributes,
            "resource": self.series.resource,
            "scope": scope,
        });
        if self.series.kind != Kind::Gauge {
            object["temporality"] = if self.series.kind == Kind::Delta { "delta" } else { "cumulative" }.into();
            object["monotonic"] = true.into();
        }
        object
    }
}

/// Points by series, each in the order given.
pub fn by_series(points: &[Point]) -> BTreeMap<Series, Vec<(u64, u64, Number)>> {
    let mut all: BTreeMap<Series, Vec<_>> = BTreeMap::new();
    for point in points {
        all.entry(point.series.clone()).or_default().push((point.start, point.time, point.value));
    }
    all
}

/// As an OTAP receiver gets it.
pub fn sent(records: &OtapArrowRecords) -> OtapArrowRecords {
    let mut message = Producer::new().produce_bar(&mut records.clone()).expect("sent");
    let received = Consumer::default().consume_bar(&mut message).expect("received");
    let mut records = OtapArrowRecords::Metrics(from_record_messages::<Metrics>(received).expect("metrics"));
    records.decode_transport_optimized_ids().expect("decoded");
    records
}

/// With plain ids.
pub fn decoded(records: &OtapArrowRecords) -> OtapArrowRecords {
    let mut records = records.clone();
    records.decode_transport_optimized_ids().expect("decoded");
    records
}

/// Through the engine's view of record batches, whose ids must be plain.
pub fn through_view(records: &OtapArrowRecords, scope: &str) -> Vec<Point> {
    read(&OtapMetricsView::try_from(records).expect("a view"), scope)
}

/// Through OTLP.
pub fn through_otlp(records: &OtapArrowRecords, scope: &str) -> Vec<Point> {
    let mut bytes = ProtoBuffer::with_capacity(1024);
    MetricsProtoBytesEncoder::new().encode(&mut records.clone(), &mut bytes).expect("encoded");
    read(&RawMetricsData::try_new(bytes.as_ref()).expect("otlp"), scope)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("utf-8")
}

fn attributes<A: AttributeView>(attributes: impl Iterator<Item = A>) -> Attributes {
    let pairs = attributes.map(|attribute| {
        let value = attribute.value().expect("a value");
        let number = || value.as_int64().map_or_else(|| format!("{:?}", value.as_double()), |value| value.to_string());
        let bool = || value.as_bool().map(|value| value.to_string());
        (text(attribute.key()), value.as_string().map(text).or_else(bool).unwrap_or_else(number))
    });
    pairs.collect()
}

fn read(view: &impl MetricsView, expected_scope: &str) -> Vec<Point> {
    let mut points = Vec::new();
    for resource in view.resources() {
        let of_resource = resource.resource().map(|resource| attributes(resource.attributes())).unwrap_or_default();
        for scope in resource.scopes() {
            assert_eq!(scope.scope().and_then(|scope| scope.name().map(text)).as_deref(), Some(expected_scope));
            for metric in scope.metrics() {
                let (name, unit) = (text(metric.name()), text(metric.unit()));
                let data = metric.data().expect("data");
                let series = |kind, attributes| Series {
                    resource: of_resource.clone(),
                    metric: name.clone(),
                    unit: unit.clone(),
                    kind,
                    attributes,
                };
                if let Some(gauge) = data.as_gauge() {
                    points.extend(gauge.data_points().map(|read| point(&read, |found| series(Kind::Gauge, found))));
                }
                if let Some(sum) = data.as_sum() {
                    assert!(sum.is_monotonic());
                    let kind = match sum.aggregation_temporality() {
                        AggregationTemporality::Cumulative => Kind::Cumulative,
                        AggregationTemporality::Delta => Kind::Delta,
                        AggregationTemporality::Unspecified => panic!("a sum without temporality"),
                    };
                    points.extend(sum.data_points().map(|read| point(&read, |found| series(kind, found))));
                }
            }
        }
    }
    points
}

fn point(point: &impl NumberDataPointView, series: impl Fn(Attributes) -> Series) -> Point {
    let value = match point.value().expect("a value") {
        Value::Integer(value) => Number::Int(value),
        Value::Double(value) => Number::Double(value),
    };
    let (start, time) = (point.start_time_unix_nano(), point.time_unix_nano());
    Point { series: series(attributes(point.attributes())), start, time, value }
}

fn column<T: Array + Clone + 'static>(table: &RecordBatch, name: &str) -> T {
    let column = table.column_by_name(name).unwrap_or_else(|| panic!("column {name}"));
    column.as_any().downcast_ref::<T>().unwrap_or_else(|| panic!("type of {name}: {}", column.data_type())).clone()
}

fn texts(table: &RecordBatch, name: &str) -> StringArray {
    let column = cast(table.column_by_name(name).expect("a column"), &DataType::Utf8).expect("text");
    column.as_any().downcast_ref::<StringArray>().expect("text").clone()
}

fn attribute_rows(table: Option<&RecordBatch>) -> BTreeMap<u32, Attributes> {
    let mut all: BTreeMap<u32, Attributes> = BTreeMap::new();
    let Some(table) = table else { return all };
    let parents = cast(table.column_by_name("parent_id").expect("parents"), &DataType::UInt32).expect("numbers");
    let parents = parents.as_any().downcast_ref::<UInt32Array>().expect("numbers");
    let (keys, values) = (texts(table, "key"), texts(table, "str"));
    for row in 0..table.num_rows() {
        let attributes = all.entry(parents.value(row)).or_default();
        let before = attributes.insert(keys.value(row).to_owned(), values.value(row).to_owned());
        assert_eq!(before, None, "a repeated attribute");
    }
    all
}

/// Number points in the order of their rows, with plain ids. Kinds are not told apart: gauges and cumulative sums only.
pub fn row_by_row(records: &OtapArrowRecords) -> Vec<Point> {
    let metrics = records.get(ArrowPayloadType::UnivariateMetrics).expect("metrics");
    let points = records.get(ArrowPayloadType::NumberDataPoints).expect("points");
    let of_resources = attribute_rows(records.get(ArrowPayloadType::ResourceAttrs));
    let of_points = attribute_rows(records.get(ArrowPayloadType::NumberDpAttrs));
    let resources: StructArray = column(metrics, "resource");
    let resources = resources.column_by_name("id").expect("ids");
    let resources = resources.as_any().downcast_ref::<UInt16Array>().expect("numbers");
    let (ids, types): (UInt16Array, UInt8Array) = (column(metrics, "id"), column(metrics, "metric_type"));
    let names = texts(metrics, "name");
    let (point_ids, parents): (UInt32Array, UInt16Array) = (column(points, "id"), column(points, "parent_id"));
    let (times, integers): (TimestampNanosecondArray, Int64Array) =
        (column(points, "time_unix_nano"), column(points, "int_value"));
    let doubles = points.column_by_name("double_value").map(|_| column::<Float64Array>(points, "double_value"));
    let rows = (0..points.num_rows()).map(|row| {
        let metric = ids.values().iter().position(|id| *id == parents.value(row)).expect("a metric");
        let kind = if types.value(metric) == 1 { Kind::Gauge } else { Kind::Cumulative };
        let double = doubles.as_ref().filter(|doubles| doubles.is_valid(row)).map(|doubles| doubles.value(row));
        assert_ne!(double.is_some(), integers.is_valid(row), "one value");
        Point {
            series: Series {
                resource: of_resources.get(&u32::from(resources.value(metric))).cloned().unwrap_or_default(),
                metric: names.value(metric).to_owned(),
                unit: String::new(),
                kind,
                attributes: of_points.get(&point_ids.value(row)).cloned().unwrap_or_default(),
            },
            start: 0,
            time: times.value(row).cast_unsigned(),
            value: double.map_or_else(|| Number::Int(integers.value(row)), Number::Double),
        }
    });
    rows.collect()
}
