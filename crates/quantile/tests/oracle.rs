//! The crate `datasketches` reads what is written here, and the other way round.

use catchment_quantile::{Criterion, KllSketch};
use datasketches::common::SearchCriteria;
use datasketches::kll::{KllFloat, KllSketch as Oracle};
use proptest::prelude::*;

type Doubles = Oracle<KllFloat<f64>>;

fn oracle_of(k: u16, values: &[f64]) -> Doubles {
    let mut oracle = Doubles::new(k).expect("k");
    for &value in values {
        oracle.update(KllFloat::<f64>::new(value).expect("not NaN"));
    }
    oracle
}

fn sketch_of(k: u16, seed: u64, values: &[f64]) -> KllSketch {
    let mut sketch = KllSketch::new(k, seed).expect("k");
    sketch.update_slice(values);
    sketch
}

/// Both say the same about one image.
fn assert_agree(sketch: &KllSketch, oracle: &Doubles) {
    assert_eq!(sketch.n(), oracle.n());
    assert_eq!(sketch.k(), oracle.k());
    assert_eq!(sketch.num_retained(), oracle.num_retained());
    let inner = |item: Option<&KllFloat<f64>>| item.map(|item| item.into_inner());
    assert_eq!(sketch.min(), inner(oracle.min_item()));
    assert_eq!(sketch.max(), inner(oracle.max_item()));
    for (criterion, theirs) in
        [(Criterion::Inclusive, SearchCriteria::Inclusive), (Criterion::Exclusive, SearchCriteria::Exclusive)]
    {
        for rank in [0.0, 0.013, 0.25, 0.5, 0.77, 0.999, 1.0] {
            let expected = oracle.quantile(rank, theirs).expect("valid rank");
            let actual = sketch.quantile(rank, criterion).ok();
            assert_eq!(actual, expected.map(KllFloat::into_inner), "{criterion:?} {rank}");
        }
    }
}

fn values() -> impl Strategy<Value = Vec<f64>> {
    (0usize..3000, any::<u32>(), 1u64..5000).prop_map(|(n, salt, distinct)| {
        let mut state = u64::from(salt);
        (0..n)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as f64 % distinct as f64 - 100.0
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever was updated and merged here, the oracle reads, agrees, and writes the same bytes.
    #[test]
    fn oracle_reads_our_images(
        k in 8u16..500, other_k in 8u16..500, seed: u64, left in values(), right in values(),
    ) {
        let mut sketch = sketch_of(k, seed, &left);
        sketch.merge(&sketch_of(other_k, !seed, &right)).expect("small counts");
        sketch.update_slice(&right);
        let bytes = sketch.to_bytes();
        let oracle = Doubles::deserialize(&bytes).expect("readable by the oracle");
        assert_agree(&sketch, &oracle);
        prop_assert_eq!(oracle.min_k(), if sketch.n() > 1 { sketch.min_k() } else { k });
        prop_assert_eq!(oracle.serialize(), bytes);
    }

    /// Whatever the oracle has updated and merged is read here and agrees, and level sizes are
    /// those of an own sketch with the same history.
    #[test]
    fn we_read_images_of_the_oracle(
        k in 8u16..500, other_k in 8u16..500, left in values(), right in values(),
    ) {
        let mut oracle = oracle_of(k, &left);
        oracle.merge(&oracle_of(other_k, &right)).expect("mergeable");
        let bytes = oracle.serialize();
        let sketch = KllSketch::from_bytes(&bytes, 1).expect("readable here");
        assert_agree(&sketch, &oracle);
        prop_assert_eq!(sketch.to_bytes(), bytes);
        let mut own = sketch_of(k, 3, &left);
        own.merge(&sketch_of(other_k, 4, &right)).expect("small counts");
        prop_assert_eq!(own.num_retained(), oracle.num_retained());
        prop_assert_eq!(own.num_levels(), sketch.num_levels());
    }

    /// A sketch that was read goes on like any other: updated and merged, the oracle reads it.
    #[test]
    fn images_of_the_oracle_go_on_here(k in 8u16..300, left in values(), right in values()) {
        let bytes = oracle_of(k, &left).serialize();
        let mut sketch = KllSketch::from_bytes(&bytes, 1).expect("readable here");
        sketch.update_slice(&right);
        sketch.merge(&KllSketch::from_bytes(&bytes, 2).expect("again")).expect("small counts");
        prop_assert_eq!(sketch.n() as usize, 2 * left.len() + right.len());
        let oracle = Doubles::deserialize(&sketch.to_bytes()).expect("readable by the oracle");
        assert_agree(&sketch, &oracle);
    }

    /// No change of a few bytes makes the reader panic or hold much memory; what it accepts obeys
    /// the rules, so that it can be used and written again.
    #[test]
    fn changed_images_are_refused_or_valid(
        k in 8u16..100,
        values in values(),
        changes in prop::collection::vec((0usize..120, any::<u8>()), 1..5),
        float: bool,
    ) {
        let mut bytes = sketch_of(k, 7, &values).to_bytes();
        for (place, byte) in changes {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        let read = if float { KllSketch::from_float_bytes } else { KllSketch::from_bytes };
        if let Ok(mut sketch) = read(&bytes, 1) {
            prop_assert!(sketch.retained_bytes() <= 1024 + 4 * bytes.len());
            let again = KllSketch::from_bytes(&sketch.to_bytes(), 1).expect("own bytes");
            prop_assert_eq!(again.n(), sketch.n());
            sketch.update_slice(&values);
            let view = sketch.sorted_view();
            prop_assert_eq!(view.cumulative_weights().last().copied().unwrap_or(0), sketch.n());
        }
    }

    /// Arbitrary bytes behind a plausible beginning.
    #[test]
    fn arbitrary_bytes_are_no_danger(
        begin in prop::sample::select(vec![
            vec![], vec![5u8, 1, 15, 0], vec![2, 1, 15, 1], vec![2, 2, 15, 4], vec![5, 1, 15, 2, 8, 0, 8, 0],
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let bytes = [begin, rest].concat();
        for read in [KllSketch::from_float_bytes, KllSketch::from_bytes] {
            if let Ok(sketch) = read(&bytes, 1) {
                prop_assert!(sketch.retained_bytes() <= 1024 + 4 * bytes.len());
            }
        }
    }
}
