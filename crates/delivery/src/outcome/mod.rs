//! What an attempt came to, by the specifications of the three protocols.
//!
//! An [`Outcome`] says what a lane has to do: go on, send again, split, or give up. Everything that differs between
//! gRPC, HTTP and OTAP ends in these tables: [`grpc`], [`http`] and [`otap`]; [`oversize`], [`delay`] and [`partial`] are
//! what they share.
//!
//! A failure is *ambiguous* where the server may have kept the data all the same: sending it again is right, and is the
//! only way in which data may arrive twice.

use std::time::Duration;

pub mod delay;
pub mod grpc;
pub mod http;
pub mod otap;
pub mod oversize;
pub mod partial;
#[cfg(test)]
mod tests;

/// Result of one attempt to deliver one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server took the request. Never sent again, even if items were rejected.
    Accepted {
        /// Items that the server says it rejected (`partial_success`); not yet limited to the items of the request.
        rejected: u64,
        /// What the server said about it, or why its answer could not be read.
        warning: Option<String>,
    },
    /// The same request may be sent again.
    Retry {
        /// The server's own delay (RetryInfo, Retry-After): not earlier than this.
        delay: Option<Duration>,
        /// The server may have kept the data.
        ambiguous: bool,
        /// What happened.
        message: String,
    },
    /// The request is too large for the server or for our own limit: smaller ones may pass.
    Oversize {
        /// Size that was found too large, and the limit, in bytes, where they are known.
        sizes: Option<(u64, u64)>,
        /// What the server said.
        message: String,
    },
    /// The server will never take this request.
    Permanent {
        /// What the server said.
        message: String,
    },
    /// The payloads cannot be encoded: the server has not seen them.
    Unencodable {
        /// What is wrong with them.
        message: String,
    },
    /// The server does not know the method; another protocol may work. See [`Switch`](crate::wire::switch::Switch).
    Downgrade {
        /// What the server said.
        message: String,
    },
    /// The wire cannot go on: the lane fails, and says so.
    Fatal {
        /// What happened.
        message: String,
    },
}

impl Outcome {
    /// Accepted as a whole and nothing to say about it.
    pub const OK: Self = Self::Accepted { rejected: 0, warning: None };

    /// No answer: the connection could not be made, so that the server has seen nothing.
    pub fn unsent(message: impl Into<String>) -> Self {
        Self::Retry { delay: None, ambiguous: false, message: message.into() }
    }

    /// No answer to something that was, or may have been, sent.
    pub fn unanswered(message: impl Into<String>) -> Self {
        Self::Retry { delay: None, ambiguous: true, message: message.into() }
    }

    /// Refused for ever.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self::Permanent { message: message.into() }
    }

    /// An accepted request whose answer could not be read.
    pub fn unreadable(why: impl Into<String>) -> Self {
        Self::Accepted { rejected: 0, warning: Some(why.into()) }
    }
}

/// How RESOURCE_EXHAUSTED without a RetryInfo is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResourceExhausted {
    /// As the OTLP specification has it: permanent, because the server does not say that it can recover.
    Strict,
    /// As an overload that passes. The default: several receivers, the engine's own among them, answer overload without a
    /// RetryInfo, and the strict reading loses the data. A message that is too large is recognised before.
    #[default]
    Retry,
}

/// Longest part of a server's message that is kept, in bytes.
const MESSAGE_LIMIT: usize = 512;

/// The first 512 bytes of `text`, up to a character boundary: servers may send a page of it.
#[must_use]
pub fn clip(text: &str) -> &str {
    &text[..text.floor_char_boundary(MESSAGE_LIMIT)]
}
