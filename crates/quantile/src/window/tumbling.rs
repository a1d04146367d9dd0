//! Windows of event time, shared by all series.

mod room;

use std::hash::{BuildHasher, Hash};

use super::closed::OpenSeries;
use super::count::has_passed;
use super::interner::Interner;
use super::{CloseReason, ClosedWindow, Outcome, Run, WindowConfig};
use crate::accumulator::{Accumulator, AccumulatorFactory};

/// Series whose accumulators are in a near cache anyway.
const FEW_SERIES: usize = 1_024;

#[derive(Debug)]
pub(super) struct TumblingWindows<K, A> {
    size: i64,
    allowed_lateness_ns: u64,
    max_future_ns: u64,
    idle_ns: u64,
    max_series: usize,
    /// By ascending start.
    open: Vec<OpenWindow<K, A>>,
    /// The latest event time less the lateness, or the end of what a flush closed.
    watermark: Option<i64>,
    /// All windows that end here or before are closed.
    closed_through: i64,
    /// Of the last observation used, by the receiver's clock.
    arrived_ns: i64,
}

#[derive(Debug)]
struct OpenWindow<K, A> {
    start: i64,
    end: i64,
    series: OpenSeries<K, A>,
}

impl<K: Hash + Eq + Clone, A: Accumulator> TumblingWindows<K, A> {
    /// Times: window size, allowed lateness, largest distance into the future.
    pub(super) fn new(times: (i64, u64, u64), config: &WindowConfig) -> Self {
        let (size, allowed_lateness_ns, max_future_ns) = times;
        Self {
            size,
            allowed_lateness_ns,
            max_future_ns,
            idle_ns: config.idle_ns,
            max_series: config.max_series,
            open: Vec::new(),
            watermark: None,
            closed_through: i64::MIN,
            arrived_ns: i64::MIN,
        }
    }

    pub(super) fn observe<D: FnMut(usize, Outcome), S: BuildHasher>(
        &mut self,
        series_number: u32,
        interner: &Interner<K, S>,
        run: &mut Run<'_, D>,
        now_ns: i64,
        factory: &impl AccumulatorFactory<Accumulator = A>,
    ) {
        let latest_allowed = now_ns.saturating_add_unsigned(self.max_future_ns);
        while let Some((time, _)) = run.next_number() {
            if time > latest_allowed {
                run.drop_next(1, Outcome::Future);
                continue;
            }
            let Some(index) = self.window_of(time) else {
                run.drop_next(1, Outcome::Late);
                continue;
            };
            let window = &mut self.open[index];
            let last = latest_allowed.min(window.end.saturating_sub(1)).max(time);
            let times = &run.times_ns[run.at..];
            let (length, latest) = stretch(times, &run.values[run.at..], window.start, last);
            let make = |series_hash| factory.create(series_hash, window.start);
            let (accumulator, folded) = window.series.entry(series_number, interner, make);
            run.absorb(length, accumulator, folded);
            self.arrived_ns = now_ns;
            self.advance(latest.saturating_sub_unsigned(self.allowed_lateness_ns));
        }
    }

    /// Looks ahead at the accumulators of these series in the newest window: with many series, to
    /// wait for the memory of each in turn is most of what an observation costs.
    #[inline]
    pub(super) fn look_at(&self, series: impl Iterator<Item = u32>) {
        if let Some(newest) = self.open.last().filter(|window| window.series.len() > FEW_SERIES) {
            let _ = std::hint::black_box(newest.series.look_at(series));
        }
    }

    /// One observation, which costs less by itself than as a run of one. Tells whether it was
    /// offered to the overflow series too.
    #[inline]
    pub(super) fn observe_one<S: BuildHasher>(
        &mut self,
        series_number: u32,
        interner: &Interner<K, S>,
        (time, value): (i64, f64),
        now_ns: i64,
        factory: &impl AccumulatorFactory<Accumulator = A>,
    ) -> (Outcome, bool) {
        if value.is_nan() {
            return (Outcome::NotANumber, false);
        }
        if time > now_ns.saturating_add_unsigned(self.max_future_ns) {
            return (Outcome::Future, false);
        }
        let Some(index) = self.window_of(time) else {
            return (Outcome::Late, false);
        };
        let window = &mut self.open[index];
        let make = |series_hash| factory.create(series_hash, window.start);
        let (accumulator, folded) = window.series.entry(series_number, interner, make);
        let outcome = Outcome::of(accumulator.observe(value), folded);
        self.arrived_ns = now_ns;
        self.advance(time.saturating_sub_unsigned(self.allowed_lateness_ns));
        (outcome, folded)
    }

    pub(super) fn close_complete<S: BuildHasher>(&mut self, interner: &mut Interner<K, S>) -> Vec<ClosedWindow<K, A>> {
        let Some(watermark) = self.watermark else {
            return Vec::new();
        };
        self.close_through(interner, self.start_of(watermark), CloseReason::Complete)
    }

    pub(super) fn close_idle<S: BuildHasher>(
        &mut self,
        now_ns: i64,
        interner: &mut Interner<K, S>,
    ) -> Vec<ClosedWindow<K, A>> {
        let mut closed = self.close_complete(interner);
        // A clock that was set back must not delay the flush by the step: begin to wait anew.
        self.arrived_ns = self.arrived_ns.min(now_ns);
        if !has_passed(self.arrived_ns, self.idle_ns, now_ns) {
            return closed;
        }
        let lateness = self.allowed_lateness_ns;
        let passed = |window: &&OpenWindow<K, A>| has_passed(window.end, lateness, now_ns);
        if let Some(end) = self.open.iter().rfind(passed).map(|window| window.end) {
            self.advance(end);
            closed.extend(self.close_through(interner, end, CloseReason::Idle));
        }
        closed
    }

    pub(super) fn close_until<S: BuildHasher>(
        &mut self,
        end: i64,
        interner: &mut Interner<K, S>,
    ) -> Vec<ClosedWindow<K, A>> {
        self.advance(end);
        self.close_through(interner, self.start_of(end), CloseReason::Idle)
    }

    pub(super) fn close_all<S: BuildHasher>(&mut self, interner: &mut Interner<K, S>) -> Vec<ClosedWindow<K, A>> {
        let mut closed = self.close_complete(interner);
        if let Some(end) = self.open.last().map(|window| window.end) {
            self.advance(end);
            closed.extend(self.close_through(interner, end, CloseReason::Shutdown));
        }
        closed
    }

    /// Whether a series is in an open window.
    pub(super) fn hold(&self, series: u32) -> bool {
        self.open.iter().any(|window| window.series.holds(series))
    }

    pub(super) fn open_windows(&self) -> usize {
        self.open.len()
    }

    pub(super) fn watermark(&self) -> Option<i64> {
        self.watermark
    }

    pub(super) fn open_series(&self) -> usize {
        self.open.iter().map(|window| window.series.len()).sum()
    }

    pub(super) fn retained_bytes(&self) -> usize {
        let accumulators = self.open.iter().flat_map(|window| window.series.values());
        accumulators.map(Accumulator::retained_bytes).sum()
    }

    /// The start of the window of an event time.
    fn start_of(&self, time: i64) -> i64 {
        time.saturating_sub(time.rem_euclid(self.size))
    }

    /// The index of the open window of an event time, opened if need be; `None` if it has closed.
    #[inline]
    fn window_of(&mut self, time: i64) -> Option<usize> {
        match self.open.last() {
            Some(newest) if (newest.start..newest.end).contains(&time) => Some(self.open.len() - 1),
            _ => self.other_window_of(time),
        }
    }

    fn other_window_of(&mut self, time: i64) -> Option<usize> {
        let start = self.start_of(time);
        if start < self.closed_through {
            return None;
        }
        match self.open.binary_search_by_key(&start, |window| window.start) {
            Ok(index) => Some(index),
            Err(index) => {
                let window = OpenWindow {
                    start,
                    end: start.saturating_add(self.size),
                    series: OpenSeries::new(self.max_series),
                };
                self.open.insert(index, window);
                Some(index)
            }
        }
    }

    #[inline]
    fn advance(&mut self, time: i64) {
        self.watermark = Some(self.watermark.map_or(time, |watermark| watermark.max(time)));
    }

    /// Closes the windows that end at `boundary` or before, also those that were never opened.
    fn close_through<S: BuildHasher>(
        &mut self,
        interner: &mut Interner<K, S>,
        boundary: i64,
        reason: CloseReason,
    ) -> Vec<ClosedWindow<K, A>> {
        self.closed_through = self.closed_through.max(boundary);
        let closed_through = self.closed_through;
        let complete = self.open.partition_point(|window| window.end <= closed_through);
        if complete > 0 {
            interner.windows_closed();
        }
        let closed = self.open.drain(..complete);
        closed
            .map(|window| ClosedWindow {
                sequence: 0,
                start_ns: window.start,
                end_ns: window.end,
                reason,
                series: window.series.close(),
            })
            .collect()
    }
}

/// Length of the first stretch of observations that are numbers with times in `first..=last`, of
/// which the first observation is one; and its latest time.
fn stretch(times: &[i64], values: &[f64], first: i64, last: i64) -> (usize, i64) {
    const BLOCK: usize = 64;
    let mut latest = i64::MIN;
    let mut length = 0;
    // Whole blocks without a branch for each observation, then one by one.
    for (times, values) in times.chunks(BLOCK).zip(values.chunks(BLOCK)) {
        let (mut least, mut most, mut nan) = (i64::MAX, i64::MIN, false);
        for (&time, value) in times.iter().zip(values) {
            least = least.min(time);
            most = most.max(time);
            nan |= value.is_nan();
        }
        if nan || least < first || most > last {
            break;
        }
        latest = latest.max(most);
        length += times.len();
    }
    let rest = times[length..].iter().zip(&values[length..]).take(BLOCK);
    for (&time, _) in rest.take_while(|&(time, value)| (first..=last).contains(time) && !value.is_nan()) {
        latest = latest.max(time);
        length += 1;
    }
    (length, latest)
}
