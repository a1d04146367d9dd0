//! Spans with their events and links.

use arrow::array::{
    DurationNanosecondArray, FixedSizeBinaryArray, Int32Array, StringArray, StructArray, TimestampNanosecondArray,
    UInt32Array,
};
use arrow::datatypes::Fields;
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::consts;

use super::attributes::{AttributeCache, Attributes};
use super::envelope::{Items, is_there, root_id};
use super::sink::Sink;
use crate::encode::error::EncodeError;
use crate::encode::ids::{self, Ids, field};
use crate::encode::index::Children;
use crate::encode::table::{Column, Table, number, value};

const SPAN_ATTRIBUTES: (ArrowPayloadType, u32) = (ArrowPayloadType::SpanAttrs, 9);
const EVENT_ATTRIBUTES: (ArrowPayloadType, u32) = (ArrowPayloadType::SpanEventAttrs, 3);
const LINK_ATTRIBUTES: (ArrowPayloadType, u32) = (ArrowPayloadType::SpanLinkAttrs, 4);

/// The columns of spans.
pub(super) struct Spans<'a> {
    ids: Option<Ids<'a>>,
    trace_id: Option<Column<'a, FixedSizeBinaryArray>>,
    span_id: Option<Column<'a, FixedSizeBinaryArray>>,
    trace_state: Option<Column<'a, StringArray>>,
    parent_span_id: Option<Column<'a, FixedSizeBinaryArray>>,
    name: Option<Column<'a, StringArray>>,
    kind: Option<Column<'a, Int32Array>>,
    start: Option<&'a TimestampNanosecondArray>,
    duration: Option<Column<'a, DurationNanosecondArray>>,
    dropped_attributes: Option<&'a UInt32Array>,
    dropped_events: Option<&'a UInt32Array>,
    dropped_links: Option<&'a UInt32Array>,
    flags: Option<&'a UInt32Array>,
    status: Option<&'a StructArray>,
    status_code: Option<Column<'a, Int32Array>>,
    status_message: Option<Column<'a, StringArray>>,
    attributes: Attributes,
    events: Option<Events<'a>>,
    links: Option<Links<'a>>,
}

impl<'a> Spans<'a> {
    pub(super) fn new(
        records: &'a OtapArrowRecords,
        root: Table<'a>,
        fields: &Fields,
        cache: &mut AttributeCache,
    ) -> Result<Self, EncodeError> {
        let (status, structure) = root.structure(consts::STATUS)?;
        Ok(Self {
            ids: ids::own(&root, field(fields, &[consts::ID]))?,
            trace_id: root.column(consts::TRACE_ID, "16 bytes")?,
            span_id: root.column(consts::SPAN_ID, "8 bytes")?,
            trace_state: root.column(consts::TRACE_STATE, "texts")?,
            parent_span_id: root.column(consts::PARENT_SPAN_ID, "8 bytes")?,
            name: root.column(consts::NAME, "texts")?,
            kind: root.column(consts::KIND, "integers of 32 bits")?,
            start: root.plain(consts::START_TIME_UNIX_NANO, "times in nanoseconds")?,
            duration: root.column(consts::DURATION_TIME_UNIX_NANO, "durations in nanoseconds")?,
            dropped_attributes: root.plain(consts::DROPPED_ATTRIBUTES_COUNT, "numbers of 32 bits")?,
            dropped_events: root.plain(consts::DROPPED_EVENTS_COUNT, "numbers of 32 bits")?,
            dropped_links: root.plain(consts::DROPPED_LINKS_COUNT, "numbers of 32 bits")?,
            flags: root.plain(consts::FLAGS, "numbers of 32 bits")?,
            status: structure,
            status_code: status.column(consts::STATUS_CODE, "integers of 32 bits")?,
            status_message: status.column(consts::STATUS_MESSAGE, "texts")?,
            attributes: cache.take(records, SPAN_ATTRIBUTES.0, SPAN_ATTRIBUTES.1)?,
            events: Events::new(records, cache)?,
            links: Links::new(records, cache)?,
        })
    }

    pub(super) fn give_back(self, records: &OtapArrowRecords, cache: &mut AttributeCache) {
        cache.put(records, SPAN_ATTRIBUTES.0, self.attributes);
        if let Some(events) = self.events {
            cache.put(records, EVENT_ATTRIBUTES.0, events.attributes);
        }
        if let Some(links) = self.links {
            cache.put(records, LINK_ATTRIBUTES.0, links.attributes);
        }
    }
}

impl Items for Spans<'_> {
    fn item<S: Sink>(&self, row: usize, sink: &mut S) {
        let id = root_id(&self.ids, row);
        sink.nonempty_bytes(1, value(&self.trace_id, row).unwrap_or_default());
        sink.nonempty_bytes(2, value(&self.span_id, row).unwrap_or_default());
        sink.nonempty_bytes(3, value(&self.trace_state, row).unwrap_or_default().as_bytes());
        sink.nonempty_bytes(4, value(&self.parent_span_id, row).unwrap_or_default());
        sink.nonempty_bytes(5, value(&self.name, row).unwrap_or_default().as_bytes());
        sink.nonzero_varint(6, i64::from(value(&self.kind, row).unwrap_or_default()).cast_unsigned());
        let start = number(self.start, row).unwrap_or_default();
        sink.nonzero_fixed_64(7, start.cast_unsigned());
        let end = start.wrapping_add(value(&self.duration, row).unwrap_or_default());
        sink.nonzero_fixed_64(8, end.cast_unsigned());
        sink.raw(self.attributes.of(id));
        sink.nonzero_varint(10, u64::from(number(self.dropped_attributes, row).unwrap_or_default()));
        if let Some((events, id)) = self.events.as_ref().zip(id) {
            events.rows.of(id).for_each(|row| sink.message(11, |sink| events.event(row, sink)));
        }
        sink.nonzero_varint(12, u64::from(number(self.dropped_events, row).unwrap_or_default()));
        if let Some((links, id)) = self.links.as_ref().zip(id) {
            links.rows.of(id).for_each(|row| sink.message(13, |sink| links.link(row, sink)));
        }
        sink.nonzero_varint(14, u64::from(number(self.dropped_links, row).unwrap_or_default()));
        if is_there(self.status, row) {
            sink.message(15, |sink| {
                sink.nonempty_bytes(2, value(&self.status_message, row).unwrap_or_default().as_bytes());
                sink.nonzero_varint(3, i64::from(value(&self.status_code, row).unwrap_or_default()).cast_unsigned());
            });
        }
        sink.nonzero_fixed_32(16, number(self.flags, row).unwrap_or_default());
    }
}

/// The columns of span events.
struct Events<'a> {
    rows: Children,
    ids: Option<Ids<'a>>,
    time: Option<&'a TimestampNanosecondArray>,
    name: Option<Column<'a, StringArray>>,
    dropped: Option<&'a UInt32Array>,
    attributes: Attributes,
}

impl<'a> Events<'a> {
    fn new(records: &'a OtapArrowRecords, cache: &mut AttributeCache) -> Result<Option<Self>, EncodeError> {
        let kind = ArrowPayloadType::SpanEvents;
        let Some((table, batch)) = Table::of(records, kind).zip(records.get(kind)) else { return Ok(None) };
        let fields = batch.schema_ref().fields();
        Ok(Some(Self {
            rows: Children::new(&ids::parents(&table, field(fields, &[consts::PARENT_ID]))?),
            ids: ids::own(&table, field(fields, &[consts::ID]))?,
            time: table.plain(consts::TIME_UNIX_NANO, "times in nanoseconds")?,
            name: table.column(consts::NAME, "texts")?,
            dropped: table.plain(consts::DROPPED_ATTRIBUTES_COUNT, "numbers of 32 bits")?,
            attributes: cache.take(records, EVENT_ATTRIBUTES.0, EVENT_ATTRIBUTES.1)?,
        }))
    }

    fn event<S: Sink>(&self, row: usize, sink: &mut S) {
        sink.nonzero_fixed_64(1, number(self.time, row).unwrap_or_default().cast_unsigned());
        sink.nonempty_bytes(2, value(&self.name, row).unwrap_or_default().as_bytes());
        sink.raw(self.attributes.of(root_id(&self.ids, row)));
        sink.nonzero_varint(4, u64::from(number(self.dropped, row).unwrap_or_default()));
    }
}

/// The columns of span links.
struct Links<'a> {
    rows: Children,
    ids: Option<Ids<'a>>,
    trace_id: Option<Column<'a, FixedSizeBinaryArray>>,
    span_id: Option<Column<'a, FixedSizeBinaryArray>>,
    trace_state: Option<Column<'a, StringArray>>,
    dropped: Option<&'a UInt32Array>,
    flags: Option<&'a UInt32Array>,
    attributes: Attributes,
}

impl<'a> Links<'a> {
    fn new(records: &'a OtapArrowRecords, cache: &mut AttributeCache) -> Result<Option<Self>, EncodeError> {
        let kind = ArrowPayloadType::SpanLinks;
        let Some((table, batch)) = Table::of(records, kind).zip(records.get(kind)) else { return Ok(None) };
        let fields = batch.schema_ref().fields();
        Ok(Some(Self {
            rows: Children::new(&ids::parents(&table, field(fields, &[consts::PARENT_ID]))?),
            ids: ids::own(&table, field(fields, &[consts::ID]))?,
            trace_id: table.column(consts::TRACE_ID, "16 bytes")?,
            span_id: table.column(consts::SPAN_ID, "8 bytes")?,
            trace_state: table.column(consts::TRACE_STATE, "texts")?,
            dropped: table.plain(consts::DROPPED_ATTRIBUTES_COUNT, "numbers of 32 bits")?,
            flags: table.plain(consts::FLAGS, "numbers of 32 bits")?,
            attributes: cache.take(records, LINK_ATTRIBUTES.0, LINK_ATTRIBUTES.1)?,
        }))
    }

    fn link<S: Sink>(&self, row: usize, sink: &mut S) {
        sink.nonempty_bytes(1, value(&self.trace_id, row).unwrap_or_default());
        sink.nonempty_bytes(2, value(&self.span_id, row).unwrap_or_default());
        sink.nonempty_bytes(3, value(&self.trace_state, row).unwrap_or_default().as_bytes());
        sink.raw(self.attributes.of(root_id(&self.ids, row)));
        sink.nonzero_varint(5, u64::from(number(self.dropped, row).unwrap_or_default()));
        sink.nonzero_fixed_32(6, number(self.flags, row).unwrap_or_default());
    }
}
