//! The rule of one policy: whether it applies to a record, and what it decides.

use std::cell::Cell;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::config::{Incoming, Unsampled};
use crate::decision::{Decision, DropReason, Run};
use crate::facts::{Facts, Flow, Names};
use crate::gaps::{Draws, Gaps};
use crate::heavy::{HeavyKeys, Watch};
use crate::key::{self, Key};
use crate::rate_limit::RateLimit;
use crate::threshold::{Randomness, Threshold};
use crate::trace::{Trace, TraceParent, TraceState};
use crate::weights::{WeightId, Weights};

/// What a policy decides on.
#[derive(Debug, Clone)]
pub(crate) enum Rule {
    AlwaysKeep(AlwaysKeep),
    TraceFlag(Unsampled),
    Ratio(Ratio),
    KeyHash(Key, ByHash),
    /// The same with the flow alone as key.
    FlowHash(ByHash),
    TraceRatio {
        chance: Chance,
        incoming: Incoming,
    },
    RateLimit(RateLimit),
}

/// What is kept in any case.
#[derive(Debug, Clone)]
pub(crate) struct AlwaysKeep {
    /// Least severe number.
    pub(crate) severity: Option<u8>,
    pub(crate) hosts: Box<[Box<[u8]>]>,
    pub(crate) apps: Box<[Box<[u8]>]>,
    pub(crate) sources: Box<[IpNet]>,
}

/// A share of all records.
#[derive(Debug, Clone)]
pub(crate) enum Ratio {
    None,
    All,
    Some { gaps: Gaps, weight: WeightId },
}

/// A probability of 0, or a threshold with its weight.
pub(crate) type Chance = Option<(Threshold, WeightId)>;

/// Kept, with weight 1.
const KEEP: Decision = Decision::Keep { weight: WeightId::ONE };

fn keep_or(weight: Option<WeightId>, reason: DropReason) -> Decision {
    weight.map_or(Decision::Drop { reason }, |weight| Decision::Keep { weight })
}

/// A share of the keys.
#[derive(Debug, Clone)]
pub(crate) struct ByHash {
    seed: u64,
    chance: Chance,
    /// Only where some keys are kept and others are not.
    watch: Option<Watch>,
}

impl ByHash {
    pub(crate) fn new(seed: u64, chance: Chance, draws: Draws) -> Self {
        let some = chance.map(|(threshold, _)| threshold).filter(|threshold| *threshold > Threshold::KEEP_ALL);
        Self { seed, chance, watch: some.map(|threshold| Watch::new(threshold, draws)) }
    }

    /// Decides on so many records of a key.
    #[inline(always)]
    fn decide(&mut self, key: Randomness, records: u64) -> Decision {
        if let Some(watch) = &mut self.watch {
            watch.note(key, records);
        }
        let kept = self.chance.filter(|(threshold, _)| threshold.admits(key));
        keep_or(kept.map(|(_, weight)| weight), DropReason::KeyHash)
    }
}

/// Facts with the memory that a record belongs to no trace, which is the most expensive to find out twice.
pub(crate) struct Remembered<'a, F: ?Sized> {
    facts: &'a F,
    traceless: Cell<bool>,
}

impl<'a, F: Facts + ?Sized> Remembered<'a, F> {
    #[inline]
    pub(crate) fn new(facts: &'a F) -> Self {
        Self { facts, traceless: Cell::new(false) }
    }

    #[inline]
    fn look<T>(&self, trace: impl FnOnce(&F) -> Option<T>) -> Option<T> {
        if self.traceless.get() {
            return None;
        }
        let found = trace(self.facts);
        self.traceless.set(found.is_none());
        found
    }
}

impl<F: Facts + ?Sized> Facts for Remembered<'_, F> {
    #[inline]
    fn severity(&self) -> Option<u8> {
        self.facts.severity()
    }

    #[inline]
    fn source(&self) -> Option<IpAddr> {
        self.facts.source()
    }

    #[inline]
    fn names(&self) -> Names<'_> {
        self.facts.names()
    }

    #[inline]
    fn domain(&self) -> Option<u32> {
        self.facts.domain()
    }

    #[inline]
    fn flow(&self) -> Option<Flow<'_>> {
        self.facts.flow()
    }

    #[inline]
    fn trace_parent(&self) -> Option<TraceParent> {
        self.look(F::trace_parent)
    }

    #[inline]
    fn trace(&self) -> Option<(TraceParent, TraceState)> {
        self.look(F::trace)
    }
}

impl Rule {
    /// Decides on up to `most` records of any facts; `None` if the rule asks for some.
    #[inline(always)]
    pub(crate) fn draw(&mut self, most: u64, now: u64, weights: &mut Weights) -> Option<Run> {
        match self {
            Self::Ratio(ratio) => Some(ratio.take(most)),
            Self::RateLimit(limit) => Some(limit.take(most, now, weights)),
            _ => None,
        }
    }

    /// How many of the next records [`Rule::draw`] drops at any time.
    #[inline]
    pub(crate) fn drops_ahead(&self) -> u64 {
        match self {
            Self::Ratio(Ratio::None) => u64::MAX,
            Self::Ratio(Ratio::Some { gaps, .. }) => gaps.left(),
            _ => 0,
        }
    }

    /// Whether the rule asks for the flow and nothing else.
    #[inline(always)]
    pub(crate) fn is_by_flow(&self) -> bool {
        matches!(self, Self::FlowHash(_))
    }

    /// Decides on so many records of this flow; `None` if they have none, or the rule asks for something else. Flow records
    /// are asked for their flow one by one, so this is a short function by itself.
    #[inline(never)]
    pub(crate) fn judge_flow<F: Facts + ?Sized>(&mut self, facts: &F, records: u64) -> Option<Decision> {
        let Self::FlowHash(by) = self else { return None };
        Some(by.decide(key::of_flow(by.seed, facts)?, records))
    }

    /// Decides on so many records of these facts; `None` if the rule does not apply to them.
    #[inline(always)]
    pub(crate) fn judge<F: Facts>(&mut self, facts: &F, records: u64, weights: &mut Weights) -> Option<Decision> {
        match self {
            Self::FlowHash(_) => self.judge_flow(facts, records),
            Self::AlwaysKeep(always) => always.holds(facts).then_some(KEEP),
            Self::KeyHash(key, by) => Some(by.decide(key.hash(by.seed, facts)?, records)),
            Self::TraceFlag(unsampled) => trace_flag(*unsampled, facts, weights),
            Self::TraceRatio { chance, incoming } => {
                let (parent, state) = facts.trace()?;
                let trace = Trace::new(parent, state);
                let kept = chance.and_then(|chance| trace_ratio(chance, *incoming, &trace, weights));
                Some(keep_or(kept, DropReason::TraceRatio))
            }
            Self::Ratio(_) | Self::RateLimit(_) => None,
        }
    }

    /// What was found of keys with many records, if it decides by keys.
    pub(crate) fn heavy_keys(&self) -> Option<HeavyKeys> {
        match self {
            Self::KeyHash(_, by) | Self::FlowHash(by) => by.watch.as_ref().map(Watch::found),
            _ => None,
        }
    }

    /// Why this rule drops, but for the hard cap; `None` if it never does.
    pub(crate) fn reason(&self) -> Option<DropReason> {
        match self {
            Self::AlwaysKeep(_) => None,
            Self::TraceFlag(_) => Some(DropReason::TraceFlag),
            Self::Ratio(_) => Some(DropReason::Ratio),
            Self::KeyHash(..) | Self::FlowHash(_) => Some(DropReason::KeyHash),
            Self::TraceRatio { .. } => Some(DropReason::TraceRatio),
            Self::RateLimit(_) => Some(DropReason::RateLimit),
        }
    }

    /// Whether records of one message may differ in what the rule asks for.
    pub(crate) fn varies_by_record(&self) -> bool {
        match self {
            Self::AlwaysKeep(always) => {
                always.severity.is_some() || !always.hosts.is_empty() || !always.apps.is_empty()
            }
            Self::TraceFlag(_) | Self::TraceRatio { .. } => true,
            Self::KeyHash(key, _) => key.varies_by_record(),
            Self::FlowHash(_) => true,
            Self::Ratio(_) | Self::RateLimit(_) => false,
        }
    }
}

impl Ratio {
    #[inline(always)]
    fn take(&mut self, most: u64) -> Run {
        let dropped = Decision::Drop { reason: DropReason::Ratio };
        match self {
            Self::Some { gaps, weight } => {
                let (records, kept) = gaps.take(most);
                Run { records, decision: if kept { Decision::Keep { weight: *weight } } else { dropped } }
            }
            Self::None => Run { records: most, decision: dropped },
            Self::All => Run { records: most, decision: KEEP },
        }
    }
}

impl AlwaysKeep {
    #[inline]
    fn holds<F: Facts>(&self, facts: &F) -> bool {
        if self.severity.is_some_and(|least| facts.severity().is_some_and(|severity| severity <= least)) {
            return true;
        }
        if !(self.hosts.is_empty() && self.apps.is_empty()) {
            let names = facts.names();
            let listed = |name: Option<&[u8]>, list: &[Box<[u8]>]| {
                name.is_some_and(|name| list.iter().any(|listed| &**listed == name))
            };
            if listed(names.host, &self.hosts) || listed(names.app, &self.apps) {
                return true;
            }
        }
        !self.sources.is_empty()
            && facts.source().is_some_and(|source| {
                let source = source.to_canonical();
                self.sources.iter().any(|network| network.contains(&source))
            })
    }
}

/// A message that is kept because its trace is sampled stands for those of traces that are not, if these are dropped.
fn trace_flag<F: Facts>(unsampled: Unsampled, facts: &F, weights: &mut Weights) -> Option<Decision> {
    let parent = facts.trace_parent()?;
    match (parent.sampled, unsampled) {
        (false, Unsampled::Pass) => None,
        (false, Unsampled::Drop) => Some(Decision::Drop { reason: DropReason::TraceFlag }),
        (true, Unsampled::Drop) => {
            let (parent, state) = facts.trace()?;
            let trace = Trace::new(parent, state);
            let Some(before) = trace.threshold else { return Some(KEEP) };
            let (threshold, weight) = weights.admit(before);
            Some(keep_or(threshold.admits(trace.randomness).then_some(weight), DropReason::TraceFlag))
        }
        (false, Unsampled::Keep) | (true, Unsampled::Keep | Unsampled::Pass) => Some(KEEP),
    }
}

/// The weight of a message that is kept. Of two thresholds the higher counts: that is the one that decided.
fn trace_ratio(
    (own, weight): (Threshold, WeightId),
    incoming: Incoming,
    trace: &Trace,
    weights: &mut Weights,
) -> Option<WeightId> {
    if !own.admits(trace.randomness) {
        return None;
    }
    match trace.threshold {
        Some(before) if before > own && incoming == Incoming::Equalize => {
            let (threshold, weight) = weights.admit(before);
            threshold.admits(trace.randomness).then_some(weight)
        }
        _ => Some(weight),
    }
}
