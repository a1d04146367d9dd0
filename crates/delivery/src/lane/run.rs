//! The loop of a lane.

use std::collections::VecDeque;
use std::future::pending;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::counters::State;
use super::retry::{Backoff, RetryBudget};
use super::shared::{End, Flight, Shared, Take};
use super::verdict::Refusal;
use crate::outcome::Outcome;
use crate::payload::Payload;
use crate::wire::Wire;

mod resize;
mod wait;

use wait::{caught, drained, too_late};

/// Successes in a row after which larger requests are tried again.
const GROW_AFTER: u32 = 64;

/// Why a lane ended before its time. Everything that it held was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaneError {
    /// The wire or an encoder panicked, with this message.
    #[error("lane panicked: {0}")]
    Panicked(String),
    /// The wire gave up, with this message.
    #[error("lane cannot go on: {0}")]
    Wire(String),
    /// Nobody takes its verdicts.
    #[error("nobody takes the verdicts of the lane")]
    Deaf,
}

/// The end of a lane that sends. See the [module](crate::lane).
pub struct Lane<P: Payload, T, W> {
    shared: Arc<Shared<P, T>>,
    wire: W,
    drain: watch::Receiver<Option<Instant>>,
    random: fastrand::Rng,
    budget: Option<RetryBudget>,
    /// The request in flight.
    flight: Option<Flight<P>>,
    /// The other parts of a request that was split, in order.
    later: VecDeque<Flight<P>>,
    /// Most items of a request, as learned from a server that found one too large, and successes since.
    most: usize,
    successes: u32,
    /// An answer is outstanding, or an attempt of the request in flight ended as unknown.
    outstanding: bool,
    doubtful: bool,
}

/// What follows from an attempt.
enum Next {
    /// The request is done with.
    Done,
    /// Again, at this time.
    Again(Instant),
    /// The deadline of the drain is here, or would come first.
    Stop,
}

impl<P: Payload, T, W> Lane<P, T, W> {
    pub(super) fn new(shared: Arc<Shared<P, T>>, wire: W, drain: watch::Receiver<Option<Instant>>) -> Self {
        Self {
            shared,
            wire,
            drain,
            random: fastrand::Rng::new(),
            budget: None,
            flight: None,
            later: VecDeque::new(),
            most: usize::MAX,
            successes: 0,
            outstanding: false,
            doubtful: false,
        }
    }

    /// Seeds the jitter, for tests that have to be repeated.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        self.random = fastrand::Rng::with_seed(seed);
        self
    }

    /// Shares a budget of retries with other lanes.
    #[must_use]
    pub fn budgeted(mut self, budget: RetryBudget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Refuses everything that is left, in order, and takes nothing any more.
    fn refuse_rest(&mut self, reason: Refusal, message: Option<&str>) {
        let message: Option<Arc<str>> = message.map(Arc::from);
        let mut inner = self.shared.lock();
        inner.closed = true;
        let outstanding = mem::take(&mut self.outstanding);
        let doubtful = mem::take(&mut self.doubtful) || outstanding;
        if let Some(flight) = self.flight.take() {
            if outstanding {
                inner.ambiguous(flight.items());
            }
            let reason = if outstanding && reason == Refusal::Shutdown { Refusal::Ambiguous } else { reason };
            for part in flight.parts {
                inner.land(part, &End::Refused { reason, ambiguous: doubtful }, message.as_ref());
            }
        }
        for part in mem::take(&mut self.later).into_iter().flat_map(|flight| flight.parts) {
            inner.land(part, &End::Refused { reason, ambiguous: false }, message.as_ref());
        }
        inner.refuse_queue(reason, message.as_ref());
        inner.landed();
        inner.counters.state = State::Done;
        drop(inner);
        self.shared.room.notify_one();
    }

    /// Refuses the request in flight.
    fn refuse(&mut self, reason: Refusal, message: &Arc<str>) {
        let Some(flight) = self.flight.take() else { return };
        let ambiguous = self.doubtful;
        let mut inner = self.shared.lock();
        for part in flight.parts {
            inner.land(part, &End::Refused { reason, ambiguous }, Some(message));
        }
    }

    fn deadline(&self) -> Option<Instant> {
        *self.drain.borrow()
    }
}

impl<P: Payload, T, W> Drop for Lane<P, T, W> {
    fn drop(&mut self) {
        self.refuse_rest(Refusal::LaneFailed, Some("lane ended before its time"));
    }
}

impl<P: Payload, T, W: Wire<P>> Lane<P, T, W> {
    /// Delivers until the handle is closed and nothing is left, or the deadline of a drain.
    ///
    /// # Errors
    ///
    /// If the lane fails: the wire panics or gives up, or the receiver of verdicts is gone. Everything that it held is
    /// refused before this returns; the caller has to end too, because nothing takes the lane's place.
    pub async fn run(mut self) -> Result<(), LaneError> {
        let result = match caught(self.work()).await {
            Ok(result) => result,
            Err(message) => Err(LaneError::Panicked(message)),
        };
        match &result {
            Ok(()) => {
                self.refuse_rest(Refusal::Shutdown, Some("shut down before its turn"));
                let limit = Instant::now() + self.shared.settings.close_timeout;
                let limit = self.deadline().map_or(limit, |deadline| limit.min(deadline));
                // A wire that does not close in time is dropped.
                _ = timeout_at(limit, caught(self.wire.close())).await;
            }
            Err(error) => self.refuse_rest(Refusal::LaneFailed, Some(&error.to_string())),
        }
        result
    }

    async fn work(&mut self) -> Result<(), LaneError> {
        while self.next().await {
            self.deliver().await?;
            let mut inner = self.shared.lock();
            if self.flight.is_none() && self.later.is_empty() {
                inner.landed();
            }
            let deaf = inner.deaf;
            drop(inner);
            if deaf {
                return Err(LaneError::Deaf);
            }
            if self.flight.is_some() {
                // Stopped by the deadline.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Waits for the next request. False if there is none, or no time for it.
    async fn next(&mut self) -> bool {
        loop {
            if self.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
                return false;
            }
            if let Some(flight) = self.later.pop_front() {
                self.flight = Some(flight);
                return true;
            }
            let wait = {
                let mut inner = self.shared.lock();
                match inner.take(&self.shared.settings, self.most, Instant::now()) {
                    Take::Flight(flight) => {
                        inner.flying_since = flight.parts.first().map(|part| part.since);
                        drop(inner);
                        self.flight = Some(flight);
                        self.shared.room.notify_one();
                        return true;
                    }
                    Take::Wait(until) => until,
                    Take::End => return false,
                }
            };
            let due = async {
                match wait {
                    Some(until) => sleep_until(until).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = self.shared.work.notified() => {}
                () = due => {}
                () = drained(&mut self.drain) => {}
            }
        }
    }

    /// Sends the request in flight until it is done with. It is left where it is if the deadline stops that.
    async fn deliver(&mut self) -> Result<(), LaneError> {
        let settings = self.shared.settings.clone();
        let started = Instant::now();
        let mut backoff = Backoff::new(&settings.retry);
        let mut kept = None;
        self.doubtful = false;
        for attempt in 1_u32.. {
            let outcome = match self.attempt(attempt, &mut kept).await {
                Some(outcome) => outcome,
                None => return Ok(()),
            };
            match self.judge(outcome, started, &mut backoff)? {
                Next::Done => break,
                Next::Stop => return Ok(()),
                Next::Again(until) => {
                    self.shared.lock().counters.state = State::Backoff { until };
                    tokio::select! {
                        () = sleep_until(until) => {}
                        () = too_late(&mut self.drain, until) => return Ok(()),
                    }
                }
            }
        }
        Ok(())
    }

    /// One attempt. `None` if the deadline came while it was out.
    async fn attempt(&mut self, attempt: u32, kept: &mut Option<W::Kept>) -> Option<Outcome> {
        let deadline = Instant::now() + self.shared.settings.attempt_timeout;
        let Self { shared, wire, drain, flight, outstanding, .. } = self;
        let flight = flight.as_ref()?;
        {
            let mut inner = shared.lock();
            inner.counters.state = State::Sending { attempt, deadline };
            inner.counters.attempts += 1;
            inner.counters.retries += u64::from(attempt > 1);
        }
        // Before the first poll nothing has been sent, but who asks before is not told apart.
        *outstanding = true;
        let ended = tokio::select! {
            biased;
            outcome = wire.attempt(&flight.payloads, kept, deadline) => Some(Some(outcome)),
            () = sleep_until(deadline) => Some(None),
            () = drained(drain) => None,
        };
        let outcome = match ended {
            Some(Some(outcome)) => {
                *outstanding = false;
                Some(outcome)
            }
            Some(None) => {
                *outstanding = false;
                let ambiguous = wire.abandon();
                Some(Outcome::Retry { delay: None, ambiguous, message: "no answer within attempt_timeout".to_owned() })
            }
            None => {
                // Only what may have left counts as outstanding.
                *outstanding = wire.abandon();
                None
            }
        };
        let tally = wire.tally();
        let mut inner = shared.lock();
        inner.counters.raw_bytes += tally.raw_bytes;
        inner.counters.wire_bytes += tally.wire_bytes;
        inner.counters.stream_resets += tally.stream_resets;
        inner.counters.stream.add(tally.stream);
        inner.counters.switches += tally.switches;
        outcome
    }

    /// Books an outcome and says what follows from it.
    fn judge(&mut self, outcome: Outcome, started: Instant, backoff: &mut Backoff) -> Result<Next, LaneError> {
        let failed = |lane: &Self, message: &str| {
            let message: Arc<str> = Arc::from(message);
            lane.shared.lock().counters.last_failure = Some(message.clone());
            message
        };
        match outcome {
            Outcome::Accepted { rejected, warning } => self.accepted(rejected, warning.as_deref()),
            Outcome::Permanent { message } | Outcome::Downgrade { message } => {
                let message = failed(self, &message);
                self.refuse(Refusal::Permanent, &message);
            }
            Outcome::Fatal { message } => {
                failed(self, &message);
                return Err(LaneError::Wire(message));
            }
            Outcome::Unencodable { message } => {
                let message = failed(self, &message);
                self.isolate(&message);
            }
            Outcome::Oversize { sizes, message } => {
                let message = failed(self, &message);
                self.shrink(sizes, &message);
            }
            Outcome::Retry { delay, ambiguous, message } => {
                let message = failed(self, &message);
                {
                    let counters = &mut self.shared.lock().counters;
                    let reason = match delay {
                        Some(_) => &mut counters.throttled,
                        None if ambiguous => &mut counters.unanswered,
                        None => &mut counters.unavailable,
                    };
                    *reason += 1;
                }
                if ambiguous {
                    self.doubtful = true;
                    let items = self.flight.as_ref().map_or(0, Flight::items);
                    self.shared.lock().ambiguous(items);
                }
                return Ok(self.again(delay, started, backoff, &message));
            }
        }
        Ok(Next::Done)
    }

    /// When to try again, if there is time for it.
    fn again(&mut self, delay: Option<Duration>, started: Instant, backoff: &mut Backoff, message: &Arc<str>) -> Next {
        let settings = self.shared.settings.clone();
        let now = Instant::now();
        let mut wait = backoff.next(&settings.retry, delay, &mut self.random);
        let expired = |wait: Duration| {
            settings.retry.max_elapsed.is_some_and(|limit| (now - started).saturating_add(wait) > limit)
        };
        if !expired(wait)
            && let Some(budget) = &self.budget
        {
            wait = wait.max(budget.reserve(now));
        }
        if expired(wait) {
            self.refuse(Refusal::Expired, message);
            return Next::Done;
        }
        let until = now + wait;
        match self.deadline() {
            Some(deadline) if deadline <= until => Next::Stop,
            _ => Next::Again(until),
        }
    }

    fn accepted(&mut self, rejected: u64, warning: Option<&str>) {
        let Some(flight) = self.flight.take() else { return };
        let warning: Option<Arc<str>> = warning.map(Arc::from);
        let mut inner = self.shared.lock();
        inner.counters.requests += 1;
        if let Some(warning) = &warning {
            inner.counters.warnings += 1;
            inner.counters.last_warning = Some(warning.clone());
        }
        // Which items were rejected is not in the protocol: they are booked from the front.
        let mut left = usize::try_from(rejected).unwrap_or(usize::MAX);
        for part in flight.parts {
            let rejected = left.min(part.items);
            left -= rejected;
            inner.land(part, &End::Delivered { rejected }, warning.as_ref());
        }
        drop(inner);
        self.successes += 1;
        if self.most != usize::MAX && self.successes >= GROW_AFTER {
            self.successes = 0;
            self.most = self.most.saturating_mul(2);
            if self.most >= self.shared.settings.batch.max_items {
                self.most = usize::MAX;
            }
        }
    }
}
