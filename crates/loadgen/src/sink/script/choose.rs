//! Which step a request takes.

use std::sync::Arc;
use std::time::Duration;

use super::{Event, Protocol, Signal, SinkScript};
use crate::traffic::random::Random;

/// A script as it runs: how often each step was looked at and taken.
#[derive(Debug)]
pub(in crate::sink) struct Chooser {
    script: Arc<SinkScript>,
    counters: Vec<Counters>,
}

#[derive(Debug, Clone, Default)]
struct Counters {
    /// Requests with the protocol, signal and event of the step, whether it took them or not.
    seen: u64,
    taken: u64,
}

impl Chooser {
    pub(in crate::sink) fn new(script: Arc<SinkScript>) -> Self {
        let counters = vec![Counters::default(); script.steps.len()];
        Self { script, counters }
    }

    /// The number of the step that the next request takes, `elapsed` after the start.
    pub(in crate::sink) fn choose(
        &mut self,
        protocol: Protocol,
        signal: Signal,
        event: Event,
        elapsed: Duration,
    ) -> Option<usize> {
        let mut chosen = None;
        for (number, (step, counters)) in self.script.steps.iter().zip(&mut self.counters).enumerate() {
            let when = &step.when;
            let of_its_kind = when.protocol.is_none_or(|wanted| wanted == protocol)
                && when.signal.is_none_or(|wanted| wanted == signal)
                && when.on == event
                && step.answer.fits(protocol, event);
            if !of_its_kind {
                continue;
            }
            counters.seen += 1;
            let seen = counters.seen;
            let fits = chosen.is_none()
                && seen >= when.from
                && when.to.is_none_or(|to| seen <= to)
                && (seen - when.from).is_multiple_of(when.every.max(1))
                && elapsed >= when.after
                && when.before.is_none_or(|before| elapsed < before)
                && step.times.is_none_or(|times| counters.taken < times)
                && happens(self.script.seed, number, seen, when.probability);
            if fits {
                counters.taken += 1;
                chosen = Some(number);
            }
        }
        chosen
    }
}

/// A coin that falls the same way for the same request of the same step, whatever the time.
fn happens(seed: u64, step: usize, ordinal: u64, probability: f64) -> bool {
    let mut random = Random::new(seed ^ Random::new(step as u64 + 1).bits() ^ ordinal.rotate_left(17));
    // 53 bits fill the mantissa: never 1.
    let fraction = (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
    fraction < probability
}
