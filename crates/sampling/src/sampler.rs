//! A chain of policies at work.

use crate::decision::{Decision, DropReason, Run};
use crate::facts::Facts;
use crate::heavy::HeavyKeys;
use crate::policy::{Remembered, Rule};
use crate::weights::{Weight, WeightId, Weights};

/// Exact counts of what one policy has decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PolicyCounts {
    /// Records kept.
    pub kept: u64,
    /// Records dropped, but for those above the hard cap.
    pub dropped: u64,
    /// Records dropped above the hard cap.
    pub capped: u64,
}

impl PolicyCounts {
    #[inline]
    fn add(&mut self, run: Run) {
        let count = match run.decision {
            Decision::Keep { .. } => &mut self.kept,
            Decision::Drop { reason: DropReason::HardCap } => &mut self.capped,
            Decision::Drop { .. } => &mut self.dropped,
        };
        *count = count.wrapping_add(run.records);
    }
}

/// Exact counts of all decisions: what is seen is kept or dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records decided on.
    pub seen: u64,
    /// Records kept.
    pub kept: u64,
    /// Records dropped, by [`DropReason::index`].
    pub dropped: [u64; DropReason::ALL.len()],
    /// What was found of heavy keys; of several `key_hash` policies the stretches of all, and else the last that found any.
    pub heavy_keys: HeavyKeys,
}

impl Counts {
    /// Records dropped for a reason.
    #[must_use]
    pub fn dropped_by(&self, reason: DropReason) -> u64 {
        self.dropped[reason.index()]
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Policy {
    pub(crate) name: &'static str,
    pub(crate) rule: Rule,
    pub(crate) counts: PolicyCounts,
}

/// Decides which records are worth decoding: a chain of policies with its state, made from
/// [`SamplingConfig`](crate::SamplingConfig). Each thread has its own.
///
/// A decision takes no lock and reads no clock. It allocates only when it is the first with its weight; there are less
/// than 4,400 weights in the life of a sampler, and usually one for each policy.
#[derive(Debug, Clone)]
pub struct Sampler {
    policies: Box<[Policy]>,
    weights: Weights,
    /// Records that no policy applied to.
    rest: u64,
}

impl Sampler {
    pub(crate) fn new(policies: Vec<Policy>, weights: Weights) -> Self {
        Self { policies: policies.into(), weights, rest: 0 }
    }

    /// Decides on one record. `now` is the time of its receipt in nanoseconds, of any clock that does not go back; only
    /// `rate_limit` uses it.
    #[inline]
    pub fn decide<F: Facts + ?Sized>(&mut self, facts: &F, now: u64) -> Decision {
        self.run(facts, 1, now).decision
    }

    /// Decides on the next records, up to `most`, that share all facts the policies ask for: those of one message, if not
    /// [`Sampler::varies_by_record`]. The run covers one record at least, so `most` must not be 0, and is taken as 1 if it
    /// is; the caller asks again for the rest. `now` is as in [`Sampler::decide`].
    ///
    /// The decisions are those that as many calls of [`Sampler::decide`] would give.
    #[inline]
    pub fn run<F: Facts + ?Sized>(&mut self, facts: &F, most: u64, now: u64) -> Run {
        let most = most.max(1);
        // What most samplers do with most records needs no more than this.
        if let [Policy { rule, counts, .. }, ..] = &mut *self.policies {
            let run = match rule.draw(most, now, &mut self.weights) {
                Some(run) => Some(run),
                None if rule.is_by_flow() => {
                    rule.judge_flow(facts, most).map(|decision| Run { records: most, decision })
                }
                None => None,
            };
            if let Some(run) = run {
                counts.add(run);
                return run;
            }
        }
        self.walk(facts, most, now)
    }

    /// How many of the next records are dropped whatever they are and whenever they come, as far as that is known. Whoever
    /// receives records one by one need not look for their facts then, nor ask for each: [`Sampler::drop_ahead`] decides on
    /// them together.
    #[inline]
    #[must_use]
    pub fn drops_ahead(&self) -> u64 {
        self.policies.first().map_or(0, |policy| policy.rule.drops_ahead())
    }

    /// Decides on the next `records`, of which there are no more than [`Sampler::drops_ahead`] says: they are dropped. More
    /// are not decided on; gives how many were.
    pub fn drop_ahead(&mut self, records: u64) -> u64 {
        let records = records.min(self.drops_ahead());
        if records == 0 {
            return 0;
        }
        let Some(Policy { rule, counts, .. }) = self.policies.first_mut() else { return 0 };
        // Of what is dropped in any case neither time nor weight matters.
        let Some(run) = rule.draw(records, 0, &mut self.weights) else { return 0 };
        counts.add(run);
        run.records
    }

    /// Goes through all policies.
    #[inline(never)]
    fn walk<F: Facts + ?Sized>(&mut self, facts: &F, most: u64, now: u64) -> Run {
        let facts = Remembered::new(facts);
        for Policy { rule, counts, .. } in &mut self.policies {
            let run = match rule.draw(most, now, &mut self.weights) {
                Some(run) => run,
                None => match rule.judge(&facts, most, &mut self.weights) {
                    Some(decision) => Run { records: most, decision },
                    None => continue,
                },
            };
            counts.add(run);
            return run;
        }
        self.rest = self.rest.wrapping_add(most);
        Run { records: most, decision: Decision::Keep { weight: WeightId::ONE } }
    }

    /// Whether the policies ask for facts that records of one message may differ in: then each record is to be decided
    /// on by itself, with its own facts.
    #[must_use]
    pub fn varies_by_record(&self) -> bool {
        self.policies.iter().any(|policy| policy.rule.varies_by_record())
    }

    /// The weight of that id.
    #[must_use]
    pub fn weight(&self, id: WeightId) -> &Weight {
        self.weights.get(id)
    }

    /// All decisions so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut all = Counts { seen: self.rest, kept: self.rest, ..Counts::default() };
        for Policy { rule, counts, .. } in &self.policies {
            all.seen = all.seen.wrapping_add(counts.kept).wrapping_add(counts.dropped).wrapping_add(counts.capped);
            all.kept = all.kept.wrapping_add(counts.kept);
            if let Some(found) = rule.heavy_keys().filter(|found| found.stretches > 0) {
                let stretches = all.heavy_keys.stretches + found.stretches;
                all.heavy_keys = HeavyKeys { stretches, ..found };
            }
            for (reason, count) in [(rule.reason(), counts.dropped), (Some(DropReason::HardCap), counts.capped)] {
                if let Some(reason) = reason {
                    let dropped = &mut all.dropped[reason.index()];
                    *dropped = dropped.wrapping_add(count);
                }
            }
        }
        all
    }

    /// The decisions of each policy so far, with its name, in the order of the settings.
    pub fn policies(&self) -> impl ExactSizeIterator<Item = (&'static str, PolicyCounts)> {
        self.policies.iter().map(|policy| (policy.name, policy.counts))
    }

    /// Records so far that no policy applied to, and that were kept for that.
    #[must_use]
    pub fn undecided(&self) -> u64 {
        self.rest
    }
}

#[cfg(test)]
mod tests;
