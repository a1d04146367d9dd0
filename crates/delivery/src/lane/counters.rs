//! What a lane counts.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::verdict::Refusal;
use crate::payload::StreamTally;

/// Counters and gauges of one lane, as they were at one moment.
///
/// Items balance at every moment: `received = delivered + rejected + refused (all reasons) + held`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Items of payloads that came in.
    pub received: u64,
    /// Items that the server took.
    pub delivered: u64,
    /// Items lost alone: rejected by a server that took the rest, or too large for any request.
    pub rejected: u64,
    /// Items refused, by [`Refusal::index`]; those of [`Refusal::Dropped`] are the drops.
    pub refused: [u64; Refusal::ALL.len()],
    /// Items that wait or are in flight.
    pub held: u64,
    /// Payloads that came in.
    pub payloads: u64,
    /// Verdicts that were given.
    pub verdicts: u64,
    /// Items that wait.
    pub queue_items: u64,
    /// Bytes that wait.
    pub queue_bytes: u64,
    /// Payloads, or parts of them, that wait.
    pub queue_batches: u64,
    /// Items of the request in flight, and of its other parts if it had to be split.
    pub in_flight_items: u64,
    /// Bytes of the same.
    pub in_flight_bytes: u64,
    /// Attempts that were begun.
    pub attempts: u64,
    /// Attempts behind the first one of their request.
    pub retries: u64,
    /// Attempts that failed and may be repeated: the server named a delay.
    pub throttled: u64,
    /// Such attempts without a delay whose end is unknown: no answer, or one that says that the server was late.
    pub unanswered: u64,
    /// Such attempts that the server has not taken for sure: no connection, or a refusal that passes.
    pub unavailable: u64,
    /// Requests that the server took.
    pub requests: u64,
    /// Bytes of attempts before compression.
    pub raw_bytes: u64,
    /// Bytes of attempts behind compression, framing included, headers not.
    pub wire_bytes: u64,
    /// Requests that had to be split because they were too large.
    pub splits: u64,
    /// Items in attempts whose end is unknown: an upper bound of the items that arrived twice.
    pub ambiguous: u64,
    /// Streams that ended before they should.
    pub stream_resets: u64,
    /// Times that the wire changed to its other protocol or back.
    pub switches: u64,
    /// What messages of streams brought along.
    pub stream: StreamTally,
    /// Successes about which the server, or our reading of its answer, had something to say.
    pub warnings: u64,
    /// The last of these.
    pub last_warning: Option<Arc<str>>,
    /// What the last failed attempt said.
    pub last_failure: Option<Arc<str>>,
    /// Time during which a payload waited for room.
    pub blocked: Duration,
    /// Time since the oldest item that is held came in.
    pub oldest: Option<Duration>,
    /// What the lane is doing.
    pub state: State,
}

impl Counters {
    /// Items refused for any reason.
    #[must_use]
    pub fn refused_total(&self) -> u64 {
        self.refused.iter().sum()
    }

    /// Whether the items balance.
    #[must_use]
    pub fn balanced(&self) -> bool {
        self.received == self.delivered + self.rejected + self.refused_total() + self.held
    }
}

/// What a lane is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It has nothing to send, or waits for more.
    #[default]
    Idle,
    /// An attempt is out.
    Sending {
        /// Its number for the request, from 1.
        attempt: u32,
        /// When it is given up.
        deadline: Instant,
    },
    /// It waits before the next attempt.
    Backoff {
        /// When that begins.
        until: Instant,
    },
    /// It has ended.
    Done,
}
