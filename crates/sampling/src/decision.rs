//! What is decided, and why.

use crate::weights::WeightId;

/// What becomes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is kept, and stands for as many as [`Sampler::weight`](crate::Sampler::weight) tells.
    Keep {
        /// Its weight.
        weight: WeightId,
    },
    /// It is dropped.
    Drop {
        /// Why.
        reason: DropReason,
    },
}

/// What becomes of the next records: of all of them the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// How many.
    pub records: u64,
    /// What becomes of each.
    pub decision: Decision,
}

/// Why a record was dropped.
// As wide as the id of a weight, so that a decision is handed over in registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum DropReason {
    /// `trace_flag`: its trace is not sampled. What is kept makes up for it where `tracestate` tells a threshold.
    TraceFlag,
    /// `ratio`: not drawn.
    Ratio,
    /// `key_hash`: its key is not among those kept.
    KeyHash,
    /// `trace_ratio`: its trace is not among those kept.
    TraceRatio,
    /// `rate_limit`: not drawn.
    RateLimit,
    /// `rate_limit`: drawn, but above the hard cap. No weight makes up for it: sums are too small by these.
    HardCap,
}

impl DropReason {
    /// All reasons, in the order of [`DropReason::index`].
    pub const ALL: [Self; 6] =
        [Self::TraceFlag, Self::Ratio, Self::KeyHash, Self::TraceRatio, Self::RateLimit, Self::HardCap];

    /// Position among all reasons.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Name for metrics: that of the policy, or `hard_cap`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TraceFlag => "trace_flag",
            Self::Ratio => "ratio",
            Self::KeyHash => "key_hash",
            Self::TraceRatio => "trace_ratio",
            Self::RateLimit => "rate_limit",
            Self::HardCap => "hard_cap",
        }
    }
}
