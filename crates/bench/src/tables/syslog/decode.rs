//! Decode jobs by themselves, without an engine: what a message costs, and how long a step keeps others waiting.

use std::sync::Arc;
use std::time::{Duration, Instant};

use catchment_columns::syslog::{Receipt, RowOptions, Source, SyslogBatch, SyslogJob, Transport, Zone};
use catchment_columns::{ColumnsError, Job, OtapArrowRecords, ParentIds, Step};
use catchment_loadgen::traffic::{DEFAULT_START_UNIX_NANO, Source as _};
use otel_arrow_dfe_pdata::Producer;

use super::super::numbers::{Metric, Numbers};
use super::corpus::Recording;
use crate::process::{ProcessError, thread_time};

/// Batches decoded one after the other.
const ROUNDS: usize = 15;

/// Time of the thread for decoding a batch.
const DECODE: Metric = Metric { name: "decode", unit: "us/log" };
/// Time of the thread for what an OTAP exporter does with it: its form for transport, Arrow IPC, zstd.
const ENCODE: Metric = Metric { name: "encode", unit: "us/log" };
const STEPS: Metric = Metric { name: "steps", unit: "steps/batch" };
/// The longest step of a batch, making the arrays included, on the clock on the wall: of all rounds the shortest, as the
/// machine has other things to do in some.
const LONGEST_STEP: Metric = Metric { name: "longest_step", unit: "us" };
const BYTES: Metric = Metric { name: "bytes", unit: "B/log" };

/// What keeps a batch from being decoded.
#[derive(Debug, thiserror::Error)]
pub(super) enum DecodeError {
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    #[error(transparent)]
    Otap(#[from] otel_arrow_dfe_pdata::error::Error),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("{messages} messages gave {records} records")]
    Miscounted { messages: usize, records: usize },
}

/// Decodes the lines of a recording, a batch of all of them at a time.
pub(super) fn run(recording: &Recording) -> Result<Numbers, DecodeError> {
    let mut producer = Producer::new();
    let (mut decode, mut encode, mut steps, mut longest, mut bytes) = (f64::MAX, f64::MAX, 0, f64::MAX, 0);
    let mut messages = 0;
    for _ in 0..ROUNDS {
        let batch = batch(recording);
        messages = batch.len();
        let began = thread_time()?;
        let (mut records, taken, slowest) = decoded(batch)?;
        decode = decode.min(micros_since(began)?);
        if records.num_items() != messages {
            return Err(DecodeError::Miscounted { messages, records: records.num_items() });
        }
        let began = thread_time()?;
        let sent = producer.produce_bar(&mut records)?;
        encode = encode.min(micros_since(began)?);
        (steps, longest) = (taken, longest.min(slowest));
        bytes = sent.arrow_payloads.iter().map(|payload| payload.record.len()).sum();
    }
    let of_each = |sum: f64| sum / messages as f64;
    Ok(Numbers::default()
        .with(DECODE, of_each(decode))
        .with(ENCODE, of_each(encode))
        .with(BYTES, of_each(bytes as f64))
        .with(STEPS, steps as f64)
        .with(LONGEST_STEP, longest))
}

fn batch(recording: &Recording) -> SyslogBatch {
    let peer = std::net::SocketAddr::from(([127, 0, 0, 1], 40_000));
    let source = Arc::new(Source::new(Some(peer), Transport::Tcp, Arc::new(Zone::Utc)));
    let receipt = Receipt { time_unix_nano: i64::try_from(DEFAULT_START_UNIX_NANO).unwrap_or(0), truncated: false };
    let (mut lines, mut line, mut batch) = (recording.source(), Vec::new(), SyslogBatch::new());
    while lines.append_next(&mut line).is_some() {
        batch.push(&line, &source, receipt);
        line.clear();
    }
    batch
}

/// The records of a batch, the steps that it took, and microseconds of the longest.
fn decoded(batch: SyslogBatch) -> Result<(OtapArrowRecords, usize, f64), DecodeError> {
    let messages = batch.len();
    let mut job = SyslogJob::new(batch, RowOptions { parent_ids: ParentIds::Transport, ..RowOptions::default() });
    let (budget, mut steps, mut longest) = (job.budget(), 0, 0.0_f64);
    loop {
        let began = Instant::now();
        let step = job.step(budget)?;
        longest = longest.max(began.elapsed().as_secs_f64() * 1e6);
        steps += 1;
        match step {
            Step::More => {}
            Step::Batch(records) => return Ok((records, steps, longest)),
            Step::End => return Err(DecodeError::Miscounted { messages, records: 0 }),
        }
    }
}

/// Microseconds that this thread has worked since it had worked for `began`.
fn micros_since(began: Duration) -> Result<f64, ProcessError> {
    Ok(thread_time()?.saturating_sub(began).as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::super::corpus::CORPORA;
    use super::*;

    /// Every message gives a record, in several steps.
    #[test]
    fn numbers() {
        let numbers = run(&CORPORA[0].record(1_000)).unwrap();
        assert!(numbers.get(STEPS).unwrap() >= 4.0, "{numbers}");
        assert!(numbers.get(DECODE).unwrap() > 0.0 && numbers.get(BYTES).unwrap() > 1.0, "{numbers}");
        assert!(numbers.get(LONGEST_STEP).unwrap() > 0.0);
    }
}
