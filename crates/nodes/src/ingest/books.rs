//! The sums of a receiver over its life.

use catchment_sampling::Counts;

use super::sampling;
use crate::accounts::{self, Account, NodeName};

/// Items are messages (syslog) or records (IPFIX). `received = sent + shed + rate limited + sampled out + unused +
/// failed + waiting` at any time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Books {
    /// Items taken in.
    pub(crate) received: u64,
    /// Items handed to the next node.
    pub(crate) sent: u64,
    /// Items dropped because the process was short of memory.
    pub(crate) shed: u64,
    /// Items dropped because their sender was over its rate.
    pub(crate) rate_limited: u64,
    /// Items that a sampler has dropped.
    pub(crate) sampled_out: u64,
    /// Items that no rule of the configuration asks for.
    pub(crate) unused: u64,
    /// Items lost because a batch could not be built or handed on.
    pub(crate) failed: u64,
    /// Sent items that the end of the pipeline has acknowledged.
    pub(crate) acknowledged: u64,
    /// Sent items that were refused for good further down.
    pub(crate) refused: u64,
    /// Batches handed to the next node.
    pub(crate) batches: u64,
    /// Steps of decode jobs.
    pub(crate) steps: u64,
    /// Those of the steps after which others were let run.
    pub(crate) yields: u64,
}

impl Books {
    /// Items taken in and not yet sent or dropped.
    pub(crate) fn waiting(&self) -> u64 {
        let dropped = self.shed + self.rate_limited + self.sampled_out + self.unused + self.failed;
        self.received.saturating_sub(self.sent + dropped)
    }

    /// Sent items whose outcome is not known yet.
    pub(crate) fn outstanding(&self) -> u64 {
        self.sent.saturating_sub(self.acknowledged + self.refused)
    }

    /// Puts the account on record. `sampling` tells what the sampler has dropped and why, if there is one.
    pub(crate) fn close(
        &self,
        name: NodeName,
        items: &'static str,
        sampling: Option<&Counts>,
        notes: Vec<(&'static str, u64)>,
    ) {
        let reasons = [
            ("shed", self.shed),
            ("rate limited", self.rate_limited),
            ("unused", self.unused),
            ("failed", self.failed),
        ];
        let outcome = [
            ("acknowledged", self.acknowledged),
            ("refused downstream", self.refused),
            ("outcome unknown", self.outstanding()),
        ];
        accounts::publish(Account {
            name,
            items,
            received: self.received,
            sent: self.sent,
            dropped: reasons.into_iter().chain(sampling.into_iter().flat_map(sampling::reasons)).collect(),
            in_flight: self.waiting(),
            notes: outcome.into_iter().chain(notes).collect(),
        });
    }
}
