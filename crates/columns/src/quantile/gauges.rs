//! The results of windows as gauge or summary points.

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::encode::record::attributes::{AnyValuesRecordsBuilder, AttributesRecordBatchBuilder};
use otel_arrow_dfe_pdata::encode::record::metrics::{
    ExponentialHistogramDataPointsRecordBatchBuilder, MetricsRecordBatchBuilder, NumberDataPointsRecordBatchBuilder,
    SummaryDataPointsRecordBatchBuilder,
};
use otel_arrow_dfe_pdata::otap::Metrics;
use otel_arrow_dfe_pdata::otlp::metrics::MetricType;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::AggregationTemporality;
use rustc_hash::FxHashMap;

use super::query::AttributePath;
use super::series::KeyValue;
use crate::ColumnsError;

/// Attribute of a gauge point that says which quantile it is: `"0.99"`, as in Prometheus.
pub const QUANTILE: &str = "quantile";
/// Attribute of the one series that stands for all series above the limit, as in the OpenTelemetry SDKs.
pub const OVERFLOW: &str = "otel.metric.overflow";
/// Attribute, false, of the points of a series whose values did not all find room and that went on as a sketch.
pub const EXACT: &str = "quantile.exact";
/// Instrumentation scope of the points.
pub const SCOPE: &str = "catchment.quantile";

/// What came of one series in one window.
#[derive(Debug)]
pub struct WindowResult<'a> {
    /// Name of the measure; the metric names begin with it.
    pub name: &'a str,
    /// UCUM unit of the values.
    pub unit: &'a str,
    /// What the series is grouped by.
    pub group_by: &'a [AttributePath],
    /// The values it is grouped by; `None` for the overflow series.
    pub key: Option<&'a [KeyValue]>,
    /// Begin of the window, nanoseconds since the Unix epoch, inclusive.
    pub start_unix_nano: i64,
    /// End of the window, exclusive.
    pub end_unix_nano: i64,
    /// Pairs of quantile and value.
    pub quantiles: &'a [(f64, f64)],
    /// Further statistics as pairs of suffix (`count`, `sum`, `min`, `max`) and value.
    pub statistics: &'a [(&'static str, f64)],
    /// `false` if the quantiles are not exact although that was asked for: the points say so by [`EXACT`].
    pub exact: bool,
}

/// Writes each result as points of the gauge `<name>.quantile`, and of `<name>.<statistic>` for each statistic.
///
/// Start and time of a point are the bounds of the window. The grouping attributes stand on the point, whatever place
/// they came from. Returns `None` if there is nothing to write.
///
/// # Errors
/// [`ColumnsError`] if a table cannot be built.
pub fn gauges(results: &[WindowResult<'_>]) -> Result<Option<OtapArrowRecords>, ColumnsError> {
    let mut writer = Results::new();
    results.iter().for_each(|result| writer.push(result));
    writer.finish()
}

/// Appends what an attribute holds.
pub(super) fn append_value(values: &mut AnyValuesRecordsBuilder, value: &KeyValue) {
    match value {
        KeyValue::Text(text) => values.append_str(text.as_bytes()),
        KeyValue::Int(value) => values.append_int(*value),
        KeyValue::Double(bits) => values.append_double(f64::from_bits(*bits)),
        KeyValue::Bool(value) => values.append_bool(*value),
        KeyValue::Bytes(bytes) => values.append_bytes(bytes),
        KeyValue::Absent => values.append_empty(),
    }
}

/// A metric of the output.
struct Metric {
    kind: MetricType,
    name: String,
    unit: String,
}

/// Points of results under construction, so that they can be written a few at a time.
pub struct Results {
    metrics: Vec<Metric>,
    index: FxHashMap<String, u16>,
    points: NumberDataPointsRecordBatchBuilder,
    attributes: AttributesRecordBatchBuilder<u32>,
    rows: u32,
    summaries: SummaryDataPointsRecordBatchBuilder,
    summary_attributes: AttributesRecordBatchBuilder<u32>,
    summary_rows: u32,
    pub(super) exponentials: ExponentialHistogramDataPointsRecordBatchBuilder,
    pub(super) exponential_attributes: AttributesRecordBatchBuilder<u32>,
    /// Sum, minimum and maximum of each point.
    pub(super) exponential_moments: [Vec<Option<f64>>; 3],
    pub(super) exponential_rows: u32,
}

impl Default for Results {
    fn default() -> Self {
        Self::new()
    }
}

impl Results {
    /// No points yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            metrics: Vec::new(),
            index: FxHashMap::default(),
            points: NumberDataPointsRecordBatchBuilder::new(),
            attributes: AttributesRecordBatchBuilder::new(),
            rows: 0,
            summaries: SummaryDataPointsRecordBatchBuilder::new(),
            summary_attributes: AttributesRecordBatchBuilder::new(),
            summary_rows: 0,
            exponentials: ExponentialHistogramDataPointsRecordBatchBuilder::new(),
            exponential_attributes: AttributesRecordBatchBuilder::new(),
            exponential_moments: Default::default(),
            exponential_rows: 0,
        }
    }

    /// Points written so far.
    #[must_use]
    pub const fn points(&self) -> u32 {
        self.rows + self.summary_rows + self.exponential_rows
    }

    /// Writes a result as points of gauges, as [`gauges`] does.
    pub fn push(&mut self, result: &WindowResult<'_>) {
        let metric = self.metric(MetricType::Gauge, format!("{}.quantile", result.name), result.unit);
        for (quantile, value) in result.quantiles {
            self.point(metric, result, *value);
            self.attribute(QUANTILE, &KeyValue::Text(quantile.to_string().into()));
        }
        self.push_statistics(result);
    }

    pub(super) fn push_statistics(&mut self, result: &WindowResult<'_>) {
        for (suffix, value) in result.statistics {
            let unit = if *suffix == "count" { "1" } else { result.unit };
            let metric = self.metric(MetricType::Gauge, format!("{}.{suffix}", result.name), unit);
            self.point(metric, result, *value);
        }
    }

    /// Writes a result of `count` observations, whose sum is `sum`, as one point of the summary `<name>`, and its
    /// statistics as gauges. If a value is negative, which OTLP forbids in a summary, writes it as [`Results::push`] does
    /// and gives `false`. The quantiles must ascend, each once.
    pub fn push_summary(&mut self, result: &WindowResult<'_>, count: u64, sum: f64) -> bool {
        if result.quantiles.iter().any(|(_, value)| *value < 0.0) || sum < 0.0 {
            self.push(result);
            return false;
        }
        let metric = self.metric(MetricType::Summary, result.name.to_owned(), result.unit);
        self.summaries.append_id(self.summary_rows);
        self.summaries.append_parent_id(metric);
        self.summaries.append_start_time_unix_nano(result.start_unix_nano);
        self.summaries.append_time_unix_nano(result.end_unix_nano);
        self.summaries.append_count(count);
        self.summaries.append_sum(sum);
        self.summaries.quantile_values.append(result.quantiles.iter().copied());
        self.summaries.append_flags(0);
        append_key(&mut self.summary_attributes, self.summary_rows, result);
        self.summary_rows += 1;
        self.push_statistics(result);
        true
    }

    pub(super) fn metric(&mut self, kind: MetricType, name: String, unit: &str) -> u16 {
        if let Some(id) = self.index.get(&name) {
            return *id;
        }
        // A measure has six metrics at most and there are far fewer than 10,000 measures.
        let id = u16::try_from(self.metrics.len()).unwrap_or(u16::MAX);
        let _ = self.index.insert(name.clone(), id);
        self.metrics.push(Metric { kind, name, unit: unit.to_owned() });
        id
    }

    fn point(&mut self, metric: u16, result: &WindowResult<'_>, value: f64) {
        self.points.append_id(self.rows);
        self.points.append_parent_id(metric);
        self.points.append_start_time_unix_nano(Some(result.start_unix_nano));
        self.points.append_time_unix_nano(result.end_unix_nano);
        self.points.append_int_value(None);
        self.points.append_double_value(Some(value));
        self.points.append_flags(0);
        self.rows += 1;
        append_key(&mut self.attributes, self.rows - 1, result);
    }

    /// Of the point written last.
    fn attribute(&mut self, key: &str, value: &KeyValue) {
        append(&mut self.attributes, self.rows - 1, key, value);
    }

    /// The tables, or `None` if there are no points.
    ///
    /// # Errors
    /// [`ColumnsError`] if a table cannot be built.
    pub fn finish(mut self) -> Result<Option<OtapArrowRecords>, ColumnsError> {
        if self.points() == 0 {
            return Ok(None);
        }
        let exponentials = self.exponential_table();
        let mut table = MetricsRecordBatchBuilder::new();
        for (id, Metric { kind, name, unit }) in self.metrics.iter().enumerate() {
            table.append_id(u16::try_from(id).unwrap_or(u16::MAX));
            table.append_metric_type(*kind as u8);
            table.append_name(name.as_bytes());
            table.append_description(b"");
            table.append_unit(unit.as_bytes());
            let is_delta = *kind == MetricType::ExponentialHistogram;
            table.append_aggregation_temporality(is_delta.then_some(AggregationTemporality::Delta as i32));
            table.append_is_monotonic(None);
        }
        let rows = self.metrics.len();
        table.append_scope_schema_url_n(b"", rows);
        table.resource.append_id_n(0, rows);
        table.resource.append_schema_url_n(None, rows);
        table.resource.append_dropped_attributes_count_n(0, rows);
        table.scope.append_id_n(0, rows);
        table.scope.append_name_n(Some(SCOPE.as_bytes()), rows);
        table.scope.append_version_n(None, rows);
        table.scope.append_dropped_attributes_count_n(0, rows);

        let mut records = OtapArrowRecords::Metrics(Metrics::default());
        let mut set = |table, name: &'static str, batch: Result<RecordBatch, ArrowError>| {
            records.set(table, batch.map_err(ColumnsError::arrow(name))?).map_err(ColumnsError::otap(name))
        };
        set(ArrowPayloadType::UnivariateMetrics, "metrics", table.finish())?;
        if self.rows > 0 {
            set(ArrowPayloadType::NumberDataPoints, "number data points", self.points.finish())?;
        }
        if !self.attributes.is_empty() {
            set(ArrowPayloadType::NumberDpAttrs, "number point attributes", self.attributes.finish())?;
        }
        if self.summary_rows > 0 {
            set(ArrowPayloadType::SummaryDataPoints, "summary data points", self.summaries.finish())?;
        }
        if !self.summary_attributes.is_empty() {
            set(ArrowPayloadType::SummaryDpAttrs, "summary point attributes", self.summary_attributes.finish())?;
        }
        if self.exponential_rows > 0 {
            set(ArrowPayloadType::ExpHistogramDataPoints, "exponential histogram points", exponentials)?;
        }
        if !self.exponential_attributes.is_empty() {
            let attributes = self.exponential_attributes.finish();
            set(ArrowPayloadType::ExpHistogramDpAttrs, "exponential histogram attributes", attributes)?;
        }
        Ok(Some(records))
    }
}

/// The attributes that tell the series of a result.
pub(super) fn append_key(attributes: &mut AttributesRecordBatchBuilder<u32>, point: u32, result: &WindowResult<'_>) {
    match result.key {
        Some(values) => {
            for (attribute, value) in result.group_by.iter().zip(values) {
                append(attributes, point, &attribute.output_key(), value);
            }
        }
        None => append(attributes, point, OVERFLOW, &KeyValue::Bool(true)),
    }
    if !result.exact {
        append(attributes, point, EXACT, &KeyValue::Bool(false));
    }
}

fn append(attributes: &mut AttributesRecordBatchBuilder<u32>, point: u32, key: &str, value: &KeyValue) {
    if *value != KeyValue::Absent {
        attributes.append_parent_id(&point);
        attributes.append_key(key.as_bytes());
        append_value(&mut attributes.any_values_builder, value);
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::UInt64Array;

    use super::*;

    fn result(quantiles: &[(f64, f64)]) -> WindowResult<'_> {
        WindowResult {
            name: "t",
            unit: "ms",
            group_by: &[],
            key: None,
            start_unix_nano: 1,
            end_unix_nano: 20,
            quantiles,
            statistics: &[("max", 9.0)],
            exact: true,
        }
    }

    /// A summary where it may be one; negative values make gauges. Both in one batch.
    #[test]
    fn summaries_are_not_negative() {
        let mut results = Results::new();
        assert!(results.push_summary(&result(&[(0.5, 1.5), (0.99, 9.0)]), 4, 16.0));
        assert!(!results.push_summary(&result(&[(0.5, -1.5), (0.99, 9.0)]), 4, 16.0));
        assert_eq!(results.points(), 5);
        let records = results.finish().expect("built").expect("not empty");
        assert_eq!(records.num_items(), 5);
        let summaries = records.get(ArrowPayloadType::SummaryDataPoints).expect("a summary");
        assert_eq!(summaries.num_rows(), 1);
        let counts = summaries.column_by_name("count").expect("a column");
        assert_eq!(counts.as_any().downcast_ref::<UInt64Array>().expect("integers").value(0), 4);
        let gauges = records.get(ArrowPayloadType::NumberDataPoints).expect("gauges");
        assert_eq!(gauges.num_rows(), 4, "two quantiles and the maximum twice");
    }
}
