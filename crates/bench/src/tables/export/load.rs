//! What is sent to the engine, made before the run.

use std::io;
use std::net::SocketAddr;

use catchment_loadgen::traffic::{
    DEFAULT_START_UNIX_NANO, FlowExporter, FlowFields, FlowOptions, FlowOptionsError, FlowProtocol, Framing, SendError,
    SendOptions, Sent, SonicObject, SonicOptions, SonicOptionsError, SonicTelemetry, SyslogFormat, SyslogLines,
    SyslogOptions, send_tcp,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::messages::Messages;
use super::cases::{Case, Source};

/// Statistics of each port.
const STATISTICS: u16 = 10;
/// Bytes of an IPFIX message at most.
const MAX_MESSAGE_BYTES: u32 = 65_535;

/// The load could not be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error(transparent)]
    Sonic(#[from] SonicOptionsError),
    #[error(transparent)]
    Flow(#[from] FlowOptionsError),
    #[error("the telemetry session cannot be written: {0}")]
    Session(#[from] io::Error),
    #[error("the telemetry session is no JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Messages, and what a receiver has to know of them.
#[derive(Debug)]
pub(super) struct Load {
    source: Source,
    messages: Messages,
    items: u64,
    /// With the telemetry session in it.
    folder: Option<TempDir>,
}

/// Name of the file of the telemetry session.
const SESSION: &str = "session.json";

impl Load {
    /// Makes whole messages of at least so many items.
    pub(super) fn new(case: &Case, quick: bool) -> Result<Self, LoadError> {
        let items = case.items(quick);
        let source = case.source;
        match source {
            Source::Sonic { series } => {
                let mut telemetry = SonicTelemetry::new(telemetry(series, case.batch))?;
                let folder = tempfile::tempdir()?;
                let session = serde_json::to_vec(&json!({ "redis": telemetry.session() }))?;
                std::fs::write(folder.path().join(SESSION), session)?;
                let templates = telemetry.templates() as u64;
                let records = (items * templates).div_ceil(series.into());
                let messages = Messages::record(&mut telemetry, records);
                Ok(Self { source, messages, items: telemetry.counters_made(), folder: Some(folder) })
            }
            Source::Flow => {
                let exporter = FlowExporter::new(FlowOptions::new(FlowProtocol::Ipfix, FlowFields::Basic, 1, 0))?;
                let messages = Messages::record(exporter, items);
                Ok(Self { source, items: messages.records(), messages, folder: None })
            }
            Source::Syslog { unique } => {
                let lines = SyslogLines::with_options(&SyslogOptions {
                    format: if unique { SyslogFormat::Rfc5424Unique } else { SyslogFormat::Rfc5424 },
                    seed: 0,
                    fresh_time: true,
                    start_unix_nano: DEFAULT_START_UNIX_NANO,
                });
                let messages = Messages::record(lines, items);
                Ok(Self { source, items: messages.records(), messages, folder: None })
            }
        }
    }

    /// Points or log records that should arrive.
    pub(super) fn items(&self) -> u64 {
        self.items
    }

    /// Configuration of the receiver.
    pub(super) fn receiver(&self, listening: SocketAddr, batch: u32) -> Value {
        let tcp = json!({ "listening_addr": listening });
        match self.source {
            Source::Sonic { .. } => {
                let session = self.folder.as_ref().map(|folder| folder.path().join(SESSION));
                json!({ "type": "urn:catchment:receiver:ipfix", "config": {
                    "profile": "sonic_hft",
                    "tcp": tcp,
                    "batch": { "max_records": batch },
                    "sonic": { "max_points": batch, "sessions": { "files": [session] } },
                } })
            }
            Source::Flow => json!({ "type": "urn:catchment:receiver:ipfix", "config": {
                "tcp": tcp,
                "enumerations": "numbers",
                "batch": { "max_records": batch },
            } }),
            Source::Syslog { .. } => {
                let mut tcp = tcp;
                tcp["framing"] = json!("newline");
                json!({ "type": "urn:catchment:receiver:syslog", "config": {
                    "tcp": tcp,
                    "batch": { "max_messages": batch, "max_bytes": "2 MiB", "max_duration": "100ms" },
                } })
            }
        }
    }

    /// Metric set of the receiver, and its metric that counts items handed on.
    pub(super) fn counter(&self) -> (&'static str, &'static str) {
        match self.source {
            Source::Sonic { .. } | Source::Flow => ("receiver.ipfix", "records.sent"),
            Source::Syslog { .. } => ("receiver.syslog", "messages.sent"),
        }
    }

    /// Sends it all, as fast as it is taken.
    pub(super) fn send(&self, to: SocketAddr) -> Result<Sent, SendError> {
        let framing = match self.source {
            Source::Sonic { .. } | Source::Flow => Framing::None,
            Source::Syslog { .. } => Framing::Newline,
        };
        let options = SendOptions { count: self.messages.len() as u64, per_second: None };
        send_tcp(to, &mut self.messages.source(), framing, &options)
    }
}

/// As many records in a message as it can hold and a batch has room for.
fn telemetry(series: u32, batch: u32) -> SonicOptions {
    let statistics = u32::from(STATISTICS);
    let records = (batch / series).min((MAX_MESSAGE_BYTES - 64) / (8 * series + 8)).max(1);
    SonicOptions {
        object: SonicObject::Port,
        // Series are at most 50,000.
        objects: u16::try_from(series / statistics).unwrap_or(u16::MAX),
        statistics: STATISTICS,
        records_per_message: u16::try_from(records).unwrap_or(u16::MAX),
        max_payload_bytes: 16 * 1024 * 1024,
        ..SonicOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::cases;
    use super::*;

    /// Loads have the items that they should have, whole messages.
    #[test]
    fn items() {
        for case in cases::all() {
            let load = Load::new(&case, true).unwrap();
            let expected = case.items(true);
            assert!((expected..expected + 8 * 8_192).contains(&load.items()), "{}: {}", case.name(), load.items());
        }
    }

    /// A message of few series fills a batch.
    #[test]
    fn messages() {
        assert_eq!(telemetry(500, 8_192).records_per_message, 16);
        assert_eq!(telemetry(500, 1_000).records_per_message, 2);
        assert_eq!(telemetry(50_000, 8_192).records_per_message, 1);
    }
}
