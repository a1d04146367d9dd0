//! How long small OTLP requests take in a second pipeline on the same core, while lines go through the first.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use catchment_loadgen::traffic::{Framing, SendOptions, Source, send_tcp};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::logs::v1::ExportLogsServiceRequest;
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::{AnyValue, any_value};
use otel_arrow_dfe_pdata::proto::opentelemetry::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use prost::Message as _;

use super::super::numbers::{Metric, Numbers};
use super::super::{Setup, progress};
use super::run::{PATIENCE, Rate, RunError};
use super::sides::Side;
use super::{BATCH_ITEMS, config, otap};
use crate::http::{Connection, post};
use crate::process::{Engine, Listening, free_address, put_first};
use crate::stats::percentile;

/// Time from one request to the next: 100 a second.
const EVERY: Duration = Duration::from_millis(10);

const MEDIAN: Metric = Metric { name: "latency_p50", unit: "ms" };
const P99: Metric = Metric { name: "latency_p99", unit: "ms" };
const LARGEST: Metric = Metric { name: "latency_max", unit: "ms" };
const REQUESTS: Metric = Metric { name: "requests", unit: "1" };

/// Lines in a run: whole batches, for eight seconds at the fixed rate.
pub(super) fn lines(quick: bool) -> u64 {
    BATCH_ITEMS * if quick { 3 } else { 100 }
}

/// One run of a side: requests are sent as long as lines are.
pub(super) fn run(setup: &Setup, side: Side, mut source: impl Source, count: u64) -> Result<Numbers, RunError> {
    let program = side.program(setup).ok_or(RunError::NoProgram)?;
    let (sink, endpoint) = otap::start_sink()?;
    let (listening, probed) = (free_address()?, free_address()?);
    let config = config::with_probe(config::tcp_otap(side, listening, endpoint), probed);
    let engine = Engine::start(program, config, &[Listening::Tcp(listening), Listening::Tcp(probed)])?;
    let options = SendOptions { count, per_second: Rate::Fixed.per_second(setup.quick) };

    let stop = AtomicBool::new(false);
    let (sent, latencies) = std::thread::scope(|scope| {
        let prober = scope.spawn(|| latencies(probed, &stop));
        let sent = send_tcp(listening, &mut source, Framing::Newline, &options);
        stop.store(true, Ordering::Relaxed);
        (sent, prober.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let (sent, latencies) = (sent?.messages, latencies?);
    if let Err(source) = sink.wait_for(sent, PATIENCE) {
        return Err(RunError::Missing { source, log: engine.last_words() });
    }
    let _ = otap::finish(engine, sink, sent)?;
    Ok(numbers(&latencies))
}

/// Sends requests over one connection until told to stop, and gives the time of each in milliseconds: from the moment it
/// was due, so that one that waits for a slow answer before it counts its waiting.
fn latencies(address: SocketAddr, stop: &AtomicBool) -> Result<Vec<f64>, RunError> {
    if !put_first() {
        progress("the probe may not run before sender and sink: its times have their share in them");
    }
    let mut connection = Connection::open(address).map_err(RunError::Probe)?;
    let request = post(address, "/v1/logs", "application/x-protobuf", &one_log());
    let mut latencies = Vec::new();
    let mut due = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let response = connection.exchange(&request).map_err(RunError::Probe)?;
        latencies.push(due.elapsed().as_secs_f64() * 1e3);
        if response.status != 200 {
            return Err(RunError::Refused { status: response.status });
        }
        due += EVERY;
    }
    Ok(latencies)
}

fn numbers(latencies: &[f64]) -> Numbers {
    let at = |percent: f64| percentile(latencies.to_vec(), percent).unwrap_or(f64::NAN);
    let requests = latencies.len() as f64;
    Numbers::default().with(MEDIAN, at(50.0)).with(P99, at(99.0)).with(LARGEST, at(100.0)).with(REQUESTS, requests)
}

/// An OTLP request with one small log record.
fn one_log() -> Vec<u8> {
    let body = AnyValue { value: Some(any_value::Value::StringValue("still there?".to_owned())) };
    let record = LogRecord { time_unix_nano: 1_767_225_600_000_000_000, body: Some(body), ..LogRecord::default() };
    let scope = ScopeLogs { log_records: vec![record], ..ScopeLogs::default() };
    let resource = ResourceLogs { scope_logs: vec![scope], ..ResourceLogs::default() };
    ExportLogsServiceRequest { resource_logs: vec![resource] }.encode_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The request holds one record.
    #[test]
    fn request() {
        let request = ExportLogsServiceRequest::decode(one_log().as_slice()).unwrap();
        let record = &request.resource_logs[0].scope_logs[0].log_records[0];
        assert!(record.body.is_some());
        assert!(one_log().len() < 100, "small");
    }

    /// Out of order, and with one outlier that only the largest shows.
    #[test]
    fn percentiles() {
        let mut latencies = vec![1.0; 150];
        latencies.extend([2.0; 49]);
        latencies.insert(0, 70.0);
        let expected = Numbers::default().with(MEDIAN, 1.0).with(P99, 2.0).with(LARGEST, 70.0).with(REQUESTS, 200.0);
        assert_eq!(numbers(&latencies), expected);
    }

    /// Long enough for a 99th percentile of more than a handful.
    #[test]
    fn loads() {
        let seconds = lines(false) / Rate::Fixed.per_second(false).unwrap().get();
        assert_eq!((seconds, lines(false) % BATCH_ITEMS), (8, 0));
    }
}
