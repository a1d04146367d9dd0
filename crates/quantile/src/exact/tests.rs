use super::*;
use proptest::prelude::*;

fn naive(values: &[f64], ranks: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    ranks
        .iter()
        .map(|&q| {
            let number = rank::number_of(q, sorted.len() as u64, Criterion::Inclusive);
            sorted[number.expect("valid rank") as usize - 1]
        })
        .collect()
}

/// Nearest ranks of ten values, written out.
#[test]
fn ten_values_by_hand() {
    let mut exact = ExactQuantiles::new(100);
    exact.observe_slice(&[7.0, 1.0, 10.0, 4.0, 3.0, 9.0, 2.0, 8.0, 6.0, 5.0]);
    let ranks = [1.0, 0.0, 0.1, 0.11, 0.5, 0.51, 0.9, 0.99, 0.5];
    assert_eq!(exact.quantiles(&ranks), Ok(vec![10.0, 1.0, 1.0, 2.0, 5.0, 6.0, 9.0, 10.0, 5.0]));
    assert_eq!(exact.sum(), 55.0);
}

/// The bound is exact, and what does not fit is reported, NaN apart.
#[test]
fn bound_is_kept_and_reported() {
    let mut exact = ExactQuantiles::new(3);
    let absorbed = exact.observe_slice(&[1.0, f64::NAN, 2.0, 3.0, 4.0, f64::NAN, 5.0]);
    assert_eq!(absorbed, Absorbed { used: 3, not_a_number: 2, full: 2 });
    assert_eq!((exact.n(), exact.max(), exact.nan_count()), (3, Some(3.0), 2));
    assert_eq!(exact.observe(0.0).full, 1);
    assert_eq!(exact.min(), Some(1.0));
}

/// No values, no quantiles; bad ranks are refused.
#[test]
fn empty_and_bad_ranks() {
    let mut exact = ExactQuantiles::new(3);
    assert_eq!(exact.quantiles(&[0.5]), Err(QuantileError::Empty));
    assert_eq!((exact.min(), exact.max(), exact.n()), (None, None, 0));
    exact.observe(1.0);
    assert!(exact.quantiles(&[0.5, 1.5]).is_err());
    assert_eq!(exact.quantiles(&[]), Ok(vec![]));
    assert_eq!(exact.quantiles(&[0.0, 0.5, 1.0]), Ok(vec![1.0; 3]));
}

/// A weight counts once towards the bound; zero and what cannot be counted are refused.
#[test]
fn weights_and_the_bound() {
    let mut exact = ExactQuantiles::new(2);
    assert_eq!(exact.observe_weighted(1.0, 0), Err(KllError::Weight));
    assert_eq!(exact.observe_weighted(1.0, 1 << 60).map(|absorbed| absorbed.used), Ok(1 << 60));
    let refused = KllError::Count { have: 1 << 60, more: 1 << 60 };
    assert_eq!(exact.observe_weighted(2.0, 1 << 60), Err(refused));
    assert_eq!((exact.n(), exact.max(), exact.num_kept()), (1 << 60, Some(1.0), 1));
    assert_eq!(exact.observe_weighted(f64::NAN, 3).map(|absorbed| absorbed.not_a_number), Ok(3));
    assert_eq!(exact.observe_slice(&[2.0, 3.0]).full, 1);
    assert_eq!(exact.observe_weighted(4.0, 5).map(|absorbed| absorbed.full), Ok(5));
    assert_eq!(exact.quantiles(&[0.5, 1.0]), Ok(vec![1.0, 2.0]));
}

/// Chunks do not show: many values, several chunks, infinities at the ends.
#[test]
fn several_chunks() {
    let values: Vec<f64> =
        (0..2 * CHUNK + 100).map(|i| ((i * 7919) % 10_007) as f64).chain([f64::INFINITY, f64::NEG_INFINITY]).collect();
    let mut exact = ExactQuantiles::new(u64::MAX);
    for piece in values.chunks(1000) {
        exact.observe_slice(piece);
    }
    let ranks = [0.0, 0.001, 0.25, 0.5, 0.999, 1.0];
    assert_eq!(exact.quantiles(&ranks), Ok(naive(&values, &ranks)));
    assert!(exact.retained_bytes() >= 8 * values.len());
    assert!(exact.retained_bytes() < 8 * (values.len() + CHUNK) + 4096);
}

/// A short series is small.
#[test]
fn short_series_reserve_little() {
    let mut exact = ExactQuantiles::new(u64::MAX);
    exact.observe_slice(&[1.0; 5]);
    assert!(exact.retained_bytes() < 400, "{}", exact.retained_bytes());
}

proptest! {
    /// Weights are repeated values: count, extremes, sum and every rank are the same.
    #[test]
    fn weights_are_repeated_values(
        items in prop::collection::vec((-9i32..9, 1u64..6), 1..60),
        ranks in prop::collection::vec(0.0f64..=1.0, 0..12),
        cut: u8,
    ) {
        let (left, right) = items.split_at(usize::from(cut).min(items.len()));
        let [mut weighted, mut other] = [(); 2].map(|()| ExactQuantiles::new(1000));
        for (items, into) in [(left, &mut weighted), (right, &mut other)] {
            for &(value, weight) in items {
                into.observe_weighted(f64::from(value), weight).expect("small counts");
            }
        }
        weighted.merge(&other);
        let repeated: Vec<f64> = items
            .iter()
            .flat_map(|&(value, weight)| std::iter::repeat_n(f64::from(value), weight as usize))
            .collect();
        prop_assert_eq!(weighted.n() as usize, repeated.len());
        prop_assert_eq!(weighted.num_kept() as usize, items.len());
        prop_assert_eq!(weighted.sum(), repeated.iter().sum::<f64>());
        prop_assert_eq!(weighted.quantiles(&ranks), Ok(naive(&repeated, &ranks)));
        let run = crate::SortedRun::from_exact(&weighted);
        prop_assert_eq!(crate::run::quantiles(&[run], &ranks), Ok(naive(&repeated, &ranks)));
    }

    /// Selection is indexing into the sorted values, for few and many ranks, and after a merge.
    #[test]
    fn selection_is_sorting(
        values in prop::collection::vec(-50i32..50, 1..200),
        ranks in prop::collection::vec(0.0f64..=1.0, 0..14),
        cut: u8,
    ) {
        let values: Vec<f64> = values.into_iter().map(|value| f64::from(value) * 0.1).collect();
        let (left, right) = values.split_at(usize::from(cut).min(values.len()));
        let mut exact = ExactQuantiles::new(1000);
        exact.observe_slice(left);
        let mut other = ExactQuantiles::new(1000);
        other.observe_slice(right);
        prop_assert_eq!(exact.merge(&other).used, right.len() as u64);
        prop_assert_eq!(exact.quantiles(&ranks), Ok(naive(&values, &ranks)));
    }
}
