//! Keys that have so many records that keeping or dropping all of them says little about the rest.
//!
//! One record in some 32 is looked at, at random distances; of 1,024 of these the most frequent keys are counted in 32
//! places (Space-Saving: Metwally, Agrawal and El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data
//! Streams"). Whatever keys come, the memory is the same, and a key is never counted too high: what its place may have
//! counted of others is taken off.

use crate::gaps::Draws;
use crate::threshold::{Randomness, Threshold};

/// Most keys that are counted at a time.
const PLACES: usize = 32;
/// Records looked at before it is told what was found.
const LOOKS: u32 = 1024;
/// Distances are 1 to this.
const MOST_APART: u64 = 64;
/// A key is heavy if it has more than this part of the records.
const HEAVY: u32 = LOOKS / 10;

/// What was found of heavy keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeavyKeys {
    /// Stretches of some 33,000 records in which one key had more than a tenth of them.
    pub stretches: u64,
    /// In the last of these, the share of the heaviest key in percent, or a little less.
    pub percent: u8,
    /// Whether the records of that key are kept.
    pub kept: bool,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    key: Randomness,
    count: u32,
    /// How many of these may have been others.
    inherited: u32,
}

/// Looks for heavy keys.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    threshold: Threshold,
    draws: Draws,
    /// Records up to the next that is looked at, with it.
    left: u64,
    looks: u32,
    places: Vec<Place>,
    found: HeavyKeys,
}

impl Watch {
    /// Looks among keys that are kept by this threshold.
    pub(crate) fn new(threshold: Threshold, draws: Draws) -> Self {
        let places = Vec::with_capacity(PLACES);
        Self { threshold, draws, left: 1, looks: 0, places, found: HeavyKeys::default() }
    }

    /// Notes that so many records have this key.
    #[inline(always)]
    pub(crate) fn note(&mut self, key: Randomness, records: u64) {
        if records < self.left {
            self.left -= records;
        } else {
            self.look(key, records);
        }
    }

    pub(crate) fn found(&self) -> HeavyKeys {
        self.found
    }

    #[cold]
    fn look(&mut self, key: Randomness, mut records: u64) {
        while records >= self.left {
            records -= self.left;
            self.left = 1 + self.draws.next() % MOST_APART;
            self.count(key);
            self.looks += 1;
            if self.looks >= LOOKS {
                self.end_stretch();
            }
        }
        self.left -= records;
    }

    fn count(&mut self, key: Randomness) {
        if let Some(place) = self.places.iter_mut().find(|place| place.key == key) {
            place.count += 1;
        } else if self.places.len() < PLACES {
            self.places.push(Place { key, count: 1, inherited: 0 });
        } else if let Some(least) = self.places.iter_mut().min_by_key(|place| place.count) {
            *least = Place { key, count: least.count + 1, inherited: least.count };
        }
    }

    fn end_stretch(&mut self) {
        let sure = |place: &Place| place.count - place.inherited;
        if let Some(place) = self.places.iter().max_by_key(|place| sure(place)).filter(|place| sure(place) > HEAVY) {
            self.found = HeavyKeys {
                stretches: self.found.stretches + 1,
                percent: (sure(place) * 100 / LOOKS) as u8,
                kept: self.threshold.admits(place.key),
            };
        }
        self.looks = 0;
        self.places.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn watch(seed: u64) -> Watch {
        Watch::new(Threshold::from_probability(0.5).expect("a threshold"), Draws::new(seed, &[]))
    }

    fn key(number: u64) -> Randomness {
        Randomness::from_low_bits(Draws::new(number, &[]).next())
    }

    /// Notes keys of which one in so many is the same, the others are of many; gives what was found.
    fn noted(seed: u64, records: u64, one_in: u64, heavy: Randomness) -> HeavyKeys {
        let (mut watch, mut draws) = (watch(seed), Draws::new(seed, &[1]));
        for _ in 0..records {
            let draw = draws.next();
            watch.note(if (draw >> 20).is_multiple_of(one_in) { heavy } else { key(draw % 100_000) }, 1);
        }
        watch.found()
    }

    /// A key with a fifth of the records is found in every stretch, with its share and its fate, one with a twentieth never.
    #[test]
    fn heavy_keys_are_found() {
        let [dropped, kept] = [Randomness::from_low_bits(1), Randomness::from_low_bits(1 << 55)];
        for seed in 0..5 {
            for (key, is_kept) in [(dropped, false), (kept, true)] {
                let found = noted(seed, 340_000, 5, key);
                assert!((9..=11).contains(&found.stretches), "{found:?}");
                assert!((15..=25).contains(&found.percent) && found.kept == is_kept, "{found:?}");
                assert_eq!(noted(seed, 340_000, 20, key), HeavyKeys::default());
            }
        }
    }

    /// Records that come many at once count as many.
    #[test]
    fn runs_count_as_records() {
        let mut watch = watch(3);
        for number in 0..10_000 {
            watch.note(key(number), 20);
            watch.note(key(1_000_000), 10);
        }
        let found = watch.found();
        assert!(found.stretches >= 8 && (25..=40).contains(&found.percent), "{found:?}");
    }

    proptest! {
        /// Whatever comes, no more is held than there are places, and no key is told to have more than it has.
        #[test]
        fn bounded(keys in prop::collection::vec((0u64..200, 1u64..100), 0..4_000)) {
            let mut watch = watch(1);
            for (number, records) in &keys {
                watch.note(key(*number), *records);
                prop_assert!(watch.places.len() <= PLACES && watch.looks < LOOKS);
                let sum: u32 = watch.places.iter().map(|place| place.count - place.inherited).sum();
                prop_assert!(sum <= watch.looks);
            }
        }
    }
}
