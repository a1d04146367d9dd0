//! KLL sketches of doubles with the rules of Apache DataSketches.
//!
//! A sketch is a stack of compactors (Karnin, Lang, Liberty: "Optimal quantile approximation in
//! streams", FOCS 2016). An item at level `h` stands for `2^h` observations. A level that must
//! give way is sorted and every second item of it, odd or even by a fair coin, moves one level up;
//! of an odd number one item stays behind, so that the weights always add up to the count.
//!
//! Capacities, compaction order and bytes are those of Apache DataSketches, so sketches can be
//! exchanged with its C++, Java, Python, Go and Rust versions and with what is built on them. Up
//! to `k` values nothing is lost. Beyond, a quantile is off by a *rank* error that depends on `k`
//! alone, see [`KllSketch::normalized_rank_error`].
//!
//! NaN has no rank: it is dropped and counted. Infinities are values like others. Count, minimum,
//! maximum and sum are exact.
//!
//! Not for bounds on the *value*: on a steep tail a small rank error can be a large difference in
//! value.

mod bytes;
mod compact;
mod error;
mod merge;
mod network;
#[cfg(test)]
mod tests;
mod view;

pub use error::{KllError, SketchImageError};
pub use view::SortedView;

use compact::Capacities;

use crate::key::{to_key, to_value};
use crate::moments::{Moments, for_each_run_without_nan};
use crate::rank::{Criterion, QuantileError};
use crate::seed::RandomBits;

/// The smallest `k`.
pub const MIN_K: u16 = 8;
/// The `k` that other users of the format take if not told: 1.33 % rank error.
pub const DEFAULT_K: u16 = 200;
/// The most levels of a stack.
pub const MAX_LEVELS: usize = 61;
/// The largest count that merging, weights and images may lead to: with it no item can need a
/// level above the [`MAX_LEVELS`].
pub const MAX_N: u64 = (1 << MAX_LEVELS) - 1;

/// Items of the first allocation.
const SMALLEST_ALLOCATION: usize = 4;

/// A KLL sketch of doubles.
///
/// Memory grows with what is seen: some 250 bytes when empty, about 8 bytes for each of the first
/// `k` values, and in the end about 3 `k` items.
#[derive(Debug, Clone)]
pub struct KllSketch {
    k: u16,
    /// The smallest `k` that has had a say in the compacted items: it rules the error.
    min_k: u16,
    /// What the images say about level 0; kept so that they are written as they were read.
    level0_sorted: bool,
    /// Whether `moments.sum` covers all of `moments.count`: an image has no sum.
    sum_known: bool,
    moments: Moments,
    seed: u64,
    /// Items that all levels together may hold.
    capacity: usize,
    /// Keys of all levels in one array: the top level first, level 0 last. Levels ascend but for
    /// level 0, which is in order of arrival and grows at the end. One array, because the levels
    /// share the capacity: each is at times several times its own.
    items: Vec<i64>,
    /// As long as there is none, there is only level 0.
    stack: Option<Box<Stack>>,
}

/// What only sketches need that were compacted, or dropped NaN: what is needed for each observation lies closer
/// together without it.
#[derive(Debug, Clone)]
struct Stack {
    /// Where each level begins in `items`, by height; empty as long as there is only level 0.
    starts: Vec<u32>,
    /// Capacities by depth below the top; deeper levels have the smallest capacity.
    capacities: Capacities,
    bits: RandomBits,
    nan: u64,
}

impl KllSketch {
    /// An empty sketch.
    ///
    /// `k` sets accuracy and size: 200 for 1.33 % rank error and at most 5 KB, 400 for 0.68 % and
    /// at most 10 KB. The coins come from `seed`: the same seed and input give the same bytes, and
    /// sketches that are to be merged should have different seeds, see [`crate::seed::derive`].
    ///
    /// # Errors
    ///
    /// [`KllError::K`] if `k` is below [`MIN_K`].
    pub fn new(k: u16, seed: u64) -> Result<Self, KllError> {
        if k < MIN_K {
            return Err(KllError::K { k });
        }
        Ok(Self::with_valid_k(k, seed))
    }

    pub(crate) fn with_valid_k(k: u16, seed: u64) -> Self {
        Self {
            k,
            min_k: k,
            level0_sorted: false,
            sum_known: true,
            moments: Moments::new(),
            seed,
            capacity: usize::from(k),
            items: Vec::new(),
            stack: None,
        }
    }

    /// Takes one observation. NaN is dropped and counted.
    #[inline]
    pub fn update(&mut self, value: f64) {
        if value.is_nan() {
            self.add_nan_count(1);
            return;
        }
        self.moments.add(value);
        self.level0_sorted = false;
        self.make_room();
        self.items.push(to_key(value));
    }

    /// Takes observations in order; gives the same sketch as [`KllSketch::update`] for each, and
    /// is faster.
    pub fn update_slice(&mut self, values: &[f64]) {
        if let &[value] = values {
            return self.update(value);
        }
        let nan = for_each_run_without_nan(values, |run| {
            self.moments.add_slice(run);
            self.insert(run, to_key);
        });
        self.add_nan_count(nan);
    }

    /// Takes `value` as if observed `weight` times, in time that grows with the logarithm of the
    /// weight. NaN is dropped and counted `weight` times.
    ///
    /// # Errors
    ///
    /// [`KllError::Weight`] if the weight is 0, [`KllError::Count`] if the count would exceed
    /// [`MAX_N`]; the sketch is then unchanged.
    pub fn update_weighted(&mut self, value: f64, weight: u64) -> Result<(), KllError> {
        if weight == 0 {
            return Err(KllError::Weight);
        }
        if value.is_nan() {
            self.add_nan_count(weight);
            return Ok(());
        }
        self.moments.add_weighted(value, weight)?;
        self.insert_weighted(to_key(value), weight);
        Ok(())
    }

    /// Takes values with their weights, like [`KllSketch::update_weighted`] for each.
    ///
    /// # Errors
    ///
    /// [`KllError::Weight`] if any weight is 0, [`KllError::Count`] if the count would exceed
    /// [`MAX_N`]; the sketch is then unchanged.
    ///
    /// # Panics
    ///
    /// If `values` and `weights` differ in length.
    pub fn update_weighted_slice(&mut self, values: &[f64], weights: &[u64]) -> Result<(), KllError> {
        assert_eq!(values.len(), weights.len(), "each value has one weight");
        if weights.contains(&0) {
            return Err(KllError::Weight);
        }
        let numbers = values.iter().zip(weights).filter(|(value, _)| !value.is_nan());
        self.check_count(numbers.fold(0, |sum: u64, (_, &weight)| sum.saturating_add(weight)))?;
        values.iter().zip(weights).try_for_each(|(&value, &weight)| self.update_weighted(value, weight))
    }

    /// See [`crate::accumulator::Accumulator::look_at`].
    #[inline]
    pub(crate) fn look_at(&self) -> u64 {
        self.moments.count ^ self.items.last().map_or(0, |item| item.cast_unsigned())
    }

    /// Makes room for one item at least.
    #[inline]
    fn make_room(&mut self) {
        if self.items.len() >= self.capacity {
            self.compress();
        }
        if self.items.len() == self.items.capacity() {
            self.reserve(1);
        }
    }

    /// Reserves memory for more items: in doubling steps, but not beyond the capacity.
    fn reserve(&mut self, more: usize) {
        let needed = self.items.len() + more;
        if needed > self.items.capacity() {
            let doubled = (2 * self.items.capacity()).min(self.capacity);
            let target = doubled.max(needed).max(SMALLEST_ALLOCATION);
            self.items.reserve_exact(target - self.items.len());
        }
    }

    /// Appends to level 0 as much as fits, compacts, and goes on.
    fn insert<T: Copy>(&mut self, items: &[T], key: impl Fn(T) -> i64 + Copy) {
        let mut rest = items;
        while !rest.is_empty() {
            self.level0_sorted = false;
            self.make_room();
            let free = self.capacity.saturating_sub(self.items.len()).max(1);
            let (now, later) = rest.split_at(free.min(rest.len()));
            self.reserve(now.len());
            self.items.extend(now.iter().map(|&item| key(item)));
            rest = later;
        }
    }

    /// Number of observations, NaN not included.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.moments.count
    }

    /// Whether nothing has been observed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.moments.count == 0
    }

    /// The `k` of this sketch.
    #[must_use]
    pub fn k(&self) -> u16 {
        self.k
    }

    /// The smallest `k` among the compacted sketches merged into this one: it rules the error.
    #[must_use]
    pub fn min_k(&self) -> u16 {
        self.min_k
    }

    /// The smallest observation, exactly.
    #[must_use]
    pub fn min(&self) -> Option<f64> {
        self.moments.min()
    }

    /// The largest observation, exactly.
    #[must_use]
    pub fn max(&self) -> Option<f64> {
        self.moments.max()
    }

    /// The sum of the observations; `None` if a part of them came from an image whose sum was not
    /// given, see [`KllSketch::set_sum`].
    #[must_use]
    pub fn sum(&self) -> Option<f64> {
        self.sum_known.then(|| self.moments.sum.total())
    }

    /// Sets the sum of all observations, which images do not have: for the carrier of an image
    /// that has it.
    pub fn set_sum(&mut self, sum: f64) {
        self.moments.sum = crate::moments::CompensatedSum::from_total(sum);
        self.sum_known = true;
    }

    /// Takes over the exact minimum and maximum of a carrier, as far as they lie beyond what the
    /// items show: for images that do not have them. NaN and an empty sketch change nothing.
    pub fn widen_extremes(&mut self, min: f64, max: f64) {
        if !self.is_empty() && !min.is_nan() && !max.is_nan() {
            self.moments.widen(min, max);
        }
    }

    /// Number of NaN that were offered and dropped.
    #[must_use]
    pub fn nan_count(&self) -> u64 {
        self.stack.as_ref().map_or(0, |stack| stack.nan)
    }

    /// Counts NaN that were dropped.
    pub(crate) fn add_nan_count(&mut self, nan: u64) {
        if nan > 0 {
            let stack = self.stack();
            stack.nan = stack.nan.saturating_add(nan);
        }
    }

    /// Number of items kept.
    #[inline]
    #[must_use]
    pub fn num_retained(&self) -> usize {
        self.items.len()
    }

    /// Number of levels, at least one.
    #[must_use]
    pub fn num_levels(&self) -> usize {
        self.starts().len().max(1)
    }

    /// Whether items were given up, so that quantiles are estimates.
    #[must_use]
    pub fn is_estimation_mode(&self) -> bool {
        self.num_levels() > 1
    }

    /// Bytes of memory of this sketch, unused capacity included.
    #[must_use]
    pub fn retained_bytes(&self) -> usize {
        size_of::<Self>()
            + self.items.capacity() * size_of::<i64>()
            + self.stack.as_ref().map_or(0, |stack| size_of::<Stack>() + stack.starts.capacity() * size_of::<u32>())
    }

    /// The rank error that 99 % of estimates keep below, as a fraction of `n`: of one quantile, or
    /// of all points of a distribution at once (`whole_distribution`).
    ///
    /// The constants are those measured by Apache DataSketches for its KLL.
    #[must_use]
    pub fn normalized_rank_error(&self, whole_distribution: bool) -> f64 {
        let k = f64::from(self.min_k);
        if whole_distribution { 2.446 / k.powf(0.9433) } else { 2.296 / k.powf(0.9723) }
    }

    /// A snapshot for any number of queries. It costs one sort; the sketch is not changed.
    #[must_use]
    pub fn sorted_view(&self) -> SortedView {
        SortedView::new(self)
    }

    /// One quantile; for several take [`KllSketch::quantiles`].
    ///
    /// # Errors
    ///
    /// [`QuantileError`] if the sketch is empty or the rank is not in `0..=1`.
    pub fn quantile(&self, rank: f64, criterion: Criterion) -> Result<f64, QuantileError> {
        self.sorted_view().quantile(rank, criterion)
    }

    /// The quantiles of `ranks`, in the order given. Rank 0 is the exact minimum, 1 the exact
    /// maximum.
    ///
    /// # Errors
    ///
    /// [`QuantileError`] if the sketch is empty or a rank is not in `0..=1`.
    pub fn quantiles(&self, ranks: &[f64], criterion: Criterion) -> Result<Vec<f64>, QuantileError> {
        self.sorted_view().quantiles(ranks, criterion)
    }

    /// The fraction of observations at or below `value` (inclusive) or below it (exclusive);
    /// `None` if the sketch is empty or `value` is NaN.
    #[must_use]
    pub fn rank(&self, value: f64, criterion: Criterion) -> Option<f64> {
        self.sorted_view().rank(value, criterion)
    }

    /// Where each level begins, by height; none where there is only level 0.
    fn starts(&self) -> &[u32] {
        self.stack.as_ref().map_or(&[], |stack| &stack.starts)
    }

    fn stack(&mut self) -> &mut Stack {
        let (k, seed) = (self.k, self.seed);
        self.stack.get_or_insert_with(|| {
            let capacities = compact::capacities(k);
            Box::new(Stack { starts: Vec::new(), capacities, bits: RandomBits::new(seed), nan: 0 })
        })
    }

    /// Where a level begins in the array of items.
    fn start_of(&self, height: usize) -> usize {
        self.starts().get(height).map_or(0, |&start| start as usize)
    }

    /// Where a level ends in the array of items.
    fn end_of(&self, height: usize) -> usize {
        match height {
            0 => self.items.len(),
            _ => self.start_of(height - 1),
        }
    }

    /// The items of one level, level 0 in order of arrival.
    fn level(&self, height: usize) -> &[i64] {
        &self.items[self.start_of(height)..self.end_of(height)]
    }

    /// The levels with the highest first, level 0 in order of arrival.
    pub(crate) fn levels_from_the_top(&self) -> impl Iterator<Item = &[i64]> {
        (0..self.num_levels()).rev().map(|height| self.level(height))
    }

    /// A number that follows from the state of the coins without using any.
    pub(crate) fn coins_fingerprint(&self) -> u64 {
        self.stack.as_ref().map_or_else(|| RandomBits::new(self.seed).fingerprint(), |stack| stack.bits.fingerprint())
    }

    /// A sketch of items laid out as here, with `starts` by height. Levels above 0 need not be
    /// sorted, top levels may be empty, and there may be more items than fit. The weights add up to
    /// at most [`MAX_N`].
    pub(crate) fn from_levels(k: u16, mut items: Vec<i64>, mut starts: Vec<u32>, seed: u64) -> Self {
        // The highest level with an item ends behind the first item.
        while starts.len() > 1 && starts[starts.len() - 2] == 0 {
            starts.pop();
        }
        let mut sketch = Self::with_valid_k(k, seed);
        for (height, &start) in starts.iter().enumerate() {
            let end = if height == 0 { items.len() } else { starts[height - 1] as usize };
            let level = &mut items[start as usize..end];
            sketch.moments.count += (level.len() as u64) << height;
            if height > 0 && !level.is_sorted() {
                level.sort_unstable();
            }
        }
        if let (Some(&least), Some(&most)) = (items.iter().min(), items.iter().max()) {
            sketch.sum_known = false;
            sketch.moments.widen(to_value(least), to_value(most));
        }
        if starts.len() > 1 {
            sketch.capacity = compact::total_capacity(k, starts.len());
            sketch.stack().starts = starts;
        }
        sketch.items = items;
        if sketch.items.len() > sketch.capacity {
            sketch.compress_all();
        }
        sketch.items.shrink_to(sketch.capacity);
        sketch
    }

    /// Checks that `more` observations may be added.
    fn check_count(&self, more: u64) -> Result<(), KllError> {
        match self.moments.count.checked_add(more) {
            Some(count) if count <= MAX_N => Ok(()),
            _ => Err(KllError::Count { have: self.moments.count, more }),
        }
    }
}
