//! The tables of one batch of logs under construction.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, DictionaryArray, FixedSizeBinaryArray, Int32Array, RecordBatch, StringArray, StructArray,
    TimestampNanosecondArray, UInt8Array, UInt16Array, UInt32Array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, Fields, Schema, UInt8Type};
use arrow::error::ArrowError;
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::otap::Logs;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::{FieldExt as _, consts};

use crate::ColumnsError;
use crate::table::{AnyValues, AttributeTable, AttributeWriter, LaidOut, NameId, Ordering, ParentIds};

/// What a severity of syslog is in OTLP: number and text, by severity.
pub(crate) type Levels = [(i32, &'static str); 8];

/// For records that have no severity.
pub(crate) static NO_LEVELS: Levels = [(0, ""); 8];

/// Ids of W3C Trace Context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) trace_id: [u8; 16],
    pub(crate) span_id: [u8; 8],
    pub(crate) flags: u32,
}

/// The body of a log record.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Body<'a> {
    #[default]
    None,
    /// Text; bytes that are not UTF-8 become U+FFFD.
    Text(&'a [u8]),
    Bytes(&'a [u8]),
}

/// The columns of a log record that are not attributes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LogFields<'a> {
    /// When it happened by the device's word; `None` is written as 0, which OTLP and OTAP define as "unknown".
    pub(crate) time_unix_nano: Option<i64>,
    /// When it was received.
    pub(crate) observed_time_unix_nano: i64,
    /// Severity of syslog, 0 to 7.
    pub(crate) severity: Option<u8>,
    pub(crate) body: Body<'a>,
    pub(crate) trace: Option<Trace>,
    /// Number of its resource.
    pub(crate) resource: u16,
    /// All texts of the record are known to be UTF-8.
    pub(crate) is_utf8: bool,
}

/// The tables of a batch, filled record by record.
#[derive(Debug)]
pub(crate) struct LogsTable {
    scope: &'static str,
    levels: &'static Levels,
    parent_ids: ParentIds,
    rows: u16,
    times: Vec<i64>,
    observed: Vec<i64>,
    severities: Severities,
    bodies: AnyValues,
    traces: Vec<(u16, Trace)>,
    resources: Vec<u16>,
    attributes: AttributeTable,
    /// Attributes of resources, by their numbers.
    pub(crate) resource_attributes: AttributeTable,
}

/// Severities, with 0 in place of those that are absent.
#[derive(Debug, Default)]
struct Severities {
    values: Vec<u8>,
    present: Vec<bool>,
    any: bool,
}

impl LogsTable {
    /// An empty batch whose records carry the instrumentation scope name `scope`. `names` are the names of attributes that
    /// are known beforehand, with their positions as numbers.
    pub(crate) fn new(scope: &'static str, levels: &'static Levels, names: &[&'static str]) -> Self {
        Self {
            scope,
            levels,
            parent_ids: ParentIds::Plain,
            rows: 0,
            times: Vec::new(),
            observed: Vec::new(),
            severities: Severities::default(),
            bodies: AnyValues::new(),
            traces: Vec::new(),
            resources: Vec::new(),
            attributes: AttributeTable::new(names),
            resource_attributes: AttributeTable::new(&[]),
        }
    }

    /// Writes the parent ids of attributes as `parent_ids` says.
    pub(crate) fn with_parent_ids(mut self, parent_ids: ParentIds) -> Self {
        self.parent_ids = parent_ids;
        self
    }

    /// Room for `records` records with `text_bytes` bytes of text together.
    pub(crate) fn reserve(&mut self, records: usize, text_bytes: usize) {
        self.times.reserve(records);
        self.observed.reserve(records);
        self.resources.reserve(records);
        self.severities.values.reserve(records);
        self.severities.present.reserve(records);
        self.attributes.reserve(records, text_bytes);
    }

    /// Records written so far.
    pub(crate) fn rows(&self) -> usize {
        usize::from(self.rows)
    }

    /// Bytes of text written so far.
    pub(crate) fn bytes(&self) -> usize {
        self.attributes.bytes() + self.bodies.bytes()
    }

    /// Begins a record. The caller keeps [`LogsTable::rows`] below 65,536, as [`crate::MAX_BATCH_RECORDS`] does.
    pub(crate) fn record(&mut self, fields: LogFields<'_>) -> AttributeWriter<'_> {
        let id = self.rows;
        self.rows = self.rows.saturating_add(1);
        self.times.push(fields.time_unix_nano.unwrap_or(0));
        self.observed.push(fields.observed_time_unix_nano);
        self.severities.values.push(fields.severity.unwrap_or(0) & 7);
        self.severities.present.push(fields.severity.is_some());
        self.severities.any |= fields.severity.is_some();
        self.resources.push(fields.resource);
        match fields.body {
            Body::None => self.bodies.none(),
            Body::Text(text) => self.bodies.text(text, fields.is_utf8),
            Body::Bytes(bytes) => self.bodies.opaque(bytes),
        }
        if let Some(trace) = fields.trace {
            self.traces.push((id, trace));
        }
        AttributeWriter::new(&mut self.attributes, id, fields.is_utf8)
    }

    /// Begins records that have only times in common columns: one record for each of `times`, of which 0 is unknown. Gives
    /// their rows. The caller keeps [`LogsTable::rows`] below 65,536.
    pub(crate) fn records_of(
        &mut self,
        times: impl ExactSizeIterator<Item = i64>,
        observed_time_unix_nano: i64,
        resource: u16,
    ) -> Range<u16> {
        let first = self.rows;
        self.rows = u16::try_from(self.rows().saturating_add(times.len())).unwrap_or(u16::MAX);
        let rows = self.rows();
        self.times.extend(times);
        self.observed.resize(rows, observed_time_unix_nano);
        self.severities.values.resize(rows, 0);
        self.severities.present.resize(rows, false);
        self.resources.resize(rows, resource);
        self.bodies.none_until(rows);
        first..self.rows
    }

    /// The attributes of the records, to write those of many records at once.
    pub(crate) fn attributes(&mut self) -> &mut AttributeTable {
        &mut self.attributes
    }

    /// Gives the records of `rows`, which are later than all that have such an attribute, one text.
    pub(crate) fn text_of_all(&mut self, rows: Range<u16>, name: NameId, value: &[u8]) {
        self.attributes.text_of_all(rows, name, value);
    }

    /// Gives the records of `rows`, which are later than all that have such an attribute, one integer.
    pub(crate) fn int_of_all(&mut self, rows: Range<u16>, name: NameId, value: i64) {
        self.attributes.int_of_all(rows, name, value);
    }

    /// Ends the batch; its arrays are made in steps.
    pub(crate) fn finish(mut self) -> Unfinished {
        let attributes = std::mem::replace(&mut self.attributes, AttributeTable::new(&[]));
        let next = match attributes.order(self.parent_ids) {
            Some(ordering) => Part::Order(ordering, self),
            None => Part::Logs(self),
        };
        Unfinished { records: OtapArrowRecords::Logs(Logs::default()), next: Some(next) }
    }

    /// Ends the batch and makes its arrays at once.
    #[cfg(test)]
    pub(crate) fn finish_at_once(self) -> Result<OtapArrowRecords, ColumnsError> {
        let mut unfinished = self.finish();
        loop {
            if let Some(records) = unfinished.step()? {
                return Ok(records);
            }
        }
    }

    fn record_batch(self) -> Result<RecordBatch, ArrowError> {
        let rows = self.rows();
        let mut columns = Columns::default();
        columns.add_id(Arc::new(UInt16Array::from_iter_values(0..self.rows)));
        let plain_id = || Field::new(consts::ID, DataType::UInt16, true).with_plain_encoding();
        let resources: ArrayRef = Arc::new(UInt16Array::from(self.resources));
        columns.add_struct(consts::RESOURCE, vec![(plain_id(), Arc::clone(&resources))])?;
        let name = Arc::new(StringArray::from(vec![self.scope]));
        let name = DictionaryArray::<UInt8Type>::try_new(UInt8Array::from(vec![0; rows]), name)?;
        let name_field = Field::new(consts::NAME, name.data_type().clone(), true);
        // Each resource has a scope of its own: the engine's OTLP encoder looks for the end of a scope only at its id, and
        // would put the records of all resources under the first.
        columns.add_struct(consts::SCOPE, vec![(plain_id(), resources), (name_field, Arc::new(name))])?;
        for (name, times) in [(consts::TIME_UNIX_NANO, self.times), (consts::OBSERVED_TIME_UNIX_NANO, self.observed)] {
            columns.add(name, Arc::new(TimestampNanosecondArray::from(times).with_timezone("UTC")), false);
        }
        let trace = (!self.traces.is_empty()).then(|| trace_columns(rows, &self.traces)).transpose()?;
        let (ids, flags) = trace.map_or((None, None), |(ids, spans, flags)| (Some((ids, spans)), Some(flags)));
        if let Some((ids, spans)) = ids {
            columns.add(consts::TRACE_ID, Arc::new(ids), true);
            columns.add(consts::SPAN_ID, Arc::new(spans), true);
        }
        columns.add_severities(self.severities, self.levels)?;
        columns.add(consts::BODY, Arc::new(self.bodies.finish()?), true);
        if let Some(flags) = flags {
            columns.add(consts::FLAGS, Arc::new(flags), true);
        }
        RecordBatch::try_new(Arc::new(Schema::new(columns.fields)), columns.arrays)
    }
}

/// Fields and arrays of a table under construction.
#[derive(Default)]
struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    fn add(&mut self, name: &str, array: ArrayRef, nullable: bool) {
        self.fields.push(Field::new(name, array.data_type().clone(), nullable));
        self.arrays.push(array);
    }

    fn add_id(&mut self, ids: ArrayRef) {
        self.fields.push(Field::new(consts::ID, DataType::UInt16, true).with_plain_encoding());
        self.arrays.push(ids);
    }

    fn add_struct(&mut self, name: &str, columns: Vec<(Field, ArrayRef)>) -> Result<(), ArrowError> {
        let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        self.add(name, Arc::new(StructArray::try_new(Fields::from(fields), arrays, None)?), true);
        Ok(())
    }

    /// Number and text of the severities, which share their keys.
    fn add_severities(&mut self, severities: Severities, levels: &Levels) -> Result<(), ArrowError> {
        let Severities { values, present, any } = severities;
        if !any {
            return Ok(());
        }
        let nulls = Some(NullBuffer::new(BooleanBuffer::from(present))).filter(|nulls| nulls.null_count() > 0);
        let keys = UInt8Array::try_new(ScalarBuffer::from(values), nulls)?;
        let numbers = Int32Array::from_iter_values(levels.iter().map(|(number, _)| *number));
        let texts = StringArray::from_iter_values(levels.iter().map(|(_, text)| *text));
        let numbers = DictionaryArray::<UInt8Type>::try_new(keys.clone(), Arc::new(numbers))?;
        self.add(consts::SEVERITY_NUMBER, Arc::new(numbers), true);
        self.add(consts::SEVERITY_TEXT, Arc::new(DictionaryArray::<UInt8Type>::try_new(keys, Arc::new(texts))?), true);
        Ok(())
    }
}

type TraceColumns = (FixedSizeBinaryArray, FixedSizeBinaryArray, UInt32Array);

/// Trace ids, span ids and flags of all records, null where a record has none.
fn trace_columns(rows: usize, traces: &[(u16, Trace)]) -> Result<TraceColumns, ArrowError> {
    let (mut ids, mut spans) = (vec![0; rows * 16], vec![0; rows * 8]);
    let (mut flags, mut present) = (vec![0; rows], vec![false; rows]);
    for (row, trace) in traces {
        let row = usize::from(*row);
        ids[row * 16..][..16].copy_from_slice(&trace.trace_id);
        spans[row * 8..][..8].copy_from_slice(&trace.span_id);
        (flags[row], present[row]) = (trace.flags, true);
    }
    let nulls = NullBuffer::new(BooleanBuffer::from(present));
    Ok((
        FixedSizeBinaryArray::try_new(16, ids.into(), Some(nulls.clone()))?,
        FixedSizeBinaryArray::try_new(8, spans.into(), Some(nulls.clone()))?,
        UInt32Array::try_new(flags.into(), Some(nulls))?,
    ))
}

/// A batch whose arrays are made in steps, so that none of them takes long.
#[derive(Debug)]
pub(crate) struct Unfinished {
    records: OtapArrowRecords,
    next: Option<Part>,
}

/// What is to be made next, with what is needed after it.
#[derive(Debug)]
enum Part {
    Order(Ordering, LogsTable),
    Attributes(LaidOut, LogsTable),
    Logs(LogsTable),
}

impl Unfinished {
    /// Makes the next part; gives the batch when it is complete.
    pub(crate) fn step(&mut self) -> Result<Option<OtapArrowRecords>, ColumnsError> {
        match self.next.take() {
            Some(Part::Order(mut ordering, table)) => {
                self.next = Some(match ordering.step() {
                    true => Part::Attributes(ordering.laid_out(), table),
                    false => Part::Order(ordering, table),
                });
            }
            Some(Part::Attributes(laid_out, table)) => {
                let attributes = laid_out.record_batch().map_err(ColumnsError::arrow("log attributes"))?;
                self.set(ArrowPayloadType::LogAttrs, attributes)?;
                self.next = Some(Part::Logs(table));
            }
            Some(Part::Logs(mut table)) => {
                let resources = std::mem::replace(&mut table.resource_attributes, AttributeTable::new(&[]));
                let resources = resources.record_batch().map_err(ColumnsError::arrow("resource attributes"))?;
                if let Some(resources) = resources {
                    self.set(ArrowPayloadType::ResourceAttrs, resources)?;
                }
                self.set(ArrowPayloadType::Logs, table.record_batch().map_err(ColumnsError::arrow("logs"))?)?;
            }
            None => return Ok(Some(std::mem::replace(&mut self.records, OtapArrowRecords::Logs(Logs::default())))),
        }
        Ok(None)
    }

    fn set(&mut self, table: ArrowPayloadType, batch: RecordBatch) -> Result<(), ColumnsError> {
        self.records.set(table, batch).map_err(ColumnsError::otap("logs"))
    }
}

#[cfg(test)]
mod tests;
