//! An attributes table, looked up by parent id and key.

use arrow::array::{
    Array, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt8Array, UInt16Array, UInt32Array,
};
use otel_arrow_dfe_pdata::arrays::{ByteArrayAccessor, MaybeDictArrayAccessor, NullableArrayAccessor};
use otel_arrow_dfe_pdata::otlp::attributes::AttributeValueType;
use otel_arrow_dfe_pdata::schema::consts;

use super::series::KeyValue;
use crate::ColumnsError;

const NO_ROW: u32 = u32::MAX;

/// The columns of an attributes table, and for each wanted key the row of each parent.
///
/// Parents are numbered by the caller (row of the root table), so what the sender chose as ids bounds no allocation.
pub(crate) struct AttributeTable<'a> {
    types: &'a UInt8Array,
    text: Option<MaybeDictArrayAccessor<'a, StringArray>>,
    int: Option<MaybeDictArrayAccessor<'a, Int64Array>>,
    double: Option<MaybeDictArrayAccessor<'a, Float64Array>>,
    bool: Option<&'a BooleanArray>,
    bytes: Option<ByteArrayAccessor<'a>>,
    encoded: Option<ByteArrayAccessor<'a>>,
    rows: Vec<Vec<u32>>,
}

/// A value of an attribute, borrowed where it can be.
pub(crate) enum AttributeValue<'a> {
    Text(&'a str),
    Int(i64),
    Double(f64),
    Bool(bool),
    Bytes(Vec<u8>),
}

fn malformed(reason: impl ToString) -> ColumnsError {
    ColumnsError::Otap { table: "attributes", reason: reason.to_string() }
}

impl<'a> AttributeTable<'a> {
    /// Reads `batch`; `row_of` turns a parent id into the number of the parent (or `None`: nobody's), of which there
    /// are `parents`. The last row wins where a parent has a key twice.
    pub(crate) fn new(
        batch: &'a RecordBatch,
        keys: &[&str],
        parents: usize,
        row_of: impl Fn(u32) -> Option<usize>,
    ) -> Result<Self, ColumnsError> {
        let column = |name: &str| batch.column_by_name(name);
        let types = column(consts::ATTRIBUTE_TYPE)
            .and_then(|c| c.as_any().downcast_ref::<UInt8Array>())
            .ok_or_else(|| malformed("column `type` is missing or not uint8"))?;
        let key_column = column(consts::ATTRIBUTE_KEY).ok_or_else(|| malformed("column `key` is missing"))?;
        let names = MaybeDictArrayAccessor::<StringArray>::try_new(key_column).map_err(malformed)?;
        let parent_ids = ParentIds::new(batch)?;

        let mut rows = vec![Vec::new(); keys.len()];
        for row in 0..batch.num_rows() {
            let Some(name) = names.str_at(row) else { continue };
            let Some(wanted) = keys.iter().position(|key| *key == name) else { continue };
            let Some(parent) = parent_ids.at(row).and_then(&row_of) else { continue };
            let of_key = &mut rows[wanted];
            if of_key.is_empty() {
                of_key.resize(parents, NO_ROW);
            }
            if let (Some(slot), Ok(row)) = (of_key.get_mut(parent), u32::try_from(row)) {
                *slot = row;
            }
        }
        Ok(Self {
            types,
            text: column(consts::ATTRIBUTE_STR)
                .map(MaybeDictArrayAccessor::<StringArray>::try_new)
                .transpose()
                .map_err(malformed)?,
            int: column(consts::ATTRIBUTE_INT)
                .map(MaybeDictArrayAccessor::<Int64Array>::try_new)
                .transpose()
                .map_err(malformed)?,
            double: column(consts::ATTRIBUTE_DOUBLE)
                .map(MaybeDictArrayAccessor::<Float64Array>::try_new)
                .transpose()
                .map_err(malformed)?,
            bool: column(consts::ATTRIBUTE_BOOL).and_then(|c| c.as_any().downcast_ref::<BooleanArray>()),
            bytes: column(consts::ATTRIBUTE_BYTES).map(ByteArrayAccessor::try_new).transpose().map_err(malformed)?,
            encoded: column(consts::ATTRIBUTE_SER).map(ByteArrayAccessor::try_new).transpose().map_err(malformed)?,
            rows,
        })
    }

    /// The value that `parent` has for the key at `index` of the wanted keys.
    ///
    /// A column that is not there stands for the default of its type: writers leave out columns of zeros.
    pub(crate) fn value(&self, index: usize, parent: usize) -> Option<AttributeValue<'_>> {
        let row = *self.rows.get(index)?.get(parent)?;
        if row == NO_ROW {
            return None;
        }
        let row = row as usize;
        let kind = self.types.value(row);
        if kind == AttributeValueType::Str as u8 {
            Some(AttributeValue::Text(self.text.as_ref().and_then(|c| c.str_at(row)).unwrap_or("")))
        } else if kind == AttributeValueType::Int as u8 {
            Some(AttributeValue::Int(self.int.value_at(row).unwrap_or(0)))
        } else if kind == AttributeValueType::Double as u8 {
            Some(AttributeValue::Double(self.double.value_at(row).unwrap_or(0.0)))
        } else if kind == AttributeValueType::Bool as u8 {
            Some(AttributeValue::Bool(self.bool.is_some_and(|c| c.is_valid(row) && c.value(row))))
        } else if kind == AttributeValueType::Bytes as u8 {
            Some(AttributeValue::Bytes(self.bytes.value_at(row).unwrap_or_default()))
        } else if kind == AttributeValueType::Map as u8 || kind == AttributeValueType::Slice as u8 {
            Some(AttributeValue::Bytes(self.encoded.value_at(row).unwrap_or_default()))
        } else {
            None
        }
    }
}

impl AttributeValue<'_> {
    pub(crate) fn to_key(&self) -> KeyValue {
        match self {
            Self::Text(text) => KeyValue::Text((*text).into()),
            Self::Int(value) => KeyValue::Int(*value),
            Self::Double(value) => KeyValue::Double(value.to_bits()),
            Self::Bool(value) => KeyValue::Bool(*value),
            Self::Bytes(bytes) => KeyValue::Bytes(bytes.as_slice().into()),
        }
    }
}

/// Parent ids, 16 or 32 bits wide, plain or by dictionary.
enum ParentIds<'a> {
    Narrow(MaybeDictArrayAccessor<'a, UInt16Array>),
    Wide(MaybeDictArrayAccessor<'a, UInt32Array>),
}

impl<'a> ParentIds<'a> {
    fn new(batch: &'a RecordBatch) -> Result<Self, ColumnsError> {
        let column =
            batch.column_by_name(consts::PARENT_ID).ok_or_else(|| malformed("column `parent_id` is missing"))?;
        MaybeDictArrayAccessor::<UInt16Array>::try_new(column)
            .map(Self::Narrow)
            .or_else(|_| MaybeDictArrayAccessor::<UInt32Array>::try_new(column).map(Self::Wide))
            .map_err(malformed)
    }

    fn at(&self, row: usize) -> Option<u32> {
        match self {
            Self::Narrow(ids) => ids.value_at(row).map(u32::from),
            Self::Wide(ids) => ids.value_at(row),
        }
    }
}
