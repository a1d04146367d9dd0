//! Configuration of the stages that take sketches: `merge` and `estimate`.

use std::collections::BTreeSet;
use std::time::Duration;

use catchment_quantile::exchange::{CollectorConfig, Expected, Restarted, Scope};
use catchment_quantile::kll::MIN_K;
use otel_arrow_dfe_config::error::Error;
use serde::Deserialize;
use serde_json::Value;

use super::super::config::{
    Ack, Output, RawRetry, Statistic, check_max_buckets, check_quantiles, check_source, check_statistics,
    default_max_held_inputs, nanos,
};
use super::super::outputs::Retry;
use crate::config;

/// The checked configuration.
#[derive(Debug, Clone)]
pub(in super::super) struct MergeConfig {
    /// `Sketch` for merging only.
    pub(super) output: Output,
    pub(super) source: Option<String>,
    pub(super) k: u16,
    pub(super) seed: u64,
    pub(super) quantiles: Vec<f64>,
    pub(super) statistics: Vec<Statistic>,
    pub(super) collector: CollectorConfig,
    pub(super) incomplete: Incomplete,
    pub(super) max_buckets: usize,
    pub(super) ack: Ack,
    pub(super) retry: Option<Retry>,
    pub(super) max_held_inputs: usize,
}

/// What becomes of a window when sources are still missing after `max_wait`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Incomplete {
    #[default]
    Emit,
    Drop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    Merge,
    Estimate,
}

/// What a source sends that has restarted.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RestartedSource {
    /// All of an open window again.
    #[default]
    Replace,
    /// What it has seen since.
    Add,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Sources {
    Count(usize),
    Named(BTreeSet<Box<str>>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    stage: Stage,
    source: Option<String>,
    expected_sources: Sources,
    #[serde(default = "default_max_wait", with = "humantime_serde")]
    max_wait: Duration,
    #[serde(default = "default_dedupe_horizon", with = "humantime_serde")]
    dedupe_horizon: Duration,
    #[serde(default)]
    incomplete: Incomplete,
    #[serde(default)]
    restarted_source: RestartedSource,
    #[serde(default = "default_k")]
    k: u16,
    #[serde(default)]
    seed: u64,
    output: Option<Output>,
    quantiles: Option<Vec<f64>>,
    statistics: Option<Vec<Statistic>>,
    max_buckets: Option<usize>,
    #[serde(default)]
    ack: Ack,
    #[serde(default)]
    retry: RawRetry,
    #[serde(default = "default_max_held_inputs")]
    max_held_inputs: usize,
}

const fn default_k() -> u16 {
    catchment_quantile::kll::DEFAULT_K
}

const fn default_max_wait() -> Duration {
    Duration::from_secs(30)
}

const fn default_dedupe_horizon() -> Duration {
    Duration::from_secs(300)
}

impl MergeConfig {
    /// Whether a configuration is for one of these stages.
    pub(in super::super) fn is_meant(value: &Value) -> bool {
        matches!(value.get("stage").and_then(Value::as_str), Some("merge" | "estimate"))
    }

    /// Reads and checks the configuration.
    ///
    /// # Errors
    /// Names the key at fault and what would be right.
    pub(in super::super) fn parse(value: &Value) -> Result<Self, Error> {
        let raw: Raw = config::parse(value)?;
        let answers = raw.output.is_some() || raw.quantiles.is_some() || raw.statistics.is_some();
        let output = match (raw.stage, raw.output) {
            (Stage::Merge, _) if answers => {
                return Err(config::invalid(
                    "config: `output`, `quantiles` and `statistics` belong to `stage: estimate`, found with `merge`",
                ));
            }
            (Stage::Merge, _) => Output::Sketch,
            (Stage::Estimate, Some(Output::Sketch)) => {
                return Err(config::invalid(
                    "config.output: expected `gauge`, `summary` or `exponential_histogram` with `stage: estimate`",
                ));
            }
            (Stage::Estimate, output) => output.unwrap_or_default(),
        };
        if output == Output::ExponentialHistogram && raw.quantiles.is_some() {
            return Err(config::invalid(
                "config.quantiles: found with `output: exponential_histogram`, which has none",
            ));
        }
        if raw.stage == Stage::Estimate && raw.source.is_some() {
            return Err(config::invalid("config.source: names who sends sketches, found with `stage: estimate`"));
        }
        check_source(raw.source.as_deref())?;
        config::within("k", raw.k, MIN_K, u16::MAX)?;
        config::within("max_held_inputs", raw.max_held_inputs, 1, 10_000_000)?;
        config::within("max_wait (ms)", raw.max_wait.as_millis(), 1, 86_400_000)?;
        config::within("dedupe_horizon (ms)", raw.dedupe_horizon.as_millis(), 1, 7 * 86_400_000)?;
        let expected = match raw.expected_sources {
            Sources::Count(count) => {
                config::within("expected_sources", count, 1, 10_000)?;
                Expected::Count(count)
            }
            Sources::Named(names) if names.is_empty() => {
                return Err(config::invalid("config.expected_sources: empty, expected a number or names"));
            }
            Sources::Named(names) => Expected::Named(names),
        };
        Ok(Self {
            output,
            source: raw.source,
            k: raw.k,
            seed: raw.seed,
            quantiles: check_quantiles(raw.quantiles)?,
            statistics: check_statistics(raw.statistics, output),
            collector: CollectorConfig {
                expected,
                scope: Scope::Window,
                restarted: match raw.restarted_source {
                    RestartedSource::Replace => Restarted::Replace,
                    RestartedSource::Add => Restarted::Add,
                },
                max_wait_ns: nanos("max_wait", raw.max_wait)?,
                dedupe_horizon_ns: nanos("dedupe_horizon", raw.dedupe_horizon)?,
                ..CollectorConfig::default()
            },
            incomplete: raw.incomplete,
            max_buckets: check_max_buckets(raw.max_buckets, output)?,
            ack: raw.ack,
            retry: raw.retry.check()?,
            max_held_inputs: raw.max_held_inputs,
        })
    }
}
