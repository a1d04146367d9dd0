//! The configuration as it is written.

use std::time::Duration;

use catchment_delivery::lane::{Batching, LaneSettings, OnFull, RetrySettings};
use catchment_delivery::route::LaneKey;
use otel_arrow_dfe_config::error::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{DAY, HOUR, MILLISECOND, Protocol, time};
use crate::config;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    pub(super) protocol: Protocol,
    /// Read by what the protocol needs.
    pub(super) client: Value,
    #[serde(default)]
    pub(super) connection: Connection,
    #[serde(default)]
    pub(super) lanes: Lanes,
    #[serde(default)]
    pub(super) batch: Batch,
    #[serde(default)]
    pub(super) request: Request,
    #[serde(default)]
    pub(super) compression: Compression,
    #[serde(default)]
    pub(super) retry: Retry,
    #[serde(default)]
    pub(super) stream: Option<Stream>,
    #[serde(default)]
    pub(super) drain: Drain,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Connection {
    #[serde(deserialize_with = "some_time")]
    pub(super) max_age: Option<Duration>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Lanes {
    pub(super) count: Option<usize>,
    pub(super) key: Key,
    pub(super) max_queue_batches: usize,
    #[serde(deserialize_with = "config::bytes::deserialize")]
    pub(super) max_queue_bytes: usize,
    pub(super) on_full: Full,
    #[serde(with = "humantime_serde")]
    pub(super) close_timeout: Duration,
}

impl Default for Lanes {
    fn default() -> Self {
        let LaneSettings { max_queue_batches, max_queue_bytes, close_timeout, .. } = LaneSettings::default();
        let (key, on_full) = (Key(LaneKey::Peer), Full::Block);
        Self { count: None, key, max_queue_batches, max_queue_bytes, on_full, close_timeout }
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Full {
    Block,
    Nack,
    DropOldest,
}

/// What decides over the lane of a batch.
#[derive(Debug)]
pub(super) struct Key(pub(super) LaneKey);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let text = String::deserialize(deserializer)?;
        let key = match text.as_str() {
            "peer" => LaneKey::Peer,
            "series" => LaneKey::Series,
            "round_robin" => LaneKey::RoundRobin,
            "single" => LaneKey::Single,
            _ => match text.strip_prefix("header:").map(str::trim).filter(|name| !name.is_empty()) {
                Some(name) => LaneKey::Header(name.to_ascii_lowercase()),
                None => {
                    return Err(D::Error::custom(format!(
                        "`{text}` is no key, expected `peer`, `header:NAME`, `series`, `round_robin` or `single`"
                    )));
                }
            },
        };
        Ok(Self(key))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Batch {
    pub(super) min_items: usize,
    pub(super) max_items: usize,
    #[serde(deserialize_with = "config::bytes::deserialize")]
    pub(super) max_bytes: usize,
    #[serde(with = "humantime_serde")]
    pub(super) max_delay: Duration,
}

impl Default for Batch {
    fn default() -> Self {
        let Batching { min_items, max_items, max_bytes, max_delay } = Batching::default();
        Self { min_items, max_items, max_bytes, max_delay }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Request {
    #[serde(deserialize_with = "config::bytes::deserialize")]
    pub(super) max_bytes: usize,
    #[serde(deserialize_with = "config::bytes::deserialize")]
    pub(super) max_response_bytes: usize,
    #[serde(with = "humantime_serde")]
    pub(super) attempt_timeout: Option<Duration>,
}

impl Default for Request {
    fn default() -> Self {
        Self { max_bytes: 4 << 20, max_response_bytes: 4 << 20, attempt_timeout: None }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Compression {
    pub(super) codec: Option<Codec>,
    pub(super) level: Option<i32>,
    pub(super) layer: Option<Layer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Codec {
    Zstd,
    Gzip,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Layer {
    Ipc,
    Message,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Retry {
    #[serde(with = "humantime_serde")]
    pub(super) initial: Duration,
    #[serde(with = "humantime_serde")]
    pub(super) max: Duration,
    pub(super) multiplier: f64,
    pub(super) jitter: Jitter,
    #[serde(with = "humantime_serde")]
    pub(super) max_server_delay: Duration,
    #[serde(deserialize_with = "some_time")]
    pub(super) max_elapsed: Option<Duration>,
    pub(super) on_exhausted: OnExhausted,
    pub(super) resource_exhausted: Exhausted,
    pub(super) budget: Budget,
}

impl Default for Retry {
    fn default() -> Self {
        let RetrySettings { initial, max, multiplier, max_server_delay, max_elapsed } = RetrySettings::default();
        Self {
            initial,
            max,
            multiplier,
            jitter: Jitter::Full,
            max_server_delay,
            max_elapsed,
            on_exhausted: OnExhausted::Transient,
            resource_exhausted: Exhausted::Retry,
            budget: Budget::default(),
        }
    }
}

/// Waits without jitter would bring all lanes back at one time.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Jitter {
    Full,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OnExhausted {
    Transient,
    Permanent,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Exhausted {
    Strict,
    Retry,
}

/// Retries of all lanes together; 0 a second stands for no limit.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Budget {
    per_second: f64,
    burst: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self { per_second: 10.0, burst: 20 }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Stream {
    #[serde(deserialize_with = "some_time")]
    max_lifetime: Option<Duration>,
    max_batches: Option<u64>,
    #[serde(with = "humantime_serde")]
    status_timeout: Option<Duration>,
    #[serde(with = "humantime_serde")]
    close_timeout: Duration,
    downgrade: Downgrade,
    #[serde(with = "humantime_serde")]
    probe_after: Duration,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            max_lifetime: Some(Duration::from_secs(300)),
            max_batches: None,
            status_timeout: None,
            close_timeout: Duration::from_secs(1),
            downgrade: Downgrade::Auto,
            probe_after: Duration::from_secs(300),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Downgrade {
    Auto,
    Never,
}

impl Stream {
    pub(super) fn check(self, attempt: Duration) -> Result<super::Stream, Error> {
        if let Some(lifetime) = self.max_lifetime {
            time("stream.max_lifetime", lifetime, Duration::from_secs(1), 7 * DAY)?;
        }
        if self.max_batches == Some(0) {
            return Err(config::invalid("config.stream.max_batches: 0, expected at least 1, or the key left out"));
        }
        let status_timeout = self.status_timeout.unwrap_or(attempt);
        if status_timeout.is_zero() || status_timeout > attempt {
            return Err(config::invalid(format!(
                "config.stream.status_timeout: {status_timeout:?}, expected no longer than \
                 `request.attempt_timeout`, which is {attempt:?}, and more than nothing"
            )));
        }
        time("stream.close_timeout", self.close_timeout, Duration::ZERO, Duration::from_secs(60))?;
        time("stream.probe_after", self.probe_after, Duration::from_secs(1), 7 * DAY)?;
        Ok(super::Stream {
            status_timeout,
            max_lifetime: self.max_lifetime,
            max_batches: self.max_batches,
            close_timeout: self.close_timeout,
            downgrade: (self.downgrade == Downgrade::Auto).then_some(self.probe_after),
        })
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Drain {
    #[serde(with = "humantime_serde")]
    pub(super) margin: Duration,
    #[serde(with = "humantime_serde")]
    pub(super) timeout: Duration,
}

impl Default for Drain {
    fn default() -> Self {
        Self { margin: Duration::from_millis(500), timeout: Duration::from_secs(5) }
    }
}

impl Raw {
    /// Settings of every lane.
    pub(super) fn lane(&self, attempt_timeout: Duration) -> Result<LaneSettings, Error> {
        let Self { lanes, batch, retry, .. } = self;
        config::within("lanes.max_queue_batches", lanes.max_queue_batches, 1, 1 << 20)?;
        config::within("lanes.max_queue_bytes", lanes.max_queue_bytes, 1, 1 << 40)?;
        time("lanes.close_timeout", lanes.close_timeout, Duration::ZERO, Duration::from_secs(60))?;
        config::within("batch.max_items", batch.max_items, 1, 65_535)?;
        config::within("batch.min_items", batch.min_items, 0, batch.max_items)?;
        config::within("batch.max_bytes", batch.max_bytes, 1, 1 << 30)?;
        time("batch.max_delay", batch.max_delay, Duration::ZERO, HOUR)?;
        time("retry.initial", retry.initial, MILLISECOND, DAY)?;
        time("retry.max", retry.max, retry.initial, DAY)?;
        config::within("retry.multiplier", retry.multiplier, 1.0, 100.0)?;
        time("retry.max_server_delay", retry.max_server_delay, Duration::ZERO, DAY)?;
        if let Some(elapsed) = retry.max_elapsed {
            time("retry.max_elapsed", elapsed, Duration::ZERO, 7 * DAY)?;
        }
        // The only one there is.
        let Jitter::Full = retry.jitter;
        Ok(LaneSettings {
            max_queue_batches: lanes.max_queue_batches,
            max_queue_bytes: lanes.max_queue_bytes,
            on_full: match lanes.on_full {
                Full::Block => OnFull::Block,
                Full::Nack => OnFull::Nack,
                Full::DropOldest => OnFull::DropOldest,
            },
            batch: Batching {
                min_items: batch.min_items,
                max_items: batch.max_items,
                max_bytes: batch.max_bytes,
                max_delay: batch.max_delay,
            },
            attempt_timeout,
            retry: RetrySettings {
                initial: retry.initial,
                max: retry.max,
                multiplier: retry.multiplier,
                max_server_delay: retry.max_server_delay,
                max_elapsed: retry.max_elapsed,
            },
            close_timeout: lanes.close_timeout,
        })
    }
}

impl Retry {
    pub(super) fn budget(&self) -> Result<Option<(f64, u32)>, Error> {
        let Budget { per_second, burst } = self.budget;
        config::within("retry.budget.per_second", per_second, 0.0, 1e6)?;
        config::within("retry.budget.burst", burst, 1, 1_000_000)?;
        Ok((per_second > 0.0).then_some((per_second, burst)))
    }
}

/// A time, or `none`.
fn some_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    use serde::de::Error;
    use serde::de::IntoDeserializer as _;
    let text = String::deserialize(deserializer)?;
    if text == "none" {
        return Ok(None);
    }
    let read: Result<Duration, serde::de::value::Error> =
        humantime_serde::deserialize(text.as_str().into_deserializer());
    read.map(Some).map_err(|error| D::Error::custom(format!("{error}, expected a time such as `5m`, or `none`")))
}
