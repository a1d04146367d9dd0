//! Configuration of the IPFIX receiver.

use std::net::SocketAddr;

use catchment_ipfix::Limits;
use otel_arrow_dfe_config::error::Error;
use serde::Deserialize;
use serde_json::Value;

use crate::config;
use crate::ingest::{BatchConfig, MaxInFlight, ReceiveBuffer, ReplayConfig};

/// The checked configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    pub(super) udp: Option<UdpConfig>,
    pub(super) replay: Option<ReplayConfig>,
    /// Exporters whose templates are kept; the one not heard of for the longest time gives way.
    #[serde(default = "max_exporters")]
    pub(super) max_exporters: usize,
    /// Templates kept of one exporter.
    #[serde(default = "max_templates")]
    pub(super) max_templates: usize,
    #[serde(default)]
    pub(super) batch: BatchConfig,
    /// Bytes of datagrams in batches that were handed on and are still in memory; 0 is no limit.
    #[serde(default)]
    pub(super) max_in_flight_bytes: MaxInFlight,
}

/// UDP: a datagram holds one message or several.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UdpConfig {
    pub(super) listening_addr: SocketAddr,
    /// SO_RCVBUF; 8 MiB where it is left out, as far as the kernel grants it.
    pub(super) receive_buffer: Option<ReceiveBuffer>,
}

const fn max_exporters() -> usize {
    4_096
}

fn max_templates() -> usize {
    Limits::default().max_templates
}

impl Config {
    /// Reads and checks the configuration.
    ///
    /// # Errors
    /// Names the key at fault and what would be right.
    pub(super) fn parse(value: &Value) -> Result<Self, Error> {
        let config: Self = config::parse(value)?;
        if config.udp.is_none() && config.replay.is_none() {
            return Err(config::invalid("config: nothing to receive from, expected at least one of `udp`, `replay`"));
        }
        config::within("max_exporters", config.max_exporters, 1, 1_000_000)?;
        config::within("max_templates", config.max_templates, 1, 65_280)?;
        if let Some(buffer) = config.udp.as_ref().and_then(|udp| udp.receive_buffer) {
            buffer.check()?;
        }
        if let Some(replay) = &config.replay {
            replay.check()?;
        }
        config.batch.check()?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_and_errors() {
        let config = Config::parse(&json!({"udp": {"listening_addr": "0.0.0.0:4739"}})).expect("valid");
        assert_eq!((config.max_exporters, config.max_templates), (4_096, 2_048));
        let refused = |value| Config::parse(&value).expect_err("refused").to_string();
        assert!(refused(Value::Null).contains("`udp`, `replay`"));
        assert!(refused(json!({"udp": {"listening_addr": "0.0.0.0:4739", "port": 1}})).contains("config.udp.port"));
        assert!(refused(json!({"replay": {"path": ""}})).contains("config.replay.path"));
        assert!(refused(json!({"udp": {"listening_addr": "0.0.0.0:1"}, "max_exporters": 0})).contains("max_exporters"));
        let buffer = refused(json!({"udp": {"listening_addr": "0.0.0.0:1", "receive_buffer": 1}}));
        assert!(buffer.contains("udp.receive_buffer"), "{buffer}");
    }
}
