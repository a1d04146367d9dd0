//! Streams of OTAP (OTAP specification, `BatchArrowRecords`): batches as a gRPC stream has them.
//!
//! A stream keeps what its receiver knows: a schema for each table, and dictionaries, which grow. Columns stand in the
//! order of the protocol; a table changes its schema, and thus its stream within the stream, only if a column comes up that
//! it did not have, or if a dictionary needs wider keys or does not pay any more. Ids are numbered anew from 0 on and sent
//! in the encodings that readers expect where nothing is said: differences.
//!
//! Tables and buffers that are those of the batch before are not compressed again.

mod arrange;
mod column;
mod compress;
mod dictionary;
mod entries;
mod idmap;
mod ipc;
mod keys;
mod parents;
mod root;
mod table;

use bytes::Bytes;
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;

use self::compress::Compressor;
use self::ipc::MessageWriter;
use self::root::Root;
use self::table::{Context, MAX_ROOT_ROWS, Maps, StreamTable};
use super::error::{EncodeError, MAX_REQUEST_BYTES};
use super::otlp::wire::{length_tag, push_varint, varint_bytes};
use super::signal_name;
use crate::payload::StreamTally;

/// How a stream is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtapSettings {
    /// Level of zstd for each buffer, 1 to 22; `None` sends buffers as they are.
    pub zstd_level: Option<i32>,
}

impl Default for OtapSettings {
    fn default() -> Self {
        Self { zstd_level: Some(1) }
    }
}

/// Whose ids the parent ids of a table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parents {
    Resources,
    Scopes,
    Root,
    Of(ArrowPayloadType),
}

/// The tables of a signal after the root, parents first.
fn tables(records: &OtapArrowRecords) -> (ArrowPayloadType, &'static [(ArrowPayloadType, Parents)]) {
    use ArrowPayloadType as Type;
    match records {
        OtapArrowRecords::Logs(_) => (
            Type::Logs,
            &[
                (Type::ResourceAttrs, Parents::Resources),
                (Type::ScopeAttrs, Parents::Scopes),
                (Type::LogAttrs, Parents::Root),
            ],
        ),
        OtapArrowRecords::Traces(_) => (
            Type::Spans,
            &[
                (Type::ResourceAttrs, Parents::Resources),
                (Type::ScopeAttrs, Parents::Scopes),
                (Type::SpanAttrs, Parents::Root),
                (Type::SpanEvents, Parents::Root),
                (Type::SpanLinks, Parents::Root),
                (Type::SpanEventAttrs, Parents::Of(Type::SpanEvents)),
                (Type::SpanLinkAttrs, Parents::Of(Type::SpanLinks)),
            ],
        ),
        OtapArrowRecords::Metrics(_) => (
            Type::UnivariateMetrics,
            &[
                (Type::ResourceAttrs, Parents::Resources),
                (Type::ScopeAttrs, Parents::Scopes),
                (Type::MetricAttrs, Parents::Root),
                (Type::NumberDataPoints, Parents::Root),
                (Type::SummaryDataPoints, Parents::Root),
                (Type::HistogramDataPoints, Parents::Root),
                (Type::ExpHistogramDataPoints, Parents::Root),
                (Type::NumberDpAttrs, Parents::Of(Type::NumberDataPoints)),
                (Type::SummaryDpAttrs, Parents::Of(Type::SummaryDataPoints)),
                (Type::HistogramDpAttrs, Parents::Of(Type::HistogramDataPoints)),
                (Type::ExpHistogramDpAttrs, Parents::Of(Type::ExpHistogramDataPoints)),
                (Type::NumberDpExemplars, Parents::Of(Type::NumberDataPoints)),
                (Type::HistogramDpExemplars, Parents::Of(Type::HistogramDataPoints)),
                (Type::ExpHistogramDpExemplars, Parents::Of(Type::ExpHistogramDataPoints)),
                (Type::NumberDpExemplarAttrs, Parents::Of(Type::NumberDpExemplars)),
                (Type::HistogramDpExemplarAttrs, Parents::Of(Type::HistogramDpExemplars)),
                (Type::ExpHistogramDpExemplarAttrs, Parents::Of(Type::ExpHistogramDpExemplars)),
            ],
        ),
    }
}

/// The state of one stream of one signal.
#[derive(Debug)]
pub struct OtapStream {
    writer: MessageWriter,
    signal: Option<&'static str>,
    tables: Vec<StreamTable>,
    root: Root,
    next_schema_id: u64,
    tally: StreamTally,
}

impl OtapStream {
    /// A stream that nothing has been sent on.
    ///
    /// # Errors
    /// [`EncodeError::Compression`] if zstd does not have the level.
    pub fn new(settings: OtapSettings) -> Result<Self, EncodeError> {
        Ok(Self {
            writer: MessageWriter::new(Compressor::new(settings.zstd_level)?),
            signal: None,
            tables: Vec::new(),
            root: Root::default(),
            next_schema_id: 0,
            tally: StreamTally::default(),
        })
    }

    /// Forgets what the receiver knows: a new stream begins, of any signal.
    pub fn reset(&mut self) {
        self.signal = None;
        self.tables.clear();
        self.root.clear();
        self.next_schema_id = 0;
    }

    /// What the batches since this was last asked had to bring along.
    pub fn tally(&mut self) -> StreamTally {
        std::mem::take(&mut self.tally)
    }

    /// The `BatchArrowRecords` message with the items of `records`, which become one batch in their order. Ids may be
    /// plain or in their transport encoding. Records without items give no bytes, and nothing is to be sent.
    ///
    /// Batches must be sent in the order in which they were encoded, and all of them. A batch may hold 65,535 log records,
    /// spans or metrics.
    ///
    /// # Errors
    /// [`EncodeError`] for columns that are missing or of another type than the protocol has, for ids that stand for
    /// several rows, for more rows than a batch may have, and for records of different signals. The stream goes on with the
    /// next batch as if this one had not been.
    pub fn encode(&mut self, batch_id: i64, records: &[&OtapArrowRecords]) -> Result<Bytes, EncodeError> {
        let encoded = self.try_encode(batch_id, records);
        if encoded.is_err() {
            // Tables that were written have counted on being sent. They begin anew, under schema ids not used before.
            self.tables.clear();
            self.root.clear();
        }
        encoded
    }

    fn try_encode(&mut self, batch_id: i64, records: &[&OtapArrowRecords]) -> Result<Bytes, EncodeError> {
        let Some(first) = records.first() else { return Ok(Bytes::new()) };
        let expected = *self.signal.get_or_insert(signal_name(first));
        if let Some(other) = records.iter().map(|records| signal_name(records)).find(|signal| *signal != expected) {
            return Err(EncodeError::Signal { found: other, expected });
        }
        let (root_kind, children) = tables(first);
        let rows = |records: &&OtapArrowRecords| records.get(root_kind).map_or(0, |batch| batch.num_rows());
        let records: Vec<&OtapArrowRecords> = records.iter().filter(|records| rows(records) > 0).copied().collect();
        let total: usize = records.iter().map(rows).sum();
        if total == 0 {
            return Ok(Bytes::new());
        }
        if total > MAX_ROOT_ROWS {
            return Err(EncodeError::TooMany { table: root_kind, what: "rows", found: total, bound: MAX_ROOT_ROWS });
        }
        if self.tables.is_empty() {
            self.tables.push(StreamTable::new(root_kind));
            self.tables.extend(children.iter().map(|(kind, _)| StreamTable::new(*kind)));
        }
        let Some((root, others)) = self.tables.split_first_mut() else { return Ok(Bytes::new()) };
        let (writer, next_schema_id, tally) = (&mut self.writer, &mut self.next_schema_id, &mut self.tally);
        let mut context = Context { writer, next_schema_id, tally };
        root.root(&records, &mut self.root, &mut context)?;
        let mut payloads = vec![(root_kind, &*root)];
        let mut own: Vec<(ArrowPayloadType, Maps)> = Vec::with_capacity(children.len());
        for (table, (kind, parents)) in others.iter_mut().zip(children) {
            let parents = match parents {
                Parents::Resources => &self.root.resources,
                Parents::Scopes => &self.root.scopes,
                Parents::Root => &self.root.ids,
                Parents::Of(kind) => match own.iter().find(|(known, _)| known == kind) {
                    Some((_, maps)) => maps,
                    None => continue,
                },
            };
            let (maps, is_there) = table.children(&records, parents, &mut context)?;
            own.push((*kind, maps));
            if is_there {
                payloads.push((*kind, table));
            }
        }
        message(batch_id, &payloads)
    }
}

/// Field numbers of `BatchArrowRecords` and `ArrowPayload`.
const BATCH_ID: u64 = 1 << 3;
const PAYLOADS: u64 = length_tag(2) as u64;
const SCHEMA_ID: u64 = length_tag(1) as u64;
const TYPE: u64 = 2 << 3;
const RECORD: u64 = length_tag(3) as u64;

/// The protobuf message around the payloads.
fn message(batch_id: i64, payloads: &[(ArrowPayloadType, &StreamTable)]) -> Result<Bytes, EncodeError> {
    let with_length = |length: usize| varint_bytes(length as u64) + length;
    // Tags have one byte each.
    let payload_bytes = |(kind, table): &(ArrowPayloadType, &StreamTable)| {
        3 + with_length(table.schema_id.len()) + varint_bytes(*kind as u64) + with_length(table.record.len())
    };
    let batch_id = batch_id.cast_unsigned();
    let of_payloads: usize = payloads.iter().map(|payload| 1 + with_length(payload_bytes(payload))).sum();
    let total = 1 + varint_bytes(batch_id) + of_payloads;
    if total > MAX_REQUEST_BYTES {
        return Err(EncodeError::TooLarge { found: total, bound: MAX_REQUEST_BYTES });
    }
    let mut out = Vec::with_capacity(total);
    push_varint(&mut out, BATCH_ID);
    push_varint(&mut out, batch_id);
    for payload in payloads {
        let (kind, table) = payload;
        push_varint(&mut out, PAYLOADS);
        push_varint(&mut out, payload_bytes(payload) as u64);
        push_varint(&mut out, SCHEMA_ID);
        push_varint(&mut out, table.schema_id.len() as u64);
        out.extend_from_slice(table.schema_id.as_bytes());
        push_varint(&mut out, TYPE);
        push_varint(&mut out, *kind as u64);
        push_varint(&mut out, RECORD);
        push_varint(&mut out, table.record.len() as u64);
        out.extend_from_slice(&table.record);
    }
    Ok(Bytes::from(out))
}
