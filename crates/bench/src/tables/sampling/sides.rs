//! Settings of the sampler.

use serde_json::{Value, json};

use super::super::rounds;

/// A setting of the sampler, or what is there in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// No sampler.
    None,
    /// One that keeps all.
    All,
    /// One that keeps half.
    Half,
    /// One that keeps a tenth.
    Tenth,
    /// One that keeps nothing.
    Nothing,
    /// One that keeps a tenth of the keys: host and program, or flow.
    KeyHash,
    /// One that keeps about a tenth of the rate.
    RateLimit,
    /// One that follows the flag of traces, none of which is sampled.
    Unsampled,
    /// No sampler, and the engine's processor that keeps a tenth behind the receiver.
    Processor,
    /// No engine: a program that finds the frames and does nothing else.
    Framing,
}

impl rounds::Side for Side {
    fn name(self) -> &'static str {
        match self {
            Self::None => "no-sampler",
            Self::All => "ratio-1",
            Self::Half => "ratio-0.5",
            Self::Tenth => "ratio-0.1",
            Self::Nothing => "ratio-0",
            Self::KeyHash => "key-hash-0.1",
            Self::RateLimit => "rate-limit",
            Self::Unsampled => "unsampled",
            Self::Processor => "log-sampling-0.1",
            Self::Framing => "framing-only",
        }
    }
}

impl Side {
    pub(super) const ALL: [Self; 10] = [
        Self::None,
        Self::All,
        Self::Half,
        Self::Tenth,
        Self::Nothing,
        Self::KeyHash,
        Self::RateLimit,
        Self::Unsampled,
        Self::Processor,
        Self::Framing,
    ];

    /// The key `sampling` of the receiver; `key` is what `key_hash` hashes, and `per_second` what `rate_limit` keeps.
    pub(super) fn sampling(self, key: &Value, per_second: u64) -> Option<Value> {
        let policy = match self {
            Self::None | Self::Processor | Self::Framing => return None,
            Self::All => json!({ "ratio": 1 }),
            Self::Half => json!({ "ratio": 0.5 }),
            Self::Tenth => json!({ "ratio": 0.1 }),
            Self::Nothing => json!({ "ratio": 0 }),
            Self::KeyHash => json!({ "key_hash": { "ratio": 0.1, "key": key } }),
            Self::RateLimit => json!({ "rate_limit": per_second }),
            Self::Unsampled => json!({ "trace_flag": { "unsampled": "drop" } }),
        };
        Some(json!({ "seed": 1, "policies": [policy] }))
    }

    /// Whether what it keeps stands for others.
    pub(super) fn has_weights(self) -> bool {
        matches!(self, Self::Half | Self::Tenth | Self::KeyHash | Self::RateLimit)
    }

    /// What it is measured beside.
    pub(super) fn peers(self) -> &'static [Self] {
        match self {
            Self::None => &[],
            Self::All | Self::Processor | Self::Framing => &[Self::None],
            Self::Half | Self::KeyHash | Self::RateLimit | Self::Unsampled => &[Self::None, Self::All],
            Self::Tenth => &[Self::None, Self::All, Self::Nothing, Self::Processor],
            Self::Nothing => &[Self::None, Self::All, Self::Framing],
        }
    }

    /// Shares of the records that may be kept, if it is a sampler.
    pub(super) fn kept(self) -> std::ops::RangeInclusive<f64> {
        match self {
            Self::None | Self::All | Self::Processor | Self::Framing => 1.0..=1.0,
            Self::Half => 0.48..=0.52,
            Self::Tenth => 0.09..=0.11,
            Self::Nothing | Self::Unsampled => 0.0..=0.0,
            // Of some hundred keys, and of a rate that nobody knows before.
            Self::KeyHash => 0.01..=0.25,
            Self::RateLimit => 0.0..=1.0,
        }
    }
}
