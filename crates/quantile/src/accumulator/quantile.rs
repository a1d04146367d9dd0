//! The accumulator of one series: its first values, then all values or a sketch.

use std::borrow::Cow;
use std::num::NonZeroU16;

use super::{Absorbed, Accumulator, Method, WhenFull};
use crate::exact::ExactQuantiles;
use crate::kll::{KllError, KllSketch};
use crate::moments::Moments;
use crate::rank::QuantileError;

/// Values kept before anything is made for many: of many series most are short. Fewer than those
/// for which moments are added up in another order.
const FEW: usize = 7;
/// Values of the first allocation: with what allocators add, one block of usual size.
const FIRST: usize = 5;

/// Exact values or a sketch, with the change from one to the other at a bound.
///
/// A series of a few values takes little more than these.
#[derive(Debug, Clone)]
pub struct QuantileAccumulator(State);

#[derive(Debug, Clone)]
enum State {
    Few(Few),
    Exact(Box<Exact>),
    Kll(KllSketch),
}

/// The first values, no NaN and each of weight 1, with what is needed to go on.
#[derive(Debug, Clone)]
struct Few {
    method: Method,
    seed: u64,
    values: Vec<f64>,
}

/// All values.
#[derive(Debug, Clone)]
struct Exact {
    values: ExactQuantiles,
    switch: Option<Switch>,
}

/// The sketch that takes over from exact values.
#[derive(Debug, Clone, Copy)]
struct Switch {
    /// Not 0, so that there is no room needed to say that there is none.
    k: NonZeroU16,
    seed: u64,
}

impl Few {
    /// How many values there may be.
    fn most(&self) -> usize {
        match self.method {
            Method::Kll { .. } => FEW,
            Method::Exact { max_values, .. } => usize::try_from(max_values).unwrap_or(FEW).min(FEW),
        }
    }

    /// Takes values, if there is room for all of them and none is NaN.
    #[inline]
    fn take(&mut self, values: &[f64]) -> bool {
        let length = self.values.len() + values.len();
        if length > self.most() || values.iter().any(|value| value.is_nan()) {
            return false;
        }
        if length > self.values.capacity() {
            let target = if length <= FIRST { FIRST } else { FEW };
            self.values.reserve_exact(target - self.values.len());
        }
        self.values.extend_from_slice(values);
        true
    }

    fn moments(&self) -> Moments {
        let mut moments = Moments::new();
        moments.add_slice(&self.values);
        moments
    }

    /// The same in the form for many.
    fn many(&self) -> State {
        match self.method {
            Method::Kll { k } => {
                let mut sketch = KllSketch::with_valid_k(k, self.seed);
                sketch.update_slice(&self.values);
                State::Kll(sketch)
            }
            Method::Exact { max_values, when_full } => {
                let mut values = ExactQuantiles::new(max_values);
                let absorbed = values.observe_slice(&self.values);
                debug_assert_eq!(absorbed.used, self.values.len() as u64);
                let switch = match when_full {
                    WhenFull::SwitchToKll { k } => NonZeroU16::new(k).map(|k| Switch { k, seed: self.seed }),
                    WhenFull::Refuse => None,
                };
                State::Exact(Box::new(Exact { values, switch }))
            }
        }
    }
}

impl Switch {
    /// A sketch of all exact values.
    fn sketch(self, exact: &ExactQuantiles) -> KllSketch {
        let mut sketch = KllSketch::with_valid_k(self.k.get(), self.seed);
        for chunk in exact.chunks() {
            sketch.update_slice(chunk);
        }
        for (value, weight) in exact.weighted() {
            // Both kinds have the same largest count.
            let taken = sketch.update_weighted(value, weight);
            debug_assert!(taken.is_ok(), "{taken:?}");
        }
        sketch.add_nan_count(exact.nan_count());
        sketch
    }
}

impl QuantileAccumulator {
    /// An empty one; a `k` in `method` is valid.
    pub(super) fn new(method: Method, seed: u64) -> Self {
        Self(State::Few(Few { method, seed, values: Vec::new() }))
    }

    /// Brings what is here into a form that takes these values.
    #[cold]
    fn make_room(&mut self, values: &[f64]) {
        if let State::Few(few) = &self.0 {
            self.0 = few.many();
        }
        if let State::Exact(exact) = &self.0
            && let Some(switch) = exact.switch
            && !exact.values.has_room_for(values)
        {
            self.0 = State::Kll(switch.sketch(&exact.values));
        }
    }

    /// The sketch, if this is one (by now). It is made for this call where there are a few values.
    #[must_use]
    pub fn sketch(&self) -> Option<Cow<'_, KllSketch>> {
        match &self.0 {
            State::Few(few) => match few.many() {
                State::Kll(sketch) => Some(Cow::Owned(sketch)),
                _ => None,
            },
            State::Exact(_) => None,
            State::Kll(sketch) => Some(Cow::Borrowed(sketch)),
        }
    }

    /// The exact values, if they are still kept. As [`QuantileAccumulator::sketch`] for a few.
    #[must_use]
    pub fn exact(&self) -> Option<Cow<'_, ExactQuantiles>> {
        match &self.0 {
            State::Few(few) => match few.many() {
                State::Exact(exact) => Some(Cow::Owned(exact.values)),
                _ => None,
            },
            State::Exact(exact) => Some(Cow::Borrowed(&exact.values)),
            State::Kll(_) => None,
        }
    }

    /// Number of exact values kept, whatever their weights; `None` if this is a sketch.
    #[must_use]
    pub fn num_exact(&self) -> Option<u64> {
        match &self.0 {
            State::Few(Few { method: Method::Exact { .. }, values, .. }) => Some(values.len() as u64),
            State::Exact(exact) => Some(exact.values.num_kept()),
            State::Few(_) | State::Kll(_) => None,
        }
    }

    /// Takes `value` as if observed `weight` times. What is returned counts observations, so
    /// `weight` is in one of its numbers.
    ///
    /// # Errors
    ///
    /// [`KllError::Weight`] if the weight is 0, [`KllError::Count`] if the count would exceed
    /// [`crate::kll::MAX_N`]; nothing is changed then.
    pub fn observe_weighted(&mut self, value: f64, weight: u64) -> Result<Absorbed, KllError> {
        self.make_room(&[value]);
        match &mut self.0 {
            State::Few(_) => Ok(Absorbed { full: weight, ..Absorbed::default() }),
            State::Exact(exact) => exact.values.observe_weighted(value, weight),
            State::Kll(sketch) => {
                sketch.update_weighted(value, weight)?;
                let nan = value.is_nan();
                let (used, not_a_number) = if nan { (0, weight) } else { (weight, 0) };
                Ok(Absorbed { used, not_a_number, full: 0 })
            }
        }
    }

    /// The moments of a few values, or the accumulator of many.
    fn few_or_many(&self) -> Result<Moments, &dyn Accumulator> {
        match &self.0 {
            State::Few(few) => Ok(few.moments()),
            State::Exact(exact) => Err(&exact.values),
            State::Kll(sketch) => Err(sketch),
        }
    }
}

impl Accumulator for QuantileAccumulator {
    fn observe_slice(&mut self, values: &[f64]) -> Absorbed {
        if let State::Few(few) = &mut self.0
            && few.take(values)
        {
            return Absorbed { used: values.len() as u64, ..Absorbed::default() };
        }
        if !matches!(self.0, State::Kll(_)) {
            self.make_room(values);
        }
        match &mut self.0 {
            State::Few(_) => Absorbed { full: values.len() as u64, ..Absorbed::default() },
            State::Exact(exact) => exact.values.observe_slice(values),
            State::Kll(sketch) => Accumulator::observe_slice(sketch, values),
        }
    }

    #[inline]
    fn observe(&mut self, value: f64) -> Absorbed {
        match &mut self.0 {
            State::Kll(sketch) => Accumulator::observe(sketch, value),
            _ => self.observe_slice(&[value]),
        }
    }

    fn observe_weighted(&mut self, value: f64, weight: u64) -> Absorbed {
        Self::observe_weighted(self, value, weight).unwrap_or(Absorbed { full: weight, ..Absorbed::default() })
    }

    fn count(&self) -> u64 {
        self.few_or_many().map_or_else(Accumulator::count, |moments| moments.count)
    }

    fn sum(&self) -> Option<f64> {
        self.few_or_many().map_or_else(Accumulator::sum, |moments| Some(moments.sum.total()))
    }

    fn min(&self) -> Option<f64> {
        self.few_or_many().map_or_else(Accumulator::min, |moments| moments.min())
    }

    fn max(&self) -> Option<f64> {
        self.few_or_many().map_or_else(Accumulator::max, |moments| moments.max())
    }

    fn quantiles(&self, ranks: &[f64]) -> Result<Vec<f64>, QuantileError> {
        match &self.0 {
            State::Few(few) => Self(few.many()).quantiles(ranks),
            State::Exact(exact) => exact.values.quantiles(ranks),
            State::Kll(sketch) => Accumulator::quantiles(sketch, ranks),
        }
    }

    fn is_exact(&self) -> bool {
        self.few_or_many().map_or_else(Accumulator::is_exact, |_| true)
    }

    fn retained_bytes(&self) -> usize {
        size_of::<State>()
            + match &self.0 {
                State::Few(few) => few.values.capacity() * size_of::<f64>(),
                State::Exact(exact) => size_of::<Option<Switch>>() + exact.values.retained_bytes(),
                State::Kll(sketch) => sketch.retained_bytes() - size_of::<KllSketch>(),
            }
    }

    fn room(&self) -> u64 {
        match &self.0 {
            State::Few(Few { method: Method::Exact { max_values, when_full: WhenFull::Refuse }, values, .. }) => {
                max_values - values.len() as u64
            }
            State::Exact(exact) if exact.switch.is_none() => exact.values.room(),
            _ => u64::MAX,
        }
    }
    #[inline]
    fn look_at(&self) -> u64 {
        match &self.0 {
            State::Few(_) => 0,
            State::Exact(exact) => exact.values.look_at(),
            State::Kll(sketch) => sketch.look_at(),
        }
    }
}
