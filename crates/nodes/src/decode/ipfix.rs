//! IPFIX and NetFlow: the UDP datagrams of a capture, or a stream of IPFIX messages.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use catchment_capture::{Format, Item, Reader};
use catchment_columns::flow::{FlowBatch, FlowJob, FlowReceipt};
use catchment_columns::sonic::{SonicBatch, SonicJob, session_rows};
use catchment_ipfix::sonic::{SessionRow, SonicLimits, SonicSessions};
use catchment_ipfix::{Admitted, Collector, CollectorLimits, Limits, PendingLimits, ProblemKind, SessionKey};

pub use catchment_columns::flow::{Biflow, Enumerations, FlowMapping, FlowSchema, OptionsData, SamplingUse, TimeForm};
pub use catchment_columns::sonic::{AttributesAt, SonicMapping, SonicNames};

use super::syslog::skipped;
use super::{DecodeError, Sink, Summary};
use crate::time::now_unix_nano;

/// What the exporters are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IpfixProfile {
    /// Exporters of flows, with how their records become log records.
    Flows(FlowMapping),
    /// SONiC's high-frequency telemetry, with how its records become metrics.
    SonicHft(SonicMapping),
}

/// Settings of a run.
#[derive(Debug, Clone)]
pub struct IpfixOptions {
    /// Time of receipt in nanoseconds since the Unix epoch; the time of capture, or now, where it is not given.
    pub received_unix_nano: Option<i64>,
    /// What the exporters are.
    pub profile: IpfixProfile,
    /// A file with templates that are known from the start: IPFIX messages, a template cache of the receiver, or, of
    /// SONiC, JSON with rows of the session table.
    pub templates: Option<PathBuf>,
    /// Data that comes before its template waits for it.
    pub pending: bool,
}

/// Records decoded at a time.
const BATCH: usize = 1_000;

/// Decodes the file at `path`.
///
/// # Errors
/// [`DecodeError`] if the input cannot be read or the output not be written. What is wrong inside the input is told on
/// `problems` and counted.
pub fn ipfix(
    path: &Path,
    options: &IpfixOptions,
    records: &mut dyn Write,
    problems: &mut dyn Write,
) -> Result<Summary, DecodeError> {
    let reader = Reader::open(path).map_err(|error| DecodeError::Input(error.to_string()))?;
    let is_sonic = matches!(options.profile, IpfixProfile::SonicHft(_));
    let whole_payload = is_sonic && !matches!(reader.format(), Format::Pcap | Format::PcapNg);
    if reader.format() == Format::Lines && !whole_payload {
        return Err(DecodeError::Input(format!(
            "{} is neither a pcap or pcapng capture nor a stream of IPFIX messages",
            path.display()
        )));
    }
    let templates = match &options.templates {
        Some(path) => Some(fs::read(path).map_err(|error| DecodeError::Input(format!("{}: {error}", path.display())))?),
        None => None,
    };
    let mut sink = Sink::new(records, problems);
    let mut decoder: Box<dyn Decode> = match &options.profile {
        IpfixProfile::Flows(mapping) => Box::new(Flows::new(*mapping, options.pending, templates)?),
        IpfixProfile::SonicHft(mapping) => Box::new(Sonic::new(mapping.clone(), templates)?),
    };
    if whole_payload {
        // What SONiC's kernel hands over is checked as a whole, and so is a file of it.
        let payload = fs::read(path).map_err(|error| DecodeError::Input(format!("{}: {error}", path.display())))?;
        let time = options.received_unix_nano.unwrap_or_else(now_unix_nano);
        decoder.take(SessionKey::Stream { connection: 0, peer: None }, &payload, 0, time, &mut sink)?;
        return sink.finish();
    }
    for item in reader {
        let packet = match item {
            Ok(Item::Packet(packet)) => packet,
            Ok(Item::Skipped { offset, reason }) => {
                skipped(&mut sink, offset, reason)?;
                continue;
            }
            Err(error) => {
                sink.problem(error.offset(), &error)?;
                break;
            }
        };
        let key = match packet.source {
            Some(peer) => SessionKey::Udp { peer, listener: 0 },
            None => SessionKey::Stream { connection: 0, peer: None },
        };
        let time = options.received_unix_nano.or(packet.time_unix_nano).unwrap_or_else(now_unix_nano);
        decoder.take(key, &packet.payload, packet.offset, time, &mut sink)?;
    }
    decoder.finish(&mut sink)?;
    sink.finish()
}

/// A way from datagrams to printed records.
trait Decode {
    fn take(
        &mut self,
        key: SessionKey,
        payload: &[u8],
        offset: u64,
        time_unix_nano: i64,
        sink: &mut Sink<'_>,
    ) -> Result<(), DecodeError>;

    fn finish(&mut self, sink: &mut Sink<'_>) -> Result<(), DecodeError>;
}

/// Flow exporters.
struct Flows {
    mapping: FlowMapping,
    collector: Collector,
    admitted: Admitted,
    batch: FlowBatch,
    /// IPFIX messages that every exporter is taken to have sent at first.
    first_messages: Option<Vec<u8>>,
    greeted: HashSet<SessionKey>,
}

impl Flows {
    fn new(mapping: FlowMapping, pending: bool, templates: Option<Vec<u8>>) -> Result<Self, DecodeError> {
        let mut collector = Collector::new(CollectorLimits {
            session: Limits { template_lifetime: None, ..Limits::default() },
            max_sessions: usize::MAX,
            max_sessions_per_address: usize::MAX,
            shut_out: None,
            pending: pending.then(PendingLimits::default),
            ..CollectorLimits::default()
        });
        let mut first_messages = None;
        if let Some(bytes) = templates {
            if catchment_ipfix::is_template_cache(&bytes) {
                let _ =
                    collector.restore(&bytes).map_err(|error| DecodeError::Input(format!("--templates: {error}")))?;
            } else {
                let mut session = catchment_ipfix::Session::new(catchment_ipfix::Transport::Udp, Limits::default());
                let mut admitted = Admitted::default();
                session.admit(&bytes, &mut admitted);
                if session.templates().next().is_none() {
                    let problem = admitted.problems.first().map(|problem| format!(": {}", problem.fault));
                    return Err(DecodeError::Input(format!(
                        "--templates: holds no template, expected IPFIX messages with template sets{}",
                        problem.unwrap_or_default()
                    )));
                }
                first_messages = Some(bytes);
            }
        }
        Ok(Self {
            mapping,
            collector,
            admitted: Admitted::default(),
            batch: FlowBatch::default(),
            first_messages,
            greeted: HashSet::new(),
        })
    }

    fn print(&mut self, sink: &mut Sink<'_>) -> Result<(), DecodeError> {
        sink.print(FlowJob::with_mapping(self.batch.take(), &self.mapping))
    }
}

impl Decode for Flows {
    fn take(
        &mut self,
        key: SessionKey,
        payload: &[u8],
        offset: u64,
        time_unix_nano: i64,
        sink: &mut Sink<'_>,
    ) -> Result<(), DecodeError> {
        if let Some(messages) = &self.first_messages
            && self.greeted.insert(key)
        {
            let _ = self.collector.admit(key, time_unix_nano, messages, &mut self.admitted);
        }
        self.admitted.clear();
        let _ = self.collector.admit(key, time_unix_nano, payload, &mut self.admitted);
        // Sets without template are told below, with more about them.
        let told = |kind| kind != ProblemKind::UnknownTemplate;
        for problem in self.admitted.problems.iter().filter(|problem| told(problem.kind)) {
            let text = format!("byte {} of the datagram: {}", problem.offset, problem.fault);
            sink.problem(offset, &text)?;
        }
        for set in &self.admitted.unknown_sets {
            let text = format!(
                "byte {} of the datagram: {} bytes of data for template {}, which is not known (yet)",
                set.range.start,
                set.range.len(),
                set.template_id
            );
            sink.problem(offset, &text)?;
        }
        let exporter = key.peer();
        for released in self.admitted.released.drain(..) {
            let receipt = FlowReceipt { time_unix_nano: released.received_unix_nano, exporter };
            let _ = self.batch.push_released(&released.content, &released.message, receipt, released.set);
        }
        let _ = self.batch.push(payload, &mut self.admitted, FlowReceipt { time_unix_nano, exporter });
        if self.batch.len() >= BATCH {
            self.print(sink)?;
        }
        Ok(())
    }

    fn finish(&mut self, sink: &mut Sink<'_>) -> Result<(), DecodeError> {
        self.print(sink)
    }
}

/// SONiC's telemetry. Points are printed in the order of the wire.
struct Sonic {
    mapping: Arc<SonicMapping>,
    sessions: SonicSessions,
    batch: SonicBatch,
}

impl Sonic {
    fn new(mapping: SonicMapping, templates: Option<Vec<u8>>) -> Result<Self, DecodeError> {
        let mut sessions = SonicSessions::new(SonicLimits::default());
        if let Some(bytes) = templates {
            let input = |error: String| DecodeError::Input(format!("--templates: {error}"));
            let is_messages = bytes.starts_with(&[0, 10]);
            let rows = if is_messages {
                // Without names: points are told by their labels.
                let row = SessionRow {
                    stream_status: "enabled".to_owned(),
                    session_type: "ipfix".to_owned(),
                    session_config: bytes,
                    ..SessionRow::default()
                };
                vec![("templates".to_owned(), row)]
            } else {
                session_rows(&bytes).map_err(|error| input(error.to_string()))?
            };
            for (key, row) in &rows {
                let _ = sessions.apply(key, row).map_err(|error| input(format!("{key}: {error}")))?;
            }
        }
        let mapping = SonicMapping { records_per_batch: NonZeroUsize::new(1), ..mapping };
        Ok(Self { mapping: Arc::new(mapping), sessions, batch: SonicBatch::default() })
    }
}

impl Decode for Sonic {
    fn take(
        &mut self,
        _key: SessionKey,
        payload: &[u8],
        offset: u64,
        time_unix_nano: i64,
        sink: &mut Sink<'_>,
    ) -> Result<(), DecodeError> {
        let before = self.sessions.counters().unknown_template_sets;
        let (sessions, mapping, batch) = (&mut self.sessions, &self.mapping, &mut self.batch);
        let mut printed = Ok(());
        // Record by record, so that points of several templates stay in the order of the wire.
        let admitted = sessions.admit(0, payload, time_unix_nano, |set| {
            batch.push(0, set);
            if printed.is_ok() {
                printed = sink.print(SonicJob::new(batch.take(), Arc::clone(mapping)));
            }
        });
        printed?;
        if let Err(error) = admitted {
            sink.problem(offset, &error)?;
        }
        let unknown = self.sessions.counters().unknown_template_sets - before;
        if unknown > 0 {
            sink.problem(offset, &format!("{unknown} data sets whose template no session has (see --templates)"))?;
        }
        Ok(())
    }

    fn finish(&mut self, _sink: &mut Sink<'_>) -> Result<(), DecodeError> {
        Ok(())
    }
}
