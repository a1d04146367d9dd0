//! The windows of one measure.

use catchment_columns::quantile::{Fate, Observations, SeriesKey, TimeSource, observe};
use catchment_columns::{ColumnsError, OtapArrowRecords};
use catchment_quantile::accumulator::{AccumulatorConfig, QuantileAccumulator};
use catchment_quantile::window::{self, ClosedWindow, Outcome, WindowConfig, WindowSpec, Windows};

use super::config::MeasureConfig;

/// What a window is known by while it is open.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum OpenWindow {
    /// All series of a measure, by the start of the window.
    Tumbling { measure: usize, start_ns: i64 },
    /// One series of a measure.
    Count { measure: usize, series: window::SeriesKey<SeriesKey> },
}

/// A window that has closed.
pub(super) type Closed = ClosedWindow<SeriesKey, QuantileAccumulator>;

/// A measure with its open windows.
pub(super) struct Measure {
    pub(super) config: MeasureConfig,
    index: usize,
    spec: WindowSpec,
    windows: Windows<SeriesKey, AccumulatorConfig>,
}

/// What one batch did to the windows.
#[derive(Debug, Default)]
pub(super) struct Offered {
    /// Tumbling windows that observations of the batch went into.
    pub(super) starts: Vec<i64>,
    /// Series of count windows that observations of the batch went into, with their number.
    pub(super) counted: Vec<(window::SeriesKey<SeriesKey>, u64)>,
    /// Windows that closed.
    pub(super) closed: Vec<Closed>,
    /// What became of each item.
    pub(super) fates: Vec<Fate>,
    /// Observations that went into the overflow series.
    pub(super) overflow_folded: u64,
}

impl Measure {
    pub(super) fn new(
        index: usize,
        config: MeasureConfig,
        window: WindowConfig,
        accumulators: AccumulatorConfig,
    ) -> Result<Self, window::WindowError> {
        Ok(Self { config, index, spec: window.spec, windows: Windows::new(window, accumulators)? })
    }

    /// Offers what `records` hold to the windows.
    pub(super) fn offer(
        &mut self,
        records: &OtapArrowRecords,
        clock: TimeSource,
        now_ns: i64,
    ) -> Result<Offered, ColumnsError> {
        let observations = observe(records, &self.config.source, &self.config.group_by, clock, now_ns)?;
        Ok(self.offer_observations(observations, now_ns))
    }

    fn offer_observations(&mut self, observations: Observations, now_ns: i64) -> Offered {
        let Observations { values, times, series, items, keys, fates } = observations;
        let mut offered = Offered { fates, ..Offered::default() };
        // Series by series: one look-up for each run.
        let mut order: Vec<u32> = (0..u32::try_from(series.len()).unwrap_or(u32::MAX)).collect();
        order.sort_by_key(|at| series[*at as usize]);
        let (mut run_values, mut run_times, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
        for run in order.chunk_by(|a, b| series[*a as usize] == series[*b as usize]) {
            run_values.clear();
            run_times.clear();
            dropped.clear();
            dropped.resize(run.len(), false);
            run_values.extend(run.iter().map(|at| values[*at as usize]));
            run_times.extend(run.iter().map(|at| times[*at as usize]));
            let key = &keys[series[run[0] as usize] as usize];
            let tally = self.windows.observe_run(key, &run_times, &run_values, now_ns, |at, outcome| {
                dropped[at] = true;
                offered.fates[items[run[at] as usize] as usize] = fate(outcome);
            });
            offered.overflow_folded += tally.overflow_folded;
            match self.spec {
                WindowSpec::Tumbling { size_ns, .. } => {
                    let size = i64::try_from(size_ns).unwrap_or(i64::MAX).max(1);
                    let used = run_times.iter().zip(&dropped).filter(|(_, dropped)| !**dropped);
                    for (time, _) in used {
                        let start = time.div_euclid(size).saturating_mul(size);
                        if offered.starts.last() != Some(&start) {
                            offered.starts.push(start);
                        }
                    }
                }
                WindowSpec::Count(_) => {
                    let folded = tally.overflow_folded + tally.overflow_full > 0;
                    let series =
                        if folded { window::SeriesKey::Overflow } else { window::SeriesKey::Series(key.clone()) };
                    // Observations that a full accumulator refused count towards the window too.
                    offered.counted.push((series, tally.used + tally.full));
                }
            }
        }
        offered.starts.sort_unstable();
        offered.starts.dedup();
        offered.closed = self.windows.poll_closed();
        offered
    }

    /// Closes what has seen nothing for the idle time.
    pub(super) fn flush_idle(&mut self, now_ns: i64) -> Vec<Closed> {
        self.windows.flush_idle(now_ns)
    }

    /// Closes everything.
    pub(super) fn flush_all(&mut self) -> Vec<Closed> {
        self.windows.flush_all()
    }

    /// Series in open windows.
    pub(super) fn open_series(&self) -> usize {
        self.windows.open_series()
    }

    /// The name that a closed window had while it was open.
    pub(super) fn name_of(&self, closed: &Closed) -> Option<OpenWindow> {
        match self.spec {
            WindowSpec::Tumbling { .. } => {
                Some(OpenWindow::Tumbling { measure: self.index, start_ns: closed.start_ns })
            }
            WindowSpec::Count(_) => {
                let (series, _) = closed.series.first()?;
                Some(OpenWindow::Count { measure: self.index, series: series.clone() })
            }
        }
    }
}

const fn fate(outcome: Outcome) -> Fate {
    match outcome {
        Outcome::Used | Outcome::OverflowFolded => Fate::Observed,
        Outcome::Late => Fate::Late,
        Outcome::Future => Fate::Future,
        Outcome::NotANumber => Fate::NotANumber,
        Outcome::Full => Fate::Full,
    }
}
