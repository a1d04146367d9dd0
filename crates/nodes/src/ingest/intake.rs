//! Input that waits for its batch to be emitted, shared by the sources of one receiver.

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::time::Duration;

use catchment_columns::Job;
use otel_arrow_dfe_config::SignalType;
use otel_arrow_dfe_config::error::Error;
use otel_arrow_dfe_engine::memory_limiter::{LocalReceiverAdmissionState, MemoryPressureChanged};
use otel_arrow_dfe_pdata_codec::PdataEncoding;
use otel_arrow_dfe_telemetry::instrument::Mmsc;
use serde::Deserialize;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::books::Books;
use super::in_flight::InFlight;
use super::sampling::Added;
use crate::config;

/// Bounds of a batch. Whichever is met first sends it on.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BatchConfig {
    /// Messages in a batch; of flows, records.
    #[serde(alias = "max_records")]
    pub(crate) max_messages: usize,
    /// Bytes of input in a batch.
    #[serde(deserialize_with = "config::bytes::deserialize")]
    pub(crate) max_bytes: usize,
    /// Age of the oldest input in a batch.
    #[serde(with = "humantime_serde")]
    pub(crate) max_duration: Duration,
}

impl Default for BatchConfig {
    fn default() -> Self {
        Self { max_messages: 100, max_bytes: 2 * 1024 * 1024, max_duration: Duration::from_millis(100) }
    }
}

impl BatchConfig {
    pub(crate) fn check(&self) -> Result<(), Error> {
        config::within("batch.max_messages", self.max_messages, 1, catchment_columns::MAX_BATCH_RECORDS)?;
        config::within("batch.max_bytes", self.max_bytes, 1024, 64 * 1024 * 1024)?;
        config::within("batch.max_duration (ms)", self.max_duration.as_millis(), 1, 60_000)
    }
}

/// `max_in_flight_bytes`: bytes of input in batches that were handed on and are still in memory. 0 is no limit.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(transparent)]
pub(crate) struct MaxInFlight(#[serde(deserialize_with = "config::bytes::deserialize")] usize);

impl Default for MaxInFlight {
    fn default() -> Self {
        Self(8 * 1024 * 1024)
    }
}

impl MaxInFlight {
    pub(super) fn limit(self) -> Option<usize> {
        (self.0 > 0).then_some(self.0)
    }
}

/// A batch under construction.
pub(crate) trait Pending: 'static {
    /// The job that decodes a batch.
    type Job: Job + 'static;
    /// Messages or records in it.
    fn items(&self) -> usize;
    /// Bytes of input in it.
    fn bytes(&self) -> usize;
    /// Takes the batch out.
    fn take_payload(&mut self) -> Payload<Self::Job>;
    /// A job has come to its end, or as far as it came.
    fn done(&mut self, _job: &Self::Job) {}
}

/// What becomes of a batch.
pub(crate) enum Payload<J> {
    /// It is decoded here.
    Job(J),
    /// It goes out as it is, in an encoding that the engine can decode: as payloads with their items, each of which decodes to
    /// one batch.
    Encoded(PdataEncoding, SignalType, Vec<(u64, Vec<u8>)>),
}

/// A batch taken out.
pub(super) struct Taken<J> {
    pub(super) payload: Payload<J>,
    /// Items that went into it.
    pub(super) items: u64,
    /// Bytes of input in it.
    pub(super) bytes: usize,
    /// When its first item came.
    pub(super) oldest: Option<Instant>,
}

/// Durations in seconds since they were read last.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Durations {
    /// Work of the decode job of a batch, without its pauses.
    pub(crate) decode: Mmsc,
    /// From the receipt of the first item of a batch until the batch has been handed on.
    pub(crate) receipt_to_send: Mmsc,
}

/// Adds the observations of `more` to `sum`.
pub(crate) fn merge(sum: &mut Mmsc, more: &Mmsc) {
    if more.count == 0 {
        return;
    }
    if sum.count == 0 {
        *sum = *more;
        return;
    }
    sum.min = sum.min.min(more.min);
    sum.max = sum.max.max(more.max);
    sum.sum += more.sum;
    sum.count += more.count;
}

/// Whether input may be dropped when the process is short of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnderPressure {
    /// It is shed: its sender cannot be made to wait.
    Shed,
    /// It is taken: it is in memory already, and its source waits before it reads on.
    Keep,
}

/// The meeting point of sources and receiver.
pub(crate) struct Intake<P> {
    pending: RefCell<P>,
    books: RefCell<Books>,
    limits: BatchConfig,
    oldest: Cell<Option<Instant>>,
    pressure: LocalReceiverAdmissionState,
    pub(super) in_flight: InFlight,
    durations: RefCell<Durations>,
    /// Wakes the receiver: something came, or a batch is full.
    arrived: Notify,
    /// Wakes the sources: a batch was taken out, or memory pressure has changed.
    changed: Notify,
    /// Tells the sources to take what is there already and end.
    pub(crate) stop: CancellationToken,
}

impl<P: Pending> Intake<P> {
    pub(crate) fn new(
        pending: P,
        limits: BatchConfig,
        in_flight: MaxInFlight,
        pressure: LocalReceiverAdmissionState,
    ) -> Self {
        Self {
            pending: RefCell::new(pending),
            books: RefCell::new(Books::default()),
            limits,
            oldest: Cell::new(None),
            pressure,
            in_flight: InFlight::new(in_flight.limit()),
            durations: RefCell::default(),
            arrived: Notify::new(),
            changed: Notify::new(),
            stop: CancellationToken::new(),
        }
    }

    pub(crate) fn books(&self) -> Ref<'_, Books> {
        self.books.borrow()
    }

    pub(crate) fn books_mut(&self) -> RefMut<'_, Books> {
        self.books.borrow_mut()
    }

    pub(super) fn durations_mut(&self) -> RefMut<'_, Durations> {
        self.durations.borrow_mut()
    }

    /// Durations since the last call.
    pub(crate) fn take_durations(&self) -> Durations {
        self.durations.take()
    }

    pub(crate) fn apply_pressure(&self, update: MemoryPressureChanged) {
        self.pressure.apply(update);
        self.changed.notify_waiters();
    }

    /// Adds input by `push`, which gives the number of items it added, and of those that a sampler has dropped. If it may be shed and memory is short, nothing is
    /// added and `items_if_shed` items are counted as shed; true if so.
    pub(crate) fn add<A: Into<Added>>(
        &self,
        items_if_shed: u64,
        under: UnderPressure,
        push: impl FnOnce(&mut P) -> A,
    ) -> bool {
        if self.sheds(under) {
            self.shed(items_if_shed);
            return true;
        }
        let Added { kept, sampled_out } = push(&mut self.pending.borrow_mut()).into();
        {
            let mut books = self.books.borrow_mut();
            books.received += kept + sampled_out;
            books.sampled_out += sampled_out;
        }
        if kept == 0 {
            return false;
        }
        let first = self.oldest.get().is_none();
        if first {
            self.oldest.set(Some(Instant::now()));
        }
        if first || self.is_full() {
            self.arrived.notify_one();
        }
        false
    }

    /// Counts input that a sampler has dropped, and that did not go through [`Intake::add`].
    pub(crate) fn add_sampled_out(&self, items: u64) {
        let mut books = self.books.borrow_mut();
        books.received += items;
        books.sampled_out += items;
    }

    /// Whether input is to be dropped now, for a source that finds out only then how much it would have been.
    pub(crate) fn sheds(&self, under: UnderPressure) -> bool {
        under == UnderPressure::Shed && self.pressure.should_shed_ingress()
    }

    /// Counts input that was dropped because [`Intake::sheds`] said so.
    pub(crate) fn shed(&self, items: u64) {
        let mut books = self.books.borrow_mut();
        books.received += items;
        books.shed += items;
    }

    /// Whether a source must wait before it adds more. This is what pushes back on senders when the next node is slow.
    pub(crate) fn is_full(&self) -> bool {
        let pending = self.pending.borrow();
        pending.items() >= self.limits.max_messages || pending.bytes() >= self.limits.max_bytes
    }

    /// Whether a source that can push back on its sender must wait: the batch is full, or memory is short.
    pub(crate) fn holds_back(&self) -> bool {
        self.is_full() || self.pressure.should_shed_ingress()
    }

    /// Waits until the batch has room.
    pub(crate) async fn room(&self) {
        self.wait_while(Self::is_full).await;
    }

    /// Waits until a source that can push back on its sender may go on.
    pub(crate) async fn let_on(&self) {
        self.wait_while(Self::holds_back).await;
    }

    async fn wait_while(&self, blocked: impl Fn(&Self) -> bool) {
        while blocked(self) {
            let changed = self.changed.notified();
            if blocked(self) {
                changed.await;
            }
        }
    }

    /// Bytes that wait for their batch to be taken out.
    pub(crate) fn bytes_waiting(&self) -> usize {
        self.pending.borrow().bytes()
    }

    /// Bytes in batches that were handed on and are still in memory; 0 if there is no limit for them.
    pub(crate) fn bytes_in_flight(&self) -> usize {
        self.in_flight.bytes()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.borrow().items() == 0
    }

    /// When the waiting input is to be sent on at the latest.
    pub(super) fn due(&self) -> Option<Instant> {
        self.oldest.get().map(|oldest| oldest + self.limits.max_duration)
    }

    /// Whether the waiting input may follow what is in flight.
    pub(super) fn may_follow(&self) -> bool {
        self.in_flight.has_room(self.bytes_waiting())
    }

    /// A job is not stepped any more.
    pub(super) fn done(&self, job: &P::Job) {
        self.pending.borrow_mut().done(job);
    }

    /// Looks at what is collected.
    pub(crate) fn with_pending<R>(&self, look: impl FnOnce(&P) -> R) -> R {
        look(&self.pending.borrow())
    }

    /// Works on what is collected.
    pub(crate) fn with_pending_mut<R>(&self, work: impl FnOnce(&mut P) -> R) -> R {
        work(&mut self.pending.borrow_mut())
    }

    pub(super) async fn arrival(&self) {
        self.arrived.notified().await;
    }

    pub(super) fn take(&self) -> Taken<P::Job> {
        let oldest = self.oldest.take();
        let mut pending = self.pending.borrow_mut();
        let bytes = pending.bytes();
        let payload = pending.take_payload();
        self.changed.notify_waiters();
        Taken { payload, items: self.books.borrow().waiting(), bytes, oldest }
    }
}

#[cfg(test)]
impl<P: Pending> Intake<P> {
    /// What the receiver's own task does: takes the batch out, with the number of its items.
    pub(crate) fn take_job_for_test(&self) -> (P::Job, u64) {
        let taken = self.take();
        match taken.payload {
            Payload::Job(job) => (job, taken.items),
            Payload::Encoded(..) => unreachable!("these batches are decoded"),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
