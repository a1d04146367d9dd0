//! What lanes do without a sink: the memory that they take, and how they go on when it is there.
//!
//! Both are one run each of four lanes that speak OTAP with their default queues.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use catchment_loadgen::sink::{Sink, SinkError, SinkOptions};
use serde_json::{Value, json};

use super::super::numbers::{Metric, Numbers};
use super::super::pipelines;
use super::TABLE;
use super::load::Load;
use super::run::{PATIENCE, RunError};
use crate::process::{Engine, Listening, MAIN, ProcessError, free_address};
use crate::row::{Measured, Peer, Rows};

/// A sink that takes connections and never answers.
pub(super) const NO_ANSWER: &str = "no-answer/otap-zstd-1/4-lanes";
/// A sink that is not there for half a minute.
pub(super) const OUTAGE: &str = "outage-30s/otap-zstd-1/4-lanes";

const LANES: u16 = 4;
/// Of a lane: the defaults of its queue and of its request, and what the windows of its connection hold.
const LANE_MIB: f64 = 16.0 + 4.0 + 4.0;
/// Longest wait between two attempts.
const BACKOFF: Duration = Duration::from_secs(2);
const OUTAGE_TIME: Duration = Duration::from_secs(30);
/// Time in which queues fill for certain.
const FILLING: Duration = Duration::from_secs(10);

/// Largest resident size beyond that before anything was sent.
const OVER_IDLE: Metric = Metric { name: "rss_over_idle", unit: "MiB" };
/// Time from when the sink listens until the first request has arrived.
const FIRST: Metric = Metric { name: "first_after", unit: "s" };
/// The same until everything has.
const ALL: Metric = Metric { name: "all_after", unit: "s" };

/// Measures what a sink costs that does not answer; writes it beside its bound.
pub(super) fn no_answer<W: Write>(binary: &Path, load: &Load, rows: &mut Rows<W>) -> Result<(), Failure> {
    // Connections are complete without anybody accepting them.
    let silent = TcpListener::bind(("127.0.0.1", 0)).map_err(RunError::Listen)?;
    let (engine, listening) = start(binary, load, silent.local_addr().map_err(RunError::Listen)?)?;
    let idle = engine.open_window()?.close()?.mean_rss_mib;
    let window = engine.open_window()?;
    let cost = std::thread::scope(|scope| {
        let sender = scope.spawn(|| load.send(listening));
        std::thread::sleep(FILLING);
        let cost = window.close();
        // Cuts the sender off, which fails.
        drop(engine);
        let _ = sender.join();
        cost
    })?;
    let numbers = Numbers::default().with(OVER_IDLE, cost.peak_rss_mib - idle);
    add(rows, NO_ANSWER, &numbers, Peer { name: "bound", value: f64::from(LANES) * LANE_MIB * 1.1 })
}

/// Measures how long it takes until what was received during an outage has arrived.
pub(super) fn outage<W: Write>(binary: &Path, load: &Load, quick: bool, rows: &mut Rows<W>) -> Result<(), Failure> {
    let endpoint = free_address()?;
    let (engine, listening) = start(binary, load, endpoint)?;
    let numbers = std::thread::scope(|scope| {
        let sender = scope.spawn(|| load.send(listening));
        std::thread::sleep(if quick { OUTAGE_TIME / 10 } else { OUTAGE_TIME });
        let sink = Sink::start(SinkOptions { otap: Some(endpoint), ..SinkOptions::default() })?;
        let began = Instant::now();
        let missing = |source| RunError::Missing { source, log: engine.last_words() };
        let _ = sink.wait_for(1, PATIENCE).map_err(missing)?;
        let first = began.elapsed();
        let _ = sink.wait_for(load.items(), PATIENCE).map_err(missing)?;
        let all = began.elapsed();
        sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        engine.stop()?;
        let counts = sink.stop()?;
        if counts.items() != load.items() || counts.decode_errors != 0 {
            return Err(RunError::Different { sent: load.items(), counts });
        }
        Ok(Numbers::default().with(FIRST, first.as_secs_f64()).with(ALL, all.as_secs_f64()))
    })?;
    add(rows, OUTAGE, &numbers, Peer { name: "longest-backoff", value: BACKOFF.as_secs_f64() })
}

fn start(binary: &Path, load: &Load, endpoint: SocketAddr) -> Result<(Engine, SocketAddr), ProcessError> {
    let listening = free_address()?;
    let nodes = json!({ "receive": load.receiver(listening, 8_192), "export": exporter(endpoint) });
    let pipeline = pipelines::pipeline(nodes, json!([{ "from": "receive", "to": "export" }]));
    Ok((Engine::start(binary, pipelines::engine(MAIN, pipeline), &[Listening::Tcp(listening)])?, listening))
}

fn exporter(endpoint: SocketAddr) -> Value {
    json!({ "type": "urn:catchment:exporter:lanes", "config": {
        "protocol": "otap",
        "client": { "endpoint": format!("http://{endpoint}") },
        "lanes": { "count": LANES, "key": "round_robin" },
        "retry": { "max_elapsed": "none", "max": "2s" },
    } })
}

fn add<W: Write>(rows: &mut Rows<W>, case: &str, numbers: &Numbers, bound: Peer<'_>) -> Result<(), Failure> {
    for (metric, ours) in numbers.iter() {
        let peer = (metric != ALL).then_some(bound);
        rows.add(&Measured { table: TABLE, case, metric: metric.name, unit: metric.unit, ours, peer })?;
    }
    Ok(())
}

/// A run that gives no numbers, or rows that cannot be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Rows(#[from] io::Error),
}

impl From<ProcessError> for Failure {
    fn from(error: ProcessError) -> Self {
        Self::Run(error.into())
    }
}

impl From<SinkError> for Failure {
    fn from(error: SinkError) -> Self {
        Self::Run(error.into())
    }
}
