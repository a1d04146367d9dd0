//! Attributes of the items of a table, encoded.
//!
//! Each distinct attribute is encoded once, and each distinct set of attributes is laid out once: points of a series
//! share its bytes. A table that is the same as that of the batch before is not looked at again.

use arrow::array::{RecordBatch, StringArray};
use hashbrown::HashTable;
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::consts;
use rustc_hash::FxHasher;
use std::hash::Hasher as _;

use super::value::{Values, append_bytes, append_message};
use crate::encode::error::{EncodeError, MAX_REQUEST_BYTES};
use crate::encode::ids::{self, field};
use crate::encode::index::{Children, Slots};
use crate::encode::same::same_batch;
use crate::encode::table::Table;

/// Sets looked up before it is judged whether that pays.
const TRIAL: usize = 64;

/// The attributes of a table's parents, as fields of theirs.
#[derive(Debug)]
pub(super) struct Attributes {
    slots: Slots,
    /// Where the bytes of a slot stand.
    sets: Vec<(u32, u32)>,
    bytes: Vec<u8>,
}

impl Attributes {
    /// No attributes.
    pub(super) fn none() -> Self {
        Self { slots: Slots::Dense(0), sets: Vec::new(), bytes: Vec::new() }
    }

    /// The attributes of a parent, each with its tag and length.
    #[inline]
    pub(super) fn of(&self, parent: Option<u32>) -> &[u8] {
        let Some(slot) = parent.and_then(|parent| self.slots.get(parent)) else { return &[] };
        let (start, end) = self.sets[slot];
        &self.bytes[start as usize..end as usize]
    }
}

/// Attribute tables of the last batch.
#[derive(Debug, Default)]
pub(super) struct AttributeCache(Vec<(ArrowPayloadType, RecordBatch, Attributes)>);

impl AttributeCache {
    /// Takes the attributes of a table out, made anew unless it is the same as the last one. `tag` is the field number of
    /// attributes in their parent.
    pub(super) fn take(
        &mut self,
        records: &OtapArrowRecords,
        kind: ArrowPayloadType,
        tag: u32,
    ) -> Result<Attributes, EncodeError> {
        let Some(batch) = records.get(kind).filter(|batch| batch.num_rows() > 0) else {
            return Ok(Attributes::none());
        };
        if let Some(place) = self.0.iter().position(|(known, _, _)| *known == kind) {
            let (_, last, attributes) = self.0.swap_remove(place);
            if same_batch(&last, batch) {
                return Ok(attributes);
            }
        }
        encode(kind, batch, tag)
    }

    /// Gives attributes back for the next batch.
    pub(super) fn put(&mut self, records: &OtapArrowRecords, kind: ArrowPayloadType, attributes: Attributes) {
        if let Some(batch) = records.get(kind).filter(|batch| batch.num_rows() > 0) {
            self.0.push((kind, batch.clone(), attributes));
        }
    }
}

/// Attributes that have been encoded, each once if it can be told that it comes again.
struct Pieces<'a> {
    keys: crate::encode::table::Column<'a, StringArray>,
    values: Values<'a>,
    tag: u32,
    bytes: Vec<u8>,
    /// Where the attribute of each row stands.
    places: Vec<(u32, u32)>,
}

impl Pieces<'_> {
    fn encode_all(&mut self, rows: usize) -> Result<(), EncodeError> {
        self.places.reserve_exact(rows);
        let mut before = None;
        for row in 0..rows {
            let key = self.keys.entry(row).zip(self.values.key(row));
            if key.is_some()
                && key == before
                && let Some(last) = self.places.last()
            {
                self.places.push(*last);
                continue;
            }
            before = key;
            let start = self.bytes.len();
            let (keys, values) = (&self.keys, &self.values);
            append_message(self.tag, &mut self.bytes, |out| {
                if let Some(key) = keys.get(row).filter(|key| !key.is_empty()) {
                    append_bytes(1, key.as_bytes(), out);
                }
                match values.type_of(row) {
                    None => Ok(()),
                    Some(_) => append_message(2, out, |out| values.append(row, out)),
                }
            })?;
            if self.bytes.len() > MAX_REQUEST_BYTES {
                return Err(EncodeError::TooLarge { found: self.bytes.len(), bound: MAX_REQUEST_BYTES });
            }
            self.places.push((start as u32, self.bytes.len() as u32));
        }
        Ok(())
    }
}

fn encode(kind: ArrowPayloadType, batch: &RecordBatch, tag: u32) -> Result<Attributes, EncodeError> {
    let table = Table::from_batch(kind, batch);
    let parents = ids::parents(&table, field(batch.schema_ref().fields(), &[consts::PARENT_ID]))?;
    let children = Children::new(&parents);
    let missing = EncodeError::MissingColumn { table: kind, column: consts::ATTRIBUTE_KEY };
    let keys = table.column(consts::ATTRIBUTE_KEY, "texts")?.ok_or(missing)?;
    let mut pieces = Pieces { keys, values: Values::new(table)?, tag, bytes: Vec::new(), places: Vec::new() };
    pieces.encode_all(batch.num_rows())?;
    let Pieces { bytes: pieces, places, .. } = pieces;
    let mut sets: Vec<(u32, u32)> = Vec::with_capacity(children.slots());
    let mut bytes: Vec<u8> = Vec::new();
    // Sets by the places of their attributes, as long as some are found again.
    let mut known: HashTable<u32> = HashTable::new();
    let (mut looked_up, mut found) = (0, 0);
    let mut last: Option<usize> = None;
    for slot in 0..children.slots() {
        let members = || children.slot(slot).map(|row| places[row]);
        let same_as = |other: usize| children.slot(other).map(|row| places[row]).eq(members());
        if let Some(last) = last
            && same_as(last)
        {
            sets.push(sets[last]);
            continue;
        }
        last = Some(slot);
        if looked_up < TRIAL || found * 4 >= looked_up {
            let hash = hash_of(&children, &places, slot);
            looked_up += 1;
            if let Some(other) = known.find(hash, |other| same_as(*other as usize)) {
                found += 1;
                sets.push(sets[*other as usize]);
                continue;
            }
            let _ = known.insert_unique(hash, slot as u32, |slot| hash_of(&children, &places, *slot as usize));
        }
        let start = bytes.len();
        members().for_each(|(start, end)| bytes.extend_from_slice(&pieces[start as usize..end as usize]));
        if bytes.len() > MAX_REQUEST_BYTES {
            return Err(EncodeError::TooLarge { found: bytes.len(), bound: MAX_REQUEST_BYTES });
        }
        sets.push((start as u32, bytes.len() as u32));
    }
    Ok(Attributes { slots: children.into_slots(), sets, bytes })
}

fn hash_of(children: &Children, places: &[(u32, u32)], slot: usize) -> u64 {
    let mut hasher = FxHasher::default();
    children.slot(slot).for_each(|row| hasher.write_u32(places[row].0));
    hasher.finish()
}
