//! A fast way into large sketches: blocks of values are thinned out by a sorting network before
//! they reach the levels.
//!
//! A block of 16 rows and 8 columns is sorted column by column, all columns at once in vector
//! registers, and of each column every second value is kept by a coin of its own: 64 values that
//! stand for two observations each. That is the compaction of a KLL level on 16 items, so it has no
//! bias; what it adds to the variance of a rank is `n / 32` for the first step and twice that for
//! each further one. [`steps`] takes as many steps as keep this sum small beside the variance that
//! the sketch has anyway.
//!
//! Values that come in order are kept out of it: there the sketch errs far less than for values in
//! any order, so that even a small variance would show.
//!
//! The sketch obeys all rules of the format, but the sizes of its levels are no longer a function
//! of `k` and `n` alone: the lowest levels stay nearly empty.

use super::KllSketch;
use crate::key::to_key;

const ROWS: usize = 16;
const COLUMNS: usize = 8;
const BLOCK: usize = ROWS * COLUMNS;
/// Values that are thinned out before they are sorted and merged into their level.
const CHUNK: usize = 1024;
/// More steps gain little and need ever larger sketches.
const MAX_STEPS: u32 = 3;
/// `64 a e^2 k^2`, where `e` = 0.52 / k is the root mean square of the rank error and `a`, about a
/// sixth, the share of the variance that steps may add to that of the sketch.
const VARIANCE_SHARE: u64 = 3;

/// Sorts each column by a network of 60 comparators, found by M. W. Green (Knuth: "The Art of
/// Computer Programming", volume 3, section 5.3.4). Of two zeros either may come first.
#[inline(always)]
fn sort_columns(rows: &mut [[f64; COLUMNS]; ROWS]) {
    // Written out, not in a loop over a table: only so each row stays in registers.
    macro_rules! comparators {
        ($($low:literal $high:literal),* $(,)?) => {
            $({
                let (low, high) = (rows[$low], rows[$high]);
                rows[$low] = smaller(low, high);
                rows[$high] = larger(low, high);
            })*
        };
    }
    comparators!(
        0 13, 1 12, 2 15, 3 14, 4 8, 5 6, 7 11, 9 10,
        0 5, 1 7, 2 9, 3 4, 6 13, 8 14, 10 15, 11 12,
        0 1, 2 3, 4 5, 6 8, 7 9, 10 11, 12 13, 14 15,
        0 2, 1 3, 4 10, 5 11, 6 7, 8 9, 12 14, 13 15,
        1 2, 3 12, 4 6, 5 7, 8 10, 9 11, 13 14,
        1 4, 2 6, 5 8, 7 10, 9 13, 11 14,
        2 4, 3 6, 9 12, 11 13,
        3 5, 6 8, 7 9, 10 12,
        3 4, 5 6, 7 8, 9 10, 11 12,
        6 7, 8 9,
    );
}

/// Column by column the smaller value; of equal ones the second. One instruction for a register.
#[inline(always)]
fn smaller(a: [f64; COLUMNS], b: [f64; COLUMNS]) -> [f64; COLUMNS] {
    std::array::from_fn(|column| if a[column] < b[column] { a[column] } else { b[column] })
}

/// Column by column the value that [`smaller`] leaves.
#[inline(always)]
fn larger(a: [f64; COLUMNS], b: [f64; COLUMNS]) -> [f64; COLUMNS] {
    std::array::from_fn(|column| if a[column] < b[column] { b[column] } else { a[column] })
}

/// The most steps that the variance of a sketch of `n` values hides, at most [`MAX_STEPS`].
fn steps(k: u16, n: u64) -> u32 {
    let k = u64::from(k);
    (1..=MAX_STEPS).rev().find(|&steps| n.saturating_mul(VARIANCE_SHARE) >= ((1 << steps) - 1) * k * k).unwrap_or(0)
}

/// Whether each of the sequences that take turns in `values` ascends throughout or descends
/// throughout: values in order, or up to [`COLUMNS`] such streams one after the other.
fn comes_in_order(values: &[f64]) -> bool {
    /// Of values in any order, one in a thousand million gets past so many rows.
    const FIRST_ROWS: usize = 4;
    let rows = values.as_chunks::<COLUMNS>().0;
    monotone(&rows[..FIRST_ROWS.min(rows.len())]) && monotone(rows)
}

/// Whether each column ascends throughout or descends throughout.
fn monotone(rows: &[[f64; COLUMNS]]) -> bool {
    let (mut ascending, mut descending) = ([true; COLUMNS], [true; COLUMNS]);
    for pair in rows.windows(2) {
        for column in 0..COLUMNS {
            ascending[column] &= pair[0][column] <= pair[1][column];
            descending[column] &= pair[0][column] >= pair[1][column];
        }
    }
    (0..COLUMNS).all(|column| ascending[column] || descending[column])
}

impl KllSketch {
    /// Takes observations like [`KllSketch::update_slice`], several times as fast once there are
    /// many: from some 53,000 at `k` = 400, or 13,000 at 200, the values pass a sorting network
    /// first. Slices of fewer than 128 values gain nothing.
    ///
    /// Count, extremes and sum are exact, rank errors of values in any order stay within 1.1 times
    /// those of [`KllSketch::update_slice`], and other implementations read the bytes. The
    /// difference: which items are kept, and so the bytes, depends on how the stream is cut into
    /// slices, and the sizes of the levels are not those that other implementations come to.
    pub fn update_bulk(&mut self, values: &[f64]) {
        let mut rest = values;
        while rest.len() >= BLOCK {
            if steps(self.k, self.moments.count.saturating_add(rest.len() as u64)) == 0 {
                break;
            }
            let mut steps = steps(self.k, self.moments.count);
            while steps > 0 && rest.len() < BLOCK << (steps - 1) {
                steps -= 1;
            }
            if steps == 0 {
                let (now, later) = rest.split_at(CHUNK.min(rest.len()));
                self.update_slice(now);
                rest = later;
                continue;
            }
            let piece = BLOCK << (steps - 1);
            let (now, later) = rest.split_at(CHUNK.min(rest.len()) / piece * piece);
            rest = later;
            if crate::moments::any_nan(now) || comes_in_order(now) {
                self.update_slice(now);
            } else {
                self.moments.add_slice(now);
                self.insert_thinned(now, steps);
            }
        }
        self.update_slice(rest);
    }

    /// Halves `values` so many times and adds what is left to the level of that weight. Their
    /// number is a multiple of what the steps need.
    fn insert_thinned(&mut self, values: &[f64], steps: u32) {
        let mut kept = [0.0; CHUNK / 2];
        let mut length = self.thin_out(values, &mut kept);
        for _ in 1..steps {
            let mut next = [0.0; CHUNK / 2];
            length = self.thin_out(&kept[..length], &mut next);
            kept = next;
        }
        let mut keys = kept.map(to_key);
        let keys = &mut keys[..length];
        keys.sort_unstable();
        self.insert_sorted(steps as usize, keys);
    }

    /// Keeps half of the values, block by block; returns how many.
    fn thin_out(&mut self, values: &[f64], kept: &mut [f64; CHUNK / 2]) -> usize {
        let mut length = 0;
        for block in values.as_chunks::<BLOCK>().0 {
            let mut rows = [[0.0; COLUMNS]; ROWS];
            for (row, values) in rows.iter_mut().zip(block.as_chunks::<COLUMNS>().0) {
                *row = *values;
            }
            sort_columns(&mut rows);
            let bits = &mut self.stack().bits;
            let odd: [bool; COLUMNS] = std::array::from_fn(|_| bits.next_bit() == 1);
            let room = kept[length..].as_chunks_mut::<COLUMNS>().0;
            for (kept, pair) in room.iter_mut().zip(rows.as_chunks::<2>().0) {
                for column in 0..COLUMNS {
                    kept[column] = if odd[column] { pair[1][column] } else { pair[0][column] };
                }
            }
            length += BLOCK / 2;
        }
        length
    }

    /// Adds ascending items to a level above 0, as many at a time as there is room for.
    fn insert_sorted(&mut self, height: usize, mut keys: &[i64]) {
        while self.num_levels() <= height {
            self.add_level();
        }
        while !keys.is_empty() {
            while self.items.len() >= self.capacity {
                self.compress();
            }
            let (now, later) = keys.split_at((self.capacity - self.items.len()).min(keys.len()));
            keys = later;
            self.reserve(now.len());
            let (start, end) = (self.start_of(height), self.end_of(height));
            let length = self.items.len();
            let ours = self.items[start..end].to_vec();
            self.items.resize(length + now.len(), 0);
            self.items.copy_within(end..length, end + now.len());
            super::compact::merge_into(&mut self.items[start..], &ours, now);
            for start in self.stack().starts.iter_mut().take(height) {
                *start += now.len() as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A network sorts everything if it sorts all inputs of zeros and ones.
    #[test]
    fn network_sorts_all_zeros_and_ones() {
        for first in (0..1u32 << ROWS).step_by(COLUMNS) {
            let bit = |row: usize, column: usize| f64::from((first + column as u32) >> row & 1);
            let mut rows: [[f64; COLUMNS]; ROWS] =
                std::array::from_fn(|row| std::array::from_fn(|column| bit(row, column)));
            sort_columns(&mut rows);
            for column in 0..COLUMNS {
                let sorted: Vec<f64> = rows.iter().map(|row| row[column]).collect();
                assert!(sorted.is_sorted(), "{:016b}", first + column as u32);
                let ones = (first + column as u32).count_ones();
                assert_eq!(sorted.iter().sum::<f64>(), f64::from(ones));
            }
        }
    }

    /// Small sketches take the slow way; the limits are where they are said to be.
    #[test]
    fn steps_need_many_values() {
        for (k, n, expected) in [
            (400, 0, 0),
            (400, 53_333, 0),
            (400, 53_334, 1),
            (400, 160_000, 2),
            (400, 373_334, 3),
            (400, u64::MAX, 3),
            (200, 13_334, 1),
            (8, 22, 1),
            (u16::MAX, 1 << 29, 0),
        ] {
            assert_eq!(steps(k, n), expected, "k={k}, n={n}");
        }
    }

    /// Ascending, descending and interleaved streams are in order, one step back or a mixture is not.
    #[test]
    fn order_is_seen() {
        let ascending: Vec<f64> = (0..CHUNK).map(|i| i as f64).collect();
        let descending: Vec<f64> = ascending.iter().map(|value| -value).collect();
        let zig_zag: Vec<f64> = (0..CHUNK).map(|i| if i % 2 == 0 { i as f64 } else { -(i as f64) }).collect();
        for values in [&ascending, &descending, &zig_zag, &vec![1.0; CHUNK]] {
            assert!(comes_in_order(values));
        }
        let mut broken = ascending.clone();
        broken.swap(500, 508);
        assert!(!comes_in_order(&broken));
        let mixed: Vec<f64> = (0..CHUNK).map(|i| (i * 7919 % 1021) as f64).collect();
        assert!(!comes_in_order(&mixed));
    }

    /// Both zeros come out of the network as often as they went in.
    #[test]
    fn zeros_keep_their_signs() {
        let mut rows = [[0.0; COLUMNS]; ROWS];
        for (index, row) in rows.iter_mut().enumerate() {
            *row = [if index % 3 == 0 { -0.0 } else { 0.0 }; COLUMNS];
        }
        sort_columns(&mut rows);
        let negative = rows.iter().filter(|row| row[3].is_sign_negative()).count();
        assert_eq!(negative, 6);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// However a stream with NaN, infinities and zeros of both signs is cut, the rules hold,
        /// what must be exact is, and the bytes are read.
        #[test]
        fn bulk_keeps_the_rules(seed: u64, k in 8u16..80, cuts in prop::collection::vec(1usize..3000, 1..9)) {
            let mut sketch = KllSketch::new(k, seed).expect("k");
            let mut plain = KllSketch::new(k, seed).expect("k");
            let mut state = seed;
            for cut in cuts {
                let values: Vec<f64> = (0..cut).map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    match state >> 48 {
                        0..8 => f64::NAN,
                        8..16 => f64::INFINITY,
                        16..4000 => -0.0,
                        4000..8000 => 0.0,
                        other => other as f64 - 20_000.0,
                    }
                }).collect();
                sketch.update_bulk(&values);
                plain.update_slice(&values);
                super::super::tests::assert_sound(&sketch);
            }
            prop_assert_eq!(sketch.n(), plain.n());
            prop_assert_eq!(sketch.nan_count(), plain.nan_count());
            prop_assert_eq!((sketch.min(), sketch.max()), (plain.min(), plain.max()));
            let copy = KllSketch::from_bytes(&sketch.to_bytes(), 1).expect("own bytes");
            prop_assert_eq!(copy.to_bytes(), sketch.to_bytes());
        }
    }
}
