//! Byte columns, borrowed. (The accessor of the data model copies each value.)

use arrow::array::{Array, BinaryArray, DictionaryArray, FixedSizeBinaryArray};
use arrow::datatypes::{UInt8Type, UInt16Type};

/// A column of bytes, plain, of one width, or by dictionary.
pub(super) struct Blobs<'a> {
    codes: Codes<'a>,
    values: Values<'a>,
}

enum Codes<'a> {
    None,
    Byte(&'a DictionaryArray<UInt8Type>),
    Short(&'a DictionaryArray<UInt16Type>),
}

enum Values<'a> {
    Variable(&'a BinaryArray),
    Fixed(&'a FixedSizeBinaryArray),
}

impl<'a> Blobs<'a> {
    /// # Errors
    /// Names the type if it is none of bytes.
    pub(super) fn new(column: &'a dyn Array) -> Result<Self, String> {
        let any = column.as_any();
        let (codes, values) = if let Some(column) = any.downcast_ref::<DictionaryArray<UInt8Type>>() {
            (Codes::Byte(column), column.values().as_ref())
        } else if let Some(column) = any.downcast_ref::<DictionaryArray<UInt16Type>>() {
            (Codes::Short(column), column.values().as_ref())
        } else {
            (Codes::None, column)
        };
        let any = values.as_any();
        let values = any
            .downcast_ref::<BinaryArray>()
            .map(Values::Variable)
            .or_else(|| any.downcast_ref::<FixedSizeBinaryArray>().map(Values::Fixed))
            .ok_or_else(|| format!("bytes column of type {}", column.data_type()))?;
        Ok(Self { codes, values })
    }

    /// Null stands for empty: writers leave out what is the default of its type.
    pub(super) fn at(&self, row: usize) -> &'a [u8] {
        let at = match self.codes {
            Codes::None => Some(row),
            Codes::Byte(column) => column.key(row),
            Codes::Short(column) => column.key(row),
        };
        match (&self.values, at) {
            (Values::Variable(values), Some(at)) if values.is_valid(at) => values.value(at),
            (Values::Fixed(values), Some(at)) if values.is_valid(at) => values.value(at),
            _ => b"",
        }
    }
}
