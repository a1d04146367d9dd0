//! Numbers for series, so that windows find them without hashing.

use std::hash::{BuildHasher, Hash};

use super::numbers::Numbers;
use super::table::SeriesKey;
use crate::seed;

/// The number of every series that got none of its own.
pub(super) const OVERFLOW: u32 = u32::MAX;

/// Numbers that are looked at in one go to find some that nobody needs.
const LOOKED_AT: usize = 16_384;
/// The fewest numbers freed in one go, if there are so many to free.
const FREED: usize = 512;

/// A series by number, from [`super::Windows::intern`]. It is good as long as
/// [`super::Windows::slots_epoch`] stays the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeriesSlot {
    pub(super) series: u32,
    pub(super) epoch: u32,
}

/// A slot that was given before others were freed: it may be that of another series by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("slot of epoch {slot} must be interned again: the epoch is {epoch}")]
pub struct StaleSlot {
    /// Epoch of the slot.
    pub slot: u32,
    /// The present epoch.
    pub epoch: u32,
}

/// Keys and their numbers. Keys that no open window holds are forgotten when there are too many.
#[derive(Debug)]
pub(super) struct Interner<K, S> {
    hasher: S,
    /// Numbers only: with many series, what is kept twice counts.
    by_key: Numbers,
    keys: Vec<Option<K>>,
    /// How often each number is held; as long as the greatest one that was.
    holders: Vec<u32>,
    free: Vec<u32>,
    epoch: u32,
    /// Whether a key got no number in this epoch.
    refused: bool,
    /// Whether numbers were freed since windows were last looked at: only once, or the keys of one
    /// batch would push each other out for ever.
    freed: bool,
    /// Keys that got a number since then.
    interned: usize,
    /// Whether numbers are being freed, some whenever windows are looked at.
    freeing: bool,
    /// The number to look at next.
    hand: usize,
}

impl<K: Hash + Eq + Clone, S: BuildHasher> Interner<K, S> {
    pub(super) fn new(hasher: S) -> Self {
        Self {
            hasher,
            by_key: Numbers::new(),
            keys: Vec::new(),
            holders: Vec::new(),
            free: Vec::new(),
            epoch: 0,
            refused: false,
            freed: false,
            interned: 0,
            freeing: false,
            hand: 0,
        }
    }

    pub(super) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The number of a key. At most `most` keys have one; when they are all held, a further key
    /// gets [`OVERFLOW`]. A key is held as long as [`Interner::hold`] or `is_held` says so.
    pub(super) fn intern(&mut self, key: &K, most: usize, is_held: impl Fn(u32) -> bool) -> u32 {
        let hash = self.hasher.hash_one(key);
        if let Some(series) = self.by_key.find(hash, |&series| self.key_of(series) == Some(key)) {
            return series;
        }
        if self.by_key.len() >= most && !std::mem::replace(&mut self.freed, true) {
            self.free(self.keys.len(), usize::MAX, is_held);
        }
        if self.by_key.len() >= most.min(OVERFLOW as usize) {
            self.refused = true;
            return OVERFLOW;
        }
        self.interned += 1;
        let known = Some(key.clone());
        let series = match self.free.pop() {
            Some(series) => {
                self.keys[series as usize] = known;
                series
            }
            None => {
                self.keys.push(known);
                (self.keys.len() - 1) as u32
            }
        };
        let Self { by_key, keys, hasher, .. } = self;
        let hash_of = |&series: &u32| keys[series as usize].as_ref().map_or(0, |known| hasher.hash_one(known));
        by_key.insert(hash, series, hash_of);
        series
    }

    /// To be called whenever windows are looked at: allows numbers to be freed again, and frees some
    /// if there is little room left for keys that come, so that it need not be done for all in one
    /// go. `most` and `is_held` as for [`Interner::intern`].
    pub(super) fn next_batch(&mut self, most: usize, is_held: impl Fn(u32) -> bool) {
        self.freed = false;
        let interned = std::mem::take(&mut self.interned);
        let room = most.saturating_sub(self.by_key.len());
        // Slots are stale each time: rather a few times in a row than now and then.
        let wanted = (most / 16).min(4 * FREED);
        self.freeing = room < if self.freeing { 2 * wanted } else { wanted };
        if self.freeing {
            // Faster than keys come.
            self.free(LOOKED_AT, (2 * interned).max(FREED), is_held);
        }
    }

    /// Frees numbers that no window holds, the next ones: `wanted`, or as many as there are among
    /// those `looked_at`.
    fn free(&mut self, looked_at: usize, wanted: usize, is_held: impl Fn(u32) -> bool) {
        let before = self.free.len();
        for _ in 0..looked_at.min(self.keys.len()) {
            if self.free.len() - before >= wanted {
                break;
            }
            let at = self.hand % self.keys.len();
            self.hand = at + 1;
            let number = at as u32;
            if self.holders.get(at).is_none_or(|holders| *holders == 0)
                && !is_held(number)
                && let Some(key) = self.keys[at].take()
            {
                self.by_key.remove(self.hasher.hash_one(&key), number);
                self.free.push(number);
            }
        }
        if self.free.len() > before {
            self.begin_epoch();
        }
    }

    /// Makes all slots that were given before stale.
    fn begin_epoch(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        self.refused = false;
    }

    /// The hash of a series for the seed of its sketches.
    pub(super) fn hash_of(&self, series: u32) -> u64 {
        self.key_of(series).map_or(0, seed::stable_hash)
    }

    /// The key of a series.
    pub(super) fn key_of(&self, series: u32) -> Option<&K> {
        self.keys.get(series as usize)?.as_ref()
    }

    /// Notes that windows have closed: where keys got no number for want of room, they may get one
    /// now.
    pub(super) fn windows_closed(&mut self) {
        if self.refused {
            self.begin_epoch();
        }
    }

    /// Notes an entry for a series in a window.
    pub(super) fn hold(&mut self, series: u32) {
        let at = series as usize;
        if self.holders.len() <= at {
            self.holders.resize(at + 1, 0);
        }
        self.holders[at] += 1;
    }

    /// Notes that an entry is gone; gives the key.
    pub(super) fn release(&mut self, series: u32) -> SeriesKey<K> {
        self.windows_closed();
        if let Some(holders) = self.holders.get_mut(series as usize) {
            *holders = holders.saturating_sub(1);
        }
        self.key_of(series).cloned().map_or(SeriesKey::Overflow, SeriesKey::Series)
    }
}
