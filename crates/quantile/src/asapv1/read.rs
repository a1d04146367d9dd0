//! Reading. Everything is checked in place first; then the items are allocated once.

use rmp::Marker;
use rmp::decode::{read_array_len, read_f32, read_f64, read_int, read_map_len, read_marker, read_str_len};

use super::{
    Coin, Envelope, EnvelopeError, FAMILY_KLL, HEADER, ItemType, KEY_ITEM_TYPE, KEY_K, KEY_M, KEY_METADATA_VERSION,
    KIND_LENGTH, Kind, MAGIC, METADATA_VERSION, SeedKey, VERSION,
};
use crate::key::to_key;
use crate::kll::{KllSketch, MAX_LEVELS, MAX_N, MIN_K};

/// Reads an envelope. Later coins of the sketch come from `seed`.
///
/// Memory is at most a constant times the length of the envelope, and nothing is allocated before
/// the items are counted. A sketch with more items than its `k` allows here is compacted.
///
/// # Errors
///
/// [`EnvelopeError`] names the first thing that is wrong.
pub fn read(bytes: &[u8], seed: u64) -> Result<Envelope, EnvelopeError> {
    let (kind, metadata, payload) = split(bytes)?;
    let Metadata { k, m, item_type, seed: writer_seed } = read_metadata(Cursor { bytes: metadata, base: HEADER })?;
    let payload = Cursor { bytes: payload, base: bytes.len() - payload.len() };
    let (sketch, coin) = read_payload(payload, k, item_type, seed)?;
    Ok(Envelope { sketch, kind, m, item_type, seed: writer_seed, coin })
}

/// Kind, metadata and payload.
fn split(bytes: &[u8]) -> Result<(Kind, &[u8], &[u8]), EnvelopeError> {
    let length = |expected| EnvelopeError::Length { expected, actual: bytes.len() };
    let (header, rest) = bytes.split_first_chunk::<HEADER>().ok_or(length(HEADER as u64))?;
    let &[a0, a1, a2, a3, a4, a5, version, kind_length, family, form, m0, m1, m2, m3, p0, p1, p2, p3] = header;
    let field = |offset, field, expected, actual: u8| EnvelopeError::Field {
        offset,
        field,
        expected,
        actual: u64::from(actual),
    };
    if [a0, a1, a2, a3, a4, a5] != MAGIC {
        return Err(EnvelopeError::Value { offset: 0, field: "magic", expected: "ASAPv1" });
    }
    if version != VERSION {
        return Err(field(6, "version", "1", version));
    }
    if kind_length != KIND_LENGTH {
        return Err(field(7, "length of the kind", "2", kind_length));
    }
    if family != FAMILY_KLL {
        return Err(field(8, "kind", "6 (KLL)", family));
    }
    let kind = match form {
        0 => Kind::Kll,
        1 => Kind::Dynamic,
        _ => return Err(field(9, "form of KLL", "0 (fixed) or 1 (dynamic)", form)),
    };
    let metadata_length = u32::from_be_bytes([m0, m1, m2, m3]);
    let payload_length = u32::from_be_bytes([p0, p1, p2, p3]);
    let expected = HEADER as u64 + u64::from(metadata_length) + u64::from(payload_length);
    if expected != bytes.len() as u64 {
        return Err(length(expected));
    }
    let (metadata, payload) = rest.split_at(metadata_length as usize);
    Ok((kind, metadata, payload))
}

/// What is left of a block, and where in the envelope the block began.
struct Cursor<'a> {
    bytes: &'a [u8],
    base: usize,
}

impl<'a> Cursor<'a> {
    /// Runs one of the readers of MessagePack; the offset in the error is where its value begins.
    fn take<T, E>(
        &mut self,
        field: &'static str,
        expected: &'static str,
        read: impl FnOnce(&mut &'a [u8]) -> Result<T, E>,
    ) -> Result<T, EnvelopeError> {
        let before = self.bytes.len();
        let value = read(&mut self.bytes);
        let offset = self.base;
        self.base += before - self.bytes.len();
        value.map_err(|_| EnvelopeError::Value { offset, field, expected })
    }

    fn unsigned(&mut self, field: &'static str, expected: &'static str) -> Result<u64, EnvelopeError> {
        self.take(field, expected, read_int::<u64, _>)
    }

    fn array(&mut self, field: &'static str) -> Result<u32, EnvelopeError> {
        self.take(field, "an array", read_array_len)
    }

    /// A text of the block itself, without a copy.
    fn text(&mut self, field: &'static str) -> Result<&'a str, EnvelopeError> {
        self.take(field, "a text", |bytes| {
            let length = read_str_len(bytes).map_err(|_| ())?;
            let (text, rest) = bytes.split_at_checked(length as usize).ok_or(())?;
            *bytes = rest;
            std::str::from_utf8(text).map_err(|_| ())
        })
    }

    fn end(&self, block: &'static str) -> Result<(), EnvelopeError> {
        if self.bytes.is_empty() { Ok(()) } else { Err(EnvelopeError::Trailing { offset: self.base, block }) }
    }
}

/// The metadata, checked.
struct Metadata {
    k: u16,
    m: u16,
    item_type: ItemType,
    seed: Option<(SeedKey, u64)>,
}

fn read_metadata(mut cursor: Cursor<'_>) -> Result<Metadata, EnvelopeError> {
    let entries = cursor.take("metadata", "a map", read_map_len)?;
    let (mut version, mut k, mut m, mut item_type, mut seed) = (None, None, None, None, None);
    for _ in 0..entries {
        let key_offset = cursor.base;
        let key = cursor.text("metadata key")?;
        let offset = cursor.base;
        let repeated = match key {
            KEY_METADATA_VERSION => {
                let actual = cursor.unsigned(KEY_METADATA_VERSION, "1")?;
                if actual != METADATA_VERSION {
                    return Err(EnvelopeError::Field { offset, field: KEY_METADATA_VERSION, expected: "1", actual });
                }
                version.replace(()).is_some()
            }
            KEY_K => {
                let actual = cursor.unsigned(KEY_K, "between 8 and 65535")?;
                k.replace(in_range(actual, offset, KEY_K, "between 8 and 65535", MIN_K)?).is_some()
            }
            KEY_M => {
                let actual = cursor.unsigned(KEY_M, "between 1 and 65535")?;
                m.replace(in_range(actual, offset, KEY_M, "between 1 and 65535", 1)?).is_some()
            }
            KEY_ITEM_TYPE => {
                let item = match cursor.text(KEY_ITEM_TYPE)? {
                    "f64" => ItemType::F64,
                    "i64" => ItemType::I64,
                    _ => return Err(EnvelopeError::Value { offset, field: KEY_ITEM_TYPE, expected: "f64 or i64" }),
                };
                item_type.replace(item).is_some()
            }
            name => {
                let keys = [SeedKey::CompactionSeed, SeedKey::Seed];
                let Some(key) = keys.into_iter().find(|key| key.name() == name) else {
                    return Err(EnvelopeError::Key { offset: key_offset });
                };
                let value = if cursor.bytes.first() == Some(&Marker::Null.to_u8()) {
                    cursor.take(key.name(), "nil", read_marker)?;
                    None
                } else {
                    Some((key, cursor.unsigned(key.name(), "an integer below 2^64, or nil")?))
                };
                seed.replace(value).is_some()
            }
        };
        if repeated {
            return Err(EnvelopeError::Key { offset: key_offset });
        }
    }
    cursor.end("metadata")?;
    let missing = |key| EnvelopeError::Missing { key };
    version.ok_or(missing(KEY_METADATA_VERSION))?;
    Ok(Metadata {
        k: k.ok_or(missing(KEY_K))?,
        m: m.ok_or(missing(KEY_M))?,
        item_type: item_type.ok_or(missing(KEY_ITEM_TYPE))?,
        seed: seed.flatten(),
    })
}

fn in_range(
    actual: u64,
    offset: usize,
    field: &'static str,
    expected: &'static str,
    least: u16,
) -> Result<u16, EnvelopeError> {
    let value = u16::try_from(actual).ok().filter(|value| *value >= least);
    value.ok_or(EnvelopeError::Field { offset, field, expected, actual })
}

fn fixed_length(cursor: &mut Cursor<'_>, field: &'static str, expected: &'static str) -> Result<(), EnvelopeError> {
    let offset = cursor.base;
    let actual = u64::from(cursor.array(field)?);
    if actual == 3 { Ok(()) } else { Err(EnvelopeError::Field { offset, field, expected, actual }) }
}

fn read_payload(
    mut cursor: Cursor<'_>,
    k: u16,
    item_type: ItemType,
    seed: u64,
) -> Result<(KllSketch, Coin), EnvelopeError> {
    fixed_length(&mut cursor, "payload", "3 values: levels, items, coin")?;
    let offset = cursor.base;
    let actual = u64::from(cursor.array("level offsets")?);
    let levels = actual.saturating_sub(1) as usize;
    if !(1..=MAX_LEVELS).contains(&levels) {
        let expected = "between 2 and 62 numbers";
        return Err(EnvelopeError::Field { offset, field: "level offsets", expected, actual });
    }
    // Offset and place of each; all of it is on the stack until the items are counted.
    let mut bounds = [(0u32, 0usize); MAX_LEVELS + 1];
    for bound in &mut bounds[..=levels] {
        let place = cursor.base;
        let value = cursor.take("level offset", "an integer below 2^32", read_int::<u32, _>)?;
        *bound = (value, place);
    }
    let bounds = &bounds[..=levels];
    let offset = cursor.base;
    let count = cursor.array("items")?;
    if count as usize > cursor.bytes.len() {
        let expected = "an array that is there whole";
        return Err(EnvelopeError::Value { offset, field: "items", expected });
    }
    check_bounds(bounds, count)?;

    let mut items: Vec<i64> = Vec::with_capacity(count as usize);
    // Where each level begins once NaN are left out, from the top.
    let mut starts = Vec::with_capacity(levels);
    let mut not_numbers = 0;
    for (index, pair) in bounds.windows(2).enumerate() {
        let weight = 1u64 << (levels - 1 - index);
        starts.push(items.len() as u32);
        for _ in pair[0].0..pair[1].0 {
            let value = read_item(&mut cursor, item_type)?;
            if value.is_nan() {
                not_numbers += weight;
            } else {
                items.push(to_key(value));
            }
        }
    }
    let coin = read_coin(&mut cursor)?;
    cursor.end("payload")?;
    starts.reverse();
    let mut sketch = KllSketch::from_levels(k, items, starts, seed);
    sketch.add_nan_count(not_numbers);
    Ok((sketch, coin))
}

/// Checks that the offsets go from 0 to `count`, and that the weights can be counted.
fn check_bounds(bounds: &[(u32, usize)], count: u32) -> Result<(), EnvelopeError> {
    let last = bounds.len() - 1;
    let mut least = 0;
    let mut weights = 0u128;
    for (index, &(actual, offset)) in bounds.iter().enumerate() {
        let (lowest, most) = match index {
            0 => (0, 0),
            _ if index == last => (count, count),
            _ => (least, count),
        };
        if !(lowest..=most).contains(&actual) || actual < least {
            return Err(EnvelopeError::LevelOffset { offset, least: lowest, most, actual });
        }
        if index > 0 {
            weights += u128::from(actual - least) << (last - index);
        }
        least = actual;
    }
    if weights > u128::from(MAX_N) {
        return Err(EnvelopeError::Weights { weights });
    }
    Ok(())
}

/// One item as a double.
fn read_item(cursor: &mut Cursor<'_>, item_type: ItemType) -> Result<f64, EnvelopeError> {
    if item_type == ItemType::I64 {
        return cursor.take("item", "an integer between -2^63 and 2^63 - 1", |bytes| {
            read_int::<i64, _>(bytes).map(|item| item as f64)
        });
    }
    let expected = "a double";
    match cursor.bytes.first().copied().map(Marker::from_u8) {
        Some(Marker::F64) => cursor.take("item", expected, read_f64),
        Some(Marker::F32) => cursor.take("item", expected, |bytes| read_f32(bytes).map(f64::from)),
        // Some writers shorten whole numbers.
        _ => cursor.take("item", expected, |bytes| read_int::<i64, _>(bytes).map(|item| item as f64)),
    }
}

fn read_coin(cursor: &mut Cursor<'_>) -> Result<Coin, EnvelopeError> {
    fixed_length(cursor, "coin", "3 values: state, bit cache, remaining bits")?;
    let state = cursor.unsigned("state of the coin", "an integer below 2^64")?;
    let bit_cache = cursor.unsigned("bit cache of the coin", "an integer below 2^64")?;
    let offset = cursor.base;
    let field = "remaining bits of the coin";
    let expected = "between 0 and 64";
    let actual = cursor.unsigned(field, expected)?;
    match u32::try_from(actual) {
        Ok(remaining_bits @ 0..=64) => Ok(Coin { state, bit_cache, remaining_bits }),
        _ => Err(EnvelopeError::Field { offset, field, expected, actual }),
    }
}
