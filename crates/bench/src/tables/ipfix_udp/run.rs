//! One run: sending, waiting, counting.

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use catchment_loadgen::traffic::{SendError, SendOptions, send_udp};

use super::super::messages::Messages;
use super::super::numbers::{Metric, Numbers};
use crate::process::{Cost, Engine, Metrics, ProcessError, udp_unread};

/// How long what was sent may take to be read.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two looks at an engine's counters.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Looks without a change after which nothing more is expected; the engine reports every other look.
const QUIET_LOOKS: u32 = 10;

/// What the sender achieved.
pub(super) const OFFERED: Metric = Metric { name: "offered", unit: "records/s" };
const DATAGRAMS: Metric = Metric { name: "offered_datagrams", unit: "datagrams/s" };
const SENT: Metric = Metric { name: "sent", unit: "records" };
const RECEIVED: Metric = Metric { name: "received", unit: "records" };
/// Records sent and not received.
pub(super) const LOST: Metric = Metric { name: "lost", unit: "%" };
/// Datagrams dropped at the socket, of the kernel's own table.
const KERNEL_DROPS: Metric = Metric { name: "kernel_drops", unit: "datagrams" };
/// CPU time of the collector for each record that it received.
const CPU: Metric = Metric { name: "cpu", unit: "us/record" };
const PEAK_RSS: Metric = Metric { name: "rss", unit: "MiB" };
/// What the kernel gave the socket.
const BUFFER: Metric = Metric { name: "receive_buffer", unit: "KiB" };

/// Why there is no number.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Send(#[from] SendError),
    #[error("there is no program of this side")]
    NoProgram,
    #[error("files of the collector cannot be used: {0}")]
    Files(std::io::Error),
    #[error("the collector does not say how many records it received, but: {said:?}")]
    NoCount { said: String },
    #[error("{sent} records were sent, but the collector counts {received}")]
    Miscounted { sent: u64, received: u64 },
}

/// What is sent.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) messages: Messages,
    pub(super) messages_per_second: NonZeroU64,
}

/// What was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) records: u64,
    datagrams: u64,
    seconds: f64,
}

/// Sends it all.
pub(super) fn offered(offer: &Offer, to: SocketAddr) -> Result<Sent, RunError> {
    let options = SendOptions { count: offer.messages.len() as u64, per_second: Some(offer.messages_per_second) };
    let began = Instant::now();
    let sent = send_udp(to, &mut offer.messages.source(), &options)?;
    Ok(Sent { records: sent.records, datagrams: sent.messages, seconds: began.elapsed().as_secs_f64() })
}

/// Waits until nothing is left to be read at a UDP port, or patience ends.
pub(super) fn drained(port: u16) {
    let began = Instant::now();
    while udp_unread(port).unwrap_or(0) > 0 && began.elapsed() < PATIENCE {
        std::thread::sleep(LOOK_EVERY);
    }
    // What was read last is still to be worked on.
    std::thread::sleep(LOOK_EVERY);
}

/// Looks at an engine's counters until it has `received` everything, or nothing more comes.
pub(super) fn watch(engine: &Engine, received: impl Fn(&Metrics) -> u64, sent: u64) -> Result<Metrics, ProcessError> {
    let began = Instant::now();
    let (mut last, mut quiet) = (0, 0);
    loop {
        let metrics = engine.metrics()?;
        let now = received(&metrics);
        quiet = if now == last { quiet + 1 } else { 0 };
        last = now;
        if now >= sent || quiet >= QUIET_LOOKS || began.elapsed() >= PATIENCE {
            return Ok(metrics);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// What a collector received.
#[derive(Debug, Clone, Copy)]
pub(super) struct Received {
    pub(super) records: u64,
    pub(super) kernel_drops: u64,
    /// Bytes.
    pub(super) buffer: Option<u64>,
    pub(super) cost: Cost,
}

impl Received {
    /// Beside what was sent.
    pub(super) fn numbers(&self, sent: &Sent) -> Result<Numbers, RunError> {
        let Sent { records, datagrams, seconds } = *sent;
        if self.records == 0 || self.records > records {
            return Err(RunError::Miscounted { sent: records, received: self.records });
        }
        let [all, received] = [records, self.records].map(|number| number as f64);
        let numbers = Numbers::default()
            .with(CPU, self.cost.cpu_seconds * 1e6 / received)
            .with(OFFERED, all / seconds)
            .with(DATAGRAMS, datagrams as f64 / seconds)
            .with(SENT, all)
            .with(RECEIVED, received)
            .with(LOST, (all - received) * 100.0 / all)
            .with(KERNEL_DROPS, self.kernel_drops as f64)
            .with(PEAK_RSS, self.cost.peak_rss_mib);
        Ok(match self.buffer {
            Some(bytes) => numbers.with(BUFFER, bytes as f64 / 1_024.0),
            None => numbers,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is lost is a share of what was sent, and CPU time is shared by what arrived.
    #[test]
    fn numbers() {
        let sent = Sent { records: 1_000_000, datagrams: 40_000, seconds: 2.0 };
        let cost = Cost { seconds: 2.0, cpu_seconds: 0.5, peak_rss_mib: 60.0, mean_rss_mib: 50.0 };
        let received = Received { records: 500_000, kernel_drops: 7, buffer: Some(212_992), cost };
        let numbers = received.numbers(&sent).unwrap();
        let values = [CPU, OFFERED, DATAGRAMS, LOST, BUFFER].map(|metric| numbers.get(metric).unwrap());
        assert_eq!(values, [1.0, 500_000.0, 20_000.0, 50.0, 208.0]);
        for records in [0, 1_000_001] {
            assert!(matches!(Received { records, ..received }.numbers(&sent), Err(RunError::Miscounted { .. })));
        }
    }
}
