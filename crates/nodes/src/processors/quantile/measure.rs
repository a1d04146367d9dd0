//! The windows of one measure.

use catchment_columns::OtapArrowRecords;
use catchment_columns::quantile::{Fate, Grouped, Observations, OtlpSignal, Reader, Run, SeriesKey};
use catchment_quantile::accumulator::{AccumulatorConfig, QuantileAccumulator};
use catchment_quantile::window::{
    self, ClosedWindow, Counters, Outcome, SeriesSlot, SlotTable, StaleSlot, WindowConfig, WindowSpec, Windows,
};

use super::config::{AnnounceEmpty, MeasureConfig};
use super::silence::{Empty, Silence};

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

/// One input, in the form in which it came.
#[derive(Debug, Clone, Copy)]
pub(super) enum Input<'a> {
    /// Records, with ids plain or as sent.
    Records(&'a OtapArrowRecords),
    /// The bytes of an OTLP request.
    Otlp(OtlpSignal, &'a bytes::Bytes),
}

/// A measure with its open windows.
pub(super) struct Measure {
    pub(super) config: MeasureConfig,
    index: usize,
    spec: WindowSpec,
    windows: Windows<SeriesKey, AccumulatorConfig>,
    silence: Option<Silence>,
    reader: Reader,
    /// Used again from input to input.
    observations: Observations,
    grouped: Grouped,
    slots: Slots,
}

/// The slots of series in the windows. Used again from input to input.
#[derive(Debug, Default)]
struct Slots {
    table: SlotTable,
    /// Of each series of the input.
    of_series: Vec<SeriesSlot>,
    /// Of each observation.
    of_rows: Vec<SeriesSlot>,
}

/// With fewer observations for each series of an input they are taken in as they come: to bring those of a series
/// together costs more than it saves.
const ROWS_PER_SERIES: usize = 16;

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
    /// Points of histograms and summaries, which are not observed.
    pub(super) other_points: u64,
    /// Observations that went into the overflow series.
    pub(super) overflow_folded: u64,
    /// Windows without observations that are over.
    pub(super) empty: Empty,
}

impl Measure {
    pub(super) fn new(
        index: usize,
        config: MeasureConfig,
        window: WindowConfig,
        announce: AnnounceEmpty,
        accumulators: AccumulatorConfig,
    ) -> Result<Self, window::WindowError> {
        // As many as are in windows, and some that come once.
        let remembered = window.max_series.saturating_mul(2).saturating_add(1_024);
        Ok(Self {
            index,
            spec: window.spec,
            windows: Windows::new(window, accumulators)?,
            silence: Silence::new(announce, &window),
            reader: Reader::new(config.query.clone(), remembered),
            observations: Observations::default(),
            grouped: Grouped::default(),
            slots: Slots::default(),
            config,
        })
    }

    /// Reads what an input holds, for [`Measure::take`] to offer it to the windows.
    ///
    /// # Errors
    /// Says why the input cannot be read; it has no observations then.
    pub(super) fn read(&mut self, input: Input<'_>, now_ns: i64) -> Result<(), String> {
        let observations = &mut self.observations;
        match input {
            Input::Records(records) => {
                self.reader.read_records(records, now_ns, observations).map_err(|error| error.to_string())
            }
            Input::Otlp(signal, request) => {
                self.reader.read_otlp(signal, request, now_ns, observations).map_err(|error| error.to_string())
            }
        }
    }

    /// Items of the input that was read last.
    pub(super) fn items(&self) -> u64 {
        self.observations.fates.len() as u64 + self.observations.other_points
    }

    /// Whether a series has no room for what was read last.
    pub(super) fn would_fill(&mut self, now_ns: i64) -> bool {
        let observations = std::mem::take(&mut self.observations);
        self.resolve(&observations);
        let Observations { values, times, groups, .. } = &observations;
        let of_series = &self.slots.of_series;
        let full = if self.by_rows(&observations) {
            let row = |(at, group): (usize, &u32)| (of_series[*group as usize], &times[at..=at], &values[at..=at]);
            self.windows.would_fill(groups.iter().enumerate().map(row), now_ns)
        } else {
            let runs = self.grouped.runs(&observations).map(|run| (of_series[run.group], run.times, run.values));
            self.windows.would_fill(runs, now_ns)
        };
        self.observations = observations;
        debug_assert!(full.is_ok(), "{full:?}");
        full.unwrap_or(false)
    }

    /// Reads an input and offers what it holds to the windows.
    #[cfg(test)]
    pub(super) fn offer(&mut self, input: Input<'_>, now_ns: i64) -> Result<Offered, String> {
        self.read(input, now_ns)?;
        Ok(self.take(now_ns))
    }

    /// Offers what was read last to the windows.
    pub(super) fn take(&mut self, now_ns: i64) -> Offered {
        let mut observations = std::mem::take(&mut self.observations);
        let offered = self.offer_observations(&mut observations, now_ns);
        self.observations = observations;
        offered
    }

    /// Looks up the slots of all series.
    fn resolve(&mut self, observations: &Observations) {
        let (reader, slots) = (&self.reader, &mut self.slots);
        let key = |number| reader.series(number);
        let series = &observations.series;
        slots.table.resolve(&mut self.windows, reader.generation(), series, key, &mut slots.of_series);
    }

    /// Whether observations are taken in as they come.
    fn by_rows(&self, observations: &Observations) -> bool {
        let few = observations.values.len() < observations.series.len().saturating_mul(ROWS_PER_SERIES);
        few && matches!(self.spec, WindowSpec::Tumbling { .. }) && observations.weights.is_empty()
    }

    fn offer_observations(&mut self, observations: &mut Observations, now_ns: i64) -> Offered {
        let fates = std::mem::take(&mut observations.fates);
        let mut offered = Offered { fates, other_points: observations.other_points, ..Offered::default() };
        self.resolve(observations);
        if self.by_rows(observations) {
            self.offer_rows(observations, now_ns, &mut offered);
        } else {
            let mut grouped = std::mem::take(&mut self.grouped);
            for run in grouped.runs(observations) {
                self.offer_run(&run, now_ns, &mut offered);
            }
            self.grouped = grouped;
        }
        offered.starts.sort_unstable();
        offered.starts.dedup();
        offered.closed = self.windows.poll_closed();
        offered.empty = self.empty(&offered.closed);
        offered
    }

    /// Offers observations in the order in which they came.
    fn offer_rows(&mut self, observations: &Observations, now_ns: i64, offered: &mut Offered) {
        let Observations { values, times, items, groups, .. } = observations;
        let Slots { of_series, of_rows, .. } = &mut self.slots;
        of_rows.clear();
        of_rows.extend(groups.iter().map(|group| of_series[*group as usize]));
        let mut dropped: Vec<usize> = Vec::new();
        let fates = &mut offered.fates;
        let tally = self.windows.observe_rows(of_rows, times, values, now_ns, |at, outcome| {
            dropped.push(at);
            fates[items[at] as usize] = fate(outcome);
        });
        offered.overflow_folded += fresh(tally).overflow_folded;
        self.touch(times, dropped, offered);
    }

    /// Offers observations of one series.
    fn offer_run(&mut self, run: &Run<'_>, now_ns: i64, offered: &mut Offered) {
        let Run { group, values, times, items, weights } = *run;
        let mut dropped: Vec<usize> = Vec::new();
        let fates = &mut offered.fates;
        let note = |at: usize, outcome| {
            dropped.push(at);
            fates[items[at] as usize] = fate(outcome);
        };
        let slot = self.slots.of_series[group];
        let tally = fresh(if weights.is_empty() {
            self.windows.observe_slice(slot, times, values, now_ns, note)
        } else {
            self.windows.observe_weighted(slot, (times, values, weights), now_ns, note)
        });
        offered.overflow_folded += tally.overflow_folded;
        match self.spec {
            WindowSpec::Tumbling { .. } => self.touch(times, dropped, offered),
            WindowSpec::Count(_) => offered.counted.push(counted(self.windows.key(slot), &tally)),
        }
    }

    /// Notes the windows of the observations that were not dropped.
    fn touch(&self, times: &[i64], dropped: Vec<usize>, offered: &mut Offered) {
        let WindowSpec::Tumbling { size_ns, .. } = self.spec else { return };
        let mut touched = Touched { size: i64::try_from(size_ns).unwrap_or(i64::MAX).max(1), last: None };
        let mut start = 0;
        for end in dropped.into_iter().chain([times.len()]) {
            times[start..end].iter().for_each(|time| touched.add(*time, &mut offered.starts));
            start = end + 1;
        }
    }

    /// Closes what has seen nothing for the idle time. Gives the windows without observations that are over too.
    pub(super) fn flush_idle(&mut self, now_ns: i64) -> (Vec<Closed>, Empty) {
        let mut closed = self.windows.flush_idle(now_ns);
        if let Some(over) = self.silence.as_mut().and_then(|silence| silence.over(now_ns)) {
            closed.extend(self.windows.flush_through(over));
        }
        let empty = self.empty(&closed);
        (closed, empty)
    }

    /// The windows without observations among those that are over, `closed` ones just now.
    fn empty(&mut self, closed: &[Closed]) -> Empty {
        let watermark = self.windows.watermark_ns();
        let Some(silence) = &mut self.silence else { return Empty::default() };
        let starts: Vec<i64> = closed.iter().map(|window| window.start_ns).collect();
        silence.take(&starts, watermark)
    }

    /// Whether it has to look at the clock although nothing comes.
    pub(super) fn looks_at_clock(&self) -> bool {
        self.silence.as_ref().is_some_and(Silence::by_clock)
    }

    /// Bounds of the window with this start.
    pub(super) fn bounds(&self, start_ns: i64) -> (i64, i64) {
        (start_ns, self.silence.as_ref().map_or(start_ns, |silence| silence.end_of(start_ns)))
    }

    /// Closes everything.
    pub(super) fn flush_all(&mut self) -> Vec<Closed> {
        let closed = self.windows.flush_all();
        // What is sent is not told of as empty should there be more.
        let _ = self.empty(&closed);
        closed
    }

    /// Whether the last closing has not looked at all windows: another one goes on.
    pub(super) fn is_flushing(&self) -> bool {
        self.windows.is_flushing()
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

/// The starts of the windows that times lie in.
struct Touched {
    size: i64,
    /// Start of the last one.
    last: Option<i64>,
}

impl Touched {
    #[inline]
    fn add(&mut self, time: i64, starts: &mut Vec<i64>) {
        if let Some(start) = self.last
            && time >= start
            && time.abs_diff(start) < self.size.unsigned_abs()
        {
            return;
        }
        let start = time.div_euclid(self.size).saturating_mul(self.size);
        self.last = Some(start);
        starts.push(start);
    }
}

/// What slots that were resolved just now give.
fn fresh(tally: Result<Counters, StaleSlot>) -> Counters {
    debug_assert!(tally.is_ok(), "{tally:?}");
    tally.unwrap_or_default()
}

/// The series that a run went into, with the observations that count towards its window: those that a full accumulator
/// refused count too.
fn counted(key: Option<&SeriesKey>, tally: &Counters) -> (window::SeriesKey<SeriesKey>, u64) {
    let key = key.filter(|_| tally.overflow_folded + tally.overflow_full == 0);
    let series = key.cloned().map_or(window::SeriesKey::Overflow, window::SeriesKey::Series);
    (series, tally.used + tally.full)
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
