//! Record batches as JSON, one object a record: what `catchment decode` prints.
//!
//! Keys of a log record: `time`, `observed_time` (RFC 3339, UTC, nanoseconds; `null` where unknown),
//! `severity_number`, `severity_text`, `body`, `attributes`, `resource`, `scope`, `trace_id`, `span_id`, `flags`. Keys of
//! a number point: `name`, `unit`, `type` (`gauge` or `sum`), `temporality` (`delta`, `cumulative` or `null`) and
//! `monotonic` (both of a `sum` only), `value`, `time`, `start_time`, `attributes`, `resource`, `scope`. Bytes are printed
//! as `{"base16": "..."}`.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, RecordBatch, UInt32Array};
use arrow::datatypes::{Field, Schema};
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::consts;
use otel_arrow_dfe_pdata::views::otap::{OtapLogsView, OtapMetricsView};
use otel_arrow_dfe_pdata_views::views::common::{AnyValueView, AttributeView, InstrumentationScopeView, ValueType};
use otel_arrow_dfe_pdata_views::views::logs::{LogRecordView, LogsDataView, ResourceLogsView, ScopeLogsView};
use otel_arrow_dfe_pdata_views::views::metrics::{
    AggregationTemporality, DataType, DataView, GaugeView, MetricView, MetricsView, NumberDataPointView,
    ResourceMetricsView, ScopeMetricsView, SumView, Value as PointValue,
};
use otel_arrow_dfe_pdata_views::views::resource::ResourceView;
use serde_json::{Map, Value, json};

use crate::ColumnsError;

/// Nesting below this depth is printed as `null`; no record of ours nests deeper.
const MAX_DEPTH: usize = 16;

/// Calls `line` with one object for each log record or number point, in the order of the rows of their table. The ids of
/// `records` must not be transport encoded. Traces give nothing.
///
/// # Errors
/// [`ColumnsError::Otap`] if the batch does not have the shape of its signal.
pub fn objects(records: &OtapArrowRecords, mut line: impl FnMut(Value)) -> Result<(), ColumnsError> {
    match records {
        OtapArrowRecords::Logs(_) => {
            logs(&OtapLogsView::try_from(records).map_err(ColumnsError::otap("logs"))?, &mut line)
        }
        OtapArrowRecords::Metrics(_) => {
            let numbered = numbered(records)?;
            let view = OtapMetricsView::try_from(&numbered).map_err(ColumnsError::otap("metrics"))?;
            let mut points = Vec::with_capacity(records.num_items());
            metrics(&view, &mut |row, point| points.push((row, point)));
            points.sort_by_key(|(row, _)| *row);
            points.into_iter().for_each(|(_, point)| line(Value::Object(point)));
        }
        OtapArrowRecords::Traces(_) => {}
    }
    Ok(())
}

fn logs(view: &OtapLogsView<'_>, line: &mut impl FnMut(Value)) {
    for resource_logs in view.resources() {
        let resource = resource_logs.resource().map_or_else(|| json!({}), |r| attributes(r.attributes()));
        for scope_logs in resource_logs.scopes() {
            let scope = scope_logs.scope().as_ref().map_or(Value::Null, scope_name);
            for record in scope_logs.log_records() {
                line(json!({
                    "time": record.time_unix_nano().map_or(Value::Null, time),
                    "observed_time": record.observed_time_unix_nano().map_or(Value::Null, time),
                    "severity_number": record.severity_number(),
                    "severity_text": record.severity_text().map(text),
                    "body": record.body().map_or(Value::Null, |body| any_value(&body, 0)),
                    "attributes": attributes(record.attributes()),
                    "resource": resource,
                    "scope": scope,
                    "trace_id": record.trace_id().map(|id| hex(id)),
                    "span_id": record.span_id().map(|id| hex(id)),
                    "flags": record.flags(),
                }));
            }
        }
    }
}

/// The same points with the numbers of their rows in place of their flags, which are not printed: the view gives points
/// metric by metric, and does not tell where they stood.
fn numbered(records: &OtapArrowRecords) -> Result<OtapArrowRecords, ColumnsError> {
    let mut numbered = records.clone();
    let Some(points) = records.get(ArrowPayloadType::NumberDataPoints) else { return Ok(numbered) };
    let rows: ArrayRef =
        Arc::new(UInt32Array::from_iter_values(0..u32::try_from(points.num_rows()).unwrap_or(u32::MAX)));
    let schema = points.schema();
    let others = schema.fields().iter().zip(points.columns()).filter(|(field, _)| field.name() != consts::FLAGS);
    let (mut fields, mut arrays): (Vec<_>, Vec<_>) =
        others.map(|(field, array)| (Arc::clone(field), Arc::clone(array))).unzip();
    fields.push(Arc::new(Field::new(consts::FLAGS, rows.data_type().clone(), true)));
    arrays.push(rows);
    let table = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
    let table = table.map_err(ColumnsError::arrow("number data points"))?;
    numbered.set(ArrowPayloadType::NumberDataPoints, table).map_err(ColumnsError::otap("number data points"))?;
    Ok(numbered)
}

/// Calls `point` with each point of a view of [`numbered`] points, and its row.
fn metrics(view: &OtapMetricsView<'_>, point: &mut impl FnMut(u32, Map<String, Value>)) {
    for resource_metrics in view.resources() {
        let resource = resource_metrics.resource().map_or_else(|| json!({}), |r| attributes(r.attributes()));
        for scope_metrics in resource_metrics.scopes() {
            let scope = scope_metrics.scope().as_ref().map_or(Value::Null, scope_name);
            for metric in scope_metrics.metrics() {
                let head =
                    Head { name: text(metric.name()), unit: text(metric.unit()), resource: &resource, scope: &scope };
                let Some(data) = metric.data() else { continue };
                match data.value_type() {
                    DataType::Gauge => {
                        if let Some(gauge) = data.as_gauge() {
                            gauge.data_points().for_each(|read| point(row(&read), head.point(&read, "gauge")));
                        }
                    }
                    DataType::Sum => {
                        if let Some(sum) = data.as_sum() {
                            let temporality = temporality(sum.aggregation_temporality());
                            for read in sum.data_points() {
                                let mut object = head.point(&read, "sum");
                                let _ = object.insert("temporality".to_owned(), temporality.clone());
                                let _ = object.insert("monotonic".to_owned(), json!(sum.is_monotonic()));
                                point(row(&read), object);
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}

/// The row of a [`numbered`] point.
fn row(point: &impl NumberDataPointView) -> u32 {
    point.flags().into_inner()
}

struct Head<'a> {
    name: Value,
    unit: Value,
    resource: &'a Value,
    scope: &'a Value,
}

impl Head<'_> {
    fn point(&self, point: &impl NumberDataPointView, kind: &str) -> Map<String, Value> {
        let value = match point.value() {
            Some(PointValue::Integer(value)) => json!(value),
            Some(PointValue::Double(value)) => json!(value),
            None => Value::Null,
        };
        let pairs = [
            ("name", self.name.clone()),
            ("unit", self.unit.clone()),
            ("type", kind.into()),
            ("value", value),
            ("time", time(point.time_unix_nano())),
            ("start_time", time(point.start_time_unix_nano())),
            ("attributes", attributes(point.attributes())),
            ("resource", self.resource.clone()),
            ("scope", self.scope.clone()),
        ];
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

fn temporality(temporality: AggregationTemporality) -> Value {
    match temporality {
        AggregationTemporality::Unspecified => Value::Null,
        AggregationTemporality::Delta => "delta".into(),
        AggregationTemporality::Cumulative => "cumulative".into(),
    }
}

fn scope_name(scope: &impl InstrumentationScopeView) -> Value {
    scope.name().map_or(Value::Null, text)
}

fn attributes<A: AttributeView>(attributes: impl Iterator<Item = A>) -> Value {
    Value::Object(
        attributes
            .map(|a| {
                let value = a.value().map_or(Value::Null, |value| any_value(&value, 0));
                (String::from_utf8_lossy(a.key()).into_owned(), value)
            })
            .collect(),
    )
}

fn any_value<'v>(value: &impl AnyValueView<'v>, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    match value.value_type() {
        ValueType::Empty => Value::Null,
        ValueType::String => value.as_string().map_or(Value::Null, text),
        ValueType::Bool => json!(value.as_bool()),
        ValueType::Int64 => json!(value.as_int64()),
        ValueType::Double => json!(value.as_double()),
        ValueType::Bytes => value.as_bytes().map_or(Value::Null, |bytes| json!({ "base16": hex(bytes) })),
        ValueType::Array => {
            value.as_array().map_or(Value::Null, |items| items.map(|item| any_value(&item, depth + 1)).collect())
        }
        ValueType::KeyValueList => value.as_kvlist().map_or(Value::Null, |pairs| {
            let map: Map<String, Value> = pairs
                .map(|pair| {
                    let value = pair.value().map_or(Value::Null, |value| any_value(&value, depth + 1));
                    (String::from_utf8_lossy(pair.key()).into_owned(), value)
                })
                .collect();
            Value::Object(map)
        }),
    }
}

fn text(bytes: &[u8]) -> Value {
    String::from_utf8_lossy(bytes).into()
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// RFC 3339 in UTC. OTAP's columns are signed, so times before 1970 come back as huge unsigned numbers: undone here.
fn time(unix_nano: u64) -> Value {
    if unix_nano == 0 {
        return Value::Null;
    }
    #[allow(clippy::cast_possible_wrap, reason = "the column is signed; the view made it unsigned")]
    let signed = unix_nano as i64;
    jiff::Timestamp::from_nanosecond(i128::from(signed)).map_or(Value::Null, |stamp| format!("{stamp:.9}").into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantile::{WindowResult, gauges};

    /// A point says of which metric and type it is.
    #[test]
    fn points() {
        let result = WindowResult {
            name: "latency",
            unit: "ms",
            group_by: &[],
            key: Some(&[]),
            start_unix_nano: 1,
            end_unix_nano: 2_000_000_001,
            quantiles: &[(0.5, 7.5)],
            statistics: &[],
            exact: true,
        };
        let records = gauges(&[result]).expect("made").expect("points");
        let mut all = Vec::new();
        objects(&records, |object| all.push(object)).expect("readable");
        let expected = json!({
            "name": "latency.quantile", "unit": "ms", "type": "gauge", "value": 7.5,
            "time": "1970-01-01T00:00:02.000000001Z", "start_time": "1970-01-01T00:00:00.000000001Z",
            "attributes": {"quantile": "0.5"}, "resource": {}, "scope": "catchment.quantile",
        });
        assert_eq!(all, [expected]);
    }

    /// What the numbers of OTLP are called.
    #[test]
    fn temporalities() {
        assert_eq!(temporality(AggregationTemporality::Delta), "delta");
        assert_eq!(temporality(AggregationTemporality::Cumulative), "cumulative");
        assert_eq!(temporality(AggregationTemporality::Unspecified), Value::Null);
    }
}
