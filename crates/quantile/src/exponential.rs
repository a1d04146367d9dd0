//! Exponential histograms of what was observed (OpenTelemetry metrics data model,
//! "ExponentialHistogram").
//!
//! The bucket of index `i` at scale `s` holds values in `(b^i, b^(i + 1)]` with `b = 2^(2^-s)`; one
//! scale less joins pairs of neighbours. Here the scale is the finest one at which the values on
//! either side of zero fit the bound on buckets, so it depends on the values and not on their order.
//!
//! From exact values the counts are exact. From a KLL sketch they are the weights of its items: they
//! add up to the number of observations, and the sum of the counts up to any bound is off by the
//! rank error of the sketch. Minimum, maximum and sum are exact either way.

use otel_arrow_dfe_expohisto::{MIN_SCALE, Scale, table_scale};

use crate::accumulator::{Accumulator, QuantileAccumulator};
use crate::kll::KllSketch;

/// The fewest buckets on either side of zero: at the coarsest scale all numbers fit into two.
pub const MIN_BUCKETS: usize = 2;

/// Neighbouring buckets of the values on one side of zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Buckets {
    /// Index of the first bucket.
    pub offset: i32,
    /// Observations in each bucket; the first and the last are not empty.
    pub counts: Vec<u64>,
}

/// Counts of observations by their magnitude.
#[derive(Debug, Clone, PartialEq)]
pub struct ExponentialHistogram {
    /// Observations: the sum of all buckets and of `zero_count`.
    pub count: u64,
    /// Their sum, where it is known.
    pub sum: Option<f64>,
    /// The smallest.
    pub min: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// See the module.
    pub scale: i32,
    /// Observations that are zero.
    pub zero_count: u64,
    /// Of positive values.
    pub positive: Buckets,
    /// Of the absolute values of negative ones.
    pub negative: Buckets,
}

impl ExponentialHistogram {
    /// The histogram of what `values` holds, with at most `max_buckets` (two at least) buckets on
    /// either side of zero. Infinite values have no bucket and are left out.
    #[must_use]
    pub fn of(values: &QuantileAccumulator, max_buckets: usize) -> Self {
        let mut histogram = if let Some(sketch) = values.sketch() {
            Self::of_sketch(&sketch, max_buckets)
        } else if let Some(exact) = values.exact() {
            let ones = exact.chunks().flatten().map(|&value| (value, 1));
            Self::of_items(ones.chain(exact.weighted()), max_buckets)
        } else {
            Self::of_items(std::iter::empty(), max_buckets)
        };
        histogram.sum = values.sum().filter(|_| histogram.count > 0);
        histogram.min = values.min();
        histogram.max = values.max();
        histogram
    }

    /// The histogram of a sketch by the weights of its items, as [`ExponentialHistogram::of`] makes it.
    #[must_use]
    pub fn of_sketch(sketch: &KllSketch, max_buckets: usize) -> Self {
        let view = sketch.sorted_view();
        let mut before = 0;
        let weights = view.cumulative_weights().iter().map(|&to| to - std::mem::replace(&mut before, to));
        let items: Vec<(f64, u64)> = view.values().iter().copied().zip(weights).collect();
        let mut histogram = Self::of_items(items.iter().copied(), max_buckets);
        histogram.sum = sketch.sum().filter(|_| histogram.count > 0);
        histogram.min = sketch.min();
        histogram.max = sketch.max();
        histogram
    }

    /// The histogram of `items`, pairs of a value and how often it was observed, without sum, minimum and maximum.
    #[must_use]
    pub fn of_items(items: impl Iterator<Item = (f64, u64)> + Clone, max_buckets: usize) -> Self {
        let finite = || items.clone().filter(|(value, _)| value.is_finite());
        let (mut positive, mut negative) = (Extent::default(), Extent::default());
        // By `for_each`: a loop would ask a chain of pieces for each value where it stands.
        finite().for_each(|(value, _)| {
            if value > 0.0 {
                positive.add(value);
            } else if value < 0.0 {
                negative.add(-value);
            }
        });
        let (positive, negative) = (positive.indexes(), negative.indexes());
        let most = i64::try_from(max_buckets.max(MIN_BUCKETS)).unwrap_or(i64::MAX);
        // Each step towards coarser scales halves the number of buckets.
        let steps_of = |extent: Option<(i32, i32)>| match extent {
            Some((first, last)) => (0..).find(|&steps| i64::from(last >> steps) - i64::from(first >> steps) < most),
            None => None,
        };
        let widest = u32::try_from(table_scale() - MIN_SCALE).unwrap_or(0);
        let steps = steps_of(positive).max(steps_of(negative)).unwrap_or(0).min(widest);
        let buckets = |extent: Option<(i32, i32)>| match extent {
            Some((first, last)) => {
                let (first, last) = (first >> steps, last >> steps);
                let length = usize::try_from(last - first).unwrap_or(0) + 1;
                Buckets { offset: first, counts: vec![0; length] }
            }
            None => Buckets::default(),
        };
        let mut histogram = Self {
            count: 0,
            sum: None,
            min: None,
            max: None,
            scale: table_scale() - i32::try_from(steps).unwrap_or(0),
            zero_count: 0,
            positive: buckets(positive),
            negative: buckets(negative),
        };
        finite().for_each(|(value, weight)| {
            histogram.count += weight;
            if value == 0.0 {
                histogram.zero_count += weight;
                return;
            }
            let side = if value > 0.0 { &mut histogram.positive } else { &mut histogram.negative };
            let at = (index(value.abs()) >> steps) - side.offset;
            if let Some(count) = usize::try_from(at).ok().and_then(|at| side.counts.get_mut(at)) {
                *count += weight;
            }
        });
        histogram
    }
}

/// Index of the bucket of a positive number at the finest scale.
fn index(magnitude: f64) -> i32 {
    Scale::new(table_scale()).map_or(0, |finest| finest.map_to_index(magnitude))
}

/// Least and greatest of positive numbers.
#[derive(Debug, Clone, Copy, Default)]
struct Extent(Option<(f64, f64)>);

impl Extent {
    #[inline]
    fn add(&mut self, magnitude: f64) {
        let (least, most) = self.0.unwrap_or((magnitude, magnitude));
        self.0 = Some((least.min(magnitude), most.max(magnitude)));
    }

    /// Their buckets at the finest scale.
    fn indexes(self) -> Option<(i32, i32)> {
        self.0.map(|(least, most)| (index(least), index(most)))
    }
}

#[cfg(test)]
mod tests;
