use proptest::prelude::*;

use super::*;
use crate::accumulator::{AccumulatorConfig, AccumulatorFactory, Method, WhenFull};

fn filled(method: Method, values: &[f64]) -> QuantileAccumulator {
    let mut accumulator = AccumulatorConfig::new(method, 1).expect("valid").create(0, 0);
    accumulator.observe_slice(values);
    accumulator
}

const EXACT: Method = Method::Exact { max_values: 1_000_000, when_full: WhenFull::Refuse };

/// The bucket of a value by the definition, in the logarithm: good to within rounding.
fn holds(scale: i32, index: i32, value: f64) -> bool {
    let position = value.abs().max(f64::MIN_POSITIVE).log2() * f64::from(scale).exp2();
    let index = f64::from(index);
    position > index - 1e-6 && position <= index + 1.0 + 1e-6
}

/// Powers of two lie at the upper end of their bucket; zero and both signs have their places.
#[test]
fn buckets_are_those_of_the_data_model() {
    let histogram = ExponentialHistogram::of(&filled(EXACT, &[1.0, 2.0, 4.0, 4.0, -8.0, 0.0, -0.0, 3.0]), 4);
    assert_eq!(histogram.scale, 0);
    assert_eq!(histogram.positive, Buckets { offset: -1, counts: vec![1, 1, 3] });
    assert_eq!(histogram.negative, Buckets { offset: 2, counts: vec![1] });
    assert_eq!((histogram.count, histogram.zero_count, histogram.sum), (8, 2, Some(6.0)));
    assert_eq!((histogram.min, histogram.max), (Some(-8.0), Some(4.0)));
}

/// One value has one bucket at the finest scale; no values have none.
#[test]
fn few_values_have_the_finest_scale() {
    let one = ExponentialHistogram::of(&filled(EXACT, &[3.5]), 160);
    assert_eq!((one.scale, one.positive.counts.as_slice(), one.negative.counts.len()), (8, &[1][..], 0));
    let none = ExponentialHistogram::of(&filled(EXACT, &[]), 160);
    assert_eq!((none.count, none.sum, none.min, none.positive.counts.len()), (0, None, None, 0));
    let zeros = ExponentialHistogram::of(&filled(EXACT, &[0.0; 3]), 160);
    assert_eq!((zeros.count, zeros.zero_count, zeros.sum), (3, 3, Some(0.0)));
}

/// The largest and smallest numbers of either sign together still fit two buckets; infinity has none.
#[test]
fn extremes_fit_the_fewest_buckets() {
    let values = [f64::MAX, -f64::MAX, f64::MIN_POSITIVE, 5e-324, -5e-324, 1.0, f64::INFINITY];
    let histogram = ExponentialHistogram::of(&filled(EXACT, &values), MIN_BUCKETS);
    assert_eq!(histogram.scale, -10);
    assert_eq!(histogram.positive, Buckets { offset: -1, counts: vec![3, 1] });
    assert_eq!(histogram.negative, Buckets { offset: -1, counts: vec![1, 1] });
    assert_eq!(histogram.count, 6);
}

/// Weighted values count as often as they weigh, from exact values and from a sketch.
#[test]
fn weights_are_counted() {
    for method in [EXACT, Method::Kll { k: 200 }] {
        let mut values = filled(method, &[1.0]);
        assert_eq!(values.observe_weighted(8.0, 1_000).map(|absorbed| absorbed.used), Ok(1_000));
        let histogram = ExponentialHistogram::of(&values, 8);
        assert_eq!((histogram.count, histogram.sum), (1_001, Some(8_001.0)));
        assert_eq!(histogram.positive.counts.last(), Some(&1_000));
    }
}

/// A sketch beyond its exact range: counts add up to all observations, and the count up to any bucket is
/// within the rank error of the true one.
#[test]
fn a_sketch_gives_counts_within_its_rank_error() {
    let values: Vec<f64> = (1..=50_000).map(|at| f64::from(at) * 0.01).collect();
    let exact = ExponentialHistogram::of(&filled(EXACT, &values), 160);
    let kll = ExponentialHistogram::of(&filled(Method::Kll { k: 400 }, &values), 160);
    assert_eq!((kll.count, kll.min, kll.max), (50_000, Some(0.01), Some(500.0)));
    // The smallest values may not be among the items, so the scales may differ: compare by the bounds of the sketch.
    let below = |histogram: &ExponentialHistogram, bound: f64| -> u64 {
        let base = f64::from(-histogram.scale).exp2();
        let ends = (histogram.positive.offset..).map(|index| (f64::from(index + 1) * base).exp2());
        ends.zip(&histogram.positive.counts).filter(|(end, _)| *end <= bound * 1.000_001).map(|(_, count)| count).sum()
    };
    for power in 0..8 {
        let bound = f64::from(power).exp2();
        let (exact, kll) = (below(&exact, bound), below(&kll, bound));
        assert!(exact.abs_diff(kll) <= 50_000 * 13 / 1_000, "up to {bound}: {exact} and {kll}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// For any values and bound: counts add up, each value is in its bucket, the bound holds, and one scale finer
    /// it would not.
    #[test]
    fn every_value_is_in_its_bucket(
        values in prop::collection::vec(prop_oneof![
            3 => -1e6f64..1e6,
            1 => any::<f64>().prop_filter("a number", |value| value.is_finite()),
            1 => Just(0.0),
        ], 0..60),
        max_buckets in 2usize..200,
    ) {
        let histogram = ExponentialHistogram::of(&filled(EXACT, &values), max_buckets);
        let ExponentialHistogram { positive, negative, scale, .. } = &histogram;
        let buckets: u64 = positive.counts.iter().chain(&negative.counts).sum();
        prop_assert_eq!(buckets + histogram.zero_count, values.len() as u64);
        prop_assert_eq!(histogram.count, values.len() as u64);
        for (side, sign) in [(positive, 1.0), (negative, -1.0)] {
            prop_assert!(side.counts.len() <= max_buckets);
            prop_assert!(side.counts.first() != Some(&0) && side.counts.last() != Some(&0));
            let mut of_side: Vec<f64> = values.iter().map(|value| value * sign).filter(|value| *value > 0.0).collect();
            of_side.sort_by(f64::total_cmp);
            let mut sorted = of_side.iter();
            for (index, count) in (side.offset..).zip(&side.counts) {
                for _ in 0..*count {
                    let value = *sorted.next().expect("as many as counted");
                    prop_assert!(holds(*scale, index, value), "{value} in bucket {index} of scale {scale}");
                }
            }
        }
        if *scale < 8 {
            let spread = |side: &Buckets| side.counts.len() * 2 > max_buckets;
            prop_assert!(spread(positive) || spread(negative), "a finer scale would have fitted");
        }
    }
}
