//! Waits between attempts.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::settings::RetrySettings;

/// The back-off of one request.
#[derive(Debug)]
pub(super) struct Backoff {
    ceiling: Duration,
}

impl Backoff {
    pub(super) const fn new(settings: &RetrySettings) -> Self {
        Self { ceiling: settings.initial }
    }

    /// The next wait. A server's delay is a floor, and what the next waits grow from; a little is added to it, so that
    /// the lanes that were told the same time do not come back as one.
    pub(super) fn next(
        &mut self,
        settings: &RetrySettings,
        server: Option<Duration>,
        random: &mut fastrand::Rng,
    ) -> Duration {
        let mut wait = self.ceiling.mul_f64(random.f64());
        if let Some(floor) = server.map(|delay| delay.min(settings.max_server_delay)) {
            if wait < floor {
                wait = floor + settings.initial.mul_f64(random.f64());
            }
            self.ceiling = self.ceiling.max(floor);
        }
        let grown = self.ceiling.as_secs_f64() * settings.multiplier.max(1.0);
        self.ceiling = Duration::try_from_secs_f64(grown).unwrap_or(settings.max).min(settings.max);
        wait
    }
}

/// A rate that the retries of several lanes share, so that a server which comes back is not met by all of them at once.
///
/// A lane that has to wait for its turn waits longer; it never gives up because of the budget alone. First attempts are
/// free.
#[derive(Clone, Debug)]
pub struct RetryBudget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    interval: Duration,
    burst: Duration,
    /// When the retry behind the last one granted would be due.
    due: Mutex<Option<Instant>>,
}

impl RetryBudget {
    /// A budget of `per_second` retries in the long run and of up to `burst` at once. Both are at least 1 in a thousand
    /// seconds and 1.
    #[must_use]
    pub fn new(per_second: f64, burst: u32) -> Self {
        let interval = Duration::from_secs_f64(1.0 / per_second.max(0.001));
        let burst = interval.saturating_mul(burst.max(1) - 1);
        Self { shared: Arc::new(Shared { interval, burst, due: Mutex::new(None) }) }
    }

    /// Takes the next turn and says how long to wait for it from `now` on.
    pub(super) fn reserve(&self, now: Instant) -> Duration {
        let mut due = self.shared.due.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = due.map_or(now, |due| due.max(now));
        *due = Some(turn + self.shared.interval);
        (turn - now).saturating_sub(self.shared.burst)
    }
}
