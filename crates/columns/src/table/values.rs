//! The distinct values of a column, each with a number.

use std::hash::BuildHasher;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanBufferBuilder, DictionaryArray, Int64Array, StringArray, UInt16Array,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::UInt16Type;
use arrow::error::ArrowError;
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::text::{same, utf8};

/// Number of a value.
pub(super) type ValueId = u32;

/// Keys of 16 bits can tell so many values apart.
const DICTIONARY_SIZE: usize = 1 << 16;

/// Byte strings, in the order of their numbers. Values may be added without a look whether they are there already, so
/// two numbers may stand for the same value.
#[derive(Debug)]
pub(super) struct Strings {
    bytes: Vec<u8>,
    /// Where each value begins, and where the last one ends.
    offsets: Vec<i32>,
    /// Hash and number of the values that were looked for. The hash function has a random seed: what devices send cannot
    /// be made to collide.
    index: HashTable<(u64, ValueId)>,
    hasher: DefaultHashBuilder,
}

/// No value.
pub(super) const NO_VALUE: ValueId = ValueId::MAX;

/// Values that were looked for not long ago, by a hash that costs next to nothing: most columns have few different values,
/// and a value that is here need not be looked up by a good one.
#[derive(Debug, Default)]
pub(super) struct Recent(Vec<ValueId>);

impl Recent {
    const PLACES_LOG2: u32 = 7;
    /// Values of a column after which it pays.
    pub(super) const WORTH: usize = 64;

    /// Where a value is if it is here.
    #[inline]
    fn place(&mut self, value: &[u8]) -> &mut ValueId {
        if self.0.is_empty() {
            self.0.resize(1 << Self::PLACES_LOG2, NO_VALUE);
        }
        let ends = match (value.first_chunk::<8>(), value.last_chunk::<8>()) {
            (Some(first), Some(last)) => u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(29),
            _ => value.iter().fold(0, |sum, byte| (sum << 8) | u64::from(*byte)),
        };
        // Multiplication carries what is different up into the bits that are taken.
        let mixed = (ends ^ value.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &mut self.0[(mixed >> (64 - Self::PLACES_LOG2)) as usize]
    }
}

impl Strings {
    pub(super) fn new() -> Self {
        Self { bytes: Vec::new(), offsets: vec![0], index: HashTable::new(), hasher: DefaultHashBuilder::default() }
    }

    /// Room for `values` values of `bytes` bytes together.
    pub(super) fn reserve(&mut self, values: usize, bytes: usize) {
        self.offsets.reserve(values);
        self.bytes.reserve(bytes);
    }

    pub(super) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn get(&self, id: ValueId) -> &[u8] {
        value(&self.bytes, &self.offsets, id)
    }

    /// As [`Strings::find_or_push`]; `recent` knows values of the same column.
    #[inline]
    pub(super) fn intern(&mut self, recent: &mut Recent, wanted: &[u8]) -> (ValueId, bool) {
        let place = recent.place(wanted);
        if *place != NO_VALUE && same(self.get(*place), wanted) {
            return (*place, true);
        }
        let (id, found) = self.find_or_push(wanted);
        *place = id;
        (id, found)
    }

    /// The number of a value, and whether it was there already.
    pub(super) fn find_or_push(&mut self, wanted: &[u8]) -> (ValueId, bool) {
        let hash = self.hasher.hash_one(wanted);
        let (bytes, offsets) = (&self.bytes, &self.offsets);
        let known = self.index.find(hash, |(other, id)| *other == hash && value(bytes, offsets, *id) == wanted);
        if let Some((_, id)) = known {
            return (*id, true);
        }
        let id = self.push(wanted);
        let _ = self.index.insert_unique(hash, (hash, id), |(hash, _)| *hash);
        (id, false)
    }

    /// Adds a value.
    pub(super) fn push(&mut self, value: &[u8]) -> ValueId {
        let id = self.len();
        self.bytes.extend_from_slice(value);
        // Whoever fills a batch bounds it far below 2 GiB; beyond, offsets stay valid and values come out empty.
        self.offsets.push(i32::try_from(self.bytes.len()).unwrap_or(i32::MAX));
        ValueId::try_from(id).unwrap_or(ValueId::MAX)
    }

    /// The values as text. All of them should be UTF-8; where one is not, its bad bytes are replaced.
    fn text(self) -> Result<StringArray, ArrowError> {
        let (offsets, bytes) = (OffsetBuffer::new(self.offsets.into()), Buffer::from_vec(self.bytes));
        StringArray::try_new(offsets.clone(), bytes.clone(), None).or_else(|_| {
            let mut repaired = Self::new();
            for range in offsets.windows(2) {
                let [start, end] = [range[0], range[1]].map(|offset| usize::try_from(offset).unwrap_or(0));
                let _ = repaired.push(&utf8(bytes.get(start..end).unwrap_or_default()));
            }
            StringArray::try_new(OffsetBuffer::new(repaired.offsets.into()), Buffer::from_vec(repaired.bytes), None)
        })
    }

    /// The text column of a table; a dictionary if its keys suffice.
    pub(super) fn text_column(self, column: &Sparse<'_>) -> Result<ArrayRef, ArrowError> {
        if self.len() <= DICTIONARY_SIZE {
            return column.dictionary(Arc::new(self.text()?));
        }
        let (rows, nulls) = (column.rows(), column.nulls());
        let text = |id: &ValueId| utf8(self.get(*id)).into_owned();
        let (offsets, bytes) = self.gathered(&rows, nulls.as_ref());
        let array = StringArray::try_new(offsets, bytes, nulls.clone()).or_else(|_| {
            let rows: Vec<_> = rows.iter().map(text).collect();
            let values = StringArray::from_iter_values(rows.iter().map(|row| String::from_utf8_lossy(row)));
            StringArray::try_new(values.offsets().clone(), values.values().clone(), nulls)
        });
        Ok(Arc::new(array?))
    }

    /// The byte column of a table; a dictionary if its keys suffice.
    pub(super) fn bytes_column(self, column: &Sparse<'_>) -> Result<ArrayRef, ArrowError> {
        if self.len() <= DICTIONARY_SIZE {
            let offsets = OffsetBuffer::new(self.offsets.into());
            let values = BinaryArray::try_new(offsets, Buffer::from_vec(self.bytes), None)?;
            return column.dictionary(Arc::new(values));
        }
        let (rows, nulls) = (column.rows(), column.nulls());
        let (offsets, bytes) = self.gathered(&rows, nulls.as_ref());
        Ok(Arc::new(BinaryArray::try_new(offsets, bytes, nulls)?))
    }

    fn gathered(&self, rows: &[ValueId], nulls: Option<&NullBuffer>) -> (OffsetBuffer<i32>, Buffer) {
        let mut out = Self::new();
        out.offsets.reserve(rows.len());
        for (row, id) in rows.iter().enumerate() {
            let is_null = nulls.is_some_and(|nulls| nulls.is_null(row));
            let _ = out.push(if is_null { b"" } else { self.get(*id) });
        }
        (OffsetBuffer::new(out.offsets.into()), Buffer::from_vec(out.bytes))
    }
}

fn value<'b>(bytes: &'b [u8], offsets: &[i32], id: ValueId) -> &'b [u8] {
    let at = |index: usize| offsets.get(index).and_then(|offset| usize::try_from(*offset).ok()).unwrap_or(0);
    let index = usize::try_from(id).unwrap_or(usize::MAX - 1);
    bytes.get(at(index)..at(index + 1)).unwrap_or_default()
}

/// Rows that are valid from `start` to `end` only; nothing if those are all.
pub(super) fn valid_between(start: usize, end: usize, length: usize) -> Option<NullBuffer> {
    (end - start < length).then(|| {
        let mut valid = BooleanBufferBuilder::new(length);
        valid.append_n(start, false);
        valid.append_n(end - start, true);
        valid.append_n(length - end, false);
        NullBuffer::new(valid.finish())
    })
}

/// A column of which some rows in a stretch have values, and all others none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sparse<'v> {
    /// Rows before the stretch.
    pub(super) before: usize,
    pub(super) values: &'v [ValueId],
    /// Rows of the table.
    pub(super) length: usize,
}

impl Sparse<'_> {
    fn end(&self) -> usize {
        self.before + self.values.len()
    }

    /// Numbers of all rows, 0 where there is no value.
    fn rows(&self) -> Vec<ValueId> {
        let mut rows = vec![0; self.length];
        rows[self.before..self.end()].copy_from_slice(self.values);
        rows
    }

    pub(super) fn nulls(&self) -> Option<NullBuffer> {
        valid_between(self.before, self.end(), self.length)
    }

    /// All rows by numbers among `values`, of which there are at most [`DICTIONARY_SIZE`].
    fn dictionary(&self, values: ArrayRef) -> Result<ArrayRef, ArrowError> {
        let mut keys = Vec::with_capacity(self.length);
        keys.resize(self.before, 0);
        #[allow(clippy::cast_possible_truncation, reason = "numbers are below the number of values")]
        keys.extend(self.values.iter().map(|id| *id as u16));
        keys.resize(self.length, 0);
        let keys = UInt16Array::try_new(ScalarBuffer::from(keys), self.nulls())?;
        Ok(Arc::new(DictionaryArray::<UInt16Type>::try_new(keys, values)?))
    }
}

/// Whole numbers, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Integers {
    values: Vec<i64>,
    index: hashbrown::HashMap<i64, ValueId>,
}

impl Integers {
    pub(super) fn get(&self, id: ValueId) -> i64 {
        usize::try_from(id).ok().and_then(|index| self.values.get(index)).copied().unwrap_or(0)
    }

    /// The numbers of `values`.
    pub(super) fn intern_all(&mut self, values: &[i64]) -> Vec<ValueId> {
        let mut before = None;
        let ids = values.iter().map(|value| match before {
            Some((known, id)) if known == *value => id,
            _ => {
                let id = self.intern(*value);
                before = Some((*value, id));
                id
            }
        });
        ids.collect()
    }

    fn intern(&mut self, value: i64) -> ValueId {
        *self.index.entry(value).or_insert_with(|| {
            self.values.push(value);
            ValueId::try_from(self.values.len() - 1).unwrap_or(ValueId::MAX)
        })
    }

    /// The integer column of a table; a dictionary if its keys suffice.
    pub(super) fn column(self, column: &Sparse<'_>) -> Result<ArrayRef, ArrowError> {
        if self.values.len() <= DICTIONARY_SIZE {
            return column.dictionary(Arc::new(Int64Array::from(self.values)));
        }
        let values: Vec<i64> = column.rows().iter().map(|id| self.get(*id)).collect();
        Ok(Arc::new(Int64Array::try_new(ScalarBuffer::from(values), column.nulls())?))
    }
}

/// Values looked at to judge how many are different.
const SAMPLE: usize = 1_024;
/// Fewer values than this are never judged diverse.
const SAMPLE_MIN: usize = 64;

/// How many of some values spread over all are different, as far as a small set of bits tells. Columns of as many rows are
/// looked at in the same ones.
pub(super) fn different(values: impl ExactSizeIterator<Item = u64>) -> usize {
    let stride = values.len().div_ceil(SAMPLE).max(1);
    let mut seen = [0_u64; 128];
    let mut different = 0;
    for value in values.step_by(stride) {
        // Multiplication carries what is different up into the bits that are taken: 7 for the word, 6 for the bit.
        let mixed = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (word, bit) = (&mut seen[(mixed >> 57) as usize], 1 << ((mixed >> 51) & 63));
        different += usize::from(*word & bit == 0);
        *word |= bit;
    }
    different
}

/// How many of so many values [`different`] looks at.
pub(super) fn looked_at(values: usize) -> usize {
    values.div_ceil(values.div_ceil(SAMPLE).max(1))
}

/// Whether more than half of the values are different: then a dictionary of them costs more than it saves.
pub(super) fn are_diverse(values: &[i64]) -> bool {
    let different = different(values.iter().map(|value| value.cast_unsigned()));
    values.len() >= SAMPLE_MIN && different * 2 > looked_at(values.len())
}
