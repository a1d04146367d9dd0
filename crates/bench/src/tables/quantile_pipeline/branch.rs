//! One process that makes the sketches of one source, or passes its points on, into a sink.

use std::path::Path;

use super::super::numbers::Numbers;
use super::arrived;
use super::cases::{Case, Method};
use super::configs::{self, Role};
use super::run::{
    BYTES_IN, BYTES_OUT, BYTES_WINDOW, CPU, ENVELOPE, Load, PATIENCE, RATE, RATE_OF_CORE, RSS, RunError, check_raw,
    finish, start_sink,
};
use crate::process::{ENGINE_CORE, Engine, Listening, free_address};

/// One run of a method.
pub(super) fn run(binary: &Path, case: &Case, load: &Load, method: Method) -> Result<Numbers, RunError> {
    let (sink, endpoint) = start_sink(case.protocol)?;
    let listening = free_address()?;
    let role = if method == Method::Raw { Role::Pass } else { Role::Create { source: 0 } };
    let config = configs::process(case, method, role, ENGINE_CORE, listening, endpoint);
    let engine = Engine::start(binary, config, &[Listening::Tcp(listening)])?;

    let points = load.points(method);
    let expected = if method == Method::Raw { points } else { load.truth.messages(method) };
    let window = engine.open_window()?;
    load.send(0, method, listening).map_err(|source| RunError::Send { source, log: engine.last_words() })?;
    let arrived = sink.wait_for(expected, PATIENCE);
    let cost = window.close()?;
    let arrived = arrived.map_err(|source| RunError::Missing { source, log: engine.last_words() })?;

    // What arrives twice, or should not at all, comes at the latest when the engine drains.
    engine.stop()?;
    let (messages, counts) = finish(sink, points)?;
    let observations = points as f64;
    let cpu = cost.cpu_seconds * 1e9 / observations;
    let numbers = Numbers::default()
        .with(CPU, cpu)
        .with(RATE_OF_CORE, 1e3 / cpu)
        .with(RATE, observations / cost.seconds)
        .with(BYTES_IN, load.bytes(method) as f64 / observations)
        .with(BYTES_OUT, arrived.wire_bytes as f64 / observations)
        .with(RSS, cost.peak_rss_mib);
    if method == Method::Raw {
        check_raw(load, messages, counts)?;
        return Ok(numbers);
    }
    let sketches = arrived::sketches(messages, &load.truth)?;
    load.truth.check(&sketches.answers, method)?;
    Ok(numbers
        .with(BYTES_WINDOW, arrived.wire_bytes as f64 / load.truth.windows() as f64)
        .with(ENVELOPE, sketches.envelope_bytes as f64 / load.truth.messages(method) as f64))
}
