//! Configuration of the lanes exporter.

use std::num::NonZeroUsize;
use std::time::Duration;

use catchment_delivery::lane::LaneSettings;
use catchment_delivery::outcome::ResourceExhausted;
use catchment_delivery::route::LaneKey;
use catchment_delivery::wire::compress::Compression;
use otel_arrow_dfe_config::error::Error;
use serde::Deserialize;
use serde_json::Value;

use crate::config;

mod client;
mod raw;
#[cfg(test)]
mod tests;

pub(super) use client::{Client, HttpClient};

use raw::{Codec, Layer, Raw};

/// What is spoken with the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Protocol {
    /// OTAP streams over gRPC.
    Otap,
    /// OTLP over gRPC.
    OtlpGrpc,
    /// OTLP over HTTP.
    OtlpHttp,
}

/// The checked configuration.
#[derive(Debug, Clone)]
pub(super) struct Config {
    pub(super) protocol: Protocol,
    pub(super) client: Client,
    pub(super) count: NonZeroUsize,
    pub(super) key: LaneKey,
    pub(super) lane: LaneSettings,
    /// Retries a second and at once, of all lanes together.
    pub(super) budget: Option<(f64, u32)>,
    /// A request whose time for retries is over must not be handed in again.
    pub(super) exhausted_is_permanent: bool,
    pub(super) resource_exhausted: ResourceExhausted,
    pub(super) max_request_bytes: usize,
    pub(super) max_response_bytes: usize,
    /// Of messages.
    pub(super) compression: Compression,
    /// Level of zstd inside Arrow's messages.
    pub(super) ipc_level: Option<i32>,
    pub(super) stream: Stream,
    pub(super) max_connection_age: Option<Duration>,
    /// How long before a deadline the lanes stop.
    pub(super) margin: Duration,
    /// How long the lanes go on when the input ends and no deadline is known.
    pub(super) drain_timeout: Duration,
}

/// Settings of OTAP streams.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    pub(super) status_timeout: Duration,
    pub(super) max_lifetime: Option<Duration>,
    pub(super) max_batches: Option<u64>,
    pub(super) close_timeout: Duration,
    /// Falls back on OTLP for so long.
    pub(super) downgrade: Option<Duration>,
}

const MILLISECOND: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// Longest attempt where the configuration does not say.
const OTLP_ATTEMPT: Duration = Duration::from_secs(10);
const OTAP_ATTEMPT: Duration = Duration::from_secs(30);

/// Checks a time, and says it in words if it is wrong.
fn time(key: &str, value: Duration, low: Duration, high: Duration) -> Result<(), Error> {
    if value < low || value > high {
        return Err(config::invalid(format!("config.{key}: {value:?} is out of range, expected {low:?} to {high:?}")));
    }
    Ok(())
}

impl Config {
    /// Reads and checks the configuration.
    ///
    /// # Errors
    /// Names the key at fault and what would be right.
    pub(super) fn parse(value: &Value) -> Result<Self, Error> {
        let raw: Raw = config::parse(value)?;
        let client = Client::parse(raw.protocol, raw.client.clone())?;
        let is_otap = raw.protocol == Protocol::Otap;
        if !is_otap && raw.stream.is_some() {
            return Err(config::invalid("config.stream: belongs to `protocol: otap`"));
        }
        let key = raw.lanes.key.0.clone();
        let count = match (&key, raw.lanes.count) {
            (LaneKey::Single, None | Some(1)) => 1,
            (LaneKey::Single, Some(count)) => {
                return Err(config::invalid(format!("config.lanes.count: {count}, expected 1 with `key: single`")));
            }
            (_, count) => count.unwrap_or(4),
        };
        config::within("lanes.count", count, 1, 1_024)?;
        let attempt = raw.request.attempt_timeout.unwrap_or(if is_otap { OTAP_ATTEMPT } else { OTLP_ATTEMPT });
        time("request.attempt_timeout", attempt, MILLISECOND, HOUR)?;
        config::within("request.max_bytes", raw.request.max_bytes, 1_024, 1 << 30)?;
        config::within("request.max_response_bytes", raw.request.max_response_bytes, 1_024, 1 << 30)?;
        time("drain.margin", raw.drain.margin, Duration::ZERO, Duration::from_secs(60))?;
        time("drain.timeout", raw.drain.timeout, Duration::ZERO, HOUR)?;
        if let Some(age) = raw.connection.max_age {
            time("connection.max_age", age, Duration::from_secs(1), 7 * DAY)?;
        }
        let (compression, ipc_level) = compression(&raw.compression, is_otap)?;
        Ok(Self {
            protocol: raw.protocol,
            client,
            count: NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN),
            key,
            lane: raw.lane(attempt)?,
            budget: raw.retry.budget()?,
            exhausted_is_permanent: raw.retry.on_exhausted == raw::OnExhausted::Permanent,
            resource_exhausted: match raw.retry.resource_exhausted {
                raw::Exhausted::Retry => ResourceExhausted::Retry,
                raw::Exhausted::Strict => ResourceExhausted::Strict,
            },
            max_request_bytes: raw.request.max_bytes,
            max_response_bytes: raw.request.max_response_bytes,
            compression,
            ipc_level,
            stream: raw.stream.unwrap_or_default().check(attempt)?,
            max_connection_age: raw.connection.max_age,
            margin: raw.drain.margin,
            drain_timeout: raw.drain.timeout,
        })
    }
}

/// Compression of messages, and of the buffers inside those of Arrow: never both.
fn compression(raw: &raw::Compression, is_otap: bool) -> Result<(Compression, Option<i32>), Error> {
    let wrong = |text: &str| Err(config::invalid(format!("config.compression.{text}")));
    let codec = raw.codec.unwrap_or(if is_otap { Codec::Zstd } else { Codec::None });
    if codec == Codec::None && raw.level.is_some() {
        return wrong("level: nothing is compressed, expected no level with `codec: none`");
    }
    let most = if codec == Codec::Gzip { 9 } else { 22 };
    let level = raw.level.unwrap_or(if codec == Codec::Gzip { 6 } else { 1 });
    config::within("compression.level", level, 1, most)?;
    let inside = is_otap && codec == Codec::Zstd;
    match raw.layer.unwrap_or(if inside { Layer::Ipc } else { Layer::Message }) {
        Layer::Ipc if !is_otap => wrong("layer: `ipc` belongs to `protocol: otap`, expected `message`"),
        Layer::Ipc if codec == Codec::Gzip => wrong("layer: Arrow has no gzip, expected `message` or `codec: zstd`"),
        Layer::Ipc => Ok((Compression::None, (codec == Codec::Zstd).then_some(level))),
        Layer::Message => {
            let compression = match codec {
                Codec::None => Compression::None,
                Codec::Zstd => Compression::Zstd(level),
                Codec::Gzip => Compression::Gzip(level.unsigned_abs()),
            };
            Ok((compression, None))
        }
    }
}
