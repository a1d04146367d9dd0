//! Log records.

use arrow::array::{FixedSizeBinaryArray, Int32Array, StringArray, StructArray, TimestampNanosecondArray, UInt32Array};
use arrow::datatypes::Fields;
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::consts;

use super::attributes::{AttributeCache, Attributes};
use super::envelope::{Items, is_there, root_id};
use super::sink::Sink;
use super::value::Values;
use crate::encode::error::{EncodeError, MAX_REQUEST_BYTES};
use crate::encode::ids::{self, Ids, field};
use crate::encode::table::{Column, Table, number, value};

const ATTRIBUTES: (ArrowPayloadType, u32) = (ArrowPayloadType::LogAttrs, 6);

/// The columns of log records.
pub(super) struct Logs<'a> {
    ids: Option<Ids<'a>>,
    time: Option<&'a TimestampNanosecondArray>,
    observed: Option<&'a TimestampNanosecondArray>,
    severity: Option<Column<'a, Int32Array>>,
    severity_text: Option<Column<'a, StringArray>>,
    bodies: Option<Bodies<'a>>,
    dropped: Option<&'a UInt32Array>,
    flags: Option<&'a UInt32Array>,
    trace_id: Option<Column<'a, FixedSizeBinaryArray>>,
    span_id: Option<Column<'a, FixedSizeBinaryArray>>,
    event_name: Option<Column<'a, StringArray>>,
    attributes: Attributes,
}

impl<'a> Logs<'a> {
    pub(super) fn new(
        records: &OtapArrowRecords,
        root: Table<'a>,
        fields: &Fields,
        cache: &mut AttributeCache,
    ) -> Result<Self, EncodeError> {
        Ok(Self {
            ids: ids::own(&root, field(fields, &[consts::ID]))?,
            time: root.plain(consts::TIME_UNIX_NANO, "times in nanoseconds")?,
            observed: root.plain(consts::OBSERVED_TIME_UNIX_NANO, "times in nanoseconds")?,
            severity: root.column(consts::SEVERITY_NUMBER, "integers of 32 bits")?,
            severity_text: root.column(consts::SEVERITY_TEXT, "texts")?,
            bodies: Bodies::new(&root)?,
            dropped: root.plain(consts::DROPPED_ATTRIBUTES_COUNT, "numbers of 32 bits")?,
            flags: root.plain(consts::FLAGS, "numbers of 32 bits")?,
            trace_id: root.column(consts::TRACE_ID, "16 bytes")?,
            span_id: root.column(consts::SPAN_ID, "8 bytes")?,
            event_name: root.column(consts::EVENT_NAME, "texts")?,
            attributes: cache.take(records, ATTRIBUTES.0, ATTRIBUTES.1)?,
        })
    }

    pub(super) fn give_back(self, records: &OtapArrowRecords, cache: &mut AttributeCache) {
        cache.put(records, ATTRIBUTES.0, self.attributes);
    }
}

impl Items for Logs<'_> {
    #[inline]
    fn item<S: Sink>(&self, row: usize, sink: &mut S) {
        sink.nonzero_fixed_64(1, number(self.time, row).unwrap_or_default().cast_unsigned());
        // A negative enumerator takes ten bytes: sign-extended.
        sink.nonzero_varint(2, i64::from(value(&self.severity, row).unwrap_or_default()).cast_unsigned());
        sink.nonempty_bytes(3, value(&self.severity_text, row).unwrap_or_default().as_bytes());
        if let Some(body) = self.bodies.as_ref().and_then(|bodies| bodies.get(row)) {
            sink.bytes(5, body);
        }
        sink.raw(self.attributes.of(root_id(&self.ids, row)));
        sink.nonzero_varint(7, u64::from(number(self.dropped, row).unwrap_or_default()));
        sink.nonzero_fixed_32(8, number(self.flags, row).unwrap_or_default());
        sink.nonempty_bytes(9, value(&self.trace_id, row).unwrap_or_default());
        sink.nonempty_bytes(10, value(&self.span_id, row).unwrap_or_default());
        sink.nonzero_fixed_64(11, number(self.observed, row).unwrap_or_default().cast_unsigned());
        sink.nonempty_bytes(12, value(&self.event_name, row).unwrap_or_default().as_bytes());
    }
}

/// Bodies, encoded.
struct Bodies<'a> {
    structure: Option<&'a StructArray>,
    bytes: Vec<u8>,
    /// Where the body of each row ends.
    ends: Vec<u32>,
}

impl<'a> Bodies<'a> {
    fn new(root: &Table<'a>) -> Result<Option<Self>, EncodeError> {
        let (table, structure) = root.structure(consts::BODY)?;
        if structure.is_none() {
            return Ok(None);
        }
        let values = Values::new(table)?;
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(root.rows()));
        for row in 0..root.rows() {
            if is_there(structure, row) {
                values.append(row, &mut bytes)?;
            }
            if bytes.len() > MAX_REQUEST_BYTES {
                return Err(EncodeError::TooLarge { found: bytes.len(), bound: MAX_REQUEST_BYTES });
            }
            ends.push(bytes.len() as u32);
        }
        Ok(Some(Self { structure, bytes, ends }))
    }

    #[inline]
    fn get(&self, row: usize) -> Option<&[u8]> {
        if !is_there(self.structure, row) {
            return None;
        }
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize);
        self.bytes.get(start..*self.ends.get(row)? as usize)
    }
}
