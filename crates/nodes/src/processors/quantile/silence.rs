//! Windows in which a measure has observed nothing, told of so that nobody waits for them.

use catchment_quantile::window::{WindowConfig, WindowSpec};

use super::config::AnnounceEmpty;

/// The most windows told of at once. Of more, as after a jump of the clock, the latest are.
pub(super) const MAX_AT_ONCE: i64 = 60;

/// Which windows nobody has been told of.
#[derive(Debug)]
pub(super) struct Silence {
    size: i64,
    /// How long after its end a window is over by the clock, if that counts.
    wait: Option<i64>,
    /// Start of the first window that has neither been sent nor told of; `None` before the first one.
    next: Option<i64>,
    /// When the clock was looked at last.
    looked: Option<i64>,
}

/// Empty windows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Empty {
    /// Their starts, ascending.
    pub(super) starts: Vec<i64>,
    /// Number of earlier ones that are passed over.
    pub(super) skipped: u64,
}

impl Silence {
    /// `None` if no window is told of.
    pub(super) fn new(announce: AnnounceEmpty, window: &WindowConfig) -> Option<Self> {
        let WindowSpec::Tumbling { size_ns, allowed_lateness_ns, .. } = window.spec else { return None };
        let wait = allowed_lateness_ns.saturating_add(window.idle_ns);
        let wait = match announce {
            AnnounceEmpty::None => return None,
            AnnounceEmpty::Watermark => None,
            AnnounceEmpty::Clock => Some(i64::try_from(wait).unwrap_or(i64::MAX)),
        };
        Some(Self { size: i64::try_from(size_ns).unwrap_or(i64::MAX).max(1), wait, next: None, looked: None })
    }

    /// Whether the clock is looked at.
    pub(super) const fn by_clock(&self) -> bool {
        self.wait.is_some()
    }

    /// Start of the window of a time.
    pub(super) const fn start_of(&self, time: i64) -> i64 {
        time.saturating_sub(time.rem_euclid(self.size))
    }

    /// End of the window with this start.
    pub(super) const fn end_of(&self, start: i64) -> i64 {
        start.saturating_add(self.size)
    }

    /// End of the last window that is over by the clock, if nobody has been told of it. To be called now and then: windows
    /// that begin after the first time count, and those that a jump of the clock passes over do not.
    pub(super) fn over(&mut self, now: i64) -> Option<i64> {
        let wait = self.wait?;
        let has_jumped = |looked| now.saturating_sub(looked) > self.size.saturating_mul(2);
        if self.looked.replace(now).is_none_or(has_jumped) {
            let coming = self.end_of(self.start_of(now.saturating_sub(1)));
            self.next = self.next.max(Some(coming));
        }
        let end = self.start_of(now.saturating_sub(wait));
        (end > self.next?).then_some(end)
    }

    /// The windows up to the one of the watermark that are not among those that have `closed` (starts, ascending).
    pub(super) fn take(&mut self, closed: &[i64], watermark: Option<i64>) -> Empty {
        let (Some(first), Some(watermark)) = (self.next.or(closed.first().copied()), watermark) else {
            return Empty::default();
        };
        let through = self.start_of(watermark);
        let most = self.size.saturating_mul(MAX_AT_ONCE);
        let from = first.max(through.saturating_sub(most));
        let skipped = from.saturating_sub(first) / self.size;
        self.next = Some(first.max(through));
        let starts = (0..MAX_AT_ONCE).map(|at| from.saturating_add(self.size.saturating_mul(at)));
        let starts = starts.take_while(|start| *start < through).filter(|start| closed.binary_search(start).is_err());
        Empty { starts: starts.collect(), skipped: u64::try_from(skipped).unwrap_or(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [i64; 0] = [];

    fn silence(announce: AnnounceEmpty) -> Silence {
        let spec = WindowSpec::Tumbling { size_ns: 10, allowed_lateness_ns: 2, max_future_ns: 1_000 };
        Silence::new(announce, &WindowConfig { spec, max_series: 1, idle_ns: 3 }).expect("tumbling")
    }

    fn starts(empty: Empty) -> Vec<i64> {
        assert_eq!(empty.skipped, 0);
        empty.starts
    }

    /// Between windows with something the others are told of, once, and none before the first.
    #[test]
    fn gaps_are_told_once() {
        let mut silence = silence(AnnounceEmpty::Watermark);
        assert_eq!(silence.take(&[], Some(35)), Empty::default());
        assert_eq!(starts(silence.take(&[30], Some(72))), [40, 50, 60]);
        assert_eq!(starts(silence.take(&[], Some(79))), NONE);
        assert_eq!(starts(silence.take(&[70, 90], Some(110))), [80, 100]);
        assert_eq!(starts(silence.take(&[], Some(105))), NONE, "what goes back is nothing new");
        assert_eq!(silence.over(10_000), None, "the clock is not looked at");
    }

    /// Of very many, the latest.
    #[test]
    fn a_leap_is_bounded() {
        let mut silence = silence(AnnounceEmpty::Watermark);
        assert_eq!(starts(silence.take(&[0], Some(10))), NONE);
        let empty = silence.take(&[], Some(i64::MAX));
        assert_eq!((empty.starts.len() as i64, empty.skipped > 1 << 59), (MAX_AT_ONCE, true));
        assert_eq!(starts(silence.take(&[], Some(i64::MAX))), NONE);
    }

    /// By the clock a window is over after its end, lateness and idle time; those that had begun before the first look, or
    /// passed by in a jump, do not count; a step back brings nothing again.
    #[test]
    fn the_clock_ends_windows() {
        let mut silence = silence(AnnounceEmpty::Clock);
        let mut look = |now| {
            let over = silence.over(now);
            over.map(|over| starts(silence.take(&[], Some(over)))).unwrap_or_default()
        };
        assert_eq!(look(101), NONE, "the first window begins at 110");
        assert_eq!(look(120), NONE);
        assert_eq!(look(124), NONE);
        assert_eq!(look(125), [110]);
        assert_eq!(look(145), [120, 130]);
        assert_eq!(look(1_000), NONE, "a jump");
        assert_eq!(look(1_014), NONE);
        assert_eq!(look(1_015), [1_000]);
        assert_eq!(look(200), NONE);
        assert_eq!(look(215), NONE);
    }
}
