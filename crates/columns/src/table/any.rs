//! A column of values of any type: the bodies of log records.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StructArray, UInt8Array, make_array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{Field, Fields};
use arrow::error::ArrowError;
use otel_arrow_dfe_pdata::schema::consts;

use super::values::{Sparse, Strings, ValueId};
use super::{Column, Kind, value_of};
use crate::text::utf8;

/// Values in the order of their records.
#[derive(Debug)]
pub(crate) struct AnyValues {
    /// Kind of each value; 0 is none.
    kinds: Vec<u8>,
    texts: Strings,
    text_column: Column,
    blobs: Strings,
    blob_column: Column,
}

impl AnyValues {
    pub(crate) fn new() -> Self {
        Self {
            kinds: Vec::new(),
            texts: Strings::new(),
            text_column: Column::new(0, Kind::Text, 0),
            blobs: Strings::new(),
            blob_column: Column::new(0, Kind::Bytes, 0),
        }
    }

    /// Bytes of the values.
    pub(crate) fn bytes(&self) -> usize {
        self.texts.bytes() + self.blobs.bytes()
    }

    /// No value.
    pub(crate) fn none(&mut self) {
        self.kinds.push(0);
    }

    /// No value for the next records, until there are `rows`.
    pub(crate) fn none_until(&mut self, rows: usize) {
        self.kinds.resize(rows, 0);
    }

    /// A text, which `is_utf8` or is made so.
    pub(crate) fn text(&mut self, value: &[u8], is_utf8: bool) {
        self.kinds.push(Kind::Text as u8);
        let id = if is_utf8 {
            value_of(&mut self.texts, &mut self.text_column, value)
        } else {
            value_of(&mut self.texts, &mut self.text_column, &utf8(value))
        };
        self.text_column.values.push(id);
    }

    /// Bytes.
    pub(crate) fn opaque(&mut self, value: &[u8]) {
        self.kinds.push(Kind::Bytes as u8);
        let id = value_of(&mut self.blobs, &mut self.blob_column, value);
        self.blob_column.values.push(id);
    }

    /// The column, null where there is no value. It is there even if that is everywhere: where the engine's batch
    /// processor merges batches with the column and without, it puts nulls into the kinds too, and then refuses what it
    /// made.
    pub(crate) fn finish(self) -> Result<StructArray, ArrowError> {
        let Self { kinds, texts, text_column, blobs, blob_column } = self;
        let mut columns: Vec<(&str, ArrayRef)> = Vec::new();
        if !text_column.values.is_empty() {
            let rows = spread(&kinds, Kind::Text, &text_column.values);
            let values = texts.text_column(&Sparse { before: 0, values: &rows, length: rows.len() })?;
            columns.push((consts::ATTRIBUTE_STR, nullif(&values, &kinds, Kind::Text)?));
        }
        if !blob_column.values.is_empty() {
            let rows = spread(&kinds, Kind::Bytes, &blob_column.values);
            let values = blobs.bytes_column(&Sparse { before: 0, values: &rows, length: rows.len() })?;
            columns.push((consts::ATTRIBUTE_BYTES, nullif(&values, &kinds, Kind::Bytes)?));
        }
        let nulls = mask(&kinds, |kind| kind != 0);
        columns.insert(0, (consts::ATTRIBUTE_TYPE, Arc::new(UInt8Array::from(kinds))));
        let fields = columns
            .iter()
            .map(|(name, array)| Field::new(*name, array.data_type().clone(), *name != consts::ATTRIBUTE_TYPE));
        let fields = Fields::from_iter(fields);
        StructArray::try_new(fields, columns.into_iter().map(|(_, array)| array).collect(), nulls)
    }
}

/// The values of one kind at the places of their records, among zeros.
fn spread(kinds: &[u8], kind: Kind, values: &[ValueId]) -> Vec<ValueId> {
    let mut values = values.iter().copied();
    kinds.iter().map(|other| if *other == kind as u8 { values.next().unwrap_or(0) } else { 0 }).collect()
}

/// The column with nulls where the value is of another kind.
fn nullif(column: &ArrayRef, kinds: &[u8], kind: Kind) -> Result<ArrayRef, ArrowError> {
    let nulls = mask(kinds, |other| other == kind as u8);
    Ok(make_array(column.to_data().into_builder().nulls(nulls).build()?))
}

/// Nothing if all are valid.
fn mask(kinds: &[u8], is_valid: impl Fn(u8) -> bool) -> Option<NullBuffer> {
    let nulls = NullBuffer::new(BooleanBuffer::collect_bool(kinds.len(), |row| is_valid(kinds[row])));
    Some(nulls).filter(|nulls| nulls.null_count() > 0)
}
