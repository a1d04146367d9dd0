//! Record batches -> observations.
//!
//! Columns are read directly; attributes are joined by id once per batch and only for the keys that are asked for.

use arrow::array::{
    Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, StructArray, TimestampNanosecondArray,
    UInt8Array, UInt16Array, UInt32Array,
};
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::arrays::{MaybeDictArrayAccessor, NullableArrayAccessor};
use otel_arrow_dfe_pdata::otlp::metrics::MetricType;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::{AggregationTemporality, DataPointFlags};
use otel_arrow_dfe_pdata::schema::consts;
use rustc_hash::FxHashMap;

use super::series::{AttributeRef, KeyValue, Place, SeriesKey};
use super::table::{AttributeTable, AttributeValue};
use crate::ColumnsError;

/// What to make of a text value where a number is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextNumbers {
    /// Text is no number.
    #[default]
    Refuse,
    /// Text that spells a decimal number is that number.
    Decimal,
}

/// Where the observed values come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueSource {
    /// A numeric attribute of log records.
    LogAttribute {
        /// Which attribute.
        attribute: AttributeRef,
        /// Whether text that spells a number counts.
        text: TextNumbers,
    },
    /// Gauges and delta sums of these names; a name may end in `*`. Integer values above 2^53 lose their last bits.
    Metric {
        /// Names or prefixes.
        names: Vec<String>,
    },
}

/// Which clock places an observation in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeSource {
    /// The time of the record or point, by the device's word; the observed time where there is none.
    #[default]
    Event,
    /// The time of receipt; for data points, which have none, the time given by the caller.
    Observed,
}

/// What became of one item of the input: a log record or a number point. Ordered: where an item is offered several
/// times, the greatest is what became of it in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// The record does not have the attribute, or the metric is not one of the named ones.
    NoValue,
    /// A running total (cumulative sum), which is no observation.
    Cumulative,
    /// The attribute or point is there, but holds no finite number.
    NotANumber,
    /// Observed, but too far ahead of the receiver's clock.
    Future,
    /// Observed, but after its window had closed.
    Late,
    /// Observed, but its series keeps no more values.
    Full,
    /// Observed.
    Observed,
}

/// The observations of one batch.
#[derive(Debug, Default)]
pub struct Observations {
    /// Observed values; finite.
    pub values: Vec<f64>,
    /// Times in nanoseconds since the Unix epoch, one for each value.
    pub times: Vec<i64>,
    /// Index into `keys`, one for each value.
    pub series: Vec<u32>,
    /// Index into `fates`, one for each value.
    pub items: Vec<u32>,
    /// The series seen in this batch.
    pub keys: Vec<SeriesKey>,
    /// What became of each item of the batch, in its order.
    pub fates: Vec<Fate>,
}

impl Observations {
    /// Decides on the next item: its value, or `None` if it gives no observation.
    fn judge(&mut self, value: Result<f64, Fate>) -> Option<f64> {
        let value = value.and_then(|value| if value.is_finite() { Ok(value) } else { Err(Fate::NotANumber) });
        self.fates.push(value.map_or_else(|fate| fate, |_| Fate::Observed));
        value.ok()
    }

    fn push(&mut self, value: f64, time: i64, series: u32) {
        self.values.push(value);
        self.times.push(time);
        self.series.push(series);
        // The item was judged just before.
        self.items.push(u32::try_from(self.fates.len() - 1).unwrap_or(u32::MAX));
    }
}

/// Reads the observations of `records`, whose ids must not be transport encoded
/// (`OtapArrowRecords::decode_transport_optimized_ids`).
///
/// `now_unix_nano` is the time of points where [`TimeSource::Observed`] asks for a time that they do not have, and of
/// records without any time. Every log record or number point has a [`Fate`]; other signals and other kinds of points
/// are not looked at.
///
/// # Errors
/// [`ColumnsError::Otap`] if a table lacks a column or has one of a wrong type.
pub fn observe(
    records: &OtapArrowRecords,
    source: &ValueSource,
    group_by: &[AttributeRef],
    time: TimeSource,
    now_unix_nano: i64,
) -> Result<Observations, ColumnsError> {
    match (records, source) {
        (OtapArrowRecords::Logs(_), ValueSource::LogAttribute { attribute, text }) => {
            logs(records, attribute, *text, group_by, time, now_unix_nano)
        }
        (OtapArrowRecords::Metrics(_), ValueSource::Metric { names }) => {
            points(records, names, group_by, time, now_unix_nano)
        }
        _ => Ok(Observations::default()),
    }
}

/// Whether `name` is one of `patterns`: equal, or beginning with what stands before a final `*`.
#[must_use]
pub fn name_matches(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    })
}

fn malformed(table: &'static str, reason: impl ToString) -> ColumnsError {
    ColumnsError::Otap { table, reason: reason.to_string() }
}

fn column<'a, T: 'static>(batch: &'a RecordBatch, name: &str) -> Option<&'a T> {
    batch.column_by_name(name).and_then(|column| column.as_any().downcast_ref::<T>())
}

fn time_at(column: Option<&TimestampNanosecondArray>, row: usize) -> Option<i64> {
    column.filter(|c| c.is_valid(row)).map(|c| c.value(row)).filter(|time| *time != 0)
}

/// The ids of the resource or scope of each row of a root table.
fn owner_ids<'a>(root: &'a RecordBatch, place: &str) -> Option<&'a UInt16Array> {
    column::<StructArray>(root, place)?.column_by_name(consts::ID)?.as_any().downcast_ref::<UInt16Array>()
}

/// The attributes that a query asks for, in the three places, with the number of the row in each.
struct Lookup<'a> {
    tables: [Option<AttributeTable<'a>>; 3],
    wanted: [Vec<&'a str>; 3],
}

const fn place_index(place: Place) -> usize {
    match place {
        Place::Resource => 0,
        Place::Scope => 1,
        Place::Record => 2,
    }
}

impl<'a> Lookup<'a> {
    fn new(attributes: impl Iterator<Item = &'a AttributeRef>) -> Self {
        let mut wanted: [Vec<&str>; 3] = Default::default();
        for attribute in attributes {
            let keys = &mut wanted[place_index(attribute.place)];
            if !keys.contains(&attribute.key.as_str()) {
                keys.push(&attribute.key);
            }
        }
        Self { tables: [None, None, None], wanted }
    }

    fn load(
        &mut self,
        place: Place,
        records: &'a OtapArrowRecords,
        table: ArrowPayloadType,
        parents: usize,
        row_of: impl Fn(u32) -> Option<usize>,
    ) -> Result<(), ColumnsError> {
        let index = place_index(place);
        if !self.wanted[index].is_empty()
            && let Some(batch) = records.get(table)
        {
            self.tables[index] = Some(AttributeTable::new(batch, &self.wanted[index], parents, row_of)?);
        }
        Ok(())
    }

    /// Resource and scope attributes are numbered by their 16-bit ids.
    fn load_owners(&mut self, records: &'a OtapArrowRecords) -> Result<(), ColumnsError> {
        let ids = usize::from(u16::MAX) + 1;
        self.load(Place::Resource, records, ArrowPayloadType::ResourceAttrs, ids, |id| usize::try_from(id).ok())?;
        self.load(Place::Scope, records, ArrowPayloadType::ScopeAttrs, ids, |id| usize::try_from(id).ok())
    }

    fn value(&self, attribute: &AttributeRef, rows: [Option<usize>; 3]) -> Option<AttributeValue<'_>> {
        let index = place_index(attribute.place);
        let key = self.wanted[index].iter().position(|key| *key == attribute.key)?;
        self.tables[index].as_ref()?.value(key, rows[index]?)
    }
}

/// Numbers the series of a batch.
#[derive(Default)]
struct SeriesIndex(FxHashMap<SeriesKey, u32>);

impl SeriesIndex {
    fn of(
        &mut self,
        lookup: &Lookup<'_>,
        group_by: &[AttributeRef],
        rows: [Option<usize>; 3],
        keys: &mut Vec<SeriesKey>,
    ) -> u32 {
        let key: SeriesKey = group_by
            .iter()
            .map(|attribute| lookup.value(attribute, rows).map_or(KeyValue::Absent, |value| value.to_key()))
            .collect();
        if let Some(index) = self.0.get(&key) {
            return *index;
        }
        let index = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        keys.push(key.clone());
        let _ = self.0.insert(key, index);
        index
    }
}

fn number(value: Option<AttributeValue<'_>>, text: TextNumbers) -> Result<f64, Fate> {
    match value {
        None => Err(Fate::NoValue),
        #[allow(clippy::cast_precision_loss, reason = "values above 2^53 are documented to lose their last bits")]
        Some(AttributeValue::Int(value)) => Ok(value as f64),
        Some(AttributeValue::Double(value)) => Ok(value),
        Some(AttributeValue::Text(value)) if text == TextNumbers::Decimal => {
            value.trim().parse().map_err(|_| Fate::NotANumber)
        }
        Some(_) => Err(Fate::NotANumber),
    }
}

fn logs(
    records: &OtapArrowRecords,
    attribute: &AttributeRef,
    text: TextNumbers,
    group_by: &[AttributeRef],
    time: TimeSource,
    now: i64,
) -> Result<Observations, ColumnsError> {
    let mut out = Observations::default();
    let Some(root) = records.root_record_batch() else { return Ok(out) };
    let ids = column::<UInt16Array>(root, consts::ID);
    let mut row_of_id = FxHashMap::default();
    if let Some(ids) = ids {
        row_of_id.reserve(ids.len());
        for row in (0..ids.len()).filter(|row| ids.is_valid(*row)) {
            let _ = row_of_id.insert(u32::from(ids.value(row)), row);
        }
    }
    let mut lookup = Lookup::new(std::iter::once(attribute).chain(group_by));
    lookup
        .load(Place::Record, records, ArrowPayloadType::LogAttrs, root.num_rows(), |id| row_of_id.get(&id).copied())?;
    lookup.load_owners(records)?;
    let resources = owner_ids(root, consts::RESOURCE);
    let scopes = owner_ids(root, consts::SCOPE);
    let event = column::<TimestampNanosecondArray>(root, consts::TIME_UNIX_NANO);
    let observed = column::<TimestampNanosecondArray>(root, consts::OBSERVED_TIME_UNIX_NANO);
    let mut index = SeriesIndex::default();
    for row in 0..root.num_rows() {
        let rows = [resources.map(|c| usize::from(c.value(row))), scopes.map(|c| usize::from(c.value(row))), Some(row)];
        let Some(value) = out.judge(number(lookup.value(attribute, rows), text)) else { continue };
        let seen = || time_at(observed, row);
        let at = match time {
            TimeSource::Event => time_at(event, row).or_else(seen),
            TimeSource::Observed => seen(),
        };
        let series = index.of(&lookup, group_by, rows, &mut out.keys);
        out.push(value, at.unwrap_or(now), series);
    }
    Ok(out)
}

/// What the metrics table says about one metric.
#[derive(Clone, Copy)]
enum Metric {
    Wanted { row: usize },
    Other,
    Cumulative,
}

fn metrics_by_id(root: &RecordBatch, names: &[String]) -> Result<FxHashMap<u16, Metric>, ColumnsError> {
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
    let mut metrics = FxHashMap::default();
    for row in 0..root.num_rows() {
        let wanted = metric_names.str_at(row).is_some_and(|name| name_matches(names, name));
        let is_sum = kinds.value(row) == MetricType::Sum as u8;
        let delta = temporality.value_at(row) == Some(AggregationTemporality::Delta as i32);
        let metric = match (wanted, is_sum, delta) {
            (true, true, false) => Metric::Cumulative,
            (true, ..) => Metric::Wanted { row },
            (false, ..) => Metric::Other,
        };
        let _ = metrics.insert(ids.value(row), metric);
    }
    Ok(metrics)
}

fn points(
    records: &OtapArrowRecords,
    names: &[String],
    group_by: &[AttributeRef],
    time: TimeSource,
    now: i64,
) -> Result<Observations, ColumnsError> {
    let mut out = Observations::default();
    let (Some(root), Some(points)) = (records.root_record_batch(), records.get(ArrowPayloadType::NumberDataPoints))
    else {
        return Ok(out);
    };
    let metrics = metrics_by_id(root, names)?;
    let parents = column::<UInt16Array>(points, consts::PARENT_ID)
        .ok_or_else(|| malformed("number data points", "column `parent_id` is missing"))?;
    let point_ids = column::<UInt32Array>(points, consts::ID);
    let mut row_of_id = FxHashMap::default();
    if let Some(ids) = point_ids {
        for row in (0..ids.len()).filter(|row| ids.is_valid(*row)) {
            let _ = row_of_id.insert(ids.value(row), row);
        }
    }
    let mut lookup = Lookup::new(group_by.iter());
    lookup.load(Place::Record, records, ArrowPayloadType::NumberDpAttrs, points.num_rows(), |id| {
        row_of_id.get(&id).copied()
    })?;
    lookup.load_owners(records)?;
    let resources = owner_ids(root, consts::RESOURCE);
    let scopes = owner_ids(root, consts::SCOPE);
    let times = column::<TimestampNanosecondArray>(points, consts::TIME_UNIX_NANO);
    let ints = column::<Int64Array>(points, consts::INT_VALUE);
    let doubles = column::<Float64Array>(points, consts::DOUBLE_VALUE);
    let flags = column::<UInt32Array>(points, consts::FLAGS);
    let mut index = SeriesIndex::default();
    for row in 0..points.num_rows() {
        let metric_row = match metrics.get(&parents.value(row)) {
            Some(Metric::Wanted { row }) => *row,
            Some(Metric::Cumulative) => {
                out.fates.push(Fate::Cumulative);
                continue;
            }
            Some(Metric::Other) | None => {
                out.fates.push(Fate::NoValue);
                continue;
            }
        };
        let Some(value) = out.judge(point_value(ints, doubles, flags, row)) else { continue };
        let at = match time {
            TimeSource::Event => time_at(times, row).unwrap_or(now),
            TimeSource::Observed => now,
        };
        let rows = [
            resources.map(|c| usize::from(c.value(metric_row))),
            scopes.map(|c| usize::from(c.value(metric_row))),
            Some(row),
        ];
        let series = index.of(&lookup, group_by, rows, &mut out.keys);
        out.push(value, at, series);
    }
    Ok(out)
}

fn point_value(
    ints: Option<&Int64Array>,
    doubles: Option<&Float64Array>,
    flags: Option<&UInt32Array>,
    row: usize,
) -> Result<f64, Fate> {
    const NO_RECORDED_VALUE: u32 = DataPointFlags::NoRecordedValueMask as u32;
    if flags.is_some_and(|c| c.is_valid(row) && c.value(row) & NO_RECORDED_VALUE != 0) {
        return Err(Fate::NotANumber);
    }
    if let Some(doubles) = doubles.filter(|c| c.is_valid(row)) {
        return Ok(doubles.value(row));
    }
    #[allow(clippy::cast_precision_loss, reason = "values above 2^53 are documented to lose their last bits")]
    match ints {
        Some(ints) if ints.is_valid(row) => Ok(ints.value(row) as f64),
        _ => Err(Fate::NotANumber),
    }
}

#[cfg(test)]
mod tests;
