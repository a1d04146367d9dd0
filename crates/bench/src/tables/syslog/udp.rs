//! Datagrams -> receiver -> nothing: how many get lost, and who knows of it.

use std::num::NonZeroU64;
use std::time::Instant;

use catchment_loadgen::traffic::{SendOptions, SyslogFormat, SyslogLines, send_udp};

use super::super::Setup;
use super::super::numbers::{Metric, Numbers};
use super::config;
use super::run::{RunError, costs, watch};
use super::sides::{Side, Transport};
use crate::process::{Engine, Listening, free_address, udp_drops};

/// Name of the case.
pub(super) const CASE: &str = "udp-loss";

/// Looks at the counters without a change after which nothing more is expected; the engine reports every other look.
const QUIET_LOOKS: u32 = 10;

/// What the sender achieved.
const OFFERED: Metric = Metric { name: "offered", unit: "datagrams/s" };
const SENT: Metric = Metric { name: "sent", unit: "datagrams" };
const RECEIVED: Metric = Metric { name: "received", unit: "datagrams" };
const LOST: Metric = Metric { name: "lost", unit: "%" };
/// Of the kernel's own table of sockets.
const KERNEL_DROPS: Metric = Metric { name: "kernel_drops", unit: "datagrams" };
/// Dropped by the kernel as the receiver counts it.
const COUNTED_DROPS: Metric = Metric { name: "counted_drops", unit: "datagrams" };
/// Sent and neither received nor counted as dropped by the receiver; below 0 if it counts too many.
const LOST_UNCOUNTED: Metric = Metric { name: "lost_uncounted", unit: "datagrams" };

/// Datagrams in a run, and in a second: they go out in bursts of what is due in a millisecond.
fn load(quick: bool) -> SendOptions {
    let (count, per_second) = if quick { (10_000, 10_000) } else { (1_000_000, 100_000) };
    SendOptions { count, per_second: NonZeroU64::new(per_second) }
}

/// One run of a side.
pub(super) fn run(setup: &Setup, side: Side) -> Result<Numbers, RunError> {
    let program = side.program(setup).ok_or(RunError::NoProgram)?;
    let listening = free_address()?;
    let config = config::noop(side, Transport::Udp, listening);
    let engine = Engine::start(program, config, &[Listening::Udp(listening)])?;
    let mut lines = SyslogLines::new(SyslogFormat::Rfc3164, 0);

    let window = engine.open_window()?;
    let began = Instant::now();
    let sent = send_udp(listening, &mut lines, &load(setup.quick))?.messages;
    let seconds = began.elapsed().as_secs_f64();
    let mut last = (0, 0);
    let metrics = watch(&engine, side, |received| {
        last = if received == last.0 { (received, last.1 + 1) } else { (received, 0) };
        received >= sent || last.1 >= QUIET_LOOKS
    })?;
    let kernel_drops = udp_drops(listening.port()).unwrap_or(0);
    let cost = window.close()?;

    let received = side.received(&metrics);
    if received > sent || received == 0 {
        return Err(RunError::Miscounted { sent, received });
    }
    engine.stop()?;
    let numbers = costs(cost, received).with(OFFERED, sent as f64 / seconds);
    Ok(with_losses(numbers, sent, received, kernel_drops, side.counted_drops(&metrics)))
}

fn with_losses(numbers: Numbers, sent: u64, received: u64, kernel_drops: u64, counted_drops: u64) -> Numbers {
    let [all, received, kernel, counted] = [sent, received, kernel_drops, counted_drops].map(|number| number as f64);
    numbers
        .with(SENT, all)
        .with(RECEIVED, received)
        .with(LOST, (all - received) * 100.0 / all)
        .with(KERNEL_DROPS, kernel)
        .with(COUNTED_DROPS, counted)
        .with(LOST_UNCOUNTED, all - received - counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is lost is a share of what was sent, and what is counted is no mystery.
    #[test]
    fn losses() {
        let numbers = with_losses(Numbers::default(), 1_000, 750, 240, 230);
        let values = [LOST, KERNEL_DROPS, LOST_UNCOUNTED].map(|metric| numbers.get(metric).unwrap());
        assert_eq!(values, [25.0, 240.0, 20.0]);
    }

    /// Ten seconds in bursts of 100.
    #[test]
    fn offered() {
        let SendOptions { count, per_second } = load(false);
        assert_eq!(count, 10 * per_second.unwrap().get());
        assert_eq!(catchment_loadgen::traffic::Pace::new(per_second).burst(), 100);
    }
}
