//! Capacities and compaction.

use std::hint::select_unpredictable;

use super::KllSketch;

/// The smallest capacity of a level; DataSketches calls it `m` and writes it into the image.
pub(super) const MIN_LEVEL_CAPACITY: u16 = 8;

/// Below this depth every level has the smallest capacity, even for the largest `k`.
const DEEPEST: u32 = 24;
/// Capacities by depth below the top.
pub(super) type Capacities = [u16; DEEPEST as usize];

/// Items of a level that are merged by way of the stack; larger ones, which take a `k` beyond that
/// of most sketches, by way of the heap.
const SCRATCH: usize = 512;

/// Capacity of the level `depth` steps below the top: `k (2/3)^depth`, rounded, in integers.
pub(super) fn level_capacity(k: u16, depth: u32) -> u16 {
    if depth >= DEEPEST {
        return MIN_LEVEL_CAPACITY;
    }
    let thirds = 3u64.pow(depth);
    let doubled = ((2 * u64::from(k)) << depth) / thirds;
    let rounded = doubled.div_ceil(2).min(u64::from(u16::MAX)) as u16;
    rounded.max(MIN_LEVEL_CAPACITY)
}

/// Capacities of all levels that can have more than the smallest one.
pub(super) fn capacities(k: u16) -> Capacities {
    std::array::from_fn(|depth| level_capacity(k, depth as u32))
}

/// Items that a stack of `levels` may hold.
pub(super) fn total_capacity(k: u16, levels: usize) -> usize {
    (0..levels as u32).map(|depth| usize::from(level_capacity(k, depth))).sum()
}

/// Keeps every second item, beginning with the first or the second, and moves what is kept to the
/// upper half.
fn halve(items: &mut [i64], first: usize) {
    let half = items.len() / 2;
    for index in (0..half).rev() {
        items[half + index] = items[2 * index + first];
    }
}

/// Merges two ascending slices into one that has their lengths together.
///
/// From both ends at once: the two chains of dependent steps run side by side in the processor,
/// which takes little more than half the time of one. In `shorter` steps from either end neither
/// end can use up a slice, nor can the ends pass each other, as both agree on the order of equals.
pub(super) fn merge_into(merged: &mut [i64], left: &[i64], right: &[i64]) {
    let shorter = left.len().min(right.len());
    let length = left.len() + right.len();
    let merged = &mut merged[..length];
    let (mut from_left, mut from_right) = (0, 0);
    let (mut to_left, mut to_right) = (left.len(), right.len());
    for step in 0..shorter {
        let (a, b) = (left[from_left], right[from_right]);
        let take_left = a <= b;
        merged[step] = select_unpredictable(take_left, a, b);
        from_left += usize::from(take_left);
        from_right = step + 1 - from_left;

        let (a, b) = (left[to_left - 1], right[to_right - 1]);
        let take_left = a > b;
        merged[length - 1 - step] = select_unpredictable(take_left, a, b);
        to_left -= usize::from(take_left);
        to_right -= usize::from(!take_left);
    }
    if from_left > to_left || from_right > to_right {
        // Only so if an image had the two zeros in the wrong order.
        merged[..left.len()].copy_from_slice(left);
        merged[left.len()..].copy_from_slice(right);
        merged.sort_unstable();
        return;
    }
    let (left, right) = (&left[from_left..to_left], &right[from_right..to_right]);
    let merged = &mut merged[shorter..length - shorter];
    let (mut from_left, mut from_right) = (0, 0);
    while from_left < left.len() && from_right < right.len() {
        let (a, b) = (left[from_left], right[from_right]);
        let take_left = a <= b;
        merged[from_left + from_right] = select_unpredictable(take_left, a, b);
        from_left += usize::from(take_left);
        from_right += usize::from(!take_left);
    }
    let rest = &mut merged[from_left + from_right..];
    if from_left < left.len() {
        rest.copy_from_slice(&left[from_left..]);
    } else {
        rest.copy_from_slice(&right[from_right..]);
    }
}

impl KllSketch {
    /// Capacity of a level in the present stack.
    fn capacity_of(&self, height: usize) -> usize {
        let depth = self.num_levels() - 1 - height;
        let capacity = self.stack.as_ref().and_then(|stack| stack.capacities.get(depth)).copied();
        usize::from(capacity.unwrap_or(MIN_LEVEL_CAPACITY))
    }

    /// Puts an empty level on top.
    pub(super) fn add_level(&mut self) {
        let levels = self.num_levels();
        self.capacity += usize::from(level_capacity(self.k, levels as u32));
        self.stack().starts.resize(levels + 1, 0);
    }

    /// Makes room in a full sketch: compacts the lowest level that is at its capacity.
    pub(super) fn compress(&mut self) {
        // Capacities are known from now on.
        let _ = self.stack();
        // A full stack has such a level: the lengths add up to the sum of the capacities.
        let full = (0..self.num_levels()).find(|&height| self.level(height).len() >= self.capacity_of(height));
        if let Some(height) = full {
            self.compact(height);
        }
    }

    /// Compacts from below until the stack is within its capacity, as after a merge.
    pub(super) fn compress_all(&mut self) {
        // Capacities are known from now on.
        let _ = self.stack();
        loop {
            let mut height = 0;
            while height < self.num_levels() {
                if self.num_retained() >= self.capacity && self.level(height).len() >= self.capacity_of(height) {
                    self.compact(height);
                }
                height += 1;
            }
            if self.num_retained() <= self.capacity {
                return;
            }
        }
    }

    /// Moves half of a level one level up. Of an odd number one item stays: the last arrived of
    /// level 0, the smallest of a higher level.
    fn compact(&mut self, height: usize) {
        if height + 1 == self.num_levels() {
            self.add_level();
        }
        let coin = self.stack().bits.next_bit();
        let (begin, middle, end) = (self.start_of(height + 1), self.start_of(height), self.end_of(height));
        let ours = middle - begin;
        let half = (end - middle) / 2;
        let odd = (end - middle) % 2;
        // The level above, then this level: the halves that move up are first brought to the end,
        // which leaves the room between that merging needs.
        let region = &mut self.items[begin..end];
        let (staying, first_pair) = match height {
            0 => (region.len() - odd, ours),
            _ => (ours, ours + odd),
        };
        let kept = region.get(staying).copied();
        let pairs = &mut region[first_pair..first_pair + 2 * half];
        if height == 0 {
            pairs.sort_unstable();
        }
        halve(pairs, coin);
        let (above, rest) = region.split_at_mut(ours + half);
        let halves = first_pair - ours;
        let halves = &rest[halves..halves + half];
        match ours {
            0 => above.copy_from_slice(halves),
            1..=SCRATCH => {
                let mut scratch = [0; SCRATCH];
                scratch[..ours].copy_from_slice(&above[..ours]);
                merge_into(above, &scratch[..ours], halves);
            }
            _ => {
                let ours = above[..ours].to_vec();
                merge_into(above, &ours, halves);
            }
        }
        if let (1, Some(kept)) = (odd, kept) {
            rest[0] = kept;
        }
        // Levels below close the gap.
        self.items.copy_within(end.., end - half);
        self.items.truncate(self.items.len() - half);
        let starts = &mut self.stack().starts;
        starts[height] += half as u32;
        for start in &mut starts[..height] {
            *start -= half as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Capacities by hand: a third less per level, never below eight.
    #[test]
    fn capacities_shrink_by_a_third() {
        let of_200: Vec<u16> = (0..10).map(|depth| level_capacity(200, depth)).collect();
        assert_eq!(of_200, [200, 133, 89, 59, 40, 26, 18, 12, 8, 8]);
        assert_eq!(level_capacity(8, 0), 8);
        assert_eq!(level_capacity(u16::MAX, 0), u16::MAX);
        assert_eq!(level_capacity(u16::MAX, 1), 43_690);
        assert_eq!(level_capacity(u16::MAX, DEEPEST - 1), MIN_LEVEL_CAPACITY);
        assert_eq!(level_capacity(u16::MAX, 60), MIN_LEVEL_CAPACITY);
        assert_eq!(total_capacity(200, 3), 422);
    }

    /// Both halves of an even number of items, by the coin.
    #[test]
    fn halving_takes_every_second() {
        for (coin, expected) in [(0, [1, 3, 5]), (1, [2, 4, 6])] {
            let mut items = [1, 2, 3, 4, 5, 6];
            halve(&mut items, coin);
            assert_eq!(items[3..], expected);
        }
        halve(&mut [], 1);
    }

    proptest! {
        /// Merging is sorting both together.
        #[test]
        fn merging_sorts(
            mut left in prop::collection::vec(-20i64..20, 0..30),
            mut right in prop::collection::vec(-20i64..20, 0..30),
        ) {
            left.sort_unstable();
            right.sort_unstable();
            let mut expected = [left.as_slice(), &right].concat();
            expected.sort_unstable();
            let mut merged = vec![0; expected.len()];
            merge_into(&mut merged, &left, &right);
            prop_assert_eq!(merged, expected);
        }
    }
}
