//! Count, extremes and sum of a stream, exact beside the estimated quantiles.

use crate::kll::{KllError, MAX_N};

/// Number of independent chains in the bulk path: two SSE registers wide.
const LANES: usize = 4;

/// Below this length the lanes cost more than they save.
const SHORT: usize = 8;

/// A sum that carries its rounding errors along (two-sum of Knuth), so that it is good to about
/// one unit in the last place for any number of values of one sign.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CompensatedSum {
    sum: f64,
    error: f64,
}

impl CompensatedSum {
    /// Starts from a known sum.
    pub(crate) fn from_total(sum: f64) -> Self {
        Self { sum, error: 0.0 }
    }

    /// Adds one value.
    #[inline]
    pub(crate) fn add(&mut self, value: f64) {
        let total = self.sum + value;
        let part = total - self.sum;
        self.error += (self.sum - (total - part)) + (value - part);
        self.sum = total;
    }

    /// Adds another sum with its errors.
    pub(crate) fn merge(&mut self, other: Self) {
        self.add(other.sum);
        self.error += other.error;
    }

    /// The sum. Infinite or NaN if the plain sum is: then the errors mean nothing.
    pub(crate) fn total(self) -> f64 {
        if self.sum.is_finite() { self.sum + self.error } else { self.sum }
    }
}

/// Exact count, minimum, maximum and compensated sum of values that are not NaN.
///
/// The extremes follow the IEEE total order: `-0.0` is below `0.0`, so they do not depend on the
/// order of arrival.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Moments {
    pub(crate) count: u64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) sum: CompensatedSum,
}

impl Moments {
    /// Of no values.
    pub(crate) const fn new() -> Self {
        Self { count: 0, min: f64::INFINITY, max: f64::NEG_INFINITY, sum: CompensatedSum { sum: 0.0, error: 0.0 } }
    }

    /// Takes one value, which is not NaN.
    #[inline]
    pub(crate) fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum.add(value);
        self.widen(value, value);
    }

    /// Takes one value, which is not NaN, so many times.
    pub(crate) fn add_weighted(&mut self, value: f64, weight: u64) -> Result<(), KllError> {
        match self.count.checked_add(weight) {
            Some(count) if count <= MAX_N => self.count = count,
            _ => return Err(KllError::Count { have: self.count, more: weight }),
        }
        self.sum.add(value * weight as f64);
        self.widen(value, value);
        Ok(())
    }

    /// Takes values of which none is NaN, at a fraction of the cost of one by one.
    pub(crate) fn add_slice(&mut self, values: &[f64]) {
        if values.len() < SHORT {
            for &value in values {
                self.add(value);
            }
            return;
        }
        let mut min = [f64::INFINITY; LANES];
        let mut max = [f64::NEG_INFINITY; LANES];
        let mut sums = [CompensatedSum::default(); LANES];
        let (blocks, rest) = values.as_chunks::<LANES>();
        for block in blocks {
            for lane in 0..LANES {
                let value = block[lane];
                min[lane] = if value < min[lane] { value } else { min[lane] };
                max[lane] = if value > max[lane] { value } else { max[lane] };
                sums[lane].add(value);
            }
        }
        let mut least = min.into_iter().fold(f64::INFINITY, f64::min);
        let mut most = max.into_iter().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = CompensatedSum::default();
        for lane in sums {
            sum.merge(lane);
        }
        for &value in rest {
            least = least.min(value);
            most = most.max(value);
            sum.add(value);
        }
        // The comparisons above do not tell the zeros apart; only an extreme of zero needs it.
        if least == 0.0 {
            least = zero_with_sign(values, true);
        }
        if most == 0.0 {
            most = zero_with_sign(values, false);
        }
        self.count += values.len() as u64;
        self.sum.merge(sum);
        self.widen(least, most);
    }

    /// Takes what another has seen.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum.merge(other.sum);
        if other.count > 0 {
            self.widen(other.min, other.max);
        }
    }

    /// The smallest value, if any was seen.
    pub(crate) fn min(&self) -> Option<f64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest value, if any was seen.
    pub(crate) fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max)
    }

    #[inline]
    pub(crate) fn widen(&mut self, least: f64, most: f64) {
        if least.total_cmp(&self.min).is_lt() {
            self.min = least;
        }
        if most.total_cmp(&self.max).is_gt() {
            self.max = most;
        }
    }
}

/// The zero of the wished sign if there is one among the values, else the other.
fn zero_with_sign(values: &[f64], negative: bool) -> f64 {
    let present = values.iter().any(|value| *value == 0.0 && value.is_sign_negative() == negative);
    if present == negative { -0.0 } else { 0.0 }
}

/// Whether any value is NaN; one pass that the compiler vectorises.
pub(crate) fn any_nan(values: &[f64]) -> bool {
    values.iter().fold(false, |any, value| any | value.is_nan())
}

/// Calls `run` with each longest stretch without NaN and returns the number of NaN.
pub(crate) fn for_each_run_without_nan(values: &[f64], mut run: impl FnMut(&[f64])) -> u64 {
    if !any_nan(values) {
        run(values);
        return 0;
    }
    let mut numbers = 0;
    for stretch in values.split(|value| value.is_nan()) {
        numbers += stretch.len();
        run(stretch);
    }
    (values.len() - numbers) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Small values are not lost beside large ones, and what is infinite stays so.
    #[test]
    fn sum_keeps_what_rounding_loses() {
        let mut moments = Moments::new();
        moments.add_slice(&[1e16, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1e16]);
        assert_eq!(moments.sum.total(), 6.0);
        moments.add(f64::INFINITY);
        assert_eq!(moments.sum.total(), f64::INFINITY);
        moments.add_slice(&[f64::NEG_INFINITY; 3]);
        assert!(moments.sum.total().is_nan());
    }

    /// The extremes tell the zeros apart whatever came first.
    #[test]
    fn extremes_of_zeros_do_not_depend_on_the_order() {
        for values in [[0.0, -0.0, 0.0, 0.0, 0.0], [-0.0, 0.0, 0.0, 0.0, 0.0]] {
            let mut bulk = Moments::new();
            bulk.add_slice(&values);
            let mut single = Moments::new();
            values.iter().for_each(|&value| single.add(value));
            for moments in [bulk, single] {
                assert!(moments.min.is_sign_negative());
                assert!(moments.max.is_sign_positive());
            }
        }
        let mut negative = Moments::new();
        negative.add_slice(&[-0.0; 5]);
        assert!(negative.max.is_sign_negative());
    }

    /// Nothing seen means no extremes, also after an empty slice and an empty merge.
    #[test]
    fn empty_has_no_extremes() {
        let mut moments = Moments::new();
        moments.add_slice(&[]);
        moments.merge(&Moments::new());
        assert_eq!((moments.min(), moments.max()), (None, None));
        assert_eq!(moments, Moments::new());
    }

    proptest! {
        /// Bulk, single and merged give the same count and extremes.
        #[test]
        fn bulk_is_single_is_merged(values in prop::collection::vec(-10i32..10, 0..60), cut: u8) {
            let values: Vec<f64> = values.into_iter().map(|value| f64::from(value) / 4.0).collect();
            let (left, right) = values.split_at(usize::from(cut).min(values.len()));
            let mut single = Moments::new();
            values.iter().for_each(|&value| single.add(value));
            let mut bulk = Moments::new();
            bulk.add_slice(&values);
            let mut merged = Moments::new();
            merged.add_slice(left);
            let mut other = Moments::new();
            other.add_slice(right);
            merged.merge(&other);
            for moments in [bulk, merged] {
                prop_assert_eq!(moments.count, single.count);
                prop_assert_eq!((moments.min(), moments.max()), (single.min(), single.max()));
                prop_assert_eq!(moments.sum.total(), single.sum.total());
            }
        }

        /// Runs and the number of NaN add up to the input, in order.
        #[test]
        fn runs_leave_out_nan_only(values in prop::collection::vec(prop::option::of(0i32..9), 0..40)) {
            let doubles: Vec<f64> = values
                .iter()
                .map(|value| value.map_or(f64::NAN, f64::from))
                .collect();
            let mut kept = Vec::new();
            let nan = for_each_run_without_nan(&doubles, |run| kept.extend_from_slice(run));
            let expected: Vec<f64> = values.iter().flatten().map(|&value| f64::from(value)).collect();
            prop_assert_eq!(&kept, &expected);
            prop_assert_eq!(nan as usize + kept.len(), values.len());
        }
    }
}
