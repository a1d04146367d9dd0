//! Points of metrics of all kinds, with their exemplars.

use arrow::array::{
    Array, Float64Array, Int32Array, Int64Array, ListArray, StructArray, TimestampNanosecondArray, UInt32Array,
    UInt64Array,
};
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::consts;

use super::attributes::{AttributeCache, Attributes};
use super::envelope::{is_there, root_id};
use super::exemplars::Exemplars;
use super::sink::Sink;
use crate::encode::error::EncodeError;
use crate::encode::ids::{self, Ids, field};
use crate::encode::index::Children;
use crate::encode::table::{Table, list, number};

/// What points of a kind have beside what all have.
pub(super) trait PointKind<'a>: Sized {
    /// Their table and those of their attributes and exemplars.
    const TABLE: ArrowPayloadType;
    const ATTRIBUTES: ArrowPayloadType;
    /// Table of exemplars and of their attributes.
    const EXEMPLARS: Option<(ArrowPayloadType, ArrowPayloadType)>;
    /// Field numbers of attributes and exemplars in the point.
    const ATTRIBUTES_FIELD: u32;
    const EXEMPLARS_FIELD: u32;
    /// Field number of the flags.
    const FLAGS_FIELD: u32;

    fn new(table: &Table<'a>) -> Result<Self, EncodeError>;

    fn write<S: Sink>(&self, row: usize, sink: &mut S);
}

/// Points of one kind.
pub(super) struct Points<'a, K> {
    rows: Children,
    ids: Option<Ids<'a>>,
    start: Option<&'a TimestampNanosecondArray>,
    time: Option<&'a TimestampNanosecondArray>,
    flags: Option<&'a UInt32Array>,
    attributes: Attributes,
    exemplars: Option<Exemplars<'a>>,
    kind: K,
}

impl<'a, K: PointKind<'a>> Points<'a, K> {
    /// The points of the records; nothing if there are none.
    pub(super) fn new(records: &'a OtapArrowRecords, cache: &mut AttributeCache) -> Result<Option<Self>, EncodeError> {
        let Some((table, batch)) = Table::of(records, K::TABLE).zip(records.get(K::TABLE)) else { return Ok(None) };
        let fields = batch.schema_ref().fields();
        let exemplars = match K::EXEMPLARS {
            Some((table, attributes)) => Exemplars::new(records, table, attributes, cache)?,
            None => None,
        };
        Ok(Some(Self {
            rows: Children::new(&ids::parents(&table, field(fields, &[consts::PARENT_ID]))?),
            ids: ids::own(&table, field(fields, &[consts::ID]))?,
            start: table.plain(consts::START_TIME_UNIX_NANO, "times in nanoseconds")?,
            time: table.plain(consts::TIME_UNIX_NANO, "times in nanoseconds")?,
            flags: table.plain(consts::FLAGS, "numbers of 32 bits")?,
            attributes: cache.take(records, K::ATTRIBUTES, K::ATTRIBUTES_FIELD)?,
            exemplars,
            kind: K::new(&table)?,
        }))
    }

    pub(super) fn give_back(points: Option<Self>, records: &OtapArrowRecords, cache: &mut AttributeCache) {
        if let Some(points) = points {
            cache.put(records, K::ATTRIBUTES, points.attributes);
            if let Some(exemplars) = points.exemplars {
                exemplars.give_back(records, cache);
            }
        }
    }

    /// Writes the points of a metric.
    pub(super) fn write<S: Sink>(points: &Option<Self>, metric: Option<u32>, sink: &mut S) {
        let Some((points, metric)) = points.as_ref().zip(metric) else { return };
        points.rows.of(metric).for_each(|row| sink.message(1, |sink| points.point(row, sink)));
    }

    #[inline]
    fn point<S: Sink>(&self, row: usize, sink: &mut S) {
        let id = root_id(&self.ids, row);
        sink.raw(self.attributes.of(id));
        sink.nonzero_fixed_64(2, number(self.start, row).unwrap_or_default().cast_unsigned());
        sink.nonzero_fixed_64(3, number(self.time, row).unwrap_or_default().cast_unsigned());
        self.kind.write(row, sink);
        if let Some((exemplars, id)) = self.exemplars.as_ref().zip(id) {
            exemplars.write(id, K::EXEMPLARS_FIELD, sink);
        }
        sink.nonzero_varint(K::FLAGS_FIELD, u64::from(number(self.flags, row).unwrap_or_default()));
    }
}

/// A field of a number that may be absent, unlike one that is 0 then.
#[inline]
fn optional<S: Sink>(sink: &mut S, field: u32, column: Option<&Float64Array>, row: usize) {
    if let Some(value) = number(column, row) {
        sink.fixed_64(field, value.to_bits());
    }
}

/// A signed number as readers of `sint32` expect it.
fn zigzag(value: i32) -> u64 {
    u64::from((value << 1 ^ value >> 31).cast_unsigned())
}

/// Numbers: points of gauges and sums.
pub(super) struct Numbers<'a> {
    int: Option<&'a Int64Array>,
    double: Option<&'a Float64Array>,
}

impl<'a> PointKind<'a> for Numbers<'a> {
    const TABLE: ArrowPayloadType = ArrowPayloadType::NumberDataPoints;
    const ATTRIBUTES: ArrowPayloadType = ArrowPayloadType::NumberDpAttrs;
    const EXEMPLARS: Option<(ArrowPayloadType, ArrowPayloadType)> =
        Some((ArrowPayloadType::NumberDpExemplars, ArrowPayloadType::NumberDpExemplarAttrs));
    const ATTRIBUTES_FIELD: u32 = 7;
    const EXEMPLARS_FIELD: u32 = 5;
    const FLAGS_FIELD: u32 = 8;

    fn new(table: &Table<'a>) -> Result<Self, EncodeError> {
        Ok(Self {
            int: table.plain(consts::INT_VALUE, "integers of 64 bits")?,
            double: table.plain(consts::DOUBLE_VALUE, "floating point numbers")?,
        })
    }

    #[inline]
    fn write<S: Sink>(&self, row: usize, sink: &mut S) {
        match (number(self.double, row), number(self.int, row)) {
            (Some(value), _) => sink.fixed_64(4, value.to_bits()),
            (None, Some(value)) => sink.fixed_64(6, value.cast_unsigned()),
            (None, None) => {}
        }
    }
}

/// The numbers of a list.
#[derive(Debug)]
struct Listed<'a, A> {
    list: &'a ListArray,
    items: &'a A,
}

impl<'a, A: Array + 'static> Listed<'a, A> {
    fn new(table: &Table<'a>, name: &'static str, expected: &'static str) -> Result<Option<Self>, EncodeError> {
        let Some(list) = table.plain::<ListArray>(name, "lists")? else { return Ok(None) };
        let items = list.values().as_any().downcast_ref::<A>();
        let items = items.ok_or_else(|| table.wrong_type(name, list.data_type(), expected))?;
        Ok(Some(Self { list, items }))
    }

    fn range(this: &Option<Self>, row: usize) -> std::ops::Range<usize> {
        list(this.as_ref().map(|this| this.list), row).unwrap_or_default()
    }
}

/// Numbers of 64 bits as they are, one after another.
fn packed<S: Sink>(sink: &mut S, field: u32, values: &[u64]) {
    if !values.is_empty() {
        sink.message(field, |sink| values.iter().for_each(|value| sink.raw_64(*value)));
    }
}

/// What both kinds of histograms have beside their buckets.
struct Totals<'a> {
    count: Option<&'a UInt64Array>,
    sum: Option<&'a Float64Array>,
    min: Option<&'a Float64Array>,
    max: Option<&'a Float64Array>,
}

impl<'a> Totals<'a> {
    fn new(table: &Table<'a>) -> Result<Self, EncodeError> {
        Ok(Self {
            count: table.plain(consts::HISTOGRAM_COUNT, "numbers of 64 bits")?,
            sum: table.plain(consts::HISTOGRAM_SUM, "floating point numbers")?,
            min: table.plain(consts::HISTOGRAM_MIN, "floating point numbers")?,
            max: table.plain(consts::HISTOGRAM_MAX, "floating point numbers")?,
        })
    }

    fn write<S: Sink>(&self, row: usize, sink: &mut S) {
        sink.nonzero_fixed_64(4, number(self.count, row).unwrap_or_default());
        optional(sink, 5, self.sum, row);
    }

    /// Smallest and largest value, in this field and the next.
    fn write_range<S: Sink>(&self, field: u32, row: usize, sink: &mut S) {
        optional(sink, field, self.min, row);
        optional(sink, field + 1, self.max, row);
    }
}

/// Points of histograms.
pub(super) struct Histograms<'a> {
    totals: Totals<'a>,
    counts: Option<Listed<'a, UInt64Array>>,
    bounds: Option<Listed<'a, Float64Array>>,
}

impl<'a> PointKind<'a> for Histograms<'a> {
    const TABLE: ArrowPayloadType = ArrowPayloadType::HistogramDataPoints;
    const ATTRIBUTES: ArrowPayloadType = ArrowPayloadType::HistogramDpAttrs;
    const EXEMPLARS: Option<(ArrowPayloadType, ArrowPayloadType)> =
        Some((ArrowPayloadType::HistogramDpExemplars, ArrowPayloadType::HistogramDpExemplarAttrs));
    const ATTRIBUTES_FIELD: u32 = 9;
    const EXEMPLARS_FIELD: u32 = 8;
    const FLAGS_FIELD: u32 = 10;

    fn new(table: &Table<'a>) -> Result<Self, EncodeError> {
        Ok(Self {
            totals: Totals::new(table)?,
            counts: Listed::new(table, consts::HISTOGRAM_BUCKET_COUNTS, "lists of numbers of 64 bits")?,
            bounds: Listed::new(table, consts::HISTOGRAM_EXPLICIT_BOUNDS, "lists of floating point numbers")?,
        })
    }

    fn write<S: Sink>(&self, row: usize, sink: &mut S) {
        self.totals.write(row, sink);
        if let Some(counts) = &self.counts {
            packed(sink, 6, counts.items.values().get(Listed::range(&self.counts, row)).unwrap_or_default());
        }
        if let Some(bounds) = &self.bounds
            && let Some(bounds) = bounds.items.values().get(Listed::range(&self.bounds, row))
            && !bounds.is_empty()
        {
            sink.message(7, |sink| bounds.iter().for_each(|bound| sink.raw_64(bound.to_bits())));
        }
        self.totals.write_range(11, row, sink);
    }
}

/// Buckets of one sign of an exponential histogram.
struct Buckets<'a> {
    structure: Option<&'a StructArray>,
    offset: Option<&'a Int32Array>,
    counts: Option<Listed<'a, UInt64Array>>,
}

impl<'a> Buckets<'a> {
    fn new(table: &Table<'a>, name: &'static str) -> Result<Self, EncodeError> {
        let (table, structure) = table.structure(name)?;
        Ok(Self {
            structure,
            offset: table.plain(consts::EXP_HISTOGRAM_OFFSET, "integers of 32 bits")?,
            counts: Listed::new(&table, consts::EXP_HISTOGRAM_BUCKET_COUNTS, "lists of numbers of 64 bits")?,
        })
    }

    fn write<S: Sink>(&self, field: u32, row: usize, sink: &mut S) {
        if !is_there(self.structure, row) {
            return;
        }
        sink.message(field, |sink| {
            sink.nonzero_varint(1, zigzag(number(self.offset, row).unwrap_or_default()));
            let counts = self.counts.as_ref().map(|counts| counts.items.values().as_ref());
            let counts: &[u64] =
                counts.and_then(|all: &[u64]| all.get(Listed::range(&self.counts, row))).unwrap_or_default();
            if !counts.is_empty() {
                sink.message(2, |sink| counts.iter().for_each(|count| sink.varint(*count)));
            }
        });
    }
}

/// Points of exponential histograms.
pub(super) struct ExpHistograms<'a> {
    totals: Totals<'a>,
    scale: Option<&'a Int32Array>,
    zero_count: Option<&'a UInt64Array>,
    zero_threshold: Option<&'a Float64Array>,
    positive: Buckets<'a>,
    negative: Buckets<'a>,
}

impl<'a> PointKind<'a> for ExpHistograms<'a> {
    const TABLE: ArrowPayloadType = ArrowPayloadType::ExpHistogramDataPoints;
    const ATTRIBUTES: ArrowPayloadType = ArrowPayloadType::ExpHistogramDpAttrs;
    const EXEMPLARS: Option<(ArrowPayloadType, ArrowPayloadType)> =
        Some((ArrowPayloadType::ExpHistogramDpExemplars, ArrowPayloadType::ExpHistogramDpExemplarAttrs));
    const ATTRIBUTES_FIELD: u32 = 1;
    const EXEMPLARS_FIELD: u32 = 11;
    const FLAGS_FIELD: u32 = 10;

    fn new(table: &Table<'a>) -> Result<Self, EncodeError> {
        Ok(Self {
            totals: Totals::new(table)?,
            scale: table.plain(consts::EXP_HISTOGRAM_SCALE, "integers of 32 bits")?,
            zero_count: table.plain(consts::EXP_HISTOGRAM_ZERO_COUNT, "numbers of 64 bits")?,
            zero_threshold: table.plain(consts::EXP_HISTOGRAM_ZERO_THRESHOLD, "floating point numbers")?,
            positive: Buckets::new(table, consts::EXP_HISTOGRAM_POSITIVE)?,
            negative: Buckets::new(table, consts::EXP_HISTOGRAM_NEGATIVE)?,
        })
    }

    fn write<S: Sink>(&self, row: usize, sink: &mut S) {
        self.totals.write(row, sink);
        sink.nonzero_varint(6, zigzag(number(self.scale, row).unwrap_or_default()));
        sink.nonzero_fixed_64(7, number(self.zero_count, row).unwrap_or_default());
        self.positive.write(8, row, sink);
        self.negative.write(9, row, sink);
        self.totals.write_range(12, row, sink);
        sink.nonzero_fixed_64(14, number(self.zero_threshold, row).unwrap_or_default().to_bits());
    }
}

/// Points of summaries.
pub(super) struct Summaries<'a> {
    count: Option<&'a UInt64Array>,
    sum: Option<&'a Float64Array>,
    quantiles: Option<Listed<'a, StructArray>>,
    quantile: Option<&'a Float64Array>,
    value: Option<&'a Float64Array>,
}

impl<'a> PointKind<'a> for Summaries<'a> {
    const TABLE: ArrowPayloadType = ArrowPayloadType::SummaryDataPoints;
    const ATTRIBUTES: ArrowPayloadType = ArrowPayloadType::SummaryDpAttrs;
    const EXEMPLARS: Option<(ArrowPayloadType, ArrowPayloadType)> = None;
    const ATTRIBUTES_FIELD: u32 = 7;
    const EXEMPLARS_FIELD: u32 = 0;
    const FLAGS_FIELD: u32 = 8;

    fn new(table: &Table<'a>) -> Result<Self, EncodeError> {
        let quantiles: Option<Listed<'a, StructArray>> =
            Listed::new(table, consts::SUMMARY_QUANTILE_VALUES, "lists of structures")?;
        let column = |name: &'static str| -> Result<Option<&'a Float64Array>, EncodeError> {
            let Some(array) = quantiles.as_ref().and_then(|listed| listed.items.column_by_name(name)) else {
                return Ok(None);
            };
            let typed = array.as_any().downcast_ref();
            typed.map(Some).ok_or_else(|| table.wrong_type(name, array.data_type(), "floating point numbers"))
        };
        Ok(Self {
            count: table.plain(consts::SUMMARY_COUNT, "numbers of 64 bits")?,
            sum: table.plain(consts::SUMMARY_SUM, "floating point numbers")?,
            quantile: column(consts::SUMMARY_QUANTILE)?,
            value: column(consts::SUMMARY_VALUE)?,
            quantiles,
        })
    }

    fn write<S: Sink>(&self, row: usize, sink: &mut S) {
        sink.nonzero_fixed_64(4, number(self.count, row).unwrap_or_default());
        sink.nonzero_fixed_64(5, number(self.sum, row).unwrap_or_default().to_bits());
        Listed::range(&self.quantiles, row).for_each(|item| {
            sink.message(6, |sink| {
                sink.nonzero_fixed_64(1, number(self.quantile, item).unwrap_or_default().to_bits());
                sink.nonzero_fixed_64(2, number(self.value, item).unwrap_or_default().to_bits());
            });
        });
    }
}
