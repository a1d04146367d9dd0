//! What became of a payload.

use std::sync::Arc;

/// The one answer that a token gets, after all parts of its payload are done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// `None` if everything was taken by the server, or rejected item by item. Else why it was not: if parts ended
    /// differently, the reason that asks for most care is given, so that a payload with any part that may be sent again
    /// counts as one that may be sent again.
    pub refusal: Option<Refusal>,
    /// Items that the server has.
    pub delivered: u64,
    /// Items that are lost alone: rejected by a server that took the rest, or too large for any request.
    pub rejected: u64,
    /// Items of parts that were refused.
    pub refused: u64,
    /// The server may have some of the refused items all the same.
    pub ambiguous: bool,
    /// What was last said about it.
    pub message: Option<Arc<str>>,
}

/// Why a payload was not delivered. Later ones are given before earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// The server will never take it.
    Permanent,
    /// It cannot be encoded.
    Unencodable,
    /// Newer ones needed its place in the queue.
    Dropped,
    /// The time for attempts is over.
    Expired,
    /// The queue had no place for it.
    QueueFull,
    /// The deadline of the drain came before its turn.
    Shutdown,
    /// The lane ended by a fault.
    LaneFailed,
    /// The deadline of the drain came while the server's answer was outstanding.
    Ambiguous,
}

impl Refusal {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Permanent,
        Self::Unencodable,
        Self::Dropped,
        Self::Expired,
        Self::QueueFull,
        Self::Shutdown,
        Self::LaneFailed,
        Self::Ambiguous,
    ];

    /// A number, for tables with one entry a reason.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Must not be handed in again: it would fail again, or was given up on purpose.
    #[must_use]
    pub const fn is_permanent(self) -> bool {
        matches!(self, Self::Permanent | Self::Unencodable | Self::Dropped)
    }
}

/// A token and its verdict.
#[derive(Debug)]
pub struct Resolved<T> {
    /// Number of the lane, as given when it was made.
    pub lane: usize,
    /// What came in with the payload.
    pub token: T,
    /// What became of it.
    pub verdict: Verdict,
}
