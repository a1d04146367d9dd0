//! Configuration of the quantile processor.

mod checks;
mod window;

use std::time::Duration;

use catchment_columns::quantile::gauges::{EXACT, QUANTILE};
use catchment_columns::quantile::{AttributePath, NonFinite, Query, TextNumbers, TimeSource, ValueSource};
use catchment_quantile::accumulator::{Method, WhenFull};
use catchment_quantile::kll::MIN_K;
use catchment_quantile::window::WindowConfig;
use otel_arrow_dfe_config::error::Error;
use serde::Deserialize;
use serde_json::Value;

use super::forward::{Forward, Late};
use super::outputs::Retry;
use crate::config;
pub(super) use checks::{
    RawRetry, check_max_buckets, check_quantiles, check_source, check_statistics, default_max_held_inputs, nanos,
};
pub(super) use window::AnnounceEmpty;
use window::{Clock, Window};

/// The checked configuration.
#[derive(Debug, Clone)]
pub(super) struct Config {
    pub(super) method: Method,
    /// Values kept of a series in a window with an exact method.
    pub(super) max_values: u64,
    /// Whether an input that does not find room is refused.
    pub(super) fail_when_full: bool,
    pub(super) seed: u64,
    pub(super) output: Output,
    /// Whom sketches come from.
    pub(super) source: Option<String>,
    pub(super) quantiles: Vec<f64>,
    pub(super) statistics: Vec<Statistic>,
    pub(super) window: WindowConfig,
    pub(super) announce_empty: AnnounceEmpty,
    /// Of an exponential histogram, on either side of zero.
    pub(super) max_buckets: usize,
    pub(super) forward: Forward,
    pub(super) late: Late,
    pub(super) ack: Ack,
    pub(super) retry: Option<Retry>,
    pub(super) max_held_inputs: usize,
    pub(super) measures: Vec<MeasureConfig>,
}

/// One quantity to take quantiles of.
#[derive(Debug, Clone)]
pub(super) struct MeasureConfig {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) query: Query,
}

/// What a closed window is sent as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Output {
    /// A gauge point for each quantile.
    #[default]
    Gauge,
    /// A summary point for each series.
    Summary,
    /// The sketch or the sorted values of each series, for a merge elsewhere.
    Sketch,
    /// A point of an exponential histogram for each series.
    ExponentialHistogram,
}

/// A number about a window beside its quantiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Statistic {
    Count,
    Sum,
    Min,
    Max,
}

/// When the inputs are acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ack {
    /// When every window that an input went into has been sent and acknowledged.
    #[default]
    OnEmit,
    /// At once.
    OnAccept,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(default)]
    stage: Stage,
    source: Option<String>,
    #[serde(default)]
    method: MethodName,
    #[serde(default = "default_k")]
    k: u16,
    max_values_per_window: Option<u64>,
    when_full: Option<WhenFullName>,
    #[serde(default)]
    seed: u64,
    output: Option<Output>,
    quantiles: Option<Vec<f64>>,
    statistics: Option<Vec<Statistic>>,
    window: Window,
    announce_empty: Option<AnnounceEmpty>,
    #[serde(default = "default_max_series")]
    max_series: usize,
    #[serde(default = "default_idle_flush", with = "humantime_serde")]
    idle_flush: Duration,
    max_buckets: Option<usize>,
    #[serde(default)]
    forward: Forward,
    late: Option<Late>,
    #[serde(default)]
    ack: Ack,
    #[serde(default)]
    retry: RawRetry,
    #[serde(default = "default_max_held_inputs")]
    max_held_inputs: usize,
    measures: Vec<Measure>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    /// Windows and answers in one process.
    #[default]
    All,
    /// Windows, sent as sketches.
    Create,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MethodName {
    #[default]
    Kll,
    Exact,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WhenFullName {
    #[default]
    SwitchToKll,
    DropNew,
    Fail,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Measure {
    name: String,
    #[serde(default)]
    unit: String,
    value_from: Option<String>,
    #[serde(default)]
    metrics: Vec<String>,
    text: Option<Text>,
    #[serde(default)]
    non_finite: NonFiniteName,
    weight_from: Option<String>,
    #[serde(default)]
    group_by: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Text {
    #[default]
    Refuse,
    Number,
    Duration,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum NonFiniteName {
    #[default]
    Drop,
    Keep,
}

const fn default_k() -> u16 {
    catchment_quantile::kll::DEFAULT_K
}

/// Values kept of a series in a window, of eight bytes each.
const DEFAULT_MAX_VALUES: u64 = 1_000_000;

const fn default_max_series() -> usize {
    2_000
}

const fn default_idle_flush() -> Duration {
    Duration::from_secs(5)
}

impl Config {
    /// Reads and checks the configuration.
    ///
    /// # Errors
    /// Names the key at fault and what would be right.
    pub(super) fn parse(value: &Value) -> Result<Self, Error> {
        let raw: Raw = config::parse(value)?;
        config::within("k", raw.k, MIN_K, u16::MAX)?;
        let max_values = raw.max_values_per_window.unwrap_or(DEFAULT_MAX_VALUES);
        config::within("max_values_per_window", max_values, 1, u64::from(u32::MAX))?;
        if matches!(raw.method, MethodName::Kll) && (raw.max_values_per_window.is_some() || raw.when_full.is_some()) {
            return Err(config::invalid(
                "config: `max_values_per_window` and `when_full` belong to `method: exact`, found with kll",
            ));
        }
        config::within("max_series", raw.max_series, 1, 10_000_000)?;
        config::within("max_held_inputs", raw.max_held_inputs, 1, 10_000_000)?;
        config::within("idle_flush (ms)", raw.idle_flush.as_millis(), 100, 86_400_000)?;
        let output = match (raw.stage, raw.output) {
            (Stage::All, output) => output.unwrap_or_default(),
            (Stage::Create, None | Some(Output::Sketch)) if raw.window.count.is_none() => Output::Sketch,
            (Stage::Create, None | Some(Output::Sketch)) => {
                return Err(config::invalid(
                    "config.window: count windows of several sources have nothing in common, expected `tumbling` with `stage: create`",
                ));
            }
            (Stage::Create, Some(_)) => {
                return Err(config::invalid("config.output: expected `sketch` or nothing with `stage: create`"));
            }
        };
        if raw.source.is_some() && output != Output::Sketch {
            return Err(config::invalid("config.source: names who sends sketches, expected with `stage: create` only"));
        }
        check_source(raw.source.as_deref())?;
        if output == Output::Sketch && (raw.quantiles.is_some() || raw.statistics.is_some()) {
            return Err(config::invalid(
                "config: `quantiles` and `statistics` are for whoever merges sketches, found with `output: sketch`",
            ));
        }
        if output == Output::ExponentialHistogram && raw.quantiles.is_some() {
            return Err(config::invalid(
                "config.quantiles: found with `output: exponential_histogram`, which has none",
            ));
        }
        let max_buckets = check_max_buckets(raw.max_buckets, output)?;
        let retry = raw.retry.check()?;
        let late = raw.late.unwrap_or_default();
        if late == Late::SideOutput && raw.window.tumbling.is_none() {
            return Err(config::invalid(
                "config.late: nothing is late in count windows, expected `side_output` with `tumbling`",
            ));
        }
        let fail_when_full = raw.when_full == Some(WhenFullName::Fail);
        if fail_when_full && raw.window.count.is_some_and(|count| count > max_values) {
            return Err(config::invalid(format!(
                "config.window.count: windows of more than the {max_values} values of `max_values_per_window` would refuse \
                 their inputs for ever with `when_full: fail`"
            )));
        }
        let (quantiles, statistics) = (check_quantiles(raw.quantiles)?, check_statistics(raw.statistics, output));
        if raw.measures.is_empty() {
            return Err(config::invalid("config.measures: empty, expected at least one measure"));
        }
        let time = match raw.window.clock {
            Clock::EventTime => TimeSource::Event,
            Clock::ObservedTime => TimeSource::Observed,
        };
        let measures =
            raw.measures.into_iter().enumerate().map(|(at, m)| m.check(at, time)).collect::<Result<Vec<_>, _>>()?;
        for (at, measure) in measures.iter().enumerate() {
            if output == Output::ExponentialHistogram && measure.query.non_finite == NonFinite::Keep {
                return Err(config::invalid(format!(
                    "config.measures[{at}].non_finite: infinite values have no bucket, expected `drop` with \
                     `output: exponential_histogram`"
                )));
            }
            if measures[..at].iter().any(|other| other.name == measure.name) {
                return Err(config::invalid(format!(
                    "config.measures[{at}].name: `{}` is used twice, expected different names",
                    measure.name
                )));
            }
        }
        Ok(Self {
            method: match raw.method {
                MethodName::Kll => Method::Kll { k: raw.k },
                MethodName::Exact => Method::Exact {
                    max_values,
                    when_full: match raw.when_full.unwrap_or_default() {
                        WhenFullName::SwitchToKll => WhenFull::SwitchToKll { k: raw.k },
                        WhenFullName::DropNew | WhenFullName::Fail => WhenFull::Refuse,
                    },
                },
            },
            max_values,
            fail_when_full,
            seed: raw.seed,
            output,
            source: raw.source,
            quantiles,
            statistics,
            announce_empty: raw.window.announce(raw.announce_empty, raw.stage == Stage::Create)?,
            window: raw.window.check(raw.max_series, raw.idle_flush)?,
            max_buckets,
            forward: raw.forward,
            late,
            ack: raw.ack,
            retry,
            max_held_inputs: raw.max_held_inputs,
            measures,
        })
    }
}

impl Measure {
    fn check(self, at: usize, time: TimeSource) -> Result<MeasureConfig, Error> {
        let attribute = |key: &str, text: &str| {
            text.parse::<AttributePath>()
                .map_err(|error| config::invalid(format!("config.measures[{at}].{key}: {error}")))
        };
        if self.name.is_empty() {
            return Err(config::invalid(format!("config.measures[{at}].name: empty, expected the name of the output")));
        }
        let source = match (&self.value_from, self.metrics.as_slice()) {
            (Some(text), []) => ValueSource::LogAttribute {
                attribute: attribute("value_from", text)?,
                text: match self.text.unwrap_or_default() {
                    Text::Refuse => TextNumbers::Refuse,
                    Text::Number => TextNumbers::Decimal,
                    Text::Duration => TextNumbers::Duration,
                },
            },
            (None, [_, ..]) if self.text.is_some() => {
                return Err(config::invalid(format!(
                    "config.measures[{at}].text: belongs to `value_from`, found with `metrics`"
                )));
            }
            (None, [_, ..]) => ValueSource::Metric { names: self.metrics.clone() },
            _ => {
                return Err(config::invalid(format!(
                    "config.measures[{at}]: expected either `value_from: attribute:<key>` (logs) or `metrics: [<name>]`"
                )));
            }
        };
        let group_by: Vec<AttributePath> =
            self.group_by.iter().map(|text| attribute("group_by", text)).collect::<Result<_, _>>()?;
        // They stand side by side on the point, whatever place they come from.
        for (index, path) in group_by.iter().enumerate() {
            let key = path.output_key();
            if key == QUANTILE || key == EXACT || group_by[..index].iter().any(|other| other.output_key() == key) {
                return Err(config::invalid(format!(
                    "config.measures[{at}].group_by: `{path}` would be a second attribute `{key}`, expected different keys and not `{QUANTILE}` or `{EXACT}`"
                )));
            }
        }
        let query = Query {
            source,
            weight_from: self.weight_from.as_deref().map(|text| attribute("weight_from", text)).transpose()?,
            group_by,
            time,
            non_finite: match self.non_finite {
                NonFiniteName::Drop => NonFinite::Drop,
                NonFiniteName::Keep => NonFinite::Keep,
            },
        };
        Ok(MeasureConfig { name: self.name, unit: self.unit, query })
    }
}

#[cfg(test)]
mod tests;
