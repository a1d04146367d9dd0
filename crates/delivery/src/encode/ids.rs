//! Ids that tie the rows of one table to those of another, decoded.
//!
//! Ids travel plain or as differences to the row before (OTAP specification, "transport optimized encodings"). Which it is
//! says the metadata of the field; without any, they are differences.

use std::borrow::Cow;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray, Float64Array, Int64Array,
    StringArray, UInt8Array, UInt16Array, UInt32Array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, UInt8Type, UInt16Type};
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::consts::{self, metadata};

use super::error::EncodeError;
use super::table::Table;

/// Decoded ids of the rows of a table.
#[derive(Debug, Clone)]
pub(crate) struct Ids<'a> {
    pub(crate) values: Cow<'a, [u32]>,
    pub(crate) nulls: Option<NullBuffer>,
}

impl Ids<'_> {
    /// The id of a row, if it has one.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<u32> {
        match &self.nulls {
            Some(nulls) if nulls.is_null(row) => None,
            _ => self.values.get(row).copied(),
        }
    }
}

/// When the parent id of a row is the difference to that of the row before.
pub(crate) enum Rule {
    /// Always.
    Always,
    /// If type, key and value are those of the row before.
    Attribute,
    /// If these columns have the values of the row before.
    Columns(&'static [&'static str]),
}

/// The rule for the parent ids of a table.
pub(crate) fn rule_of(table: ArrowPayloadType) -> Rule {
    use ArrowPayloadType as Type;
    match table {
        Type::NumberDataPoints | Type::SummaryDataPoints | Type::HistogramDataPoints | Type::ExpHistogramDataPoints => {
            Rule::Always
        }
        Type::NumberDpExemplars | Type::HistogramDpExemplars | Type::ExpHistogramDpExemplars => {
            Rule::Columns(&[consts::INT_VALUE, consts::DOUBLE_VALUE])
        }
        Type::SpanEvents => Rule::Columns(&[consts::NAME]),
        Type::SpanLinks => Rule::Columns(&[consts::TRACE_ID]),
        _ => Rule::Attribute,
    }
}

/// Ids of the rows themselves; nothing if there is no such column.
pub(crate) fn own<'a>(table: &Table<'a>, field: Option<&Field>) -> Result<Option<Ids<'a>>, EncodeError> {
    let Some(array) = table.array(consts::ID) else { return Ok(None) };
    let mut ids = widen(table, consts::ID, array)?;
    if !is_plain(field) {
        accumulate(&mut ids, |_| true);
    }
    Ok(Some(ids))
}

/// Ids of the rows of the parent table.
pub(crate) fn parents<'a>(table: &Table<'a>, field: Option<&Field>) -> Result<Ids<'a>, EncodeError> {
    let Some(array) = table.array(consts::PARENT_ID) else {
        return Err(EncodeError::MissingColumn { table: table.kind, column: consts::PARENT_ID });
    };
    let mut ids = widen(table, consts::PARENT_ID, array)?;
    if is_plain(field) {
        return Ok(ids);
    }
    match rule_of(table.kind) {
        Rule::Always => accumulate(&mut ids, |_| true),
        Rule::Attribute => {
            let types: &UInt8Array = table.required(consts::ATTRIBUTE_TYPE, "numbers of 8 bits")?;
            let missing = EncodeError::MissingColumn { table: table.kind, column: consts::ATTRIBUTE_KEY };
            let keys = table.array(consts::ATTRIBUTE_KEY).ok_or(missing)?;
            let is_same = same_attributes(types, keys, |name| table.array(name));
            accumulate(&mut ids, |row| is_same[row]);
        }
        Rule::Columns(names) => {
            let is_same = same_columns(table.rows(), names.iter().filter_map(|name| table.array(name)));
            accumulate(&mut ids, |row| is_same[row]);
        }
    }
    Ok(ids)
}

fn is_plain(field: Option<&Field>) -> bool {
    let encoding = field.and_then(|field| field.metadata().get(metadata::COLUMN_ENCODING));
    encoding.is_some_and(|encoding| encoding == metadata::encodings::PLAIN)
}

/// Turns differences into ids where `is_difference` of the row.
fn accumulate(ids: &mut Ids<'_>, is_difference: impl Fn(usize) -> bool) {
    let nulls = ids.nulls.clone();
    let mut before = 0_u32;
    for (row, value) in ids.values.to_mut().iter_mut().enumerate() {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            continue;
        }
        if is_difference(row) {
            *value = value.wrapping_add(before);
        }
        before = *value;
    }
}

/// Numbers of a column of ids: 16 or 32 bits, the latter with or without a dictionary.
fn widen<'a>(table: &Table<'a>, name: &'static str, array: &'a ArrayRef) -> Result<Ids<'a>, EncodeError> {
    let wrong = || table.wrong_type(name, array.data_type(), "numbers of 16 or 32 bits");
    if let Some(ids) = array.as_any().downcast_ref::<UInt32Array>() {
        return Ok(Ids { values: Cow::Borrowed(ids.values()), nulls: ids.nulls().cloned() });
    }
    if let Some(ids) = array.as_any().downcast_ref::<UInt16Array>() {
        let values = ids.values().iter().map(|id| u32::from(*id)).collect();
        return Ok(Ids { values: Cow::Owned(values), nulls: ids.nulls().cloned() });
    }
    let column = table.column::<UInt32Array>(name, "numbers of 16 or 32 bits").map_err(|_| wrong())?;
    let column = column.ok_or_else(wrong)?;
    let values: Vec<Option<u32>> = (0..array.len()).map(|row| column.get(row)).collect();
    let nulls = NullBuffer::from_iter(values.iter().map(Option::is_some));
    let values = values.into_iter().map(Option::unwrap_or_default).collect();
    Ok(Ids { values: Cow::Owned(values), nulls: Some(nulls).filter(|nulls| nulls.null_count() > 0) })
}

/// Clears the marks of rows among `rows` whose value is not that of the row before. What is null counts by what stands at
/// its place. Of dictionaries the keys are compared, as readers do.
fn unmark_different(array: &ArrayRef, marks: &mut [bool], rows: impl Fn(usize) -> bool) {
    fn unmark<T: PartialEq>(values: &[T], marks: &mut [bool], rows: impl Fn(usize) -> bool) {
        for (row, (pair, mark)) in values.windows(2).zip(marks.iter_mut().skip(1)).enumerate() {
            *mark &= !rows(row + 1) | (pair[0] == pair[1]);
        }
    }
    macro_rules! primitive {
        ($($kind:ty),*) => {
            $(if let Some(array) = array.as_any().downcast_ref::<$kind>() {
                return unmark(array.values(), marks, rows);
            })*
        };
    }
    macro_rules! other {
        ($($kind:ty),*) => {
            $(if let Some(array) = array.as_any().downcast_ref::<$kind>() {
                for row in 1..marks.len().min(array.len()) {
                    marks[row] &= !rows(row) || array.value(row) == array.value(row - 1);
                }
                return;
            })*
        };
    }
    primitive!(UInt8Array, UInt16Array, UInt32Array, Int64Array);
    if let Some(dictionary) = array.as_any().downcast_ref::<DictionaryArray<UInt8Type>>() {
        return unmark(dictionary.keys().values(), marks, rows);
    }
    if let Some(dictionary) = array.as_any().downcast_ref::<DictionaryArray<UInt16Type>>() {
        return unmark(dictionary.keys().values(), marks, rows);
    }
    if let Some(array) = array.as_any().downcast_ref::<Float64Array>() {
        // As Arrow compares: all bits count.
        let bits: Vec<u64> = array.values().iter().map(|value| value.to_bits()).collect();
        return unmark(&bits, marks, rows);
    }
    other!(StringArray, BinaryArray, BooleanArray, FixedSizeBinaryArray);
    marks.fill(false);
}

/// Clears the marks of rows among `rows` that are null or come after one that is.
fn unmark_null(array: &ArrayRef, marks: &mut [bool], rows: impl Fn(usize) -> bool) {
    let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) else { return };
    let mut before = false;
    for (row, (mark, valid)) in marks.iter_mut().zip(nulls.iter()).enumerate() {
        *mark &= !rows(row) | (valid & before);
        before = valid;
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

/// Which rows of attributes have type, key and value of the row before.
pub(crate) fn same_attributes<'a>(
    types: &UInt8Array,
    keys: &ArrayRef,
    column: impl Fn(&'static str) -> Option<&'a ArrayRef>,
) -> Vec<bool> {
    let mut marks = vec![true; types.len()];
    if let Some(first) = marks.first_mut() {
        *first = false;
    }
    let kinds = types.values();
    for (pair, mark) in kinds.windows(2).zip(marks.iter_mut().skip(1)) {
        *mark = pair[0] == pair[1];
    }
    unmark_different(keys, &mut marks, |_| true);
    unmark_null(keys, &mut marks, |_| true);
    let mut seen = [false; 256];
    kinds.iter().for_each(|kind| seen[usize::from(*kind)] = true);
    for kind in (0..=u8::MAX).filter(|kind| seen[usize::from(*kind)]) {
        let name = VALUE_COLUMNS.get(usize::from(kind)).copied().flatten();
        match name.and_then(&column) {
            Some(values) => {
                unmark_different(values, &mut marks, |row| kinds[row] == kind);
                unmark_null(values, &mut marks, |row| kinds[row] == kind);
            }
            None => marks.iter_mut().zip(kinds.iter()).for_each(|(mark, other)| *mark &= *other != kind),
        }
    }
    marks
}

/// Which rows have the values of the row before in all of these columns. What is null counts by what stands at its place.
pub(crate) fn same_columns<'a>(rows: usize, columns: impl Iterator<Item = &'a ArrayRef>) -> Vec<bool> {
    let mut marks = vec![true; rows];
    if let Some(first) = marks.first_mut() {
        *first = false;
    }
    columns.for_each(|column| unmark_different(column, &mut marks, |_| true));
    marks
}

/// The field of a column, or of a column of a structure.
pub(crate) fn field<'a>(fields: &'a arrow::datatypes::Fields, path: &[&str]) -> Option<&'a Field> {
    let (name, rest) = path.split_first()?;
    let field = fields.iter().find(|field| field.name() == name)?;
    match (rest, field.data_type()) {
        ([], _) => Some(field),
        (rest, DataType::Struct(fields)) => self::field(fields, rest),
        _ => None,
    }
}
