//! Capacities and compaction.

use super::KllSketch;

/// The smallest capacity of a level; DataSketches calls it `m` and writes it into the image.
pub(super) const MIN_LEVEL_CAPACITY: u16 = 8;

/// Below this depth every level has the smallest capacity, even for the largest `k`.
const DEEPEST: u32 = 24;

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

/// Merges ascending `items` into `level`, whose first part is ascending and whose rest is room for
/// them. From the back, so that no second array is needed.
pub(super) fn merge_into(level: &mut [i64], items: &[i64]) {
    let mut theirs = items.len();
    let mut ours = level.len() - theirs;
    while ours > 0 && theirs > 0 {
        let (left, right) = (level[ours - 1], items[theirs - 1]);
        let take_ours = left > right;
        level[ours + theirs - 1] = if take_ours { left } else { right };
        ours -= usize::from(take_ours);
        theirs -= usize::from(!take_ours);
    }
    level[..theirs].copy_from_slice(&items[..theirs]);
}

impl KllSketch {
    /// Capacity of a level in the present stack.
    fn capacity_of(&self, height: usize) -> usize {
        let depth = self.num_levels() - 1 - height;
        let capacity = self.capacities.get(depth).copied();
        usize::from(capacity.unwrap_or(MIN_LEVEL_CAPACITY))
    }

    /// Fills the table of capacities; small sketches never need it.
    fn prepare_capacities(&mut self) {
        if self.capacities.is_empty() {
            let k = self.k;
            self.capacities = (0..DEEPEST)
                .map(|depth| level_capacity(k, depth))
                .take_while(|&capacity| capacity > MIN_LEVEL_CAPACITY)
                .collect();
        }
    }

    /// Puts an empty level on top.
    pub(super) fn add_level(&mut self) {
        let levels = self.num_levels();
        self.capacity += usize::from(level_capacity(self.k, levels as u32));
        self.starts.resize(levels + 1, 0);
    }

    /// Makes room in a full sketch: compacts the lowest level that is at its capacity.
    pub(super) fn compress(&mut self) {
        self.prepare_capacities();
        // A full stack has such a level: the lengths add up to the sum of the capacities.
        let full = (0..self.num_levels()).find(|&height| self.level(height).len() >= self.capacity_of(height));
        if let Some(height) = full {
            self.compact(height);
        }
    }

    /// Compacts from below until the stack is within its capacity, as after a merge.
    pub(super) fn compress_all(&mut self) {
        self.prepare_capacities();
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
        let coin = self.bits.next_bit();
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
        merge_into(above, &rest[halves..halves + half]);
        if let (1, Some(kept)) = (odd, kept) {
            rest[0] = kept;
        }
        // Levels below close the gap.
        self.items.copy_within(end.., end - half);
        self.items.truncate(self.items.len() - half);
        self.starts[height] += half as u32;
        for start in &mut self.starts[..height] {
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
        /// Merging from the back is sorting both together.
        #[test]
        fn merging_sorts(
            mut level in prop::collection::vec(-20i64..20, 0..30),
            mut items in prop::collection::vec(-20i64..20, 0..30),
        ) {
            level.sort_unstable();
            items.sort_unstable();
            let mut expected = [level.as_slice(), &items].concat();
            expected.sort_unstable();
            level.resize(expected.len(), 0);
            merge_into(&mut level, &items);
            prop_assert_eq!(level, expected);
        }
    }
}
