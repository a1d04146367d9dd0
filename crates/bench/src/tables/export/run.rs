//! One run: a load, an engine, a target, and the numbers.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use catchment_loadgen::sink::{Counts, RunningSink, Sink, SinkError, SinkOptions, WaitError};
use catchment_loadgen::traffic::SendError;

use super::super::numbers::{Metric, Numbers};
use super::cases::{Case, Lanes, Side, Target, Wire};
use super::configs;
use super::distance::{self, ROUND_TRIP};
use super::load::Load;
use crate::process::{Cost, Engine, LOAD_CORE, Listening, Metrics, ProcessError, free_address};

/// How long what was sent may take to arrive.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two looks at an engine's counters.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// CPU time of the engine for each item.
pub(super) const CPU: Metric = Metric { name: "cpu", unit: "ns/item" };
/// The same without that of the receiver alone.
pub(super) const EXPORT: Metric = Metric { name: "export_cpu", unit: "ns/item" };
/// Items that a core can take of which the engine has all: one divided by `cpu`.
pub(super) const RATE_OF_CORE: Metric = Metric { name: "rate_of_core", unit: "M items/s" };
/// Share of what lanes, batches and the round trip allow.
const OF_BOUND: Metric = Metric { name: "of_bound", unit: "%" };
/// Bytes of bodies, with the prefixes of gRPC.
pub(super) const BYTES: Metric = Metric { name: "bytes", unit: "B/item" };
/// Items for each second from the first sent to the last acknowledged.
const RATE: Metric = Metric { name: "rate", unit: "M items/s" };
/// Largest resident size of the engine.
const RSS: Metric = Metric { name: "rss", unit: "MiB" };

/// Why a run gives no numbers.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Sink(#[from] SinkError),
    #[error(transparent)]
    Send(#[from] SendError),
    #[error("cannot listen: {0}")]
    Listen(std::io::Error),
    #[error("{source}; last words of the engine:\n{log}")]
    Missing { source: WaitError, log: String },
    #[error("{sent} items were sent, but {} arrived, and {} undecodable requests", counts.items(), counts.decode_errors)]
    Different { sent: u64, counts: Counts },
    #[error("the exporter counts {taken} requests, the sink {} and {} undecodable ones", counts.requests, counts.decode_errors)]
    Requests { taken: u64, counts: Counts },
    #[error("{0} batches have no key")]
    Unkeyed(u64),
    #[error("{sent} items were sent, but {counted} are counted; last words of the engine:\n{log}")]
    Miscounted { sent: u64, counted: u64, log: String },
}

/// One run of a side.
pub(super) fn run(binary: &Path, case: &Case, load: &Load, side: Side) -> Result<Numbers, RunError> {
    match (side, case.target) {
        (Side::Noop, _) => into_nothing(binary, case, load),
        (_, Target::Counting) => into_sink(binary, case, load, side),
        (_, Target::Engine) => into_engine(binary, case, load, side),
        (_, Target::Raw) => into_raw(binary, case, load, side),
        (Side::Lanes(_, Lanes::Turns(lanes)), Target::Distant) => far_away(binary, case, load, side, lanes),
        (_, Target::Distant) => into_raw(binary, case, load, side),
    }
}

fn start(
    binary: &Path,
    case: &Case,
    load: &Load,
    side: Side,
    to: SocketAddr,
) -> Result<(Engine, SocketAddr), RunError> {
    let listening = free_address()?;
    let config = configs::engine(load.receiver(listening, case.batch), case, side, to);
    Ok((Engine::start(binary, config, &[Listening::Tcp(listening)])?, listening))
}

/// The receiver alone counts for itself.
fn into_nothing(binary: &Path, case: &Case, load: &Load) -> Result<Numbers, RunError> {
    let (engine, listening) = start(binary, case, load, Side::Noop, free_address()?)?;
    let window = engine.open_window()?;
    load.send(listening)?;
    let (set, name) = load.counter();
    let counted = watch(&engine, load.items(), |metrics| metrics.sum(set, |metric| metric == name))?;
    let cost = window.close()?;
    if counted != load.items() {
        return Err(RunError::Miscounted { sent: load.items(), counted, log: engine.last_words() });
    }
    engine.stop()?;
    Ok(costs(cost, load.items()))
}

/// The sink decodes and counts everything.
fn into_sink(binary: &Path, case: &Case, load: &Load, side: Side) -> Result<Numbers, RunError> {
    let (sink, endpoint) = start_sink(side, false)?;
    let (engine, listening) = start(binary, case, load, side, endpoint)?;
    let window = engine.open_window()?;
    load.send(listening)?;
    let arrived = sink.wait_for(load.items(), PATIENCE);
    let cost = window.close()?;
    if let Err(source) = arrived {
        return Err(RunError::Missing { source, log: engine.last_words() });
    }
    // What arrives twice comes at the latest when the engine drains.
    engine.stop()?;
    let counts = sink.stop()?;
    if counts.items() != load.items() || counts.decode_errors != 0 {
        return Err(RunError::Different { sent: load.items(), counts });
    }
    Ok(costs(cost, load.items()).with(BYTES, counts.wire_bytes as f64 / load.items() as f64))
}

/// The exporter counts what the sink, which only reads, has taken.
fn into_raw(binary: &Path, case: &Case, load: &Load, side: Side) -> Result<Numbers, RunError> {
    let (sink, endpoint) = start_sink(side, true)?;
    let endpoint =
        if case.target == Target::Distant { distance::to(endpoint).map_err(RunError::Listen)? } else { endpoint };
    let (engine, listening) = start(binary, case, load, side, endpoint)?;
    let window = engine.open_window()?;
    let began = Instant::now();
    load.send(listening)?;
    let delivered = watch(&engine, load.items(), |metrics| exported(metrics, "items.delivered"))?;
    let cost = window.close()?;
    // The exporter tells some time afterwards.
    let last = sink.last_request().unwrap_or(began);
    let metrics = engine.metrics()?;
    let (taken, unkeyed) = (exported(&metrics, "requests"), exported(&metrics, "batches.unkeyed"));
    if delivered != load.items() {
        return Err(RunError::Miscounted { sent: load.items(), counted: delivered, log: engine.last_words() });
    }
    engine.stop()?;
    let counts = sink.stop()?;
    if counts.requests != taken || counts.decode_errors != 0 {
        return Err(RunError::Requests { taken, counts });
    }
    if unkeyed != 0 {
        return Err(RunError::Unkeyed(unkeyed));
    }
    let items = load.items() as f64;
    let rate = items / 1e6 / last.duration_since(began).as_secs_f64();
    Ok(costs(cost, load.items()).with(RATE, rate).with(BYTES, counts.wire_bytes as f64 / items))
}

/// As [`into_raw`], beside what so many lanes can do at most if each has a request under way at any time.
fn far_away(binary: &Path, case: &Case, load: &Load, side: Side, lanes: u16) -> Result<Numbers, RunError> {
    let numbers = into_raw(binary, case, load, side)?;
    let items = load.items() as f64;
    let requests = items / f64::from(case.batch) / f64::from(lanes);
    let at_least = requests * ROUND_TRIP.as_secs_f64();
    // The rate ends with the last request, whose answer is a round trip away.
    let took = numbers.get(RATE).map_or(f64::INFINITY, |rate| items / 1e6 / rate + ROUND_TRIP.as_secs_f64());
    Ok(numbers.with(OF_BOUND, 100.0 * at_least / took))
}

/// A counter of lanes.
fn exported(metrics: &Metrics, name: &str) -> u64 {
    metrics.sum("exporter.lanes", |metric| metric == name)
}

/// A second engine counts what its receiver hands on.
fn into_engine(binary: &Path, case: &Case, load: &Load, side: Side) -> Result<Numbers, RunError> {
    let endpoint = free_address()?;
    let target = Engine::start_on(LOAD_CORE, binary, configs::target(side, endpoint), &[Listening::Tcp(endpoint)])?;
    let (engine, listening) = start(binary, case, load, side, endpoint)?;
    let window = engine.open_window()?;
    load.send(listening)?;
    let counted = watch(&target, load.items(), consumed)?;
    let cost = window.close()?;
    engine.stop()?;
    let counted = counted.max(consumed(&target.metrics()?));
    if counted != load.items() {
        return Err(RunError::Miscounted { sent: load.items(), counted, log: target.last_words() });
    }
    target.stop()?;
    Ok(costs(cost, load.items()))
}

/// Items that reached the end of the pipeline of an engine that counts.
fn consumed(metrics: &Metrics) -> u64 {
    metrics.sum("node.input", |name| name == "items")
}

fn start_sink(side: Side, raw: bool) -> Result<(RunningSink, SocketAddr), SinkError> {
    let any = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut options = SinkOptions { raw, ..SinkOptions::default() };
    if side.wire().is_some_and(Wire::is_otap) {
        options.otap = any;
    } else {
        options.otlp_grpc = any;
    }
    let sink = Sink::start(options)?;
    let addresses = sink.addresses();
    let endpoint = addresses.otlp_grpc.or(addresses.otap).ok_or(SinkError::NoAddress)?;
    Ok((sink, endpoint))
}

/// Looks at an engine's counters until they tell so many, or patience ends.
fn watch(engine: &Engine, items: u64, counted: impl Fn(&Metrics) -> u64) -> Result<u64, ProcessError> {
    let began = Instant::now();
    loop {
        let now = counted(&engine.metrics()?);
        if now >= items || began.elapsed() >= PATIENCE {
            return Ok(now);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn costs(cost: Cost, items: u64) -> Numbers {
    let cpu = cost.cpu_seconds * 1e9 / items as f64;
    Numbers::default().with(CPU, cpu).with(RATE_OF_CORE, 1e3 / cpu).with(RSS, cost.peak_rss_mib)
}
