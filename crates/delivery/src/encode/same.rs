//! Whether two tables hold the same: by address if they share their arrays, else byte by byte.

use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, RecordBatch};
use arrow::buffer::Buffer;

/// Whether two tables are the same in fields and contents. A difference that has no meaning, such as other bytes where
/// nothing is valid, counts as one.
pub(crate) fn same_batch(one: &RecordBatch, other: &RecordBatch) -> bool {
    one.num_rows() == other.num_rows()
        && (Arc::ptr_eq(one.schema_ref(), other.schema_ref()) || one.schema_ref() == other.schema_ref())
        && one.columns().iter().zip(other.columns()).all(|(one, other)| same_array(one, other))
}

/// As [`same_batch`], for one column.
pub(crate) fn same_array(one: &ArrayRef, other: &ArrayRef) -> bool {
    Arc::ptr_eq(one, other)
        || (one.len() == other.len()
            && one.data_type() == other.data_type()
            && one.null_count() == other.null_count()
            && same_data(&one.to_data(), &other.to_data()))
}

fn same_data(one: &ArrayData, other: &ArrayData) -> bool {
    one.offset() == other.offset()
        && one.len() == other.len()
        && one.nulls() == other.nulls()
        && one.buffers().len() == other.buffers().len()
        && one.buffers().iter().zip(other.buffers()).all(|(one, other)| same_buffer(one, other))
        && one.child_data().len() == other.child_data().len()
        && one.child_data().iter().zip(other.child_data()).all(|(one, other)| same_data(one, other))
}

/// Whether two buffers hold the same bytes.
pub(crate) fn same_buffer(one: &Buffer, other: &Buffer) -> bool {
    one.ptr_eq(other) || one.as_slice() == other.as_slice()
}
