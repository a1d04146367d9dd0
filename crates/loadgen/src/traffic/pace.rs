//! Keeping a rate.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// Says when which message is due, counted from the first, so that waiting too long once does not lower the rate.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    per_second: Option<NonZeroU64>,
}

impl Pace {
    /// Messages per second; `None` for as fast as possible.
    #[must_use]
    pub fn new(per_second: Option<NonZeroU64>) -> Self {
        Self { per_second }
    }

    /// How long to wait at `elapsed` after the start before sending more, when `sent` messages are out.
    ///
    /// ```
    /// use std::num::NonZeroU64;
    /// use std::time::Duration;
    /// use catchment_loadgen::traffic::Pace;
    ///
    /// let pace = Pace::new(NonZeroU64::new(100));
    /// assert_eq!(pace.wait(50, Duration::from_millis(420)), Duration::from_millis(80));
    /// assert_eq!(pace.wait(50, Duration::from_millis(600)), Duration::ZERO);
    /// ```
    #[must_use]
    pub fn wait(self, sent: u64, elapsed: Duration) -> Duration {
        let Some(per_second) = self.per_second else {
            return Duration::ZERO;
        };
        let nanos = u128::from(sent) * 1_000_000_000 / u128::from(per_second.get());
        let due = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        due.saturating_sub(elapsed)
    }

    /// Messages to send between two looks at the clock: what is due in a millisecond, so that sleeping, which is not
    /// more exact than that, is worth it; at most 1,000.
    #[must_use]
    pub fn burst(self) -> u64 {
        self.per_second.map_or(1_000, |rate| (rate.get() / 1_000).clamp(1, 1_000))
    }
}

/// Time as the senders see it, from the start of sending.
pub trait Clock {
    /// Time since the start.
    fn elapsed(&mut self) -> Duration;
    /// Lets `duration` go by.
    fn sleep(&mut self, duration: Duration);
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock(Instant);

impl SystemClock {
    /// A clock that starts now.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn elapsed(&mut self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&mut self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(per_second: u64) -> Pace {
        Pace::new(NonZeroU64::new(per_second))
    }

    /// The schedule is counted from the start: no rounding adds up, and a delay is made good.
    #[test]
    fn schedule() {
        let third = pace(3);
        assert_eq!(third.wait(1, Duration::ZERO).as_nanos(), 333_333_333);
        assert_eq!(third.wait(3_000_000, Duration::ZERO).as_secs(), 1_000_000);
        let late = Duration::from_secs(10);
        assert_eq!(third.wait(29, late), Duration::ZERO);
        assert_eq!(third.wait(33, late), Duration::from_secs(1));
        assert_eq!(pace(1).wait(u64::MAX, late).as_nanos(), u128::from(u64::MAX) - 10_000_000_000);
    }

    /// Without a rate there is nothing to wait for; bursts follow the rate.
    #[test]
    fn bursts() {
        assert_eq!(pace(0).wait(1_000, Duration::ZERO), Duration::ZERO);
        assert_eq!(pace(0).burst(), 1_000);
        assert_eq!(pace(10).burst(), 1);
        assert_eq!(pace(102_400).burst(), 102);
        assert_eq!(pace(50_000_000).burst(), 1_000);
    }
}
