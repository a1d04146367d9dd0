//! What the messages of a window are merged into.

use std::collections::HashMap;

use catchment_columns::quantile::KeyValue;
use catchment_columns::quantile::carrier::{SketchMessage, SketchType};
use catchment_quantile::ExponentialHistogram;
use catchment_quantile::exchange::{MessageId, Part, SourceId, WindowBounds};
use catchment_quantile::kll::KllError;
use catchment_quantile::{
    Criterion, KllSketch, QuantileError, RunError, SketchImageError, SortedRun, asapv1, run, seed,
};
use otel_arrow_dfe_otap::accessory::slots::Key;

use super::super::output::OfAll;

/// What a series is told apart by.
pub(super) type Labels = Vec<(String, KeyValue)>;

/// All series of one metric in one window, of one instance of a source or of all together.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) unit: String,
    pub(super) series: HashMap<Labels, Merged>,
    /// The inputs whose messages are in it.
    pub(super) inputs: Vec<Key>,
    /// Whether it has messages that nobody sends again.
    pub(super) is_accepted: bool,
    /// Of each source, how many sources are in what it sent, of how many.
    pub(super) sources: HashMap<String, (u32, u32)>,
}

/// One series: a sketch, sorted runs, or both where some sources have switched to sketches.
#[derive(Debug, Default)]
pub(super) struct Merged {
    pub(super) sketch: Option<KllSketch>,
    pub(super) runs: Vec<SortedRun>,
    /// Of the runs.
    sum: f64,
    pub(super) dropped: HashMap<String, u64>,
    /// Whether exact values were asked for and some went on as a sketch.
    pub(super) switched: bool,
}

/// Why a message cannot be merged.
#[derive(Debug, thiserror::Error)]
pub(super) enum ContentError {
    #[error("sketch: {0}")]
    Image(#[from] SketchImageError),
    #[error("envelope: {0}")]
    Envelope(#[from] asapv1::EnvelopeError),
    #[error("run: {0}")]
    Run(#[from] RunError),
    #[error("merge: {0}")]
    Merge(#[from] KllError),
    #[error("count must be {held} as in the envelope, got {told}")]
    Count { held: u64, told: u64 },
}

/// What an envelope holds.
enum Opened {
    Sketch(KllSketch),
    Run(SortedRun),
}

/// The identity of a message; messages of others than this project have none.
pub(super) fn identity(message: &SketchMessage) -> Option<MessageId> {
    let identity = message.identity.as_ref()?;
    Some(MessageId {
        source: SourceId { name: identity.source.as_str().into(), instance: identity.instance },
        metric: message.metric.as_str().into(),
        // Windows become complete for all series together.
        series: Box::default(),
        window: WindowBounds { start_ns: message.start_unix_nano, end_ns: message.end_unix_nano },
        part: Part { index: identity.part, of: identity.parts },
        sequence: identity.sequence,
        announces: is_nothing(message),
    })
}

/// Whether a message only says that its source has nothing in the window: it is empty and of no series.
fn is_nothing(message: &SketchMessage) -> bool {
    message.count == 0 && message.series.is_empty()
}

fn open(message: &SketchMessage, seed: u64) -> Result<Opened, ContentError> {
    let (opened, held) = match message.sketch {
        SketchType::Run => {
            let run = SortedRun::from_bytes(&message.envelope)?;
            let held = run.n();
            (Opened::Run(run), held)
        }
        SketchType::KllDataSketches | SketchType::KllAsap => {
            let mut sketch = if message.sketch == SketchType::KllAsap {
                asapv1::read(&message.envelope, seed)?.sketch
            } else {
                KllSketch::from_bytes(&message.envelope, seed)?
            };
            if let (Some(min), Some(max)) = (message.min, message.max) {
                sketch.widen_extremes(min, max);
            }
            if let Some(sum) = message.sum {
                sketch.set_sum(sum);
            }
            let held = sketch.n();
            (Opened::Sketch(sketch), held)
        }
    };
    match held == message.count {
        true => Ok(opened),
        false => Err(ContentError::Count { held, told: message.count }),
    }
}

impl Content {
    /// Takes a message in; changes nothing if it fails.
    pub(super) fn merge(&mut self, message: &SketchMessage, k: u16, seed: u64) -> Result<(), ContentError> {
        let source = message.identity.as_ref().map(|identity| identity.source.clone()).unwrap_or_default();
        // What sources have sent is merged later: their random bits must differ.
        let by_series = seed::stable_hash(&(&message.series, &source));
        let seed = seed::derive(seed, by_series, message.start_unix_nano);
        let opened = open(message, seed)?;
        let empty = message.count == 0;
        if !is_nothing(message) {
            let merged = self.series.entry(message.series.clone()).or_default();
            match opened {
                Opened::Run(run) => {
                    merged.sum += message.sum.unwrap_or(if empty { 0.0 } else { f64::NAN });
                    merged.runs.push(run);
                }
                Opened::Sketch(sketch) => match &mut merged.sketch {
                    Some(whole) => whole.merge(&sketch)?,
                    None => {
                        let mut whole = KllSketch::new(k.max(sketch.k()), seed)?;
                        whole.merge(&sketch)?;
                        merged.sketch = Some(whole);
                    }
                },
            }
            merged.switched |= message.switched;
            for (reason, count) in &message.dropped {
                *merged.dropped.entry(reason.clone()).or_default() += count;
            }
        }
        if self.unit.is_empty() {
            self.unit.clone_from(&message.unit);
        }
        let _ = self.sources.insert(source, message.sources.unwrap_or((1, 1)));
        Ok(())
    }

    /// Takes in what another instance or source has sent of the same window, except for the series: they are given back.
    pub(super) fn join(&mut self, other: Self) -> HashMap<Labels, Merged> {
        if self.unit.is_empty() {
            self.unit = other.unit;
        }
        self.inputs.extend(other.inputs);
        self.is_accepted |= other.is_accepted;
        self.sources.extend(other.sources);
        other.series
    }

    /// Sources that are in it and that were expected, if some are missing: of those that sent `complete` are complete.
    pub(super) fn shortfall(&self, complete: usize, expected: usize) -> Option<(u32, u32)> {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let sent = self.sources.len();
        let got = self.sources.values().fold(0, |sum: u32, (got, _)| sum.saturating_add(*got));
        let of = self.sources.values().fold(0, |sum: u32, (_, of)| sum.saturating_add(*of));
        let got = got.saturating_sub(number(sent.saturating_sub(complete)));
        let of = of.saturating_add(number(expected.saturating_sub(sent)));
        (got < of).then_some((got, of))
    }
}

impl Merged {
    /// Takes in the same series of another instance or source.
    pub(super) fn join(&mut self, other: Self) -> Result<(), KllError> {
        match (&mut self.sketch, other.sketch) {
            (Some(sketch), Some(other)) => sketch.merge(&other)?,
            (None, Some(other)) => self.sketch = Some(other),
            (_, None) => {}
        }
        self.runs.extend(other.runs);
        self.sum += other.sum;
        self.switched |= other.switched;
        for (reason, count) in other.dropped {
            *self.dropped.entry(reason).or_default() += count;
        }
        Ok(())
    }

    /// Where there are sketches too, puts the runs into them.
    pub(super) fn settle(&mut self) -> Result<(), KllError> {
        let Some(sketch) = &mut self.sketch else { return Ok(()) };
        self.switched |= !self.runs.is_empty();
        for run in self.runs.drain(..) {
            let (values, weights): (Vec<f64>, Vec<u64>) = run.values().zip(run.weights()).unzip();
            sketch.update_weighted_slice(&values, &weights)?;
        }
        Ok(())
    }

    /// Count, sum, minimum and maximum; to be called when settled.
    pub(super) fn of_all(&self) -> OfAll {
        if let Some(sketch) = &self.sketch {
            return (sketch.n(), sketch.sum(), sketch.min(), sketch.max());
        }
        let count = self.runs.iter().fold(0, |sum: u64, run| sum.saturating_add(run.n()));
        let min = self.runs.iter().filter_map(SortedRun::min).min_by(f64::total_cmp);
        let max = self.runs.iter().filter_map(SortedRun::max).max_by(f64::total_cmp);
        (count, (!self.sum.is_nan()).then_some(self.sum), min, max)
    }

    /// The counts by magnitude; to be called when settled.
    pub(super) fn histogram(&self, max_buckets: usize) -> ExponentialHistogram {
        let mut histogram = match &self.sketch {
            Some(sketch) => ExponentialHistogram::of_sketch(sketch, max_buckets),
            None => {
                let items = self.runs.iter().flat_map(|run| run.values().zip(run.weights()));
                ExponentialHistogram::of_items(items, max_buckets)
            }
        };
        (_, histogram.sum, histogram.min, histogram.max) = self.of_all();
        histogram
    }

    /// The quantiles; to be called when settled.
    pub(super) fn quantiles(&self, ranks: &[f64]) -> Result<Vec<f64>, QuantileError> {
        match &self.sketch {
            Some(sketch) => sketch.quantiles(ranks, Criterion::Inclusive),
            None => run::quantiles(&self.runs, ranks),
        }
    }
}
