//! A sketch in sorted form, for queries.

use super::KllSketch;
use crate::key::to_value;
use crate::rank::{self, Criterion, QuantileError};

/// The items of a sketch in ascending order with their cumulative weights.
///
/// It is a snapshot: later updates of the sketch do not show, and queries do not change the
/// sketch.
#[derive(Debug, Clone, PartialEq)]
pub struct SortedView {
    n: u64,
    min: f64,
    max: f64,
    values: Vec<f64>,
    /// Weight of all items up to and including the one at the same index.
    cumulative: Vec<u64>,
}

impl SortedView {
    pub(super) fn new(sketch: &KllSketch) -> Self {
        let mut entries: Vec<(i64, u64)> = Vec::with_capacity(sketch.num_retained());
        // From the top: the sort finds the levels as ascending runs and merges them.
        for height in (0..sketch.num_levels()).rev() {
            let weight = 1u64 << height;
            entries.extend(sketch.level(height).iter().map(|&key| (key, weight)));
        }
        entries.sort_by_key(|&(key, _)| key);
        let mut total = 0;
        Self {
            n: sketch.n(),
            min: sketch.moments.min,
            max: sketch.moments.max,
            values: entries.iter().map(|&(key, _)| to_value(key)).collect(),
            cumulative: entries
                .iter()
                .map(|&(_, weight)| {
                    total += weight;
                    total
                })
                .collect(),
        }
    }

    /// Number of observations.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.n
    }

    /// The items in ascending order.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// For each item the number of observations that it and the items before it stand for.
    #[must_use]
    pub fn cumulative_weights(&self) -> &[u64] {
        &self.cumulative
    }

    /// One quantile. Rank 0 is the exact minimum, rank 1 the exact maximum.
    ///
    /// # Errors
    ///
    /// [`QuantileError`] if the view is empty or the rank is not in `0..=1`.
    pub fn quantile(&self, rank: f64, criterion: Criterion) -> Result<f64, QuantileError> {
        let number = rank::number_of(rank, self.n, criterion)?;
        if rank == 0.0 {
            return Ok(self.min);
        }
        if rank == 1.0 {
            return Ok(self.max);
        }
        let index = self.cumulative.partition_point(|&weight| weight < number);
        Ok(self.values.get(index).copied().unwrap_or(self.max))
    }

    /// The quantiles of `ranks`, in the order given.
    ///
    /// # Errors
    ///
    /// [`QuantileError`] if the view is empty or a rank is not in `0..=1`.
    pub fn quantiles(&self, ranks: &[f64], criterion: Criterion) -> Result<Vec<f64>, QuantileError> {
        ranks.iter().map(|&rank| self.quantile(rank, criterion)).collect()
    }

    /// The fraction of observations at or below `value` (inclusive) or below it (exclusive);
    /// `None` if the view is empty or `value` is NaN. The two zeros are equal.
    #[must_use]
    pub fn rank(&self, value: f64, criterion: Criterion) -> Option<f64> {
        if self.n == 0 || value.is_nan() {
            return None;
        }
        let index = match criterion {
            Criterion::Inclusive => self.values.partition_point(|&item| item <= value),
            Criterion::Exclusive => self.values.partition_point(|&item| item < value),
        };
        let below = index.checked_sub(1).and_then(|last| self.cumulative.get(last)).copied().unwrap_or(0);
        Some(below as f64 / self.n as f64)
    }
}
