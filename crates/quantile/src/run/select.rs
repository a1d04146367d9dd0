//! Ranks across sorted runs, which stay where they are.
//!
//! Two runs, the usual number, need one bisection: as many values as wanted are taken from both
//! together, and only how many are from the first is open. For more runs a part of each is kept
//! that may still hold the value, and pivots make the parts smaller. A pivot is the median of what
//! stands at the wanted place of some of the parts, moved a little to the side where more can be
//! left out; where that turns out badly, as with runs that do not look alike, the next one is taken
//! from the middle, which leaves out about a quarter at least.

use super::SortedRun;

/// The most candidates for a pivot.
const CANDIDATES: usize = 63;
/// Values of each run that are looked at one by one at last.
const FEW: usize = 4;

/// The key with `number`, counted from one and at most the sum of the lengths, of two runs without
/// weights.
pub(super) fn of_two(a: &[i64], b: &[i64], number: usize) -> Option<i64> {
    // How many of the `number` least keys are in `a`: the first count after which the next of `a`
    // is no less than the last that `b` would have to give.
    let mut from_a = number.saturating_sub(b.len());
    let mut open = number.min(a.len()).checked_sub(from_a)?;
    while open > 0 {
        let half = open / 2;
        let middle = from_a + half;
        let more = a[middle] < b[number - middle - 1];
        from_a = if more { middle + 1 } else { from_a };
        open = if more { open - half - 1 } else { half };
    }
    let last = |keys: &[i64], count: usize| count.checked_sub(1).and_then(|last| keys.get(last).copied());
    last(a, from_a).max(last(b, number - from_a))
}

/// The part of a run that may still hold the key looked for.
struct Part<'a> {
    run: &'a SortedRun,
    begin: usize,
    end: usize,
    /// First key that is not less than the pivot.
    pivot: usize,
}

impl Part<'_> {
    fn keys(&self) -> &[i64] {
        &self.run.keys[self.begin..self.end]
    }
}

/// A search for several keys, in ascending order, across any number of runs.
pub(super) struct Selection<'a> {
    parts: Vec<Part<'a>>,
    /// Weight of what is before the parts.
    before: u128,
    /// Weight of all runs.
    total: u128,
    /// Keys and weights that are left at last.
    rest: Vec<(i64, u64)>,
}

impl<'a> Selection<'a> {
    pub(super) fn new(runs: &'a [SortedRun]) -> Self {
        let parts: Vec<_> = runs
            .iter()
            .filter(|run| !run.is_empty())
            .map(|run| Part { run, begin: 0, end: run.len(), pivot: 0 })
            .collect();
        let total = runs.iter().map(|run| u128::from(run.n())).sum();
        Self { parts, before: 0, total, rest: Vec::new() }
    }

    /// The key of the observation at `index`, counted from zero, which must not be less than that of
    /// the call before.
    pub(super) fn key_at(&mut self, index: u128) -> Option<i64> {
        for part in &mut self.parts {
            part.end = part.run.len();
        }
        let mut weight = self.total.checked_sub(self.before)?;
        let few = FEW * self.parts.len().max(CANDIDATES);
        let mut items = usize::MAX;
        loop {
            let items_before = std::mem::replace(&mut items, self.parts.iter().map(|part| part.end - part.begin).sum());
            if items <= few {
                return self.key_of_few(index);
            }
            #[allow(clippy::cast_precision_loss, reason = "a guess")]
            let place = index.saturating_sub(self.before) as f64 / weight as f64;
            let place = if items > items_before / 2 { 0.5 } else { self.aside(place, items) };
            let pivot = self.pivot(place, items)?;
            let mut below = 0;
            for part in &mut self.parts {
                part.pivot = part.begin + count_before(part.keys(), place, |key| key < pivot);
                below += u128::from(part.run.weight_before(part.pivot));
            }
            if index < below {
                self.parts.iter_mut().for_each(|part| part.end = part.pivot);
                weight = below - self.before;
                continue;
            }
            for part in &mut self.parts {
                let rest = &part.run.keys[part.pivot..part.end];
                if rest.first() == Some(&pivot) {
                    part.pivot += count_before(rest, 0.0, |key| key <= pivot);
                }
            }
            let up_to = self.parts.iter().map(|part| u128::from(part.run.weight_before(part.pivot))).sum();
            if index < up_to {
                return Some(pivot);
            }
            self.parts.iter_mut().for_each(|part| part.begin = part.pivot);
            weight = weight.saturating_sub(up_to - self.before);
            self.before = up_to;
        }
    }

    /// A place in `0..=1` a little beyond `place`, on the side where more is left out. The distance
    /// is a few standard deviations of what a pivot of runs that look alike comes to.
    #[allow(clippy::cast_precision_loss, reason = "a guess")]
    fn aside(&self, place: f64, items: usize) -> f64 {
        let seen = items as f64 * self.parts.len().min(CANDIDATES) as f64 / self.parts.len() as f64;
        let distance = 2.5 * (place * (1.0 - place) / seen).sqrt() + 1.0 / seen;
        let place = if place < 0.5 { place + distance } else { place - distance };
        place.clamp(0.0, 1.0)
    }

    /// The median of what is at `place` of some of the parts, chosen by their share in the `items`.
    #[allow(clippy::cast_precision_loss, reason = "a guess")]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and a length")]
    fn pivot(&self, place: f64, items: usize) -> Option<i64> {
        let wanted = (2 * self.parts.len() + 1).min(CANDIDATES);
        let mut candidates = [0; CANDIDATES];
        let mut found = 0;
        let mut passed = 0;
        for part in &self.parts {
            let keys = part.keys();
            passed += keys.len();
            // The candidates stand for stretches of equal numbers of items, by the middle of each.
            let Some(key) = keys.get(((keys.len() as f64 * place) as usize).min(keys.len().wrapping_sub(1))) else {
                continue;
            };
            while found < wanted && (2 * found + 1).saturating_mul(items) <= (2 * wanted).saturating_mul(passed) {
                candidates[found] = *key;
                found += 1;
            }
        }
        let found = &mut candidates[..found];
        let middle = found.len() / 2;
        (middle < found.len()).then(|| *found.select_nth_unstable(middle).1)
    }

    /// The key at `index` where few are left.
    fn key_of_few(&mut self, index: u128) -> Option<i64> {
        let Self { parts, rest, before, .. } = self;
        rest.clear();
        for part in parts {
            let weight = |at| part.run.weight_before(at + 1) - part.run.weight_before(at);
            rest.extend((part.begin..part.end).map(|at| (part.run.keys[at], weight(at))));
        }
        if rest.iter().all(|(_, weight)| *weight == 1) {
            let index = usize::try_from(index.checked_sub(*before)?).ok().filter(|index| *index < rest.len())?;
            return Some(rest.select_nth_unstable(index).1.0);
        }
        rest.sort_unstable();
        let mut cumulative = *before;
        let found = rest.iter().find(|(_, weight)| {
            cumulative += u128::from(*weight);
            index < cumulative
        });
        found.map(|(key, _)| *key)
    }
}

/// How many of ascending keys are `before` something, which is looked for from the near end if
/// `place`, its likely place in `0..=1`, is close to one.
fn count_before(keys: &[i64], place: f64, before: impl Fn(i64) -> bool) -> usize {
    const NEAR: f64 = 1.0 / 16.0;
    let (mut begin, mut end) = (0, keys.len());
    let mut step = 1;
    if place < NEAR {
        while step < keys.len() && before(keys[step - 1]) {
            step *= 2;
        }
        (begin, end) = (step / 2, step.min(keys.len()));
    } else if place > 1.0 - NEAR {
        while step < keys.len() && !before(keys[keys.len() - step]) {
            step *= 2;
        }
        (begin, end) = (keys.len().saturating_sub(step), keys.len() - step / 2);
    }
    begin + keys[begin..end].partition_point(|key| before(*key))
}
