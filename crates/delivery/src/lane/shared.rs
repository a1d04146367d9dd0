//! The state that a lane and its handle share: queue, verdicts due, counters.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use super::counters::{Counters, State};
use super::settings::{LaneSettings, OnFull};
use super::verdict::{Refusal, Resolved, Verdict};
use crate::payload::Payload;
use crate::signal::Signal;

mod take;

pub(super) use take::split_payload;

/// What is known of a payload, or of a part of one, apart from itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Number of the input it is of.
    pub(super) input: u64,
    pub(super) items: usize,
    pub(super) bytes: usize,
    pub(super) since: Instant,
}

/// How a part ended.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// The server has it, but for so many of its items.
    Delivered { rejected: usize },
    /// None of it arrived.
    Refused { reason: Refusal, ambiguous: bool },
}

/// A request's worth of payloads.
#[derive(Debug)]
pub(super) struct Flight<P> {
    pub(super) signal: Signal,
    pub(super) payloads: Vec<P>,
    pub(super) parts: Vec<Part>,
}

impl<P> Flight<P> {
    pub(super) fn items(&self) -> usize {
        self.parts.iter().map(|part| part.items).sum()
    }
}

/// What the queue has for the lane.
pub(super) enum Take<P> {
    /// A request's worth.
    Flight(Flight<P>),
    /// Too little yet; enough at the latest then.
    Wait(Option<Instant>),
    /// Nothing, and nothing will come.
    End,
}

struct Waiting<P> {
    signal: Signal,
    payload: P,
    part: Part,
    /// The front of the same input went before.
    remainder: bool,
}

/// An input whose verdict is due.
struct Input<T> {
    token: T,
    /// Parts of it that are not done.
    open: usize,
    verdict: Verdict,
}

pub(super) struct Inner<P, T> {
    lane: usize,
    queue: VecDeque<Waiting<P>>,
    /// Places in the queue where the signal changes.
    changes: usize,
    /// Inputs by number, from `first` on; `None` is done.
    inputs: VecDeque<Option<Input<T>>>,
    first: u64,
    /// No input any more.
    pub(super) closed: bool,
    /// Nobody takes verdicts any more.
    pub(super) deaf: bool,
    blocked_since: Option<Instant>,
    /// When the oldest item in flight came in.
    pub(super) flying_since: Option<Instant>,
    verdicts: UnboundedSender<Resolved<T>>,
    /// `oldest` and `blocked` are brought up to date by [`Inner::snapshot`].
    pub(super) counters: Counters,
}

pub(super) struct Shared<P, T> {
    pub(super) settings: Arc<LaneSettings>,
    inner: Mutex<Inner<P, T>>,
    /// The lane may find something new.
    pub(super) work: Notify,
    /// The handle may find room.
    pub(super) room: Notify,
}

impl<P, T> Shared<P, T> {
    pub(super) fn new(settings: LaneSettings, lane: usize, verdicts: UnboundedSender<Resolved<T>>) -> Self {
        let inner = Inner {
            lane,
            queue: VecDeque::new(),
            changes: 0,
            inputs: VecDeque::new(),
            first: 0,
            closed: false,
            deaf: false,
            blocked_since: None,
            flying_since: None,
            verdicts,
            counters: Counters::default(),
        };
        Self { settings: Arc::new(settings), inner: Mutex::new(inner), work: Notify::new(), room: Notify::new() }
    }

    /// Never held over an await. A panic below it (of a payload's `split`) leaves it in order.
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner<P, T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P, T> Inner<P, T> {
    pub(super) fn snapshot(&self, now: Instant) -> Counters {
        let mut counters = self.counters.clone();
        counters.blocked += self.blocked_since.map_or_else(Default::default, |since| now - since);
        let oldest = self.flying_since.or_else(|| self.queue.front().map(|waiting| waiting.part.since));
        counters.oldest = oldest.map(|since| now - since);
        counters
    }

    fn input(&mut self, number: u64) -> Option<&mut Option<Input<T>>> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.inputs.get_mut(index)
    }

    fn has_room(&self, settings: &LaneSettings, bytes: usize) -> bool {
        self.queue.is_empty()
            || (self.queue.len() < settings.max_queue_batches
                && self.queue_bytes().saturating_add(bytes) <= settings.max_queue_bytes)
    }

    fn queue_bytes(&self) -> usize {
        usize::try_from(self.counters.queue_bytes).unwrap_or(usize::MAX)
    }

    /// Whether a payload of so many bytes would be taken. Starts the clock of blocked time if not.
    pub(super) fn ready(&mut self, settings: &LaneSettings, bytes: usize, now: Instant) -> bool {
        let ready = self.closed || settings.on_full != OnFull::Block || self.has_room(settings, bytes);
        if ready {
            if let Some(since) = self.blocked_since.take() {
                self.counters.blocked += now - since;
            }
        } else if self.blocked_since.is_none() {
            self.blocked_since = Some(now);
        }
        ready
    }

    fn queued(&mut self, part: Part, forth: bool) {
        let (items, bytes) = (part.items as u64, part.bytes as u64);
        let counters = &mut self.counters;
        if forth {
            counters.queue_items += items;
            counters.queue_bytes += bytes;
        } else {
            counters.queue_items -= items;
            counters.queue_bytes -= bytes;
        }
        counters.queue_batches = self.queue.len() as u64;
    }

    /// Notes one more part of an input that was split.
    fn split(&mut self, number: u64) {
        if let Some(Some(input)) = self.input(number) {
            input.open += 1;
        }
    }

    /// Books the end of a part, and gives the verdict if it was the last of its input.
    fn settle(&mut self, part: Part, end: &End, message: Option<&Arc<str>>) {
        let items = part.items as u64;
        self.counters.held -= items;
        let (delivered, rejected, refusal, ambiguous) = match *end {
            End::Delivered { rejected } => {
                let rejected = rejected.min(part.items) as u64;
                (items - rejected, rejected, None, false)
            }
            End::Refused { reason, ambiguous } => (0, 0, Some(reason), ambiguous),
        };
        self.counters.delivered += delivered;
        self.counters.rejected += rejected;
        if let Some(reason) = refusal {
            self.counters.refused[reason.index()] += items;
        }
        let Some(slot) = self.input(part.input) else { return };
        let Some(input) = slot.as_mut() else { return };
        input.open -= 1;
        let verdict = &mut input.verdict;
        verdict.delivered += delivered;
        verdict.rejected += rejected;
        verdict.ambiguous |= ambiguous;
        if let Some(reason) = refusal {
            verdict.refused += items;
            verdict.refusal = verdict.refusal.max(Some(reason));
        }
        if let Some(message) = message {
            verdict.message = Some(message.clone());
        }
        if input.open == 0
            && let Some(done) = slot.take()
        {
            self.give(done);
        }
        while self.inputs.front().is_some_and(Option::is_none) {
            self.inputs.pop_front();
            self.first += 1;
        }
    }

    fn give(&mut self, input: Input<T>) {
        self.counters.verdicts += 1;
        let resolved = Resolved { lane: self.lane, token: input.token, verdict: input.verdict };
        self.deaf |= self.verdicts.send(resolved).is_err();
    }

    /// Books what an attempt that ended as unknown may have doubled.
    pub(super) fn ambiguous(&mut self, items: usize) {
        self.counters.ambiguous += items as u64;
    }

    fn remove(&mut self, index: usize) -> Option<Waiting<P>> {
        let signal = |index: Option<usize>| index.and_then(|index| self.queue.get(index)).map(|waiting| waiting.signal);
        let differs = |a: Option<Signal>, b: Option<Signal>| usize::from(a.is_some() && b.is_some() && a != b);
        let (before, at, after) = (signal(index.checked_sub(1)), signal(Some(index)), signal(Some(index + 1)));
        self.changes = self.changes + differs(before, after) - differs(before, at) - differs(at, after);
        let removed = self.queue.remove(index)?;
        self.queued(removed.part, false);
        Some(removed)
    }

    fn add_in_flight(&mut self, part: Part) {
        self.counters.in_flight_items += part.items as u64;
        self.counters.in_flight_bytes += part.bytes as u64;
    }

    /// Books the end of a part that is in flight.
    pub(super) fn land(&mut self, part: Part, end: &End, message: Option<&Arc<str>>) {
        self.counters.in_flight_items -= part.items as u64;
        self.counters.in_flight_bytes -= part.bytes as u64;
        self.settle(part, end, message);
    }

    /// A part in flight is now two.
    pub(super) fn split_in_flight(&mut self, whole: Part, head: Part, tail: Part) {
        self.split(whole.input);
        self.counters.in_flight_bytes -= whole.bytes as u64;
        self.counters.in_flight_bytes += (head.bytes + tail.bytes) as u64;
    }

    /// The request, with all its other parts, is over.
    pub(super) fn landed(&mut self) {
        self.counters.state = State::Idle;
        self.flying_since = None;
    }
}

impl<P: Payload, T> Inner<P, T> {
    /// Takes a payload in, or gives it back if it has to wait.
    pub(super) fn push(&mut self, settings: &LaneSettings, payload: P, token: T, now: Instant) -> Result<(), (P, T)> {
        let (items, bytes) = (payload.items(), payload.bytes());
        if self.closed || !self.ready(settings, bytes, now) {
            return Err((payload, token));
        }
        self.counters.payloads += 1;
        self.counters.received += items as u64;
        self.counters.held += items as u64;
        let number = self.first + self.inputs.len() as u64;
        let verdict = Verdict { refusal: None, delivered: 0, rejected: 0, refused: 0, ambiguous: false, message: None };
        self.inputs.push_back(Some(Input { token, open: 1, verdict }));
        let part = Part { input: number, items, bytes, since: now };
        if items == 0 {
            self.settle(part, &End::Delivered { rejected: 0 }, None);
            return Ok(());
        }
        let refused = |reason| End::Refused { reason, ambiguous: false };
        if settings.on_full == OnFull::DropOldest {
            while !self.has_room(settings, bytes) {
                let oldest = usize::from(self.queue.front().is_some_and(|waiting| waiting.remainder));
                let Some(dropped) = self.remove(oldest) else { break };
                self.settle(dropped.part, &refused(Refusal::Dropped), None);
            }
        }
        if !self.has_room(settings, bytes) {
            let reason = if settings.on_full == OnFull::Nack { Refusal::QueueFull } else { Refusal::Dropped };
            self.settle(part, &refused(reason), None);
            return Ok(());
        }
        let signal = payload.signal();
        self.changes += usize::from(self.queue.back().is_some_and(|last| last.signal != signal));
        self.queue.push_back(Waiting { signal, payload, part, remainder: false });
        self.queued(part, true);
        Ok(())
    }

    /// Refuses everything that waits, oldest first.
    pub(super) fn refuse_queue(&mut self, reason: Refusal, message: Option<&Arc<str>>) {
        while let Some(waiting) = self.remove(0) {
            self.settle(waiting.part, &End::Refused { reason, ambiguous: false }, message);
        }
    }
}
