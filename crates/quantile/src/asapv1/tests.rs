use proptest::prelude::*;

use super::*;
use crate::rank::Criterion;

fn sketch_of(k: u16, values: impl IntoIterator<Item = f64>) -> KllSketch {
    let mut sketch = KllSketch::new(k, 1).expect("k");
    values.into_iter().for_each(|value| sketch.update(value));
    sketch
}

/// Three doubles in an envelope, written out by hand.
fn three_doubles() -> Vec<u8> {
    let metadata = b"\x85\xb0metadata_version\x01\xa1k\xcc\xc8\xa1m\x08\xa9item_type\xa3f64\xa4seed\x2a";
    let items = [1.0f64, -2.0, 0.5].map(|item| [&[0xcb][..], &item.to_be_bytes()].concat()).concat();
    let payload = [&b"\x93\x92\x00\x03\x93"[..], &items, b"\x93\x07\x00\x00"].concat();
    let lengths = [(metadata.len() as u32).to_be_bytes(), (payload.len() as u32).to_be_bytes()].concat();
    [&b"ASAPv1\x01\x02\x06\x00"[..], &lengths, metadata, &payload].concat()
}

/// Every field of an envelope written by hand is read, and written again to the same bytes.
#[test]
fn envelope_by_hand() {
    let bytes = three_doubles();
    let envelope = read(&bytes, 1).expect("valid");
    assert_eq!((envelope.kind, envelope.m, envelope.item_type), (Kind::Kll, 8, ItemType::F64));
    assert_eq!(envelope.seed, Some((SeedKey::Seed, 42)));
    assert_eq!(envelope.coin, Coin { state: 7, bit_cache: 0, remaining_bits: 0 });
    assert_eq!((envelope.sketch.n(), envelope.sketch.k()), (3, 200));
    assert_eq!((envelope.sketch.min(), envelope.sketch.max()), (Some(-2.0), Some(1.0)));
    let settings = WriteSettings { seed: envelope.seed, coin: Some(envelope.coin), ..WriteSettings::default() };
    assert_eq!(write(&envelope.sketch, &settings), bytes);
    let renamed = WriteSettings { seed: Some((SeedKey::CompactionSeed, 42)), kind: Kind::Dynamic, coin: None };
    let again = read(&write(&envelope.sketch, &renamed), 1).expect("own bytes");
    assert_eq!((again.kind, again.seed), (Kind::Dynamic, renamed.seed));
    assert_ne!(again.coin.state, 0);
}

/// The count of the carrier is compared, not enforced.
#[test]
fn weight_mismatch_is_told() {
    let envelope = read(&three_doubles(), 1).expect("valid");
    assert_eq!(envelope.weight_mismatch(3), None);
    assert_eq!(envelope.weight_mismatch(5), Some(WeightMismatch { count: 5, weights: 3 }));
}

/// Each field that is wrong is named, with its place.
#[test]
fn errors_name_the_field() {
    let valid = three_doubles();
    for (offset, byte, expected) in [
        (0, b'B', "byte 0: magic must be ASAPv1"),
        (6, 2, "byte 6: version must be 1, got 2"),
        (7, 3, "byte 7: length of the kind must be 2, got 3"),
        (8, 5, "byte 8: kind must be 6 (KLL), got 5"),
        (9, 2, "byte 9: form of KLL must be 0 (fixed) or 1 (dynamic), got 2"),
        (13, 47, "ASAPv1 envelope must be 101 bytes long, got 100"),
        (36, 2, "byte 36: metadata_version must be 1, got 2"),
        (36, 0xc0, "byte 36: metadata_version must be 1"),
        (40, 7, "byte 39: k must be between 8 and 65535, got 7"),
        (55, b'g', "byte 54: item_type must be f64 or i64"),
        (59, b'S', "byte 58: metadata key must be one of"),
    ] {
        let mut bytes = valid.clone();
        bytes[offset] = byte;
        let error = read(&bytes, 1).expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error} instead of {expected}");
    }
    let payload = valid.len() - (3 + 1 + 1 + 27 + 4 - 1);
    for (offset, byte, expected) in [
        (0, 0x92, "payload must be 3 values"),
        (1, 0x91, "level offsets must be between 2 and 62 numbers, got 1"),
        (2, 1, "level offset must be between 0 and 0, got 1"),
        (3, 2, "level offset must be between 3 and 3, got 2"),
        (4, 0xdd, "items must be an array that is there whole"),
        (5, 0xa0, "item must be a double"),
        (32, 0x92, "coin must be 3 values"),
        (35, 65, "remaining bits of the coin must be between 0 and 64, got 65"),
    ] {
        let mut bytes = valid.clone();
        bytes[payload + offset - 1] = byte;
        let error = read(&bytes, 1).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error} instead of {expected}");
    }
}

/// A cut at any place is refused.
#[test]
fn every_prefix_is_refused() {
    let bytes = three_doubles();
    for length in 0..bytes.len() {
        assert!(read(&bytes[..length], 1).is_err(), "cut at {length}");
    }
    assert!(read(&[&bytes[..], &[0]].concat(), 1).is_err());
}

/// An array header that promises four billion items is refused for what is there.
#[test]
fn huge_arrays_are_refused() {
    let valid = three_doubles();
    let items = valid.len() - 27 - 4 - 1;
    let mut bytes = [&valid[..items], &[0xdd, 0xff, 0xff, 0xff, 0xff], &valid[items + 1..]].concat();
    bytes[17] += 4;
    let error = read(&bytes, 1).expect_err("refused").to_string();
    assert!(error.contains("items must be an array that is there whole"), "{error}");
}

/// NaN items are dropped with their weight, and the sketch stays sound.
#[test]
fn nan_items_are_dropped() {
    let mut bytes = three_doubles();
    let item = bytes.len() - 4 - 8;
    bytes[item..item + 8].copy_from_slice(&f64::NAN.to_be_bytes());
    let envelope = read(&bytes, 1).expect("tolerated");
    assert_eq!((envelope.sketch.n(), envelope.sketch.nan_count(), envelope.weights()), (2, 1, 3));
    assert_eq!(envelope.sketch.quantile(1.0, Criterion::Inclusive), Ok(1.0));
}

/// Top levels with nothing in them, also for want of numbers, are no levels.
#[test]
fn empty_top_levels_are_left_out() {
    let metadata = b"\x84\xb0metadata_version\x01\xa1k\x08\xa1m\x08\xa9item_type\xa3f64";
    let payload = b"\x93\x94\x00\x00\x01\x02\x92\xca\xff\xff\xff\xff\x07\x93\x01\x00\x00";
    let lengths = [(metadata.len() as u32).to_be_bytes(), (payload.len() as u32).to_be_bytes()].concat();
    let envelope = read(&[&b"ASAPv1\x01\x02\x06\x00"[..], &lengths, metadata, payload].concat(), 1).expect("valid");
    let sketch = envelope.sketch;
    assert_eq!((sketch.n(), sketch.nan_count(), sketch.num_levels()), (1, 2, 1));
    assert_eq!(KllSketch::from_bytes(&sketch.to_bytes(), 1).expect("own bytes").max(), Some(7.0));
}

/// Upper levels that are not in order, as one writer leaves them, are put in order.
#[test]
fn unsorted_levels_are_sorted() {
    let metadata = b"\x84\xb0metadata_version\x01\xa1k\x08\xa1m\x08\xa9item_type\xa3i64";
    let payload = b"\x93\x93\x00\x04\x05\x95\x05\x01\xff\x02\x03\x93\x01\x00\x00";
    let lengths = [(metadata.len() as u32).to_be_bytes(), (payload.len() as u32).to_be_bytes()].concat();
    let bytes = [&b"ASAPv1\x01\x02\x06\x01"[..], &lengths, metadata, payload].concat();
    let envelope = read(&bytes, 1).expect("valid");
    assert_eq!((envelope.item_type, envelope.seed, envelope.sketch.n()), (ItemType::I64, None, 9));
    let view = envelope.sketch.sorted_view();
    assert_eq!(view.values(), [-1.0, 1.0, 2.0, 3.0, 5.0]);
    assert_eq!(view.cumulative_weights(), [2, 4, 6, 7, 9]);
    assert!(KllSketch::from_bytes(&envelope.sketch.to_bytes(), 1).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A sketch survives with all its items and weights, whatever its size.
    #[test]
    fn sketches_survive(n in 0u64..4000, k in 8u16..300, seed in any::<Option<u64>>()) {
        let sketch = sketch_of(k, (0..n).map(|i| (i * 7919 % 4001) as f64));
        let seed = seed.map(|seed| (SeedKey::default(), seed));
        let bytes = write(&sketch, &WriteSettings { seed, ..WriteSettings::default() });
        let envelope = read(&bytes, 1).expect("own bytes");
        prop_assert_eq!(envelope.weight_mismatch(n), None);
        prop_assert_eq!(envelope.seed, seed);
        let (ours, theirs) = (sketch.sorted_view(), envelope.sketch.sorted_view());
        prop_assert_eq!(ours.values(), theirs.values());
        prop_assert_eq!(ours.cumulative_weights(), theirs.cumulative_weights());
        let again = write(&envelope.sketch, &WriteSettings { seed, coin: Some(envelope.coin), kind: Kind::Kll });
        prop_assert_eq!(again, bytes);
    }

    /// Changed bytes are refused or a sound sketch of bounded memory.
    #[test]
    fn changed_bytes_are_refused_or_sound(
        n in 0u64..500,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = write(&sketch_of(8, (0..n).map(|i| i as f64)), &WriteSettings::default());
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(envelope) = read(&bytes, 1) {
            prop_assert!(envelope.sketch.retained_bytes() <= 1024 + 16 * bytes.len());
            let view = envelope.sketch.sorted_view();
            prop_assert!(view.values().is_sorted());
            prop_assert_eq!(view.cumulative_weights().last().copied().unwrap_or(0), envelope.sketch.n());
            prop_assert!(KllSketch::from_bytes(&envelope.sketch.to_bytes(), 1).is_ok());
        }
    }
}
