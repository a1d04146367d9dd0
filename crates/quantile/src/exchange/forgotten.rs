//! What is left of windows that are forgotten.

use std::collections::HashMap;
use std::hash::Hash;

use super::identity::SourceId;

/// Marks of windows that are forgotten, by which what still comes for them is known to be late.
#[derive(Debug)]
pub(super) struct Forgotten {
    /// For each instance the largest sequence number of its messages: a message up to there may be
    /// a repeat.
    sequences: Marks<SourceId, u64>,
    /// For each metric and series the latest end: a window up to there was given out, or would be
    /// out of order.
    ends: Marks<(Box<str>, Box<[u8]>), i64>,
}

impl Forgotten {
    pub(super) fn new(max_instances: usize, max_streams: usize) -> Self {
        Self { sequences: Marks::new(max_instances), ends: Marks::new(max_streams) }
    }

    /// Whether a message of this sequence number was sent before one that is forgotten.
    pub(super) fn has_message(&self, source: &SourceId, sequence: u64) -> bool {
        self.sequences.by_key.get(source).is_some_and(|mark| sequence <= mark.through)
    }

    /// Whether a window that ends here comes too late for its metric and series.
    pub(super) fn has_window(&self, stream: &(Box<str>, Box<[u8]>), end_ns: i64) -> bool {
        self.ends.by_key.get(stream).is_some_and(|mark| end_ns <= mark.through)
    }

    pub(super) fn forget_message(&mut self, source: SourceId, sequence: u64) {
        self.sequences.raise(source, sequence);
    }

    /// A window that ends in the future is not noted: one wrong clock must not make all others
    /// late.
    pub(super) fn forget_window(&mut self, stream: (Box<str>, Box<[u8]>), end_ns: i64, now_ns: i64) {
        if end_ns <= now_ns {
            self.ends.raise(stream, end_ns);
        }
    }

    pub(super) fn instances(&self) -> usize {
        self.sequences.by_key.len()
    }
}

/// The order in which instances have come.
#[derive(Debug)]
pub(super) struct Arrivals {
    ranks: Marks<SourceId, u64>,
    next: u64,
}

impl Arrivals {
    pub(super) fn new(max_instances: usize) -> Self {
        Self { ranks: Marks::new(max_instances), next: 0 }
    }

    /// The rank of an instance, larger than that of all that came first before it did.
    pub(super) fn rank(&mut self, source: &SourceId) -> u64 {
        let rank = self.ranks.by_key.get(source).map_or(self.next, |mark| mark.through);
        self.next = self.next.max(rank.saturating_add(1));
        self.ranks.raise(source.clone(), rank);
        rank
    }
}

/// Largest numbers by key; of too many keys the one that was raised least recently gives way.
#[derive(Debug)]
struct Marks<K, T> {
    by_key: HashMap<K, Mark<T>>,
    most: usize,
    raised: u64,
}

#[derive(Debug)]
struct Mark<T> {
    through: T,
    /// Number of the last raise.
    raised: u64,
}

impl<K: Hash + Eq + Clone, T: Ord + Copy> Marks<K, T> {
    fn new(most: usize) -> Self {
        Self { by_key: HashMap::new(), most, raised: 0 }
    }

    fn raise(&mut self, key: K, through: T) {
        self.raised += 1;
        if let Some(mark) = self.by_key.get_mut(&key) {
            mark.through = mark.through.max(through);
            mark.raised = self.raised;
            return;
        }
        if self.by_key.len() >= self.most {
            let oldest = self.by_key.iter().min_by_key(|(_, mark)| mark.raised);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.by_key.remove(&oldest);
            }
        }
        self.by_key.insert(key, Mark { through, raised: self.raised });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of too many keys the one that was silent longest gives way; marks never fall.
    #[test]
    fn marks_are_bounded_and_rise() {
        let mut marks = Marks::new(2);
        for (key, through) in [("a", 5), ("b", 1), ("a", 3), ("c", 2)] {
            marks.raise(key, through);
        }
        let through = |key| marks.by_key.get(key).map(|mark| mark.through);
        assert_eq!((through("a"), through("b"), through("c")), (Some(5), None, Some(2)));
    }
}
