//! Attribute values and bodies: columns by type, and CBOR for maps and lists.

use arrow::array::{Array, BinaryArray, BooleanArray, Float64Array, Int64Array, StringArray, UInt8Array};
use minicbor::Decoder;
use minicbor::data::Type;
use otel_arrow_dfe_pdata::schema::consts;

use super::wire::{length_tag, push_varint};
use crate::encode::error::EncodeError;
use crate::encode::table::{Column, Table, value};

/// Values within values that are followed. Whoever nests deeper is refused.
const MAX_DEPTH: usize = 64;

/// Fields of an AnyValue.
const STRING: u32 = 1;
const BOOL: u32 = 2;
const INT: u32 = 3;
const DOUBLE: u32 = 4;
const ARRAY: u32 = 5;
const KEY_VALUES: u32 = 6;
const BYTES: u32 = 7;

/// The columns of values of any type.
#[derive(Debug)]
pub(super) struct Values<'a> {
    table: Table<'a>,
    types: &'a UInt8Array,
    text: Option<Column<'a, StringArray>>,
    int: Option<Column<'a, Int64Array>>,
    double: Option<Column<'a, Float64Array>>,
    boolean: Option<Column<'a, BooleanArray>>,
    bytes: Option<Column<'a, BinaryArray>>,
    serialized: Option<Column<'a, BinaryArray>>,
}

/// What tells values of a table apart without a look at them: type and place in a dictionary, or the number.
pub(super) type ValueKey = (u8, u64);

impl<'a> Values<'a> {
    pub(super) fn new(table: Table<'a>) -> Result<Self, EncodeError> {
        Ok(Self {
            table,
            types: table.required(consts::ATTRIBUTE_TYPE, "numbers of 8 bits")?,
            text: table.column(consts::ATTRIBUTE_STR, "texts")?,
            int: table.column(consts::ATTRIBUTE_INT, "integers of 64 bits")?,
            double: table.column(consts::ATTRIBUTE_DOUBLE, "floating point numbers")?,
            boolean: table.column(consts::ATTRIBUTE_BOOL, "booleans")?,
            bytes: table.column(consts::ATTRIBUTE_BYTES, "bytes")?,
            serialized: table.column(consts::ATTRIBUTE_SER, "bytes")?,
        })
    }

    /// Type of the value of a row; nothing if it is null.
    #[inline]
    pub(super) fn type_of(&self, row: usize) -> Option<u8> {
        (row < self.types.len() && self.types.is_valid(row)).then(|| self.types.value(row))
    }

    /// Rows with equal keys have equal values; nothing if that cannot be told.
    #[inline]
    pub(super) fn key(&self, row: usize) -> Option<ValueKey> {
        let kind = self.type_of(row)?;
        let key = match kind {
            1 => self.text.as_ref()?.entry(row)? as u64,
            2 => value(&self.int, row)?.cast_unsigned(),
            4 => u64::from(value(&self.boolean, row)?),
            7 => self.bytes.as_ref()?.entry(row)? as u64,
            _ => return None,
        };
        Some((kind, key))
    }

    /// Bytes of an AnyValue with the value of a row if they are simple: its field and content.
    pub(super) fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self.type_of(row) {
            None | Some(0) => {}
            Some(1) => append_bytes(STRING, value(&self.text, row).unwrap_or_default().as_bytes(), out),
            Some(2) => append_varint(INT, value(&self.int, row).unwrap_or_default().cast_unsigned(), out),
            Some(3) => append_double(value(&self.double, row).unwrap_or_default(), out),
            Some(4) => append_varint(BOOL, u64::from(value(&self.boolean, row).unwrap_or_default()), out),
            Some(5 | 6) => {
                if let Some(cbor) = value(&self.serialized, row) {
                    let mut decoder = Decoder::new(cbor);
                    transcode(&mut decoder, out, MAX_DEPTH).map_err(|fault| EncodeError::Value {
                        table: self.table.kind,
                        column: consts::ATTRIBUTE_SER,
                        row,
                        found: format!("{fault} at offset {}", decoder.position()),
                        expected: "a CBOR value of texts, numbers, booleans, bytes, lists and maps with texts as keys",
                    })?;
                }
            }
            Some(7) => append_bytes(BYTES, value(&self.bytes, row).unwrap_or_default(), out),
            Some(other) => {
                return Err(EncodeError::Value {
                    table: self.table.kind,
                    column: consts::ATTRIBUTE_TYPE,
                    row,
                    found: other.to_string(),
                    expected: "0 to 7",
                });
            }
        }
        Ok(())
    }
}

pub(super) fn append_bytes(field: u32, bytes: &[u8], out: &mut Vec<u8>) {
    push_varint(out, u64::from(length_tag(field)));
    push_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn append_varint(field: u32, value: u64, out: &mut Vec<u8>) {
    push_varint(out, u64::from(field << 3));
    push_varint(out, value);
}

fn append_double(value: f64, out: &mut Vec<u8>) {
    push_varint(out, u64::from(DOUBLE << 3 | 1));
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a nested message, whose length is known when it has been written.
pub(super) fn append_message<E>(
    field: u32,
    out: &mut Vec<u8>,
    content: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    push_varint(out, u64::from(length_tag(field)));
    let place = out.len();
    // Most are short: the length has one byte, and room for more is made where it is needed.
    out.push(0);
    content(out)?;
    let length = out.len() - place - 1;
    if length < 0x80 {
        out[place] = length as u8;
        return Ok(());
    }
    let mut bytes = Vec::with_capacity(5);
    push_varint(&mut bytes, length as u64);
    let _ = out.splice(place..=place, bytes);
    Ok(())
}

/// What is wrong with a CBOR value.
#[derive(Debug, thiserror::Error)]
enum CborFault {
    #[error("{0}")]
    Decode(#[from] minicbor::decode::Error),
    #[error("an item of type {0}")]
    Item(Type),
    #[error("a key of type {0}")]
    Key(Type),
    #[error("values nested more than {MAX_DEPTH} deep")]
    Depth,
}

/// Writes the CBOR value that comes next as the content of an AnyValue.
fn transcode(decoder: &mut Decoder<'_>, out: &mut Vec<u8>, depth: usize) -> Result<(), CborFault> {
    let depth = depth.checked_sub(1).ok_or(CborFault::Depth)?;
    match decoder.datatype()? {
        Type::Bool => append_varint(BOOL, u64::from(decoder.bool()?), out),
        Type::Null | Type::Undefined => decoder.skip()?,
        Type::U8 | Type::U16 | Type::U32 | Type::U64 | Type::I8 | Type::I16 | Type::I32 | Type::I64 | Type::Int => {
            append_varint(INT, decoder.i64()?.cast_unsigned(), out);
        }
        Type::F16 => append_double(f64::from(decoder.f16()?), out),
        Type::F32 => append_double(f64::from(decoder.f32()?), out),
        Type::F64 => append_double(decoder.f64()?, out),
        Type::String => append_bytes(STRING, decoder.str()?.as_bytes(), out),
        Type::StringIndef => {
            let text = decoder.str_iter()?.collect::<Result<String, _>>()?;
            append_bytes(STRING, text.as_bytes(), out);
        }
        Type::Bytes => append_bytes(BYTES, decoder.bytes()?, out),
        Type::BytesIndef => {
            let parts = decoder.bytes_iter()?.collect::<Result<Vec<_>, _>>()?;
            append_bytes(BYTES, &parts.concat(), out);
        }
        Type::Array | Type::ArrayIndef => {
            let length = decoder.array()?;
            append_message(ARRAY, out, |out| {
                items(decoder, length, |decoder| append_message(1, out, |out| transcode(decoder, out, depth)))
            })?;
        }
        Type::Map | Type::MapIndef => {
            let length = decoder.map()?;
            append_message(KEY_VALUES, out, |out| {
                items(decoder, length, |decoder| append_message(1, out, |out| key_value(decoder, out, depth)))
            })?;
        }
        other => return Err(CborFault::Item(other)),
    }
    Ok(())
}

/// Takes `length` items, or those up to the end mark.
fn items(
    decoder: &mut Decoder<'_>,
    length: Option<u64>,
    mut item: impl FnMut(&mut Decoder<'_>) -> Result<(), CborFault>,
) -> Result<(), CborFault> {
    match length {
        // Every item has a byte at least, so a wrong number ends with the input.
        Some(length) => (0..length).try_for_each(|_| item(decoder)),
        None => {
            while decoder.datatype()? != Type::Break {
                item(decoder)?;
            }
            Ok(decoder.skip()?)
        }
    }
}

fn key_value(decoder: &mut Decoder<'_>, out: &mut Vec<u8>, depth: usize) -> Result<(), CborFault> {
    match decoder.datatype()? {
        Type::String => append_bytes(1, decoder.str()?.as_bytes(), out),
        Type::StringIndef => {
            let text = decoder.str_iter()?.collect::<Result<String, _>>()?;
            append_bytes(1, text.as_bytes(), out);
        }
        // An empty key.
        Type::Null => decoder.skip()?,
        other => return Err(CborFault::Key(other)),
    }
    append_message(2, out, |out| transcode(decoder, out, depth))
}
