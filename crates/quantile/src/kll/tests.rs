use proptest::prelude::*;

use super::*;

const CRITERION: Criterion = Criterion::Inclusive;

fn sketch(k: u16, seed: u64) -> KllSketch {
    KllSketch::new(k, seed).expect("valid k")
}

/// Checks what must hold after every operation.
pub(super) fn assert_sound(sketch: &KllSketch) {
    let mut weights = 0u128;
    for height in 0..sketch.num_levels() {
        let level = sketch.level(height);
        weights += (level.len() as u128) << height;
        assert!(height == 0 || level.is_sorted(), "level {height}");
    }
    assert_eq!(weights, u128::from(sketch.n()), "sum of weights");
    assert!(sketch.num_retained() <= sketch.capacity);
    assert!(sketch.items.capacity() <= sketch.capacity.max(SMALLEST_ALLOCATION));
    assert_eq!(sketch.capacity, compact::total_capacity(sketch.k, sketch.num_levels()));
    assert_eq!(sketch.starts().last().copied().unwrap_or(0), 0);
}

/// Values that sort into no order of arrival.
fn scrambled(n: u64) -> Vec<f64> {
    (0..n).map(|i| (i * 7_919 % 10_007) as f64).collect()
}

/// A new sketch has nothing to say, and says so.
#[test]
fn empty_sketch() {
    let sketch = sketch(200, 1);
    assert!(sketch.is_empty() && !sketch.is_estimation_mode());
    assert_eq!((sketch.min(), sketch.max(), sketch.sum()), (None, None, Some(0.0)));
    assert_eq!(sketch.quantile(0.5, CRITERION), Err(QuantileError::Empty));
    assert_eq!(sketch.rank(1.0, CRITERION), None);
    assert_eq!(sketch.quantiles(&[], CRITERION), Ok(vec![]));
    assert_sound(&sketch);
}

/// k below 8 is refused and named.
#[test]
fn small_k_is_refused() {
    let error = KllSketch::new(7, 1).expect_err("7 is too small");
    assert_eq!(error, KllError::K { k: 7 });
    assert_eq!(error.to_string(), "k must be between 8 and 65535, got 7");
    assert!(KllSketch::new(u16::MAX, 1).is_ok());
}

/// NaN is counted apart, one by one and in bulk; infinities are extremes.
#[test]
fn nan_is_dropped_and_infinities_are_kept() {
    let values = [1.0, f64::NAN, f64::INFINITY, -f64::NAN, f64::NEG_INFINITY, 2.0];
    let mut single = sketch(200, 1);
    values.iter().for_each(|&value| single.update(value));
    let mut bulk = sketch(200, 1);
    bulk.update_slice(&values);
    for sketch in [single, bulk] {
        assert_eq!((sketch.n(), sketch.nan_count()), (4, 2));
        assert_eq!(sketch.min(), Some(f64::NEG_INFINITY));
        assert_eq!(sketch.max(), Some(f64::INFINITY));
        assert_eq!(sketch.quantile(0.5, CRITERION), Ok(1.0));
        assert_eq!(sketch.quantile(0.75, CRITERION), Ok(2.0));
        assert_sound(&sketch);
    }
}

/// The same seed gives the same bytes, another seed another choice of items.
#[test]
fn bytes_follow_the_seed() {
    let bytes = |seed| {
        let mut sketch = sketch(200, seed);
        sketch.update_slice(&scrambled(5000));
        sketch.to_bytes()
    };
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2));
}

/// The first compaction happens with value k + 1, not before.
#[test]
fn nothing_is_lost_up_to_k() {
    let mut sketch = sketch(200, 1);
    sketch.update_slice(&scrambled(200));
    assert_eq!((sketch.num_retained(), sketch.num_levels()), (200, 1));
    sketch.update(1.0);
    assert_eq!((sketch.num_retained(), sketch.num_levels()), (101, 2));
    assert_sound(&sketch);
}

/// Both zeros are equal in ranks, and each keeps its sign.
#[test]
fn zeros_are_equal_in_ranks() {
    let mut sketch = sketch(200, 1);
    sketch.update_slice(&[0.0, -0.0, 1.0, 0.0]);
    assert_eq!(sketch.rank(-0.0, Criterion::Inclusive), Some(0.75));
    assert_eq!(sketch.rank(0.0, Criterion::Exclusive), Some(0.0));
    assert!(sketch.min().is_some_and(f64::is_sign_negative));
    let copy = KllSketch::from_bytes(&sketch.to_bytes(), 1).expect("own bytes");
    assert_eq!(copy.to_bytes(), sketch.to_bytes());
}

/// An image of another writer may have the zeros of a sorted level in either order; it can be
/// merged and updated all the same.
#[test]
fn zeros_of_other_writers_are_no_disorder() {
    let mut own = sketch(8, 1);
    own.update_slice(&[0.0; 9]);
    let mut image = own.to_bytes();
    // Minimum and the first item of level 1, which has four zeros at the end of the image.
    let length = image.len();
    let minimum = 20 + 4 * own.num_levels();
    for negative in [minimum, length - 16] {
        image[negative..negative + 8].copy_from_slice(&(-0.0f64).to_le_bytes());
    }
    let mut read = KllSketch::from_bytes(&image, 1).expect("zeros are equal");
    assert_eq!(read.to_bytes(), image);
    for _ in 0..5 {
        read.merge(&read.clone()).expect("small counts");
        read.update_slice(&[-1.0, 0.0, 1.0]);
    }
    let view = read.sorted_view();
    assert!(view.values().is_sorted());
    assert_eq!(view.cumulative_weights().last(), Some(&read.n()));
}

/// The sum is unknown after an image, until the carrier gives it; merging keeps it unknown.
#[test]
fn sum_of_images_comes_from_the_carrier() {
    let mut own = sketch(200, 1);
    own.update_slice(&[1.0, 2.5]);
    let mut read = KllSketch::from_bytes(&own.to_bytes(), 1).expect("own bytes");
    assert_eq!(read.sum(), None);
    let mut total = own.clone();
    total.merge(&read).expect("small counts");
    assert_eq!(total.sum(), None);
    read.set_sum(3.5);
    own.merge(&read).expect("small counts");
    own.update(1.0);
    assert_eq!(own.sum(), Some(8.0));
    let empty = KllSketch::from_bytes(&sketch(8, 1).to_bytes(), 1).expect("own bytes");
    assert_eq!(empty.sum(), Some(0.0));
}

/// Floats are read as what they are, and written rounded.
#[test]
fn float_images_round_to_floats() {
    let mut sketch = sketch(200, 1);
    sketch.update_slice(&[0.1, 1e300, -2.0]);
    let floats = KllSketch::from_float_bytes(&sketch.to_float_bytes(), 1).expect("own bytes");
    assert_eq!(floats.quantile(0.5, CRITERION), Ok(f64::from(0.1f32)));
    assert_eq!(floats.max(), Some(f64::INFINITY));
    assert_eq!(sketch.to_float_bytes().len(), 20 + 4 + 5 * 4);
}

/// A weight is so many observations, in little time.
#[test]
fn weights_are_repeated_observations() {
    let mut weighted = sketch(200, 1);
    let mut n = 0;
    for (value, weight) in [(1.0, 1), (2.0, 3), (3.0, 1000), (4.0, 1 << 40), (5.0, 1 << 40), (6.0, 7)] {
        weighted.update_weighted(value, weight).expect("small counts");
        n += weight;
        assert_eq!(weighted.n(), n);
        assert_sound(&weighted);
    }
    assert_eq!(weighted.quantile(0.5, CRITERION), Ok(4.0));
    assert_eq!(weighted.rank(3.0, CRITERION), Some(1004.0 / n as f64));
    let copy = KllSketch::from_bytes(&weighted.to_bytes(), 1).expect("own bytes");
    assert_eq!(copy.to_bytes(), weighted.to_bytes());
    weighted.update_weighted(f64::NAN, 5).expect("dropped");
    assert_eq!((weighted.n(), weighted.nan_count()), (n, 5));
    assert_eq!(weighted.update_weighted(1.0, 0), Err(KllError::Weight));
}

/// Many weights keep the sketch within its capacity and its error.
#[test]
fn weighted_sketch_keeps_its_error() {
    let mut weighted = sketch(200, 3);
    let mut total = 0;
    for i in 0..3000u64 {
        let weight = 1 + i * 37 % 100;
        weighted.update_weighted((i * 7919 % 3000) as f64, weight).expect("small counts");
        total += weight;
        if i % 100 == 0 {
            assert_sound(&weighted);
        }
    }
    assert_eq!(weighted.n(), total);
    let median = weighted.quantile(0.5, CRITERION).expect("not empty");
    assert!((median / 3000.0 - 0.5).abs() < 0.02, "{median}");
}

/// Counts that images could not hold are refused, and nothing is changed by the attempt.
#[test]
fn count_is_bounded() {
    let mut half = sketch(8, 1);
    half.update_weighted(1.0, MAX_N / 2 + 1).expect("half");
    assert_eq!(half.num_levels(), MAX_LEVELS);
    let before = half.to_bytes();
    let other = half.clone();
    let refused = KllError::Count { have: half.n(), more: half.n() };
    assert_eq!(half.merge(&other), Err(refused));
    assert_eq!(half.update_weighted(1.0, half.n()), Err(refused));
    assert!(half.update_weighted_slice(&[1.0, 2.0], &[1, half.n()]).is_err());
    assert_eq!(half.update_weighted_slice(&[1.0, 2.0], &[1, 0]), Err(KllError::Weight));
    assert_eq!(half.to_bytes(), before);
    half.update_slice(&[2.0; 1000]);
    assert_eq!(half.num_levels(), MAX_LEVELS);
    assert_sound(&half);
    assert!(KllSketch::from_bytes(&half.to_bytes(), 1).is_ok());
}

/// Merging with nothing changes nothing, in either direction.
#[test]
fn empty_is_neutral_in_merges() {
    let mut filled = sketch(200, 1);
    filled.update_slice(&scrambled(3000));
    let bytes = filled.to_bytes();
    filled.merge(&sketch(8, 2)).expect("small counts");
    assert_eq!(filled.to_bytes(), bytes);
    let mut empty = sketch(200, 2);
    empty.merge(&filled).expect("small counts");
    assert_eq!(empty.n(), filled.n());
    assert_eq!(empty.quantile(0.5, CRITERION), filled.quantile(0.5, CRITERION));
}

/// The smaller k rules the error, but only if it has cost items.
#[test]
fn smallest_k_counts_once_items_are_lost() {
    let mut large = sketch(400, 1);
    let mut small = sketch(100, 2);
    small.update_slice(&scrambled(100));
    large.merge(&small).expect("small counts");
    assert_eq!(large.min_k(), 400);
    small.update(1.0);
    large.merge(&small).expect("small counts");
    assert_eq!((large.k(), large.min_k()), (400, 100));
    assert_eq!(large.normalized_rank_error(false), small.normalized_rank_error(false));
    assert!(large.normalized_rank_error(true) > large.normalized_rank_error(false));
}

/// Memory is the size of the image, not more, and small for a small series.
#[test]
fn memory_is_bounded() {
    let mut tiny = sketch(200, 1);
    tiny.update_slice(&[1.0; 5]);
    assert!(tiny.retained_bytes() < 300, "{}", tiny.retained_bytes());
    let mut large = sketch(400, 1);
    for piece in scrambled(100_000).chunks(999) {
        large.update_slice(piece);
    }
    assert!(large.retained_bytes() < 10_000, "{}", large.retained_bytes());
    large.merge(&large.clone()).expect("small counts");
    assert!(large.retained_bytes() < 10_000, "{}", large.retained_bytes());
}

/// A hundred thousand short series take what their values take.
#[test]
fn many_short_series_are_small() {
    let mut total = 0;
    for series in 0..100_000u64 {
        let mut sketch = sketch(200, series);
        sketch.update_slice(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        total += sketch.retained_bytes();
    }
    assert!(total < 30_000_000, "{total} bytes");
}

fn doubles(max: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((-200i32..200).prop_map(|value| f64::from(value) / 8.0), 0..max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Bulk and single updates give the same bytes and the same sums, however the bulk is cut.
    #[test]
    fn bulk_is_single(values in doubles(700), k in 8u16..60, seed: u64, piece in 1usize..300) {
        let mut single = sketch(k, seed);
        values.iter().for_each(|&value| single.update(value));
        let mut bulk = sketch(k, seed);
        values.chunks(piece).for_each(|piece| bulk.update_slice(piece));
        prop_assert_eq!(single.to_bytes(), bulk.to_bytes());
        prop_assert_eq!(single.sum(), bulk.sum());
        assert_sound(&bulk);
    }

    /// As long as nothing is compacted, weights are repeated values to the last rank; in bulk as
    /// one by one.
    #[test]
    fn weights_are_repeated_values(
        items in prop::collection::vec((-50i32..50, 1u64..700), 1..60),
        ranks in prop::collection::vec(0.0f64..=1.0, 1..9),
        seed: u64,
    ) {
        let (values, weights): (Vec<f64>, Vec<u64>) =
            items.iter().map(|&(value, weight)| (f64::from(value), weight)).unzip();
        let mut bulk = sketch(2000, seed);
        bulk.update_weighted_slice(&values, &weights).expect("small counts");
        let mut repeated: Vec<f64> = items
            .iter()
            .flat_map(|&(value, weight)| std::iter::repeat_n(f64::from(value), weight as usize))
            .collect();
        repeated.sort_by(f64::total_cmp);
        assert_sound(&bulk);
        prop_assert_eq!(bulk.n() as usize, repeated.len());
        prop_assert_eq!(bulk.sum(), Some(repeated.iter().sum::<f64>()));
        for &q in &ranks {
            let number = crate::rank::number_of(q, bulk.n(), CRITERION).expect("valid");
            prop_assert_eq!(bulk.quantile(q, CRITERION), Ok(repeated[number as usize - 1]));
        }
        let mut single = sketch(2000, seed);
        items.iter().for_each(|&(value, weight)| single.update_weighted(f64::from(value), weight).expect("small counts"));
        prop_assert_eq!(single.to_bytes(), bulk.to_bytes());
    }

    /// Any tree of merges keeps count, extremes, sum and the rules; the right side is unchanged.
    #[test]
    fn merges_keep_the_rules(parts in prop::collection::vec((doubles(300), 8u16..60), 1..8), seed: u64) {
        let mut whole = sketch(20, seed);
        let mut all = Vec::new();
        for (values, k) in &parts {
            let mut part = sketch(*k, seed ^ u64::from(*k));
            part.update_slice(values);
            let before = part.to_bytes();
            whole.merge(&part).expect("small counts");
            prop_assert_eq!(part.to_bytes(), before);
            all.extend_from_slice(values);
            assert_sound(&whole);
        }
        all.sort_by(f64::total_cmp);
        prop_assert_eq!(whole.n() as usize, all.len());
        prop_assert_eq!(whole.min(), all.first().copied());
        prop_assert_eq!(whole.max(), all.last().copied());
        prop_assert_eq!(whole.sum(), Some(all.iter().sum::<f64>()));
    }

    /// Up to k values the answers are those of the sorted values; quantiles ascend with the rank,
    /// from minimum to maximum.
    #[test]
    fn quantiles_ascend_and_are_exact_up_to_k(values in doubles(120), mut ranks in prop::collection::vec(0.0f64..=1.0, 1..9)) {
        prop_assume!(!values.is_empty());
        let mut small = sketch(120, 1);
        small.update_slice(&values);
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        for &q in &ranks {
            let number = crate::rank::number_of(q, sorted.len() as u64, CRITERION).expect("valid");
            prop_assert_eq!(small.quantile(q, CRITERION), Ok(sorted[number as usize - 1]));
        }
        let mut lossy = sketch(8, 1);
        values.iter().for_each(|&value| lossy.update_slice(&[value; 3]));
        ranks.sort_by(f64::total_cmp);
        for criterion in [Criterion::Inclusive, Criterion::Exclusive] {
            let found = lossy.quantiles(&ranks, criterion).expect("not empty");
            prop_assert!(found.is_sorted());
            prop_assert_eq!(lossy.quantile(0.0, criterion).ok(), lossy.min());
            prop_assert_eq!(lossy.quantile(1.0, criterion).ok(), lossy.max());
        }
    }
}
