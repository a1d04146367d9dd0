//! The ledger of a scripted sink: what came when, what was done with it, and what of it was stored in which order.
//!
//! Its memory is bounded: 100,000 requests are listed, 10,000 keys and a million ranges of numbers are followed, some
//! tens of megabytes. What is beyond is in the totals only, and the report says how much.

mod order;
mod report;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(super) use order::Keyed;
use order::{Accepted, Order};
pub use order::{KeyReport, OrderOptions};
pub use report::{Outcome, RequestReport, ScriptReport, Totals};

use super::script::{Answer, Chooser, Event, Protocol, Signal, SinkScript, Step};

/// Requests that are listed.
const MAX_REQUESTS: usize = 100_000;
/// An answer given so shortly before its connection was cut may be lost on the way.
const CUT_SHADOW: Duration = Duration::from_secs(1);

/// What a scripted sink remembers, shared by its connections and whoever asks.
#[derive(Debug)]
pub(super) struct Ledger {
    script: Arc<SinkScript>,
    order: OrderOptions,
    start: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    chooser: Chooser,
    order: Order,
    totals: Totals,
    requests: Vec<RequestReport>,
}

/// Items of a request, with and without a key.
#[derive(Debug, Default)]
pub(super) struct RequestItems {
    pub(super) keyed: Vec<Keyed>,
    pub(super) without_key: u64,
}

impl RequestItems {
    fn count(&self) -> u64 {
        self.keyed.len() as u64 + self.without_key
    }
}

impl Ledger {
    pub(super) fn new(script: SinkScript, order: OrderOptions) -> Self {
        let script = Arc::new(script);
        let state = State {
            chooser: Chooser::new(Arc::clone(&script)),
            order: Order::default(),
            totals: Totals::default(),
            requests: Vec::new(),
        };
        Self { script, order, start: Instant::now(), state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(super) fn script(&self) -> &SinkScript {
        &self.script
    }

    pub(super) fn order(&self) -> &OrderOptions {
        &self.order
    }

    /// Enters a request or an opening, and says what is to be done with it.
    pub(super) fn enter(self: &Arc<Self>, protocol: Protocol, signal: Signal, event: Event, connection: u64) -> Entry {
        let elapsed = self.start.elapsed();
        let mut state = self.lock();
        let number = state.chooser.choose(protocol, signal, event, elapsed);
        let step = number.and_then(|number| self.script.steps.get(number)).cloned().unwrap_or_default();
        let total = match event {
            Event::Request => &mut state.totals.requests,
            Event::Open => &mut state.totals.openings,
        };
        *total += 1;
        let ordinal = *total;
        let row = RequestReport {
            event,
            ordinal,
            at: elapsed,
            protocol,
            signal,
            connection,
            items: 0,
            wire_bytes: 0,
            decoded_bytes: 0,
            step: number,
            action: step.name.clone().unwrap_or_else(|| step.answer.name()),
            stored: false,
            outcome: Outcome::Open,
            answered_at: None,
            ambiguous: false,
        };
        let listed = state.requests.len() < MAX_REQUESTS;
        let index = listed.then_some(state.requests.len());
        if listed {
            state.requests.push(row.clone());
        } else {
            state.totals.requests_not_listed += 1;
        }
        drop(state);
        self.changed.notify_all();
        Entry { ledger: Arc::clone(self), step, row, index }
    }

    /// The sink cuts the connection, or a stream on it: what was answered on it just before may not have been read.
    pub(super) fn cut(&self, connection: u64) {
        let now = self.start.elapsed();
        let mut state = self.lock();
        let State { requests, totals, .. } = &mut *state;
        for row in requests.iter_mut().filter(|row| row.connection == connection) {
            let recent = row.answered_at.is_some_and(|at| now.saturating_sub(at) < CUT_SHADOW);
            if row.stored && recent && !row.ambiguous {
                row.ambiguous = true;
                totals.ambiguous_items += row.items;
            }
        }
    }

    pub(super) fn totals(&self) -> Totals {
        self.lock().totals
    }

    pub(super) fn report(&self) -> ScriptReport {
        let state = self.lock();
        ScriptReport {
            totals: state.totals,
            keys: state.order.report(self.order.first),
            requests: state.requests.clone(),
        }
    }

    /// Blocks until `enough` says so, at most for `timeout`; the totals then, and whether they were enough.
    pub(super) fn wait(&self, enough: impl Fn(&Totals) -> bool, timeout: Duration) -> (Totals, bool) {
        let deadline = Instant::now().checked_add(timeout);
        let mut state = self.lock();
        loop {
            let totals = state.totals;
            if enough(&totals) {
                return (totals, true);
            }
            state = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return (totals, false),
                Some(left) => self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// The state is whole after each statement, so a panic of another thread does not matter.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request on its way. Dropping it without an answer notes that the client went away.
#[derive(Debug)]
pub(super) struct Entry {
    ledger: Arc<Ledger>,
    step: Step,
    row: RequestReport,
    index: Option<usize>,
}

impl Entry {
    /// What is to be done.
    pub(super) fn step(&self) -> &Step {
        &self.step
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.row.protocol
    }

    /// The message was read.
    pub(super) fn read(&mut self, wire_bytes: u64, decoded_bytes: u64) {
        self.row.wire_bytes = wire_bytes;
        self.row.decoded_bytes = decoded_bytes;
    }

    /// Bytes of the message on the wire, and after decompression.
    pub(super) fn sizes(&self) -> (u64, u64) {
        (self.row.wire_bytes, self.row.decoded_bytes)
    }

    /// The message was decoded to so many items.
    pub(super) fn decoded(&mut self, items: u64) {
        self.row.items = items;
    }

    /// The answer became another than the step has.
    pub(super) fn acts(&mut self, answer: &Answer) {
        if self.step.name.is_none() {
            self.row.action = answer.name();
        }
    }

    /// The items were stored, in this order.
    pub(super) fn stored(&mut self, items: &RequestItems) {
        self.row.stored = true;
        let mut state = self.ledger.lock();
        let State { order, totals, .. } = &mut *state;
        totals.stored_items += items.count();
        totals.without_key += items.without_key;
        if !self.step.delay.is_zero() {
            totals.late_items += items.count();
        }
        for item in &items.keyed {
            match order.accept(item) {
                Accepted::InOrder => totals.first_accepted += 1,
                Accepted::OutOfOrder => {
                    totals.first_accepted += 1;
                    totals.out_of_order += 1;
                }
                Accepted::Duplicate => totals.duplicates += 1,
                Accepted::Untracked => totals.untracked += 1,
            }
        }
        drop(state);
        self.note();
    }

    /// The items were refused so that the client gives them up.
    pub(super) fn refused_for_good(&mut self, items: &RequestItems) {
        let mut state = self.ledger.lock();
        state.totals.refused_for_good += items.count();
        for item in &items.keyed {
            state.order.refuse(item);
        }
    }

    /// The client was answered, or cut off.
    pub(super) fn finish(mut self, outcome: Outcome) {
        self.end(outcome);
    }

    fn end(&mut self, outcome: Outcome) {
        self.row.outcome = outcome;
        self.row.answered_at = Some(self.ledger.start.elapsed());
        if self.row.stored && outcome != Outcome::Accepted {
            self.row.ambiguous = true;
            self.ledger.lock().totals.ambiguous_items += self.row.items;
        }
        self.note();
    }

    fn note(&self) {
        let mut state = self.ledger.lock();
        if let Some(row) = self.index.and_then(|index| state.requests.get_mut(index)) {
            row.clone_from(&self.row);
        }
        drop(state);
        self.ledger.changed.notify_all();
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if self.row.outcome == Outcome::Open {
            self.end(Outcome::ClientLeft);
        }
    }
}
