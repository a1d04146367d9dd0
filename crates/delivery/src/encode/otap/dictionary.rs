//! Columns with a dictionary that grows as long as the stream lives.
//!
//! Values get numbers in the order in which they come up, and keep them. What a batch adds is sent as a delta; a batch that
//! adds nothing sends nothing. Keys have 8 bits as long as that suffices, then 16. A dictionary that is full begins anew with
//! the values in use. A column whose values hardly ever come again is sent without one until its values repeat again.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, DictionaryArray, PrimitiveArray, UInt32Array, new_null_array};
use arrow::compute::{cast, concat, take};
use arrow::datatypes::{ArrowPrimitiveType, DataType, UInt8Type, UInt16Type};

use super::entries::{Entries, Values};
use super::keys::Keys;

/// Values that keys of 8 bits can name.
const NARROW: usize = 1 << 8;
/// Rows after which it is judged whether the dictionary pays.
const WINDOW: usize = 512;
/// Batches without a dictionary until it is looked again whether one would pay.
const PATIENCE: u32 = 32;
/// Rows looked at then.
const SAMPLE: usize = 4_096;

/// How a column is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Keys of 8 bits.
    Narrow,
    /// Keys of 16 bits.
    Wide,
    /// Values.
    Plain,
}

/// Numbers of the values of a dictionary that came in.
#[derive(Debug)]
struct Memo {
    values: ArrayRef,
    numbers: Vec<u32>,
    /// All values have numbers.
    is_whole: bool,
}

/// In place of a number: not looked up yet, and null.
const UNKNOWN: u32 = u32::MAX;
const NULL: u32 = u32::MAX - 1;

/// A column that may have a dictionary.
#[derive(Debug)]
pub(super) struct DictionaryColumn {
    value: DataType,
    least: Form,
    pub(super) form: Form,
    entries: Entries,
    memo: Option<Memo>,
    /// Rows and new values since the last judgement.
    rows: usize,
    added: usize,
    /// Judgements in a row that spoke against it.
    strikes: u8,
    /// Batches since it has no dictionary.
    waited: u32,
}

impl DictionaryColumn {
    pub(super) fn new(value: DataType, least: Form) -> Self {
        Self {
            value,
            least,
            form: least,
            entries: Entries::default(),
            memo: None,
            rows: 0,
            added: 0,
            strikes: 0,
            waited: 0,
        }
    }

    /// Type of the field.
    pub(super) fn data_type(&self) -> DataType {
        let keys = match self.form {
            Form::Narrow => DataType::UInt8,
            Form::Wide => DataType::UInt16,
            Form::Plain => return self.value.clone(),
        };
        DataType::Dictionary(Box::new(keys), Box::new(self.value.clone()))
    }

    /// The receiver knows nothing: a new stream begins.
    pub(super) fn forget_sent(&mut self) {
        self.entries.sent = 0;
    }

    /// The values that the receiver does not know, and whether they come after others; nothing if it knows all.
    pub(super) fn unsent(&mut self, is_first: bool) -> Option<(ArrayRef, bool)> {
        let (from, to) = (self.entries.sent, self.entries.len());
        if self.form == Form::Plain || (from == to && !is_first) {
            return None;
        }
        self.entries.sent = to;
        Some((self.entries.array(&self.value, from, to), from > 0))
    }

    /// The column of these parts, those that have none being null: keys, or values if the form is plain. May change the form.
    pub(super) fn build(&mut self, parts: &[(Option<ArrayRef>, usize)]) -> Result<ArrayRef, arrow::error::ArrowError> {
        if self.form == Form::Plain {
            self.waited += 1;
            if self.waited < PATIENCE {
                return plain(&self.value, parts);
            }
            self.waited = 0;
            if self.is_plain_input(parts) || !self.would_pay(parts)? {
                return plain(&self.value, parts);
            }
            *self = Self::new(self.value.clone(), self.least);
        }
        if self.is_plain_input(parts) {
            return self.go_plain(parts);
        }
        let known = self.entries.len();
        let keys = match self.numbers(parts)? {
            Some(keys) => keys,
            // Full: it begins anew with what is in use, unless that is little of it.
            None => {
                self.restart();
                match self.numbers(parts)? {
                    Some(keys) if self.entries.len() * 2 <= keys.valid_rows() => {
                        (self.rows, self.added) = (0, 0);
                        self.widen();
                        return Ok(keys.finish(self.form));
                    }
                    _ => return self.go_plain(parts),
                }
            }
        };
        self.rows += keys.valid_rows();
        self.added += self.entries.len() - known;
        if self.rows >= WINDOW {
            let (rows, added) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.added));
            self.strikes = if added * 4 > rows { self.strikes + 1 } else { 0 };
            // A key in place of a number saves little.
            let most = if self.value.is_primitive() { 4 } else { 2 };
            if added * most > rows || self.strikes > 1 {
                return self.go_plain(parts);
            }
        }
        self.widen();
        Ok(keys.finish(self.form))
    }

    /// Whether numbers come in without a dictionary. Whoever made the batch has found that one does not pay, and to look up
    /// every number again costs more than it saves.
    fn is_plain_input(&self, parts: &[(Option<ArrayRef>, usize)]) -> bool {
        let is_plain = |array: &ArrayRef| array.len() >= WINDOW && *array.data_type() == self.value;
        self.value.is_primitive() && parts.iter().any(|(array, _)| array.as_ref().is_some_and(is_plain))
    }

    /// Keys get 16 bits once 8 do not suffice any more, and keep them.
    fn widen(&mut self) {
        if self.form == Form::Narrow && self.entries.len() > NARROW {
            self.form = Form::Wide;
        }
    }

    /// Forgets all values; the receiver gets a dictionary in place of the one that it has.
    fn restart(&mut self) {
        self.entries = Entries::default();
        self.memo = None;
    }

    /// The numbers of the values of all parts; nothing if there is no room for some.
    fn numbers(&mut self, parts: &[(Option<ArrayRef>, usize)]) -> Result<Option<Keys>, arrow::error::ArrowError> {
        let total = parts.iter().map(|(_, rows)| rows).sum();
        let mut keys = Keys::with_capacity(total);
        for (array, rows) in parts {
            match array {
                None => (0..*rows).for_each(|_| keys.push(None)),
                Some(array) => {
                    if !self.append(array, &mut keys, array.len() == total)? {
                        return Ok(None);
                    }
                }
            }
        }
        Ok(Some(keys))
    }

    fn go_plain(&mut self, parts: &[(Option<ArrayRef>, usize)]) -> Result<ArrayRef, arrow::error::ArrowError> {
        *self = Self { form: Form::Plain, ..Self::new(self.value.clone(), self.least) };
        plain(&self.value, parts)
    }

    /// Whether values come up again often enough, by a sample from all over the batch.
    fn would_pay(&self, parts: &[(Option<ArrayRef>, usize)]) -> Result<bool, arrow::error::ArrowError> {
        let mut column = Self::new(self.value.clone(), self.least);
        let mut keys = Keys::with_capacity(SAMPLE);
        let total: usize = parts.iter().map(|(_, rows)| rows).sum();
        for (array, rows) in parts {
            let Some(array) = array else { continue };
            let places = (0..*rows as u32).step_by((total / SAMPLE).max(1));
            let sample = take(array, &UInt32Array::from_iter_values(places), None)?;
            if !column.append(&sample, &mut keys, false)? {
                return Ok(false);
            }
        }
        let rows = keys.valid_rows();
        Ok(rows >= WINDOW && column.entries.len() * 8 < rows)
    }

    /// Appends the numbers of values; `is_whole` says that they are all there
    /// are. Gives whether there was room.
    fn append(&mut self, array: &ArrayRef, keys: &mut Keys, is_whole: bool) -> Result<bool, arrow::error::ArrowError> {
        let any = array.as_any();
        if let Some(array) = any.downcast_ref::<DictionaryArray<UInt8Type>>() {
            return self.append_keys(array.keys(), array.values(), keys, is_whole);
        }
        if let Some(array) = any.downcast_ref::<DictionaryArray<UInt16Type>>() {
            return self.append_keys(array.keys(), array.values(), keys, is_whole);
        }
        let mut last: Option<(usize, u16)> = None;
        let Some(values) = Values::of(array) else {
            let message = format!("values of type {} in place of {}", array.data_type(), self.value);
            return Err(arrow::error::ArrowError::SchemaError(message));
        };
        for row in 0..array.len() {
            if array.is_null(row) {
                keys.push(None);
                continue;
            }
            let mut room = [0; 8];
            let value = values.get(row, &mut room);
            let number = match last {
                Some((_, number)) if self.entries.get(usize::from(number)) == value => number,
                _ => match self.entries.intern(value) {
                    Some(number) => number,
                    None => return Ok(false),
                },
            };
            last = Some((row, number));
            keys.push(Some(number));
        }
        Ok(true)
    }

    /// Looks up all values of a dictionary that is small beside its rows; gives whether they have numbers, and none is null.
    fn number_all(&mut self, memo: &mut Memo, values: &Values<'_>, rows: usize) -> bool {
        if memo.is_whole {
            return true;
        }
        if memo.values.null_count() > 0 || memo.values.len() * 4 > rows {
            return false;
        }
        for (at, number) in memo.numbers.iter_mut().enumerate().filter(|(_, number)| **number == UNKNOWN) {
            match self.entries.intern(values.get(at, &mut [0; 8])) {
                Some(new) => *number = u32::from(new),
                None => return false,
            }
        }
        memo.is_whole = true;
        true
    }

    fn append_keys<K: ArrowPrimitiveType>(
        &mut self,
        rows: &PrimitiveArray<K>,
        values: &ArrayRef,
        keys: &mut Keys,
        is_whole: bool,
    ) -> Result<bool, arrow::error::ArrowError>
    where
        K::Native: Into<u16>,
    {
        let memo = self.memo.take().filter(|memo| Arc::ptr_eq(&memo.values, values));
        let mut memo = memo.unwrap_or_else(|| Memo {
            values: Arc::clone(values),
            numbers: vec![UNKNOWN; values.len()],
            is_whole: false,
        });
        let Some(known) = Values::of(values) else {
            let message = format!("values of type {} in place of {}", values.data_type(), self.value);
            return Err(arrow::error::ArrowError::SchemaError(message));
        };
        let nulls = rows.nulls().filter(|nulls| nulls.null_count() > 0);
        if (nulls.is_none() || is_whole) && self.number_all(&mut memo, &known, rows.len()) {
            let numbers = &memo.numbers;
            // What is out of range is not valid Arrow.
            let number = |key: &K::Native| numbers.get(usize::from((*key).into())).map_or(0, |number| *number as u16);
            match is_whole {
                true => keys.set(rows.values().iter().map(number), nulls),
                false => keys.extend(rows.values().iter().map(number)),
            }
            self.memo = Some(memo);
            return Ok(true);
        }
        for (row, key) in rows.values().iter().enumerate() {
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                keys.push(None);
                continue;
            }
            let at = usize::from((*key).into());
            let mut number = memo.numbers.get(at).copied().unwrap_or(NULL);
            if number == UNKNOWN {
                let mut room = [0; 8];
                number = match values.is_null(at) {
                    true => NULL,
                    false => match self.entries.intern(known.get(at, &mut room)) {
                        Some(number) => u32::from(number),
                        None => return Ok(false),
                    },
                };
                memo.numbers[at] = number;
            }
            keys.push(u16::try_from(number).ok());
        }
        self.memo = Some(memo);
        Ok(true)
    }
}

/// The values of all parts.
pub(super) fn plain(
    value: &DataType,
    parts: &[(Option<ArrayRef>, usize)],
) -> Result<ArrayRef, arrow::error::ArrowError> {
    let of_part = |(array, rows): &(Option<ArrayRef>, usize)| match array {
        None => Ok(new_null_array(value, *rows)),
        Some(array) if array.data_type() == value => Ok(Arc::clone(array)),
        Some(array) => cast(array, value),
    };
    if let [part] = parts {
        return of_part(part);
    }
    let arrays = parts.iter().map(of_part).collect::<Result<Vec<_>, _>>()?;
    let references: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
    concat(&references)
}
