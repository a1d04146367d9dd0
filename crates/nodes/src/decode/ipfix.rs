//! IPFIX and NetFlow: the UDP datagrams of a capture, or a stream of IPFIX messages.

use std::io::Write;
use std::path::Path;

use catchment_capture::{Format, Item, Reader};
use catchment_columns::flow::{FlowBatch, FlowJob, FlowReceipt};
use catchment_ipfix::{Admitted, Limits, ProblemKind};

use super::syslog::skipped;
use super::{DecodeError, Sink, Summary};
use crate::receivers::ipfix::Exporters;
use crate::time::now_unix_nano;

/// Settings of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct IpfixOptions {
    /// Time of receipt in nanoseconds since the Unix epoch; the time of capture, or now, where it is not given.
    pub received_unix_nano: Option<i64>,
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
    options: IpfixOptions,
    records: &mut dyn Write,
    problems: &mut dyn Write,
) -> Result<Summary, DecodeError> {
    let reader = Reader::open(path).map_err(|error| DecodeError::Input(error.to_string()))?;
    if reader.format() == Format::Lines {
        return Err(DecodeError::Input(format!(
            "{} is neither a pcap or pcapng capture nor a stream of IPFIX messages",
            path.display()
        )));
    }
    let mut sink = Sink::new(records, problems);
    let mut exporters = Exporters::new(usize::MAX, Limits::default());
    let mut admitted = Admitted::default();
    let mut batch = FlowBatch::default();
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
        admitted.clear();
        exporters.session(packet.source).admit(&packet.payload, &mut admitted);
        // Sets without template are told below, with more about them.
        let told = |kind| kind != ProblemKind::UnknownTemplate;
        for problem in admitted.problems.iter().filter(|problem| told(problem.kind)) {
            let text = format!("byte {} of the datagram: {}", problem.offset, problem.fault);
            sink.problem(packet.offset, &text)?;
        }
        for set in &admitted.unknown_sets {
            let text = format!(
                "byte {} of the datagram: {} bytes of data for template {}, which is not known (yet)",
                set.range.start,
                set.range.len(),
                set.template_id
            );
            sink.problem(packet.offset, &text)?;
        }
        let time = options.received_unix_nano.or(packet.time_unix_nano).unwrap_or_else(now_unix_nano);
        let receipt = FlowReceipt { time_unix_nano: time, exporter: packet.source };
        let _ = batch.push(&packet.payload, &mut admitted, receipt);
        if batch.len() >= BATCH {
            sink.print(FlowJob::new(batch.take()))?;
        }
    }
    sink.print(FlowJob::new(batch.take()))?;
    sink.finish()
}
