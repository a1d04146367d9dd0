use proptest::prelude::*;

use super::*;

fn threshold(hex: &str) -> Threshold {
    Threshold::from_hex(hex.as_bytes()).unwrap_or_else(|| panic!("`{hex}` is a threshold"))
}

/// Thresholds of usual probabilities, in the form of `tracestate`.
#[test]
fn probabilities() {
    for (probability, text, count) in [
        (1.0, "0", 1.0),
        (0.75, "4", 4.0 / 3.0),
        (0.5, "8", 2.0),
        (0.25, "c", 4.0),
        (0.125, "e", 8.0),
        (0.1, "e6666666666666", 10.0),
        (0.01, "fd70a3d70a3d71", 100.0),
        (1.0 / 3.0, "aaaaaaaaaaaaac", 3.0),
        (2.0 / 3.0, "55555555555558", 1.5),
        (1.0 / 1024.0, "ffc", 1024.0),
        ((-56f64).exp2(), "ffffffffffffff", 56f64.exp2()),
    ] {
        let found = Threshold::from_probability(probability).expect("in range");
        assert_eq!(found.to_string(), text, "{probability}");
        assert_eq!(found, threshold(text));
        assert!((found.adjusted_count() / count - 1.0).abs() < 1e-12, "{probability}: {}", found.adjusted_count());
        assert!((found.probability() / probability - 1.0).abs() < 1e-12, "{probability}");
    }
    for wrong in [0.0, -0.5, 1.0 + f64::EPSILON, (-57f64).exp2(), f64::NAN, f64::INFINITY] {
        assert_eq!(Threshold::from_probability(wrong), None, "{wrong}");
    }
}

/// Digits, their number, and what is none.
#[test]
fn hexadecimal() {
    assert_eq!(threshold("fd70a4").get(), 0xfd_70a4_0000_0000);
    assert_eq!(threshold("00000000000001").get(), 1);
    assert_eq!(threshold("0"), Threshold::KEEP_ALL);
    assert_eq!(threshold("c00").to_string(), "c");
    assert_eq!(threshold("0a").to_string(), "0a");
    assert_eq!(Randomness::from_hex(b"9b8233f7e3a151").map(Randomness::get), Some(0x9b_8233_f7e3_a151));
    for wrong in ["", "C", "g", "0x1", "123456789012345", " 8", "-1", "+1"] {
        assert_eq!(Threshold::from_hex(wrong.as_bytes()), None, "{wrong}");
        assert_eq!(Randomness::from_hex(wrong.as_bytes()), None, "{wrong}");
    }
    assert_eq!(Randomness::from_hex(b"9b8233f7e3a15"), None);
}

/// A record is kept if its randomness is not below the threshold.
#[test]
fn the_rule() {
    for (th, rv, kept) in [
        ("0", "00000000000000", true),
        ("8", "7fffffffffffff", false),
        ("8", "80000000000000", true),
        ("c", "bfffffffffffff", false),
        ("c", "c0000000000000", true),
        ("fd70a4", "fd70a3ffffffff", false),
        ("fd70a4", "fd70a400000000", true),
        ("ffffffffffffff", "fffffffffffffe", false),
        ("ffffffffffffff", "ffffffffffffff", true),
    ] {
        let rv = Randomness::from_hex(rv.as_bytes()).expect("14 digits");
        assert_eq!(threshold(th).admits(rv), kept, "{th} {rv:?}");
    }
}

proptest! {
    /// What is written is read again, and has no zeros at its end.
    #[test]
    fn text_round_trip(value in 0..ALL) {
        let one = Threshold::new(value).expect("in range");
        let text = one.to_string();
        prop_assert_eq!(Threshold::from_hex(text.as_bytes()), Some(one));
        prop_assert!(text == "0" || !text.ends_with('0'), "{}", text);
        prop_assert!(text.len() <= DIGITS);
    }

    /// The grid is near, above, and has each of its own points.
    #[test]
    fn grid(value in 0..ALL, shift in 0..56u32) {
        let one = Threshold::new(ALL - 1 - (value >> shift)).expect("in range");
        let grid = one.on_grid();
        prop_assert!(grid >= one);
        prop_assert!(grid.probability() > one.probability() * (1.0 - 1.0 / 64.0));
        prop_assert_eq!(grid.on_grid(), grid);
        let half = grid.halved_on_grid().probability() / grid.probability();
        prop_assert!(half == 0.5 || grid.get() > ALL - 256, "{}", half);
    }
}
