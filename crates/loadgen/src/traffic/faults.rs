//! Sources that treat the messages of others: several taking turns, and what a network does to datagrams.

use super::Source;

/// Several sources that take turns, a message at a time; those that have no more are passed over.
#[derive(Debug, Clone)]
pub struct Interleaved<S> {
    sources: Vec<S>,
    next: usize,
}

impl<S> Interleaved<S> {
    /// The first source begins.
    #[must_use]
    pub fn new(sources: Vec<S>) -> Self {
        Self { sources, next: 0 }
    }

    /// The sources.
    #[must_use]
    pub fn sources(&self) -> &[S] {
        &self.sources
    }
}

impl<S: Source> Source for Interleaved<S> {
    fn append_next(&mut self, out: &mut Vec<u8>) -> Option<u64> {
        for _ in 0..self.sources.len() {
            let turn = self.next;
            self.next = (turn + 1) % self.sources.len();
            if let Some(records) = self.sources.get_mut(turn).and_then(|source| source.append_next(out)) {
                return Some(records);
            }
        }
        None
    }
}

/// What happens to messages on their way. 0 is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// Every so many-th message gets lost.
    pub lose_every: u64,
    /// Every so many-th message arrives after its successor.
    pub swap_every: u64,
}

/// A source whose messages suffer [`Faults`].
#[derive(Debug, Clone)]
pub struct Faulty<S> {
    source: S,
    faults: Faults,
    /// Messages taken from the source.
    taken: u64,
    /// A message that its successor is to overtake, or has overtaken.
    held: Option<(Vec<u8>, u64)>,
    lost: Lost,
}

/// What got lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lost {
    /// Messages.
    pub messages: u64,
    /// Records in them.
    pub records: u64,
}

impl<S: Source> Faulty<S> {
    /// A source that behaves like `source` but for `faults`.
    #[must_use]
    pub fn new(source: S, faults: Faults) -> Self {
        Self { source, faults, taken: 0, held: None, lost: Lost::default() }
    }

    /// What got lost so far.
    #[must_use]
    pub fn lost(&self) -> Lost {
        self.lost
    }

    /// The next message that does not get lost, appended to `out`; with it, whether it is one to be overtaken.
    fn survivor(&mut self, out: &mut Vec<u8>) -> Option<(u64, bool)> {
        let start = out.len();
        loop {
            let records = self.source.append_next(out)?;
            self.taken += 1;
            if !is_due(self.taken, self.faults.lose_every) {
                return Some((records, is_due(self.taken, self.faults.swap_every)));
            }
            out.truncate(start);
            self.lost.messages += 1;
            self.lost.records += records;
        }
    }
}

fn is_due(number: u64, every: u64) -> bool {
    every > 0 && number.is_multiple_of(every)
}

impl<S: Source> Source for Faulty<S> {
    fn append_next(&mut self, out: &mut Vec<u8>) -> Option<u64> {
        if let Some((message, records)) = self.held.take() {
            out.extend_from_slice(&message);
            return Some(records);
        }
        let start = out.len();
        let (records, overtaken) = self.survivor(out)?;
        if !overtaken {
            return Some(records);
        }
        let message = out.split_off(start);
        match self.survivor(out) {
            Some((successor, _)) => {
                self.held = Some((message, records));
                Some(successor)
            }
            None => {
                out.extend_from_slice(&message);
                Some(records)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::{Payloads, SyslogLines};

    fn numbers(count: u8) -> impl Source {
        Payloads((1..=count).map(|number| [number]))
    }

    fn all(mut source: impl Source) -> Vec<u8> {
        let mut out = Vec::new();
        while source.append_next(&mut out) == Some(1) {}
        out
    }

    /// Turns are taken, also when some have less to say.
    #[test]
    fn turns() {
        let mut mixed = Interleaved::new(vec![numbers(2), numbers(4), numbers(1)]);
        assert_eq!(all(&mut mixed), [1, 1, 1, 2, 2, 3, 4]);
        assert_eq!(mixed.append_next(&mut Vec::new()), None);
        assert!(all(Interleaved::<SyslogLines>::new(Vec::new())).is_empty());
    }

    /// Lost messages are counted and not there; swapped ones come once each, also at the end.
    #[test]
    fn lost_and_swapped() {
        let faulty = |lose_every, swap_every| Faulty::new(numbers(8), Faults { lose_every, swap_every });
        assert_eq!(all(faulty(0, 0)), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(all(faulty(0, 3)), [1, 2, 4, 3, 5, 7, 6, 8]);
        assert_eq!(all(faulty(0, 8)), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(all(faulty(4, 3)), [1, 2, 5, 3, 7, 6]);
        let mut one = faulty(4, 0);
        assert_eq!(all(&mut one), [1, 2, 3, 5, 6, 7]);
        assert_eq!(one.lost(), Lost { messages: 2, records: 2 });
        let mut none = faulty(1, 2);
        assert!(all(&mut none).is_empty());
        assert_eq!(none.lost().messages, 8);
    }
}
