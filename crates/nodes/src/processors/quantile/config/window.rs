//! The windows.

use std::time::Duration;

use catchment_quantile::window::{WindowConfig, WindowSpec};
use otel_arrow_dfe_config::error::Error;
use serde::Deserialize;

use super::nanos;
use crate::config;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Window {
    pub(super) count: Option<u64>,
    #[serde(default, with = "humantime_serde")]
    pub(super) tumbling: Option<Duration>,
    #[serde(default)]
    pub(super) clock: Clock,
    #[serde(default, with = "humantime_serde")]
    allowed_lateness: Option<Duration>,
    #[serde(default, with = "humantime_serde")]
    max_future: Option<Duration>,
}

/// By what a window without observations is known to be over, and told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum AnnounceEmpty {
    /// By nothing: it is not told of.
    None,
    /// By later observations.
    Watermark,
    /// By these, or by the clock of the machine.
    Clock,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Clock {
    #[default]
    EventTime,
    ObservedTime,
}

impl Window {
    /// By what empty windows are told of: times of receipt do not lag behind the clock, those of events may.
    pub(super) fn announce(&self, asked: Option<AnnounceEmpty>, has_sources: bool) -> Result<AnnounceEmpty, Error> {
        match (has_sources, asked, self.clock) {
            (false, Some(_), _) => Err(config::invalid(
                "config.announce_empty: tells whoever merges sketches, expected with `stage: create` only",
            )),
            (false, None, _) => Ok(AnnounceEmpty::None),
            (true, Some(asked), _) => Ok(asked),
            (true, None, Clock::EventTime) => Ok(AnnounceEmpty::Watermark),
            (true, None, Clock::ObservedTime) => Ok(AnnounceEmpty::Clock),
        }
    }

    /// The checked windows.
    pub(super) fn check(&self, max_series: usize, idle_flush: Duration) -> Result<WindowConfig, Error> {
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
