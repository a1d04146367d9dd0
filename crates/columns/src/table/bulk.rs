//! Attributes of many records at once: a column of values instead of a value at a time.

use std::ops::Range;

use super::values::{NO_VALUE, ValueId};
use super::{AttributeTable, Column, Kind, NameId};

/// Key of a [`Cached`] text.
pub(crate) trait CacheKey: Copy + Eq + Default {
    /// All that is different, in 64 bits.
    fn folded(self) -> u64;
}

impl CacheKey for u32 {
    fn folded(self) -> u64 {
        u64::from(self)
    }
}

impl CacheKey for u64 {
    fn folded(self) -> u64 {
        self
    }
}

impl CacheKey for u128 {
    #[allow(clippy::cast_possible_truncation, reason = "both halves are taken")]
    fn folded(self) -> u64 {
        self as u64 ^ ((self >> 64) as u64).rotate_left(29)
    }
}

/// Numbers of texts in one table by what they are the text of, such as the octets of an address. What is not here any
/// more is formatted again and found by its text.
#[derive(Debug, Default)]
pub(crate) struct Cached<K>(Vec<(K, ValueId)>);

impl<K: CacheKey> Cached<K> {
    const PLACES_LOG2: u32 = 12;

    /// Forgets all: the next table numbers its texts anew.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    #[inline]
    fn place(&mut self, key: K) -> &mut (K, ValueId) {
        if self.0.is_empty() {
            self.0.resize(1 << Self::PLACES_LOG2, (K::default(), NO_VALUE));
        }
        // Multiplication carries what is different up into the bits that are taken.
        let mixed = key.folded().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &mut self.0[(mixed >> (64 - Self::PLACES_LOG2)) as usize]
    }
}

/// Numbers of texts in one table by small numbers, such as protocols.
#[derive(Debug)]
pub(crate) struct TextIds(Box<[ValueId; 256]>);

impl TextIds {
    /// In place of a number of a text: the value is written as the integer that it is.
    const INTEGER: ValueId = NO_VALUE - 1;

    pub(crate) fn new() -> Self {
        Self(Box::new([NO_VALUE; 256]))
    }

    /// Forgets all: the next table numbers its texts anew.
    pub(crate) fn clear(&mut self) {
        self.0.fill(NO_VALUE);
    }
}

/// Columns that get room for all parents when many values are appended to them at once.
const ROOMY_COLUMNS: usize = 64;

impl AttributeTable {
    /// Position of a column to which many values are appended at once.
    #[inline]
    fn bulk(&mut self, name: NameId, kind: Kind) -> usize {
        let at = self.column(name, kind);
        // A template may have thousands of fields: only the first columns get room for all parents.
        let room = if at < ROOMY_COLUMNS { self.parents } else { 0 };
        let column = &mut self.columns[at];
        if column.parents.capacity() == 0 && room > 0 {
            column.parents.reserve(room);
            if kind == Kind::Integer { column.integers.reserve(room) } else { column.values.reserve(room) }
        }
        at
    }

    /// Integers of `parents`, which are later than those that have such an attribute; one value for each.
    #[inline]
    pub(crate) fn integers_of(&mut self, parents: Range<u16>, name: NameId, values: impl Iterator<Item = i64>) {
        let at = self.bulk(name, Kind::Integer);
        let column = &mut self.columns[at];
        let start = column.integers.len();
        column.integers.extend(values.take(parents.len()));
        column.end_integers(parents, start);
    }

    /// As [`AttributeTable::integers_of`]. If one of the values is above the range of integers, nothing is written and
    /// false returned.
    #[inline]
    pub(crate) fn unsigned_of(&mut self, parents: Range<u16>, name: NameId, values: impl Iterator<Item = u64>) -> bool {
        let at = self.bulk(name, Kind::Integer);
        let column = &mut self.columns[at];
        let start = column.integers.len();
        column.integers.extend(values.take(parents.len()).map(u64::cast_signed));
        if column.integers[start..].iter().any(|value| *value < 0) {
            column.integers.truncate(start);
            return false;
        }
        column.end_integers(parents, start);
        true
    }

    /// Texts of `parents`, which are later than those that have such an attribute: those that `text` writes for `keys`, once
    /// for each that `cache` does not know. They are ASCII.
    #[inline]
    pub(crate) fn cached_texts_of<K: CacheKey>(
        &mut self,
        parents: Range<u16>,
        name: NameId,
        keys: impl Iterator<Item = K>,
        cache: &mut Cached<K>,
        text: impl Fn(K, &mut Vec<u8>),
    ) {
        let at = self.bulk(name, Kind::Text);
        let (texts, column) = (&mut self.texts, &mut self.columns[at]);
        let start = column.values.len();
        let mut buffer = Vec::new();
        column.values.extend(keys.take(parents.len()).map(|key| {
            let place = cache.place(key);
            if place.1 == NO_VALUE || place.0 != key {
                buffer.clear();
                text(key, &mut buffer);
                *place = (key, texts.find_or_push(&buffer).0);
            }
            place.1
        }));
        column.end_values(parents, start);
    }

    /// Numbers of `parents` that have names: those that `name_of` gives a name are written as text, the others as integers.
    pub(crate) fn named_numbers_of(
        &mut self,
        parents: Range<u16>,
        name: NameId,
        values: impl Iterator<Item = u64>,
        ids: &mut TextIds,
        name_of: impl Fn(u64) -> Option<std::borrow::Cow<'static, str>>,
    ) {
        for (parent, value) in parents.zip(values) {
            let mut uncached = NO_VALUE;
            let known = usize::try_from(value).ok().and_then(|value| ids.0.get_mut(value)).unwrap_or(&mut uncached);
            if *known == NO_VALUE {
                *known = match name_of(value) {
                    Some(text) => self.texts.find_or_push(text.as_bytes()).0,
                    None => TextIds::INTEGER,
                };
            }
            let id = *known;
            if id == TextIds::INTEGER {
                let column = self.column(name, Kind::Integer);
                self.columns[column].push_integer(parent, i64::try_from(value).unwrap_or(i64::MAX));
            } else {
                let column = self.column(name, Kind::Text);
                self.columns[column].push(parent, id);
            }
        }
    }
}

impl Column {
    /// Gives the integers from `start` on their parents.
    #[inline]
    fn end_integers(&mut self, parents: Range<u16>, start: usize) {
        let (before, added) = self.integers.split_at(start);
        if let Some(first) = before.last().or(added.first()) {
            self.varies |= added.iter().any(|value| value != first);
        }
        self.parents.extend(parents.take(added.len()));
    }

    /// Gives the values from `start` on their parents.
    #[inline]
    fn end_values(&mut self, parents: Range<u16>, start: usize) {
        let (before, added) = self.values.split_at(start);
        if let Some(first) = before.last().or(added.first()) {
            self.varies |= added.iter().any(|value| value != first);
        }
        self.parents.extend(parents.take(added.len()));
    }
}
