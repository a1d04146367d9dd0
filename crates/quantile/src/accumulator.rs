//! One interface over exact values and sketches.

mod quantile;

use std::ops::AddAssign;

pub use quantile::QuantileAccumulator;

use crate::exact::ExactQuantiles;
use crate::kll::{KllError, KllSketch, MIN_K};
use crate::rank::{Criterion, QuantileError};
use crate::seed;

/// What became of observations that were offered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Absorbed {
    /// They count.
    pub used: u64,
    /// NaN: dropped.
    pub not_a_number: u64,
    /// Beyond the bound of the accumulator: dropped.
    pub full: u64,
}

impl AddAssign for Absorbed {
    fn add_assign(&mut self, other: Self) {
        self.used += other.used;
        self.not_a_number += other.not_a_number;
        self.full += other.full;
    }
}

/// Takes observations and gives quantiles of them.
pub trait Accumulator {
    /// Takes observations in order. Of observations without NaN it uses a first part, mostly all,
    /// and reports the rest as `full`.
    fn observe_slice(&mut self, values: &[f64]) -> Absorbed;

    /// Takes one observation.
    fn observe(&mut self, value: f64) -> Absorbed {
        self.observe_slice(&[value])
    }

    /// Takes one observation as if made `weight` times. What is returned counts so too. A weight of
    /// 0, or one beyond the largest count, is not taken but reported as `full`.
    fn observe_weighted(&mut self, value: f64, weight: u64) -> Absorbed;

    /// Number of observations used.
    fn count(&self) -> u64;

    /// Their sum, if it is known.
    fn sum(&self) -> Option<f64>;

    /// The smallest, exactly.
    fn min(&self) -> Option<f64>;

    /// The largest, exactly.
    fn max(&self) -> Option<f64>;

    /// The quantiles of `ranks` by inclusive nearest rank, in the order given.
    ///
    /// # Errors
    ///
    /// [`QuantileError`] if nothing was used or a rank is not in `0..=1`.
    fn quantiles(&self, ranks: &[f64]) -> Result<Vec<f64>, QuantileError>;

    /// Whether the quantiles are exact.
    fn is_exact(&self) -> bool;

    /// Bytes of memory held, the accumulator itself included.
    fn retained_bytes(&self) -> usize;

    /// How many more values are taken, whatever their weights, before some are reported as full.
    fn room(&self) -> u64 {
        u64::MAX
    }

    /// Looks at the memory that the next observation will change, so that it is on its way while
    /// that of others is looked at. What is returned means nothing.
    fn look_at(&self) -> u64 {
        0
    }
}

impl Accumulator for ExactQuantiles {
    fn observe_slice(&mut self, values: &[f64]) -> Absorbed {
        Self::observe_slice(self, values)
    }

    fn observe_weighted(&mut self, value: f64, weight: u64) -> Absorbed {
        Self::observe_weighted(self, value, weight).unwrap_or(Absorbed { full: weight, ..Absorbed::default() })
    }

    fn count(&self) -> u64 {
        self.n()
    }

    fn sum(&self) -> Option<f64> {
        Some(Self::sum(self))
    }

    fn min(&self) -> Option<f64> {
        Self::min(self)
    }

    fn max(&self) -> Option<f64> {
        Self::max(self)
    }

    fn quantiles(&self, ranks: &[f64]) -> Result<Vec<f64>, QuantileError> {
        Self::quantiles(self, ranks)
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn retained_bytes(&self) -> usize {
        Self::retained_bytes(self)
    }

    fn room(&self) -> u64 {
        self.max_values() - self.num_kept()
    }
}

impl Accumulator for KllSketch {
    fn observe_slice(&mut self, values: &[f64]) -> Absorbed {
        let nan_before = self.nan_count();
        self.update_bulk(values);
        let not_a_number = self.nan_count() - nan_before;
        Absorbed { used: values.len() as u64 - not_a_number, not_a_number, full: 0 }
    }

    #[inline]
    fn observe(&mut self, value: f64) -> Absorbed {
        self.update(value);
        let not_a_number = u64::from(value.is_nan());
        Absorbed { used: 1 - not_a_number, not_a_number, full: 0 }
    }

    fn observe_weighted(&mut self, value: f64, weight: u64) -> Absorbed {
        match self.update_weighted(value, weight) {
            Ok(()) if value.is_nan() => Absorbed { not_a_number: weight, ..Absorbed::default() },
            Ok(()) => Absorbed { used: weight, ..Absorbed::default() },
            Err(_) => Absorbed { full: weight, ..Absorbed::default() },
        }
    }

    fn count(&self) -> u64 {
        self.n()
    }

    fn sum(&self) -> Option<f64> {
        Self::sum(self)
    }

    fn min(&self) -> Option<f64> {
        Self::min(self)
    }

    fn max(&self) -> Option<f64> {
        Self::max(self)
    }

    fn quantiles(&self, ranks: &[f64]) -> Result<Vec<f64>, QuantileError> {
        Self::quantiles(self, ranks, Criterion::Inclusive)
    }

    fn is_exact(&self) -> bool {
        !self.is_estimation_mode()
    }

    fn retained_bytes(&self) -> usize {
        Self::retained_bytes(self)
    }
}

/// What to do when an exact accumulator has reached its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// Go on as a KLL sketch of this `k`, which takes over all values so far.
    SwitchToKll {
        /// `k` of the sketch.
        k: u16,
    },
    /// Use no more and report what comes as [`Absorbed::full`].
    Refuse,
}

/// How quantiles are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// By a KLL sketch.
    Kll {
        /// `k` of the sketch.
        k: u16,
    },
    /// From all values.
    Exact {
        /// The most values kept, of eight bytes each.
        max_values: u64,
        /// What to do beyond.
        when_full: WhenFull,
    },
}

/// Makes the accumulator of each series and window.
pub trait AccumulatorFactory {
    /// What it makes.
    type Accumulator: Accumulator;

    /// An empty accumulator. `series_hash` is the same for the same series in every process,
    /// `window` differs between the windows of a series.
    fn create(&self, series_hash: u64, window: i64) -> Self::Accumulator;
}

/// A method and a seed, checked: makes [`QuantileAccumulator`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccumulatorConfig {
    method: Method,
    seed: u64,
}

impl AccumulatorConfig {
    /// Accumulators by `method`. `seed` should differ between the sources of one series, whose
    /// sketches meet in a merge.
    ///
    /// # Errors
    ///
    /// [`KllError::K`] if a `k` is too small.
    pub fn new(method: Method, seed: u64) -> Result<Self, KllError> {
        let k = match method {
            Method::Kll { k } => k,
            Method::Exact { when_full: WhenFull::SwitchToKll { k }, .. } => k,
            Method::Exact { when_full: WhenFull::Refuse, .. } => MIN_K,
        };
        if k < MIN_K {
            return Err(KllError::K { k });
        }
        Ok(Self { method, seed })
    }
}

impl AccumulatorFactory for AccumulatorConfig {
    type Accumulator = QuantileAccumulator;

    fn create(&self, series_hash: u64, window: i64) -> QuantileAccumulator {
        QuantileAccumulator::new(self.method, seed::derive(self.seed, series_hash, window))
    }
}

#[cfg(test)]
mod tests;
