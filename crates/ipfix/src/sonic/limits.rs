//! Bounds on payloads and sessions, what comes of going beyond them, and counts.

use thiserror::Error;

use crate::problem::Fault;

/// Bounds of a [`SonicSessions`](super::SonicSessions).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SonicLimits {
    /// Most bytes of a payload.
    pub max_payload_bytes: usize,
    /// Most sets of a payload.
    pub max_sets: usize,
    /// Most sessions.
    pub max_sessions: usize,
    /// Most fields of all templates together that sources sent themselves; beyond, those not used for longest go.
    pub max_learned_fields: usize,
    /// Most sources whose last time is remembered.
    pub max_sources: usize,
}

impl Default for SonicLimits {
    fn default() -> Self {
        Self {
            max_payload_bytes: 16 * 1024 * 1024,
            max_sets: 4_096,
            max_sessions: 1_024,
            max_learned_fields: 256 * 1024,
            max_sources: 4_096,
        }
    }
}

/// Why a payload was dropped whole.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SonicRejection {
    /// It is no sequence of IPFIX messages of whole sets.
    #[error("payload is no sequence of ipfix messages, at byte {offset}: {source}")]
    Framing {
        /// Where.
        offset: usize,
        /// What is wrong.
        source: Fault,
    },
    /// It is too long.
    #[error("payload has {length} bytes, allowed are {limit}")]
    TooLong {
        /// Bytes of the payload.
        length: usize,
        /// Most bytes allowed.
        limit: usize,
    },
    /// It has too many sets.
    #[error("payload has more than {limit} sets")]
    TooManySets {
        /// Most sets allowed.
        limit: usize,
    },
}

/// Counts of what was admitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SonicCounters {
    /// Payloads.
    pub payloads: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Payloads dropped for their framing.
    pub rejected_framing: u64,
    /// Payloads dropped for a limit.
    pub rejected_limit: u64,
    /// Messages of the other payloads.
    pub messages: u64,
    /// Data sets with a known template.
    pub data_sets: u64,
    /// Data sets without one.
    pub unknown_template_sets: u64,
    /// Sets that are neither templates nor data.
    pub skipped_sets: u64,
    /// Data sets whose padding is not all zero.
    pub nonzero_padding_sets: u64,
    /// Records.
    pub records: u64,
    /// Counters in them.
    pub counters: u64,
    /// Records that do not say when they were taken.
    pub records_without_time: u64,
    /// Templates learned from sources.
    pub templates_learned: u64,
    /// Templates of sources that cannot be used.
    pub templates_refused: u64,
    /// Templates that sources withdrew.
    pub templates_withdrawn: u64,
    /// Templates of sources forgotten to make room.
    pub templates_evicted: u64,
    /// Rows of the session table refused.
    pub sessions_refused: u64,
    /// Those of them that define a template otherwise than an earlier session.
    pub sessions_in_conflict: u64,
}
