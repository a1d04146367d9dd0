//! What all runs have in common.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use catchment_loadgen::sink::{Counts, SinkError, WaitError};
use catchment_loadgen::traffic::SendError;

use super::super::numbers::{Metric, Numbers};
use super::BATCH_ITEMS;
use super::sides::Side;
use crate::process::{Cost, Engine, Metrics, ProcessError};

/// How long messages may take to be read or to arrive after they are sent.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two looks at an engine's counters.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// CPU time of the engine for each message that arrived.
pub(super) const CPU: Metric = Metric { name: "cpu", unit: "us/log" };
/// Messages that arrived in a second.
pub(super) const RATE: Metric = Metric { name: "rate", unit: "logs/s" };
/// Largest resident size of the engine.
pub(super) const PEAK_RSS: Metric = Metric { name: "rss", unit: "MiB" };
/// Mean resident size of the engine.
pub(super) const MEAN_RSS: Metric = Metric { name: "rss_mean", unit: "MiB" };

/// How fast lines are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rate {
    /// At a rate that all sides can take.
    Fixed,
    /// As fast as the connection takes them.
    Unlimited,
}

impl Rate {
    pub(super) const ALL: [Self; 2] = [Self::Fixed, Self::Unlimited];

    /// Its name in cases.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Unlimited => "unlimited",
        }
    }

    /// Lines a second, if there is a bound.
    pub(super) fn per_second(self, quick: bool) -> Option<NonZeroU64> {
        match self {
            Self::Fixed => NonZeroU64::new(if quick { 10_240 } else { 102_400 }),
            Self::Unlimited => None,
        }
    }
}

/// Lines in a run over TCP: whole batches, so that none waits for its time to be up.
pub(super) fn lines(quick: bool) -> u64 {
    BATCH_ITEMS * if quick { 3 } else { 50 }
}

/// Why a run gives no numbers.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error("its program is not there")]
    NoProgram,
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
    #[error(
        "{sent} lines were sent, but the receiver counts {received} after {PATIENCE:?}; last words of the engine:\n{log}"
    )]
    NotReceived { sent: u64, received: u64, log: String },
    #[error("{sent} messages were sent, but the receiver counts {received}")]
    Miscounted { sent: u64, received: u64 },
    #[error("the probe failed: {0}")]
    Probe(std::io::Error),
    #[error("the probe got status {status} instead of 200")]
    Refused { status: u16 },
}

/// What an engine cost for each of `logs` messages.
pub(super) fn costs(cost: Cost, logs: u64) -> Numbers {
    Numbers::default()
        .with(CPU, cost.cpu_seconds * 1e6 / logs as f64)
        .with(PEAK_RSS, cost.peak_rss_mib)
        .with(MEAN_RSS, cost.mean_rss_mib)
}

/// Looks at an engine's counters until `done` is content with the number of messages received, or patience ends.
pub(super) fn watch(engine: &Engine, side: Side, mut done: impl FnMut(u64) -> bool) -> Result<Metrics, ProcessError> {
    let began = Instant::now();
    loop {
        let metrics = engine.metrics()?;
        if done(side.received(&metrics)) || began.elapsed() >= PATIENCE {
            return Ok(metrics);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run is whole batches, and at the fixed rate long enough for ticks of 10 ms to be a small error.
    #[test]
    fn loads() {
        for quick in [true, false] {
            assert_eq!(lines(quick) % BATCH_ITEMS, 0);
            let per_second = Rate::Fixed.per_second(quick).unwrap().get();
            assert!(lines(quick) >= 2 * per_second, "{quick}");
        }
        assert!(lines(false) >= 400_000);
        assert_eq!(Rate::Unlimited.per_second(false), None);
    }

    /// CPU time is shared by the messages; memory is not.
    #[test]
    fn shares() {
        let cost = Cost { seconds: 4.0, cpu_seconds: 0.5, peak_rss_mib: 60.0, mean_rss_mib: 50.0 };
        let expected = Numbers::default().with(CPU, 2.0).with(PEAK_RSS, 60.0).with(MEAN_RSS, 50.0);
        assert_eq!(costs(cost, 250_000), expected);
    }
}
