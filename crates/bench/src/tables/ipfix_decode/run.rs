//! One run of a side.

use std::hint::black_box;
use std::time::Duration;

use super::super::numbers::{Metric, Numbers};
use super::super::rounds::Side;
use super::super::{Setup, progress};
use super::corpus::Corpus;
use super::ours::{self, DecodeError, Decoder};
use super::peers::Files;
use crate::process::{ProcessError, thread_time};

/// CPU time for each record, or for each counter of telemetry.
const CPU: Metric = Metric { name: "cpu", unit: "ns/item" };
/// Records, or counters, in a second of a core.
pub(super) const RATE: Metric = Metric { name: "rate", unit: "M items/s" };
/// CPU time divided by that of copying the messages once, in the same process.
const OF_MEMCPY: Metric = Metric { name: "of_memcpy", unit: "1" };

/// Items decoded, of those that there are.
const DECODED: Metric = Metric { name: "decoded", unit: "%" };

/// A decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contender {
    Ours,
    NetflowParser,
    Netgauze,
}

impl Contender {
    pub(super) const ALL: [Self; 3] = [Self::Ours, Self::NetflowParser, Self::Netgauze];
    pub(super) const PEERS: [Self; 2] = [Self::NetflowParser, Self::Netgauze];

    /// What the program of the peers calls it.
    fn of_program(self) -> Option<&'static str> {
        match self {
            Self::Ours => None,
            Self::NetflowParser => Some("netflow_parser"),
            Self::Netgauze => Some("netgauze"),
        }
    }
}

impl Side for Contender {
    fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::NetflowParser => "netflow_parser-1.0.6",
            Self::Netgauze => "netgauze-flow-pkt-0.13.0",
        }
    }
}

/// What was decoded in a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    /// Records, or counters of telemetry.
    pub(super) items: u64,
    /// Sum of octets and packets, or of the counters, modulo 2^64.
    pub(super) sum: u64,
}

/// What a pass cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Times {
    pub(super) cpu_seconds: f64,
    /// For copying the messages once.
    pub(super) memcpy_seconds: f64,
}

/// Why there is no number.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("the program of the peers cannot be run: {0}")]
    Peer(std::io::Error),
    #[error("the program of the peers failed: {said}")]
    PeerFailed { said: String },
    #[error("decoded {} items with a sum of {}, but there are {} with {}", found.items, found.sum, expected.items, expected.sum)]
    Different { found: Tally, expected: Tally },
    #[error("decoded nothing")]
    Nothing,
}

/// Runs of a case.
pub(super) struct Runs<'a> {
    setup: &'a Setup,
    corpus: &'a Corpus,
    files: Option<Files>,
    /// What the first side found.
    expected: Option<Tally>,
}

impl<'a> Runs<'a> {
    pub(super) fn new(setup: &'a Setup, corpus: &'a Corpus) -> Self {
        Self { setup, corpus, files: None, expected: None }
    }

    /// Whether the program of a side is there.
    pub(super) fn has(&self, side: Contender) -> bool {
        side == Contender::Ours || self.setup.peer_ipfix.is_some()
    }

    /// One run. Whoever is first says what there is to be found: ours, if it can. A peer that finds something else has no
    /// number but that; for ours it is an error.
    pub(super) fn run(&mut self, side: Contender) -> Result<Numbers, RunError> {
        let time = Duration::from_millis(if self.setup.quick { 50 } else { 500 });
        let (found, times) = match (side.of_program(), &self.setup.peer_ipfix) {
            (Some(decoder), Some(program)) => {
                let files = match self.files.take() {
                    Some(files) => files,
                    None => Files::write(self.corpus).map_err(RunError::Peer)?,
                };
                self.files.insert(files).decode(program, decoder, time)?
            }
            _ => {
                let mut decoder = ours::decoder(self.corpus)?;
                (tally(&mut *decoder)?, Some(ours_times(&mut *decoder, self.corpus, time)?))
            }
        };
        if found.items == 0 && side == Contender::Ours {
            return Err(RunError::Nothing);
        }
        let expected = *self.expected.get_or_insert(found);
        let numbers = Numbers::default().with(DECODED, found.items as f64 * 100.0 / expected.items as f64);
        match times {
            Some(times) if found == expected => Ok(with_times(numbers, found, times)),
            _ if side == Contender::Ours => Err(RunError::Different { found, expected }),
            _ => {
                let error = RunError::Different { found, expected };
                progress(&format!("{}: {error}", side.name()));
                Ok(numbers)
            }
        }
    }
}

/// What a decoder makes of the messages.
fn tally(decoder: &mut dyn Decoder) -> Result<Tally, RunError> {
    let (mut found, mut failure) = (Tally::default(), None);
    decoder.pass(&mut |records| failure = failure.take().or(ours::tally(&records, &mut found).err()))?;
    match failure {
        Some(error) => Err(error.into()),
        None => Ok(found),
    }
}

fn ours_times(decoder: &mut dyn Decoder, corpus: &Corpus, time: Duration) -> Result<Times, RunError> {
    let cpu_seconds = mean_time(time, || Ok(decoder.pass(&mut |records| drop(black_box(records)))?))?;
    let bytes = corpus.messages.bytes();
    let mut copy = vec![0; bytes.len()];
    let memcpy_seconds = mean_time(time / 4, || {
        copy.copy_from_slice(black_box(bytes));
        let _ = black_box(&mut copy);
        Ok(())
    })?;
    Ok(Times { cpu_seconds, memcpy_seconds })
}

/// Calls `pass` until it has had `time` of this thread; gives the mean of a pass in seconds.
fn mean_time(time: Duration, mut pass: impl FnMut() -> Result<(), RunError>) -> Result<f64, RunError> {
    let began = thread_time()?;
    let mut passes = 0.0;
    loop {
        pass()?;
        passes += 1.0;
        let taken = thread_time()?.saturating_sub(began);
        if taken >= time {
            return Ok(taken.as_secs_f64() / passes);
        }
    }
}

fn with_times(numbers: Numbers, found: Tally, times: Times) -> Numbers {
    let items = found.items as f64;
    numbers
        .with(CPU, times.cpu_seconds * 1e9 / items)
        .with(RATE, items / times.cpu_seconds / 1e6)
        .with(OF_MEMCPY, times.cpu_seconds / times.memcpy_seconds)
}

#[cfg(test)]
mod tests {
    use super::super::super::messages::Messages;
    use super::*;

    /// Time is shared by the items.
    #[test]
    fn shares() {
        let times = Times { cpu_seconds: 0.5, memcpy_seconds: 0.005 };
        let numbers = with_times(Numbers::default(), Tally { items: 10_000_000, sum: 0 }, times);
        assert_eq!([CPU, RATE, OF_MEMCPY].map(|metric| numbers.get(metric).unwrap()), [50.0, 20.0, 100.0]);
    }

    /// Ours decodes, and a side that finds something else has no numbers.
    #[test]
    fn checked() {
        let setup = Setup { quick: true, ..Setup::default() };
        let mut corpus = Corpus::named("flow-11", &setup).unwrap().unwrap();
        corpus.messages = Messages::record(corpus.messages.source(), 1_000);
        let mut runs = Runs::new(&setup, &corpus);
        assert!(!runs.has(Contender::Netgauze));
        assert!(runs.run(Contender::Ours).unwrap().get(RATE).unwrap() > 0.0);
        assert_eq!(runs.expected.map(|tally| tally.items), Some(corpus.messages.records()));
        runs.expected = Some(Tally::default());
        assert!(matches!(runs.run(Contender::Ours), Err(RunError::Different { .. })));
    }
}
