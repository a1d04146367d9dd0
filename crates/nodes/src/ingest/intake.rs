//! Input that waits for its batch to be emitted, shared by the sources of one receiver.

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::time::Duration;

use catchment_columns::Job;
use otel_arrow_dfe_config::error::Error;
use otel_arrow_dfe_engine::memory_limiter::LocalReceiverAdmissionState;
use serde::Deserialize;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::books::Books;
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

/// A batch under construction.
pub(crate) trait Pending: 'static {
    /// The job that decodes a batch.
    type Job: Job + 'static;
    /// Messages or records in it.
    fn items(&self) -> usize;
    /// Bytes of input in it.
    fn bytes(&self) -> usize;
    /// Takes the batch out as a job.
    fn take_job(&mut self) -> Self::Job;
}

/// The meeting point of sources and receiver.
pub(crate) struct Intake<P> {
    pending: RefCell<P>,
    books: RefCell<Books>,
    limits: BatchConfig,
    oldest: Cell<Option<Instant>>,
    pressure: RefCell<LocalReceiverAdmissionState>,
    /// Wakes the receiver: something came, or a batch is full.
    arrived: Notify,
    /// Wakes the sources: a batch was taken out.
    taken: Notify,
    /// Tells the sources to take what is there already and end.
    pub(crate) stop: CancellationToken,
}

impl<P: Pending> Intake<P> {
    pub(crate) fn new(pending: P, limits: BatchConfig, pressure: LocalReceiverAdmissionState) -> Self {
        Self {
            pending: RefCell::new(pending),
            books: RefCell::new(Books::default()),
            limits,
            oldest: Cell::new(None),
            pressure: RefCell::new(pressure),
            arrived: Notify::new(),
            taken: Notify::new(),
            stop: CancellationToken::new(),
        }
    }

    pub(crate) fn books(&self) -> Ref<'_, Books> {
        self.books.borrow()
    }

    pub(crate) fn books_mut(&self) -> RefMut<'_, Books> {
        self.books.borrow_mut()
    }

    pub(crate) fn apply_pressure(&self, update: otel_arrow_dfe_engine::memory_limiter::MemoryPressureChanged) {
        self.pressure.borrow_mut().apply(update);
    }

    /// Adds input by `push`, which gives the number of items it added. Under memory pressure nothing is added and
    /// `items_if_shed` items are counted as shed.
    pub(crate) fn add(&self, items_if_shed: u64, push: impl FnOnce(&mut P) -> u64) {
        if self.pressure.borrow().should_shed_ingress() {
            let mut books = self.books.borrow_mut();
            books.received += items_if_shed;
            books.shed += items_if_shed;
            return;
        }
        let added = push(&mut self.pending.borrow_mut());
        self.books.borrow_mut().received += added;
        let first = added > 0 && self.oldest.get().is_none();
        if first {
            self.oldest.set(Some(Instant::now()));
        }
        if first || self.is_full() {
            self.arrived.notify_one();
        }
    }

    /// Whether a source must wait before it reads on. This is what pushes back on senders when the next node is slow.
    pub(crate) fn is_full(&self) -> bool {
        let pending = self.pending.borrow();
        pending.items() >= self.limits.max_messages || pending.bytes() >= self.limits.max_bytes
    }

    /// Waits until there is room.
    pub(crate) async fn room(&self) {
        while self.is_full() {
            let taken = self.taken.notified();
            if self.is_full() {
                taken.await;
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.borrow().items() == 0
    }

    /// When the waiting input is to be sent on at the latest.
    pub(super) fn due(&self) -> Option<Instant> {
        self.oldest.get().map(|oldest| oldest + self.limits.max_duration)
    }

    pub(super) async fn arrival(&self) {
        self.arrived.notified().await;
    }

    pub(super) fn take_job(&self) -> P::Job {
        self.oldest.set(None);
        let job = self.pending.borrow_mut().take_job();
        self.taken.notify_waiters();
        job
    }
}
