//! From rows in their order to arrays. `rows.rs` finds the order.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, BooleanBufferBuilder, DictionaryArray, Float64Array, RecordBatch, StringArray,
    UInt8Array, UInt16Array,
};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{Field, Schema, UInt8Type, UInt16Type};
use arrow::error::ArrowError;
use otel_arrow_dfe_pdata::schema::consts::metadata::encodings;
use otel_arrow_dfe_pdata::schema::{FieldExt as _, consts};

use super::rows::{ParentIds, Rows};
use super::values::Sparse;
use super::{AttributeTable, Kind, NameId, Names};

/// A table whose rows are in order.
#[derive(Debug)]
pub(crate) struct LaidOut {
    pub(super) table: AttributeTable,
    pub(super) rows: Rows,
}

impl LaidOut {
    /// The arrays of the table.
    pub(crate) fn record_batch(self) -> Result<RecordBatch, ArrowError> {
        record_batch(self.table, self.rows)
    }
}

fn record_batch(table: AttributeTable, rows: Rows) -> Result<RecordBatch, ArrowError> {
    let encoding = match rows.encoding {
        ParentIds::Plain => encodings::PLAIN,
        ParentIds::Transport => encodings::QUASI_DELTA,
    };
    let keys = key_column(&table.names, &rows.names)?;
    let mut fields = Vec::with_capacity(9);
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(9);
    let mut column = |name: &str, array: Option<ArrayRef>, nullable: bool| {
        if let Some(array) = array {
            fields.push(Field::new(name, array.data_type().clone(), nullable));
            arrays.push(array);
        }
    };
    let texts = rows.only([Kind::Text; 2]).map(|column| table.texts.text_column(&column));
    let integers = rows.only([Kind::Integer; 2]).map(|column| table.integers.column(&column));
    let doubles = rows.only([Kind::Double; 2]).map(|column| doubles(&table.doubles, &column)).transpose()?;
    let booleans = rows.only([Kind::Boolean; 2]).map(|column| booleans(&column));
    let blobs = rows.only([Kind::Bytes; 2]).map(|column| table.blobs.bytes_column(&column));
    let serialized = rows.only([Kind::Map, Kind::List]).map(|column| table.serialized.bytes_column(&column));
    column(consts::PARENT_ID, Some(Arc::new(UInt16Array::from(rows.parents))), false);
    column(consts::ATTRIBUTE_KEY, Some(keys), false);
    column(consts::ATTRIBUTE_TYPE, Some(Arc::new(UInt8Array::from(rows.kinds))), false);
    column(consts::ATTRIBUTE_STR, texts.transpose()?, true);
    column(consts::ATTRIBUTE_INT, integers.transpose()?, true);
    column(consts::ATTRIBUTE_DOUBLE, doubles, true);
    column(consts::ATTRIBUTE_BOOL, booleans, true);
    column(consts::ATTRIBUTE_BYTES, blobs.transpose()?, true);
    column(consts::ATTRIBUTE_SER, serialized.transpose()?, true);
    if let Some(parent_id) = fields.first_mut() {
        *parent_id = parent_id.clone().with_encoding(encoding);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

fn doubles(values: &[f64], column: &Sparse<'_>) -> Result<ArrayRef, ArrowError> {
    let mut rows = vec![0.0; column.length];
    for (row, id) in rows[column.before..].iter_mut().zip(column.values) {
        *row = usize::try_from(*id).ok().and_then(|id| values.get(id)).copied().unwrap_or_default();
    }
    Ok(Arc::new(Float64Array::try_new(ScalarBuffer::from(rows), column.nulls())?))
}

fn booleans(column: &Sparse<'_>) -> ArrayRef {
    let mut rows = BooleanBufferBuilder::new(column.length);
    rows.append_n(column.before, false);
    column.values.iter().for_each(|value| rows.append(*value == 1));
    rows.append_n(column.length - rows.len(), false);
    Arc::new(BooleanArray::new(rows.finish(), column.nulls()))
}

/// Names as a dictionary with the narrowest keys that suffice.
#[allow(clippy::cast_possible_truncation, reason = "numbers are below the number of names")]
fn key_column(names: &Names, rows: &[NameId]) -> Result<ArrayRef, ArrowError> {
    let values: ArrayRef = Arc::new(StringArray::from_iter_values(names.iter()));
    if names.len() <= 1 << 8 {
        let keys: Vec<u8> = rows.iter().map(|name| *name as u8).collect();
        return Ok(Arc::new(DictionaryArray::<UInt8Type>::try_new(UInt8Array::from(keys), values)?));
    }
    if names.len() <= 1 << 16 {
        let keys: Vec<u16> = rows.iter().map(|name| *name as u16).collect();
        return Ok(Arc::new(DictionaryArray::<UInt16Type>::try_new(UInt16Array::from(keys), values)?));
    }
    Ok(Arc::new(StringArray::from_iter_values(rows.iter().map(|name| names.get(*name)))))
}
