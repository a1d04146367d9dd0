//! Exact quantiles: every value is kept until the end, then ranks are selected, not sorted.
//!
//! Selection of a few ranks takes a few nanoseconds for each value, a sort several times as much.
//! The price is memory, eight bytes for each value, so there is always a bound.
//!
//! Not for streams whose windows have no known bound: take [`crate::kll`].

use crate::accumulator::Absorbed;
use crate::key::{to_key, to_value};
use crate::kll::KllError;
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
    /// Keys with weights, of values whose weight is not 1.
    weighted: Vec<(i64, u64)>,
    /// Number of values kept, whatever their weights.
    kept: u64,
}

impl ExactQuantiles {
    /// An empty collection for at most `max_values` values of eight bytes.
    #[must_use]
    pub fn new(max_values: u64) -> Self {
        Self { max_values, moments: Moments::new(), nan: 0, chunks: Vec::new(), weighted: Vec::new(), kept: 0 }
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
            let room = usize::try_from(self.max_values - self.kept).unwrap_or(usize::MAX);
            let (taken, refused) = run.split_at(room.min(run.len()));
            self.moments.add_slice(taken);
            self.append(taken);
            self.kept += taken.len() as u64;
            absorbed.used += taken.len() as u64;
            absorbed.full += refused.len() as u64;
        });
        self.nan += absorbed.not_a_number;
        absorbed
    }

    /// Takes `value` as if observed `weight` times; it counts once towards the bound. NaN is
    /// dropped and counted `weight` times. What is returned counts observations, so `weight` is in
    /// one of its numbers.
    ///
    /// # Errors
    ///
    /// [`KllError::Weight`] if the weight is 0, [`KllError::Count`] if the count would exceed that
    /// of a sketch, [`crate::kll::MAX_N`]; nothing is changed then.
    pub fn observe_weighted(&mut self, value: f64, weight: u64) -> Result<Absorbed, KllError> {
        if weight == 0 {
            return Err(KllError::Weight);
        }
        if value.is_nan() {
            self.nan = self.nan.saturating_add(weight);
            return Ok(Absorbed { not_a_number: weight, ..Absorbed::default() });
        }
        if self.kept >= self.max_values {
            return Ok(Absorbed { full: weight, ..Absorbed::default() });
        }
        self.moments.add_weighted(value, weight)?;
        self.kept += 1;
        match weight {
            1 => self.append(&[value]),
            _ => self.weighted.push((to_key(value), weight)),
        }
        Ok(Absorbed { used: weight, ..Absorbed::default() })
    }

    /// Whether all numbers among the values would be taken.
    pub(crate) fn has_room_for(&self, values: &[f64]) -> bool {
        let room = self.max_values - self.kept;
        values.len() as u64 <= room || values.iter().filter(|value| !value.is_nan()).count() as u64 <= room
    }

    /// See [`crate::accumulator::Accumulator::look_at`].
    #[inline]
    pub(crate) fn look_at(&self) -> u64 {
        let last = self.chunks.last().and_then(|chunk| chunk.last());
        self.moments.count ^ last.map_or(0, |value| value.to_bits())
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

    /// Takes all values of another collection, as far as bound and largest count allow.
    pub fn merge(&mut self, other: &Self) -> Absorbed {
        let mut absorbed = Absorbed::default();
        for chunk in other.chunks() {
            absorbed += self.observe_slice(chunk);
        }
        for (value, weight) in other.weighted() {
            let full = Absorbed { full: weight, ..Absorbed::default() };
            absorbed += self.observe_weighted(value, weight).unwrap_or(full);
        }
        self.nan += other.nan;
        absorbed
    }

    /// Number of observations, weights included.
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

    /// Number of values kept, whatever their weights: what the bound is on.
    #[must_use]
    pub fn num_kept(&self) -> u64 {
        self.kept
    }

    /// The values whose weight is not 1, with their weights, in order of arrival.
    pub fn weighted(&self) -> impl Iterator<Item = (f64, u64)> + Clone {
        self.weighted.iter().map(|&(key, weight)| (to_value(key), weight))
    }

    /// The values of weight 1 in order of arrival, in pieces.
    pub fn chunks(&self) -> impl Iterator<Item = &[f64]> + Clone {
        self.chunks.iter().map(Vec::as_slice)
    }

    /// Bytes of memory of this collection, unused capacity included.
    #[must_use]
    pub fn retained_bytes(&self) -> usize {
        let values: usize = self.chunks.iter().map(Vec::capacity).sum();
        size_of::<Self>()
            + values * size_of::<f64>()
            + self.chunks.capacity() * size_of::<Vec<f64>>()
            + self.weighted.capacity() * size_of::<(i64, u64)>()
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
        if !self.weighted.is_empty() {
            return self.select_weighted(numbers);
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

    /// [`ExactQuantiles::select`] by cumulative weights.
    fn select_weighted(&self, numbers: &[u64]) -> Vec<i64> {
        let ones = self.chunks.iter().flatten().map(|&value| (to_key(value), 1));
        let mut all: Vec<(i64, u64)> = ones.chain(self.weighted.iter().copied()).collect();
        all.sort_unstable();
        let mut found = Vec::with_capacity(numbers.len());
        let mut cumulative = 0;
        for (key, weight) in all {
            cumulative += weight;
            while numbers.get(found.len()).is_some_and(|&number| number <= cumulative) {
                found.push(key);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
