//! Exact quantiles: every value is kept until the end, then ranks are selected, not sorted.
//!
//! Selection of a few ranks takes a few nanoseconds for each value, a sort several times as much.
//! The price is memory, eight bytes for each value, so there is always a bound.
//!
//! Not for streams whose windows have no known bound: take [`crate::kll`].

use crate::accumulator::Absorbed;
use crate::key::{to_key, to_value};
use crate::moments::{Moments, for_each_run_without_nan};
use crate::rank::{self, Criterion, QuantileError};

/// Values of a full chunk: 64 KiB. A stream grows by whole chunks without copying.
const CHUNK: usize = 8192;

/// More ranks than this are answered by a sort.
const SELECTED_RANKS: usize = 8;

/// All values of a stream, up to a bound.
#[derive(Debug, Clone)]
pub struct ExactQuantiles {
    max_values: u64,
    moments: Moments,
    nan: u64,
    /// All but the last have `CHUNK` values; none is empty.
    chunks: Vec<Vec<f64>>,
}

impl ExactQuantiles {
    /// An empty collection for at most `max_values` values of eight bytes.
    #[must_use]
    pub fn new(max_values: u64) -> Self {
        Self { max_values, moments: Moments::new(), nan: 0, chunks: Vec::new() }
    }

    /// Takes one observation, see [`ExactQuantiles::observe_slice`].
    pub fn observe(&mut self, value: f64) -> Absorbed {
        self.observe_slice(&[value])
    }

    /// Takes observations in order. NaN is dropped and counted; what comes after the bound is
    /// reached is not taken and reported as `full`.
    pub fn observe_slice(&mut self, values: &[f64]) -> Absorbed {
        let mut absorbed = Absorbed::default();
        absorbed.not_a_number = for_each_run_without_nan(values, |run| {
            let room = usize::try_from(self.max_values - self.moments.count).unwrap_or(usize::MAX);
            let (taken, refused) = run.split_at(room.min(run.len()));
            self.moments.add_slice(taken);
            self.append(taken);
            absorbed.used += taken.len() as u64;
            absorbed.full += refused.len() as u64;
        });
        self.nan += absorbed.not_a_number;
        absorbed
    }

    /// Whether all numbers among the values would be taken.
    pub(crate) fn has_room_for(&self, values: &[f64]) -> bool {
        let room = self.max_values - self.moments.count;
        values.len() as u64 <= room || values.iter().filter(|value| !value.is_nan()).count() as u64 <= room
    }

    fn append(&mut self, mut values: &[f64]) {
        while !values.is_empty() {
            match self.chunks.last_mut() {
                Some(chunk) if chunk.len() < CHUNK => {
                    let (now, later) = values.split_at((CHUNK - chunk.len()).min(values.len()));
                    if chunk.len() + now.len() > CHUNK / 2 {
                        chunk.reserve_exact(CHUNK - chunk.len());
                    }
                    chunk.extend_from_slice(now);
                    values = later;
                }
                Some(_) => self.chunks.push(Vec::with_capacity(CHUNK)),
                // The first grows by doubling: most series of many are short.
                None => self.chunks.push(Vec::new()),
            }
        }
    }

    /// Takes all values of another collection, as far as the bound allows.
    pub fn merge(&mut self, other: &Self) -> Absorbed {
        let mut absorbed = Absorbed::default();
        for chunk in other.chunks() {
            absorbed += self.observe_slice(chunk);
        }
        self.nan += other.nan;
        absorbed
    }

    /// Number of values kept.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.moments.count
    }

    /// The bound.
    #[must_use]
    pub fn max_values(&self) -> u64 {
        self.max_values
    }

    /// The smallest value.
    #[must_use]
    pub fn min(&self) -> Option<f64> {
        self.moments.min()
    }

    /// The largest value.
    #[must_use]
    pub fn max(&self) -> Option<f64> {
        self.moments.max()
    }

    /// The sum, with compensated rounding.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.moments.sum.total()
    }

    /// Number of NaN that were offered and dropped.
    #[must_use]
    pub fn nan_count(&self) -> u64 {
        self.nan
    }

    /// The values in order of arrival, in pieces.
    pub fn chunks(&self) -> impl Iterator<Item = &[f64]> {
        self.chunks.iter().map(Vec::as_slice)
    }

    /// Bytes of memory of this collection, unused capacity included.
    #[must_use]
    pub fn retained_bytes(&self) -> usize {
        let values: usize = self.chunks.iter().map(Vec::capacity).sum();
        size_of::<Self>() + values * size_of::<f64>() + self.chunks.capacity() * size_of::<Vec<f64>>()
    }

    /// The exact quantiles of `ranks` by inclusive nearest rank, in the order given.
    ///
    /// Needs a copy of the values while it runs.
    ///
    /// # Errors
    ///
    /// [`QuantileError`] if there is no value or a rank is not in `0..=1`.
    pub fn quantiles(&self, ranks: &[f64]) -> Result<Vec<f64>, QuantileError> {
        let numbers = ranks
            .iter()
            .map(|&q| rank::number_of(q, self.n(), Criterion::Inclusive))
            .collect::<Result<Vec<u64>, _>>()?;
        // The ends are known without looking at the values.
        let mut inner: Vec<u64> = numbers.iter().copied().filter(|&number| number > 1 && number < self.n()).collect();
        inner.sort_unstable();
        inner.dedup();
        let found = self.select(&inner);
        let value_of = |number: u64| match inner.binary_search(&number) {
            Ok(index) => to_value(found[index]),
            Err(_) if number <= 1 => self.moments.min,
            Err(_) => self.moments.max,
        };
        Ok(numbers.into_iter().map(value_of).collect())
    }

    /// The keys with the given numbers (ascending, counted from one).
    fn select(&self, numbers: &[u64]) -> Vec<i64> {
        if numbers.is_empty() {
            return Vec::new();
        }
        let mut keys: Vec<i64> = Vec::with_capacity(self.chunks.iter().map(Vec::len).sum());
        for chunk in &self.chunks {
            keys.extend(chunk.iter().map(|&value| to_key(value)));
        }
        let indexes = numbers.iter().map(|&number| (number - 1) as usize);
        if numbers.len() > SELECTED_RANKS {
            keys.sort_unstable();
            return indexes.map(|index| keys[index]).collect();
        }
        // From the highest: what is left of a selected rank is all that lower ranks need.
        let mut left = keys.as_mut_slice();
        let mut found = Vec::with_capacity(numbers.len());
        for index in indexes.rev() {
            let (lower, &mut key, _) = left.select_nth_unstable(index);
            found.push(key);
            left = lower;
        }
        found.reverse();
        found
    }
}

#[cfg(test)]
mod tests {
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

    /// Chunks do not show: many values, several chunks, infinities at the ends.
    #[test]
    fn several_chunks() {
        let values: Vec<f64> = (0..2 * CHUNK + 100)
            .map(|i| ((i * 7919) % 10_007) as f64)
            .chain([f64::INFINITY, f64::NEG_INFINITY])
            .collect();
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
}
