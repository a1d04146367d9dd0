use proptest::prelude::*;

use super::*;

fn create(method: Method) -> QuantileAccumulator {
    AccumulatorConfig::new(method, 1).expect("valid method").create(2, 3)
}

/// At the bound the sketch has all values that were there, and takes those that come.
#[test]
fn exact_switches_to_a_sketch_at_its_bound() {
    let mut accumulator = create(Method::Exact { max_values: 10, when_full: WhenFull::SwitchToKll { k: 200 } });
    accumulator.observe_slice(&[1.0, 2.0, f64::NAN, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    accumulator.observe(9.0);
    accumulator.observe(10.0);
    assert!(accumulator.exact().is_some());
    assert_eq!(accumulator.observe_slice(&[11.0, 12.0]).used, 2);
    let sketch = accumulator.sketch().expect("switched");
    assert_eq!((sketch.n(), sketch.nan_count()), (12, 1));
    assert_eq!(accumulator.sum(), Some(78.0));
    assert_eq!(accumulator.quantiles(&[0.5]), Ok(vec![6.0]));
    assert_eq!((accumulator.min(), accumulator.max()), (Some(1.0), Some(12.0)));
}

/// Weights survive the switch, and count once towards the bound.
#[test]
fn weights_survive_the_switch() {
    let mut accumulator = create(Method::Exact { max_values: 2, when_full: WhenFull::SwitchToKll { k: 200 } });
    for (value, weight) in [(1.0, 100), (2.0, 7)] {
        assert_eq!(accumulator.observe_weighted(value, weight).map(|absorbed| absorbed.used), Ok(weight));
    }
    assert!(accumulator.exact().is_some());
    assert_eq!(accumulator.observe_weighted(3.0, 50).map(|absorbed| absorbed.used), Ok(50));
    assert_eq!(accumulator.observe_weighted(f64::NAN, 2).map(|absorbed| absorbed.not_a_number), Ok(2));
    assert_eq!(accumulator.observe_weighted(3.0, 0), Err(KllError::Weight));
    assert_eq!((accumulator.count(), accumulator.sum()), (157, Some(264.0)));
    assert_eq!(accumulator.quantiles(&[0.5, 0.65, 0.7]), Ok(vec![1.0, 2.0, 3.0]));
}

/// NaN takes no room: a slice whose numbers fit does not cause the switch.
#[test]
fn nan_does_not_cause_the_switch() {
    let mut accumulator = create(Method::Exact { max_values: 2, when_full: WhenFull::SwitchToKll { k: 200 } });
    accumulator.observe_slice(&[1.0, f64::NAN, 2.0]);
    assert!(accumulator.exact().is_some());
}

/// Without a sketch to go on with, the bound refuses and says how many.
#[test]
fn exact_refuses_beyond_its_bound() {
    let mut accumulator = create(Method::Exact { max_values: 2, when_full: WhenFull::Refuse });
    let absorbed = accumulator.observe_slice(&[1.0, 2.0, 3.0]);
    assert_eq!((absorbed.used, absorbed.full), (2, 1));
    assert!(accumulator.is_exact());
    assert_eq!(accumulator.count(), 2);
}

/// A sketch is exact up to k values.
#[test]
fn sketch_is_exact_up_to_k() {
    let mut accumulator = create(Method::Kll { k: 8 });
    accumulator.observe_slice(&[1.0; 8]);
    assert!(accumulator.is_exact());
    accumulator.observe(1.0);
    assert!(!accumulator.is_exact());
    assert_eq!(accumulator.count(), 9);
}

/// A k that no sketch can have is refused when configured, in either place.
#[test]
fn bad_k_is_refused() {
    let switch = Method::Exact { max_values: 1, when_full: WhenFull::SwitchToKll { k: 7 } };
    for method in [Method::Kll { k: 7 }, switch] {
        assert_eq!(AccumulatorConfig::new(method, 0), Err(KllError::K { k: 7 }));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whether values are few or many makes no difference, however they come: bytes, sum, extremes and quantiles are those
    /// of a sketch or of exact values that took them one by one.
    #[test]
    fn few_values_are_as_many(
        slices in prop::collection::vec(prop::collection::vec(prop::option::weighted(0.95, -50i32..50), 0..5), 0..8),
        max_values in 1u64..12,
    ) {
        let value = |value: &Option<i32>| value.map_or(f64::NAN, |value| f64::from(value) / 7.0);
        let slices: Vec<Vec<f64>> = slices.iter().map(|slice| slice.iter().map(value).collect()).collect();
        let mut of_kll = create(Method::Kll { k: 8 });
        let mut sketch = KllSketch::new(8, seed::derive(1, 2, 3)).expect("valid k");
        let mut of_exact = create(Method::Exact { max_values, when_full: WhenFull::Refuse });
        let mut exact = ExactQuantiles::new(max_values);
        for values in &slices {
            prop_assert_eq!(of_kll.observe_slice(values), Accumulator::observe_slice(&mut sketch, values));
            prop_assert_eq!(of_exact.observe_slice(values), exact.observe_slice(values));
            prop_assert_eq!(of_exact.room(), exact.room());
            prop_assert_eq!(of_exact.num_exact(), Some(exact.num_kept()));
        }
        let ranks = [0.0, 0.3, 0.9, 1.0];
        let all = |of: &dyn Accumulator| (of.count(), of.sum(), of.min(), of.max(), of.quantiles(&ranks), of.is_exact());
        prop_assert_eq!(all(&of_kll), all(&sketch));
        prop_assert_eq!(all(&of_exact), all(&exact));
        let image = of_kll.sketch().expect("a sketch");
        prop_assert_eq!((image.to_bytes(), image.nan_count()), (sketch.to_bytes(), sketch.nan_count()));
        prop_assert!(of_kll.exact().is_none() && of_exact.sketch().is_none());
        let kept = of_exact.exact().expect("exact values");
        prop_assert!(kept.chunks().flatten().eq(exact.chunks().flatten()));
    }
}

/// Five values take little more than their forty bytes.
#[test]
fn few_values_take_little() {
    for method in [Method::Kll { k: 400 }, Method::Exact { max_values: 1_000, when_full: WhenFull::Refuse }] {
        let mut accumulator = create(method);
        (0..5).for_each(|value| assert_eq!(accumulator.observe(f64::from(value)).used, 1));
        assert!(accumulator.retained_bytes() <= 144, "{}", accumulator.retained_bytes());
    }
}
