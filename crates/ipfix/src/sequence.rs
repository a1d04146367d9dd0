//! Sequence numbers: what was lost, what came late, and who started anew.
//!
//! IPFIX counts data records, NetFlow v9 packets, NetFlow v5 flows; all modulo 2^32 and per observation domain.

/// Jumps forward of at least this much are a restart, not loss.
const RESTART_JUMP: u32 = 1 << 24;

/// Steps back of more than this are a restart, not reordering.
const LATE_WINDOW: u32 = 1 << 16;

/// So many late messages that follow each other in sequence are a restart too.
const LATE_RUN: u8 = 3;

/// An uptime that goes back by more than this is a restart.
const UPTIME_BACK_MS: i32 = 30_000;

/// What the sequence number of a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SequenceCheck {
    /// First message of its domain.
    First,
    /// As expected.
    InOrder,
    /// So many records (IPFIX), packets (v9) or flows (v5) are missing before this message.
    Gap(u32),
    /// Behind what was expected by so much: reordered or repeated. Had been counted in a gap before.
    Late(u32),
    /// The exporter counts anew.
    Restart,
    /// No telling: what came before could not be counted, or the exporter does not number its messages.
    Unchecked,
}

/// Expectation of one domain.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tracker {
    /// `None` before the first message.
    last: Option<Last>,
    /// The next number, unless that could not be counted.
    expected: Option<u32>,
    /// A run of late messages: the number that would go on with it, and its length.
    late_run: Option<(u32, u8)>,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    sequence: u32,
    uptime_ms: Option<u32>,
}

impl Tracker {
    /// Takes the number of a message, how much it adds to the count (`None` when that cannot be told), and the uptime.
    pub(crate) fn observe(&mut self, sequence: u32, count: Option<u32>, uptime_ms: Option<u32>) -> SequenceCheck {
        let check = self.check(sequence, uptime_ms);
        let next = count.map(|count| sequence.wrapping_add(count));
        if let SequenceCheck::Late(_) = check {
            let run = match self.late_run {
                Some((expected, length)) if expected == sequence => length + 1,
                _ => 1,
            };
            if run < LATE_RUN {
                self.late_run = next.map(|next| (next, run));
                return check;
            }
        }
        self.late_run = None;
        self.last = Some(Last { sequence, uptime_ms });
        self.expected = next;
        match check {
            SequenceCheck::Late(_) => SequenceCheck::Restart,
            check => check,
        }
    }

    fn check(&self, sequence: u32, uptime_ms: Option<u32>) -> SequenceCheck {
        let Some(last) = self.last else {
            return SequenceCheck::First;
        };
        let Some(expected) = self.expected else {
            return SequenceCheck::Unchecked;
        };
        if sequence == expected {
            return SequenceCheck::InOrder;
        }
        if sequence == 0 && last.sequence == 0 {
            return SequenceCheck::Unchecked;
        }
        let went_back = last
            .uptime_ms
            .zip(uptime_ms)
            .is_some_and(|(before, now)| now.wrapping_sub(before).cast_signed() < -UPTIME_BACK_MS);
        let ahead = sequence.wrapping_sub(expected);
        let behind = expected.wrapping_sub(sequence);
        match (ahead, behind) {
            _ if went_back => SequenceCheck::Restart,
            (ahead, _) if ahead < RESTART_JUMP => SequenceCheck::Gap(ahead),
            (_, behind) if behind <= LATE_WINDOW && sequence != 0 => SequenceCheck::Late(behind),
            _ => SequenceCheck::Restart,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(steps: &[(u32, Option<u32>)]) -> Vec<SequenceCheck> {
        let mut tracker = Tracker::default();
        let observe = |&(sequence, count): &(u32, Option<u32>)| tracker.observe(sequence, count, None);
        steps.iter().map(observe).collect()
    }

    /// Gaps count what is missing, also over the end of the numbers.
    #[test]
    fn gaps() {
        use SequenceCheck::{First, Gap, InOrder};
        let steps = [(u32::MAX - 1, Some(2)), (0, Some(3)), (10, Some(1)), (11, Some(0)), (11, None)];
        assert_eq!(run(&steps), [First, InOrder, Gap(7), InOrder, InOrder]);
        assert_eq!(run(&[(u32::MAX, Some(0)), (1, Some(0))]), [First, Gap(2)]);
    }

    /// After something that could not be counted there is no false alarm, and then checking goes on.
    #[test]
    fn uncounted() {
        use SequenceCheck::{First, Gap, Unchecked};
        let steps = [(100, None), (150, Some(1)), (152, Some(1))];
        assert_eq!(run(&steps), [First, Unchecked, Gap(1)]);
    }

    /// A late message is no restart, and the expectation stays.
    #[test]
    fn reordered() {
        use SequenceCheck::{First, Gap, InOrder, Late};
        let steps = [(100, Some(10)), (120, Some(10)), (110, Some(10)), (130, Some(1))];
        assert_eq!(run(&steps), [First, Gap(10), Late(20), InOrder]);
    }

    /// An exporter that counts anew: from zero, from far away, or close enough to look late at first.
    #[test]
    fn restarts() {
        use SequenceCheck::{First, InOrder, Late, Restart};
        assert_eq!(run(&[(5_000, Some(1)), (0, Some(1)), (1, Some(1))]), [First, Restart, InOrder]);
        assert_eq!(run(&[(5, Some(1)), (1 << 30, Some(1))]), [First, Restart]);
        assert_eq!(run(&[(1 << 30, Some(1)), (5, Some(1))]), [First, Restart]);
        assert_eq!(
            run(&[(5_000, Some(1)), (7, Some(1)), (8, Some(1)), (9, Some(1)), (10, Some(1))]),
            [First, Late(4_994), Late(4_993), Restart, InOrder]
        );
    }

    /// An uptime that goes back is a restart whatever the numbers say; small steps back are reordering.
    #[test]
    fn uptime_goes_back() {
        let mut tracker = Tracker::default();
        let _: SequenceCheck = tracker.observe(100, Some(1), Some(1_000_000));
        assert_eq!(tracker.observe(99, Some(1), Some(999_000)), SequenceCheck::Late(2));
        assert_eq!(tracker.observe(99, Some(1), Some(5_000)), SequenceCheck::Restart);
        let mut wrapped = Tracker::default();
        let _: SequenceCheck = wrapped.observe(100, Some(1), Some(u32::MAX));
        assert_eq!(wrapped.observe(103, Some(1), Some(20)), SequenceCheck::Gap(2));
    }

    /// An exporter that always says 0 raises no alarm.
    #[test]
    fn not_numbered() {
        use SequenceCheck::{First, Unchecked};
        assert_eq!(run(&[(0, Some(4)), (0, Some(4)), (0, Some(4))]), [First, Unchecked, Unchecked]);
    }
}
