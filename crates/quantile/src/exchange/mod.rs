//! Windows that several sources send in parts: which message counts, which is a repeat, and when
//! all have delivered.
//!
//! Merging is not idempotent, and transports repeat messages. So each message has an identity,
//! [`MessageId`], and a [`Collector`] merges each one once: while its window is open, after it was
//! emitted (until a horizon, so that a repeat is told from a straggler), and beyond that by marks:
//! of each instance the last sequence number, of each series the last end of a window that is
//! forgotten. What lies before a mark is late, so forgetting a window neither lets a repeat in nor
//! gives out the window a second time.
//!
//! A window is complete when every expected source has delivered all parts; a source with nothing
//! to say announces that with an empty message. After [`CollectorConfig::max_wait_ns`] it is given
//! out as it is, with the number of sources that have delivered.
//!
//! A source that restarts comes back as another instance, see [`Restarted`]: either all that the
//! older one held is sent again, and what the newer one delivers for a window takes the place of what
//! the older one did; or nothing is, and what both have delivered counts. So each instance's content is
//! kept apart until the window is emitted. The newer of two instances is the one that came to the
//! collector later; their clocks are not asked.
//!
//! No clock is read: the caller passes the time. What is in a message is the caller's too: merging
//! it is a closure, and a message whose content fails counts as refused, not as delivered.

mod collector;
mod config;
mod counters;
mod forgotten;
mod group;
mod identity;
#[cfg(test)]
mod tests;

pub use collector::{Collector, Emission};
pub use config::{CollectorConfig, CollectorError, Expected, Restarted, Scope};
pub use counters::ExchangeCounters;
pub use identity::{MessageId, Part, SourceId, WindowBounds};

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict<E> {
    /// It was merged into its window.
    Merged,
    /// It had been merged before: to be acknowledged, as its sender only did not know.
    Duplicate,
    /// Its window was emitted without it, or so long ago that nothing is known of it: to be
    /// acknowledged too, since it can never count.
    Late,
    /// A newer instance of its source has delivered for the window, and counts instead.
    Replaced,
    /// It was not merged, for the reason given.
    Refused(Refusal<E>),
}

/// Why a message is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal<E> {
    /// The part is not one of its parts, or there are more than allowed.
    #[error(
        "part must be below the number of parts, of which at most {max_parts} are allowed: got part {index} of {of}"
    )]
    Part {
        /// Number of the part, from 0.
        index: u32,
        /// Number of parts.
        of: u32,
        /// The most parts allowed.
        max_parts: u32,
    },
    /// The window ends before it begins.
    #[error("window must not end before it begins: got {start_ns} to {end_ns}")]
    Window {
        /// Its start.
        start_ns: i64,
        /// Its end.
        end_ns: i64,
    },
    /// The source is not one of those expected.
    #[error("source must be one of those expected")]
    UnknownSource,
    /// The same instance has said that its window has another number of parts.
    #[error("number of parts must be {expected} as in earlier messages of the window, got {actual}")]
    PartsChanged {
        /// What it said before.
        expected: u32,
        /// What it says now.
        actual: u32,
    },
    /// The same instance has sent this part under another sequence number: two messages claim to be
    /// one.
    #[error("part must have been sent once: it came with sequence {earlier}, now with {actual}")]
    Conflict {
        /// Sequence number of the message that was merged.
        earlier: u64,
        /// That of this one.
        actual: u64,
    },
    /// A source has restarted too often within one window.
    #[error("source must not have more than {most} instances in one window")]
    Instances {
        /// The most allowed.
        most: usize,
    },
    /// There are as many open windows as allowed: to be sent again later.
    #[error("open windows must not exceed {max_windows}: try again later")]
    Full {
        /// The most allowed.
        max_windows: usize,
    },
    /// What is in the message could not be merged.
    #[error("{0}")]
    Content(E),
}
