use super::*;
use proptest::prelude::*;

fn run_of(values: &[f64]) -> SortedRun {
    SortedRun::from_values(values)
}

/// The bytes written out.
#[test]
fn bytes_of_two_values() {
    let run = run_of(&[2.0, f64::NAN, -1.0]);
    let bytes = run.to_bytes();
    assert_eq!(bytes[..16], *b"CQRN\x01\x01\0\0\x02\0\0\0\0\0\0\0");
    assert_eq!(bytes[20..28], (-1.0f64).to_le_bytes());
    assert_eq!(bytes[28..], 2.0f64.to_le_bytes());
    assert_eq!(SortedRun::from_bytes(&bytes), Ok(run));
}

/// Zeros keep their signs, infinities are values, an empty run is one.
#[test]
fn special_values_survive() {
    let run = run_of(&[0.0, f64::INFINITY, -0.0, f64::NEG_INFINITY]);
    let read = SortedRun::from_bytes(&run.to_bytes()).expect("own bytes");
    let bits: Vec<u64> = read.values().map(f64::to_bits).collect();
    let expected = [f64::NEG_INFINITY, -0.0, 0.0, f64::INFINITY];
    assert_eq!(bits, expected.map(f64::to_bits));
    assert_eq!((read.min(), read.max()), (Some(f64::NEG_INFINITY), Some(f64::INFINITY)));
    let empty = SortedRun::default();
    assert_eq!(SortedRun::from_bytes(&empty.to_bytes()), Ok(empty.clone()));
    assert_eq!(quantiles(&[empty], &[0.5]), Err(QuantileError::Empty));
    assert_eq!(quantiles(&[], &[0.5]), Err(QuantileError::Empty));
}

/// Any changed bit, any cut and anything behind the end is found.
#[test]
fn damage_is_found() {
    let bytes = run_of(&[1.0, 2.0, 3.0]).to_bytes();
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1 << bit;
            assert!(SortedRun::from_bytes(&damaged).is_err(), "byte {place} bit {bit}");
        }
        assert!(SortedRun::from_bytes(&bytes[..place]).is_err());
    }
    assert!(SortedRun::from_bytes(&[bytes, vec![0]].concat()).is_err());
}

/// Values that were written out of order, or NaN, are found behind a right checksum.
#[test]
fn disorder_is_found() {
    for values in [[2.0, 1.0], [1.0, f64::NAN], [-f64::NAN, 1.0]] {
        let keys = values.map(to_key).to_vec();
        let error = SortedRun::from_bytes(&SortedRun { keys, cumulative: Vec::new() }.to_bytes());
        assert!(matches!(error, Err(RunError::Order { .. })), "{values:?}");
    }
}

/// A number of values beyond all memory is a wrong length.
#[test]
fn huge_count_is_refused() {
    let mut bytes = run_of(&[1.0]).to_bytes();
    bytes[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    let error = SortedRun::from_bytes(&bytes);
    assert!(matches!(error, Err(RunError::Length { .. })), "{error:?}");
}

/// Weights travel behind the values; zero and what cannot be counted is refused.
#[test]
fn weights_travel() {
    let mut exact = ExactQuantiles::new(9);
    for (value, weight) in [(2.0, 3), (1.0, 1), (3.0, 1 << 60)] {
        exact.observe_weighted(value, weight).expect("small counts");
    }
    let run = SortedRun::from_exact(&exact);
    assert_eq!((run.len(), run.n()), (3, 4 + (1 << 60)));
    let bytes = run.to_bytes();
    assert_eq!((bytes.len(), bytes[6]), (20 + 3 * 16, 1));
    assert_eq!(bytes[44..52], 1u64.to_le_bytes());
    let read = SortedRun::from_bytes(&bytes).expect("own bytes");
    assert_eq!(read, run);
    assert_eq!(read.weights().collect::<Vec<_>>(), [1, 3, 1 << 60]);
    for (at, weight) in [(44, 0u64), (52, u64::MAX), (52, 1 << 61)] {
        let mut damaged = bytes.clone();
        damaged[at..at + 8].copy_from_slice(&weight.to_le_bytes());
        let sum = checksum(&damaged).to_le_bytes();
        damaged[16..20].copy_from_slice(&sum);
        let offset = if weight == 1 << 61 { 52 } else { at };
        assert_eq!(SortedRun::from_bytes(&damaged), Err(RunError::Weight { offset }));
    }
}

/// Nothing has no weights: there is one way to write an empty run.
#[test]
fn empty_run_has_no_weights() {
    let mut bytes = SortedRun::default().to_bytes();
    bytes[6] = 1;
    let error = SortedRun::from_bytes(&bytes).expect_err("refused").to_string();
    assert_eq!(error, "byte 6: flags must be 0x0, got 0x1");
}

/// An empty run is one empty part; parts of a limit of 0 have one value.
#[test]
fn parts_of_nothing_and_of_one() {
    let parts: Vec<_> = SortedRun::default().parts(MAX_PART_VALUES).collect();
    assert_eq!(parts, [(Part::WHOLE, SortedRun::default())]);
    assert_eq!(run_of(&[1.0, 2.0]).parts(0).count(), 2);
}

proptest! {
    /// Parts, with and without weights, in bytes and back, are the run.
    #[test]
    fn parts_are_the_run(
        items in prop::collection::vec((-9i32..9, 1u64..4), 0..40),
        most in 1usize..12,
        ranks in prop::collection::vec(0.0f64..=1.0, 0..6),
        weighted: bool,
    ) {
        let mut exact = ExactQuantiles::new(1000);
        for (value, weight) in items {
            exact.observe_weighted(f64::from(value), if weighted { weight } else { 1 }).expect("small counts");
        }
        let whole = SortedRun::from_exact(&exact);
        let parts: Vec<(Part, SortedRun)> = whole.parts(most).collect();
        for (index, (part, run)) in parts.iter().enumerate() {
            prop_assert_eq!((part.index as usize, part.of as usize), (index, parts.len()));
            prop_assert!(run.len() <= most);
        }
        let read: Result<Vec<SortedRun>, _> =
            parts.iter().map(|(_, run)| SortedRun::from_bytes(&run.to_bytes())).collect();
        let read = read.expect("own bytes");
        prop_assert_eq!(read.iter().map(SortedRun::n).sum::<u64>(), whole.n());
        prop_assert_eq!(quantiles(&read, &ranks), exact.quantiles(&ranks));
    }

    /// Selection over runs is selection over all values: empty runs, runs of one, equal values
    /// within and across runs, zeros of both signs.
    #[test]
    fn runs_together_are_all_values(
        parts in prop::collection::vec(prop::collection::vec(-6i32..6, 0..20), 1..8),
        ranks in prop::collection::vec(0.0f64..=1.0, 0..6),
    ) {
        let value = |&number: &i32| if number == 5 { -0.0 } else { f64::from(number) };
        let parts: Vec<Vec<f64>> =
            parts.iter().map(|part| part.iter().map(value).collect()).collect();
        let mut exact = ExactQuantiles::new(1000);
        parts.iter().for_each(|part| { exact.observe_slice(part); });
        let runs: Vec<SortedRun> = parts.iter().map(|part| run_of(part)).collect();
        let bits = |found: Result<Vec<f64>, _>| {
            found.map(|values| values.into_iter().map(f64::to_bits).collect::<Vec<_>>())
        };
        prop_assert_eq!(bits(quantiles(&runs, &ranks)), bits(exact.quantiles(&ranks)));
        let whole = SortedRun::from_exact(&exact);
        prop_assert_eq!(bits(quantiles(&[whole], &ranks)), bits(exact.quantiles(&ranks)));
    }

    /// As many and as long runs as have to be searched rather than sorted: alike, apart from each
    /// other, of very different lengths, with many equal values, with weights.
    #[test]
    fn many_long_runs_together_are_all_values(
        lengths in prop::collection::vec(0usize..300, 1..40),
        long in 0usize..3000,
        step in 0u64..3,
        range in prop_oneof![Just(3u64), Just(1_000_000)],
        weight in 1u64..3,
        mut ranks in prop::collection::vec(0.0f64..=1.0, 0..6),
        seed: u64,
    ) {
        let mut exact = ExactQuantiles::new(u64::MAX);
        let mut runs = Vec::new();
        for (at, length) in lengths.into_iter().chain([long]).enumerate() {
            let mut part = ExactQuantiles::new(u64::MAX);
            for index in 0..length {
                let value = crate::seed::derive(seed, at as u64, index as i64) % range + at as u64 * step * range / 2;
                let weight = if index % 7 == 0 { weight } else { 1 };
                part.observe_weighted(value as f64 - 10.0, weight).expect("small counts");
            }
            exact.merge(&part);
            runs.push(SortedRun::from_exact(&part));
        }
        prop_assume!(exact.n() > 0);
        ranks.extend([1.0, 0.0, 0.5, 0.999]);
        prop_assert_eq!(quantiles(&runs, &ranks), exact.quantiles(&ranks));
    }

    /// Arbitrary bytes are refused or a run, without panic.
    #[test]
    fn arbitrary_bytes_are_no_danger(rest in prop::collection::vec(any::<u8>(), 0..80)) {
        let bytes = [&b"CQRN\x01\x01\0\0"[..], &rest].concat();
        if let Ok(run) = SortedRun::from_bytes(&bytes) {
            prop_assert_eq!(run.to_bytes(), bytes);
        }
    }
}
