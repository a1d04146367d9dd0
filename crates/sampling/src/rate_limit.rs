//! So many records a second, without bias: what is kept stands for what is not, with the probability it was drawn with.

use crate::decision::{Decision, DropReason, Run};
use crate::gaps::{Draws, Gaps};
use crate::threshold::Threshold;
use crate::weights::{WeightId, Weights};

/// Length of a window, in nanoseconds.
const WINDOW: u64 = 100_000_000;
/// Windows in a second.
const WINDOWS_PER_SECOND: f64 = 10.0;
/// Share of the last window in the rate that is expected of the next.
const SMOOTHING: f64 = 0.5;
/// Unused room under the hard cap is kept for so many windows.
const CAP_WINDOWS: f64 = 2.0;
/// The rate is not followed below this, in records a window.
const NOTHING: f64 = 1e-6;

/// The state of one limit.
///
/// Why the probability may follow the traffic, even inside a window: it is fixed before the record it is used for is
/// drawn. Then each record adds 1 to the expected sum of weights, whatever was drawn before it.
#[derive(Debug, Clone)]
pub(crate) struct RateLimit {
    /// Records to be kept in a window.
    budget: f64,
    /// Records that may be kept in a window, at the very most.
    cap: f64,
    gaps: Gaps,
    threshold: Threshold,
    weight: WeightId,
    /// When the window began; `None` before the first record.
    start: Option<u64>,
    /// Records that came in this window.
    came: u64,
    /// Records that were drawn in this window.
    drawn: u64,
    /// With so many drawn the probability is halved.
    next_halving: f64,
    /// Records expected in a window.
    expected: f64,
    /// Records that may be kept before the cap is reached.
    room: f64,
}

impl RateLimit {
    /// A limit that knows nothing of the traffic. Both numbers are records a second and positive.
    pub(crate) fn new(draws: Draws, per_second: f64, hard_cap: f64) -> Self {
        let budget = per_second / WINDOWS_PER_SECOND;
        let cap = hard_cap / WINDOWS_PER_SECOND;
        Self {
            budget,
            cap,
            gaps: Gaps::random(draws, Threshold::KEEP_ALL),
            threshold: Threshold::KEEP_ALL,
            weight: WeightId::ONE,
            start: None,
            came: 0,
            drawn: 0,
            next_halving: first_halving(budget),
            expected: 0.0,
            room: most_room(cap),
        }
    }

    /// Decides on up to `most` records that come at `now`, in nanoseconds of any clock. If the clock goes back, the window
    /// begins again, and nothing else changes.
    #[inline(always)]
    pub(crate) fn take(&mut self, most: u64, now: u64, weights: &mut Weights) -> Run {
        // Also true of a time before the window.
        if self.start.is_none_or(|start| now.wrapping_sub(start) >= WINDOW) {
            self.begin_window(now, weights);
        }
        let (records, drawn) = self.gaps.take(most);
        self.came = self.came.saturating_add(records);
        let decision = if drawn { self.drawn(weights) } else { Decision::Drop { reason: DropReason::RateLimit } };
        Run { records, decision }
    }

    /// What becomes of a record that was drawn.
    #[inline(never)]
    fn drawn(&mut self, weights: &mut Weights) -> Decision {
        let mut decision = Decision::Keep { weight: self.weight };
        if self.room >= 1.0 {
            self.room -= 1.0;
        } else {
            decision = Decision::Drop { reason: DropReason::HardCap };
        }
        self.drawn += 1;
        if self.drawn as f64 >= self.next_halving {
            self.next_halving = self.drawn as f64 + (self.budget / 8.0).max(1.0);
            self.set(self.threshold.halved_on_grid(), weights);
        }
        decision
    }

    /// Learns from the window that has ended, and from those after it in which nothing came.
    #[cold]
    fn begin_window(&mut self, now: u64, weights: &mut Weights) {
        let before = self.start.replace(now);
        if let Some(before) = before {
            let Some(elapsed) = now.checked_sub(before) else { return };
            let empty = elapsed / WINDOW - 1;
            if empty == 0 {
                // Windows follow each other without gaps, as long as records do.
                self.start = Some(before + WINDOW);
            }
            let came = self.came as f64;
            // The first window says all there is to know.
            let last = if self.expected > 0.0 { self.expected + SMOOTHING * (came - self.expected) } else { came };
            self.expected = last * (1.0 - SMOOTHING).powi(empty.min(1000) as i32);
            if self.expected < NOTHING {
                self.expected = 0.0;
            }
            self.room = (self.room + self.cap * (empty + 1) as f64).min(most_room(self.cap));
        }
        self.came = 0;
        self.drawn = 0;
        self.next_halving = first_halving(self.budget);
        let probability = if self.expected > self.budget { self.budget / self.expected } else { 1.0 };
        // Below the least probability of all there is the grid's least.
        let threshold = Threshold::from_probability(probability.max((-56f64).exp2())).unwrap_or(Threshold::KEEP_ALL);
        self.set(threshold.on_grid(), weights);
    }

    /// Thresholds are those of the grid, so that they are few.
    fn set(&mut self, threshold: Threshold, weights: &mut Weights) {
        if threshold != self.threshold {
            self.threshold = threshold;
            self.weight = weights.intern(threshold);
            self.gaps.change(threshold);
        }
    }
}

/// A window in which more are drawn than chance explains has more traffic than was expected.
fn first_halving(budget: f64) -> f64 {
    (budget + budget.sqrt()).max(1.0)
}

fn most_room(cap: f64) -> f64 {
    (CAP_WINDOWS * cap).max(1.0)
}

#[cfg(test)]
mod tests;
