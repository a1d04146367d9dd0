//! Structured data of RFC 5424 as attributes: as map of maps, as text, or one attribute a parameter.
//!
//! An SD-ID or parameter that a device repeats gives one key with all its values, never two keys of one name.

use std::borrow::Cow;

use catchment_syslog::StructuredData;
use minicbor::Encoder;
use rustc_hash::FxHashMap;

use super::names::{Key, Schema};
use super::row::{RowOptions, StructuredDataForm};
use crate::table::AttributeWriter;
use crate::text::{same, text as as_text};

/// Memory that is used again from record to record.
#[derive(Default)]
pub(super) struct Scratch {
    cbor: Vec<u8>,
}

type Values<'a> = Vec<Cow<'a, [u8]>>;
/// Parameters of one element by name.
type Params<'a> = Vec<(&'a [u8], Values<'a>)>;

/// Parameters by element, both in the order of first appearance.
struct Parts<'a> {
    elements: Vec<(&'a [u8], Params<'a>)>,
}

impl<'a> Parts<'a> {
    fn new(data: &StructuredData<'a>) -> Self {
        let mut elements: Vec<(&[u8], Params<'a>)> = Vec::new();
        let mut element_index = FxHashMap::default();
        let mut param_index = FxHashMap::default();
        for element in data.elements() {
            let at = *element_index.entry(element.id()).or_insert_with(|| {
                elements.push((element.id(), Vec::new()));
                elements.len() - 1
            });
            let params = &mut elements[at].1;
            for (name, value) in element.params() {
                let slot = *param_index.entry((at, name)).or_insert_with(|| {
                    params.push((name, Vec::new()));
                    params.len() - 1
                });
                params[slot].1.push(value);
            }
        }
        Self { elements }
    }
}

pub(super) fn write(
    attributes: &mut AttributeWriter<'_>,
    data: &StructuredData<'_>,
    options: &RowOptions,
    scratch: &mut Scratch,
) {
    match options.structured_data() {
        StructuredDataForm::Text => attributes.text(Key::StructuredData.id(), data.raw()),
        StructuredDataForm::Map => {
            scratch.cbor.clear();
            // Writing to a vector cannot fail.
            let encoded = match encode_plain(data, attributes.is_utf8(), &mut scratch.cbor) {
                Ok(true) => Ok(()),
                Ok(false) => {
                    scratch.cbor.clear();
                    encode_map(&Parts::new(data), &mut Encoder::new(&mut scratch.cbor))
                }
                Err(error) => Err(error),
            };
            if encoded.is_ok() {
                attributes.map(Key::StructuredData.id(), &scratch.cbor);
            }
        }
        StructuredDataForm::Flat => flat(attributes, &Parts::new(data), options.schema, scratch),
    }
}

/// One attribute for each name. Names that come out the same, as those of `[a.b c="1"][a b.c="2"]` do, share one list;
/// an element without parameters is an empty text under its id.
fn flat(attributes: &mut AttributeWriter<'_>, parts: &Parts<'_>, schema: Schema, scratch: &mut Scratch) {
    let mut named: Vec<(String, Vec<&[u8]>)> = Vec::new();
    let mut index = FxHashMap::default();
    for (id, params) in &parts.elements {
        let prefix = format!("{}{}", schema.structured_data_prefix(), String::from_utf8_lossy(id));
        if params.is_empty() {
            // Such a name may be one of the receiver's own.
            let name = if schema.names().contains(&prefix.as_str()) {
                format!("{}{}", Schema::Upstream.structured_data_prefix(), String::from_utf8_lossy(id))
            } else {
                prefix
            };
            named_values(&mut named, &mut index, name).push(b"");
            continue;
        }
        for (name, values) in params {
            let full = match (schema, *id, *name) {
                (Schema::Otel, b"origin", b"ip") => {
                    Schema::Otel.name(Key::ClientAddress).unwrap_or_default().to_owned()
                }
                // It is on the resource.
                (Schema::Otel, b"origin", b"swVersion") if values.len() == 1 => continue,
                _ => format!("{prefix}.{}", String::from_utf8_lossy(name)),
            };
            named_values(&mut named, &mut index, full).extend(values.iter().map(|value| value.as_ref()));
        }
    }
    for (name, values) in &named {
        if let [value] = values.as_slice() {
            attributes.text(name.as_str(), value);
            continue;
        }
        scratch.cbor.clear();
        // Writing to a vector cannot fail.
        if encode_values(values.iter().copied(), &mut Encoder::new(&mut scratch.cbor)).is_ok() {
            attributes.list(name.as_str(), &scratch.cbor);
        }
    }
}

/// The values of `name`, which is added if it is new.
fn named_values<'v, 'n>(
    named: &'n mut Vec<(String, Vec<&'v [u8]>)>,
    index: &mut FxHashMap<String, usize>,
    name: String,
) -> &'n mut Vec<&'v [u8]> {
    let at = *index.entry(name.clone()).or_insert_with(|| {
        named.push((name, Vec::new()));
        named.len() - 1
    });
    &mut named[at].1
}

/// Writing to a vector cannot fail.
type Error = minicbor::encode::Error<std::convert::Infallible>;
type Encoded = Result<(), Error>;

fn length(items: usize) -> u64 {
    u64::try_from(items).unwrap_or(u64::MAX)
}

fn text(bytes: &[u8], out: &mut Encoder<&mut Vec<u8>>) -> Encoded {
    out.str(&as_text(bytes)).map(|_| ())
}

fn encode_values<'v>(mut values: impl ExactSizeIterator<Item = &'v [u8]>, out: &mut Encoder<&mut Vec<u8>>) -> Encoded {
    out.array(length(values.len()))?;
    values.try_for_each(|value| text(value, out))
}

/// Up to so many names are compared with each other.
const COMPARED: usize = 16;

/// A few names that are all different.
#[derive(Default)]
struct Distinct<'a> {
    names: [&'a [u8]; COMPARED],
    length: usize,
}

impl<'a> Distinct<'a> {
    /// False if the name is there already, or if there are too many.
    fn add(&mut self, name: &'a [u8]) -> bool {
        let (known, free) = self.names.split_at_mut(self.length);
        let is_known = known.iter().any(|known| same(known, name));
        let Some(slot) = free.first_mut().filter(|_| !is_known) else { return false };
        *slot = name;
        self.length += 1;
        true
    }
}

/// First byte of a map in CBOR, to which a number of pairs below 24 is added (RFC 8949 section 3).
const MAP: u8 = 0xa0;
/// First byte of a text in CBOR, to which a length below 24 is added.
const TEXT: u8 = 0x60;

/// The map of maps as it stands, without gathering anything first. False if that is not enough: if an SD-ID or a parameter
/// of an element is repeated, or there are many.
fn encode_plain(data: &StructuredData<'_>, is_utf8: bool, cbor: &mut Vec<u8>) -> Result<bool, Error> {
    cbor.push(MAP);
    let mut ids = Distinct::default();
    for element in data.elements() {
        if !ids.add(element.id()) {
            return Ok(false);
        }
        short_text(element.id(), is_utf8, cbor)?;
        let head = cbor.len();
        cbor.push(MAP);
        let mut names = Distinct::default();
        for (name, value) in element.params() {
            if !names.add(name) {
                return Ok(false);
            }
            cbor[head] += 1;
            short_text(name, is_utf8, cbor)?;
            short_text(&value, is_utf8, cbor)?;
        }
        cbor[0] += 1;
    }
    Ok(true)
}

/// A text, most of which are short.
fn short_text(bytes: &[u8], is_utf8: bool, cbor: &mut Vec<u8>) -> Result<(), Error> {
    match u8::try_from(bytes.len()) {
        Ok(length) if is_utf8 && length < 24 => {
            cbor.push(TEXT + length);
            cbor.extend_from_slice(bytes);
            Ok(())
        }
        _ => text(bytes, &mut Encoder::new(cbor)),
    }
}

fn encode_map(parts: &Parts<'_>, out: &mut Encoder<&mut Vec<u8>>) -> Encoded {
    out.map(length(parts.elements.len()))?;
    for (id, params) in &parts.elements {
        text(id, out)?;
        out.map(length(params.len()))?;
        for (name, values) in params {
            text(name, out)?;
            match values.as_slice() {
                [value] => text(value, out)?,
                _ => encode_values(values.iter().map(AsRef::as_ref), out)?,
            }
        }
    }
    Ok(())
}
