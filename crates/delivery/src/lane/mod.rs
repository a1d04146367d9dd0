//! A lane: an ordered queue, one request in flight, and exactly one verdict for every payload.
//!
//! [`lane`] makes two ends. The [`LaneHandle`] stays with whoever has payloads; the [`Lane`] has the wire, and its
//! [`run`](Lane::run) is the loop that takes payloads from the queue, puts them together to requests, and sends each
//! until the server has taken it, has refused it, or time is over. The next request is not begun before, so what a server
//! accepts, it accepts in the order of arrival; what was sent again after an ambiguous failure is the only thing that may
//! arrive twice.
//!
//! **Threads.** Both ends are `Send` if payload and token are (and, for the lane, the wire), so that a lane can be moved
//! to a thread with a runtime of its own; with payloads that are not `Send`, both ends stay on one thread, the lane as a
//! local task. The future of `run` is `Send` only if the futures of the wire are, so lanes are run by `spawn_local` or
//! `block_on`.
//!
//! **Verdicts** go to one channel, which the lanes of a node share. A verdict is given when the last part of its payload
//! is done, and also if the lane panics, is dropped or is aborted: the rest is then refused as
//! [`Refusal::LaneFailed`], and pushes are handed back.

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::payload::Payload;

mod counters;
mod retry;
mod run;
mod settings;
mod shared;
#[cfg(test)]
mod tests;
mod verdict;

pub use counters::{Counters, State};
pub use retry::RetryBudget;
pub use run::{Lane, LaneError};
pub use settings::{Batching, LaneSettings, OnFull, RetrySettings};
pub use verdict::{Refusal, Resolved, Verdict};

use shared::Shared;

/// Makes the two ends of a lane. `number` is given back with every verdict.
pub fn lane<P: Payload, T, W>(
    number: usize,
    settings: LaneSettings,
    wire: W,
    verdicts: UnboundedSender<Resolved<T>>,
) -> (LaneHandle<P, T>, Lane<P, T, W>) {
    let shared = Arc::new(Shared::new(settings, number, verdicts));
    let (drain, drained) = watch::channel(None);
    (LaneHandle { shared: shared.clone(), drain }, Lane::new(shared, wire, drained))
}

/// The end of a lane for whoever has payloads. If it is dropped, the lane finishes what it has and ends.
pub struct LaneHandle<P: Payload, T> {
    shared: Arc<Shared<P, T>>,
    drain: watch::Sender<Option<Instant>>,
}

/// A payload that was not taken in, with its token.
#[derive(Debug)]
pub enum PushError<P, T> {
    /// There is no room: to be pushed again after [`LaneHandle::ready`]. Only with [`OnFull::Block`].
    Full(P, T),
    /// The lane has ended or is being drained.
    Closed(P, T),
}

impl<P: Payload, T> LaneHandle<P, T> {
    /// Takes a payload in, at the end of the queue. From here on its token gets exactly one verdict.
    ///
    /// # Errors
    ///
    /// Hands payload and token back if the lane does not take them. There is no verdict then.
    pub fn push(&self, payload: P, token: T) -> Result<(), PushError<P, T>> {
        let mut inner = self.shared.lock();
        let result = inner.push(&self.shared.settings, payload, token, Instant::now());
        let closed = inner.closed;
        drop(inner);
        // Also if it is full: the lane may have been waiting for more.
        self.shared.work.notify_one();
        result.map_err(
            |(payload, token)| {
                if closed { PushError::Closed(payload, token) } else { PushError::Full(payload, token) }
            },
        )
    }

    /// Waits until a payload of so many bytes would be taken in or handed back as closed. May be dropped and asked
    /// again, as in a `select!`; serves one waiter at a time.
    pub async fn ready(&self, bytes: usize) {
        while !self.shared.lock().ready(&self.shared.settings, bytes, Instant::now()) {
            self.shared.work.notify_one();
            self.shared.room.notified().await;
        }
    }

    /// No more payloads; those that the lane has are sent without waiting for more, and the lane ends.
    pub fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_one();
        self.shared.room.notify_one();
    }

    /// Closes the lane, and stops sending at `deadline`: a request whose answer is outstanding is then refused as
    /// [`Refusal::Ambiguous`], all others as [`Refusal::Shutdown`], in order. So they are as soon as it is clear that the
    /// first of them cannot be sent again in time.
    pub fn drain(&self, deadline: Instant) {
        self.close();
        self.drain.send_replace(Some(deadline));
    }

    /// What the lane has counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.shared.lock().snapshot(Instant::now())
    }
}

impl<P: Payload, T> Drop for LaneHandle<P, T> {
    fn drop(&mut self) {
        self.close();
    }
}
