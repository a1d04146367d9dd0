//! Envelopes of other writers, and what the crate of their authors makes of ours.

use std::fs;
use std::path::Path;

use asap_sketchlib::sketches::kll::Kll;
use asap_sketchlib::sketches::kll_dynamic::KllDynamic;
use catchment_quantile::asapv1::{Envelope, ItemType, Kind, SeedKey, WriteSettings, read, write};
use catchment_quantile::{Criterion, KllSketch};
use proptest::prelude::*;

/// The bytes of a file; of a `.hex` file those that it spells.
fn envelope(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).expect("readable");
    if path.extension().is_none_or(|extension| extension != "hex") {
        return bytes;
    }
    let digits = String::from_utf8(bytes).expect("text");
    let pair = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).expect("ASCII"), 16).expect("hexadecimal");
    digits.trim().as_bytes().chunks(2).map(pair).collect()
}

fn settings_of(envelope: &Envelope) -> WriteSettings {
    WriteSettings { kind: envelope.kind, seed: envelope.seed, coin: Some(envelope.coin) }
}

/// Every published envelope is read; those of doubles are written again to the same bytes.
#[test]
fn published_envelopes() {
    let Ok(folder) = std::env::var("CATCHMENT_QUANTILE_REFERENCE") else {
        println!("skipped: CATCHMENT_QUANTILE_REFERENCE names no folder with asapv1/");
        return;
    };
    let mut seen = 0;
    for (name, n, kind, item_type, seed, count) in [
        ("kll-k200-empty-seed3.bin", 0, Kind::Kll, ItemType::F64, Some((SeedKey::CompactionSeed, 3)), 0),
        ("kll-k400-n400-seed3.bin", 400, Kind::Kll, ItemType::F64, Some((SeedKey::CompactionSeed, 3)), 400),
        ("kll-k400-n65536-seed3.bin", 65_475, Kind::Kll, ItemType::F64, Some((SeedKey::CompactionSeed, 3)), 65_536),
        ("kll_dynamic_f64_k200.hex", 7, Kind::Dynamic, ItemType::F64, None, 7),
        ("kll_f64_k200.compaction_seed-key.hex", 50, Kind::Kll, ItemType::F64, Some((SeedKey::CompactionSeed, 42)), 50),
        ("kll_f64_k200.seed-key.hex", 50, Kind::Kll, ItemType::F64, Some((SeedKey::Seed, 42)), 50),
        ("kll_i64_k200.compaction_seed-key.hex", 50, Kind::Kll, ItemType::I64, Some((SeedKey::CompactionSeed, 42)), 50),
    ] {
        let bytes = envelope(&Path::new(&folder).join("asapv1").join(name));
        let found = read(&bytes, 1).unwrap_or_else(|error| panic!("{name}: {error}"));
        seen += 1;
        assert_eq!((found.kind, found.item_type, found.m, found.seed), (kind, item_type, 8, seed), "{name}");
        assert_eq!((found.sketch.n(), found.sketch.k()), (n, if name.contains("400") { 400 } else { 200 }), "{name}");
        let lost = found.weight_mismatch(count).map(|mismatch| mismatch.count - mismatch.weights);
        assert_eq!(lost.unwrap_or(0), count - n, "{name}");
        if item_type == ItemType::F64 {
            assert_eq!(write(&found.sketch, &settings_of(&found)), bytes, "{name}");
        }
        if n == 50 {
            assert_eq!(found.sketch.quantile(0.5, Criterion::Inclusive), Ok(25.0), "{name}");
            assert_eq!((found.sketch.min(), found.sketch.max()), (Some(1.0), Some(50.0)), "{name}");
        }
        if n > 0 {
            assert!(KllSketch::from_bytes(&found.sketch.to_bytes(), 1).is_ok(), "{name}");
        }
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length], 1).is_err(), "{name} cut at {length}");
        }
    }
    let files = fs::read_dir(Path::new(&folder).join("asapv1")).expect("asapv1").count();
    assert_eq!(seen, files, "files without a case");
}

fn scrambled(n: u64) -> impl Iterator<Item = f64> {
    (0..n).map(move |i| (i * 7919 % n.max(1)) as f64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Their crate reads what is written here, in both forms, and finds the same quantiles.
    #[test]
    fn their_crate_reads_ours(n in 1u64..30_000, k in 8u16..500, seed: u64) {
        let mut sketch = KllSketch::new(k, seed).expect("k");
        scrambled(n).for_each(|value| sketch.update(value));
        let seeded = WriteSettings { seed: Some((SeedKey::CompactionSeed, seed)), ..WriteSettings::default() };
        let fixed = Kll::<f64>::from_asapv1(&write(&sketch, &seeded)).expect("readable by their crate");
        prop_assert_eq!(fixed.count() as u64, n);
        let growing = WriteSettings { kind: Kind::Dynamic, ..WriteSettings::default() };
        let growing = KllDynamic::<f64>::from_asapv1(&write(&sketch, &growing)).expect("readable by their crate");
        prop_assert_eq!(growing.count() as u64, n);
        let median = sketch.quantile(0.5, Criterion::Inclusive).expect("not empty");
        let bound = n as f64 * sketch.normalized_rank_error(false) + 1.0;
        prop_assert!((fixed.quantile(0.5) - median).abs() <= bound);
    }

    /// What their crate writes is read here, of doubles and of integers, with all its items.
    #[test]
    fn their_envelopes_are_read(n in 0u64..30_000, k in 8i32..500, seed: u64, growing: bool) {
        let (doubles, integers, weights) = if growing {
            let mut doubles = KllDynamic::<f64>::with_k_and_seed(k, seed);
            let mut integers = KllDynamic::<i64>::with_k_and_seed(k, seed);
            for value in scrambled(n) {
                doubles.update(&value);
                integers.update(&(value as i64));
            }
            (doubles.to_asapv1().expect("written"), integers.to_asapv1().expect("written"), doubles.count())
        } else {
            let mut doubles = Kll::<f64>::with_k_and_seed(k, seed);
            let mut integers = Kll::<i64>::with_k_and_seed(k, seed);
            for value in scrambled(n) {
                doubles.update(&value);
                integers.update(&(value as i64));
            }
            (doubles.to_asapv1().expect("written"), integers.to_asapv1().expect("written"), doubles.count())
        };
        let doubles = read(&doubles, 1).expect("readable here");
        prop_assert_eq!(doubles.weights(), weights as u64);
        let integers = read(&integers, 1).expect("readable here");
        prop_assert_eq!(integers.item_type, ItemType::I64);
        let (ours, theirs) = (doubles.sketch.sorted_view(), integers.sketch.sorted_view());
        prop_assert_eq!(ours.values(), theirs.values());
        prop_assert_eq!(ours.cumulative_weights(), theirs.cumulative_weights());
        prop_assert_eq!(theirs.cumulative_weights().last().copied().unwrap_or(0), weights as u64);
    }
}
