//! The points of one batch, and their tables.

use std::ops::Range;

use catchment_sampling::Threshold;
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::encode::record::attributes::AttributesRecordBatchBuilder;
use otel_arrow_dfe_pdata::encode::record::metrics::{MetricsRecordBatchBuilder, NumberDataPointsRecordBatchBuilder};
use otel_arrow_dfe_pdata::otap::Metrics;
use otel_arrow_dfe_pdata::otlp::metrics::MetricType;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;

use super::plan::Metric;
use super::rules::MetricKind;
use crate::ColumnsError;
use crate::flow::names;

/// Points that are written in one step of finishing a batch.
const STEP_POINTS: usize = 512;

/// AGGREGATION_TEMPORALITY_DELTA and _CUMULATIVE of OTLP.
const DELTA: i32 = 1;
const CUMULATIVE: i32 = 2;

/// The value of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Int(i64),
    Double(f64),
}

impl Number {
    /// The number for all records that one stands for which has passed this threshold.
    pub(super) fn times(self, threshold: Threshold) -> Self {
        if threshold == Threshold::KEEP_ALL {
            return self;
        }
        #[allow(clippy::cast_precision_loss, reason = "an estimate is no more exact than this")]
        let number = match self {
            Self::Int(number) => number as f64,
            Self::Double(number) => number,
        };
        Self::Double(number * threshold.adjusted_count())
    }
}

/// The value of an attribute; texts and bytes by where they are among those of the batch.
#[derive(Debug, Clone)]
pub(super) enum AttributeValue {
    Text(Range<usize>),
    Bytes(Range<usize>),
    Int(i64),
    Double(f64),
    Bool(bool),
}

#[derive(Debug, Clone)]
pub(super) struct Point {
    pub(super) metric: u16,
    pub(super) start_unix_nano: Option<i64>,
    pub(super) time_unix_nano: i64,
    pub(super) value: Number,
    /// Which of the attributes are its own.
    pub(super) attributes: Range<usize>,
}

/// Points of one exporter and observation domain.
#[derive(Debug, Default)]
pub(super) struct PointTable {
    pub(super) points: Vec<Point>,
    /// Attributes, by numbers of their names. Points of one record and rule share theirs.
    pub(super) attributes: Vec<(u16, AttributeValue)>,
    pub(super) bytes: Vec<u8>,
}

impl PointTable {
    /// Puts bytes aside.
    pub(super) fn store(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }
}

/// A batch whose tables are written in steps.
pub(super) struct Unfinished {
    table: PointTable,
    exporter: Option<String>,
    domain: u32,
    /// Points by metric, in the order in which they came.
    order: Vec<usize>,
    next: usize,
    /// Metrics of the batch, and for each metric known its id.
    metrics: Vec<usize>,
    ids: Vec<u16>,
    rows: NumberDataPointsRecordBatchBuilder,
    attributes: AttributesRecordBatchBuilder<u32>,
}

impl Unfinished {
    /// Begins to write `table`, whose points are of `metrics`.
    pub(super) fn new(table: PointTable, metrics: &[Metric], exporter: Option<String>, domain: u32) -> Self {
        let mut used: Vec<usize> = table.points.iter().map(|point| usize::from(point.metric)).collect();
        used.sort_unstable();
        used.dedup();
        // As an OTAP exporter sends them: it numbers metrics anew where their order is another, and then sorts points in a way
        // that does not keep the order in a series.
        used.sort_by_key(|metric| metrics.get(*metric).map(|metric| (type_of(metric.kind) as u8, &metric.name)));
        let mut ids = vec![0; metrics.len()];
        for (id, metric) in used.iter().enumerate() {
            ids[*metric] = u16::try_from(id).unwrap_or(u16::MAX);
        }
        let mut order: Vec<usize> = (0..table.points.len()).collect();
        order.sort_by_key(|point| ids[usize::from(table.points[*point].metric)]);
        Self {
            table,
            exporter,
            domain,
            order,
            next: 0,
            metrics: used,
            ids,
            rows: NumberDataPointsRecordBatchBuilder::new(),
            attributes: AttributesRecordBatchBuilder::new(),
        }
    }

    /// Writes some more; gives the batch when it is complete.
    pub(super) fn step(
        &mut self,
        metrics: &[Metric],
        names: &[String],
    ) -> Result<Option<OtapArrowRecords>, ColumnsError> {
        let end = (self.next + STEP_POINTS).min(self.order.len());
        if self.next < end {
            for row in self.next..end {
                self.point(row, names);
            }
            self.next = end;
            return Ok(None);
        }
        self.finish(metrics).map(Some)
    }

    fn point(&mut self, row: usize, names: &[String]) {
        let Some(point) = self.order.get(row).and_then(|place| self.table.points.get(*place)) else { return };
        // Batches have far fewer than 2^32 points.
        let id = u32::try_from(row).unwrap_or(u32::MAX);
        self.rows.append_id(id);
        self.rows.append_parent_id(self.ids[usize::from(point.metric)]);
        self.rows.append_start_time_unix_nano(point.start_unix_nano);
        self.rows.append_time_unix_nano(point.time_unix_nano);
        let (int, double) = match point.value {
            Number::Int(value) => (Some(value), None),
            Number::Double(value) => (None, Some(value)),
        };
        self.rows.append_int_value(int);
        self.rows.append_double_value(double);
        self.rows.append_flags(0);
        self.attributes.append_parent_id(&id);
        self.attributes.append_key(names::DOMAIN.as_bytes());
        self.attributes.any_values_builder.append_int(i64::from(self.domain));
        for (name, value) in self.table.attributes.get(point.attributes.clone()).unwrap_or_default() {
            self.attributes.append_parent_id(&id);
            self.attributes.append_key(names.get(usize::from(*name)).map(String::as_bytes).unwrap_or_default());
            let values = &mut self.attributes.any_values_builder;
            let stored = |range: &Range<usize>| self.table.bytes.get(range.clone()).unwrap_or_default();
            match value {
                AttributeValue::Text(range) => values.append_str(stored(range)),
                AttributeValue::Bytes(range) => values.append_bytes(stored(range)),
                AttributeValue::Int(value) => values.append_int(*value),
                AttributeValue::Double(value) => values.append_double(*value),
                AttributeValue::Bool(value) => values.append_bool(*value),
            }
        }
    }

    fn finish(&mut self, metrics: &[Metric]) -> Result<OtapArrowRecords, ColumnsError> {
        let mut table = MetricsRecordBatchBuilder::new();
        for (id, metric) in self.metrics.iter().filter_map(|metric| metrics.get(*metric)).enumerate() {
            let temporality = match metric.kind {
                MetricKind::Delta => Some(DELTA),
                MetricKind::Cumulative => Some(CUMULATIVE),
                MetricKind::Auto | MetricKind::Gauge => None,
            };
            table.append_id(u16::try_from(id).unwrap_or(u16::MAX));
            table.append_metric_type(type_of(metric.kind) as u8);
            table.append_name(metric.name.as_bytes());
            table.append_description(b"");
            table.append_unit(metric.unit.as_bytes());
            table.append_aggregation_temporality(temporality);
            table.append_is_monotonic(temporality.map(|_| true));
        }
        let rows = self.metrics.len();
        table.append_scope_schema_url_n(b"", rows);
        table.resource.append_id_n(0, rows);
        table.resource.append_schema_url_n(None, rows);
        table.resource.append_dropped_attributes_count_n(0, rows);
        table.scope.append_id_n(0, rows);
        table.scope.append_name_n(Some(super::SCOPE.as_bytes()), rows);
        table.scope.append_version_n(None, rows);
        table.scope.append_dropped_attributes_count_n(0, rows);
        let mut records = OtapArrowRecords::Metrics(Metrics::default());
        let mut set = |payload, name, batch: Result<_, arrow::error::ArrowError>| {
            let batch = batch.map_err(ColumnsError::arrow(name))?;
            records.set(payload, batch).map_err(ColumnsError::otap(name))
        };
        set(ArrowPayloadType::UnivariateMetrics, "metrics", table.finish())?;
        set(ArrowPayloadType::NumberDataPoints, "number data points", self.rows.finish())?;
        set(ArrowPayloadType::NumberDpAttrs, "number point attributes", self.attributes.finish())?;
        if let Some(exporter) = &self.exporter {
            let mut resource = AttributesRecordBatchBuilder::<u16>::new();
            resource.append_parent_id(&0);
            resource.append_key(names::SAMPLER_ADDRESS.as_bytes());
            resource.any_values_builder.append_str(exporter.as_bytes());
            set(ArrowPayloadType::ResourceAttrs, "resource attributes", resource.finish())?;
        }
        Ok(records)
    }
}

fn type_of(kind: MetricKind) -> MetricType {
    match kind {
        MetricKind::Auto | MetricKind::Gauge => MetricType::Gauge,
        MetricKind::Delta | MetricKind::Cumulative => MetricType::Sum,
    }
}
