//! Configuration of the syslog receiver.

use std::net::SocketAddr;
use std::sync::Arc;

use catchment_columns::syslog::{RowOptions, StructuredDataForm};
use catchment_syslog::{FramerOptions, Framing, Zone};
use otel_arrow_dfe_config::error::Error;
use serde::Deserialize;
use serde_json::Value;

use crate::config;
use crate::ingest::{BatchConfig, ReceiveBuffer, ReplayConfig};

/// The checked configuration.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) udp: Option<UdpConfig>,
    pub(crate) tcp: Option<TcpConfig>,
    pub(crate) replay: Option<ReplayConfig>,
    pub(crate) zone: Arc<Zone>,
    pub(crate) max_message_size: usize,
    pub(crate) rows: RowOptions,
    pub(crate) batch: BatchConfig,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    udp: Option<UdpConfig>,
    tcp: Option<TcpConfig>,
    replay: Option<ReplayConfig>,
    #[serde(default = "utc")]
    timezone: String,
    #[serde(default = "max_message_size", deserialize_with = "config::bytes::deserialize")]
    max_message_size: usize,
    #[serde(default)]
    structured_data: StructuredData,
    #[serde(default)]
    cef_extension_prefix: String,
    #[serde(default)]
    batch: BatchConfig,
}

/// UDP: one datagram, one message.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UdpConfig {
    pub(crate) listening_addr: SocketAddr,
    /// SO_RCVBUF; the kernel's default where it is left out.
    pub(crate) receive_buffer: Option<ReceiveBuffer>,
}

/// TCP: a stream of frames.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TcpConfig {
    pub(crate) listening_addr: SocketAddr,
    #[serde(default)]
    framing: FramingName,
    /// Remove one line end that was counted into an octet-counted frame.
    #[serde(default = "yes")]
    trim_trailing_newline: bool,
    #[serde(default = "max_connections")]
    pub(crate) max_connections: usize,
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
enum StructuredData {
    #[default]
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

const fn max_connections() -> usize {
    1_024
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
        if let Some(tcp) = &raw.tcp {
            config::within("tcp.max_connections", tcp.max_connections, 1, 1_000_000)?;
        }
        if let Some(replay) = &raw.replay {
            replay.check()?;
        }
        raw.batch.check()?;
        let zone: Zone = raw.timezone.parse().map_err(|error| {
            config::invalid(format!(
                "config.timezone: {error}; expected `UTC`, `+HH:MM`, `local` or a name such as `Europe/Paris`"
            ))
        })?;
        Ok(Self {
            udp: raw.udp,
            tcp: raw.tcp,
            replay: raw.replay,
            zone: Arc::new(zone),
            max_message_size: raw.max_message_size,
            rows: RowOptions {
                structured_data: match raw.structured_data {
                    StructuredData::Map => StructuredDataForm::Map,
                    StructuredData::Text => StructuredDataForm::Text,
                    StructuredData::Flat => StructuredDataForm::Flat,
                },
                cef_extension_prefix: raw.cef_extension_prefix,
            },
            batch: raw.batch,
        })
    }

    /// How the frames of TCP connections are found.
    pub(crate) fn framer_options(&self, tcp: &TcpConfig) -> FramerOptions {
        FramerOptions {
            framing: match tcp.framing {
                FramingName::Auto => Framing::Auto,
                FramingName::Newline => Framing::Newline,
                FramingName::OctetCounting => Framing::OctetCounting,
                FramingName::Nul => Framing::Nul,
            },
            max_message_size: self.max_message_size,
            trim_trailing_newline: tcp.trim_trailing_newline,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(value: Value) -> String {
        Config::parse(&value).expect_err("refused").to_string()
    }

    #[test]
    fn defaults_are_those_of_the_docs() {
        let config = Config::parse(&json!({"tcp": {"listening_addr": "127.0.0.1:0"}})).expect("valid");
        assert_eq!(config.max_message_size, 65_536);
        assert_eq!((config.batch.max_messages, config.batch.max_duration.as_millis()), (100, 100));
        let options = config.framer_options(config.tcp.as_ref().expect("tcp"));
        assert_eq!(options.framing, Framing::Auto);
        assert!(options.trim_trailing_newline);
    }

    /// Each message names the key and what would be right.
    #[test]
    fn wrong_settings_are_explained() {
        assert!(refused(Value::Null).contains("`udp`, `tcp`, `replay`"));
        assert!(refused(json!({"udp": {"listening_addr": "nowhere"}})).contains("config.udp.listening_addr"));
        assert!(refused(json!({"udp": {"listening_addr": "127.0.0.1:1"}, "timezone": "Mars"})).contains("Mars"));
        let framing = refused(json!({"tcp": {"listening_addr": "127.0.0.1:1", "framing": "lines"}}));
        assert!(framing.contains("config.tcp.framing") && framing.contains("octet_counting"), "{framing}");
        assert!(
            refused(json!({"udp": {"listening_addr": "127.0.0.1:1"}, "max_message_size": 0})).contains("1 to 16777216")
        );
        assert!(
            refused(json!({"udp": {"listening_addr": "127.0.0.1:1"}, "batch": {"max_messages": 0}}))
                .contains("batch.max_messages")
        );
        assert!(refused(json!({"replay": {"path": "x", "rate": "fast"}})).contains("config.replay.rate"));
    }
}
