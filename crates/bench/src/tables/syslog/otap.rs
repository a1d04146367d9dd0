//! Lines over TCP -> receiver -> batches -> OTAP with zstd -> a sink that decodes and counts.

use std::net::SocketAddr;
use std::num::NonZeroU64;

use catchment_loadgen::sink::{RunningSink, Sink, SinkError, SinkOptions};
use catchment_loadgen::traffic::{Framing, SendOptions, Source, send_tcp};

use super::super::Setup;
use super::super::numbers::{Metric, Numbers};
use super::config;
pub(super) use super::run::PEAK_RSS;
use super::run::{PATIENCE, RATE, RunError, costs};
use super::sides::Side;
use crate::process::{Engine, Listening, free_address};

/// Bytes of the compressed batches for each message.
const WIRE_BYTES: Metric = Metric { name: "bytes", unit: "B/log" };
/// Largest memory at an unlimited rate divided by that at the fixed rate.
pub(super) const RSS_OVERLOAD_RATIO: Metric = Metric { name: "rss_overload_ratio", unit: "1" };

/// One run of a side.
pub(super) fn run(
    setup: &Setup,
    side: Side,
    mut source: impl Source,
    count: u64,
    per_second: Option<NonZeroU64>,
) -> Result<Numbers, RunError> {
    let program = side.program(setup).ok_or(RunError::NoProgram)?;
    let (sink, endpoint) = start_sink()?;
    let listening = free_address()?;
    let engine = Engine::start(program, config::tcp_otap(side, listening, endpoint), &[Listening::Tcp(listening)])?;

    let window = engine.open_window()?;
    let sent = send_tcp(listening, &mut source, Framing::Newline, &SendOptions { count, per_second })?.messages;
    let arrived = sink.wait_for(sent, PATIENCE);
    let cost = window.close()?;

    if let Err(source) = arrived {
        return Err(RunError::Missing { source, log: engine.last_words() });
    }
    let wire_bytes = finish(engine, sink, sent)?;
    Ok(costs(cost, sent).with(RATE, sent as f64 / cost.seconds).with(WIRE_BYTES, wire_bytes as f64 / sent as f64))
}

/// Starts a sink; gives its address too.
pub(super) fn start_sink() -> Result<(RunningSink, SocketAddr), SinkError> {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let sink = Sink::start(SinkOptions { otap: Some(any), ..SinkOptions::default() })?;
    let endpoint = sink.addresses().otap.ok_or(SinkError::NoAddress)?;
    Ok((sink, endpoint))
}

/// Stops both, and gives the bytes that arrived if the records are exactly those sent.
pub(super) fn finish(engine: Engine, sink: RunningSink, sent: u64) -> Result<u64, RunError> {
    // What arrives twice, or should not at all, comes at the latest when the engine drains.
    engine.stop()?;
    let counts = sink.stop()?;
    if counts.logs != sent || counts.items() != sent || counts.decode_errors != 0 {
        return Err(RunError::Different { sent, counts });
    }
    Ok(counts.wire_bytes)
}
