//! Whose receiver is measured, and with which batches.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

use super::super::{Setup, rounds};
use super::BATCH_ITEMS;
use crate::process::Metrics;

/// Metric set of our receiver.
const OUR_SET: &str = "receiver.syslog";
/// Metric set of the receivers that come with the engine.
const UPSTREAM_SET: &str = "receiver.received";

/// A receiver in a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Ours with batches of 8,192 messages, 2 MiB or 100 ms.
    Ours,
    /// Ours with its default batches.
    OursDefault,
    /// The engine's, version 0.62, with its default batches: 100 messages or 100 ms.
    Upstream62Default,
    /// The same with batches of 8,192 messages or 100 ms.
    Upstream62,
    /// The engine's, version 0.63, with batches of 8,192 messages, 2 MiB (which cannot be set) or 100 ms.
    Upstream63,
}

/// How lines come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp,
    Udp,
}

impl rounds::Side for Side {
    fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::OursDefault => "ours-default-batch",
            Self::Upstream62Default => "upstream-0.62",
            Self::Upstream62 => "upstream-0.62-8192",
            Self::Upstream63 => "upstream-0.63-8192",
        }
    }
}

impl Side {
    /// Program to run; `None` if it is not there.
    pub(super) fn program(self, setup: &Setup) -> Option<&Path> {
        match self {
            Self::Ours | Self::OursDefault | Self::Upstream62Default | Self::Upstream62 => setup.binary.as_deref(),
            Self::Upstream63 => setup.peer_063.as_deref(),
        }
    }

    /// Configuration of the receiver node.
    pub(super) fn receiver(self, transport: Transport, listening: SocketAddr) -> Value {
        let listener = match transport {
            Transport::Tcp => json!({ "tcp": { "listening_addr": listening, "framing": "newline" } }),
            Transport::Udp => json!({ "udp": { "listening_addr": listening } }),
        };
        let (kind, mut config, batch) = match self {
            Self::Ours => {
                let batch = json!({ "max_messages": BATCH_ITEMS, "max_bytes": "2 MiB", "max_duration": "100ms" });
                ("urn:catchment:receiver:syslog", listener, Some(batch))
            }
            Self::OursDefault => ("urn:catchment:receiver:syslog", listener, None),
            Self::Upstream62Default => ("urn:otel:receiver:syslog_cef", json!({ "protocol": listener }), None),
            Self::Upstream62 | Self::Upstream63 => {
                let batch = json!({ "max_size": BATCH_ITEMS, "max_batch_duration_ms": 100 });
                ("urn:otel:receiver:syslog_cef", json!({ "protocol": listener }), Some(batch))
            }
        };
        if let Some(batch) = batch {
            config["batch"] = batch;
        }
        json!({ "type": kind, "config": config })
    }

    /// Messages that the receiver has handed on (ours) or taken in and parsed (the engine's), by its own count.
    pub(super) fn received(self, metrics: &Metrics) -> u64 {
        match self {
            Self::Ours | Self::OursDefault => metrics.sum(OUR_SET, |name| name == "messages.sent"),
            Self::Upstream62Default | Self::Upstream62 | Self::Upstream63 => {
                metrics.sum(UPSTREAM_SET, |name| name == "messages")
            }
        }
    }

    /// Datagrams that the kernel dropped, by the receiver's own count; the engine's have none.
    pub(super) fn counted_drops(self, metrics: &Metrics) -> u64 {
        match self {
            Self::Ours | Self::OursDefault => metrics.sum(OUR_SET, |name| name == "datagrams.dropped.by.kernel"),
            Self::Upstream62Default | Self::Upstream62 | Self::Upstream63 => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Side; 5] = [Side::Ours, Side::OursDefault, Side::Upstream62Default, Side::Upstream62, Side::Upstream63];

    /// Large batches are asked for where the name says so, and nothing is set where the default is meant.
    #[test]
    fn batches() {
        let listening = SocketAddr::from(([127, 0, 0, 1], 514));
        for side in ALL {
            let receiver = side.receiver(Transport::Tcp, listening);
            let batch = receiver["config"].get("batch");
            let size = batch.map(|batch| batch.get("max_size").or(batch.get("max_messages")).unwrap().clone());
            let expected = match side {
                Side::Ours | Side::Upstream62 | Side::Upstream63 => Some(json!(8_192)),
                Side::OursDefault | Side::Upstream62Default => None,
            };
            assert_eq!(size, expected, "{side:?}");
        }
    }

    /// Each side listens on the one transport that is asked for.
    #[test]
    fn transports() {
        let listening = SocketAddr::from(([127, 0, 0, 1], 514));
        for side in ALL {
            for (transport, key, other) in [(Transport::Tcp, "tcp", "udp"), (Transport::Udp, "udp", "tcp")] {
                let receiver = side.receiver(transport, listening);
                let config = receiver["config"].get("protocol").unwrap_or(&receiver["config"]);
                assert_eq!(config[key]["listening_addr"], "127.0.0.1:514", "{side:?}");
                assert!(config.get(other).is_none(), "{side:?}");
            }
        }
    }
}
