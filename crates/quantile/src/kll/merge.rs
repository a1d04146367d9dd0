//! Merging, and observations with a weight: both add items above level 0.

use super::compact::merge_into;
use super::{KllError, KllSketch};

/// Up to this weight an observation is repeated at level 0.
const REPEATED: u64 = 4;

impl KllSketch {
    /// Takes everything that another sketch has seen; the error is as if one sketch had seen it
    /// all. `other` is not changed.
    ///
    /// Different `k` may be merged: this sketch keeps its own, and [`KllSketch::min_k`] becomes the
    /// smaller one if `other` has given up items. Merging the same sketch twice counts it twice.
    ///
    /// # Errors
    ///
    /// [`KllError::Count`] if the count would exceed [`super::MAX_N`]; this sketch is then
    /// unchanged.
    pub fn merge(&mut self, other: &Self) -> Result<(), KllError> {
        self.check_count(other.moments.count)?;
        self.add_nan_count(other.nan_count());
        if other.is_empty() {
            return Ok(());
        }
        self.moments.merge(&other.moments);
        self.sum_known &= other.sum_known;
        self.insert(other.level(0), |key| key);
        if other.is_estimation_mode() {
            self.merge_above(other);
        }
        if other.is_estimation_mode() {
            self.min_k = self.min_k.min(other.min_k);
        }
        Ok(())
    }

    /// Adds one item as the binary digits of its weight. Count, extremes and sum are the caller's.
    pub(super) fn insert_weighted(&mut self, key: i64, weight: u64) {
        if weight <= REPEATED {
            for _ in 0..weight {
                self.insert(&[key], |key| key);
            }
            return;
        }
        for height in 0..=weight.ilog2() as usize {
            if weight >> height & 1 == 1 {
                self.insert_at(height, key);
            }
        }
    }

    /// Adds one item to a level, which is added if it is missing.
    fn insert_at(&mut self, height: usize, key: i64) {
        while self.num_levels() <= height {
            self.add_level();
        }
        self.make_room();
        let place = match height {
            0 => self.items.len(),
            _ => self.start_of(height) + self.level(height).partition_point(|&item| item <= key),
        };
        self.items.insert(place, key);
        self.level0_sorted &= height > 0;
        for start in self.stack().starts.iter_mut().take(height) {
            *start += 1;
        }
    }

    /// Merges the levels above 0, then compacts what is too much.
    fn merge_above(&mut self, other: &Self) {
        while self.num_levels() < other.num_levels() {
            self.add_level();
        }
        let mut items = Vec::with_capacity(self.items.len() + other.start_of(0));
        let mut starts = vec![0; self.num_levels()];
        for height in (1..self.num_levels()).rev() {
            let start = items.len();
            starts[height] = start as u32;
            let ours = self.level(height);
            let theirs = if height < other.num_levels() { other.level(height) } else { &[] };
            items.resize(start + ours.len() + theirs.len(), 0);
            merge_into(&mut items[start..], ours, theirs);
        }
        starts[0] = items.len() as u32;
        items.extend_from_slice(self.level(0));
        self.items = items;
        self.stack().starts = starts;
        self.compress_all();
        self.items.shrink_to(self.capacity);
    }
}
