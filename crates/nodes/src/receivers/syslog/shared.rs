//! What the sources of one receiver share.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use catchment_columns::syslog::{Receipt, RowOptions, Source, SyslogBatch, SyslogJob, Transport};
use catchment_syslog::Zone;
use otel_arrow_dfe_engine::memory_limiter::LocalReceiverAdmissionState;

use super::config::Config;
use crate::accounts::NodeName;
use crate::ingest::{BatchConfig, Intake, Pending};

/// A batch under construction and how its rows are to be written.
pub(super) struct SyslogPending {
    batch: SyslogBatch,
    rows: RowOptions,
}

impl SyslogPending {
    pub(super) fn new(config: &Config) -> Self {
        Self { batch: SyslogBatch::new(), rows: config.rows.clone() }
    }
}

impl Pending for SyslogPending {
    type Job = SyslogJob;

    fn items(&self) -> usize {
        self.batch.len()
    }

    fn bytes(&self) -> usize {
        self.batch.bytes()
    }

    fn take_job(&mut self) -> SyslogJob {
        SyslogJob::new(self.batch.take(), self.rows.clone())
    }
}

/// Sums over the life of the receiver, beside those of the intake.
#[derive(Debug, Clone, Default)]
pub(super) struct Counters {
    pub(super) bytes: u64,
    pub(super) truncated: u64,
    pub(super) empty: u64,
    pub(super) framing_errors: u64,
    pub(super) connections_accepted: u64,
    pub(super) connections_refused: u64,
    pub(super) connections_open: u64,
    pub(super) accept_errors: u64,
    pub(super) receive_errors: u64,
    pub(super) replay_skipped: u64,
}

pub(super) struct Shared {
    pub(super) intake: Rc<Intake<SyslogPending>>,
    pub(super) counters: RefCell<Counters>,
    pub(super) name: NodeName,
    zone: Arc<Zone>,
    max_message_size: usize,
}

impl Shared {
    pub(super) fn new(
        pending: SyslogPending,
        limits: BatchConfig,
        pressure: LocalReceiverAdmissionState,
        name: NodeName,
        zone: Arc<Zone>,
        max_message_size: usize,
    ) -> Self {
        let intake = Rc::new(Intake::new(pending, limits, pressure));
        Self { intake, counters: RefCell::default(), name, zone, max_message_size }
    }

    /// The source of a sender.
    pub(super) fn source(&self, peer: Option<SocketAddr>, transport: Transport) -> Arc<Source> {
        Arc::new(Source::new(peer, transport, Arc::clone(&self.zone)))
    }

    /// Takes in one message without its frame; what is longer than the limit is cut.
    pub(super) fn take(&self, message: &[u8], source: &Arc<Source>, receipt: Receipt) {
        let (message, truncated) = match message.get(..self.max_message_size) {
            Some(head) if head.len() < message.len() => (head, true),
            _ => (message, receipt.truncated),
        };
        {
            let mut counters = self.counters.borrow_mut();
            counters.bytes += message.len() as u64;
            if message.is_empty() {
                counters.empty += 1;
                return;
            }
            counters.truncated += u64::from(truncated);
        }
        self.intake.add(1, |pending| {
            pending.batch.push(message, source, Receipt { truncated, ..receipt });
            1
        });
    }
}
