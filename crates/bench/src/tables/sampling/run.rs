//! One run: sending, waiting, counting.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use catchment_loadgen::sink::{Counts, Recording, RunningSink, Sink, SinkError, SinkOptions, WaitError};
use catchment_loadgen::traffic::{SendError, SendOptions, Sent, send_tcp, send_udp};
use serde_json::Value;
use tempfile::TempDir;

use super::super::Setup;
use super::super::numbers::{Metric, Numbers};
use super::inputs::{Input, Load};
use super::sides::Side;
use crate::process::{Engine, Framing, Metrics, ProcessError, free_address, tcp_unread, udp_unread};

/// CPU time of the engine for each record that it received, kept or not.
pub(super) const CPU: Metric = Metric { name: "cpu", unit: "ns/record" };
/// Records that a core can take of which the engine has all: one divided by `cpu`.
const RATE_OF_CORE: Metric = Metric { name: "rate_of_core", unit: "M records/s" };
/// Records that the receiver read in a second.
const RATE: Metric = Metric { name: "rate", unit: "records/s" };
/// Records received, of those sent.
const RECEIVED: Metric = Metric { name: "received", unit: "%" };
/// Records kept, of those received.
const KEPT: Metric = Metric { name: "kept", unit: "%" };
/// Bytes of the compressed batches for each record received.
const BYTES: Metric = Metric { name: "bytes", unit: "B/record" };
/// Sum of the adjusted counts of the records that arrived, of the records received.
const ADJUSTED: Metric = Metric { name: "adjusted_sum", unit: "%" };

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Looks without a change after which nothing more is expected; the engine reports every other look.
const QUIET_LOOKS: u32 = 10;

/// Why a run gives no numbers.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error("its program is not there")]
    NoProgram,
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Send(#[from] SendError),
    #[error(transparent)]
    Sink(#[from] SinkError),
    #[error(transparent)]
    Missing(#[from] WaitError),
    #[error("the record of the sink cannot be read: {0}")]
    Record(#[from] std::io::Error),
    #[error("{kept} records were kept, but {} arrived, and {} undecodable batches", counts.items(), counts.decode_errors)]
    Different { kept: u64, counts: Counts },
    #[error("{sent} records were sent, but the receiver counts {received}")]
    Miscounted { sent: u64, received: u64 },
    #[error("{kept} of {received} records were kept, which is not what the side says")]
    Kept { received: u64, kept: u64 },
}

/// One run of a side.
pub(super) fn run(setup: &Setup, load: &Load, side: Side) -> Result<Numbers, RunError> {
    if side == Side::Framing {
        return framing(load);
    }
    let program: &Path = setup.binary.as_deref().ok_or(RunError::NoProgram)?;
    let (input, listening) = (load.input, free_address()?);
    let target = input.has_sink().then(|| Target::start(side)).transpose()?;
    let config = load.config(side, listening, target.as_ref().map(|target| target.address));
    let engine = Engine::start(program, config, &[load.listens(listening)])?;

    let window = engine.open_window()?;
    let began = Instant::now();
    let sent = send(load, side, listening)?;
    let port = listening.port();
    let unread = || if input.is_tcp() { tcp_unread(port) } else { Ok(udp_unread(port).unwrap_or(0)) };
    while unread()? > 0 && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(2));
    }
    let seconds = began.elapsed().as_secs_f64();
    let metrics = watch(&engine, input, sent.records)?;
    let (received, kept) = (input.count(&metrics, "received"), input.count(&metrics, "sent"));
    if let Some(target) = &target {
        let _ = target.sink.wait_for(kept, PATIENCE)?;
    }
    let cost = window.close()?;
    engine.stop()?;

    if received == 0 || received > sent.records || (input.is_tcp() && received < sent.records) {
        return Err(RunError::Miscounted { sent: sent.records, received });
    }
    let share = kept as f64 / received as f64;
    if !side.kept().contains(&share) {
        return Err(RunError::Kept { received, kept });
    }
    let numbers = costs(cost.cpu_seconds, seconds, received)
        .with(RECEIVED, received as f64 * 100.0 / sent.records as f64)
        .with(KEPT, share * 100.0);
    Ok(match target {
        Some(target) => target.finish(numbers, received, kept)?,
        None => numbers,
    })
}

/// Reading and finding frames alone, in a program that does nothing else.
fn framing(load: &Load) -> Result<Numbers, RunError> {
    let (_, what) = load.input.framing();
    let mut program = Framing::start(what)?;
    let window = program.open_window()?;
    let began = Instant::now();
    let sent = send(load, Side::Framing, program.address())?;
    let frames = program.frames()?;
    let seconds = began.elapsed().as_secs_f64();
    let cost = window.close()?;
    if frames != sent.messages {
        return Err(RunError::Miscounted { sent: sent.messages, received: frames });
    }
    Ok(costs(cost.cpu_seconds, seconds, sent.records))
}

fn costs(cpu_seconds: f64, seconds: f64, records: u64) -> Numbers {
    let cpu = cpu_seconds * 1e9 / records as f64;
    Numbers::default().with(CPU, cpu).with(RATE_OF_CORE, 1e3 / cpu).with(RATE, records as f64 / seconds)
}

fn send(load: &Load, side: Side, to: SocketAddr) -> Result<Sent, SendError> {
    let passes = load.passes(side);
    let mut source = load.traffic.source_again(passes);
    let options = SendOptions { count: load.traffic.len() as u64 * passes, per_second: load.per_second };
    match load.input.is_tcp() {
        true => send_tcp(to, &mut source, load.input.framing().0, &options),
        false => send_udp(to, &mut source, &options),
    }
}

/// Looks at the counters until everything was received and what was kept has been sent, or nothing more comes.
fn watch(engine: &Engine, input: Input, all: u64) -> Result<Metrics, ProcessError> {
    let began = Instant::now();
    let (mut last, mut quiet) = ((0, 0), 0);
    loop {
        let metrics = engine.metrics()?;
        let count = |what| input.count(&metrics, what);
        let now = (count("received"), count("sent"));
        quiet = if now == last { quiet + 1 } else { 0 };
        last = now;
        let is_done = now.0 >= all && now.0 == now.1 + count("sampled.out");
        if is_done || quiet >= QUIET_LOOKS || began.elapsed() >= PATIENCE {
            return Ok(metrics);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// A sink that counts, and where weights are expected writes down what arrives.
struct Target {
    sink: RunningSink,
    address: SocketAddr,
    record: Option<(TempDir, PathBuf)>,
}

impl Target {
    fn start(side: Side) -> Result<Self, RunError> {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let record = match side.has_weights() {
            true => {
                let folder = tempfile::tempdir()?;
                let file = folder.path().join("records.ndjson");
                Some((folder, file))
            }
            false => None,
        };
        let recording = record.as_ref().map_or(Recording::Off, |(_, file)| Recording::File(file.clone()));
        let sink = Sink::start(SinkOptions { otap: Some(any), record: recording, ..SinkOptions::default() })?;
        let address = sink.addresses().otap.ok_or(SinkError::NoAddress)?;
        Ok(Self { sink, address, record })
    }

    /// Stops it, and adds what it tells, if what arrived is what was kept.
    fn finish(self, numbers: Numbers, received: u64, kept: u64) -> Result<Numbers, RunError> {
        let counts = self.sink.stop()?;
        if counts.items() != kept || counts.decode_errors != 0 {
            return Err(RunError::Different { kept, counts });
        }
        let numbers = numbers.with(BYTES, counts.wire_bytes as f64 / received as f64);
        Ok(match self.record {
            Some((_, file)) => numbers.with(ADJUSTED, adjusted(&file)? * 100.0 / received as f64),
            None => numbers,
        })
    }
}

/// Sum of the adjusted counts of recorded items; those without one stand for themselves.
fn adjusted(file: &Path) -> std::io::Result<f64> {
    let mut sum = 0.0;
    for line in BufReader::new(File::open(file)?).lines() {
        let record: Value = serde_json::from_str(&line?)?;
        sum += record["attributes"]["sampling.adjusted_count"].as_f64().unwrap_or(1.0);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records stand for what they say, and else for themselves.
    #[test]
    fn adjusted_counts() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let lines =
            "{\"attributes\":{\"sampling.adjusted_count\":10.0}}\n{\"attributes\":{\"a\":7}}\n{\"body\":\"x\"}\n";
        std::fs::write(file.path(), lines).unwrap();
        assert_eq!(adjusted(file.path()).unwrap(), 12.0);
    }

    /// The cost is shared by all records, kept or not.
    #[test]
    fn shares() {
        let expected = Numbers::default().with(CPU, 80.0).with(RATE_OF_CORE, 12.5).with(RATE, 5e6);
        assert_eq!(costs(0.08, 0.2, 1_000_000), expected);
    }
}
