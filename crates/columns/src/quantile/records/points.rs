//! Number data points of metrics.

use std::ops::Range;

use arrow::array::{
    Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray, UInt8Array,
    UInt16Array, UInt32Array,
};
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::arrays::{MaybeDictArrayAccessor, NullableArrayAccessor};
use otel_arrow_dfe_pdata::otlp::metrics::MetricType;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::{AggregationTemporality, DataPointFlags};
use otel_arrow_dfe_pdata::schema::consts;

use super::join::{NO_ROW, Parents};
use super::{Lookup, column, complete, malformed, plain, time_at};
use crate::ColumnsError;
use crate::quantile::observations::{Fate, Observations, counts, index};
use crate::quantile::query::{NonFinite, TimeSource, ValueSource, name_matches};
use crate::quantile::reader::{RESOURCE, Reader, SCOPE};

pub(in crate::quantile) const NO_RECORDED_VALUE: u32 = DataPointFlags::NoRecordedValueMask as u32;

/// What the metrics table says about one metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Metric {
    Wanted { row: u32 },
    Other,
    Cumulative,
}

/// Metrics by id.
fn metrics_by_id(root: &RecordBatch, names: &[String]) -> Result<Vec<Metric>, ColumnsError> {
    let ids = column::<UInt16Array>(root, consts::ID).ok_or_else(|| malformed("metrics", "column `id` is missing"))?;
    let kinds = column::<UInt8Array>(root, consts::METRIC_TYPE)
        .ok_or_else(|| malformed("metrics", "column `metric_type` is missing"))?;
    let name_column =
        root.column_by_name(consts::NAME).ok_or_else(|| malformed("metrics", "column `name` is missing"))?;
    let metric_names =
        MaybeDictArrayAccessor::<StringArray>::try_new(name_column).map_err(|e| malformed("metrics", e))?;
    let temporality = root
        .column_by_name(consts::AGGREGATION_TEMPORALITY)
        .map(MaybeDictArrayAccessor::<Int32Array>::try_new)
        .transpose()
        .map_err(|e| malformed("metrics", e))?;
    let mut metrics = Vec::new();
    // Of the metric before: with a dictionary the same name is in the same place.
    let mut last: Option<(&str, bool)> = None;
    for row in (0..root.num_rows()).filter(|row| ids.is_valid(*row)) {
        let wanted = metric_names.str_at(row).is_some_and(|name| match last {
            Some((known, wanted)) if std::ptr::eq(known, name) => wanted,
            _ => {
                let wanted = name_matches(names, name.as_bytes());
                last = Some((name, wanted));
                wanted
            }
        });
        let is_sum = kinds.value(row) == MetricType::Sum as u8;
        let is_delta = || temporality.value_at(row) == Some(AggregationTemporality::Delta as i32);
        let id = usize::from(ids.value(row));
        if metrics.len() <= id {
            metrics.resize(id + 1, Metric::Other);
        }
        metrics[id] = match wanted {
            true if is_sum && !is_delta() => Metric::Cumulative,
            true => Metric::Wanted { row: index(row) },
            false => Metric::Other,
        };
    }
    Ok(metrics)
}

/// The columns that give values and times.
struct Columns<'a> {
    ints: Option<&'a Int64Array>,
    doubles: Option<&'a Float64Array>,
    /// Absent where no point has the flag.
    flags: Option<&'a UInt32Array>,
    times: Option<&'a TimestampNanosecondArray>,
    time: TimeSource,
    non_finite: NonFinite,
    now: i64,
}

impl Columns<'_> {
    fn value(&self, row: usize) -> Result<f64, Fate> {
        if self.flags.is_some_and(|c| c.is_valid(row) && c.value(row) & NO_RECORDED_VALUE != 0) {
            return Err(Fate::NotANumber);
        }
        if let Some(doubles) = self.doubles.filter(|c| c.is_valid(row)) {
            return Ok(doubles.value(row));
        }
        #[allow(clippy::cast_precision_loss, reason = "values above 2^53 are documented to lose their last bits")]
        match self.ints {
            Some(ints) if ints.is_valid(row) => Ok(ints.value(row) as f64),
            _ => Err(Fate::NotANumber),
        }
    }

    fn time(&self, row: usize) -> i64 {
        match self.time {
            TimeSource::Event => time_at(self.times, row).unwrap_or(self.now),
            TimeSource::Observed => self.now,
        }
    }

    /// The values of a stretch if all of them are observations that stand in one column.
    fn plain(&self, rows: &Range<usize>) -> Option<&[f64]> {
        let doubles = self.doubles.filter(|c| c.null_count() == 0 && self.flags.is_none())?;
        let values = &doubles.values()[rows.clone()];
        // Without a branch in between: a few vector instructions for eight values.
        values.iter().fold(true, |all, value| all & counts(*value, self.non_finite)).then_some(values)
    }

    fn take(&self, rows: Range<usize>, out: &mut Observations) {
        let Some(values) = self.plain(&rows) else {
            for row in rows {
                let _ = out.judge(self.value(row), self.non_finite, || self.time(row));
            }
            return;
        };
        out.values.extend_from_slice(values);
        out.items.extend(index(rows.start)..index(rows.end));
        out.fates.resize(rows.end, Fate::Observed);
        let from = out.times.len();
        match self.times {
            Some(times) if self.time == TimeSource::Event && times.null_count() == 0 => {
                out.times.extend_from_slice(&times.values()[rows]);
                for time in &mut out.times[from..] {
                    *time = if *time == 0 { self.now } else { *time };
                }
            }
            _ => out.times.extend(rows.map(|row| self.time(row))),
        }
    }
}

pub(super) fn read(
    reader: &mut Reader,
    records: &OtapArrowRecords,
    now: i64,
    out: &mut Observations,
) -> Result<(), ColumnsError> {
    let ValueSource::Metric { names } = &reader.query.source else { return Ok(()) };
    let others = [
        ArrowPayloadType::HistogramDataPoints,
        ArrowPayloadType::ExpHistogramDataPoints,
        ArrowPayloadType::SummaryDataPoints,
    ];
    out.other_points = others.iter().filter_map(|table| records.get(*table)).map(|batch| batch.num_rows() as u64).sum();
    let root = plain(records, records.root_payload_type(), "metrics")?;
    let points = plain(records, ArrowPayloadType::NumberDataPoints, "number data points")?;
    let (Some(root), Some(points)) = (&root, &points) else { return Ok(()) };
    let metrics = metrics_by_id(root, names)?;
    let metric_of = column::<UInt16Array>(points, consts::PARENT_ID)
        .ok_or_else(|| malformed("number data points", "column `parent_id` is missing"))?
        .values();
    let flags = column::<UInt32Array>(points, consts::FLAGS);
    let columns = Columns {
        ints: column(points, consts::INT_VALUE),
        doubles: column(points, consts::DOUBLE_VALUE),
        flags: flags.filter(|c| c.values().iter().fold(0, |all, flags| all | flags) & NO_RECORDED_VALUE != 0),
        times: column(points, consts::TIME_UNIX_NANO),
        time: reader.query.time,
        non_finite: reader.query.non_finite,
        now,
    };
    let of_owners = !(reader.bound.wanted[RESOURCE].is_empty() && reader.bound.wanted[SCOPE].is_empty());
    let mut root_rows = Vec::new();
    let mut at = 0;
    // Points of a metric mostly stand together.
    for run in metric_of.chunk_by(|a, b| a == b) {
        let rows = at..at + run.len();
        at = rows.end;
        let metric = metrics.get(usize::from(run[0])).copied().unwrap_or(Metric::Other);
        let (fate, root_row) = match metric {
            Metric::Wanted { row } => (Fate::Observed, row),
            Metric::Cumulative => (Fate::Cumulative, NO_ROW),
            Metric::Other => (Fate::NoValue, NO_ROW),
        };
        if of_owners {
            root_rows.resize(rows.end, root_row);
        }
        if fate == Fate::Observed {
            columns.take(rows, out);
        } else {
            out.fates.resize(rows.end, fate);
        }
    }
    let ids = column::<UInt32Array>(points, consts::ID);
    let parents = || match ids {
        Some(ids) => Parents::new(ids.iter()),
        None => Parents::new(std::iter::repeat_n(None, points.num_rows())),
    };
    let lookup =
        Lookup::new(&reader.bound, records, root, ArrowPayloadType::NumberDpAttrs, parents, root_rows.iter().copied())?;
    complete(reader, &lookup, out);
    Ok(())
}
