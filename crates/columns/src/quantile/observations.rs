//! What is read out of a batch.

use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use super::query::NonFinite;

/// What became of one item of the input: a log record or a number point. Ordered: where an item is offered several
/// times, the greatest is what became of it in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// The record does not have the attribute, or the metric is not one of the named ones.
    NoValue,
    /// A running total (cumulative sum), which is no observation.
    Cumulative,
    /// The attribute or point is there, but holds no number that counts.
    NotANumber,
    /// The weight is no number of at least 1.
    BadWeight,
    /// Observed, but too far ahead of the receiver's clock.
    Future,
    /// Observed, but after its window had closed.
    Late,
    /// Observed, but its series keeps no more values.
    Full,
    /// Observed.
    Observed,
}

/// The observations of one batch, column by column. Used again from batch to batch to keep its memory.
#[derive(Debug, Default)]
pub struct Observations {
    /// Observed values; no NaN.
    pub values: Vec<f64>,
    /// Times in nanoseconds since the Unix epoch, one for each value.
    pub times: Vec<i64>,
    /// How many observations each value stands for; empty if each stands for one.
    pub weights: Vec<u64>,
    /// Index into `series`, one for each value. Each series is used.
    pub groups: Vec<u32>,
    /// Index into `fates`, one for each value, ascending.
    pub items: Vec<u32>,
    /// The series seen in this batch, each once, by the numbers that the reader has for them.
    pub series: Vec<u32>,
    /// What became of each item of the batch, in its order.
    pub fates: Vec<Fate>,
    /// Points of histograms and summaries, which have no fate.
    pub other_points: u64,
}

impl Observations {
    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        self.values.clear();
        self.times.clear();
        self.weights.clear();
        self.groups.clear();
        self.items.clear();
        self.series.clear();
        self.fates.clear();
        self.other_points = 0;
    }

    /// Decides on the next item: keeps its value and time, or says why not. Whether it was kept.
    #[inline]
    pub(super) fn judge(&mut self, value: Result<f64, Fate>, policy: NonFinite, time: impl FnOnce() -> i64) -> bool {
        let fate = match value {
            Ok(value) if counts(value, policy) => {
                self.items.push(index(self.fates.len()));
                self.values.push(value);
                self.times.push(time());
                Fate::Observed
            }
            Ok(_) => Fate::NotANumber,
            Err(fate) => fate,
        };
        self.fates.push(fate);
        fate == Fate::Observed
    }

    /// A number that is the same when the same batch comes again, of the observation at `at`.
    pub(super) fn draw(&self, at: usize) -> u64 {
        FxBuildHasher.hash_one((self.values[at].to_bits(), self.times[at], self.items[at]))
    }

    /// Takes back the item that was kept last.
    pub(super) fn refuse_last(&mut self, fate: Fate) {
        let _ = (self.values.pop(), self.times.pop(), self.items.pop());
        if let Some(last) = self.fates.last_mut() {
            *last = fate;
        }
    }
}

/// Whether a value is an observation.
#[inline]
pub(super) fn counts(value: f64, policy: NonFinite) -> bool {
    match policy {
        NonFinite::Drop => value.is_finite(),
        NonFinite::Keep => !value.is_nan(),
    }
}

/// Rows and items of a batch are fewer than 2^32: Arrow lengths and message sizes bound them.
#[inline]
pub(super) fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
