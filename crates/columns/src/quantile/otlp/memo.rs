//! Series that came before, by the bytes of their attributes.
//!
//! The points of a series mostly carry the same attributes in the same bytes each time. To find those bytes again costs less
//! than to read them. Where points carry what differs each time, nothing is ever found: then it is tried less often.

use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::quantile::observations::index;

/// Bytes that are remembered from batch to batch.
const MAX_BYTES: usize = 2 * 1024 * 1024;
/// After this many batches in a row in which less than half was found, fifteen of sixteen batches are left out.
const MAX_FAILURES: u32 = 4;

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u32,
    length: u32,
    owner: u64,
    series: u32,
}

/// From the bytes of the attributes of a point, and a hash for what owns the point, to the number of its series.
#[derive(Debug)]
pub(in crate::quantile) struct Memo {
    /// Seeded: bytes are chosen by senders.
    hasher: DefaultHashBuilder,
    entries: HashTable<Entry>,
    bytes: Vec<u8>,
    capacity: usize,
    /// Of the numbers of series.
    generation: u64,
    found: u32,
    missed: u32,
    failures: u32,
    /// Batches that are still left out.
    pause: u32,
}

impl Memo {
    /// For up to `capacity` series from batch to batch.
    pub(in crate::quantile) fn new(capacity: usize) -> Self {
        Self {
            hasher: DefaultHashBuilder::default(),
            entries: HashTable::new(),
            bytes: Vec::new(),
            capacity,
            generation: 0,
            found: 0,
            missed: 0,
            failures: 0,
            pause: 0,
        }
    }

    /// Begins a batch with numbers of series of this generation. Whether it is worth to ask in this batch.
    pub(super) fn begin(&mut self, generation: u64) -> bool {
        if self.missed > self.found {
            self.failures = (self.failures + 1).min(MAX_FAILURES);
            self.pause = (1 << self.failures) - 1;
        } else if self.found > 0 {
            self.failures = 0;
        }
        let is_too_much = self.entries.len() > self.capacity || self.bytes.len() > MAX_BYTES;
        if self.generation != generation || is_too_much {
            self.entries = HashTable::new();
            self.bytes = Vec::new();
            self.generation = generation;
        }
        (self.found, self.missed) = (0, 0);
        let paused = self.pause > 0;
        self.pause = self.pause.saturating_sub(1);
        !paused
    }

    /// The hash of attributes for [`Memo::find`] and [`Memo::learn`].
    #[inline]
    pub(super) fn hash(&self, owner: u64, attributes: &[u8]) -> u64 {
        let mut state = self.hasher.build_hasher();
        state.write(attributes);
        state.finish() ^ owner
    }

    /// The number of the series with these attributes. Two owners may have the same hash: `is` says whether the series is of
    /// the present one.
    #[inline]
    pub(super) fn find(&mut self, hash: u64, attributes: &[u8], is: impl Fn(u32) -> bool) -> Option<u32> {
        let bytes = &self.bytes;
        let found = self.entries.find(hash, |entry| {
            let start = entry.start as usize;
            bytes.get(start..start + entry.length as usize) == Some(attributes) && is(entry.series)
        });
        match found {
            Some(entry) => {
                self.found += 1;
                Some(entry.series)
            }
            None => {
                self.missed += 1;
                None
            }
        }
    }

    /// Remembers a series that was not found.
    pub(super) fn learn(&mut self, hash: u64, owner: u64, attributes: &[u8], series: u32) {
        let Self { hasher, entries, bytes, .. } = self;
        let entry = Entry { start: index(bytes.len()), length: index(attributes.len()), owner, series };
        bytes.extend_from_slice(attributes);
        let _ = entries.insert_unique(hash, entry, |entry| {
            let mut state = hasher.build_hasher();
            state.write(&bytes[entry.start as usize..][..entry.length as usize]);
            state.finish() ^ entry.owner
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was learned is found, of its owner only, until numbers are given anew.
    #[test]
    fn what_came_before_is_found() {
        let mut memo = Memo::new(100);
        assert!(memo.begin(0));
        let find = |memo: &mut Memo, owner: u64, attributes: &[u8]| {
            let hash = memo.hash(owner, attributes);
            memo.find(hash, attributes, |series| series < 5)
        };
        for (series, attributes) in [&b"a"[..], b"bc", b""].into_iter().enumerate() {
            assert_eq!(find(&mut memo, 9, attributes), None);
            let hash = memo.hash(9, attributes);
            memo.learn(hash, 9, attributes, index(series));
        }
        assert_eq!([&b"a"[..], b"bc", b"", b"b"].map(|a| find(&mut memo, 9, a)), [Some(0), Some(1), Some(2), None]);
        let hash = memo.hash(9, b"x");
        memo.learn(hash, 9, b"x", 5);
        assert_eq!(find(&mut memo, 9, b"x"), None, "of another owner");
        assert!(memo.begin(0) || memo.begin(0));
        assert_eq!(find(&mut memo, 9, b"bc"), Some(1));
        memo.begin(1);
        assert_eq!(find(&mut memo, 9, b"bc"), None);
    }

    /// Attributes that never come again are asked for in one batch of sixteen, and what is kept of them is bounded.
    #[test]
    fn what_never_comes_again_is_not_asked_for() {
        let mut memo = Memo::new(1_000);
        let mut tried = 0;
        for batch in 0..320_u32 {
            if memo.begin(0) {
                tried += 1;
                for point in 0..100_u32 {
                    let attributes = (batch * 100 + point).to_le_bytes();
                    let hash = memo.hash(0, &attributes);
                    assert_eq!(memo.find(hash, &attributes, |_| true), None);
                    memo.learn(hash, 0, &attributes, 0);
                }
            }
            assert!(memo.entries.len() <= 1_100 && memo.bytes.len() <= 4_400);
        }
        assert!((20..30).contains(&tried), "{tried}");
    }
}
