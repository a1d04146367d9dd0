//! Metrics, without what their points have by kind.

use arrow::array::{BooleanArray, Int32Array, StringArray, UInt8Array};
use arrow::datatypes::Fields;
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::consts;

use super::attributes::{AttributeCache, Attributes};
use super::envelope::{Items, root_id};
use super::points::{ExpHistograms, Histograms, Numbers, Points, Summaries};
use super::sink::Sink;
use crate::encode::error::EncodeError;
use crate::encode::ids::{self, Ids, field};
use crate::encode::table::{Column, Table, number, value};

const METADATA: (ArrowPayloadType, u32) = (ArrowPayloadType::MetricAttrs, 12);

/// Kinds of metrics by their numbers in OTAP.
const GAUGE: u8 = 1;
const SUM: u8 = 2;
const HISTOGRAM: u8 = 3;
const EXP_HISTOGRAM: u8 = 4;
const SUMMARY: u8 = 5;

/// The columns of metrics.
pub(super) struct Metrics<'a> {
    ids: Option<Ids<'a>>,
    kind: &'a UInt8Array,
    name: Option<Column<'a, StringArray>>,
    description: Option<Column<'a, StringArray>>,
    unit: Option<Column<'a, StringArray>>,
    temporality: Option<Column<'a, Int32Array>>,
    monotonic: Option<&'a BooleanArray>,
    metadata: Attributes,
    numbers: Option<Points<'a, Numbers<'a>>>,
    histograms: Option<Points<'a, Histograms<'a>>>,
    exp_histograms: Option<Points<'a, ExpHistograms<'a>>>,
    summaries: Option<Points<'a, Summaries<'a>>>,
}

impl<'a> Metrics<'a> {
    pub(super) fn new(
        records: &'a OtapArrowRecords,
        root: Table<'a>,
        fields: &Fields,
        cache: &mut AttributeCache,
    ) -> Result<Self, EncodeError> {
        let kind: &UInt8Array = root.required(consts::METRIC_TYPE, "numbers of 8 bits")?;
        if let Some(row) = kind.values().iter().position(|kind| *kind > SUMMARY) {
            return Err(EncodeError::Value {
                table: root.kind,
                column: consts::METRIC_TYPE,
                row,
                found: kind.value(row).to_string(),
                expected: "0 to 5",
            });
        }
        Ok(Self {
            ids: ids::own(&root, field(fields, &[consts::ID]))?,
            kind,
            name: root.column(consts::NAME, "texts")?,
            description: root.column(consts::DESCRIPTION, "texts")?,
            unit: root.column(consts::UNIT, "texts")?,
            temporality: root.column(consts::AGGREGATION_TEMPORALITY, "integers of 32 bits")?,
            monotonic: root.plain(consts::IS_MONOTONIC, "booleans")?,
            metadata: cache.take(records, METADATA.0, METADATA.1)?,
            numbers: Points::new(records, cache)?,
            histograms: Points::new(records, cache)?,
            exp_histograms: Points::new(records, cache)?,
            summaries: Points::new(records, cache)?,
        })
    }

    pub(super) fn give_back(self, records: &OtapArrowRecords, cache: &mut AttributeCache) {
        cache.put(records, METADATA.0, self.metadata);
        Points::give_back(self.numbers, records, cache);
        Points::give_back(self.histograms, records, cache);
        Points::give_back(self.exp_histograms, records, cache);
        Points::give_back(self.summaries, records, cache);
    }

    fn temporality<S: Sink>(&self, row: usize, sink: &mut S) {
        sink.nonzero_varint(2, i64::from(value(&self.temporality, row).unwrap_or_default()).cast_unsigned());
    }
}

impl Items for Metrics<'_> {
    fn item<S: Sink>(&self, row: usize, sink: &mut S) {
        let id = root_id(&self.ids, row);
        sink.nonempty_bytes(1, value(&self.name, row).unwrap_or_default().as_bytes());
        sink.nonempty_bytes(2, value(&self.description, row).unwrap_or_default().as_bytes());
        sink.nonempty_bytes(3, value(&self.unit, row).unwrap_or_default().as_bytes());
        match number(Some(self.kind), row) {
            Some(GAUGE) => sink.message(5, |sink| Points::write(&self.numbers, id, sink)),
            Some(SUM) => sink.message(7, |sink| {
                Points::write(&self.numbers, id, sink);
                self.temporality(row, sink);
                let monotonic = self.monotonic.is_some_and(|array| {
                    use arrow::array::Array as _;
                    array.is_valid(row) && array.value(row)
                });
                sink.nonzero_varint(3, u64::from(monotonic));
            }),
            Some(HISTOGRAM) => sink.message(9, |sink| {
                Points::write(&self.histograms, id, sink);
                self.temporality(row, sink);
            }),
            Some(EXP_HISTOGRAM) => sink.message(10, |sink| {
                Points::write(&self.exp_histograms, id, sink);
                self.temporality(row, sink);
            }),
            Some(SUMMARY) => sink.message(11, |sink| Points::write(&self.summaries, id, sink)),
            _ => {}
        }
        sink.raw(self.metadata.of(id));
    }
}
