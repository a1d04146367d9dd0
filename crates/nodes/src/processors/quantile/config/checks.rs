//! Settings that all stages have, checked.

use std::time::Duration;

use catchment_quantile::exponential::MIN_BUCKETS;
use otel_arrow_dfe_config::error::Error;
use serde::Deserialize;

use super::super::outputs::Retry;
use super::{Output, Statistic};
use crate::config;

/// When outputs are sent again, as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in super::super) struct RawRetry {
    #[serde(with = "humantime_serde")]
    initial_interval: Duration,
    #[serde(with = "humantime_serde")]
    max_interval: Duration,
    #[serde(with = "humantime_serde")]
    max_elapsed: Duration,
}

impl Default for RawRetry {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { initial_interval: seconds(1), max_interval: seconds(30), max_elapsed: seconds(300) }
    }
}

impl RawRetry {
    /// The checked setting; `None` if nothing is sent again.
    pub(in super::super) fn check(&self) -> Result<Option<Retry>, Error> {
        let Self { initial_interval, max_interval, max_elapsed } = *self;
        if initial_interval.is_zero() {
            return Ok(None);
        }
        config::within("retry.initial_interval (ms)", initial_interval.as_millis(), 1, 86_400_000)?;
        config::within("retry.max_interval (ms)", max_interval.as_millis(), initial_interval.as_millis(), 86_400_000)?;
        config::within(
            "retry.max_elapsed (ms)",
            max_elapsed.as_millis(),
            initial_interval.as_millis(),
            7 * 86_400_000,
        )?;
        Ok(Some(Retry { initial_interval, max_interval, max_elapsed }))
    }
}

fn default_quantiles() -> Vec<f64> {
    vec![0.5, 0.9, 0.95, 0.99]
}

/// Buckets of an exponential histogram on either side of zero, as in the OpenTelemetry SDKs.
const DEFAULT_MAX_BUCKETS: usize = 160;

/// Checks the number of buckets.
pub(in super::super) fn check_max_buckets(max_buckets: Option<usize>, output: Output) -> Result<usize, Error> {
    if max_buckets.is_some() && output != Output::ExponentialHistogram {
        return Err(config::invalid("config.max_buckets: belongs to `output: exponential_histogram`"));
    }
    let max_buckets = max_buckets.unwrap_or(DEFAULT_MAX_BUCKETS);
    config::within("max_buckets", max_buckets, MIN_BUCKETS, 10_000)?;
    Ok(max_buckets)
}

/// A summary or histogram has its count and sum in itself.
fn default_statistics(output: Output) -> Vec<Statistic> {
    if output == Output::Gauge { vec![Statistic::Count] } else { Vec::new() }
}

pub(in super::super) const fn default_max_held_inputs() -> usize {
    65_536
}

pub(in super::super) fn nanos(key: &str, duration: Duration) -> Result<u64, Error> {
    u64::try_from(duration.as_nanos())
        .ok()
        .filter(|nanos| i64::try_from(*nanos).is_ok())
        .ok_or_else(|| config::invalid(format!("config.{key}: too long, expected less than 292 years")))
}

/// A source is known by a name that is not empty.
pub(in super::super) fn check_source(source: Option<&str>) -> Result<(), Error> {
    match source {
        Some("") => Err(config::invalid("config.source: empty, expected a name that no other source has")),
        _ => Ok(()),
    }
}

/// Quantiles in ascending order, each once.
pub(in super::super) fn check_quantiles(quantiles: Option<Vec<f64>>) -> Result<Vec<f64>, Error> {
    let mut quantiles = quantiles.unwrap_or_else(default_quantiles);
    if quantiles.is_empty() {
        return Err(config::invalid("config.quantiles: empty, expected numbers from 0 to 1"));
    }
    for quantile in &quantiles {
        config::within("quantiles", *quantile, 0.0, 1.0)?;
    }
    quantiles.sort_by(f64::total_cmp);
    quantiles.dedup();
    Ok(quantiles)
}

/// Statistics, each once.
pub(in super::super) fn check_statistics(statistics: Option<Vec<Statistic>>, output: Output) -> Vec<Statistic> {
    let mut once: Vec<Statistic> = Vec::new();
    for statistic in statistics.unwrap_or_else(|| default_statistics(output)) {
        if !once.contains(&statistic) {
            once.push(statistic);
        }
    }
    once
}
