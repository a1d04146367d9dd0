//! Numbers for values and for series, so that each is compared as bytes once a batch at most.

use std::hash::{BuildHasher, Hash, Hasher};

use hashbrown::DefaultHashBuilder;

use super::number::Scalar;
use super::observations::index;
use super::pieces::Pieces;
use super::series::{KeyValue, SeriesKey};
use crate::text::same;

/// Number of the absent value.
pub(super) const ABSENT: u32 = 0;

/// A text that is not UTF-8.
#[derive(Debug, Clone, Copy)]
pub(super) struct NotUtf8;

/// Known values and series by number. Numbers hold until [`Interner::begin`].
#[derive(Debug)]
pub(super) struct Interner {
    /// Seeded: values are chosen by senders.
    hasher: DefaultHashBuilder,
    by_value: Pieces<u32>,
    values: Vec<KeyValue>,
    by_numbers: Pieces<u32>,
    /// The numbers of the values of each series, one after the other.
    numbers: Vec<u32>,
    /// Number of series known.
    series: u32,
    /// Values of a series.
    width: usize,
    capacity: usize,
    /// Bytes of texts and bytes among the values.
    bytes: usize,
    /// How often everything was forgotten.
    generation: u64,
    /// Values that are forgotten but not freed yet: a part of them with each batch.
    retired: Vec<KeyValue>,
}

/// Values freed in one go.
const FREED: usize = 2_048;

/// Bytes of values that are remembered from batch to batch: a few long ones must not be worth as much as many short ones.
const MAX_BYTES: usize = 8 * 1024 * 1024;

impl Interner {
    /// For series of `width` values. What is known is forgotten when there are more than `capacity` values or series, or
    /// long ones.
    pub(super) fn new(width: usize, capacity: usize) -> Self {
        Self {
            hasher: DefaultHashBuilder::default(),
            by_value: Pieces::new(),
            values: vec![KeyValue::Absent],
            by_numbers: Pieces::new(),
            numbers: Vec::new(),
            series: 0,
            width,
            capacity,
            bytes: 0,
            generation: 0,
            retired: Vec::new(),
        }
    }

    /// Begins a batch: forgets everything if that is too much by now.
    pub(super) fn begin(&mut self) {
        if self.values.len() > self.capacity || self.len() > self.capacity || self.bytes > MAX_BYTES {
            let generation = self.generation + 1;
            let retired = std::mem::take(&mut self.values);
            // What was forgotten before that is gone by now, or nearly so.
            *self = Self { generation, retired, ..Self::new(self.width, self.capacity) };
        }
        self.retired.truncate(self.retired.len().saturating_sub(FREED));
    }

    /// How often numbers were given anew.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Number of values known.
    pub(super) fn values(&self) -> usize {
        self.values.len()
    }

    /// Number of series known.
    pub(super) fn len(&self) -> usize {
        self.series as usize
    }

    /// A series by its number. It is made anew each time: whoever needs it keeps it, and with many series what is kept
    /// twice counts.
    pub(super) fn series(&self, number: u32) -> SeriesKey {
        SeriesKey::new(self.numbers_of(number).iter().map(|value| self.values[*value as usize].clone()).collect())
    }

    /// The number of a value.
    #[inline]
    pub(super) fn value(&mut self, value: Option<Scalar<'_>>) -> Result<u32, NotUtf8> {
        let value = match value {
            None => return Ok(ABSENT),
            // Columns of zeros are left out on the way, and with them the sign; so is what else a NaN may say.
            Some(Scalar::Double(value)) => Scalar::Double(if value.is_nan() { f64::NAN } else { value + 0.0 }),
            Some(value) => value,
        };
        if let Scalar::Text(text) = value {
            return self.text(text);
        }
        let hash = hash_scalar(&self.hasher, value);
        if let Some(number) = self.by_value.find(hash, |number| is(&self.values[*number as usize], value)) {
            return Ok(*number);
        }
        self.learn(hash, value)
    }

    /// The number of a text.
    #[inline]
    pub(super) fn text(&mut self, text: &[u8]) -> Result<u32, NotUtf8> {
        let hash = hash_bytes(&self.hasher, text);
        let is = |number: &u32| match &self.values[*number as usize] {
            KeyValue::Text(known) => same(known.as_bytes(), text),
            _ => false,
        };
        match self.by_value.find(hash, is) {
            Some(number) => Ok(*number),
            None => self.learn(hash, Scalar::Text(text)),
        }
    }

    #[cold]
    fn learn(&mut self, hash: u64, value: Scalar<'_>) -> Result<u32, NotUtf8> {
        let Self { hasher, by_value, values, bytes, .. } = self;
        if let Scalar::Text(long) | Scalar::Bytes(long) = value {
            *bytes += long.len();
        }
        let number = index(values.len());
        values.push(own(value)?);
        by_value.insert(hash, number, |number| match &values[*number as usize] {
            KeyValue::Absent => 0,
            KeyValue::Text(text) => hash_scalar(hasher, Scalar::Text(text.as_bytes())),
            KeyValue::Int(value) => hash_scalar(hasher, Scalar::Int(*value)),
            KeyValue::Double(bits) => hash_scalar(hasher, Scalar::Double(f64::from_bits(*bits))),
            KeyValue::Bool(value) => hash_scalar(hasher, Scalar::Bool(*value)),
            KeyValue::Bytes(bytes) => hash_scalar(hasher, Scalar::Bytes(bytes)),
        });
        Ok(number)
    }

    /// The numbers of the values of a series.
    #[inline]
    pub(super) fn numbers_of(&self, series: u32) -> &[u32] {
        let start = series as usize * self.width;
        &self.numbers[start..start + self.width]
    }

    /// The number of the series of these values, given by their numbers.
    #[inline]
    pub(super) fn series_of(&mut self, of_values: &[u32]) -> u32 {
        let Self { hasher, by_numbers, numbers, series, width, .. } = self;
        let numbers_of = |numbers: &[u32], number: u32| -> std::ops::Range<usize> {
            let start = number as usize * *width;
            start..(start + *width).min(numbers.len())
        };
        let hash = hash_numbers(hasher, of_values);
        if let Some(number) =
            by_numbers.find(hash, |number| same_numbers(&numbers[numbers_of(numbers, *number)], of_values))
        {
            return *number;
        }
        let number = *series;
        *series += 1;
        numbers.extend_from_slice(of_values);
        by_numbers.insert(hash, number, |number| hash_numbers(hasher, &numbers[numbers_of(numbers, *number)]));
        number
    }
}

/// Without a call to compare memory, which costs more than the few numbers here; with none, a hundred times more, as there
/// is no memory to compare.
#[inline]
fn same_numbers(a: &[u32], b: &[u32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(true, |same, (a, b)| same & (a == b))
}

#[inline]
fn hash_numbers(hasher: &DefaultHashBuilder, numbers: &[u32]) -> u64 {
    let mut state = hasher.build_hasher();
    for pair in numbers.chunks(2) {
        let high = pair.get(1).map_or(0, |number| u64::from(*number) << 32);
        state.write_u64(high | u64::from(pair[0]));
    }
    state.finish()
}

#[inline]
fn hash_bytes(hasher: &DefaultHashBuilder, bytes: &[u8]) -> u64 {
    let mut state = hasher.build_hasher();
    state.write(bytes);
    state.finish()
}

#[inline]
fn hash_scalar(hasher: &DefaultHashBuilder, value: Scalar<'_>) -> u64 {
    let mut state = hasher.build_hasher();
    match value {
        Scalar::Text(bytes) | Scalar::Bytes(bytes) => return hash_bytes(hasher, bytes),
        Scalar::Int(value) => state.write_i64(value),
        Scalar::Double(value) => state.write_u64(value.to_bits()),
        Scalar::Bool(value) => value.hash(&mut state),
    }
    state.finish()
}

#[inline]
fn is(known: &KeyValue, value: Scalar<'_>) -> bool {
    match (known, value) {
        (KeyValue::Text(known), Scalar::Text(value)) => same(known.as_bytes(), value),
        (KeyValue::Int(known), Scalar::Int(value)) => *known == value,
        (KeyValue::Double(known), Scalar::Double(value)) => *known == value.to_bits(),
        (KeyValue::Bool(known), Scalar::Bool(value)) => *known == value,
        (KeyValue::Bytes(known), Scalar::Bytes(value)) => **known == *value,
        _ => false,
    }
}

fn own(value: Scalar<'_>) -> Result<KeyValue, NotUtf8> {
    Ok(match value {
        Scalar::Text(text) => KeyValue::Text(std::str::from_utf8(text).map_err(|_| NotUtf8)?.into()),
        Scalar::Int(value) => KeyValue::Int(value),
        Scalar::Double(value) => KeyValue::Double(value.to_bits()),
        Scalar::Bool(value) => KeyValue::Bool(value),
        Scalar::Bytes(bytes) => KeyValue::Bytes(bytes.into()),
    })
}

/// A table of small numbers that is emptied without touching it.
#[derive(Debug, Default)]
pub(super) struct Stamped {
    /// Round in which the slot was set, and what it holds.
    slots: Vec<(u32, u32)>,
    round: u32,
}

impl Stamped {
    /// Empties the table, for indexes below `length`.
    pub(super) fn begin(&mut self, length: usize) {
        if self.round == u32::MAX {
            self.slots.clear();
            self.round = 0;
        }
        self.round += 1;
        if self.slots.len() < length {
            self.slots.resize(length, (0, 0));
        }
    }

    /// What is at `at`, below the length; where there is nothing, `value` is put there, and `true` comes back. Without a
    /// branch on which it is.
    #[inline]
    pub(super) fn get_or_insert(&mut self, at: usize, value: u32) -> (u32, bool) {
        let slot = &mut self.slots[at];
        let is_new = slot.0 != self.round;
        let value = if is_new { value } else { slot.1 };
        *slot = (self.round, value);
        (value, is_new)
    }

    /// What is at `at`; where there is nothing, what `make` gives is put there.
    #[inline]
    pub(super) fn get_or_insert_with(&mut self, at: usize, make: impl FnOnce() -> u32) -> u32 {
        if at >= self.slots.len() {
            self.slots.resize(at + 1, (0, 0));
        }
        let slot = &mut self.slots[at];
        if slot.0 != self.round {
            *slot = (self.round, make());
        }
        slot.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few values of many bytes are forgotten too, at the beginning of a batch and not within one.
    #[test]
    fn long_values_are_not_kept() {
        let mut interner = Interner::new(1, 100);
        let long = "x".repeat(MAX_BYTES + 1);
        let number = interner.text(long.as_bytes()).expect("utf-8");
        assert_eq!(interner.text(long.as_bytes()).expect("utf-8"), number);
        assert_eq!(interner.values(), 2);
        interner.begin();
        assert_eq!(interner.values(), 1, "only the absent one");
        let short = interner.text(b"short").expect("utf-8");
        interner.begin();
        assert_eq!(interner.text(b"short").expect("utf-8"), short);
    }

    /// Types tell values apart; zero has no sign, NaN is one value.
    #[test]
    fn values_have_one_number_each() {
        let mut interner = Interner::new(0, 100);
        let mut number = |value| interner.value(Some(value)).expect("utf-8");
        let distinct = [
            Scalar::Text(b"1"),
            Scalar::Bytes(b"1"),
            Scalar::Int(1),
            Scalar::Double(1.0),
            Scalar::Bool(true),
            Scalar::Double(0.0),
            Scalar::Double(f64::NAN),
        ]
        .map(&mut number);
        for (at, one) in distinct.iter().enumerate() {
            assert!(!distinct[at + 1..].contains(one) && *one != ABSENT);
        }
        assert_eq!(number(Scalar::Double(-0.0)), distinct[5]);
        assert_eq!(number(Scalar::Double(-f64::NAN)), distinct[6]);
        assert!(interner.text(b"\xff").is_err());
    }
}
