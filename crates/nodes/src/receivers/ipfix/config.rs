//! Configuration of the IPFIX receiver: keys, defaults, checks. What the values mean is in `README.md` beside this file.

mod limits;
mod mapping;
mod sampling;
mod sonic;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use catchment_columns::MAX_BATCH_RECORDS;
use otel_arrow_dfe_config::error::Error;
use serde::Deserialize;
use serde_json::Value;

use super::sources;
use super::sources::netlink::NetlinkConfig;
use super::sources::unix::UnixConfig;
use super::tcp::TcpConfig;
use crate::config;
use crate::ingest::{BatchConfig, MaxInFlight, ReceiveBuffer, ReplayConfig};
pub(super) use limits::{PendingConfig, TemplateScopeName, TimeEncodingName};
pub(super) use mapping::MetricRuleConfig;
pub(super) use sonic::SonicConfig;

/// The checked configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    pub(super) udp: Option<UdpConfig>,
    pub(super) tcp: Option<TcpConfig>,
    pub(super) netlink: Option<NetlinkConfig>,
    pub(super) unix: Option<UnixConfig>,
    pub(super) replay: Option<ReplayConfig>,

    #[serde(default)]
    pub(super) profile: Profile,
    /// Logs of flows and metrics of `sonic_hft` where it is left out.
    pub(super) signal: Option<Signal>,
    #[serde(default)]
    pub(super) emit: Emit,

    #[serde(default)]
    schema: mapping::SchemaName,
    #[serde(default)]
    enumerations: mapping::EnumerationsName,
    #[serde(default)]
    times: mapping::TimesName,
    #[serde(default)]
    pub(super) options: mapping::OptionsName,
    packet_sampling: Option<mapping::SamplingName>,
    /// Which records are kept; as a word what `packet_sampling` is.
    sampling: Option<sampling::SamplingKey>,
    #[serde(default)]
    u64_overflow: mapping::OverflowName,
    #[serde(default)]
    list_semantics: bool,
    #[serde(default)]
    biflow: mapping::BiflowName,
    #[serde(default)]
    exporter_at: mapping::ExporterPlace,
    /// Batches of one exporter address and observation domain each.
    #[serde(default)]
    batch_per_exporter: bool,
    #[serde(default)]
    parent_ids: mapping::ParentIdsName,
    /// Rules of `signal: metrics`.
    #[serde(default)]
    pub(super) metrics: Vec<MetricRuleConfig>,
    #[serde(default)]
    pub(super) sonic: SonicConfig,

    #[serde(default)]
    pub(super) template_scope: TemplateScopeName,
    #[serde(default = "template_lifetime", with = "humantime_serde")]
    pub(super) template_lifetime: Duration,
    #[serde(default)]
    pub(super) pending: PendingConfig,
    pub(super) template_cache: Option<TemplateCacheConfig>,
    #[serde(default)]
    pub(super) time_encoding: TimeEncodingName,
    /// Transport sessions whose state is kept.
    #[serde(default = "max_exporters")]
    pub(super) max_exporters: usize,
    /// Those of them from one address.
    #[serde(default = "max_exporters_per_address")]
    pub(super) max_exporters_per_address: usize,
    /// Templates kept of one exporter.
    #[serde(default = "max_templates")]
    pub(super) max_templates: usize,
    /// Fields in all templates of all exporters together.
    #[serde(default = "max_template_fields")]
    pub(super) max_template_fields: usize,
    /// How long an exporter may be silent before another one may take its place.
    #[serde(default = "exporter_idle", with = "humantime_serde")]
    pub(super) exporter_idle: Duration,
    /// Exporters whose counts are metrics of their own; 0 switches them off.
    #[serde(default = "exporter_metrics")]
    pub(super) exporter_metrics: usize,

    #[serde(default = "batch", deserialize_with = "read_batch")]
    pub(super) batch: BatchConfig,
    /// Bytes of datagrams in batches that were handed on and are still in memory; 0 is no limit.
    #[serde(default)]
    pub(super) max_in_flight_bytes: MaxInFlight,
    /// Datagrams and messages that one source address may send in a second.
    pub(super) max_datagrams_per_second_per_source: Option<u32>,
}

/// UDP: a datagram holds one message or several.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a map such as `{listening_addr: \"0.0.0.0:4739\"}`")]
pub(super) struct UdpConfig {
    #[serde(deserialize_with = "config::address::deserialize")]
    pub(super) listening_addr: SocketAddr,
    /// SO_RCVBUF; 8 MiB where it is left out, as far as the kernel grants it.
    pub(super) receive_buffer: Option<ReceiveBuffer>,
    #[serde(default)]
    pub(super) steering: Steering,
}

/// Which core gets the datagrams of an exporter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Steering {
    /// One core for each source address.
    #[default]
    Address,
    /// One core for each source address and port, as the kernel does by itself.
    Port,
}

/// What the exporters are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Profile {
    /// Exporters of IPFIX, NetFlow v9 and v5.
    #[default]
    Flows,
    /// SONiC's high-frequency telemetry.
    SonicHft,
}

/// What records become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Signal {
    Logs,
    Metrics,
}

/// In which form batches go out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Emit {
    /// Decoded.
    #[default]
    Records,
    /// As they came, to be decoded by the first node that needs it.
    Encoded,
}

/// Where templates are kept over a restart.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a map such as `{path: /var/lib/catchment/templates}`")]
pub(super) struct TemplateCacheConfig {
    pub(super) path: PathBuf,
    /// How often it is written when there is something new.
    #[serde(default = "cache_interval", with = "humantime_serde")]
    pub(super) interval: Duration,
}

const fn cache_interval() -> Duration {
    Duration::from_secs(60)
}

const fn template_lifetime() -> Duration {
    Duration::from_secs(3_600)
}

const fn exporter_idle() -> Duration {
    Duration::from_secs(3_600)
}

const fn max_exporters() -> usize {
    4_096
}

const fn max_exporters_per_address() -> usize {
    1_024
}

const fn max_templates() -> usize {
    2_048
}

const fn max_template_fields() -> usize {
    4_000_000
}

const fn exporter_metrics() -> usize {
    64
}

/// Columns pay with the number of records in a batch, and flow records are small.
fn batch() -> BatchConfig {
    BatchConfig { max_messages: MAX_BATCH_RECORDS, ..BatchConfig::default() }
}

/// Reads a batch whose missing keys have the defaults of this receiver.
fn read_batch<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<BatchConfig, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Partial {
        #[serde(alias = "max_messages")]
        max_records: Option<usize>,
        #[serde(default, with = "partial_bytes")]
        max_bytes: Option<usize>,
        #[serde(default, with = "humantime_serde")]
        max_duration: Option<Duration>,
    }
    let (partial, defaults) = (Partial::deserialize(deserializer)?, batch());
    Ok(BatchConfig {
        max_messages: partial.max_records.unwrap_or(defaults.max_messages),
        max_bytes: partial.max_bytes.unwrap_or(defaults.max_bytes),
        max_duration: partial.max_duration.unwrap_or(defaults.max_duration),
    })
}

/// A number of bytes that may be left out.
mod partial_bytes {
    use serde::Deserializer;

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
        crate::config::bytes::deserialize(deserializer).map(Some)
    }
}

/// Keys that mean nothing to `profile: sonic_hft`.
const KEYS_OF_FLOWS: [&str; 22] = [
    "schema",
    "enumerations",
    "times",
    "options",
    "packet_sampling",
    "u64_overflow",
    "list_semantics",
    "biflow",
    "exporter_at",
    "batch_per_exporter",
    "metrics",
    "template_scope",
    "template_lifetime",
    "pending",
    "template_cache",
    "time_encoding",
    "max_exporters",
    "max_exporters_per_address",
    "max_templates",
    "max_template_fields",
    "exporter_idle",
    "exporter_metrics",
];

impl Config {
    /// Reads and checks the configuration.
    ///
    /// # Errors
    /// Names the key at fault and what would be right.
    pub(super) fn parse(value: &Value) -> Result<Self, Error> {
        let config: Self = config::parse(value)?;
        config.check_keys(value)?;
        let sources = [config.udp.is_some(), config.tcp.is_some(), config.netlink.is_some(), config.unix.is_some()];
        if !sources.contains(&true) && config.replay.is_none() {
            return Err(config::invalid(
                "config: nothing to receive from, expected at least one of `udp`, `tcp`, `netlink`, `unix`, `replay`",
            ));
        }
        if let Some(buffer) = config.udp.as_ref().and_then(|udp| udp.receive_buffer) {
            buffer.check()?;
        }
        if let Some(tcp) = &config.tcp {
            tcp.check()?;
        }
        if let Some(netlink) = &config.netlink {
            netlink.check()?;
        }
        if let Some(unix) = &config.unix {
            unix.check()?;
        }
        if let Some(replay) = &config.replay {
            replay.check()?;
        }
        config::within("batch.max_records", config.batch.max_messages, 1, MAX_BATCH_RECORDS)?;
        config.batch.check()?;
        if let Some(rate) = config.max_datagrams_per_second_per_source {
            config::within("max_datagrams_per_second_per_source", rate, 1, u32::MAX)?;
        }
        config.check_limits()?;
        config.check_mapping()?;
        config.check_sampling()?;
        config.check_sonic()?;
        Ok(config)
    }

    /// Refuses settings of another profile, which would do nothing.
    fn check_keys(&self, value: &Value) -> Result<(), Error> {
        let (others, profile): (&[&str], _) = match self.profile {
            Profile::Flows => (&["sonic"], "sonic_hft"),
            Profile::SonicHft => (&KEYS_OF_FLOWS, "flows"),
        };
        match others.iter().find(|key| value.get(key).is_some()) {
            Some(key) => {
                Err(config::invalid(format!("config.{key}: is of `profile: {profile}`, expected that with it")))
            }
            None => Ok(()),
        }
    }

    /// Refuses what every core would receive as a whole.
    ///
    /// # Errors
    /// Names the key and what would be right.
    pub(super) fn check_cores(&self, cores: usize) -> Result<(), Error> {
        for (key, is_set) in [("netlink", self.netlink.is_some()), ("unix", self.unix.is_some())] {
            if is_set {
                sources::check_cores(key, cores)?;
            }
        }
        Ok(())
    }

    /// What records become.
    pub(super) fn signal(&self) -> Signal {
        self.signal.unwrap_or(match self.profile {
            Profile::Flows => Signal::Logs,
            Profile::SonicHft => Signal::Metrics,
        })
    }
}

#[cfg(test)]
mod tests;
