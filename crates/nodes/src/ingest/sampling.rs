//! Head sampling in a receiver: the sampler of a core, its settings, and its counts.

use catchment_sampling::{Counts, Decision, DropReason, Facts, Input, Sampler, SamplingConfig, Threshold};
use otel_arrow_dfe_config::error::Error;
use otel_arrow_dfe_engine::context::PipelineContext;
use otel_arrow_dfe_telemetry::instrument::Counter;
use otel_arrow_dfe_telemetry::metrics::{MetricSet, MetricSetSnapshot};
use otel_arrow_dfe_telemetry::reporter::MetricsReporter;
use otel_arrow_dfe_telemetry_macros::metric_set;

use super::seldom::Seldom;
use crate::config;

/// Decides on what has been framed and is not copied yet.
#[derive(Debug)]
pub(crate) struct Sampling {
    sampler: Sampler,
}

impl Sampling {
    /// The sampler of a core.
    ///
    /// # Errors
    /// Names the key at fault and what would be right.
    pub(crate) fn new(settings: &SamplingConfig, input: Input, core: usize) -> Result<Self, Error> {
        let sampler = settings.compile(input, core as u64);
        let sampler = sampler.map_err(|error| config::invalid(format!("config.sampling.{error}")))?;
        Ok(Self { sampler })
    }

    /// Decides on one message: the threshold it has passed if it is kept, nothing if it is dropped.
    #[inline(always)]
    pub(crate) fn decide(&mut self, facts: &impl Facts, time_unix_nano: i64) -> Option<Threshold> {
        match self.sampler.decide(facts, clock(time_unix_nano)) {
            Decision::Keep { weight } => Some(self.sampler.weight(weight).threshold()),
            Decision::Drop { .. } => None,
        }
    }

    /// How many of the next messages are dropped whatever they are; see [`Sampler::drops_ahead`].
    #[inline]
    pub(crate) fn drops_ahead(&self) -> u64 {
        self.sampler.drops_ahead()
    }

    /// Drops so many of them.
    #[inline]
    pub(crate) fn drop_ahead(&mut self, messages: u64) {
        let dropped = self.sampler.drop_ahead(messages);
        debug_assert_eq!(dropped, messages, "no more than there are ahead");
    }

    /// The sampler itself, and its time for what was received then.
    pub(crate) fn at(&mut self, time_unix_nano: i64) -> (&mut Sampler, u64) {
        (&mut self.sampler, clock(time_unix_nano))
    }

    /// All decisions so far.
    pub(crate) fn counts(&self) -> Counts {
        self.sampler.counts()
    }
}

/// The time of receipt as samplers take it. If the clock of the machine goes back, a rate limit begins its window again.
fn clock(time_unix_nano: i64) -> u64 {
    time_unix_nano.max(0).unsigned_abs()
}

/// What was added to a batch, and what a sampler has kept out of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Added {
    /// Items in the batch.
    pub(crate) kept: u64,
    /// Items that a sampler has dropped.
    pub(crate) sampled_out: u64,
}

impl Added {
    /// One item that was dropped.
    pub(crate) const SAMPLED_OUT: Self = Self { kept: 0, sampled_out: 1 };
}

impl From<u64> for Added {
    fn from(kept: u64) -> Self {
        Self { kept, sampled_out: 0 }
    }
}

/// For the account of a receiver: what was dropped, by reason.
pub(crate) fn reasons(counts: &Counts) -> impl Iterator<Item = (&'static str, u64)> {
    DropReason::ALL.into_iter().map(|reason| {
        let name = match reason {
            DropReason::TraceFlag => "sampled out by trace_flag",
            DropReason::Ratio => "sampled out by ratio",
            DropReason::KeyHash => "sampled out by key_hash",
            DropReason::TraceRatio => "sampled out by trace_ratio",
            DropReason::RateLimit => "sampled out by rate_limit",
            DropReason::HardCap => "sampled out by hard_cap",
        };
        (name, counts.dropped_by(reason))
    })
}

/// What the sampler has decided since the last report: `records_seen` is the sum of all others.
#[metric_set(name = "receiver.sampling")]
#[derive(Debug, Default, Clone)]
pub struct SamplingMetrics {
    /// Messages or records decided on.
    #[metric(unit = "{record}")]
    pub records_seen: Counter<u64>,
    /// Those that were kept.
    #[metric(unit = "{record}")]
    pub records_kept: Counter<u64>,
    /// Those of traces that are not sampled.
    #[metric(unit = "{record}")]
    pub records_dropped_trace_flag: Counter<u64>,
    /// Those that `ratio` has not drawn.
    #[metric(unit = "{record}")]
    pub records_dropped_ratio: Counter<u64>,
    /// Those whose key is not among those kept.
    #[metric(unit = "{record}")]
    pub records_dropped_key_hash: Counter<u64>,
    /// Those whose trace is not among those kept.
    #[metric(unit = "{record}")]
    pub records_dropped_trace_ratio: Counter<u64>,
    /// Those that `rate_limit` has not drawn.
    #[metric(unit = "{record}")]
    pub records_dropped_rate_limit: Counter<u64>,
    /// Those above the hard cap of `rate_limit`: no weight makes up for them, so sums are too small by these.
    #[metric(unit = "{record}")]
    pub records_dropped_hard_cap: Counter<u64>,
    /// Stretches of some 33,000 records of `key_hash` in which one key had more than a tenth of them.
    #[metric(unit = "{stretch}")]
    pub heavy_key_stretches: Counter<u64>,
}

/// Turns sums into reports, where there is a sampler.
pub(crate) struct SamplingReports {
    set: Option<MetricSet<SamplingMetrics>>,
    told: Counts,
    heavy_told: Seldom,
}

impl SamplingReports {
    pub(crate) fn new(pipeline: &PipelineContext, is_sampling: bool) -> Self {
        let set = is_sampling.then(|| SamplingMetrics::register(pipeline));
        Self { set, told: Counts::default(), heavy_told: Seldom::default() }
    }

    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self { set: None, told: Counts::default(), heavy_told: Seldom::default() }
    }

    /// Brings the set up to the sums of `counts`, and warns of keys that hold much of them.
    pub(crate) fn update(&mut self, counts: Option<Counts>) {
        let (Some(set), Some(counts)) = (&mut self.set, counts) else { return };
        set.records_seen.add(counts.seen - self.told.seen);
        set.records_kept.add(counts.kept - self.told.kept);
        for reason in DropReason::ALL {
            let counter = match reason {
                DropReason::TraceFlag => &mut set.records_dropped_trace_flag,
                DropReason::Ratio => &mut set.records_dropped_ratio,
                DropReason::KeyHash => &mut set.records_dropped_key_hash,
                DropReason::TraceRatio => &mut set.records_dropped_trace_ratio,
                DropReason::RateLimit => &mut set.records_dropped_rate_limit,
                DropReason::HardCap => &mut set.records_dropped_hard_cap,
            };
            counter.add(counts.dropped_by(reason) - self.told.dropped_by(reason));
        }
        let (found, told) = (counts.heavy_keys, self.told.heavy_keys);
        set.heavy_key_stretches.add(found.stretches - told.stretches);
        if found.stretches > told.stretches && self.heavy_told.now() {
            otel_arrow_dfe_telemetry::otel_warn!(
                "ingest.sampling_heavy_key",
                percent = found.percent,
                kept = found.kept,
                message = "one key has so many of the records that `key_hash` decides on that sums of what is kept are far off. Put `always_keep` before it for that host, program or source, take more fields into the key, or use `ratio`"
            );
        }
        self.told = counts;
    }

    pub(crate) fn report(&mut self, reporter: &mut MetricsReporter) {
        if let Some(set) = &mut self.set {
            // A full channel keeps the values for the next time.
            let _ = reporter.report(set);
        }
    }

    pub(crate) fn last(&mut self) -> Option<MetricSetSnapshot> {
        self.set.as_mut().map(|set| set.snapshot())
    }
}
