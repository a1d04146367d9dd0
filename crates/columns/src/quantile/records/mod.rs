//! Observations out of OTAP record batches.
//!
//! Columns are read directly; attributes are joined by id once a batch, and only for the keys that are asked for.

mod attributes;
mod bytes;
mod cbor;
mod combinations;
mod deltas;
mod groups;
mod join;
mod logs;
mod points;

use arrow::array::{Array, RecordBatch, StructArray, TimestampNanosecondArray, UInt16Array};
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::otap::transform::transport_optimize::remove_transport_optimized_encodings;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::consts;

use super::number::{self, Scalar};
use super::observations::{Fate, Observations};
use super::query::ValueSource;
use super::reader::{Bindings, Bound, RECORD, RESOURCE, Reader, SCOPE};
use crate::ColumnsError;
use attributes::{Attributes, TextCodes};
pub(super) use groups::Scratch;
use join::{NO_ROW, Parents};

pub(super) fn read(
    reader: &mut Reader,
    records: &OtapArrowRecords,
    now: i64,
    out: &mut Observations,
) -> Result<(), ColumnsError> {
    match (records, &reader.query.source) {
        (OtapArrowRecords::Logs(_), ValueSource::LogAttribute { text, .. }) => {
            let text = *text;
            logs::read(reader, records, text, now, out)
        }
        (OtapArrowRecords::Metrics(_), ValueSource::Metric { .. }) => points::read(reader, records, now, out),
        _ => Ok(()),
    }
}

fn malformed(table: &'static str, reason: impl ToString) -> ColumnsError {
    ColumnsError::Otap { table, reason: reason.to_string() }
}

/// A table whose own ids, and those of resources and scopes in it, are plain, whatever they were.
fn plain(
    records: &OtapArrowRecords,
    payload: ArrowPayloadType,
    table: &'static str,
) -> Result<Option<RecordBatch>, ColumnsError> {
    let plain = |batch| remove_transport_optimized_encodings(payload, batch);
    records.get(payload).map(plain).transpose().map_err(|error| malformed(table, error))
}

fn column<'a, T: 'static>(batch: &'a RecordBatch, name: &str) -> Option<&'a T> {
    batch.column_by_name(name).and_then(|column| column.as_any().downcast_ref::<T>())
}

/// A time that is known: 0 is "unknown" in OTLP and OTAP.
fn time_at(column: Option<&TimestampNanosecondArray>, row: usize) -> Option<i64> {
    column.filter(|c| c.is_valid(row)).map(|c| c.value(row)).filter(|time| *time != 0)
}

/// The ids of the resource or scope of each row of a root table.
fn owner_ids(root: &RecordBatch, place: usize) -> Option<&UInt16Array> {
    let place = if place == RESOURCE { consts::RESOURCE } else { consts::SCOPE };
    column::<StructArray>(root, place)?.column_by_name(consts::ID)?.as_any().downcast_ref::<UInt16Array>()
}

/// The attributes that a query asks for, by place.
struct Lookup<'a> {
    tables: [Option<Attributes<'a>>; 3],
    /// Resource and scope of each item, by their ids; empty where nothing is asked of them.
    owners: [Vec<u32>; 2],
}

impl<'a> Lookup<'a> {
    /// Joins the attributes. `parents` numbers the items by their ids, `root_row_of` gives the row of each item in the
    /// root table, as far as there is one.
    fn new(
        bound: &Bindings,
        records: &'a OtapArrowRecords,
        root: &RecordBatch,
        item_attributes: ArrowPayloadType,
        parents: impl FnOnce() -> Parents,
        root_row_of: impl Iterator<Item = u32> + Clone,
    ) -> Result<Self, ColumnsError> {
        let mut lookup = Self { tables: [None, None, None], owners: Default::default() };
        let owner_tables = [(RESOURCE, ArrowPayloadType::ResourceAttrs), (SCOPE, ArrowPayloadType::ScopeAttrs)];
        for (place, table) in owner_tables {
            if let (false, Some(batch), Some(ids)) =
                (bound.wanted[place].is_empty(), records.get(table), owner_ids(root, place))
            {
                let owners = ids.iter().flatten().max().map_or(0, |id| usize::from(id) + 1);
                lookup.tables[place] = Some(Attributes::new(batch, &bound.wanted[place], &Parents::Ids(owners))?);
                let owner = |row: u32| {
                    let row = row as usize;
                    let known = row < ids.len() && ids.is_valid(row);
                    if known { u32::from(ids.value(row)) } else { NO_ROW }
                };
                lookup.owners[place] = root_row_of.clone().map(owner).collect();
            }
        }
        if let (false, Some(batch)) = (bound.wanted[RECORD].is_empty(), records.get(item_attributes)) {
            lookup.tables[RECORD] = Some(Attributes::new(batch, &bound.wanted[RECORD], &parents())?);
        }
        Ok(lookup)
    }

    /// The table and row in which an item has a wanted attribute.
    #[inline]
    fn find(&self, bound: &Bound, item: usize) -> Option<(&Attributes<'a>, usize)> {
        let table = self.tables[bound.place].as_ref()?;
        let parent =
            if bound.place == RECORD { u32::try_from(item).ok()? } else { *self.owners[bound.place].get(item)? };
        Some((table, table.row(bound.key, parent)?))
    }

    /// See [`Attributes::by_text_code`]; for attributes of the items themselves.
    fn by_text_code(&self, bound: &Bound) -> Option<(&[u32], TextCodes<'a>)> {
        let is_plain = bound.place == RECORD && bound.steps.is_empty();
        self.tables[RECORD].as_ref().filter(|_| is_plain)?.by_text_code(bound.key)
    }

    fn value(&self, bound: &Bound, item: usize) -> Option<Scalar<'a>> {
        let (table, row) = self.find(bound, item)?;
        table.value(row, &bound.steps)
    }
}

/// What is common to logs and points once the values are there: weights and series.
fn complete(reader: &mut Reader, lookup: &Lookup<'_>, out: &mut Observations) {
    if let Some(bound) = &reader.bound.weight {
        weigh(out, |item| lookup.value(bound, item));
    }
    groups::assign(reader, lookup, out);
}

/// Gives each observation its weight and takes back those without a valid one.
fn weigh<'a>(out: &mut Observations, value: impl Fn(usize) -> Option<Scalar<'a>>) {
    let mut kept = 0;
    for at in 0..out.values.len() {
        let item = out.items[at];
        match number::weight(value(item as usize), || out.draw(at)) {
            Some(weight) => {
                out.weights.push(weight);
                out.values[kept] = out.values[at];
                out.times[kept] = out.times[at];
                out.items[kept] = item;
                kept += 1;
            }
            None => out.fates[item as usize] = Fate::BadWeight,
        }
    }
    out.values.truncate(kept);
    out.times.truncate(kept);
    out.items.truncate(kept);
}
