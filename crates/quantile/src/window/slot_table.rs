//! Slots by the numbers that a caller has for series.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};

use super::{SeriesSlot, Windows};
use crate::accumulator::AccumulatorFactory;

/// No series: there are never so many.
const UNKNOWN: u32 = u32::MAX - 1;

/// Slots of series by the caller's own numbers for them, small ones: an array look-up in place of
/// hashing a key. Keys are looked up where a number is new, and all again when the slots are stale.
#[derive(Debug, Default)]
pub struct SlotTable {
    /// Numbers of series in the windows, or `UNKNOWN`: all slots have the same epoch.
    by_number: Vec<u32>,
    /// Of the caller's numbers.
    generation: u64,
    /// Of the slots.
    epoch: u32,
}

impl SlotTable {
    /// Puts the slots of `numbers` into `slots`, in their order and in place of what is there. They
    /// are good until windows are closed or another key is interned.
    ///
    /// `generation` is another one whenever the caller gives its numbers to other series; `key`
    /// gives the key of a number.
    pub fn resolve<K, Q, F, S>(
        &mut self,
        windows: &mut Windows<K, F, S>,
        generation: u64,
        numbers: &[u32],
        key: impl Fn(u32) -> Q,
        slots: &mut Vec<SeriesSlot>,
    ) where
        K: Hash + Eq + Clone,
        Q: Borrow<K>,
        F: AccumulatorFactory,
        S: BuildHasher,
    {
        if self.generation != generation {
            self.by_number.clear();
            self.generation = generation;
        }
        // Interning may make what was interned before stale, once between two closings.
        loop {
            if self.epoch != windows.slots_epoch() {
                self.by_number.clear();
                self.epoch = windows.slots_epoch();
            }
            slots.clear();
            for &number in numbers {
                let at = number as usize;
                if self.by_number.len() <= at {
                    self.by_number.resize(at + 1, UNKNOWN);
                }
                let known = &mut self.by_number[at];
                let slot = match *known {
                    UNKNOWN => windows.intern(key(number).borrow()),
                    series => SeriesSlot { series, epoch: self.epoch },
                };
                *known = slot.series;
                slots.push(slot);
            }
            if self.epoch == windows.slots_epoch() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accumulator::{AccumulatorConfig, Method};
    use crate::window::{WindowConfig, WindowSpec};

    /// Series far beyond the limit come and go; the slots that a batch gets are always good ones,
    /// and every observation is counted for its series or the overflow series.
    #[test]
    fn slots_are_good_whatever_comes_and_goes() {
        let config = WindowConfig { spec: WindowSpec::Count(2), max_series: 3, idle_ns: 1 };
        let factory = AccumulatorConfig::new(Method::Kll { k: 200 }, 1).expect("valid");
        let mut windows = Windows::<u32, _>::new(config, factory).expect("valid");
        let keys: Vec<u32> = (0..20_000).collect();
        let (mut table, mut slots) = (SlotTable::default(), Vec::new());
        for (round, batch) in keys.chunks(700).chain(keys.chunks(1_500)).enumerate() {
            let generation = u64::from(round >= 10);
            let number = |key: &u32| if generation == 0 { *key } else { 20_000 - *key };
            let numbers: Vec<u32> = batch.iter().map(number).collect();
            let key = |number: u32| &keys[if generation == 0 { number } else { 20_000 - number } as usize];
            table.resolve(&mut windows, generation, &numbers, key, &mut slots);
            let ones = vec![1.0; batch.len()];
            let tally = windows.observe_rows(&slots, &vec![0; batch.len()], &ones, 0, |_, _| {}).expect("fresh slots");
            assert_eq!(tally.used, batch.len() as u64);
            let closed = windows.poll_closed();
            assert!(closed.iter().all(|window| window.series.len() == 1));
            windows.flush_idle(10);
        }
        assert!(windows.slots_epoch() > 0, "some were forgotten");
        assert_eq!(windows.counters().used, 40_000);
    }
}
