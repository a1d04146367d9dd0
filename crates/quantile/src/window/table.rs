//! Series and what belongs to each, with a limit on their number.

use std::hash::{BuildHasher, Hash};

use super::interner::{Interner, OVERFLOW};

/// A series of its own, or the one that all beyond the limit share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SeriesKey<K> {
    /// A series with its key.
    Series(K),
    /// All series that found no place of their own.
    Overflow,
}

/// Entries that are looked at in one go to find those to take out.
const LOOKED_AT: usize = 4_096;
/// Entries that are taken out in one go.
const TAKEN: usize = 512;

/// The hash that seeds the sketch of the overflow series.
pub(super) const OVERFLOW_HASH: u64 = u64::MAX;

/// Entries by the number of their series, in the order of their first appearance.
#[derive(Debug)]
pub(super) struct SeriesTable<V> {
    /// By series: one more than the index of its entry, 0 if there is none.
    places: Vec<u32>,
    entries: Vec<Option<(u32, V)>>,
    /// Indexes of entries that were removed.
    free: Vec<u32>,
    overflow: Option<V>,
    max_series: usize,
}

impl<V> SeriesTable<V> {
    pub(super) fn new(max_series: usize) -> Self {
        Self { places: Vec::new(), entries: Vec::new(), free: Vec::new(), overflow: None, max_series }
    }

    /// The entry of a series, made from its stable hash if it is new; and whether it is that of
    /// the overflow series.
    #[inline]
    pub(super) fn entry<K, S>(
        &mut self,
        series: u32,
        interner: &mut Interner<K, S>,
        make: impl FnOnce(u64) -> V,
    ) -> (&mut V, bool)
    where
        K: Hash + Eq + Clone,
        S: BuildHasher,
    {
        let place = self.places.get(series as usize).copied().unwrap_or(0);
        if place == 0 {
            return self.new_entry(series, interner, make);
        }
        // A place is given for as long as its entry is there.
        let entry = self.entries[place as usize - 1].get_or_insert_with(|| (series, make(interner.hash_of(series))));
        (&mut entry.1, false)
    }

    #[cold]
    fn new_entry<K, S>(
        &mut self,
        series: u32,
        interner: &mut Interner<K, S>,
        make: impl FnOnce(u64) -> V,
    ) -> (&mut V, bool)
    where
        K: Hash + Eq + Clone,
        S: BuildHasher,
    {
        if series == OVERFLOW || self.own_series() >= self.max_series {
            return (self.overflow.get_or_insert_with(|| make(OVERFLOW_HASH)), true);
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            // The limit on series is below u32::MAX.
            (self.entries.len() - 1) as u32
        });
        if self.places.len() <= series as usize {
            self.places.resize(series as usize + 1, 0);
        }
        self.places[series as usize] = index + 1;
        interner.hold(series);
        let value = make(interner.hash_of(series));
        (&mut self.entries[index as usize].insert((series, value)).1, false)
    }

    /// Takes out the entry that [`SeriesTable::entry`] gives for this series.
    pub(super) fn remove<K, S>(&mut self, series: u32, interner: &mut Interner<K, S>) -> Option<(SeriesKey<K>, V)>
    where
        K: Hash + Eq + Clone,
        S: BuildHasher,
    {
        match self.places.get_mut(series as usize) {
            Some(place) if *place > 0 => {
                let index = std::mem::take(place) - 1;
                self.free.push(index);
                let (_, value) = self.entries[index as usize].take()?;
                Some((interner.release(series), value))
            }
            _ => Some((SeriesKey::Overflow, self.overflow.take()?)),
        }
    }

    /// Takes out entries that satisfy `wanted`, in the order of their places, overflow last: some of
    /// them, from place `from` on. Gives the place at which to go on; `None` at the end.
    pub(super) fn remove_some<K, S>(
        &mut self,
        from: usize,
        interner: &mut Interner<K, S>,
        mut wanted: impl FnMut(&mut V) -> bool,
    ) -> (Vec<(SeriesKey<K>, V)>, Option<usize>)
    where
        K: Hash + Eq + Clone,
        S: BuildHasher,
    {
        let mut taken = Vec::new();
        for (index, entry) in self.entries.iter_mut().enumerate().skip(from) {
            if index - from >= LOOKED_AT || taken.len() >= TAKEN {
                return (taken, Some(index));
            }
            if let Some((series, value)) = entry.take_if(|(_, value)| wanted(value)) {
                self.places[series as usize] = 0;
                self.free.push(index as u32);
                taken.push((interner.release(series), value));
            }
        }
        if let Some(overflow) = self.overflow.take_if(wanted) {
            taken.push((SeriesKey::Overflow, overflow));
        }
        (taken, None)
    }

    /// Number of entries, overflow not included.
    pub(super) fn own_series(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Number of entries, overflow included.
    pub(super) fn len(&self) -> usize {
        self.own_series() + usize::from(self.overflow.is_some())
    }

    /// All entries in no stated order.
    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().flatten().map(|(_, value)| value).chain(&self.overflow)
    }
}
