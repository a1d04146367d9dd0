//! Observations by the number of their series, for callers that keep it.

use std::hash::{BuildHasher, Hash};

use super::{Counters, Outcome, SeriesSlot, Shape, StaleSlot, Windows};
use crate::accumulator::{Accumulator, AccumulatorFactory};

#[cfg(test)]
mod tests;

/// Observations whose accumulators are looked at before they are offered.
const LOOK_AHEAD: usize = 32;

impl<K, F, S> Windows<K, F, S>
where
    K: Hash + Eq + Clone,
    F: AccumulatorFactory,
    S: BuildHasher,
{
    /// A number for a series, with which observations find its place without hashing: for callers
    /// that see the same series again and again. A key is looked up once, its slot kept.
    ///
    /// Slots become stale when series are forgotten because there were too many, which begins
    /// another [`Windows::slots_epoch`].
    pub fn intern(&mut self, key: &K) -> SeriesSlot {
        SeriesSlot { series: self.number_of(key), epoch: self.interner.epoch() }
    }

    /// The key of a slot; `None` if it is stale or stands for series without a number of their own.
    pub fn key(&self, slot: SeriesSlot) -> Option<&K> {
        self.interner.key_of(slot.series).filter(|_| slot.epoch == self.interner.epoch())
    }

    /// The epoch of the slots that are good now. It changes in [`Windows::intern`],
    /// [`Windows::observe_run`] and where windows are closed, and only if series come and go far
    /// beyond the largest number of series; in `intern` at most once between two closings, so that
    /// the slots of a batch can always be interned in two rounds.
    pub fn slots_epoch(&self) -> u32 {
        self.interner.epoch()
    }

    /// [`Windows::observe_run`] by slot.
    ///
    /// # Errors
    ///
    /// [`StaleSlot`] if the slot must be interned again; nothing is observed then.
    ///
    /// # Panics
    ///
    /// If `times_ns` and `values` differ in length.
    pub fn observe_slice(
        &mut self,
        slot: SeriesSlot,
        times_ns: &[i64],
        values: &[f64],
        now_ns: i64,
        dropped: impl FnMut(usize, Outcome),
    ) -> Result<Counters, StaleSlot> {
        self.check_slots(&[slot])?;
        let tally = self.observe_series(slot.series, (times_ns, values, &[]), now_ns, dropped);
        self.counters += tally;
        Ok(tally)
    }

    /// [`Windows::observe_slice`] with a weight for each value, which counts in its accumulator as
    /// if it had been observed so many times. Everything else is by values: a count window closes
    /// when it has so many of them, whatever they weigh, and what is returned counts them too.
    ///
    /// A value with a weight of 0, or beyond the largest count of an accumulator, is dropped as
    /// [`Outcome::Full`].
    ///
    /// # Errors
    ///
    /// [`StaleSlot`] if the slot must be interned again; nothing is observed then.
    ///
    /// # Panics
    ///
    /// If `times_ns`, `values` and `weights` differ in length.
    pub fn observe_weighted(
        &mut self,
        slot: SeriesSlot,
        (times_ns, values, weights): (&[i64], &[f64], &[u64]),
        now_ns: i64,
        dropped: impl FnMut(usize, Outcome),
    ) -> Result<Counters, StaleSlot> {
        assert_eq!(values.len(), weights.len(), "each value has one weight");
        self.check_slots(&[slot])?;
        let tally = self.observe_series(slot.series, (times_ns, values, weights), now_ns, dropped);
        self.counters += tally;
        Ok(tally)
    }

    /// Offers observations of many series in the order in which they came, one slot for each.
    /// Neighbours of the same series are taken together.
    ///
    /// `dropped` is called with the index and the outcome of each one that is not used. What is
    /// returned counts these observations only.
    ///
    /// # Errors
    ///
    /// [`StaleSlot`] if any slot must be interned again; nothing is observed then.
    ///
    /// # Panics
    ///
    /// If `slots`, `times_ns` and `values` differ in length.
    pub fn observe_rows(
        &mut self,
        slots: &[SeriesSlot],
        times_ns: &[i64],
        values: &[f64],
        now_ns: i64,
        mut dropped: impl FnMut(usize, Outcome),
    ) -> Result<Counters, StaleSlot> {
        assert_eq!(slots.len(), values.len(), "each value has one slot");
        assert_eq!(times_ns.len(), values.len(), "each value has one time");
        self.check_slots(slots)?;
        let mut tally = Counters::default();
        let (mut at, mut ahead) = (0, 0);
        while let Some(slot) = slots.get(at) {
            if at >= ahead {
                ahead = slots.len().min(at + LOOK_AHEAD);
                if let Shape::Tumbling(windows) = &self.shape {
                    windows.look_at(slots[at..ahead].iter().map(|slot| slot.series));
                }
            }
            let alone = slots.get(at + 1).is_none_or(|next| next.series != slot.series);
            if let (true, Shape::Tumbling(windows)) = (alone, &mut self.shape) {
                let observation = (times_ns[at], values[at]);
                let (outcome, folded) =
                    windows.observe_one(slot.series, &self.interner, observation, now_ns, &self.factory);
                if tally.count(outcome, folded) {
                    dropped(at, outcome);
                }
                at += 1;
                continue;
            }
            let run = slots[at..].iter().take_while(|next| next.series == slot.series).count();
            let (times, values) = (&times_ns[at..at + run], &values[at..at + run]);
            let dropped = |index: usize, outcome| dropped(at + index, outcome);
            tally += self.observe_series(slot.series, (times, values, &[]), now_ns, dropped);
            at += run;
        }
        self.counters += tally;
        Ok(tally)
    }

    /// Whether some of these observations, runs of a series each, would be refused as
    /// [`Outcome::Full`] if they were offered in this order before windows are looked at again: for
    /// callers that take a batch as a whole or not at all.
    ///
    /// Of event time windows. Count windows are bounded by their count, and give `false`.
    ///
    /// # Errors
    ///
    /// [`StaleSlot`] if a slot must be interned again.
    pub fn would_fill<'a>(
        &self,
        runs: impl Iterator<Item = (SeriesSlot, &'a [i64], &'a [f64])>,
        now_ns: i64,
    ) -> Result<bool, StaleSlot> {
        let Shape::Tumbling(windows) = &self.shape else { return Ok(false) };
        let mut stale = Ok(());
        let runs = runs.map_while(|(slot, times, values)| {
            stale = self.check_slots(&[slot]);
            stale.is_ok().then_some((slot.series, times, values))
        });
        let fresh = self.factory.create(0, 0).room();
        let would_fill = windows.would_fill(runs, now_ns, fresh);
        stale.map(|()| would_fill)
    }

    fn check_slots(&self, slots: &[SeriesSlot]) -> Result<(), StaleSlot> {
        let epoch = self.interner.epoch();
        match slots.iter().find(|slot| slot.epoch != epoch) {
            Some(stale) => Err(StaleSlot { slot: stale.epoch, epoch }),
            None => Ok(()),
        }
    }
}
