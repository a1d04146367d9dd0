//! The keys of a column with a dictionary.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt8Array, UInt16Array};
use arrow::buffer::{NullBuffer, ScalarBuffer};

use super::dictionary::Form;

/// Numbers of values of rows, with the nulls among them.
pub(super) struct Keys {
    numbers: Vec<u16>,
    /// Which rows are valid, once one is not.
    valid: Vec<bool>,
    /// The same of a column that came in with its nulls.
    nulls: Option<NullBuffer>,
}

impl Keys {
    pub(super) fn with_capacity(rows: usize) -> Self {
        Self { numbers: Vec::with_capacity(rows), valid: Vec::new(), nulls: None }
    }

    /// Appends the number of a row, or none.
    #[inline]
    pub(super) fn push(&mut self, number: Option<u16>) {
        if number.is_none() && self.valid.is_empty() {
            self.valid.reserve(self.numbers.capacity());
            self.valid.resize(self.numbers.len(), true);
        }
        if !self.valid.is_empty() || number.is_none() {
            self.valid.push(number.is_some());
        }
        self.numbers.push(number.unwrap_or_default());
    }

    /// The numbers of all rows of the column, of which those in `nulls` mean nothing.
    pub(super) fn set(&mut self, numbers: impl ExactSizeIterator<Item = u16>, nulls: Option<&NullBuffer>) {
        self.numbers.extend(numbers);
        self.nulls = nulls.cloned();
    }

    /// As many times [`Keys::push`], none of them null.
    pub(super) fn extend(&mut self, numbers: impl ExactSizeIterator<Item = u16>) {
        if !self.valid.is_empty() {
            self.valid.resize(self.valid.len() + numbers.len(), true);
        }
        self.numbers.extend(numbers);
    }

    /// Rows that are not null.
    pub(super) fn valid_rows(&self) -> usize {
        match &self.nulls {
            Some(nulls) => nulls.len() - nulls.null_count(),
            None if self.valid.is_empty() => self.numbers.len(),
            None => self.valid.iter().filter(|valid| **valid).count(),
        }
    }

    /// The column of the keys in a form that has keys.
    pub(super) fn finish(self, form: Form) -> ArrayRef {
        let nulls = self.nulls.or_else(|| (!self.valid.is_empty()).then(|| NullBuffer::from(self.valid)));
        if form == Form::Narrow {
            let narrow: Vec<u8> = self.numbers.iter().map(|number| *number as u8).collect();
            return Arc::new(UInt8Array::new(ScalarBuffer::from(narrow), nulls));
        }
        Arc::new(UInt16Array::new(ScalarBuffer::from(self.numbers), nulls))
    }
}
