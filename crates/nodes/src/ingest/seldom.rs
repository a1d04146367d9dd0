//! Warnings that do not flood.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;

/// Lets an event through at most once in a while. What happened in between is in the counters.
#[derive(Debug, Default)]
pub(crate) struct Seldom(Cell<Option<Instant>>);

impl Seldom {
    const INTERVAL: Duration = Duration::from_secs(10);

    /// Whether it is time for the event.
    pub(crate) fn now(&self) -> bool {
        let is_time = self.0.get().is_none_or(|last| last.elapsed() >= Self::INTERVAL);
        if is_time {
            self.0.set(Some(Instant::now()));
        }
        is_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first one comes through at once, the next one when the time is over.
    #[test]
    fn one_in_a_while() {
        let seldom = Seldom::default();
        assert!(seldom.now() && !seldom.now());
        let last = seldom.0.get().expect("told");
        seldom.0.set(last.checked_sub(Seldom::INTERVAL));
        assert!(seldom.now() && !seldom.now());
    }
}
