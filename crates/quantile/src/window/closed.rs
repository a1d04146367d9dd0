//! The series of one window, from its opening until they are sent.

use std::hash::{BuildHasher, Hash};
use std::iter::Flatten;
use std::ops::Index;
use std::{slice, vec};

use super::interner::{Interner, OVERFLOW};
use super::table::{OVERFLOW_HASH, SeriesKey};
use crate::accumulator::Accumulator;

/// Series in one piece of memory.
const CHUNK: usize = 256;

type Chunk<K, A> = Vec<(SeriesKey<K>, A)>;

/// Series with their accumulators, in the order of their first observation.
///
/// They are in pieces of memory of bounded size: none is ever copied because there are more, and
/// taken one by one ([`IntoIterator`]) they are freed piece by piece. So whatever their number,
/// nothing needs to be done for all of them in one go.
#[derive(Debug, Clone)]
pub struct WindowSeries<K, A> {
    /// All but the last have `CHUNK` series; none is empty.
    chunks: Vec<Chunk<K, A>>,
}

impl<K, A> Default for WindowSeries<K, A> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

impl<K, A> WindowSeries<K, A> {
    /// Number of series.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The first one.
    #[must_use]
    pub fn first(&self) -> Option<&(SeriesKey<K>, A)> {
        self.iter().next()
    }

    /// All, one after the other.
    pub fn iter(&self) -> Flatten<slice::Iter<'_, Chunk<K, A>>> {
        self.chunks.iter().flatten()
    }

    /// Appends a series.
    pub(super) fn push(&mut self, series: (SeriesKey<K>, A)) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => last.push(series),
            last => {
                // Few windows have more than a few series: the first piece grows as needed.
                let mut chunk = Vec::with_capacity(if last.is_some() { CHUNK } else { 1 });
                chunk.push(series);
                self.chunks.push(chunk);
            }
        }
    }

    #[inline]
    fn accumulator(&mut self, index: usize) -> &mut A {
        &mut self.chunks[index / CHUNK][index % CHUNK].1
    }
}

impl<K, A> Index<usize> for WindowSeries<K, A> {
    type Output = (SeriesKey<K>, A);

    fn index(&self, index: usize) -> &Self::Output {
        &self.chunks[index / CHUNK][index % CHUNK]
    }
}

impl<K, A> IntoIterator for WindowSeries<K, A> {
    type Item = (SeriesKey<K>, A);
    type IntoIter = Flatten<vec::IntoIter<Chunk<K, A>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.chunks.into_iter().flatten()
    }
}

impl<'a, K, A> IntoIterator for &'a WindowSeries<K, A> {
    type Item = &'a (SeriesKey<K>, A);
    type IntoIter = Flatten<slice::Iter<'a, Chunk<K, A>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The series of an open window, found by number, with a limit on how many have a place of their
/// own.
#[derive(Debug)]
pub(super) struct OpenSeries<K, A> {
    /// By series: one more than its index, 0 if it is not there.
    places: Vec<u32>,
    /// As in `places`, of the overflow series.
    overflow: u32,
    all: WindowSeries<K, A>,
    max_series: usize,
}

impl<K, A> OpenSeries<K, A> {
    pub(super) fn new(max_series: usize) -> Self {
        Self { places: Vec::new(), overflow: 0, all: WindowSeries::default(), max_series }
    }

    /// The accumulator of a series, made from its stable hash if it is new; and whether it is that
    /// of the overflow series.
    #[inline]
    pub(super) fn entry<S>(
        &mut self,
        series: u32,
        interner: &Interner<K, S>,
        make: impl FnOnce(u64) -> A,
    ) -> (&mut A, bool)
    where
        K: Hash + Eq + Clone,
        S: BuildHasher,
    {
        let mut place = self.places.get(series as usize).copied().unwrap_or(0);
        let mut folded = false;
        if place == 0 {
            (place, folded) = self.new_place(series, interner, make);
        }
        (self.all.accumulator(place as usize - 1), folded)
    }

    #[cold]
    fn new_place<S>(&mut self, series: u32, interner: &Interner<K, S>, make: impl FnOnce(u64) -> A) -> (u32, bool)
    where
        K: Hash + Eq + Clone,
        S: BuildHasher,
    {
        let key = interner.key_of(series).filter(|_| series != OVERFLOW && self.own_series() < self.max_series);
        // The limit on series is below u32::MAX.
        let next = self.all.len() as u32 + 1;
        let Some(key) = key else {
            if self.overflow == 0 {
                self.all.push((SeriesKey::Overflow, make(OVERFLOW_HASH)));
                self.overflow = next;
            }
            return (self.overflow, true);
        };
        if self.places.len() <= series as usize {
            self.places.resize(series as usize + 1, 0);
        }
        self.places[series as usize] = next;
        self.all.push((SeriesKey::Series(key.clone()), make(interner.hash_of(series))));
        (next, false)
    }

    /// Looks at the accumulators of series that observations are going to, see
    /// [`Accumulator::look_at`].
    pub(super) fn look_at(&self, series: impl Iterator<Item = u32>) -> u64
    where
        A: Accumulator,
    {
        series.fold(0, |seen, series| seen ^ self.get(series).map_or(0, Accumulator::look_at))
    }

    /// Whether a series has a place of its own.
    pub(super) fn holds(&self, series: u32) -> bool {
        self.places.get(series as usize).is_some_and(|place| *place > 0)
    }

    /// The accumulator of a series that has a place of its own.
    #[inline]
    pub(super) fn get(&self, series: u32) -> Option<&A> {
        self.at(*self.places.get(series as usize)?)
    }

    /// The accumulator of the overflow series.
    pub(super) fn overflow(&self) -> Option<&A> {
        self.at(self.overflow)
    }

    #[inline]
    fn at(&self, place: u32) -> Option<&A> {
        Some(&self.all[place.checked_sub(1)? as usize].1)
    }

    /// Number of series, overflow not included.
    pub(super) fn own_series(&self) -> usize {
        self.all.len() - usize::from(self.overflow > 0)
    }

    /// Number of series, overflow included.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &A> {
        self.all.iter().map(|(_, value)| value)
    }

    /// All, as the window closes.
    pub(super) fn close(self) -> WindowSeries<K, A> {
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any number of series, in order, by index and one by one.
    #[test]
    fn series_are_in_order_over_pieces() {
        for count in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
            let mut series = WindowSeries::default();
            (0..count).for_each(|key| series.push((SeriesKey::Series(key), 2 * key)));
            assert_eq!((series.len(), series.is_empty()), (count, count == 0));
            assert_eq!(series.first().is_some(), count > 0);
            assert!(series.iter().enumerate().all(|(at, (_, value))| *value == 2 * at && series[at].1 == 2 * at));
            assert!(series.into_iter().map(|(key, _)| key).eq((0..count).map(SeriesKey::Series)));
        }
    }
}
