//! Parent ids as they are sent: in a stretch of rows of an attributes table that have the same key, type and value, each id
//! but the first is the difference to the one before (OTAP, "quasi-delta encoding").
//!
//! They are decoded where they are read, for the keys that are asked for: to decode whole tables first costs several times
//! what reading does.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt8Array};
use arrow::compute::kernels::cmp::eq;
use arrow::datatypes::{DataType, UInt8Type, UInt16Type};
use otel_arrow_dfe_pdata::otlp::attributes::AttributeValueType;
use otel_arrow_dfe_pdata::schema::consts;
use otel_arrow_dfe_pdata::schema::consts::metadata;

/// The columns that say which ids are differences.
pub(super) struct Deltas<'a> {
    types: &'a [u8],
    batch: &'a RecordBatch,
}

impl<'a> Deltas<'a> {
    /// Of an attributes table; `None` if its ids are plain.
    pub(super) fn new(batch: &'a RecordBatch, types: &'a UInt8Array) -> Option<Self> {
        let schema = batch.schema_ref();
        let encoding = schema.field_with_name(consts::PARENT_ID).ok()?.metadata().get(metadata::COLUMN_ENCODING);
        // Some writers encode always and never say so.
        let plain = encoding.is_some_and(|encoding| encoding == metadata::encodings::PLAIN);
        (!plain).then(|| Self { types: types.values(), batch })
    }

    /// Decodes the ids of `rows`, which have the same key.
    pub(super) fn decode(&self, rows: Range<usize>, ids: &mut [u32]) {
        let mut from = 0;
        for run in self.types[rows.clone()].chunk_by(|a, b| a == b) {
            let to = from + run.len();
            if let (2.., Some(column)) = (run.len(), run.first().and_then(|kind| self.values(*kind))) {
                sum_up(&mut ids[from..to], &equal_to_next(column, rows.start + from..rows.start + to));
            }
            from = to;
        }
    }

    /// The column of values of a type; lists and maps never count as equal.
    fn values(&self, kind: u8) -> Option<&'a ArrayRef> {
        let name = [
            (AttributeValueType::Str, consts::ATTRIBUTE_STR),
            (AttributeValueType::Int, consts::ATTRIBUTE_INT),
            (AttributeValueType::Double, consts::ATTRIBUTE_DOUBLE),
            (AttributeValueType::Bool, consts::ATTRIBUTE_BOOL),
            (AttributeValueType::Bytes, consts::ATTRIBUTE_BYTES),
        ];
        let (_, name) = name.into_iter().find(|(known, _)| *known as u8 == kind)?;
        self.batch.column_by_name(name)
    }
}

/// Adds up what follows an equal value.
fn sum_up(ids: &mut [u32], equal: &BooleanArray) {
    let mut before = 0_u32;
    let bits = std::iter::once(false).chain(equal.values().iter());
    for (id, equal) in ids.iter_mut().zip(bits) {
        *id = id.wrapping_add(if equal { before } else { 0 });
        before = *id;
    }
}

/// For each of two or more rows but the last, whether the next one has the same value; nulls are equal to nothing. Of
/// dictionaries, positions are compared, as writers do it.
fn equal_to_next(column: &ArrayRef, rows: Range<usize>) -> BooleanArray {
    let compare = |values: &dyn Array| {
        let length = rows.len() - 1;
        let (these, next) = (values.slice(rows.start, length), values.slice(rows.start + 1, length));
        eq(&these.as_ref(), &next.as_ref()).unwrap_or_else(|_| BooleanArray::from(vec![false; length]))
    };
    let equal = match column.data_type() {
        DataType::Dictionary(codes, _) if **codes == DataType::UInt8 => {
            compare(column.as_dictionary::<UInt8Type>().keys())
        }
        DataType::Dictionary(codes, _) if **codes == DataType::UInt16 => {
            compare(column.as_dictionary::<UInt16Type>().keys())
        }
        _ => compare(column),
    };
    match equal.nulls() {
        Some(nulls) => BooleanArray::from(equal.values() & nulls.inner()),
        None => equal,
    }
}
