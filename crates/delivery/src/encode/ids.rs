//! Ids that tie the rows of one table to those of another, decoded.
//!
//! Ids travel plain or as differences to the row before (OTAP specification, "transport optimized encodings"). Which it is
//! says the metadata of the field; without any, they are differences.

use std::borrow::Cow;

use arrow::array::{Array, ArrayRef, UInt8Array, UInt16Array, UInt32Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field};
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::consts::{self, metadata};

use super::error::EncodeError;
use super::marks::{same_attributes, same_columns};
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
    marked_parents(table, field).map(|(ids, _)| ids)
}

/// As [`parents`], and which of them were differences; nothing if they were plain, or all were.
pub(crate) fn marked_parents<'a>(
    table: &Table<'a>,
    field: Option<&Field>,
) -> Result<(Ids<'a>, Option<Vec<bool>>), EncodeError> {
    let Some(array) = table.array(consts::PARENT_ID) else {
        return Err(EncodeError::MissingColumn { table: table.kind, column: consts::PARENT_ID });
    };
    let mut ids = widen(table, consts::PARENT_ID, array)?;
    if is_plain(field) {
        return Ok((ids, None));
    }
    let marks = match rule_of(table.kind) {
        Rule::Always => {
            accumulate(&mut ids, |_| true);
            return Ok((ids, None));
        }
        Rule::Attribute => {
            let types: &UInt8Array = table.required(consts::ATTRIBUTE_TYPE, "numbers of 8 bits")?;
            let missing = EncodeError::MissingColumn { table: table.kind, column: consts::ATTRIBUTE_KEY };
            same_attributes(types, table.array(consts::ATTRIBUTE_KEY).ok_or(missing)?, |name| table.array(name))
        }
        Rule::Columns(names) => same_columns(table.rows(), names.iter().filter_map(|name| table.array(name))),
    };
    accumulate(&mut ids, |row| marks[row]);
    Ok((ids, Some(marks)))
}

fn is_plain(field: Option<&Field>) -> bool {
    let encoding = field.and_then(|field| field.metadata().get(metadata::COLUMN_ENCODING));
    encoding.is_some_and(|encoding| encoding == metadata::encodings::PLAIN)
}

/// Turns differences into ids where `is_difference` of the row.
fn accumulate(ids: &mut Ids<'_>, is_difference: impl Fn(usize) -> bool) {
    let Ids { values, nulls } = ids;
    let nulls = nulls.as_ref().filter(|nulls| nulls.null_count() > 0);
    let mut before = 0_u32;
    for (row, value) in values.to_mut().iter_mut().enumerate() {
        if nulls.is_some_and(|nulls| nulls.is_null(row)) {
            continue;
        }
        let base = if is_difference(row) { before } else { 0 };
        before = value.wrapping_add(base);
        *value = before;
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
