//! From rows in their order to arrays. `rows.rs` finds the order.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, BooleanBufferBuilder, DictionaryArray, Float64Array, Int64Array, RecordBatch,
    StringArray, UInt8Array, UInt16Array,
};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{Field, Schema, UInt8Type, UInt16Type};
use arrow::error::ArrowError;
use otel_arrow_dfe_pdata::schema::consts::metadata::encodings;
use otel_arrow_dfe_pdata::schema::{FieldExt as _, consts};

use super::rows::{IntegerForm, Keys, ParentIds, Rows};
use super::values::{Sparse, valid_between};
use super::{AttributeTable, Kind, Names};

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

fn record_batch(table: AttributeTable, mut rows: Rows) -> Result<RecordBatch, ArrowError> {
    let encoding = match rows.encoding {
        ParentIds::Plain => encodings::PLAIN,
        ParentIds::Transport => encodings::QUASI_DELTA,
    };
    let keys = key_column(&table.names, std::mem::replace(&mut rows.names, Keys::Byte(Vec::new())))?;
    let integers = integers(&mut rows)?;
    let mut fields = Vec::with_capacity(9);
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(9);
    let mut column = |name: &str, array: Option<ArrayRef>, nullable: bool| {
        if let Some(array) = array {
            fields.push(Field::new(name, array.data_type().clone(), nullable));
            arrays.push(array);
        }
    };
    let texts = rows.only([Kind::Text; 2]).map(|column| table.texts.text_column(&column));
    let doubles = rows.only([Kind::Double; 2]).map(|column| doubles(&table.doubles, &column)).transpose()?;
    let booleans = rows.only([Kind::Boolean; 2]).map(|column| booleans(&column));
    let blobs = rows.only([Kind::Bytes; 2]).map(|column| table.blobs.bytes_column(&column));
    let serialized = rows.only([Kind::Map, Kind::List]).map(|column| table.serialized.bytes_column(&column));
    column(consts::PARENT_ID, Some(Arc::new(UInt16Array::from(rows.parents))), false);
    column(consts::ATTRIBUTE_KEY, Some(keys), false);
    column(consts::ATTRIBUTE_TYPE, Some(Arc::new(UInt8Array::from(rows.kinds))), false);
    column(consts::ATTRIBUTE_STR, texts.transpose()?, true);
    column(consts::ATTRIBUTE_INT, integers, true);
    column(consts::ATTRIBUTE_DOUBLE, doubles, true);
    column(consts::ATTRIBUTE_BOOL, booleans, true);
    column(consts::ATTRIBUTE_BYTES, blobs.transpose()?, true);
    column(consts::ATTRIBUTE_SER, serialized.transpose()?, true);
    if let Some(parent_id) = fields.first_mut() {
        *parent_id = parent_id.clone().with_encoding(encoding);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

fn integers(rows: &mut Rows) -> Result<Option<ArrayRef>, ArrowError> {
    let before = rows.before(Kind::Integer);
    match std::mem::replace(&mut rows.integers, IntegerForm::Plain(Vec::new())) {
        IntegerForm::Dictionary(known) => rows.only([Kind::Integer; 2]).map(|column| known.column(&column)).transpose(),
        IntegerForm::Plain(mut values) => {
            let (length, end) = (rows.parents.len(), values.len());
            if end <= before {
                return Ok(None);
            }
            values.resize(length, 0);
            let nulls = valid_between(before, end, length);
            Ok(Some(Arc::new(Int64Array::try_new(ScalarBuffer::from(values), nulls)?)))
        }
    }
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
fn key_column(names: &Names, keys: Keys) -> Result<ArrayRef, ArrowError> {
    let values = || Arc::new(StringArray::from_iter_values(names.iter()));
    Ok(match keys {
        Keys::Byte(keys) => Arc::new(DictionaryArray::<UInt8Type>::try_new(UInt8Array::from(keys), values())?),
        Keys::Short(keys) => Arc::new(DictionaryArray::<UInt16Type>::try_new(UInt16Array::from(keys), values())?),
        Keys::Wide(keys) => Arc::new(StringArray::from_iter_values(keys.iter().map(|name| names.get(*name)))),
    })
}
