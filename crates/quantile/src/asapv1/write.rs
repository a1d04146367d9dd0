//! Writing.

use rmp::encode::{ByteBuf, write_array_len, write_f64, write_map_len, write_str, write_uint};

use super::{
    Coin, FAMILY_KLL, HEADER, KEY_ITEM_TYPE, KEY_K, KEY_M, KEY_METADATA_VERSION, KIND_LENGTH, MAGIC, METADATA_VERSION,
    VERSION, WriteSettings,
};
use crate::key::to_value;
use crate::kll::{KllSketch, MIN_K};

/// The envelope of a sketch, with items of type double. The weights add up to the count of the
/// sketch; its extremes, sum and number of NaN are for the carrier.
#[must_use]
pub fn write(sketch: &KllSketch, settings: &WriteSettings) -> Vec<u8> {
    let metadata = write_metadata(sketch, settings);
    let payload = write_payload(sketch, settings.coin.unwrap_or_else(|| fresh_coin(sketch)));
    let mut envelope = Vec::with_capacity(HEADER + metadata.len() + payload.len());
    envelope.extend_from_slice(&MAGIC);
    envelope.extend_from_slice(&[VERSION, KIND_LENGTH, FAMILY_KLL, settings.kind.id()]);
    // A sketch has at most some 200,000 items, so both lengths are far below 2^32.
    envelope.extend_from_slice(&(metadata.len() as u32).to_be_bytes());
    envelope.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    envelope.extend_from_slice(&metadata);
    envelope.extend_from_slice(&payload);
    envelope
}

/// Coins that differ between sketches. A state of zero would give the same bit for ever.
fn fresh_coin(sketch: &KllSketch) -> Coin {
    Coin { state: sketch.coins_fingerprint().max(1), bit_cache: 0, remaining_bits: 0 }
}

/// The encoder fails only if its buffer does, and a growing buffer does not.
fn sure<T, E>(written: Result<T, E>) {
    debug_assert!(written.is_ok(), "a growing buffer takes everything");
}

fn write_metadata(sketch: &KllSketch, settings: &WriteSettings) -> Vec<u8> {
    let mut out = ByteBuf::with_capacity(64);
    sure(write_map_len(&mut out, 4 + u32::from(settings.seed.is_some())));
    let mut number = |key: &str, value: u64| {
        sure(write_str(&mut out, key));
        sure(write_uint(&mut out, value));
    };
    number(KEY_METADATA_VERSION, METADATA_VERSION);
    number(KEY_K, sketch.k().into());
    number(KEY_M, MIN_K.into());
    sure(write_str(&mut out, KEY_ITEM_TYPE));
    sure(write_str(&mut out, "f64"));
    if let Some((key, seed)) = settings.seed {
        sure(write_str(&mut out, key.name()));
        sure(write_uint(&mut out, seed));
    }
    out.into_vec()
}

fn write_payload(sketch: &KllSketch, coin: Coin) -> Vec<u8> {
    const ITEM: usize = 9;
    let mut out = ByteBuf::with_capacity(64 + 5 * sketch.num_levels() + ITEM * sketch.num_retained());
    sure(write_array_len(&mut out, 3));
    sure(write_array_len(&mut out, sketch.num_levels() as u32 + 1));
    let mut offset = 0;
    sure(write_uint(&mut out, offset));
    for level in sketch.levels_from_the_top() {
        offset += level.len() as u64;
        sure(write_uint(&mut out, offset));
    }
    sure(write_array_len(&mut out, sketch.num_retained() as u32));
    for &key in sketch.levels_from_the_top().flatten() {
        sure(write_f64(&mut out, to_value(key)));
    }
    sure(write_array_len(&mut out, 3));
    for number in [coin.state, coin.bit_cache, coin.remaining_bits.into()] {
        sure(write_uint(&mut out, number));
    }
    out.into_vec()
}
