//! What closed windows are sent as, written a series at a time.

use std::hash::{BuildHasher, RandomState};

use catchment_columns::OtapArrowRecords;
use catchment_columns::quantile::carrier::{self, MessageIdentity, SketchMessage, SketchType};
use catchment_columns::quantile::gauges::OVERFLOW;
use catchment_columns::quantile::{ExponentialPoint, KeyValue, Results, SeriesKey, WindowResult};
use catchment_quantile::ExponentialHistogram;
use catchment_quantile::accumulator::{Accumulator, Method, QuantileAccumulator};
use catchment_quantile::run::SortedRun;
use catchment_quantile::window;

use super::config::{Config, Output, Statistic};
use super::measure::{Closed, Measure};
use crate::accounts::NodeName;

/// Series in one output; with more there are several.
const MAX_SERIES: usize = 1_024;
/// Bytes of sketches in one output, roughly: requests beyond a few MiB are refused on the way.
const MAX_BYTES: usize = 2 * 1024 * 1024;
/// Values in one message of sorted values: half a millisecond to sort, half a MiB to send.
const MAX_RUN: usize = 65_536;

/// Numbers the messages of this instance of the node.
pub(super) struct Sender {
    source: String,
    instance: u128,
    sequence: u64,
}

impl Sender {
    /// Sends as `source`, with the core, or as nobody known before.
    pub(super) fn new(name: &NodeName, source: Option<&str>) -> Self {
        let random = RandomState::new();
        let half = |half: u8| u128::from(random.hash_one(half));
        let instance = half(0) << 64 | half(1);
        let source = match source {
            Some(source) => format!("{source}/{}", name.core),
            None => format!("{instance:032x}/{}", name.core),
        };
        Self { source, instance, sequence: 0 }
    }

    pub(super) fn next(&mut self, part: usize, parts: usize) -> MessageIdentity {
        self.sequence += 1;
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        MessageIdentity {
            source: self.source.clone(),
            instance: self.instance,
            part: number(part),
            parts: number(parts),
            sequence: self.sequence,
        }
    }
}

/// The message of a window in which nothing was observed.
pub(super) fn nothing(
    (metric, unit): (&str, &str),
    (start_ns, end_ns): (i64, i64),
    sources: Option<(u32, u32)>,
    sender: &mut Sender,
) -> SketchMessage {
    SketchMessage {
        metric: metric.to_owned(),
        unit: unit.to_owned(),
        series: Vec::new(),
        start_unix_nano: start_ns,
        end_unix_nano: end_ns,
        sketch: SketchType::Run,
        envelope: SortedRun::default().to_bytes(),
        count: 0,
        min: None,
        max: None,
        sum: None,
        dropped: Vec::new(),
        sources,
        switched: false,
        identity: Some(sender.next(0, 1)),
    }
}

/// Messages that a series makes: one, or more if it has many exact values.
fn parts(values: &QuantileAccumulator) -> usize {
    values.num_exact().map_or(1, |kept| usize::try_from(kept).unwrap_or(usize::MAX).div_ceil(MAX_RUN).max(1))
}

/// Which of the messages of a window and measure come next.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Parts {
    next: usize,
    all: usize,
}

impl Parts {
    /// Counts the messages of one more series.
    pub(super) fn count(&mut self, values: &QuantileAccumulator) {
        self.all += parts(values);
    }
}

/// One output under construction.
pub(super) enum Batch {
    /// Gauge or summary points, with the number of series.
    Points(Box<Results>, usize),
    /// Sketches, with their bytes. What was full before them comes first.
    Sketches { full: Vec<Vec<SketchMessage>>, messages: Vec<SketchMessage>, bytes: usize },
}

impl Batch {
    pub(super) fn new(output: Output) -> Self {
        match output {
            Output::Gauge | Output::Summary | Output::ExponentialHistogram => Self::Points(Box::default(), 0),
            Output::Sketch => Self::sketches(Vec::new()),
        }
    }

    fn sketches(messages: Vec<SketchMessage>) -> Self {
        Self::Sketches { full: Vec::new(), messages, bytes: 0 }
    }

    /// Takes out what is not to be added to any more. A series of many runs can fill several.
    pub(super) fn take_full(&mut self) -> Vec<Self> {
        match self {
            Self::Points(_, series) if *series < MAX_SERIES => Vec::new(),
            Self::Points(results, series) => vec![Self::Points(std::mem::take(results), std::mem::take(series))],
            Self::Sketches { full, .. } => full.drain(..).map(Self::sketches).collect(),
        }
    }

    /// Adds a message.
    pub(super) fn add_message(&mut self, message: SketchMessage) {
        let Self::Sketches { full, messages, bytes } = self else { return };
        let more = message.envelope.len();
        if messages.len() >= MAX_SERIES || (!messages.is_empty() && *bytes + more > MAX_BYTES) {
            full.push(std::mem::take(messages));
            *bytes = 0;
        }
        *bytes += more;
        messages.push(message);
    }

    /// Adds the result of a series of `count` observations. Whether it is sent in the form asked for.
    pub(super) fn add_result(
        &mut self,
        result: &WindowResult<'_>,
        output: Output,
        count: u64,
        sum: Option<f64>,
    ) -> bool {
        let Self::Points(results, series) = self else { return true };
        *series += 1;
        match (output, sum) {
            (Output::Summary, Some(sum)) => results.push_summary(result, count, sum),
            _ => {
                results.push(result);
                true
            }
        }
    }

    /// Adds the result of a series with the counts of its observations by magnitude.
    pub(super) fn add_histogram(&mut self, result: &WindowResult<'_>, histogram: &ExponentialHistogram) {
        let Self::Points(results, series) = self else { return };
        *series += 1;
        results.push_exponential(
            result,
            &ExponentialPoint {
                count: histogram.count,
                sum: histogram.sum,
                min: histogram.min,
                max: histogram.max,
                scale: histogram.scale,
                zero_count: histogram.zero_count,
                positive: (histogram.positive.offset, &histogram.positive.counts),
                negative: (histogram.negative.offset, &histogram.negative.counts),
            },
        );
    }

    /// Adds a series of a window. Whether it is sent in the form asked for.
    pub(super) fn add(
        &mut self,
        config: &Config,
        sender: &mut Sender,
        measure: &Measure,
        window: &Closed,
        parts: &mut Parts,
        (series, values): &(window::SeriesKey<SeriesKey>, QuantileAccumulator),
    ) -> bool {
        let key = match series {
            window::SeriesKey::Series(key) => Some(&**key),
            window::SeriesKey::Overflow => None,
        };
        let is_switched = matches!(config.method, Method::Exact { .. }) && values.sketch().is_some();
        match self {
            Self::Points(..) => {
                // A series whose observations were all refused has no quantiles.
                let Ok(found) = values.quantiles(&config.quantiles) else { return true };
                let quantiles: Vec<_> = config.quantiles.iter().copied().zip(found).collect();
                let of_all = (values.count(), values.sum(), values.min(), values.max());
                let statistics: Vec<_> =
                    config.statistics.iter().filter_map(|which| statistic(*which, of_all)).collect();
                let result = WindowResult {
                    name: &measure.config.name,
                    unit: &measure.config.unit,
                    group_by: &measure.config.query.group_by,
                    key,
                    start_unix_nano: window.start_ns,
                    end_unix_nano: window.end_ns,
                    quantiles: &quantiles,
                    statistics: &statistics,
                    exact: !is_switched,
                };
                if config.output == Output::ExponentialHistogram {
                    self.add_histogram(&result, &ExponentialHistogram::of(values, config.max_buckets));
                    return true;
                }
                self.add_result(&result, config.output, values.count(), values.sum())
            }
            Self::Sketches { .. } => {
                for (sketch, envelope, count, min, max, sum) in envelopes(values) {
                    self.add_message(SketchMessage {
                        metric: measure.config.name.clone(),
                        unit: measure.config.unit.clone(),
                        series: labels(measure, key),
                        start_unix_nano: window.start_ns,
                        end_unix_nano: window.end_ns,
                        sketch,
                        envelope,
                        count,
                        min,
                        max,
                        sum,
                        dropped: Vec::new(),
                        sources: None,
                        switched: is_switched,
                        identity: Some(sender.next(parts.next, parts.all)),
                    });
                    parts.next += 1;
                }
                true
            }
        }
    }

    /// The records, if there are any.
    pub(super) fn finish(self) -> Result<Option<OtapArrowRecords>, String> {
        match self {
            Self::Points(results, _) => results.finish().map_err(|error| error.to_string()),
            Self::Sketches { messages, .. } if messages.is_empty() => Ok(None),
            Self::Sketches { messages, .. } => carrier::encode(&messages).map(Some).map_err(|error| error.to_string()),
        }
    }
}

fn labels(measure: &Measure, key: Option<&[KeyValue]>) -> Vec<(String, KeyValue)> {
    match key {
        Some(values) => {
            let paths = measure.config.query.group_by.iter();
            paths.zip(values).map(|(path, value)| (path.output_key(), value.clone())).collect()
        }
        None => vec![(OVERFLOW.to_owned(), KeyValue::Bool(true))],
    }
}

type Envelope = (SketchType, Vec<u8>, u64, Option<f64>, Option<f64>, Option<f64>);

/// The sketch of a series, or its values in sorted runs.
fn envelopes(values: &QuantileAccumulator) -> Vec<Envelope> {
    if let Some(sketch) = values.sketch() {
        let (min, max) = (values.min(), values.max());
        return vec![(SketchType::KllDataSketches, sketch.to_bytes(), values.count(), min, max, values.sum())];
    }
    let all = values.exact().map(|exact| SortedRun::from_exact(&exact)).unwrap_or_default();
    let envelope = |(_, run): (_, SortedRun)| {
        #[allow(clippy::cast_precision_loss, reason = "weights above 2^53 are out of reach")]
        let sum = run.values().zip(run.weights()).map(|(value, weight)| value * weight as f64).sum();
        let sum = (!run.is_empty()).then_some(sum);
        (SketchType::Run, run.to_bytes(), run.n(), run.min(), run.max(), sum)
    };
    all.parts(MAX_RUN).map(envelope).collect()
}

/// Count, sum, minimum and maximum of a series.
pub(super) type OfAll = (u64, Option<f64>, Option<f64>, Option<f64>);

/// A statistic with its suffix, if it is known.
pub(super) fn statistic(which: Statistic, (count, sum, min, max): OfAll) -> Option<(&'static str, f64)> {
    #[allow(clippy::cast_precision_loss, reason = "counts above 2^53 are out of reach")]
    match which {
        Statistic::Count => Some(("count", count as f64)),
        Statistic::Sum => sum.map(|sum| ("sum", sum)),
        Statistic::Min => min.map(|min| ("min", min)),
        Statistic::Max => max.map(|max| ("max", max)),
    }
}
