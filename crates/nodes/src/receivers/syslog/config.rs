//! Configuration of the syslog receiver.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use catchment_columns::ParentIds;
use catchment_columns::syslog::{MAX_PREFIX_BYTES, NonUtf8, RowOptions, Schema, StructuredDataForm};
use catchment_sampling::{Input, SamplingConfig};
use catchment_syslog::{FramerOptions, Framing, Zone};
use ipnet::IpNet;
use otel_arrow_dfe_config::error::Error;
use serde::Deserialize;
use serde_json::Value;

use super::senders::Zones;
use crate::config;
use crate::ingest::tcp::{Limits, TlsConfig};
use crate::ingest::{BatchConfig, MaxInFlight, ReceiveBuffer, ReplayConfig, Sampling};

/// The checked configuration.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) udp: Option<UdpConfig>,
    pub(crate) tcp: Option<TcpConfig>,
    pub(crate) replay: Option<ReplayConfig>,
    pub(super) zones: ListenerZones,
    pub(crate) max_message_size: usize,
    pub(crate) max_messages_per_second_per_source: Option<u32>,
    pub(super) sampling: Option<SamplingConfig>,
    pub(crate) rows: RowOptions,
    pub(super) emit: Emit,
    pub(crate) batch: BatchConfig,
    pub(crate) max_in_flight_bytes: MaxInFlight,
}

/// Zones of stamps that name none, for each way in.
#[derive(Debug, Clone)]
pub(super) struct ListenerZones {
    pub(super) udp: Zones,
    pub(super) tcp: Zones,
    pub(super) replay: Zones,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    udp: Option<UdpConfig>,
    tcp: Option<TcpConfig>,
    replay: Option<ReplayConfig>,
    #[serde(default = "utc")]
    timezone: String,
    #[serde(default)]
    sources: Vec<SourceConfig>,
    #[serde(default = "max_message_size", deserialize_with = "config::bytes::deserialize")]
    max_message_size: usize,
    max_messages_per_second_per_source: Option<u32>,
    sampling: Option<SamplingConfig>,
    #[serde(default)]
    schema: SchemaName,
    structured_data: Option<StructuredData>,
    #[serde(default)]
    cef_extension_prefix: String,
    #[serde(default)]
    non_utf8: NonUtf8Name,
    #[serde(default)]
    parent_ids: ParentIdsName,
    #[serde(default)]
    emit: Emit,
    #[serde(default)]
    batch: BatchConfig,
    #[serde(default)]
    max_in_flight_bytes: MaxInFlight,
}

/// What is different for senders of some addresses.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceConfig {
    prefix: String,
    timezone: String,
}

/// UDP: one datagram, one message.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UdpConfig {
    #[serde(deserialize_with = "config::address::deserialize")]
    pub(crate) listening_addr: SocketAddr,
    /// SO_RCVBUF; 8 MiB where it is left out, as far as the kernel grants it.
    pub(crate) receive_buffer: Option<ReceiveBuffer>,
    /// Instead of the receiver's.
    timezone: Option<String>,
}

/// TCP: a stream of frames, with or without TLS.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TcpConfig {
    #[serde(deserialize_with = "config::address::deserialize")]
    pub(crate) listening_addr: SocketAddr,
    #[serde(default)]
    framing: FramingName,
    /// Remove one line end that was counted into an octet-counted frame.
    #[serde(default = "yes")]
    trim_trailing_newline: bool,
    #[serde(default = "max_connections")]
    pub(super) max_connections: usize,
    pub(super) max_connections_per_source: Option<usize>,
    #[serde(default, with = "humantime_serde")]
    pub(super) idle_timeout: Option<Duration>,
    #[serde(default = "max_buffered_bytes", deserialize_with = "config::bytes::deserialize")]
    pub(super) max_buffered_bytes: usize,
    /// Instead of the receiver's.
    timezone: Option<String>,
    pub(super) tls: Option<TlsConfig>,
    /// Put the subject of client certificates into the records.
    #[serde(default)]
    pub(super) tls_client_subject: bool,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FramingName {
    #[default]
    Auto,
    Newline,
    OctetCounting,
    Nul,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SchemaName {
    #[default]
    Upstream,
    Otel,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum NonUtf8Name {
    #[default]
    Replace,
    Bytes,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ParentIdsName {
    /// Plain, unless whoever starts the engine knows that all nodes behind understand more and says so.
    #[default]
    Auto,
    Plain,
    Transport,
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

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StructuredData {
    Map,
    Text,
    Flat,
}

fn utc() -> String {
    "UTC".to_owned()
}

const fn yes() -> bool {
    true
}

const fn max_message_size() -> usize {
    64 * 1024
}

fn max_connections() -> usize {
    Limits::default().max_connections
}

fn max_buffered_bytes() -> usize {
    Limits::default().max_buffered_bytes
}

impl Config {
    /// Reads and checks the configuration.
    ///
    /// # Errors
    /// Names the key at fault and what would be right.
    pub(crate) fn parse(value: &Value) -> Result<Self, Error> {
        let raw: Raw = config::parse(value)?;
        if raw.udp.is_none() && raw.tcp.is_none() && raw.replay.is_none() {
            return Err(config::invalid(
                "config: nothing to receive from, expected at least one of `udp`, `tcp`, `replay`",
            ));
        }
        config::within("max_message_size", raw.max_message_size, 1, 16 * 1024 * 1024)?;
        if let Some(rate) = raw.max_messages_per_second_per_source {
            config::within("max_messages_per_second_per_source", rate, 1, u32::MAX)?;
        }
        if let Some(buffer) = raw.udp.as_ref().and_then(|udp| udp.receive_buffer) {
            buffer.check()?;
        }
        if let Some(tcp) = &raw.tcp {
            tcp.check()?;
        }
        if let Some(replay) = &raw.replay {
            replay.check()?;
        }
        raw.batch.check()?;
        if let Some(sampling) = &raw.sampling {
            let _ = Sampling::new(sampling, Input::Syslog, 0)?;
        }
        config::within("cef_extension_prefix (bytes)", raw.cef_extension_prefix.len(), 0, MAX_PREFIX_BYTES)?;
        if raw.emit == Emit::Encoded && raw.parent_ids == ParentIdsName::Transport {
            return Err(config::invalid(
                "config.parent_ids: `transport` is of decoded batches, expected `emit: records` with it",
            ));
        }
        let zones = Zones::new(zone("timezone", &raw.timezone)?, prefixes(&raw.sources)?);
        let of_listener = |key: &str, name: Option<&String>| {
            Ok::<_, Error>(match name {
                Some(name) => zones.with_default(zone(key, name)?),
                None => zones.clone(),
            })
        };
        Ok(Self {
            zones: ListenerZones {
                udp: of_listener("udp.timezone", raw.udp.as_ref().and_then(|udp| udp.timezone.as_ref()))?,
                tcp: of_listener("tcp.timezone", raw.tcp.as_ref().and_then(|tcp| tcp.timezone.as_ref()))?,
                replay: zones,
            },
            udp: raw.udp,
            tcp: raw.tcp,
            replay: raw.replay,
            max_message_size: raw.max_message_size,
            max_messages_per_second_per_source: raw.max_messages_per_second_per_source,
            sampling: raw.sampling,
            rows: RowOptions {
                schema: match raw.schema {
                    SchemaName::Upstream => Schema::Upstream,
                    SchemaName::Otel => Schema::Otel,
                },
                structured_data: raw.structured_data.map(|form| match form {
                    StructuredData::Map => StructuredDataForm::Map,
                    StructuredData::Text => StructuredDataForm::Text,
                    StructuredData::Flat => StructuredDataForm::Flat,
                }),
                cef_extension_prefix: raw.cef_extension_prefix,
                non_utf8: match raw.non_utf8 {
                    NonUtf8Name::Replace => NonUtf8::Replace,
                    NonUtf8Name::Bytes => NonUtf8::Bytes,
                },
                parent_ids: match raw.parent_ids {
                    ParentIdsName::Auto | ParentIdsName::Plain => ParentIds::Plain,
                    ParentIdsName::Transport => ParentIds::Transport,
                },
            },
            emit: raw.emit,
            batch: raw.batch,
            max_in_flight_bytes: raw.max_in_flight_bytes,
        })
    }
}

impl TcpConfig {
    fn check(&self) -> Result<(), Error> {
        self.limits().check()?;
        if let Some(tls) = &self.tls {
            tls.check()?;
        }
        if self.tls_client_subject && !self.tls.as_ref().is_some_and(TlsConfig::asks_clients) {
            return Err(config::invalid(
                "config.tcp.tls_client_subject: clients show no certificate, expected `tcp.tls.client_ca_file` or `client_ca_pem`",
            ));
        }
        Ok(())
    }

    /// Bounds of the connections of a core.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            max_connections: self.max_connections,
            max_connections_per_source: self.max_connections_per_source,
            idle_timeout: self.idle_timeout,
            max_buffered_bytes: self.max_buffered_bytes,
        }
    }

    /// How the frames of connections are found.
    pub(super) fn framer_options(&self, max_message_size: usize) -> FramerOptions {
        FramerOptions {
            framing: match self.framing {
                FramingName::Auto => Framing::Auto,
                FramingName::Newline => Framing::Newline,
                FramingName::OctetCounting => Framing::OctetCounting,
                FramingName::Nul => Framing::Nul,
            },
            max_message_size,
            trim_trailing_newline: self.trim_trailing_newline,
        }
    }
}

fn zone(key: &str, name: &str) -> Result<Arc<Zone>, Error> {
    name.parse().map(Arc::new).map_err(|error| {
        config::invalid(format!(
            "config.{key}: {error}; expected `UTC`, `+HH:MM`, `local` or a name such as `Europe/Paris`"
        ))
    })
}

/// The zones of address prefixes, each prefix once.
fn prefixes(sources: &[SourceConfig]) -> Result<Vec<(IpNet, Arc<Zone>)>, Error> {
    let mut prefixes: Vec<(IpNet, Arc<Zone>)> = Vec::new();
    for (at, source) in sources.iter().enumerate() {
        let key = format!("sources[{at}].prefix");
        let prefix = prefix(&source.prefix).map_err(|expected| {
            config::invalid(format!("config.{key}: `{}` is no prefix, expected {expected}", source.prefix))
        })?;
        if prefixes.iter().any(|(known, _)| *known == prefix) {
            return Err(config::invalid(format!("config.{key}: `{prefix}` is given twice, expected each prefix once")));
        }
        prefixes.push((prefix, zone(&format!("sources[{at}].timezone"), &source.timezone)?));
    }
    Ok(prefixes)
}

/// An address, or an address and a length without bits set behind it. IPv4 written as IPv6 is IPv4.
fn prefix(text: &str) -> Result<IpNet, String> {
    let example = || "an address or prefix such as `10.1.0.0/16` or `2001:db8::/32`".to_owned();
    let prefix: IpNet = match text.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().into(),
        Err(_) => text.parse().map_err(|_| example())?,
    };
    let prefix = match prefix {
        IpNet::V6(v6) if v6.prefix_len() >= 96 && v6.addr().to_ipv4_mapped().is_some() => {
            IpNet::new(v6.addr().to_canonical(), v6.prefix_len() - 96).map_err(|_| example())?
        }
        other => other,
    };
    if prefix.trunc() != prefix { Err(format!("`{}`", prefix.trunc())) } else { Ok(prefix) }
}

#[cfg(test)]
mod tests;
