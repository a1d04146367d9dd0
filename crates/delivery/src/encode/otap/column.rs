//! Columns of a table in the order and the types of the protocol.
//!
//! A column is sent from the first batch on in which it says something, and then for as long as the stream lives: where it
//! says nothing it costs next to nothing, while a schema that changes costs all dictionaries.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int32Array, ListArray, StringArray, StructArray,
    TimestampNanosecondArray, UInt8Array, UInt32Array, UInt64Array, new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields};
use arrow::error::ArrowError;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::consts;
use otel_arrow_dfe_pdata::schema::schema::{DataType as Otap, DictKeySize, Schema, SimpleType};

use super::dictionary::{DictionaryColumn, Form, plain};

/// What a column is made of.
#[derive(Debug)]
enum Kind {
    Plain(DataType),
    Dictionary(Box<DictionaryColumn>),
    Structure(Vec<Column>),
}

/// A column of a table or structure.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    required: bool,
    /// Null and the default are the same: it says nothing where it is either.
    has_default: bool,
    /// It has said something in this stream.
    present: bool,
    kind: Kind,
}

/// The columns of one name, one for each part of a batch, with the rows of the part.
pub(super) type Parts = Vec<(Option<ArrayRef>, usize)>;

/// Ids, which are written anew: by the path of their column.
pub(super) type Ids = [(&'static [&'static str], ArrayRef)];

impl Column {
    /// The columns of a table.
    pub(super) fn all(table: ArrowPayloadType, schema: &Schema) -> Vec<Self> {
        let columns = schema.fields().iter().map(|field| {
            let kind = match &field.data_type {
                Otap::Simple(value) => Kind::Plain(value.to_arrow()),
                // Ids are written as they are, and readers expect that of the values of exemplars.
                Otap::Dictionary { value_type: SimpleType::UInt32, .. } => Kind::Plain(DataType::UInt32),
                Otap::Dictionary { value_type, .. } if is_exemplar(table) && field.name == consts::INT_VALUE => {
                    Kind::Plain(value_type.to_arrow())
                }
                Otap::Dictionary { min_key_size, value_type } => {
                    let least = if *min_key_size == DictKeySize::U8 { Form::Narrow } else { Form::Wide };
                    Kind::Dictionary(Box::new(DictionaryColumn::new(value_type.to_arrow(), least)))
                }
                Otap::Struct(schema) => Kind::Structure(Self::all(table, schema)),
                Otap::List(items) => Kind::Plain(list_of(items)),
            };
            let has_default = has_default(table, field.name);
            Self { name: field.name, required: field.required, has_default, present: field.required, kind }
        });
        columns.collect()
    }

    /// The field, with the type of the batch that was built last.
    pub(super) fn field(&self) -> Option<Field> {
        let data_type = match &self.kind {
            Kind::Plain(data_type) => data_type.clone(),
            Kind::Dictionary(column) => column.data_type(),
            Kind::Structure(columns) => DataType::Struct(fields(columns)),
        };
        self.present.then(|| Field::new(self.name, data_type, !self.required))
    }

    /// What stands for the field, as a number that changes with presence and form.
    pub(super) fn shape(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.present));
        match &self.kind {
            Kind::Plain(_) => {}
            Kind::Dictionary(column) => out.push(column.form as u8),
            Kind::Structure(columns) => columns.iter().for_each(|column| column.shape(out)),
        }
    }

    /// The dictionaries in the order of their numbers.
    pub(super) fn dictionaries<'c>(columns: &'c mut [Self], all: &mut Vec<&'c mut DictionaryColumn>) {
        for column in columns.iter_mut().filter(|column| column.present) {
            match &mut column.kind {
                Kind::Plain(_) => {}
                Kind::Dictionary(column) if column.form == Form::Plain => {}
                Kind::Dictionary(column) => all.push(column),
                Kind::Structure(columns) => Self::dictionaries(columns, all),
            }
        }
    }

    /// The column of all parts, dictionaries as keys; nothing if it has never said anything.
    pub(super) fn build(&mut self, parts: &Parts, ids: &Ids) -> Result<Option<ArrayRef>, ArrowError> {
        if let [(_, array)] = ids.iter().filter(|(path, _)| *path == [self.name]).collect::<Vec<_>>()[..] {
            self.present = true;
            return Ok(Some(Arc::clone(array)));
        }
        let inner: Vec<_> = ids.iter().filter(|(path, _)| path.first() == Some(&self.name)).collect();
        let inner: Vec<_> = inner.into_iter().map(|(path, array)| (&path[1..], Arc::clone(array))).collect();
        self.present |= !inner.is_empty()
            || parts
                .iter()
                .any(|(array, _)| array.as_ref().is_some_and(|array| says_something(array, self.has_default)));
        if !self.present {
            return Ok(None);
        }
        match &mut self.kind {
            Kind::Plain(data_type) => {
                let array = built_plain(data_type, parts)?;
                Ok(Some(if self.required { without_nulls(array) } else { array }))
            }
            Kind::Dictionary(column) => column.build(parts).map(Some),
            Kind::Structure(columns) => structure(columns, parts, &inner).map(Some),
        }
    }
}

fn fields(columns: &[Column]) -> Fields {
    columns.iter().filter_map(Column::field).collect()
}

/// A structure with the columns that are there.
fn structure(columns: &mut [Column], parts: &Parts, ids: &Ids) -> Result<ArrayRef, ArrowError> {
    let rows = parts.iter().map(|(_, rows)| rows).sum();
    let structures: Vec<_> = parts
        .iter()
        .map(|(array, rows)| (array.as_ref().and_then(|array| array.as_any().downcast_ref::<StructArray>()), *rows))
        .collect();
    let mut built = Vec::with_capacity(columns.len());
    let mut keys = Vec::with_capacity(columns.len());
    for column in columns {
        let of_parts = structures.iter();
        let of_parts = of_parts.map(|(structure, rows)| {
            (structure.and_then(|structure| structure.column_by_name(column.name)).cloned(), *rows)
        });
        if let Some(array) = column.build(&of_parts.collect(), ids)? {
            keys.push(Field::new(column.name, array.data_type().clone(), true));
            built.push(array);
        }
    }
    // A part without the structure has nothing in it; unless there are ids, which all rows have.
    let has_nulls =
        structures.iter().any(|(structure, _)| structure.is_none_or(|structure| structure.null_count() > 0));
    let nulls = (has_nulls && ids.is_empty()).then(|| {
        let valid = structures.iter().flat_map(|(structure, rows)| {
            (0..*rows).map(move |row| structure.is_some_and(|structure| structure.is_valid(row)))
        });
        NullBuffer::from_iter(valid)
    });
    Ok(Arc::new(StructArray::try_new_with_length(Fields::from(keys), built, nulls, rows)?))
}

fn built_plain(data_type: &DataType, parts: &Parts) -> Result<ArrayRef, ArrowError> {
    let same_type = |array: &ArrayRef| -> Result<ArrayRef, ArrowError> {
        match data_type {
            // No time zone, or another name for it.
            DataType::Timestamp(_, _) if array.data_type() != data_type => {
                let times = array.as_any().downcast_ref::<TimestampNanosecondArray>();
                let times = times.map(|times| Arc::new(times.clone().with_data_type(data_type.clone())) as ArrayRef);
                Ok(times.unwrap_or_else(|| Arc::clone(array)))
            }
            // Other names of items, and whether they can be null.
            DataType::List(item) => match array.as_any().downcast_ref::<ListArray>() {
                Some(list) if list.data_type() != data_type => {
                    let items = items_as(item.data_type(), list.values())?;
                    let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
                    Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, items, nulls)?))
                }
                _ => Ok(Arc::clone(array)),
            },
            _ => Ok(Arc::clone(array)),
        }
    };
    let parts = parts.iter().map(|(array, rows)| Ok((array.as_ref().map(same_type).transpose()?, *rows)));
    plain(data_type, &parts.collect::<Result<Vec<_>, ArrowError>>()?)
}

/// Types of values that are not there, where another part has some: the type of no value in place of null.
fn without_nulls(array: ArrayRef) -> ArrayRef {
    match array.as_any().downcast_ref::<UInt8Array>() {
        Some(types) if types.null_count() > 0 => {
            Arc::new(types.iter().map(|kind| Some(kind.unwrap_or_default())).collect::<UInt8Array>())
        }
        _ => array,
    }
}

/// Items of lists with the fields of the protocol.
fn items_as(data_type: &DataType, items: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let DataType::Struct(wanted) = data_type else { return Ok(Arc::clone(items)) };
    let Some(structure) = items.as_any().downcast_ref::<StructArray>() else { return Ok(Arc::clone(items)) };
    let columns = wanted.iter().map(|field| match structure.column_by_name(field.name()) {
        Some(column) => Arc::clone(column),
        None => new_null_array(field.data_type(), structure.len()),
    });
    let columns = columns.collect();
    Ok(Arc::new(StructArray::try_new(wanted.clone(), columns, structure.nulls().cloned())?))
}

fn list_of(items: &Otap) -> DataType {
    let items = match items {
        Otap::Struct(schema) => {
            let fields = schema.fields().iter().filter_map(|field| match &field.data_type {
                Otap::Simple(value) => Some(Field::new(field.name, value.to_arrow(), true)),
                _ => None,
            });
            DataType::Struct(fields.collect())
        }
        Otap::Simple(value) | Otap::Dictionary { value_type: value, .. } => value.to_arrow(),
        Otap::List(_) => DataType::Null,
    };
    DataType::List(Arc::new(Field::new("item", items, true)))
}

fn is_exemplar(table: ArrowPayloadType) -> bool {
    use ArrowPayloadType as Type;
    matches!(table, Type::NumberDpExemplars | Type::HistogramDpExemplars | Type::ExpHistogramDpExemplars)
}

/// Columns of fields that OTLP does not tell from their default.
fn has_default(table: ArrowPayloadType, name: &str) -> bool {
    use ArrowPayloadType as Type;
    match name {
        consts::DROPPED_ATTRIBUTES_COUNT
        | consts::DROPPED_EVENTS_COUNT
        | consts::DROPPED_LINKS_COUNT
        | consts::FLAGS
        | consts::SCHEMA_URL
        | consts::SEVERITY_NUMBER
        | consts::SEVERITY_TEXT
        | consts::EVENT_NAME
        | consts::TRACE_STATE
        | consts::DESCRIPTION
        | consts::UNIT
        | consts::VERSION
        | consts::TIME_UNIX_NANO
        | consts::OBSERVED_TIME_UNIX_NANO
        | consts::START_TIME_UNIX_NANO
        | consts::AGGREGATION_TEMPORALITY
        | consts::IS_MONOTONIC
        | consts::KIND
        | consts::EXP_HISTOGRAM_SCALE
        | consts::EXP_HISTOGRAM_ZERO_COUNT
        | consts::EXP_HISTOGRAM_ZERO_THRESHOLD => true,
        consts::SUMMARY_COUNT => true,
        consts::SUMMARY_SUM => table == Type::SummaryDataPoints,
        _ => false,
    }
}

/// Whether a column has a value that is not null and, if `has_default`, not the default.
fn says_something(array: &ArrayRef, has_default: bool) -> bool {
    if array.null_count() == array.len() {
        return false;
    }
    if !has_default {
        return true;
    }
    let any = array.as_any();
    macro_rules! any_nonzero {
        ($($kind:ty: $zero:literal),*) => {
            $(if let Some(array) = any.downcast_ref::<$kind>() {
                return array.values().iter().any(|value| *value != $zero);
            })*
        };
    }
    any_nonzero!(UInt32Array: 0, UInt64Array: 0, Int32Array: 0, Float64Array: 0.0, TimestampNanosecondArray: 0);
    if let Some(array) = any.downcast_ref::<BooleanArray>() {
        return array.true_count() > 0;
    }
    if let Some(array) = any.downcast_ref::<StringArray>() {
        return !array.values().is_empty();
    }
    match array.data_type() {
        DataType::Dictionary(_, _) => {
            use arrow::array::AsArray as _;
            // What no row refers to does no harm here.
            array.as_any_dictionary_opt().is_none_or(|dictionary| says_something(dictionary.values(), true))
        }
        _ => true,
    }
}
