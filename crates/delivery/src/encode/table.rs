//! Columns of OTAP's tables by name and type, whatever form they are stored in.

use arrow::array::{
    Array, ArrayAccessor, ArrayRef, DictionaryArray, ListArray, PrimitiveArray, RecordBatch, StructArray, UInt8Array,
    UInt16Array,
};
use arrow::datatypes::{ArrowPrimitiveType, DataType, UInt8Type, UInt16Type};
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;

use super::error::EncodeError;

/// Where the value of a row stands among the values of a column.
#[derive(Debug, Clone, Copy)]
enum Keys<'a> {
    /// In the same row.
    Rows,
    Narrow(&'a UInt8Array),
    Wide(&'a UInt16Array),
}

/// A column, with or without a dictionary.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column<'a, A> {
    keys: Keys<'a>,
    values: &'a A,
}

impl<'a, A: Array> Column<'a, A>
where
    &'a A: ArrayAccessor,
{
    /// The value of a row; nothing if it is null, or not there.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<<&'a A as ArrayAccessor>::Item> {
        let at = match self.keys {
            Keys::Rows => row,
            Keys::Narrow(keys) => usize::from(key(keys, row)?),
            Keys::Wide(keys) => usize::from(key(keys, row)?),
        };
        (at < self.values.len() && self.values.is_valid(at)).then(|| self.values.value(at))
    }

    /// A number that rows share if and only if they share the entry of the dictionary; the row itself if there is none.
    #[inline]
    pub(crate) fn entry(&self, row: usize) -> Option<usize> {
        match self.keys {
            Keys::Rows => None,
            Keys::Narrow(keys) => key(keys, row).map(usize::from),
            Keys::Wide(keys) => key(keys, row).map(usize::from),
        }
    }
}

#[inline]
fn key<T: ArrowPrimitiveType>(keys: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
    (row < keys.len() && keys.is_valid(row)).then(|| keys.value(row))
}

/// The value of a row of a column that may not be there.
#[inline]
pub(crate) fn value<'a, A: Array>(column: &Option<Column<'a, A>>, row: usize) -> Option<<&'a A as ArrayAccessor>::Item>
where
    &'a A: ArrayAccessor,
{
    column.as_ref().and_then(|column| column.get(row))
}

/// The value of a row of a column of numbers without a dictionary that may not be there.
#[inline]
pub(crate) fn number<T: ArrowPrimitiveType>(column: Option<&PrimitiveArray<T>>, row: usize) -> Option<T::Native> {
    column.and_then(|column| key(column, row))
}

/// The value of a row of a column of lists: where it begins and ends among the items.
#[inline]
pub(crate) fn list(column: Option<&ListArray>, row: usize) -> Option<std::ops::Range<usize>> {
    let column = column.filter(|column| row < column.len() && column.is_valid(row))?;
    let place = |at: usize| column.value_offsets().get(at).and_then(|offset| usize::try_from(*offset).ok());
    Some(place(row)?..place(row + 1)?)
}

/// A table, or the columns of a structure in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table<'a> {
    pub(crate) kind: ArrowPayloadType,
    columns: Columns<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Columns<'a> {
    Batch(&'a RecordBatch),
    Structure(&'a StructArray),
    None,
}

impl<'a> Table<'a> {
    /// A table of records; nothing if it has no rows.
    pub(crate) fn of(records: &'a OtapArrowRecords, kind: ArrowPayloadType) -> Option<Self> {
        let batch = records.get(kind).filter(|batch| batch.num_rows() > 0)?;
        Some(Self::from_batch(kind, batch))
    }

    pub(crate) fn from_batch(kind: ArrowPayloadType, batch: &'a RecordBatch) -> Self {
        Self { kind, columns: Columns::Batch(batch) }
    }

    pub(crate) fn rows(&self) -> usize {
        match self.columns {
            Columns::Batch(batch) => batch.num_rows(),
            Columns::Structure(array) => array.len(),
            Columns::None => 0,
        }
    }

    /// The column as it is.
    pub(crate) fn array(&self, name: &str) -> Option<&'a ArrayRef> {
        match self.columns {
            Columns::Batch(batch) => batch.column_by_name(name),
            Columns::Structure(array) => array.column_by_name(name),
            Columns::None => None,
        }
    }

    pub(crate) fn wrong_type(&self, column: &'static str, found: &DataType, expected: &'static str) -> EncodeError {
        EncodeError::ColumnType { table: self.kind, column, found: found.clone(), expected }
    }

    /// A column without a dictionary.
    pub(crate) fn plain<A: Array + 'static>(
        &self,
        name: &'static str,
        expected: &'static str,
    ) -> Result<Option<&'a A>, EncodeError> {
        let Some(array) = self.array(name) else { return Ok(None) };
        let typed = array.as_any().downcast_ref::<A>();
        typed.map(Some).ok_or_else(|| self.wrong_type(name, array.data_type(), expected))
    }

    /// As [`Table::plain`], for a column that must be there.
    pub(crate) fn required<A: Array + 'static>(
        &self,
        name: &'static str,
        expected: &'static str,
    ) -> Result<&'a A, EncodeError> {
        self.plain(name, expected)?.ok_or(EncodeError::MissingColumn { table: self.kind, column: name })
    }

    /// A column with or without a dictionary.
    pub(crate) fn column<A: Array + 'static>(
        &self,
        name: &'static str,
        expected: &'static str,
    ) -> Result<Option<Column<'a, A>>, EncodeError> {
        let Some(array) = self.array(name) else { return Ok(None) };
        let (keys, values) = match array.data_type() {
            DataType::Dictionary(_, _) => {
                if let Some(dictionary) = array.as_any().downcast_ref::<DictionaryArray<UInt8Type>>() {
                    (Keys::Narrow(dictionary.keys()), dictionary.values())
                } else if let Some(dictionary) = array.as_any().downcast_ref::<DictionaryArray<UInt16Type>>() {
                    (Keys::Wide(dictionary.keys()), dictionary.values())
                } else {
                    return Err(self.wrong_type(name, array.data_type(), "keys of 8 or 16 bits"));
                }
            }
            _ => (Keys::Rows, array),
        };
        let typed = values.as_any().downcast_ref::<A>();
        let values = typed.ok_or_else(|| self.wrong_type(name, array.data_type(), expected))?;
        Ok(Some(Column { keys, values }))
    }

    /// The columns of a structure; none if it is not there.
    pub(crate) fn structure(&self, name: &'static str) -> Result<(Self, Option<&'a StructArray>), EncodeError> {
        let array = self.plain::<StructArray>(name, "a structure")?;
        Ok((Self { kind: self.kind, columns: array.map_or(Columns::None, Columns::Structure) }, array))
    }
}
