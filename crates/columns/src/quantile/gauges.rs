//! The results of windows as gauge points.

use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::encode::record::attributes::AttributesRecordBatchBuilder;
use otel_arrow_dfe_pdata::encode::record::metrics::{MetricsRecordBatchBuilder, NumberDataPointsRecordBatchBuilder};
use otel_arrow_dfe_pdata::otap::Metrics;
use otel_arrow_dfe_pdata::otlp::metrics::MetricType;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use rustc_hash::FxHashMap;

use super::series::{AttributeRef, KeyValue};
use crate::ColumnsError;

/// Attribute of a gauge point that says which quantile it is: `"0.99"`, as in Prometheus.
pub const QUANTILE: &str = "quantile";
/// Attribute of the one series that stands for all series above the limit, as in the OpenTelemetry SDKs.
pub const OVERFLOW: &str = "otel.metric.overflow";
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
    pub group_by: &'a [AttributeRef],
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
}

/// Writes each result as points of the gauge `<name>.quantile`, and of `<name>.<statistic>` for each statistic.
///
/// Start and time of a point are the bounds of the window. The grouping attributes stand on the point, whatever place
/// they came from. Returns `None` if there is nothing to write.
///
/// # Errors
/// [`ColumnsError`] if a table cannot be built.
pub fn gauges(results: &[WindowResult<'_>]) -> Result<Option<OtapArrowRecords>, ColumnsError> {
    let mut writer = Writer::new();
    for result in results {
        let metric = writer.metric(result.name, "quantile", result.unit);
        for (quantile, value) in result.quantiles {
            writer.point(metric, result, *value);
            writer.attribute(QUANTILE, &KeyValue::Text(quantile.to_string().into()));
        }
        for (suffix, value) in result.statistics {
            let unit = if *suffix == "count" { "1" } else { result.unit };
            let metric = writer.metric(result.name, suffix, unit);
            writer.point(metric, result, *value);
        }
    }
    writer.finish()
}

struct Writer {
    metrics: Vec<(String, String)>,
    index: FxHashMap<String, u16>,
    points: NumberDataPointsRecordBatchBuilder,
    attributes: AttributesRecordBatchBuilder<u32>,
    rows: u32,
}

impl Writer {
    fn new() -> Self {
        Self {
            metrics: Vec::new(),
            index: FxHashMap::default(),
            points: NumberDataPointsRecordBatchBuilder::new(),
            attributes: AttributesRecordBatchBuilder::new(),
            rows: 0,
        }
    }

    fn metric(&mut self, name: &str, suffix: &str, unit: &str) -> u16 {
        let full = format!("{name}.{suffix}");
        if let Some(id) = self.index.get(&full) {
            return *id;
        }
        // A measure has five metrics at most and there are far fewer than 13,000 measures.
        let id = u16::try_from(self.metrics.len()).unwrap_or(u16::MAX);
        let _ = self.index.insert(full.clone(), id);
        self.metrics.push((full, unit.to_owned()));
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
        match result.key {
            Some(values) => {
                for (attribute, value) in result.group_by.iter().zip(values) {
                    self.attribute(&attribute.key, value);
                }
            }
            None => self.attribute(OVERFLOW, &KeyValue::Bool(true)),
        }
    }

    fn attribute(&mut self, key: &str, value: &KeyValue) {
        if *value == KeyValue::Absent {
            return;
        }
        self.attributes.append_parent_id(&(self.rows - 1));
        self.attributes.append_key(key.as_bytes());
        let values = &mut self.attributes.any_values_builder;
        match value {
            KeyValue::Text(text) => values.append_str(text.as_bytes()),
            KeyValue::Int(value) => values.append_int(*value),
            KeyValue::Double(bits) => values.append_double(f64::from_bits(*bits)),
            KeyValue::Bool(value) => values.append_bool(*value),
            KeyValue::Bytes(bytes) => values.append_bytes(bytes),
            KeyValue::Absent => {}
        }
    }

    fn finish(mut self) -> Result<Option<OtapArrowRecords>, ColumnsError> {
        if self.rows == 0 {
            return Ok(None);
        }
        let mut table = MetricsRecordBatchBuilder::new();
        for (id, (name, unit)) in self.metrics.iter().enumerate() {
            table.append_id(u16::try_from(id).unwrap_or(u16::MAX));
            table.append_metric_type(MetricType::Gauge as u8);
            table.append_name(name.as_bytes());
            table.append_description(b"");
            table.append_unit(unit.as_bytes());
            table.append_aggregation_temporality(None);
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
        records
            .set(ArrowPayloadType::UnivariateMetrics, table.finish().map_err(ColumnsError::arrow("metrics"))?)
            .map_err(ColumnsError::otap("metrics"))?;
        records
            .set(
                ArrowPayloadType::NumberDataPoints,
                self.points.finish().map_err(ColumnsError::arrow("number data points"))?,
            )
            .map_err(ColumnsError::otap("number data points"))?;
        if !self.attributes.is_empty() {
            let attributes = self.attributes.finish().map_err(ColumnsError::arrow("number point attributes"))?;
            records
                .set(ArrowPayloadType::NumberDpAttrs, attributes)
                .map_err(ColumnsError::otap("number point attributes"))?;
        }
        Ok(Some(records))
    }
}
