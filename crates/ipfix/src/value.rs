//! Values of fields (RFC 7011 section 6).

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::context::DecodeContext;
use crate::elements::DataType;
use crate::field::{FieldSpec, Namespace};
use crate::list::List;
use crate::{times, wire};

/// A decoded value, borrowed from the bytes of its record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// A number without sign; also flags and identifiers.
    Unsigned(u64),
    /// A number with sign.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
    /// A truth value.
    Boolean(bool),
    /// A MAC address.
    Mac([u8; 6]),
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
    /// Text without its trailing NULs. Should be UTF-8; not checked here.
    Text(&'a [u8]),
    /// Bytes: octetArray, numbers beyond 64 bits, and every element that is not known.
    Bytes(&'a [u8]),
    /// A time in nanoseconds since 1970.
    TimeUnixNano(i64),
    /// Structured data.
    List(List<'a>),
    /// No value: a field of length 0, an empty number, or padding.
    Absent,
    /// Bytes that do not fit the type of the element: a wrong length, a boolean other than 1 and 2, a time out of
    /// range, a malformed list, or a list nested too deep.
    Opaque(&'a [u8]),
}

/// Decodes the bytes of one field, as [`Record::fields`](crate::Record::fields) gives them.
///
/// Numbers may be shorter than their type (RFC 7011 section 6.2). Longer ones are opaque in IPFIX; in NetFlow v9,
/// where types have no lengths, up to 8 bytes are taken. dateTimeSeconds may take 8 bytes. An empty value of variable
/// length is an empty text or empty bytes; other empty values are absent.
#[must_use]
pub fn decode<'a>(field: &FieldSpec, bytes: &'a [u8], context: &DecodeContext) -> Value<'a> {
    if field.is_padding() {
        return Value::Absent;
    }
    let data_type = field.data_type();
    if bytes.is_empty() {
        return match data_type {
            DataType::String if field.is_variable() => Value::Text(bytes),
            DataType::OctetArray | DataType::Unsigned256 if field.is_variable() => Value::Bytes(bytes),
            _ => Value::Absent,
        };
    }
    decode_as(data_type, field, bytes, context).unwrap_or(Value::Opaque(bytes))
}

/// Decodes bytes, of which there is at least one; `None` when they do not fit the type.
fn decode_as<'a>(
    data_type: DataType,
    field: &FieldSpec,
    bytes: &'a [u8],
    context: &DecodeContext,
) -> Option<Value<'a>> {
    let fits = |type_bytes| {
        let limit = if field.namespace == Namespace::Ipfix { type_bytes } else { 8 };
        (bytes.len() <= limit).then_some(bytes)
    };
    let number = |type_bytes| fits(type_bytes).and_then(wire::unsigned).map(Value::Unsigned);
    let signed = |type_bytes| fits(type_bytes).and_then(wire::signed).map(Value::Signed);
    match data_type {
        DataType::OctetArray | DataType::Unsigned256 => Some(Value::Bytes(bytes)),
        DataType::Unsigned8 => number(1),
        DataType::Unsigned16 => number(2),
        DataType::Unsigned32 => number(4),
        DataType::Unsigned64 => number(8),
        DataType::Signed8 => signed(1),
        DataType::Signed16 => signed(2),
        DataType::Signed32 => signed(4),
        DataType::Signed64 => signed(8),
        DataType::Float32 => float32(bytes),
        DataType::Float64 => float32(bytes).or_else(|| {
            let bits = u64::from_be_bytes(bytes.try_into().ok()?);
            Some(Value::Float(f64::from_bits(bits)))
        }),
        DataType::Boolean => match bytes {
            [1] => Some(Value::Boolean(true)),
            [2] => Some(Value::Boolean(false)),
            _ => None,
        },
        DataType::MacAddress => bytes.try_into().ok().map(Value::Mac),
        DataType::Ipv4Address => <[u8; 4]>::try_from(bytes).ok().map(|octets| Value::Ipv4(octets.into())),
        DataType::Ipv6Address => <[u8; 16]>::try_from(bytes).ok().map(|octets| Value::Ipv6(octets.into())),
        DataType::String => {
            let length = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            bytes.get(..length).map(Value::Text)
        }
        DataType::DateTimeSeconds => times::seconds(bytes).map(Value::TimeUnixNano),
        DataType::DateTimeMilliseconds => times::milliseconds(bytes).map(Value::TimeUnixNano),
        DataType::DateTimeMicroseconds => times::high_resolution(bytes, context, true).map(Value::TimeUnixNano),
        DataType::DateTimeNanoseconds => times::high_resolution(bytes, context, false).map(Value::TimeUnixNano),
        DataType::BasicList | DataType::SubTemplateList | DataType::SubTemplateMultiList => {
            context.allows_lists().then(|| List::parse(data_type, bytes))?.ok().map(Value::List)
        }
    }
}

fn float32(bytes: &[u8]) -> Option<Value<'static>> {
    let bits = u32::from_be_bytes(bytes.try_into().ok()?);
    Some(Value::Float(f32::from_bits(bits).into()))
}

#[cfg(test)]
mod tests;
