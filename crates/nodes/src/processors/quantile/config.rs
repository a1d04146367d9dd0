//! Configuration of the quantile processor.

use std::time::Duration;

use catchment_columns::quantile::gauges::QUANTILE;
use catchment_columns::quantile::{AttributeRef, TextNumbers, TimeSource, ValueSource};
use catchment_quantile::accumulator::{Method, WhenFull};
use catchment_quantile::kll::MIN_K;
use catchment_quantile::window::{WindowConfig, WindowSpec};
use otel_arrow_dfe_config::error::Error;
use serde::Deserialize;
use serde_json::Value;

use crate::config;

/// The checked configuration.
#[derive(Debug, Clone)]
pub(super) struct Config {
    pub(super) method: Method,
    pub(super) seed: u64,
    pub(super) quantiles: Vec<f64>,
    pub(super) statistics: Vec<Statistic>,
    pub(super) window: WindowConfig,
    pub(super) clock: TimeSource,
    pub(super) ack: Ack,
    pub(super) max_held_inputs: usize,
    pub(super) measures: Vec<MeasureConfig>,
}

/// One quantity to take quantiles of.
#[derive(Debug, Clone)]
pub(super) struct MeasureConfig {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) source: ValueSource,
    pub(super) group_by: Vec<AttributeRef>,
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
    method: MethodName,
    #[serde(default = "default_k")]
    k: u16,
    max_values_per_window: Option<u64>,
    when_full: Option<WhenFullName>,
    #[serde(default)]
    seed: u64,
    #[serde(default = "default_quantiles")]
    quantiles: Vec<f64>,
    #[serde(default = "default_statistics")]
    statistics: Vec<Statistic>,
    window: Window,
    #[serde(default = "default_max_series")]
    max_series: usize,
    #[serde(default = "default_idle_flush", with = "humantime_serde")]
    idle_flush: Duration,
    #[serde(default)]
    ack: Ack,
    #[serde(default = "default_max_held_inputs")]
    max_held_inputs: usize,
    measures: Vec<Measure>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MethodName {
    #[default]
    Kll,
    Exact,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WhenFullName {
    #[default]
    SwitchToKll,
    DropNew,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Window {
    count: Option<u64>,
    #[serde(default, with = "humantime_serde")]
    tumbling: Option<Duration>,
    #[serde(default)]
    clock: Clock,
    #[serde(default, with = "humantime_serde")]
    allowed_lateness: Option<Duration>,
    #[serde(default, with = "humantime_serde")]
    max_future: Option<Duration>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Clock {
    #[default]
    EventTime,
    ObservedTime,
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
    group_by: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Text {
    #[default]
    Refuse,
    Number,
}

const fn default_k() -> u16 {
    catchment_quantile::kll::DEFAULT_K
}

/// Values kept of a series in a window, of eight bytes each.
const DEFAULT_MAX_VALUES: u64 = 1_000_000;

fn default_quantiles() -> Vec<f64> {
    vec![0.5, 0.9, 0.95, 0.99]
}

fn default_statistics() -> Vec<Statistic> {
    vec![Statistic::Count]
}

const fn default_max_series() -> usize {
    2_000
}

const fn default_idle_flush() -> Duration {
    Duration::from_secs(5)
}

const fn default_max_held_inputs() -> usize {
    65_536
}

fn nanos(key: &str, duration: Duration) -> Result<u64, Error> {
    u64::try_from(duration.as_nanos())
        .ok()
        .filter(|nanos| i64::try_from(*nanos).is_ok())
        .ok_or_else(|| config::invalid(format!("config.{key}: too long, expected less than 292 years")))
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
        if raw.quantiles.is_empty() {
            return Err(config::invalid("config.quantiles: empty, expected numbers from 0 to 1"));
        }
        for quantile in &raw.quantiles {
            config::within("quantiles", *quantile, 0.0, 1.0)?;
        }
        let mut quantiles = raw.quantiles;
        quantiles.sort_by(f64::total_cmp);
        quantiles.dedup();
        let mut statistics: Vec<Statistic> = Vec::new();
        for statistic in raw.statistics {
            if !statistics.contains(&statistic) {
                statistics.push(statistic);
            }
        }
        if raw.measures.is_empty() {
            return Err(config::invalid("config.measures: empty, expected at least one measure"));
        }
        let measures =
            raw.measures.into_iter().enumerate().map(|(at, m)| m.check(at)).collect::<Result<Vec<_>, _>>()?;
        for (at, measure) in measures.iter().enumerate() {
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
                        WhenFullName::DropNew => WhenFull::Refuse,
                    },
                },
            },
            seed: raw.seed,
            quantiles,
            statistics,
            clock: match raw.window.clock {
                Clock::EventTime => TimeSource::Event,
                Clock::ObservedTime => TimeSource::Observed,
            },
            window: raw.window.check(raw.max_series, raw.idle_flush)?,
            ack: raw.ack,
            max_held_inputs: raw.max_held_inputs,
            measures,
        })
    }
}

impl Window {
    fn check(&self, max_series: usize, idle_flush: Duration) -> Result<WindowConfig, Error> {
        let lateness = self.allowed_lateness.unwrap_or_default();
        let max_future = self.max_future.unwrap_or(Duration::from_secs(300));
        let spec = match (self.count, self.tumbling) {
            (Some(count), None) => {
                config::within("window.count", count, 1, u64::from(u32::MAX))?;
                if self.allowed_lateness.is_some() || self.max_future.is_some() {
                    return Err(config::invalid(
                        "config.window: `allowed_lateness` and `max_future` belong to `tumbling`, found with `count`",
                    ));
                }
                WindowSpec::Count(count)
            }
            (None, Some(size)) => {
                config::within("window.tumbling (ms)", size.as_millis(), 1, 31_536_000_000)?;
                if lateness.as_nanos() > size.as_nanos().saturating_mul(100) {
                    return Err(config::invalid(
                        "config.window.allowed_lateness: more than 100 windows, expected less",
                    ));
                }
                WindowSpec::Tumbling {
                    size_ns: nanos("window.tumbling", size)?,
                    allowed_lateness_ns: nanos("window.allowed_lateness", lateness)?,
                    max_future_ns: nanos("window.max_future", max_future)?,
                }
            }
            _ => {
                return Err(config::invalid(
                    "config.window: expected either `count: <observations>` or `tumbling: <duration>`",
                ));
            }
        };
        Ok(WindowConfig { spec, max_series, idle_ns: nanos("idle_flush", idle_flush)? })
    }
}

impl Measure {
    fn check(self, at: usize) -> Result<MeasureConfig, Error> {
        let attribute = |key: &str, text: &str| {
            text.parse::<AttributeRef>()
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
        let group_by: Vec<AttributeRef> =
            self.group_by.iter().map(|text| attribute("group_by", text)).collect::<Result<_, _>>()?;
        // They stand side by side on the point, whatever place they come from.
        for (index, key) in group_by.iter().enumerate() {
            if key.key == QUANTILE || group_by[..index].iter().any(|other| other.key == key.key) {
                return Err(config::invalid(format!(
                    "config.measures[{at}].group_by: `{key}` would be a second attribute of its name, expected different keys and not `{QUANTILE}`"
                )));
            }
        }
        Ok(MeasureConfig { name: self.name, unit: self.unit, source, group_by })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(key: &str, value: Value) -> Value {
        let mut config = json!({
            "window": {"tumbling": "10s"},
            "measures": [{"name": "bytes", "value_from": "attribute:flow.io.bytes"}],
        });
        config[key] = value;
        config
    }

    fn refused(key: &str, value: Value) -> String {
        Config::parse(&with(key, value)).expect_err("refused").to_string()
    }

    #[test]
    fn defaults_are_those_of_the_docs() {
        let config = Config::parse(&with("seed", json!(1))).expect("valid");
        assert_eq!(config.method, Method::Kll { k: 200 });
        assert_eq!(config.quantiles, [0.5, 0.9, 0.95, 0.99]);
        assert_eq!(config.window.max_series, 2_000);
        assert_eq!(config.ack, Ack::OnEmit);
        let WindowSpec::Tumbling { size_ns, allowed_lateness_ns, .. } = config.window.spec else { panic!("tumbling") };
        assert_eq!((size_ns, allowed_lateness_ns), (10_000_000_000, 0));
    }

    /// Each message names the key and what would be right.
    #[test]
    fn wrong_settings_are_explained() {
        assert!(refused("quantiles", json!([1.5])).contains("config.quantiles: 1.5 is out of range"));
        assert!(refused("k", json!(4)).contains("config.k"));
        assert!(refused("window", json!({})).contains("either `count"));
        assert!(refused("window", json!({"count": 5, "tumbling": "1s"})).contains("either `count"));
        assert!(refused("window", json!({"count": 5, "max_future": "1s"})).contains("found with `count`"));
        assert!(refused("measures", json!([])).contains("config.measures: empty"));
        assert!(refused("measures", json!([{"name": "x"}])).contains("config.measures[0]: expected either"));
        let twice = json!([{"name": "x", "metrics": ["a"]}, {"name": "x", "metrics": ["b"]}]);
        assert!(refused("measures", twice).contains("used twice"));
        assert!(refused("methd", json!("kll")).contains("unknown field `methd`"));
        assert!(refused("method", json!("tdigest")).contains("config.method"));
        assert!(refused("when_full", json!("drop_new")).contains("belong to `method: exact`"));
        let grouped = json!([{"name": "x", "value_from": "a", "group_by": ["b", "resource:b"]}]);
        assert!(refused("measures", grouped).contains("config.measures[0].group_by"));
        let text = json!([{"name": "x", "metrics": ["a"], "text": "number"}]);
        assert!(refused("measures", text).contains("config.measures[0].text"));
    }
}
