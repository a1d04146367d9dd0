//! Series and what belongs to each, with a limit on their number.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use crate::seed;

/// A series of its own, or the one that all beyond the limit share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SeriesKey<K> {
    /// A series with its key.
    Series(K),
    /// All series that found no place of their own.
    Overflow,
}

impl<K: Hash> SeriesKey<K> {
    /// A hash that is the same in every process, for the seed of its sketch.
    fn seed_hash(&self) -> u64 {
        match self {
            Self::Series(key) => seed::stable_hash(key),
            Self::Overflow => u64::MAX,
        }
    }
}

/// A map from series to entries that remembers the order of their first appearance.
#[derive(Debug)]
pub(super) struct SeriesTable<K, V, S> {
    slots: HashMap<K, u32, S>,
    entries: Vec<Option<V>>,
    /// Indexes of entries that were removed.
    free: Vec<u32>,
    overflow: Option<V>,
    max_series: usize,
}

impl<K, V, S> SeriesTable<K, V, S>
where
    K: Hash + Eq + Clone,
    S: BuildHasher,
{
    pub(super) fn new(max_series: usize, hasher: S) -> Self {
        Self { slots: HashMap::with_hasher(hasher), entries: Vec::new(), free: Vec::new(), overflow: None, max_series }
    }

    /// The entry of a series, made from its stable hash if it is new; and whether it is that of
    /// the overflow series.
    pub(super) fn entry(&mut self, key: &K, make: impl FnOnce(u64) -> V) -> (&mut V, bool) {
        let slot = match self.slots.get(key) {
            Some(&slot) => slot,
            None if self.slots.len() < self.max_series => {
                let slot = self.free.pop().unwrap_or_else(|| {
                    self.entries.push(None);
                    // The limit on series is below u32::MAX.
                    (self.entries.len() - 1) as u32
                });
                self.slots.insert(key.clone(), slot);
                slot
            }
            None => {
                let hash = SeriesKey::<K>::Overflow.seed_hash();
                return (self.overflow.get_or_insert_with(|| make(hash)), true);
            }
        };
        let entry = self.entries[slot as usize].get_or_insert_with(|| make(seed::stable_hash(key)));
        (entry, false)
    }

    /// Takes out the entry that [`SeriesTable::entry`] gives for this key.
    pub(super) fn remove(&mut self, key: &K) -> Option<(SeriesKey<K>, V)> {
        match self.slots.remove_entry(key) {
            Some((key, slot)) => {
                self.free.push(slot);
                let entry = self.entries[slot as usize].take()?;
                Some((SeriesKey::Series(key), entry))
            }
            None => Some((SeriesKey::Overflow, self.overflow.take()?)),
        }
    }

    /// Takes out the entries that satisfy `wanted`, in order of their slots, overflow last.
    pub(super) fn remove_if(&mut self, mut wanted: impl FnMut(&mut V) -> bool) -> Vec<(SeriesKey<K>, V)> {
        let entries = &mut self.entries;
        let is_wanted = |_: &K, slot: &mut u32| {
            let entry = entries[*slot as usize].as_mut();
            entry.is_some_and(&mut wanted)
        };
        let mut removed: Vec<(K, u32)> = self.slots.extract_if(is_wanted).collect();
        removed.sort_unstable_by_key(|&(_, slot)| slot);
        let mut taken = Vec::with_capacity(removed.len() + 1);
        for (key, slot) in removed {
            if let Some(entry) = self.entries[slot as usize].take() {
                taken.push((SeriesKey::Series(key), entry));
            }
            self.free.push(slot);
        }
        if let Some(overflow) = self.overflow.take_if(wanted) {
            taken.push((SeriesKey::Overflow, overflow));
        }
        taken
    }

    /// All entries in the order of their first appearance, overflow last. For tables from which
    /// nothing was removed.
    pub(super) fn into_entries(mut self) -> Vec<(SeriesKey<K>, V)> {
        self.remove_if(|_| true)
    }

    /// Number of entries, overflow included.
    pub(super) fn len(&self) -> usize {
        self.slots.len() + usize::from(self.overflow.is_some())
    }

    /// All entries in no stated order.
    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().flatten().chain(&self.overflow)
    }
}
