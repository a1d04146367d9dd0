//! Observations of one series that arrived together.

use super::{Counters, Outcome};
use crate::accumulator::Accumulator;

/// Observations of one series on their way into windows.
pub(super) struct Run<'a, D> {
    pub(super) times_ns: &'a [i64],
    pub(super) values: &'a [f64],
    /// One for each value; empty if each stands for one observation.
    pub(super) weights: &'a [u64],
    /// Index of the next one.
    pub(super) at: usize,
    pub(super) tally: Counters,
    pub(super) dropped: D,
}

impl<D: FnMut(usize, Outcome)> Run<'_, D> {
    /// The next observation that is a number; NaN before it are dropped.
    pub(super) fn next_number(&mut self) -> Option<(i64, f64)> {
        while let (Some(&time), Some(&value)) = (self.times_ns.get(self.at), self.values.get(self.at)) {
            if !value.is_nan() {
                return Some((time, value));
            }
            self.drop_next(1, Outcome::NotANumber);
        }
        None
    }

    /// Drops the next `count` observations.
    pub(super) fn drop_next(&mut self, count: usize, outcome: Outcome) {
        for index in self.at..self.at + count {
            (self.dropped)(index, outcome);
        }
        self.tally.count_dropped(outcome, count as u64);
        self.at += count;
    }

    /// Puts the next `length` observations, all numbers, into an accumulator.
    pub(super) fn absorb<A: Accumulator>(&mut self, length: usize, accumulator: &mut A, folded: bool) {
        if !self.weights.is_empty() {
            return self.absorb_weighted(length, accumulator, folded);
        }
        let values = &self.values[self.at..self.at + length];
        let used = match values {
            &[value] => accumulator.observe(value).used,
            _ => accumulator.observe_slice(values).used,
        };
        self.tally.used += used;
        if folded {
            self.tally.overflow_folded += used;
        }
        let used = usize::try_from(used).unwrap_or(length).min(length);
        if folded {
            self.tally.overflow_full += (length - used) as u64;
        }
        self.at += used;
        self.drop_next(length - used, Outcome::Full);
    }

    /// The same where each value has a weight: one by one.
    fn absorb_weighted<A: Accumulator>(&mut self, length: usize, accumulator: &mut A, folded: bool) {
        for _ in 0..length {
            let absorbed = accumulator.observe_weighted(self.values[self.at], self.weights[self.at]);
            let outcome = Outcome::of(absorbed, folded);
            if self.tally.count(outcome, folded) {
                (self.dropped)(self.at, outcome);
            }
            self.at += 1;
        }
    }
}
