//! Lines over TCP -> receiver -> nothing. The engine's own counters tell that all arrived.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use catchment_loadgen::traffic::{Framing, SendOptions, Source, send_tcp};

use super::super::Setup;
use super::super::numbers::{Metric, Numbers};
use super::config;
use super::run::{PATIENCE, RATE, RunError, costs, watch};
use super::sides::{Side, Transport};
use crate::process::{Engine, Listening, free_address, tcp_unread};

/// Messages that the receiver counted.
const RECEIVED: Metric = Metric { name: "received", unit: "logs" };

/// Time between two looks at the connection.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// One run of a side. The rate is that at which the receiver read the lines: when its counters show the last one is known
/// only to a fifth of a second.
pub(super) fn run(
    setup: &Setup,
    side: Side,
    mut source: impl Source,
    count: u64,
    per_second: Option<NonZeroU64>,
) -> Result<Numbers, RunError> {
    let program = side.program(setup).ok_or(RunError::NoProgram)?;
    let listening = free_address()?;
    let config = config::noop(side, Transport::Tcp, listening);
    let engine = Engine::start(program, config, &[Listening::Tcp(listening)])?;

    let window = engine.open_window()?;
    let began = Instant::now();
    let sent = send_tcp(listening, &mut source, Framing::Newline, &SendOptions { count, per_second })?.messages;
    while tcp_unread(listening.port())? > 0 && began.elapsed() < PATIENCE {
        std::thread::sleep(LOOK_EVERY);
    }
    let seconds = began.elapsed().as_secs_f64();
    let metrics = watch(&engine, side, |received| received >= sent)?;
    let cost = window.close()?;

    let received = side.received(&metrics);
    if received != sent {
        return Err(RunError::NotReceived { sent, received, log: engine.last_words() });
    }
    engine.stop()?;
    Ok(costs(cost, sent).with(RATE, sent as f64 / seconds).with(RECEIVED, received as f64))
}
