//! Exemplars of points.

use arrow::array::{FixedSizeBinaryArray, Float64Array, Int64Array, TimestampNanosecondArray};
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::consts;

use super::attributes::{AttributeCache, Attributes};
use super::envelope::root_id;
use super::sink::Sink;
use crate::encode::error::EncodeError;
use crate::encode::ids::{self, Ids, field};
use crate::encode::index::Children;
use crate::encode::table::{Column, Table, number, value};

/// The columns of exemplars.
pub(super) struct Exemplars<'a> {
    rows: Children,
    ids: Option<Ids<'a>>,
    time: Option<&'a TimestampNanosecondArray>,
    int: Option<Column<'a, Int64Array>>,
    double: Option<&'a Float64Array>,
    span_id: Option<Column<'a, FixedSizeBinaryArray>>,
    trace_id: Option<Column<'a, FixedSizeBinaryArray>>,
    attributes: Attributes,
    attribute_table: ArrowPayloadType,
}

impl<'a> Exemplars<'a> {
    /// The exemplars in `kind`, with the attributes in `attribute_table`; nothing if there are none.
    pub(super) fn new(
        records: &'a OtapArrowRecords,
        kind: ArrowPayloadType,
        attribute_table: ArrowPayloadType,
        cache: &mut AttributeCache,
    ) -> Result<Option<Self>, EncodeError> {
        let Some((table, batch)) = Table::of(records, kind).zip(records.get(kind)) else { return Ok(None) };
        let fields = batch.schema_ref().fields();
        Ok(Some(Self {
            rows: Children::new(&ids::parents(&table, field(fields, &[consts::PARENT_ID]))?),
            ids: ids::own(&table, field(fields, &[consts::ID]))?,
            time: table.plain(consts::TIME_UNIX_NANO, "times in nanoseconds")?,
            int: table.column(consts::INT_VALUE, "integers of 64 bits")?,
            double: table.plain(consts::DOUBLE_VALUE, "floating point numbers")?,
            span_id: table.column(consts::SPAN_ID, "8 bytes")?,
            trace_id: table.column(consts::TRACE_ID, "16 bytes")?,
            attributes: cache.take(records, attribute_table, 7)?,
            attribute_table,
        }))
    }

    pub(super) fn give_back(self, records: &OtapArrowRecords, cache: &mut AttributeCache) {
        cache.put(records, self.attribute_table, self.attributes);
    }

    /// Writes the exemplars of a point into `field` of it.
    pub(super) fn write<S: Sink>(&self, point: u32, field: u32, sink: &mut S) {
        self.rows.of(point).for_each(|row| {
            sink.message(field, |sink| {
                sink.nonzero_fixed_64(2, number(self.time, row).unwrap_or_default().cast_unsigned());
                match (number(self.double, row), value(&self.int, row)) {
                    (Some(value), _) => sink.fixed_64(3, value.to_bits()),
                    (None, Some(value)) => sink.fixed_64(6, value.cast_unsigned()),
                    (None, None) => {}
                }
                sink.nonempty_bytes(4, value(&self.span_id, row).unwrap_or_default());
                sink.nonempty_bytes(5, value(&self.trace_id, row).unwrap_or_default());
                sink.raw(self.attributes.of(root_id(&self.ids, row)));
            });
        });
    }
}
