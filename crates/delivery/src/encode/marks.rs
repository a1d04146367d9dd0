//! Rows that have what the row before has: there, ids of parents are differences.

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray, Float64Array, Int64Array,
    StringArray, UInt8Array, UInt16Array, UInt32Array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{UInt8Type, UInt16Type};
use otel_arrow_dfe_pdata::schema::consts;
use std::ops::Range;

/// Values of a column. Of dictionaries the keys are compared, as readers do.
enum Values<'a> {
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    I64(&'a [i64]),
    F64(&'a [f64]),
    Text(&'a StringArray),
    Bytes(&'a BinaryArray),
    Fixed(&'a FixedSizeBinaryArray),
    Booleans(&'a BooleanArray),
    /// No two are the same.
    Others,
}

/// A column whose rows are compared.
struct View<'a> {
    values: Values<'a>,
    nulls: Option<&'a NullBuffer>,
}

impl<'a> View<'a> {
    fn of(array: &'a ArrayRef) -> Self {
        let any = array.as_any();
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        macro_rules! first_of {
            ($($kind:ty: $view:expr),* $(,)?) => {
                $(if let Some(array) = any.downcast_ref::<$kind>() {
                    let view: fn(&'a $kind) -> Values<'a> = $view;
                    return Self { values: view(array), nulls };
                })*
            };
        }
        first_of!(
            DictionaryArray<UInt16Type>: |array| Values::U16(array.keys().values()),
            DictionaryArray<UInt8Type>: |array| Values::U8(array.keys().values()),
            UInt16Array: |array| Values::U16(array.values()),
            UInt8Array: |array| Values::U8(array.values()),
            UInt32Array: |array| Values::U32(array.values()),
            Int64Array: |array| Values::I64(array.values()),
            Float64Array: |array| Values::F64(array.values()),
            StringArray: Values::Text,
            BinaryArray: Values::Bytes,
            FixedSizeBinaryArray: Values::Fixed,
            BooleanArray: Values::Booleans,
        );
        Self { values: Values::Others, nulls: None }
    }

    /// Clears the marks of those of `rows`, but for the first, whose value is not that of the row before. What is null
    /// counts by what stands at its place.
    fn unmark_different(&self, marks: &mut [bool], rows: Range<usize>) {
        fn slices<T: Copy>(values: &[T], marks: &mut [bool], rows: Range<usize>, same: impl Fn(T, T) -> bool) {
            let (Some(values), Some(marks)) = (values.get(rows.clone()), marks.get_mut(rows)) else { return };
            let Some(ahead) = values.get(1..) else { return };
            for ((mark, value), before) in marks.iter_mut().skip(1).zip(ahead).zip(values) {
                *mark &= same(*value, *before);
            }
        }
        fn others(marks: &mut [bool], rows: Range<usize>, same: impl Fn(usize, usize) -> bool) {
            for row in rows.skip(1) {
                marks[row] = marks[row] && same(row, row - 1);
            }
        }
        match self.values {
            Values::U8(values) => slices(values, marks, rows, |a, b| a == b),
            Values::U16(values) => slices(values, marks, rows, |a, b| a == b),
            Values::U32(values) => slices(values, marks, rows, |a, b| a == b),
            Values::I64(values) => slices(values, marks, rows, |a, b| a == b),
            // As Arrow compares: all bits count.
            Values::F64(values) => slices(values, marks, rows, |a, b| a.to_bits() == b.to_bits()),
            Values::Text(array) => others(marks, rows, |a, b| array.value(a) == array.value(b)),
            Values::Bytes(array) => others(marks, rows, |a, b| array.value(a) == array.value(b)),
            Values::Fixed(array) => others(marks, rows, |a, b| array.value(a) == array.value(b)),
            Values::Booleans(array) => others(marks, rows, |a, b| array.value(a) == array.value(b)),
            Values::Others => marks[rows].iter_mut().skip(1).for_each(|mark| *mark = false),
        }
    }

    /// Clears the marks of those of `rows`, but for the first, that are null or come after one that is.
    fn unmark_null(&self, marks: &mut [bool], rows: Range<usize>) {
        let Some(nulls) = self.nulls else { return };
        if nulls.slice(rows.start, rows.len()).null_count() == 0 {
            return;
        }
        for row in rows.skip(1) {
            marks[row] &= nulls.is_valid(row) && nulls.is_valid(row - 1);
        }
    }
}

/// Columns of attribute values by the number of their type. Maps, lists and nothing are never the same.
const VALUE_COLUMNS: [Option<&str>; 8] = [
    None,
    Some(consts::ATTRIBUTE_STR),
    Some(consts::ATTRIBUTE_INT),
    Some(consts::ATTRIBUTE_DOUBLE),
    Some(consts::ATTRIBUTE_BOOL),
    None,
    None,
    Some(consts::ATTRIBUTE_BYTES),
];

fn all(rows: usize) -> Vec<bool> {
    let mut marks = vec![true; rows];
    if let Some(first) = marks.first_mut() {
        *first = false;
    }
    marks
}

/// Which rows of attributes have the type and the key of the row before.
pub(crate) fn same_names(types: &UInt8Array, keys: &ArrayRef) -> Vec<bool> {
    let rows = types.len();
    let mut marks = all(rows);
    View { values: Values::U8(types.values()), nulls: None }.unmark_different(&mut marks, 0..rows);
    let keys = View::of(keys);
    keys.unmark_different(&mut marks, 0..rows);
    keys.unmark_null(&mut marks, 0..rows);
    marks
}

/// Which rows of attributes have type, key and value of the row before.
pub(crate) fn same_attributes<'a>(
    types: &UInt8Array,
    keys: &ArrayRef,
    column: impl Fn(&'static str) -> Option<&'a ArrayRef>,
) -> Vec<bool> {
    let mut marks = same_names(types, keys);
    let views = VALUE_COLUMNS.map(|name| name.and_then(&column).map(View::of));
    let kinds = types.values();
    let mut start = 0;
    while let Some(kind) = kinds.get(start) {
        let rows = start..start + run_length(&kinds[start..]);
        start = rows.end;
        match views.get(usize::from(*kind)).and_then(Option::as_ref) {
            Some(view) => {
                view.unmark_different(&mut marks, rows.clone());
                view.unmark_null(&mut marks, rows);
            }
            None => marks[rows].fill(false),
        }
    }
    marks
}

/// Which rows have the values of the row before in all of these columns. What is null counts by what stands at its place.
pub(crate) fn same_columns<'a>(rows: usize, columns: impl Iterator<Item = &'a ArrayRef>) -> Vec<bool> {
    let mut marks = all(rows);
    columns.for_each(|column| View::of(column).unmark_different(&mut marks, 0..rows.min(column.len())));
    marks
}

/// How many values are the same as the first one, until another one comes.
pub(crate) fn run_length<T: PartialEq>(values: &[T]) -> usize {
    /// Compared without a look at whether one was different in between, which takes a step for many.
    const AT_ONCE: usize = 64;
    let Some(first) = values.first() else { return 0 };
    let is_whole = |chunk: &&[T]| chunk.iter().fold(true, |same, value| same & (value == first));
    let whole = values.chunks_exact(AT_ONCE).take_while(is_whole).count() * AT_ONCE;
    whole + values[whole..].iter().take_while(|value| *value == first).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs end where another value comes, on either side of what is compared at once.
    #[test]
    fn runs() {
        for length in [0, 1, 63, 64, 65, 128, 200] {
            let values = vec![7_u8; length];
            assert_eq!(run_length(&values), length);
            let more: Vec<u8> = values.iter().copied().chain([8, 7]).collect();
            assert_eq!(run_length(&more), length.max(usize::from(length == 0)), "{length}");
        }
    }
}
