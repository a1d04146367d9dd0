//! The protocols: each turns payloads into requests on a connection of its own, and answers into outcomes.
//!
//! - [`otlp_grpc`]: unary OTLP over gRPC;
//! - [`otlp_http`]: OTLP over HTTP;
//! - [`otap`]: OTAP streams;
//! - [`switch`]: one wire with another to fall back on;
//! - [`connection`]: the connections below them; [`connect`]: ready ways to make them;
//! - [`compress`], [`message`]: compression and framing of messages.

use std::future::Future;

use tokio::time::Instant;

use crate::outcome::Outcome;
use crate::payload::StreamTally;

pub mod compress;
pub mod connect;
pub mod connection;
pub mod message;
pub mod otap;
pub mod otlp_grpc;
pub mod otlp_http;
pub mod switch;
#[cfg(test)]
mod tests;
mod unary;

/// A protocol that delivers requests, one at a time, for one lane.
///
/// Futures need not be `Send`: the lane says what follows from that.
pub trait Wire<P> {
    /// What is kept of a request from one attempt to the next, such as its bytes.
    type Kept;

    /// One attempt to deliver `payloads`: of one signal, with at least one item, not split or changed between attempts
    /// that share `kept`. `kept` is `None` at the first attempt.
    ///
    /// Must be cancel safe in this sense: if the future is dropped, [`Wire::abandon`] is called before anything else. The
    /// caller gives up at `deadline`.
    fn attempt(
        &mut self,
        payloads: &[P],
        kept: &mut Option<Self::Kept>,
        deadline: Instant,
    ) -> impl Future<Output = Outcome>;

    /// The last attempt was dropped before its end. Leaves behind whatever it was waiting on, so that the next attempt
    /// does not meet it again. Returns whether the server may have got the request.
    fn abandon(&mut self) -> bool;

    /// What happened since this was last called.
    fn tally(&mut self) -> Tally;

    /// Ends connections in an orderly way. The caller sets the limit in time.
    fn close(&mut self) -> impl Future<Output = ()>;
}

/// What a wire counts. See [`Counters`](crate::lane::Counters).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Bytes of messages before compression.
    pub raw_bytes: u64,
    /// Bytes of messages behind it, with their framing.
    pub wire_bytes: u64,
    /// Streams that ended before they should.
    pub stream_resets: u64,
    /// Changes from one protocol to another.
    pub switches: u64,
    /// What messages of streams brought along.
    pub stream: StreamTally,
}

impl Tally {
    /// Adds another.
    pub const fn add(&mut self, other: Self) {
        self.raw_bytes += other.raw_bytes;
        self.wire_bytes += other.wire_bytes;
        self.stream_resets += other.stream_resets;
        self.switches += other.switches;
        self.stream.add(other.stream);
    }
}
