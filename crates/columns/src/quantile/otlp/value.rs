//! Attributes of OTLP: the wanted ones, and steps into lists and maps.

use otel_arrow_dfe_pdata::encode::append_attribute_value;
use otel_arrow_dfe_pdata::encode::record::attributes::AttributesRecordBatchBuilder;
use otel_arrow_dfe_pdata::schema::consts;
use otel_arrow_dfe_pdata::views::otlp::bytes::common::RawKeyValue;

use arrow::array::BinaryArray;
use arrow::compute::cast;
use arrow::datatypes::DataType;

use super::fields;
use super::wire::{Content, Fault, Fields, Parts, messages};
use crate::quantile::number::Scalar;
use crate::quantile::reader::Bound;
use crate::text::same;

/// Lists and maps within each other that are looked at.
pub(in crate::quantile) const MAX_DEPTH: usize = 32;

/// An `AnyValue`; lists and maps by the bytes of their message.
#[derive(Debug, Clone, Copy)]
pub(in crate::quantile) enum Value<'a> {
    Scalar(Scalar<'a>),
    List(&'a [u8]),
    Map(&'a [u8]),
}

/// Memory for lists and maps that are taken as bytes.
#[derive(Debug, Default)]
pub(in crate::quantile) struct Scratch {
    encoded: Vec<u8>,
}

/// The wanted attributes, by place and key.
#[derive(Debug)]
pub(in crate::quantile) struct Slots<'a> {
    places: [Vec<Option<Value<'a>>>; 3],
}

impl<'a> Slots<'a> {
    pub(in crate::quantile) fn new(wanted: &[Vec<String>; 3]) -> Self {
        Self { places: std::array::from_fn(|place| vec![None; wanted[place].len()]) }
    }

    #[inline]
    pub(in crate::quantile) fn clear(&mut self, place: usize) {
        self.places[place].fill(None);
    }

    /// Takes a `KeyValue` if its key is wanted. The last of equal keys wins.
    #[inline]
    pub(in crate::quantile) fn take(
        &mut self,
        place: usize,
        wanted: &[String],
        key_value: &'a [u8],
    ) -> Result<(), Fault> {
        let (key, value) = key_and_value(key_value)?;
        if let Some(at) = wanted.iter().position(|wanted| same(wanted.as_bytes(), key)) {
            // In place: to move a value costs more than to read it.
            let slot = &mut self.places[place][at];
            *slot = None;
            if let Some(value) = value {
                for part in value.iter() {
                    read_value(part?, slot)?;
                }
            }
        }
        Ok(())
    }

    /// The value of a path, if it is a text.
    #[inline]
    pub(in crate::quantile) fn text(&self, bound: &Bound) -> Option<&'a [u8]> {
        match &self.places[bound.place][bound.key] {
            Some(Value::Scalar(Scalar::Text(text))) if bound.steps.is_empty() => Some(text),
            _ => None,
        }
    }

    /// The value of a path.
    #[inline(always)]
    pub(in crate::quantile) fn scalar<'s>(
        &'s self,
        bound: &Bound,
        scratch: &'s mut Scratch,
    ) -> Result<Option<Scalar<'s>>, Fault> {
        match self.places[bound.place][bound.key] {
            None => Ok(None),
            Some(Value::Scalar(value)) => Ok(Some(value).filter(|_| bound.steps.is_empty())),
            Some(value) => inside(value, &bound.steps, scratch),
        }
    }
}

/// Key and value of a `KeyValue`.
#[inline(always)]
pub(in crate::quantile) fn key_and_value(key_value: &[u8]) -> Result<(&[u8], Option<Parts<'_>>), Fault> {
    let mut content = Fields::new(key_value);
    let mut key = content.bytes_if(fields::KEY).unwrap_or_default();
    let mut value = content.bytes_if(fields::VALUE).map(|first| Parts::new(first, fields::VALUE, content.rest()));
    while let Some((number, field)) = content.next()? {
        match (number, field) {
            (fields::KEY, Content::Bytes(bytes)) => key = bytes,
            (fields::VALUE, Content::Bytes(_)) if value.is_some() => {}
            (fields::VALUE, Content::Bytes(bytes)) => value = Some(Parts::new(bytes, fields::VALUE, content.rest())),
            (fields::KEY | fields::VALUE, _) => return Err(content.wrong_type()),
            _ => {}
        }
    }
    Ok((key, value))
}

/// Reads an `AnyValue`; `None` is an empty one. The last field wins, as in any choice of protobuf, also where it is a list or
/// map: parts of those are not put together.
pub(in crate::quantile) fn any_value(message: Parts<'_>) -> Result<Option<Value<'_>>, Fault> {
    let mut value = None;
    for part in message.iter() {
        read_value(part?, &mut value)?;
    }
    Ok(value)
}

#[inline(always)]
fn read_value<'a>(message: &'a [u8], value: &mut Option<Value<'a>>) -> Result<(), Fault> {
    let mut content = Fields::new(message);
    if let Some(text) = content.bytes_if(fields::STRING) {
        *value = Some(Value::Scalar(Scalar::Text(text)));
    }
    while let Some((number, field)) = content.next()? {
        *value = Some(match (number, field) {
            (fields::STRING, Content::Bytes(text)) => Value::Scalar(Scalar::Text(text)),
            (fields::BOOL, Content::Varint(value)) => Value::Scalar(Scalar::Bool(value != 0)),
            (fields::INT, Content::Varint(value)) => Value::Scalar(Scalar::Int(value.cast_signed())),
            (fields::DOUBLE, Content::Fixed64(bits)) => Value::Scalar(Scalar::Double(f64::from_bits(bits))),
            (fields::BYTES, Content::Bytes(bytes)) => Value::Scalar(Scalar::Bytes(bytes)),
            (fields::ARRAY, Content::Bytes(list)) => Value::List(list),
            (fields::KVLIST, Content::Bytes(map)) => Value::Map(map),
            (fields::STRING..=fields::BYTES, _) => return Err(content.wrong_type()),
            _ => continue,
        });
    }
    Ok(())
}

/// The value at the end of `steps`. A list or map there is given as the bytes that it has in OTAP.
fn inside<'s>(mut value: Value<'s>, steps: &[String], scratch: &'s mut Scratch) -> Result<Option<Scalar<'s>>, Fault> {
    for step in steps {
        let mut found = None;
        match value {
            Value::Scalar(_) => {}
            Value::Map(map) => {
                for entry in messages(map, fields::ELEMENTS) {
                    let (key, value) = key_and_value(entry?)?;
                    if key == step.as_bytes() {
                        found = Some(value);
                    }
                }
            }
            Value::List(list) => {
                if let Ok(position) = step.parse() {
                    found = messages(list, fields::ELEMENTS)
                        .nth(position)
                        .transpose()?
                        .map(|element| Some(Parts::whole(element)));
                }
            }
        }
        match found.flatten().map(any_value).transpose()?.flatten() {
            Some(found) => value = found,
            None => return Ok(None),
        }
    }
    match value {
        Value::Scalar(scalar) => Ok(Some(scalar)),
        Value::List(message) | Value::Map(message) => {
            let field = if matches!(value, Value::Map(_)) { fields::KVLIST } else { fields::ARRAY };
            check_depth(value, MAX_DEPTH)?;
            scratch.encoded = encode(field, message).ok_or_else(|| Fault::utf8(message))?;
            Ok(Some(Scalar::Bytes(&scratch.encoded)))
        }
    }
}

/// Refuses what is nested too deep to be encoded, or no protobuf.
fn check_depth(value: Value<'_>, depth: usize) -> Result<(), Fault> {
    let (Value::List(message) | Value::Map(message)) = value else { return Ok(()) };
    let Some(depth) = depth.checked_sub(1) else { return Err(Fault::depth(message)) };
    for element in messages(message, fields::ELEMENTS) {
        let element = match value {
            Value::Map(_) => key_and_value(element?)?.1,
            _ => Some(Parts::whole(element?)),
        };
        if let Some(element) = element.map(any_value).transpose()?.flatten() {
            check_depth(element, depth)?;
        }
    }
    Ok(())
}

/// The CBOR of a list or map, by the code of the data model itself: what groups by a whole list or map must get the same
/// bytes either way. `None` if a text in it is not UTF-8.
fn encode(field: u32, message: &[u8]) -> Option<Vec<u8>> {
    let mut any = Vec::new();
    push_message(&mut any, field, message);
    let mut key_value = Vec::new();
    push_message(&mut key_value, fields::VALUE, &any);
    let mut builder = AttributesRecordBatchBuilder::<u16>::new();
    builder.append_parent_id(&0);
    append_attribute_value(&mut builder, &RawKeyValue::new(&key_value)).ok()?;
    let batch = builder.finish().ok()?;
    let column = batch.column_by_name(consts::ATTRIBUTE_SER)?;
    let column = cast(column, &DataType::Binary).ok()?;
    Some(column.as_any().downcast_ref::<BinaryArray>()?.value(0).to_vec())
}

fn push_message(into: &mut Vec<u8>, field: u32, message: &[u8]) {
    // All fields here are below 16.
    into.push(u8::try_from(field << 3 | 2).unwrap_or(u8::MAX));
    let mut length = message.len();
    while length >= 0x80 {
        #[allow(clippy::cast_possible_truncation, reason = "the lowest seven bits")]
        into.push(length as u8 | 0x80);
        length >>= 7;
    }
    into.push(u8::try_from(length).unwrap_or(0));
    into.extend_from_slice(message);
}
