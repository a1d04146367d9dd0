//! One interface over exact values and sketches.

use std::ops::AddAssign;

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
}

impl Accumulator for ExactQuantiles {
    fn observe_slice(&mut self, values: &[f64]) -> Absorbed {
        Self::observe_slice(self, values)
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
}

impl Accumulator for KllSketch {
    fn observe_slice(&mut self, values: &[f64]) -> Absorbed {
        let nan_before = self.nan_count();
        self.update_slice(values);
        let not_a_number = self.nan_count() - nan_before;
        Absorbed { used: values.len() as u64 - not_a_number, not_a_number, full: 0 }
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
        let seed = seed::derive(self.seed, series_hash, window);
        match self.method {
            Method::Kll { k } => {
                QuantileAccumulator { state: State::Kll(KllSketch::with_valid_k(k, seed)), switch: None }
            }
            Method::Exact { max_values, when_full } => QuantileAccumulator {
                state: State::Exact(ExactQuantiles::new(max_values)),
                switch: match when_full {
                    WhenFull::SwitchToKll { k } => Some(Switch { k, seed }),
                    WhenFull::Refuse => None,
                },
            },
        }
    }
}

/// Exact values or a sketch, with the change from one to the other at a bound.
#[derive(Debug, Clone)]
pub struct QuantileAccumulator {
    state: State,
    switch: Option<Switch>,
}

#[derive(Debug, Clone)]
enum State {
    Exact(ExactQuantiles),
    Kll(KllSketch),
}

/// The sketch that takes over from exact values.
#[derive(Debug, Clone, Copy)]
struct Switch {
    k: u16,
    seed: u64,
}

impl QuantileAccumulator {
    /// The sketch, if this is one (by now).
    #[must_use]
    pub fn sketch(&self) -> Option<&KllSketch> {
        match &self.state {
            State::Kll(sketch) => Some(sketch),
            State::Exact(_) => None,
        }
    }

    /// The exact values, if they are still kept.
    #[must_use]
    pub fn exact(&self) -> Option<&ExactQuantiles> {
        match &self.state {
            State::Exact(exact) => Some(exact),
            State::Kll(_) => None,
        }
    }

    fn accumulator(&self) -> &dyn Accumulator {
        match &self.state {
            State::Exact(exact) => exact,
            State::Kll(sketch) => sketch,
        }
    }

    /// Puts all exact values into a sketch.
    fn switch_to(&mut self, switch: Switch) {
        if let State::Exact(exact) = &self.state {
            let mut sketch = KllSketch::with_valid_k(switch.k, switch.seed);
            for chunk in exact.chunks() {
                sketch.update_slice(chunk);
            }
            sketch.add_nan_count(exact.nan_count());
            self.state = State::Kll(sketch);
        }
    }
}

impl Accumulator for QuantileAccumulator {
    fn observe_slice(&mut self, values: &[f64]) -> Absorbed {
        if let (State::Exact(exact), Some(switch)) = (&self.state, self.switch)
            && !exact.has_room_for(values)
        {
            self.switch_to(switch);
        }
        match &mut self.state {
            State::Exact(exact) => exact.observe_slice(values),
            State::Kll(sketch) => Accumulator::observe_slice(sketch, values),
        }
    }

    fn count(&self) -> u64 {
        self.accumulator().count()
    }

    fn sum(&self) -> Option<f64> {
        self.accumulator().sum()
    }

    fn min(&self) -> Option<f64> {
        self.accumulator().min()
    }

    fn max(&self) -> Option<f64> {
        self.accumulator().max()
    }

    fn quantiles(&self, ranks: &[f64]) -> Result<Vec<f64>, QuantileError> {
        self.accumulator().quantiles(ranks)
    }

    fn is_exact(&self) -> bool {
        self.accumulator().is_exact()
    }

    fn retained_bytes(&self) -> usize {
        self.accumulator().retained_bytes()
    }
}

#[cfg(test)]
mod tests {
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
}
