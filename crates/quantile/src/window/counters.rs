//! What becomes of observations.

use std::ops::AddAssign;

use crate::accumulator::Absorbed;

/// What became of one observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It counts for its series.
    Used,
    /// It counts, for the series that all beyond the largest number of series share.
    OverflowFolded,
    /// Dropped: its window has closed.
    Late,
    /// Dropped: too far ahead of the receiver's clock.
    Future,
    /// Dropped: not a number.
    NotANumber,
    /// Dropped: the accumulator of its series keeps no more values.
    Full,
}

/// Numbers of observations by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Counted in some window.
    pub used: u64,
    /// The part of `used` that counted for the overflow series.
    pub overflow_folded: u64,
    /// Dropped: window closed.
    pub late: u64,
    /// Dropped: too far ahead of the receiver's clock.
    pub future: u64,
    /// Dropped: NaN.
    pub not_a_number: u64,
    /// Dropped: accumulator full.
    pub full: u64,
    /// The part of `full` that the overflow series refused.
    pub overflow_full: u64,
}

impl Outcome {
    /// What became of one number that was offered to an accumulator, that of the overflow series
    /// if `folded`.
    #[inline]
    pub(super) fn of(absorbed: Absorbed, folded: bool) -> Self {
        match (absorbed.used, folded) {
            (0, _) => Self::Full,
            (_, false) => Self::Used,
            (_, true) => Self::OverflowFolded,
        }
    }
}

impl Counters {
    /// All observations that were not used.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.late + self.future + self.not_a_number + self.full
    }

    /// All observations: used and dropped.
    #[must_use]
    pub fn offered(&self) -> u64 {
        self.used + self.dropped()
    }

    /// Counts one observation, offered to the overflow series if `folded`; whether it is dropped.
    #[inline]
    pub(super) fn count(&mut self, outcome: Outcome, folded: bool) -> bool {
        if matches!(outcome, Outcome::Used | Outcome::OverflowFolded) {
            self.used += 1;
            self.overflow_folded += u64::from(folded);
            return false;
        }
        self.overflow_full += u64::from(folded);
        self.count_dropped(outcome, 1);
        true
    }

    pub(super) fn count_dropped(&mut self, outcome: Outcome, count: u64) {
        match outcome {
            Outcome::Used | Outcome::OverflowFolded => {}
            Outcome::Late => self.late += count,
            Outcome::Future => self.future += count,
            Outcome::NotANumber => self.not_a_number += count,
            Outcome::Full => self.full += count,
        }
    }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.used += other.used;
        self.overflow_folded += other.overflow_folded;
        self.late += other.late;
        self.future += other.future;
        self.not_a_number += other.not_a_number;
        self.full += other.full;
        self.overflow_full += other.overflow_full;
    }
}
