//! What is sent to the engine, made before the run.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::AsRawFd as _;

use catchment_loadgen::traffic::{
    DEFAULT_START_UNIX_NANO, FlowExporter, FlowFields, FlowOptions, FlowOptionsError, FlowProtocol, Framing, SendError,
    SendOptions, Sent, SonicObject, SonicOptions, SonicOptionsError, SonicTelemetry, SyslogFormat, SyslogLines,
    SyslogOptions, send_tcp,
};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::messages::Messages;
use super::cases::{Case, Source};

/// Statistics of each port.
const STATISTICS: u16 = 10;
/// Bytes of an IPFIX message at most.
const MAX_MESSAGE_BYTES: u32 = 65_535;
/// Most records of a batch; points may be more.
const MOST_RECORDS: u32 = 8_192;

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
    /// Of each sender.
    messages: Vec<Messages>,
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
                Ok(Self { source, messages: vec![messages], items: telemetry.counters_made(), folder: Some(folder) })
            }
            Source::Flow => {
                let messages = Messages::record(flows(0)?, items);
                Ok(Self::of_messages(source, vec![messages]))
            }
            Source::FlowsOf(exporters) => {
                let of_each = items.div_ceil(exporters.into());
                let of = |seed: u8| Ok(Messages::record(flows(seed.into())?, of_each));
                let messages = (0..exporters).map(of).collect::<Result<_, LoadError>>()?;
                Ok(Self::of_messages(source, messages))
            }
            Source::Syslog { unique } => {
                let lines = SyslogLines::with_options(&SyslogOptions {
                    format: if unique { SyslogFormat::Rfc5424Unique } else { SyslogFormat::Rfc5424 },
                    seed: 0,
                    fresh_time: true,
                    start_unix_nano: DEFAULT_START_UNIX_NANO,
                });
                let messages = Messages::record(lines, items);
                Ok(Self::of_messages(source, vec![messages]))
            }
        }
    }

    /// Messages whose records are the items.
    fn of_messages(source: Source, messages: Vec<Messages>) -> Self {
        Self { source, items: messages.iter().map(Messages::records).sum(), messages, folder: None }
    }

    /// Points or log records that should arrive.
    pub(super) fn items(&self) -> u64 {
        self.items
    }

    /// Configuration of the receiver.
    pub(super) fn receiver(&self, listening: SocketAddr, batch: u32) -> Value {
        let tcp = json!({ "listening_addr": listening });
        let several = matches!(self.source, Source::FlowsOf(_));
        match self.source {
            Source::Sonic { .. } => {
                let session = self.folder.as_ref().map(|folder| folder.path().join(SESSION));
                json!({ "type": "urn:catchment:receiver:ipfix", "config": {
                    "profile": "sonic_hft",
                    "tcp": tcp,
                    "batch": { "max_records": batch.min(MOST_RECORDS) },
                    "sonic": { "max_points": batch, "sessions": { "files": [session] } },
                } })
            }
            Source::Flow | Source::FlowsOf(_) => json!({ "type": "urn:catchment:receiver:ipfix", "config": {
                "tcp": tcp,
                "enumerations": "numbers",
                "batch": { "max_records": batch },
                // A batch has the exporter as its resource, which is a key.
                "exporter_at": if several { "resource" } else { "record" },
                "batch_per_exporter": several,
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
            Source::Sonic { .. } | Source::Flow | Source::FlowsOf(_) => ("receiver.ipfix", "records.sent"),
            Source::Syslog { .. } => ("receiver.syslog", "messages.sent"),
        }
    }

    /// Sends it all, as fast as it is taken.
    pub(super) fn send(&self, to: SocketAddr) -> Result<(), SendError> {
        let framing = match self.source {
            Source::FlowsOf(_) => return self.send_from_several(to),
            Source::Sonic { .. } | Source::Flow => Framing::None,
            Source::Syslog { .. } => Framing::Newline,
        };
        for messages in &self.messages {
            let options = SendOptions { count: messages.len() as u64, per_second: None };
            let _ = send_tcp(to, &mut messages.source(), framing, &options)?;
        }
        Ok(())
    }

    /// The same from several senders at once, each with an address of its own.
    fn send_from_several(&self, to: SocketAddr) -> Result<(), SendError> {
        let send = |(last, messages): (u8, &Messages)| {
            let mut stream = connected(Ipv4Addr::new(127, 0, 0, last), to)?;
            stream.write_all(messages.bytes())?;
            stream.shutdown(Shutdown::Write)
        };
        let sent: io::Result<()> = std::thread::scope(|scope| {
            let senders: Vec<_> = (2..).zip(&self.messages).map(|sender| scope.spawn(move || send(sender))).collect();
            let end = |sender: std::thread::ScopedJoinHandle<'_, io::Result<()>>| {
                sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            senders.into_iter().try_for_each(end)
        });
        sent.map_err(|source| SendError { target: to, sent: Sent::default(), source })
    }
}

/// A connection from one of the addresses of this machine.
fn connected(from: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    let SocketAddr::V4(to) = to else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(from, 0)))?;
    connect(socket.as_raw_fd(), &SockaddrIn::from(to))?;
    Ok(TcpStream::from(socket))
}

fn flows(seed: u64) -> Result<FlowExporter, FlowOptionsError> {
    FlowExporter::new(FlowOptions::new(FlowProtocol::Ipfix, FlowFields::Basic, 1, seed))
}

/// As many records in a message as it can hold and a batch has room for. Records are never divided: what a batch has no
/// room for is in a record of its own.
fn telemetry(series: u32, batch: u32) -> SonicOptions {
    let statistics = u32::from(STATISTICS);
    // Messages of which whole ones fill a batch.
    let of_batch = (batch / series).max(1);
    let most = of_batch.min((MAX_MESSAGE_BYTES - 64) / (8 * series + 8)).max(1);
    let records = (1..=most).rev().find(|records| of_batch.is_multiple_of(*records)).unwrap_or(1);
    SonicOptions {
        object: SonicObject::Port,
        // Series are at most 50,000.
        objects: u16::try_from(series / statistics).unwrap_or(u16::MAX),
        statistics: STATISTICS,
        records_per_message: u16::try_from(records).unwrap_or(u16::MAX),
        // A message has 28 bytes in front of the counters of its first record.
        max_payload_bytes: if series > batch { 28 + 8 * batch as usize } else { 16 * 1024 * 1024 },
        ..SonicOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

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
        let divided = SonicTelemetry::new(telemetry(500, 100)).unwrap();
        assert_eq!(divided.templates(), 5);
    }

    /// Senders have different addresses.
    #[test]
    fn senders() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let from = Ipv4Addr::new(127, 0, 0, 5);
        let stream = connected(from, listener.local_addr().unwrap()).unwrap();
        assert_eq!(listener.accept().unwrap().1, stream.local_addr().unwrap());
        assert_eq!(stream.local_addr().unwrap().ip(), from);
    }
}
