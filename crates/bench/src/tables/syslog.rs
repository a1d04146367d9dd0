//! Table `syslog`: lines over TCP -> receiver -> batches of 8,000 -> OTAP with zstd, our receiver beside the one that
//! comes with the engine, in the same binary.
//!
//! The engine has one core, sender and sink the other. Lines are offered at a fixed rate; the two sides take turns.

use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use catchment_loadgen::sink::{Counts, Sink, SinkError, SinkOptions, WaitError};
use catchment_loadgen::traffic::{Framing, SendError, SendOptions, SyslogFormat, SyslogLines, send_tcp};
use serde_json::{Value, json};

use super::{Setup, progress};
use crate::process::{ENGINE_CORE, Engine, ProcessError, free_address};
use crate::row::{Measured, Peer, Rows};
use crate::stats::median;

const TABLE: &str = "syslog";
const PEER_NAME: &str = "upstream-0.62";
/// Log records in each batch that is exported.
const BATCH_ITEMS: u64 = 8_000;
/// How long the last lines may take to arrive after they are sent.
const PATIENCE: Duration = Duration::from_secs(60);

const CASES: [(&str, SyslogFormat); 4] = [
    ("tcp-otap-zstd/rfc3164", SyslogFormat::Rfc3164),
    ("tcp-otap-zstd/rfc5424", SyslogFormat::Rfc5424),
    ("tcp-otap-zstd/rfc5424_sd", SyslogFormat::Rfc5424Sd),
    ("tcp-otap-zstd/cef", SyslogFormat::Cef),
];

/// Whose receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    Peer,
}

/// What is sent in each run.
#[derive(Debug, Clone, Copy)]
struct Load {
    runs: usize,
    lines: u64,
    per_second: u32,
}

impl Load {
    /// Whole batches, so that none waits for its time to be up.
    fn new(quick: bool) -> Self {
        if quick {
            Self { runs: 1, lines: 10 * BATCH_ITEMS, per_second: 20_000 }
        } else {
            Self { runs: 3, lines: 128 * BATCH_ITEMS, per_second: 102_400 }
        }
    }
}

/// Why a run gives no numbers.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Sink(#[from] SinkError),
    #[error(transparent)]
    Send(#[from] SendError),
    #[error("{source}; last words of the engine:\n{log}")]
    Missing { source: WaitError, log: String },
    #[error("{sent} lines were sent, but {} records and {} undecodable batches arrived", counts.logs, counts.decode_errors)]
    Different { sent: u64, counts: Counts },
}

/// The numbers of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Run {
    cpu_us_per_log: f64,
    logs_per_second: f64,
    wire_bytes_per_log: f64,
    peak_rss_mib: f64,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (metric, unit, value)) in METRICS.into_iter().enumerate() {
            let separator = if number == 0 { "" } else { ", " };
            write!(f, "{separator}{metric} {:.2} {unit}", value(self))?;
        }
        Ok(())
    }
}

/// Name, unit, and where it is in a run.
type Metric = (&'static str, &'static str, fn(&Run) -> f64);

const METRICS: [Metric; 4] = [
    ("cpu", "us/log", |run| run.cpu_us_per_log),
    ("rate", "logs/s", |run| run.logs_per_second),
    ("bytes", "B/log", |run| run.wire_bytes_per_log),
    ("rss", "MiB", |run| run.peak_rss_mib),
];

/// Measures all cases; gives the number of those that failed.
pub(super) fn measure<W: Write>(setup: &Setup, rows: &mut Rows<W>) -> io::Result<usize> {
    let load = Load::new(setup.quick);
    let mut failures = 0;
    for (case, format) in CASES {
        match interleaved(setup, case, format, load) {
            Ok([ours, peer]) => add_rows(rows, case, &ours, &peer)?,
            Err((side, error)) => {
                failures += 1;
                progress(&format!("error: {case}, {side:?}: {error}"));
            }
        }
    }
    Ok(failures)
}

/// The runs of both sides, in turns; whoever is first is second next time.
fn interleaved(setup: &Setup, case: &str, format: SyslogFormat, load: Load) -> Result<[Vec<Run>; 2], (Side, RunError)> {
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for number in 0..load.runs {
        let mut order = [Side::Ours, Side::Peer];
        if number % 2 == 1 {
            order.reverse();
        }
        for side in order {
            let run = run(setup, side, format, load).map_err(|error| (side, error))?;
            progress(&format!("{case}, {side:?}, run {} of {}: {run}", number + 1, load.runs));
            match side {
                Side::Ours => ours.push(run),
                Side::Peer => peer.push(run),
            }
        }
    }
    Ok([ours, peer])
}

fn add_rows<W: Write>(rows: &mut Rows<W>, case: &str, ours: &[Run], peer: &[Run]) -> io::Result<()> {
    for (metric, unit, number) in METRICS {
        let middle = |runs: &[Run]| median(runs.iter().map(number).collect());
        if let Some(ours) = middle(ours) {
            let peer = middle(peer).map(|value| Peer { name: PEER_NAME, value });
            rows.add(&Measured { table: TABLE, case, metric, unit, ours, peer })?;
        }
    }
    Ok(())
}

fn run(setup: &Setup, side: Side, format: SyslogFormat, load: Load) -> Result<Run, RunError> {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let sink = Sink::start(SinkOptions { otap: Some(any), ..SinkOptions::default() })?;
    let endpoint = sink.addresses().otap.ok_or(SinkError::NoAddress)?;
    let listening = free_address()?;
    let engine = Engine::start(&setup.binary, config(side, listening, endpoint), listening)?;
    let mut lines = SyslogLines::new(format, 0);
    let options = SendOptions { count: load.lines, per_second: NonZeroU64::new(load.per_second.into()) };

    let cpu_before = engine.cpu_time()?;
    let began = Instant::now();
    let sent = send_tcp(listening, &mut lines, Framing::Newline, &options)?.messages;
    let arrived = sink.wait_for(sent, PATIENCE);
    let seconds = began.elapsed().as_secs_f64();
    let cpu = engine.cpu_time()?.saturating_sub(cpu_before);
    let peak_rss_mib = engine.peak_rss_mib()?;

    if let Err(source) = arrived {
        return Err(RunError::Missing { source, log: engine.last_words() });
    }
    // What arrives twice, or should not at all, comes at the latest when the engine drains.
    engine.stop()?;
    let counts = sink.stop()?;
    if counts.logs != sent || counts.items() != sent || counts.decode_errors != 0 {
        return Err(RunError::Different { sent, counts });
    }
    let (logs, wire_bytes) = (sent as f64, counts.wire_bytes as f64);
    Ok(Run {
        cpu_us_per_log: cpu.as_secs_f64() * 1e6 / logs,
        logs_per_second: logs / seconds,
        wire_bytes_per_log: wire_bytes / logs,
        peak_rss_mib,
    })
}

/// The engine's configuration; the two sides differ in the receiver only.
fn config(side: Side, listening: SocketAddr, endpoint: SocketAddr) -> Value {
    let receiver = match side {
        Side::Ours => json!({
            "type": "urn:catchment:receiver:syslog",
            "config": {
                "tcp": { "listening_addr": listening, "framing": "newline" },
                "batch": { "max_messages": 100, "max_duration": "100ms" },
            },
        }),
        Side::Peer => json!({
            "type": "urn:otel:receiver:syslog_cef",
            "config": {
                "protocol": { "tcp": { "listening_addr": listening, "framing": "newline" } },
                "batch": { "max_size": 100, "max_batch_duration_ms": 100 },
            },
        }),
    };
    json!({
        "version": "otel_dataflow/v1",
        "engine": { "telemetry": { "logs": { "level": "warn" } } },
        "groups": { "default": { "pipelines": { "main": {
            "policies": { "resources": { "core_allocation": {
                "type": "core_set",
                "set": [{ "start": ENGINE_CORE, "end": ENGINE_CORE }],
            } } },
            "nodes": {
                "receive": receiver,
                "batch": {
                    "type": "urn:otel:processor:batch",
                    "config": {
                        "format": "otap",
                        "otap": { "min_size": BATCH_ITEMS, "max_size": BATCH_ITEMS, "sizer": "items" },
                        "max_batch_duration": "200ms",
                    },
                },
                "export": {
                    "type": "urn:otel:exporter:otap",
                    "config": { "grpc_endpoint": format!("http://{endpoint}"), "compression_method": "zstd" },
                },
            },
            "connections": [{ "from": "receive", "to": "batch" }, { "from": "batch", "to": "export" }],
        } } } },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Machine;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    /// Whatever is compared runs with the same settings.
    #[test]
    fn sides_differ_in_the_receiver_only() {
        let [mut ours, mut peer] = [Side::Ours, Side::Peer].map(|side| config(side, address(514), address(4317)));
        let pointer = "/groups/default/pipelines/main/nodes/receive";
        assert_ne!(ours.pointer(pointer), peer.pointer(pointer));
        assert_eq!(ours.pointer(pointer).unwrap()["config"]["tcp"]["listening_addr"], "127.0.0.1:514");
        for config in [&mut ours, &mut peer] {
            *config.pointer_mut(pointer).unwrap() = Value::Null;
        }
        assert_eq!(ours, peer);
    }

    /// A run is whole batches, and lasts long enough for ticks of 10 ms to be a small error.
    #[test]
    fn loads() {
        for load in [Load::new(true), Load::new(false)] {
            assert_eq!(load.lines % BATCH_ITEMS, 0);
            assert!(load.lines >= 4 * u64::from(load.per_second), "{load:?}");
            assert!(load.runs % 2 == 1, "the median is a value that was measured");
        }
    }

    /// Each metric is the median of its own numbers.
    #[test]
    fn rows_of_medians() {
        let run = |factor: f64| Run {
            cpu_us_per_log: factor,
            logs_per_second: 10.0 * factor,
            wire_bytes_per_log: 100.0 * factor,
            peak_rss_mib: 1_000.0 * factor,
        };
        let mut out = Vec::new();
        let mut rows = Rows::new(Machine::detect(), &mut out, None);
        add_rows(&mut rows, "case", &[run(3.0), run(1.0), run(2.0)], &[run(4.0)]).unwrap();
        let rows: Vec<Value> =
            String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let expected = [("cpu", 2.0), ("rate", 20.0), ("bytes", 200.0), ("rss", 2_000.0)];
        assert_eq!(rows.len(), expected.len());
        for (row, (metric, ours)) in rows.iter().zip(expected) {
            assert_eq!((row["metric"].as_str(), row["ours"].as_f64()), (Some(metric), Some(ours)));
            assert_eq!((&row["ratio"], &row["peer_name"]), (&json!(0.5), &json!(PEER_NAME)));
        }
    }
}
