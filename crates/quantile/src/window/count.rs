//! Windows of a number of observations, for each series on its own.

use std::hash::{BuildHasher, Hash};

use super::interner::Interner;
use super::table::{SeriesKey, SeriesTable};
use super::{CloseReason, ClosedWindow, Outcome, Run, WindowConfig, WindowSeries};
use crate::accumulator::{Accumulator, AccumulatorFactory};

#[derive(Debug)]
pub(super) struct CountWindows<K, A> {
    /// Observations that close a window.
    size: u64,
    idle_ns: u64,
    open: SeriesTable<OpenSeries<A>>,
    complete: Vec<ClosedWindow<K, A>>,
    /// Number of windows begun: it tells the seeds of the windows of a series apart.
    begun: i64,
    /// Where a flush goes on that has not seen all series, and why it closes windows.
    flushed_to: Option<(usize, CloseReason)>,
}

#[derive(Debug)]
struct OpenSeries<A> {
    accumulator: A,
    /// Observations offered: those that the accumulator refuses count too, or a full one would
    /// never close.
    offered: u64,
    earliest_ns: i64,
    latest_ns: i64,
    /// Of the last observation, by the receiver's clock.
    arrived_ns: i64,
}

impl<A> OpenSeries<A> {
    fn close<K>(self, key: SeriesKey<K>, reason: CloseReason) -> ClosedWindow<K, A> {
        let mut series = WindowSeries::default();
        series.push((key, self.accumulator));
        ClosedWindow { sequence: 0, start_ns: self.earliest_ns, end_ns: self.latest_ns, reason, series }
    }
}

impl<K, A> CountWindows<K, A>
where
    K: Hash + Eq + Clone,
    A: Accumulator,
{
    pub(super) fn new(size: u64, config: &WindowConfig) -> Self {
        Self {
            size,
            idle_ns: config.idle_ns,
            open: SeriesTable::new(config.max_series),
            complete: Vec::new(),
            begun: 0,
            flushed_to: None,
        }
    }

    pub(super) fn observe<D: FnMut(usize, Outcome), S: BuildHasher>(
        &mut self,
        series_number: u32,
        interner: &mut Interner<K, S>,
        run: &mut Run<'_, D>,
        now_ns: i64,
        factory: &impl AccumulatorFactory<Accumulator = A>,
    ) {
        while let Some((time, _)) = run.next_number() {
            let begun = &mut self.begun;
            let (series, folded) = self.open.entry(series_number, interner, |series_hash| {
                *begun += 1;
                OpenSeries {
                    accumulator: factory.create(series_hash, *begun),
                    offered: 0,
                    earliest_ns: time,
                    latest_ns: time,
                    arrived_ns: now_ns,
                }
            });
            let missing = usize::try_from(self.size - series.offered).unwrap_or(usize::MAX);
            let rest = &run.values[run.at..];
            let numbers = rest.iter().take(missing).take_while(|value| !value.is_nan());
            let length = numbers.count();
            for &time in &run.times_ns[run.at..run.at + length] {
                series.earliest_ns = series.earliest_ns.min(time);
                series.latest_ns = series.latest_ns.max(time);
            }
            series.arrived_ns = now_ns;
            series.offered += length as u64;
            run.absorb(length, &mut series.accumulator, folded);
            if series.offered == self.size
                && let Some((key, series)) = self.open.remove(series_number, interner)
            {
                self.complete.push(series.close(key, CloseReason::Complete));
            }
        }
    }

    pub(super) fn take_complete(&mut self) -> Vec<ClosedWindow<K, A>> {
        std::mem::take(&mut self.complete)
    }

    pub(super) fn close_idle<S: BuildHasher>(
        &mut self,
        now_ns: i64,
        interner: &mut Interner<K, S>,
    ) -> Vec<ClosedWindow<K, A>> {
        let idle_ns = self.idle_ns;
        self.close_if(interner, CloseReason::Idle, |series| {
            // A clock that was set back must not delay the flush by the step: wait anew.
            series.arrived_ns = series.arrived_ns.min(now_ns);
            has_passed(series.arrived_ns, idle_ns, now_ns)
        })
    }

    pub(super) fn close_all<S: BuildHasher>(&mut self, interner: &mut Interner<K, S>) -> Vec<ClosedWindow<K, A>> {
        self.close_if(interner, CloseReason::Shutdown, |_| true)
    }

    fn close_if<S: BuildHasher>(
        &mut self,
        interner: &mut Interner<K, S>,
        reason: CloseReason,
        wanted: impl FnMut(&mut OpenSeries<A>) -> bool,
    ) -> Vec<ClosedWindow<K, A>> {
        let mut closed = self.take_complete();
        let from = self.flushed_to.filter(|(_, why)| *why == reason).map_or(0, |(place, _)| place);
        let (removed, next) = self.open.remove_some(from, interner, wanted);
        self.flushed_to = next.map(|place| (place, reason));
        closed.extend(removed.into_iter().map(|(key, series)| series.close(key, reason)));
        closed
    }

    pub(super) fn is_flushing(&self) -> bool {
        self.flushed_to.is_some()
    }

    pub(super) fn open_series(&self) -> usize {
        self.open.len()
    }

    pub(super) fn retained_bytes(&self) -> usize {
        let open = self.open.values();
        open.map(|series| series.accumulator.retained_bytes()).sum()
    }
}

/// Whether `now_ns` is at least `wait_ns` after `since_ns`.
pub(super) fn has_passed(since_ns: i64, wait_ns: u64, now_ns: i64) -> bool {
    since_ns.saturating_add_unsigned(wait_ns) <= now_ns
}
