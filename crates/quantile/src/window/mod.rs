//! Which observations of which series belong together, and when a window is complete.
//!
//! Two shapes of window, see [`WindowSpec`]. Windows of event time close by the *watermark*: the
//! latest event time seen, less the allowed lateness; it never goes back. Closing happens in
//! [`Windows::poll_closed`] and in the flushes only, and an observation is late if and only if its
//! window has closed. So the order of the points within one batch, offered between two polls,
//! decides nothing.
//!
//! Every observation has exactly one [`Outcome`], and [`Counters`] add them up: points in are
//! points used plus points dropped by reason.
//!
//! No clock is read: the caller passes the time of the receiver.

mod closed;
mod count;
mod counters;
mod interner;
mod numbers;
mod run;
mod slot_table;
mod slots;
mod table;
#[cfg(test)]
mod tests;
mod tumbling;

pub use closed::WindowSeries;
pub use counters::{Counters, Outcome};
pub use interner::{SeriesSlot, StaleSlot};
pub use slot_table::SlotTable;
pub use table::SeriesKey;

use std::hash::{BuildHasher, Hash, RandomState};

use crate::accumulator::{Accumulator, AccumulatorFactory};
use count::CountWindows;
use interner::Interner;
use run::Run;
use tumbling::TumblingWindows;

/// Series that may have a number beyond those that open windows can hold.
const SPARE_SERIES: usize = 1024;

/// The shape of windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowSpec {
    /// A window for each series, which the given number of its observations closes.
    Count(u64),
    /// Windows of event time for all series together: half open `[start, end)`, aligned to the
    /// epoch.
    Tumbling {
        /// Length of a window in nanoseconds.
        size_ns: u64,
        /// How far the watermark stays behind the latest event, in nanoseconds.
        allowed_lateness_ns: u64,
        /// An observation further ahead of the receiver's clock than this is dropped, so that one
        /// wrong clock cannot close the windows of all others. In nanoseconds.
        max_future_ns: u64,
    },
}

/// Windows and their limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowConfig {
    /// The shape.
    pub spec: WindowSpec,
    /// The most series with accumulators of their own: in each event time window, or in all count
    /// windows together. Observations of further series share one more, [`SeriesKey::Overflow`].
    pub max_series: usize,
    /// How long nothing must have arrived before [`Windows::flush_idle`] closes a window that the
    /// watermark does not close, in nanoseconds.
    pub idle_ns: u64,
}

/// A configuration that makes no windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// A count window of no observations.
    #[error("count window must have at least 1 observation, got 0")]
    Count,
    /// A window of no time, or of more than event times can express.
    #[error("window size must be between 1 ns and 2^63 - 1 ns, got {size_ns}")]
    Size {
        /// The size given.
        size_ns: u64,
    },
    /// No series allowed, or more than can be numbered.
    #[error("largest number of series must be between 1 and 2^32 - 2, got {max_series}")]
    MaxSeries {
        /// The number given.
        max_series: usize,
    },
}

/// Why a window closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// It is complete: by its count, or by the watermark.
    Complete,
    /// Nothing came for a while.
    Idle,
    /// The node shuts down.
    Shutdown,
}

/// A closed window with what was observed in it. There is at least one series, and each has at
/// least one observation offered.
#[derive(Debug, Clone)]
pub struct ClosedWindow<K, A> {
    /// Number of this window among all that were closed, from 0, in the order of closing.
    pub sequence: u64,
    /// Event time window: its start. Count window: the earliest event time in it.
    pub start_ns: i64,
    /// Event time window: its end, which is not part of it. Count window: the latest event time
    /// in it, which is.
    pub end_ns: i64,
    /// Why it closed.
    pub reason: CloseReason,
    /// The series, in the order of their first observation.
    pub series: WindowSeries<K, A>,
}

/// The open windows of a node.
#[derive(Debug)]
pub struct Windows<K, F: AccumulatorFactory, S = RandomState> {
    shape: Shape<K, F::Accumulator>,
    interner: Interner<K, S>,
    max_series: usize,
    factory: F,
    counters: Counters,
    next_sequence: u64,
}

#[derive(Debug)]
enum Shape<K, A> {
    Count(CountWindows<K, A>),
    Tumbling(TumblingWindows<K, A>),
}

impl<K, A> Shape<K, A>
where
    K: Hash + Eq + Clone,
    A: Accumulator,
{
    /// Room for the series of all open windows, and for as many as the next one may have.
    fn most_numbers(&self, max_series: usize) -> usize {
        let windows = match self {
            Self::Count(_) => 1,
            Self::Tumbling(windows) => windows.open_windows(),
        };
        max_series.saturating_mul(windows + 1).saturating_add(SPARE_SERIES)
    }

    /// Whether a series is in an open window, of those windows that do not say so to the interner.
    fn holds(&self, series: u32) -> bool {
        match self {
            Self::Count(_) => false,
            Self::Tumbling(windows) => windows.hold(series),
        }
    }
}

impl<K, F> Windows<K, F>
where
    K: Hash + Eq + Clone,
    F: AccumulatorFactory,
{
    /// No windows yet; the table of series resists chosen collisions.
    ///
    /// # Errors
    ///
    /// [`WindowError`] names the setting that makes no windows.
    pub fn new(config: WindowConfig, factory: F) -> Result<Self, WindowError> {
        Self::with_hasher(config, factory, RandomState::new())
    }
}

impl<K, F, S> Windows<K, F, S>
where
    K: Hash + Eq + Clone,
    F: AccumulatorFactory,
    S: BuildHasher,
{
    /// No windows yet; series are found with `hasher`.
    ///
    /// # Errors
    ///
    /// [`WindowError`] names the setting that makes no windows.
    pub fn with_hasher(config: WindowConfig, factory: F, hasher: S) -> Result<Self, WindowError> {
        let max_series = config.max_series;
        if !(1..u32::MAX as usize).contains(&max_series) {
            return Err(WindowError::MaxSeries { max_series });
        }
        let shape = match config.spec {
            WindowSpec::Count(0) => return Err(WindowError::Count),
            WindowSpec::Count(observations) => Shape::Count(CountWindows::new(observations, &config)),
            WindowSpec::Tumbling { size_ns, allowed_lateness_ns, max_future_ns } => {
                let size = i64::try_from(size_ns).unwrap_or(0);
                if size == 0 {
                    return Err(WindowError::Size { size_ns });
                }
                let times = (size, allowed_lateness_ns, max_future_ns);
                Shape::Tumbling(TumblingWindows::new(times, &config))
            }
        };
        Ok(Self {
            shape,
            interner: Interner::new(hasher),
            max_series,
            factory,
            counters: Counters::default(),
            next_sequence: 0,
        })
    }

    /// Offers one observation: `value` of series `key` at `time_ns`, arrived at `now_ns` by the
    /// receiver's clock.
    pub fn observe(&mut self, key: &K, time_ns: i64, value: f64, now_ns: i64) -> Outcome {
        let mut outcome = None;
        let tally = self.observe_run(key, &[time_ns], &[value], now_ns, |_, dropped| {
            outcome = Some(dropped);
        });
        match outcome {
            Some(dropped) => dropped,
            None if tally.overflow_folded > 0 => Outcome::OverflowFolded,
            None => Outcome::Used,
        }
    }

    /// Offers observations of one series that arrived together, at the price of one look-up for
    /// each stretch of them in the same window.
    ///
    /// `dropped` is called with the index and the outcome of each one that is not used. What is
    /// returned counts this run only.
    ///
    /// # Panics
    ///
    /// If `times_ns` and `values` differ in length.
    pub fn observe_run(
        &mut self,
        key: &K,
        times_ns: &[i64],
        values: &[f64],
        now_ns: i64,
        dropped: impl FnMut(usize, Outcome),
    ) -> Counters {
        let series = self.number_of(key);
        let tally = self.observe_series(series, (times_ns, values, &[]), now_ns, dropped);
        self.counters += tally;
        tally
    }

    fn number_of(&mut self, key: &K) -> u32 {
        let most = self.shape.most_numbers(self.max_series);
        self.interner.intern(key, most, |series| self.shape.holds(series))
    }

    fn observe_series(
        &mut self,
        series: u32,
        (times_ns, values, weights): (&[i64], &[f64], &[u64]),
        now_ns: i64,
        dropped: impl FnMut(usize, Outcome),
    ) -> Counters {
        assert_eq!(times_ns.len(), values.len(), "each value has one time");
        let mut run = Run { times_ns, values, weights, at: 0, tally: Counters::default(), dropped };
        let interner = &mut self.interner;
        match &mut self.shape {
            Shape::Count(windows) => windows.observe(series, interner, &mut run, now_ns, &self.factory),
            Shape::Tumbling(windows) => windows.observe(series, interner, &mut run, now_ns, &self.factory),
        }
        run.tally
    }

    /// The windows that are complete by now, oldest first. To be called after each batch.
    pub fn poll_closed(&mut self) -> Vec<ClosedWindow<K, F::Accumulator>> {
        let closed = match &mut self.shape {
            Shape::Count(windows) => windows.take_complete(),
            Shape::Tumbling(windows) => windows.close_complete(&mut self.interner),
        };
        self.number(closed)
    }

    /// Closes windows that wait in vain, and gives all that are closed by now.
    ///
    /// If nothing has arrived for the idle time: of event time windows those whose end and
    /// lateness have passed by the receiver's clock, of count windows those of each series that is
    /// idle. Later observations for them are late, or begin the next count window.
    ///
    /// Of very many count windows a call looks at a part: see [`Windows::is_flushing`].
    pub fn flush_idle(&mut self, now_ns: i64) -> Vec<ClosedWindow<K, F::Accumulator>> {
        let closed = match &mut self.shape {
            Shape::Count(windows) => windows.close_idle(now_ns, &mut self.interner),
            Shape::Tumbling(windows) => windows.close_idle(now_ns, &mut self.interner),
        };
        self.number(closed)
    }

    /// Closes the event time windows that end at `end_ns` or before. Later observations for them are
    /// late, also for those in which there were none. Count windows stay as they are.
    pub fn flush_through(&mut self, end_ns: i64) -> Vec<ClosedWindow<K, F::Accumulator>> {
        let closed = match &mut self.shape {
            Shape::Count(_) => return Vec::new(),
            Shape::Tumbling(windows) => windows.close_until(end_ns, &mut self.interner),
        };
        self.number(closed)
    }

    /// Closes all windows, as at shutdown. Later observations for event time windows are late.
    ///
    /// Of very many count windows a call closes a part: see [`Windows::is_flushing`].
    pub fn flush_all(&mut self) -> Vec<ClosedWindow<K, F::Accumulator>> {
        let closed = match &mut self.shape {
            Shape::Count(windows) => windows.close_all(&mut self.interner),
            Shape::Tumbling(windows) => windows.close_all(&mut self.interner),
        };
        self.number(closed)
    }

    /// Whether the last flush has not looked at all windows: another call goes on where it stopped,
    /// so that no call holds the thread for long.
    pub fn is_flushing(&self) -> bool {
        match &self.shape {
            Shape::Count(windows) => windows.is_flushing(),
            Shape::Tumbling(_) => false,
        }
    }

    /// What became of all observations so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The watermark of event time windows, once an observation was used.
    pub fn watermark_ns(&self) -> Option<i64> {
        match &self.shape {
            Shape::Count(_) => None,
            Shape::Tumbling(windows) => windows.watermark(),
        }
    }

    /// Number of series with an accumulator, overflow included, in all open windows.
    pub fn open_series(&self) -> usize {
        match &self.shape {
            Shape::Count(windows) => windows.open_series(),
            Shape::Tumbling(windows) => windows.open_series(),
        }
    }

    /// Bytes of memory of all accumulators in open windows. Visits each.
    pub fn retained_bytes(&self) -> usize {
        match &self.shape {
            Shape::Count(windows) => windows.retained_bytes(),
            Shape::Tumbling(windows) => windows.retained_bytes(),
        }
    }

    /// Numbers the windows that closed.
    fn number(&mut self, mut closed: Vec<ClosedWindow<K, F::Accumulator>>) -> Vec<ClosedWindow<K, F::Accumulator>> {
        let most = self.shape.most_numbers(self.max_series);
        self.interner.next_batch(most, |series| self.shape.holds(series));
        for window in &mut closed {
            window.sequence = self.next_sequence;
            self.next_sequence += 1;
        }
        closed
    }
}
