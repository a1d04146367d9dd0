//! One table of the stream: its columns, its schema, and what was sent last.

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::Schema;
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::{consts, payloads};

use super::column::{Column, Ids, Parts};
use super::dictionary::Form;
use super::idmap::{IdMap, NewIds};
use super::ipc::{MessageWriter, SentBuffers};
use super::parents::{self, Kept};
use super::root::Root;
use crate::encode::error::EncodeError;
use crate::encode::ids::{self, Rule, field, rule_of};
use crate::encode::same::{same_array, same_batch};
use crate::encode::table::Table;
use crate::payload::StreamTally;

/// Most rows of a root table: their ids have 16 bits, and readers count the rows in as many.
pub(super) const MAX_ROOT_ROWS: usize = u16::MAX as usize;

/// New ids of the parents, or of resources, for each part.
pub(super) type Maps = Vec<IdMap>;

/// Columns of ids by their path.
type WrittenIds = Vec<(&'static [&'static str], ArrayRef)>;

/// A batch that was sent, of one part.
#[derive(Debug)]
struct Last {
    batch: RecordBatch,
    /// How many parents there were, all with the ids that they had.
    parents: Option<u32>,
    own: IdMap,
}

/// Ids of points that were sent last: the same series give the same.
#[derive(Debug)]
struct LastIds {
    read: [Option<ArrayRef>; 2],
    parents: Option<u32>,
    own: IdMap,
    written: WrittenIds,
}

/// A table of the stream.
#[derive(Debug)]
pub(super) struct StreamTable {
    kind: ArrowPayloadType,
    columns: Vec<Column>,
    /// Presence and forms of the columns in the schema that was sent.
    shape: Vec<u8>,
    pub(super) schema_id: String,
    sent: SentBuffers,
    last: Option<Last>,
    last_ids: Option<LastIds>,
    /// The record batch message that was sent last.
    message: Vec<u8>,
    /// What is to be sent.
    pub(super) record: Vec<u8>,
}

/// What tables share while a batch is written.
#[derive(Debug)]
pub(super) struct Context<'s> {
    pub(super) writer: &'s mut MessageWriter,
    pub(super) next_schema_id: &'s mut u64,
    pub(super) tally: &'s mut StreamTally,
}

impl StreamTable {
    pub(super) fn new(kind: ArrowPayloadType) -> Self {
        Self {
            kind,
            columns: Column::all(kind, payloads::get(kind)),
            shape: Vec::new(),
            schema_id: String::new(),
            sent: SentBuffers::default(),
            last: None,
            last_ids: None,
            message: Vec::new(),
            record: Vec::new(),
        }
    }

    fn arrow_error(&self) -> impl Fn(arrow::error::ArrowError) -> EncodeError + use<> {
        let table = self.kind;
        move |error| EncodeError::Arrow { table, message: error.to_string() }
    }

    /// Whether the batch is the one that was sent last, with the same parents: then it is sent as it is.
    fn send_again(&mut self, batch: &RecordBatch, parents: Option<u32>, context: &mut Context<'_>) -> bool {
        let again = !self.message.is_empty()
            && self.last.as_ref().is_some_and(|last| last.parents == parents && same_batch(&last.batch, batch));
        if again {
            self.record.clear();
            self.record.extend_from_slice(&self.message);
            context.tally.tables_reused += 1;
        }
        again
    }

    /// Writes the root table, which all of `records` have. `root` gets what the batch says about ids, resources and scopes.
    pub(super) fn root(
        &mut self,
        records: &[&OtapArrowRecords],
        root: &mut Root,
        context: &mut Context<'_>,
    ) -> Result<(), EncodeError> {
        let parts: Vec<_> = records.iter().filter_map(|records| records.get(self.kind)).collect();
        if let [batch] = parts[..]
            && root.is_known()
            && self.send_again(batch, None, context)
        {
            return Ok(());
        }
        root.clear();
        let mut new_ids = NewIds::default();
        let mut batches = Vec::with_capacity(records.len());
        let mut has_ids = false;
        for records in records {
            let Some(batch) = records.get(self.kind) else { continue };
            let fields = batch.schema_ref().fields();
            let table = Table::from_batch(self.kind, batch);
            let order = root.part(&table, fields)?;
            let ids = ids::own(&table, field(fields, &[consts::ID]))?;
            has_ids |= ids.is_some();
            root.ids.push(new_ids.number(self.kind, ids.as_ref(), order.as_deref(), batch.num_rows())?);
            batches.push(self.taken(batch, order)?);
        }
        let mut written = root.columns();
        if has_ids {
            written.push((&[consts::ID], new_ids.column(true)));
        }
        self.build(&batches, &written, None, context)?;
        self.last = match parts[..] {
            [batch] => Some(Last { batch: batch.clone(), parents: None, own: IdMap::none() }),
            _ => None,
        };
        Ok(())
    }

    /// Writes a table whose rows belong to those that `parents` knows. Gives the new ids of its own rows, and whether there
    /// is something to send.
    pub(super) fn children(
        &mut self,
        records: &[&OtapArrowRecords],
        parents: &Maps,
        context: &mut Context<'_>,
    ) -> Result<(Maps, bool), EncodeError> {
        let is_single = records.len() == 1;
        let identity = parents.first().and_then(IdMap::identity).filter(|_| is_single);
        let single = records.first().filter(|_| is_single).and_then(|records| records.get(self.kind));
        if let Some(batch) = single.filter(|batch| batch.num_rows() > 0)
            && identity.is_some()
        {
            if self.send_again(batch, identity, context)
                && let Some(last) = &self.last
            {
                return Ok((vec![last.own.clone()], true));
            }
            if let Some((own, written)) = self.known_ids(batch, identity) {
                self.build(std::slice::from_ref(batch), &written, None, context)?;
                self.remember(single, identity, &own);
                return Ok((own, true));
            }
        }
        let mut new_ids = NewIds::default();
        let (mut own, mut batches, mut new_parents) = (Maps::new(), Vec::new(), Vec::new());
        let (mut has_ids, mut kept) = (false, None);
        for (records, map) in records.iter().zip(parents) {
            let Some(batch) = records.get(self.kind).filter(|batch| batch.num_rows() > 0) else {
                own.push(IdMap::none());
                continue;
            };
            let fields = batch.schema_ref().fields();
            let table = Table::from_batch(self.kind, batch);
            let mut placed = parents::placed(&table, fields, map)?;
            let ids = ids::own(&table, field(fields, &[consts::ID]))?;
            has_ids |= ids.is_some();
            own.push(new_ids.number(self.kind, ids.as_ref(), placed.order.as_deref(), placed.parents.len())?);
            match new_parents.is_empty() {
                true => new_parents = placed.parents,
                false => new_parents.append(&mut placed.parents),
            }
            kept = placed.kept.filter(|_| is_single);
            batches.push(self.taken(batch, placed.order)?);
        }
        if new_parents.is_empty() {
            return Ok((own, false));
        }
        let mut written: WrittenIds = Vec::new();
        if has_ids {
            written.push((&[consts::ID], new_ids.column(false)));
        }
        let written = self.build(&batches, &written, Some((new_parents, kept)), context)?;
        self.remember(single, identity, &own);
        if let (Rule::Always, Some(batch)) = (rule_of(self.kind), single) {
            let read = [consts::ID, consts::PARENT_ID].map(|name| batch.column_by_name(name).cloned());
            let own = own.first().cloned().unwrap_or_else(IdMap::none);
            self.last_ids = Some(LastIds { read, parents: identity, own, written });
        }
        Ok((own, true))
    }

    fn remember(&mut self, single: Option<&RecordBatch>, parents: Option<u32>, own: &Maps) {
        let own = own.first().cloned().unwrap_or_else(IdMap::none);
        self.last = single.filter(|_| parents.is_some()).map(|batch| Last { batch: batch.clone(), parents, own });
    }

    /// The ids of the last batch, if the columns of this one are the same.
    fn known_ids(&self, batch: &RecordBatch, parents: Option<u32>) -> Option<(Maps, WrittenIds)> {
        let (known, last) = self.last_ids.as_ref().zip(self.last.as_ref())?;
        let names = [consts::ID, consts::PARENT_ID];
        let (fields, before) = (batch.schema_ref().fields(), last.batch.schema_ref().fields());
        let is_same = known.parents == parents
            && names.iter().zip(&known.read).all(|(name, before)| match (batch.column_by_name(name), before) {
                (Some(array), Some(before)) => same_array(array, before),
                (None, None) => true,
                _ => false,
            })
            && names.iter().all(|name| field(fields, &[*name]) == field(before, &[*name]));
        is_same.then(|| (vec![known.own.clone()], known.written.clone()))
    }

    fn taken(&self, batch: &RecordBatch, order: Option<Vec<u32>>) -> Result<RecordBatch, EncodeError> {
        match order {
            Some(order) => take_record_batch(batch, &UInt32Array::from(order)).map_err(self.arrow_error()),
            None => Ok(batch.clone()),
        }
    }

    /// Builds the columns and writes what is to be sent. Gives the columns of ids.
    fn build(
        &mut self,
        batches: &[RecordBatch],
        written: &Ids,
        parents: Option<(Vec<u32>, Option<Kept>)>,
        context: &mut Context<'_>,
    ) -> Result<WrittenIds, EncodeError> {
        let rows = batches.iter().map(RecordBatch::num_rows).sum();
        let to_error = self.arrow_error();
        let has_parents = parents.is_some();
        let mut built: Vec<Option<ArrayRef>> = Vec::with_capacity(self.columns.len());
        for column in &mut self.columns {
            if has_parents && column.name == consts::PARENT_ID {
                built.push(None);
                continue;
            }
            let parts: Parts =
                batches.iter().map(|batch| (batch.column_by_name(column.name).cloned(), batch.num_rows())).collect();
            built.push(column.build(&parts, written).map_err(&to_error)?);
        }
        let mut written = written.to_vec();
        if let Some((of_rows, kept)) = parents {
            let column = |name: &'static str| {
                let found = self.columns.iter().zip(&built).find(|(column, _)| column.name == name);
                found.and_then(|(_, array)| array.as_ref())
            };
            let parents = parents::differences(self.kind, of_rows, kept, column)?;
            written.push((&[consts::PARENT_ID], parents));
            let place = self.columns.iter_mut().zip(&mut built).find(|(column, _)| column.name == consts::PARENT_ID);
            if let Some((column, slot)) = place {
                *slot = column.build(&Vec::new(), &written).map_err(&to_error)?;
            }
        }
        let columns: Vec<ArrayRef> = built.into_iter().flatten().collect();
        self.write(&columns, rows, context)?;
        Ok(written)
    }

    /// Writes the messages of a batch: schema and dictionaries as far as they are new, and the record batch.
    fn write(&mut self, columns: &[ArrayRef], rows: usize, context: &mut Context<'_>) -> Result<(), EncodeError> {
        let mut shape = Vec::with_capacity(self.shape.len());
        self.columns.iter().for_each(|column| column.shape(&mut shape));
        let is_new = shape != self.shape || self.schema_id.is_empty();
        self.record.clear();
        if is_new {
            self.shape = shape;
            self.schema_id = context.next_schema_id.to_string();
            *context.next_schema_id += 1;
            context.tally.schemas += 1;
            self.sent.clear();
            let fields: Vec<_> = self.columns.iter().filter_map(Column::field).collect();
            context.writer.schema(&Schema::new(fields), &mut self.record);
        }
        let mut dictionaries = Vec::new();
        Column::dictionaries(&mut self.columns, &mut dictionaries);
        for (number, dictionary) in dictionaries.into_iter().enumerate() {
            if is_new {
                dictionary.forget_sent();
            }
            let Some((values, is_delta)) = dictionary.unsent(is_new) else {
                context.tally.dictionaries_reused += u64::from(dictionary.form != Form::Plain);
                continue;
            };
            context.writer.dictionary(number as i64, &values, is_delta, &mut self.record)?;
            match is_delta {
                true => context.tally.dictionaries_extended += 1,
                false => context.tally.dictionaries_sent += 1,
            }
        }
        let start = self.record.len();
        context.writer.record_batch(columns, rows, &mut self.sent, &mut self.record)?;
        self.message.clear();
        self.message.extend_from_slice(self.record.get(start..).unwrap_or_default());
        Ok(())
    }
}
