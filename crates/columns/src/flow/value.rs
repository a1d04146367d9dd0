//! Values of fields as attributes.

use std::borrow::Cow;

use catchment_ipfix::{DecodeContext, SubTemplates, Value, enumeration_name, protocol_name};
use minicbor::Encoder;

use super::facts::Facts;
use super::mapping::{FlowMapping, TimeForm, U64Overflow};
use super::names::Own;
use super::plan::PlannedField;
use super::{form, lists};
use crate::table::{AttributeName, AttributeWriter, NameId};

/// What the records decoded so far had in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowCounts {
    /// Records that have come out, or will with the batch under construction; those of both directions count twice if
    /// they become two.
    pub records: u64,
    /// Options records that were left out.
    pub options_left_out: u64,
    /// Values whose bytes did not fit the type of their element; kept as bytes.
    pub opaque_values: u64,
    /// Values of elements of which neither the tables nor the exporter tell anything; kept as bytes.
    pub unknown_values: u64,
    /// Parts of lists whose template was not known; kept as bytes.
    pub unknown_list_parts: u64,
    /// Integers above the range of OTLP.
    pub overflowed_values: u64,
}

/// What the values of a set depend on besides their bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Env<'e> {
    pub(super) context: DecodeContext,
    pub(super) templates: &'e SubTemplates,
    pub(super) facts: &'e Facts,
    pub(super) mapping: &'e FlowMapping,
}

/// A number that OTLP can hold.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Number {
    Integer(i64),
    Double(f64),
    Text(String),
}

/// An unsigned number of any size, by the setting where it is above the range of integers.
pub(super) fn number(value: u128, overflow: U64Overflow, counts: &mut FlowCounts) -> Number {
    if let Ok(number) = i64::try_from(value) {
        return Number::Integer(number);
    }
    counts.overflowed_values += 1;
    match overflow {
        #[allow(clippy::cast_precision_loss, reason = "that is what the setting says")]
        U64Overflow::Double => Number::Double(value as f64),
        U64Overflow::String => Number::Text(value.to_string()),
        U64Overflow::Saturate => Number::Integer(i64::MAX),
    }
}

/// `value` times a sampling rate of 1 or more, rounded.
fn scaled(value: u64, rate: f64) -> u128 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked, or saturating as it should")]
    if rate.fract() == 0.0 && rate <= f64::from(u32::MAX) {
        u128::from(value) * u128::from(rate as u64)
    } else {
        #[allow(clippy::cast_precision_loss, reason = "the rate is no whole number")]
        let product = (value as f64 * rate).round();
        product as u128
    }
}

/// Keyword of a protocol, or its number as text.
pub(super) fn transport(number: u64) -> Cow<'static, str> {
    match u8::try_from(number).ok().and_then(protocol_name) {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(number.to_string()),
    }
}

/// Writes values, and keeps scratch memory and counts between them.
#[derive(Debug, Default)]
pub(super) struct ValueWriter {
    pub(super) counts: FlowCounts,
    cbor: Vec<u8>,
    text: Vec<u8>,
}

impl ValueWriter {
    /// The transport protocol; under `other` if it is no number.
    pub(super) fn transport(
        &mut self,
        attributes: &mut AttributeWriter<'_>,
        other: NameId,
        field: &PlannedField,
        value: &Value<'_>,
        env: &Env<'_>,
    ) {
        match value {
            Value::Unsigned(number) => attributes.text(Own::Transport.id(), transport(*number).as_bytes()),
            odd => self.value(attributes, other, field, odd, env, None),
        }
    }

    /// One value; `rate` is the sampling rate of the record.
    pub(super) fn value(
        &mut self,
        attributes: &mut AttributeWriter<'_>,
        name: NameId,
        field: &PlannedField,
        value: &Value<'_>,
        env: &Env<'_>,
        rate: Option<f64>,
    ) {
        match value {
            Value::Absent => {}
            Value::Unsigned(number) => {
                let named = if field.is_named { enumeration_name(&field.spec, *number) } else { None };
                match (named, rate.filter(|_| field.is_scaled)) {
                    (Some(text), _) => attributes.text(name, text.as_bytes()),
                    (None, Some(rate)) => self.number(attributes, name, scaled(*number, rate), env),
                    (None, None) => self.number(attributes, name, u128::from(*number), env),
                }
            }
            Value::Signed(number) => attributes.int(name, *number),
            Value::TimeUnixNano(time) => self.time(attributes, name, *time, env.mapping.times),
            Value::Float(number) => attributes.double(name, *number),
            Value::Boolean(truth) => attributes.bool(name, *truth),
            Value::Mac([a, b, c, d, e, f]) => {
                let address = u64::from_be_bytes([0, 0, *a, *b, *c, *d, *e, *f]);
                self.formatted(attributes, name, |out| form::mac(address, out));
            }
            Value::Ipv4(address) => self.formatted(attributes, name, |out| form::ipv4(u32::from(*address), out)),
            Value::Ipv6(address) => self.formatted(attributes, name, |out| form::ipv6(u128::from(*address), out)),
            Value::Text(text) => attributes.text(name, text),
            Value::Bytes(bytes) => attributes.bytes(name, bytes),
            Value::Opaque(bytes) => {
                self.counts.opaque_values += 1;
                attributes.bytes(name, bytes);
            }
            Value::List(_) => {
                self.cbor.clear();
                let mut out = Encoder::new(&mut self.cbor);
                // Writing to a vector cannot fail.
                if lists::encode(&field.spec, value, env, &env.context, &mut self.counts, &mut out).is_ok() {
                    match env.mapping.list_semantics {
                        true => attributes.map(name, &self.cbor),
                        false => attributes.list(name, &self.cbor),
                    }
                }
            }
        }
    }

    /// All values of an element that a record has several times, as a list.
    pub(super) fn repeated(
        &mut self,
        attributes: &mut AttributeWriter<'_>,
        name: NameId,
        values: &[(&PlannedField, Value<'_>)],
        env: &Env<'_>,
    ) {
        self.cbor.clear();
        let mut out = Encoder::new(&mut self.cbor);
        let values = values.iter().map(|(field, value)| (&field.spec, *value));
        // Writing to a vector cannot fail.
        if lists::repeated(values, env, &env.context, &mut self.counts, &mut out).is_ok() {
            attributes.list(name, &self.cbor);
        }
    }

    fn number(&mut self, attributes: &mut AttributeWriter<'_>, name: NameId, value: u128, env: &Env<'_>) {
        match number(value, env.mapping.u64_overflow, &mut self.counts) {
            Number::Integer(number) => attributes.int(name, number),
            Number::Double(number) => attributes.double(name, number),
            Number::Text(text) => attributes.text(name, text.as_bytes()),
        }
    }

    /// A time in the form that the settings ask for.
    pub(super) fn time(
        &mut self,
        attributes: &mut AttributeWriter<'_>,
        name: impl AttributeName,
        unix_nano: i64,
        times: TimeForm,
    ) {
        match times {
            TimeForm::UnixNano => attributes.int(name, unix_nano),
            TimeForm::Rfc3339 => self.formatted(attributes, name, |out| form::rfc3339(unix_nano, out)),
        }
    }

    fn formatted(
        &mut self,
        attributes: &mut AttributeWriter<'_>,
        name: impl AttributeName,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        self.text.clear();
        write(&mut self.text);
        attributes.text(name, &self.text);
    }
}

/// A sampling rate: whole rates are integers.
pub(super) fn rate(attributes: &mut AttributeWriter<'_>, rate: f64) {
    #[allow(clippy::cast_possible_truncation, reason = "checked to be a whole number of at most 32 bits")]
    if rate.fract() == 0.0 && rate <= f64::from(u32::MAX) {
        attributes.int(Own::SamplingRate.id(), rate as i64);
    } else {
        attributes.double(Own::SamplingRate.id(), rate);
    }
}
