//! Windows of event time, shared by all series.

use std::hash::{BuildHasher, Hash};

use super::count::has_passed;
use super::table::SeriesTable;
use super::{CloseReason, ClosedWindow, Outcome, Run, WindowConfig};
use crate::accumulator::{Accumulator, AccumulatorFactory};

#[derive(Debug)]
pub(super) struct TumblingWindows<K, A, S> {
    size: i64,
    allowed_lateness_ns: u64,
    max_future_ns: u64,
    idle_ns: u64,
    max_series: usize,
    hasher: S,
    /// By ascending start.
    open: Vec<OpenWindow<K, A, S>>,
    /// The latest event time less the lateness, or the end of what a flush closed.
    watermark: Option<i64>,
    /// All windows that end here or before are closed.
    closed_through: i64,
    /// Of the last observation used, by the receiver's clock.
    arrived_ns: i64,
}

#[derive(Debug)]
struct OpenWindow<K, A, S> {
    start: i64,
    end: i64,
    series: SeriesTable<K, A, S>,
}

impl<K, A, S> TumblingWindows<K, A, S>
where
    K: Hash + Eq + Clone,
    A: Accumulator,
    S: BuildHasher + Clone,
{
    /// Times: window size, allowed lateness, largest distance into the future.
    pub(super) fn new(times: (i64, u64, u64), config: &WindowConfig, hasher: S) -> Self {
        let (size, allowed_lateness_ns, max_future_ns) = times;
        Self {
            size,
            allowed_lateness_ns,
            max_future_ns,
            idle_ns: config.idle_ns,
            max_series: config.max_series,
            hasher,
            open: Vec::new(),
            watermark: None,
            closed_through: i64::MIN,
            arrived_ns: i64::MIN,
        }
    }

    pub(super) fn observe<D: FnMut(usize, Outcome)>(
        &mut self,
        key: &K,
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
            let rest = run.times_ns[run.at..].iter().zip(&run.values[run.at..]);
            let mut latest = time;
            let stretch = rest.take_while(|&(&time, value)| {
                let inside = (window.start..=last).contains(&time) && !value.is_nan();
                if inside {
                    latest = latest.max(time);
                }
                inside
            });
            let length = stretch.count();
            let make = |series_hash| factory.create(series_hash, window.start);
            let (accumulator, folded) = window.series.entry(key, make);
            run.absorb(length, accumulator, folded);
            self.arrived_ns = now_ns;
            self.advance(latest.saturating_sub_unsigned(self.allowed_lateness_ns));
        }
    }

    pub(super) fn close_complete(&mut self) -> Vec<ClosedWindow<K, A>> {
        let Some(watermark) = self.watermark else {
            return Vec::new();
        };
        self.close_through(self.start_of(watermark), CloseReason::Complete)
    }

    pub(super) fn close_idle(&mut self, now_ns: i64) -> Vec<ClosedWindow<K, A>> {
        let mut closed = self.close_complete();
        // A clock that was set back must not delay the flush by the step: begin to wait anew.
        self.arrived_ns = self.arrived_ns.min(now_ns);
        if !has_passed(self.arrived_ns, self.idle_ns, now_ns) {
            return closed;
        }
        let lateness = self.allowed_lateness_ns;
        let passed = |window: &&OpenWindow<K, A, S>| has_passed(window.end, lateness, now_ns);
        if let Some(end) = self.open.iter().rfind(passed).map(|window| window.end) {
            self.advance(end);
            closed.extend(self.close_through(end, CloseReason::Idle));
        }
        closed
    }

    pub(super) fn close_all(&mut self) -> Vec<ClosedWindow<K, A>> {
        let mut closed = self.close_complete();
        if let Some(end) = self.open.last().map(|window| window.end) {
            self.advance(end);
            closed.extend(self.close_through(end, CloseReason::Shutdown));
        }
        closed
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
    fn window_of(&mut self, time: i64) -> Option<usize> {
        let newest = self.open.len().wrapping_sub(1);
        if let Some(window) = self.open.get(newest)
            && (window.start..window.end).contains(&time)
        {
            return Some(newest);
        }
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
                    series: SeriesTable::new(self.max_series, self.hasher.clone()),
                };
                self.open.insert(index, window);
                Some(index)
            }
        }
    }

    fn advance(&mut self, time: i64) {
        self.watermark = Some(self.watermark.map_or(time, |watermark| watermark.max(time)));
    }

    /// Closes the windows that end at `boundary` or before, also those that were never opened.
    fn close_through(&mut self, boundary: i64, reason: CloseReason) -> Vec<ClosedWindow<K, A>> {
        self.closed_through = self.closed_through.max(boundary);
        let closed_through = self.closed_through;
        let complete = self.open.partition_point(|window| window.end <= closed_through);
        let closed = self.open.drain(..complete);
        closed
            .map(|window| ClosedWindow {
                sequence: 0,
                start_ns: window.start,
                end_ns: window.end,
                reason,
                series: window.series.into_entries(),
            })
            .collect()
    }
}
