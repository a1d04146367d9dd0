//! What the sources of one receiver share.

use std::borrow::Borrow;
use std::cell::{OnceCell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use catchment_columns::syslog::{Parsed, Receipt, RowOptions, Source, SyslogBatch, SyslogJob, encoded};
use catchment_sampling::{Counts, SyslogMessage, Threshold};
use catchment_syslog::{Framer, Step};
use otel_arrow_dfe_config::SignalType;
use otel_arrow_dfe_otap::metrics::ReceiverMetrics;

use super::config::{Config, Emit};
use super::senders::Senders;
use crate::accounts::NodeName;
use crate::codecs::syslog_batch::SYSLOG_BATCH;
use crate::ingest::tcp::Connections;
use crate::ingest::{Added, Intake, KernelDrops, Payload, Pending, Rates, Sampling, UnderPressure};

/// A batch under construction and how its rows are to be written.
pub(super) struct SyslogPending {
    batch: SyslogBatch,
    rows: RowOptions,
    emit: Emit,
    pub(super) sampling: Option<Sampling>,
    /// What all messages so far were read as.
    pub(super) parsed: Parsed,
}

impl SyslogPending {
    pub(super) fn new(config: &Config, sampling: Option<Sampling>) -> Self {
        let (batch, parsed) = (SyslogBatch::new(), Parsed::default());
        Self { batch, rows: config.rows.clone(), emit: config.emit, sampling, parsed }
    }

    /// Adds a message, unless the sampler drops it: then it is not copied, and its source not looked for.
    #[inline]
    fn push<S: Borrow<Arc<Source>>>(
        &mut self,
        message: &[u8],
        sender: Option<IpAddr>,
        source: impl FnOnce() -> S,
        receipt: Receipt,
    ) -> Added {
        let threshold = match &mut self.sampling {
            None => Some(Threshold::KEEP_ALL),
            Some(sampling) => sampling.decide(&SyslogMessage { message, source: sender }, receipt.time_unix_nano),
        };
        let Some(threshold) = threshold else { return Added::SAMPLED_OUT };
        self.keep(message, source().borrow(), receipt, threshold)
    }

    /// Adds a message that has passed a threshold.
    #[inline]
    fn keep(&mut self, message: &[u8], source: &Arc<Source>, receipt: Receipt, threshold: Threshold) -> Added {
        self.batch.push_sampled(message, source, receipt, threshold);
        Added::from(1)
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

    fn take_payload(&mut self) -> Payload<SyslogJob> {
        let batch = self.batch.take();
        match self.emit {
            Emit::Records => Payload::Job(SyslogJob::new(batch, self.rows.clone())),
            Emit::Encoded => {
                let payload = (batch.len() as u64, encoded::encode(&batch, &self.rows));
                Payload::Encoded(SYSLOG_BATCH, SignalType::Logs, vec![payload])
            }
        }
    }

    fn done(&mut self, job: &SyslogJob) {
        self.parsed.add(&job.parsed());
    }
}

/// Sums over the life of the receiver, beside those of the intake.
#[derive(Debug, Clone, Default)]
pub(super) struct Counters {
    pub(super) bytes: u64,
    pub(super) truncated: u64,
    pub(super) empty: u64,
    pub(super) stray_delimiters: u64,
    pub(super) invalid_lengths: u64,
    pub(super) unexpected_ends: u64,
    pub(super) receive_errors: u64,
    pub(super) replay_skipped: u64,
}

impl Counters {
    pub(super) fn framing_errors(&self) -> u64 {
        self.stray_delimiters + self.invalid_lengths + self.unexpected_ends
    }
}

pub(super) struct Shared {
    pub(super) intake: Rc<Intake<SyslogPending>>,
    pub(super) counters: RefCell<Counters>,
    pub(super) name: NodeName,
    pub(super) rates: Rates,
    /// Of the TCP listener, once it is open.
    pub(super) connections: OnceCell<Rc<Connections>>,
    /// Of the UDP socket, once it is open.
    pub(super) drops: OnceCell<Rc<KernelDrops>>,
    /// The engine's metrics of messages at the border. They are not there in tests.
    pub(super) border: Option<RefCell<ReceiverMetrics>>,
    max_message_size: usize,
}

impl Shared {
    pub(super) fn new(
        intake: Intake<SyslogPending>,
        rates: Rates,
        border: Option<ReceiverMetrics>,
        name: NodeName,
        max_message_size: usize,
    ) -> Self {
        Self {
            intake: Rc::new(intake),
            counters: RefCell::default(),
            name,
            rates,
            connections: OnceCell::new(),
            drops: OnceCell::new(),
            border: border.map(RefCell::new),
            max_message_size,
        }
    }

    /// Takes in the message of a datagram, unless memory is short or its sender is over its rate.
    pub(super) fn take_datagram(&self, message: &[u8], peer: SocketAddr, senders: &Senders, receipt: Receipt) {
        let sender = peer.ip();
        if !message.is_empty() && !self.rates.admit(sender) {
            self.counters.borrow_mut().bytes += message.len() as u64;
            let mut books = self.intake.books_mut();
            books.received += 1;
            books.rate_limited += 1;
            self.tell_border(message.len(), false);
            return;
        }
        self.take(message, Some(sender), || senders.source(Some(peer)), receipt, UnderPressure::Shed);
    }

    /// Takes in one message without its frame; what is longer than the limit is cut. `source` is asked for if the message
    /// is kept.
    pub(super) fn take<S: Borrow<Arc<Source>>>(
        &self,
        message: &[u8],
        sender: Option<IpAddr>,
        source: impl FnOnce() -> S,
        receipt: Receipt,
        under: UnderPressure,
    ) {
        self.add(message, receipt, under, |pending, message, receipt| pending.push(message, sender, source, receipt));
    }

    /// Takes in a message that has been decided on already. Its sender waits.
    pub(super) fn take_kept(&self, message: &[u8], source: &Arc<Source>, receipt: Receipt, threshold: Threshold) {
        self.add(message, receipt, UnderPressure::Keep, |pending, message, receipt| {
            pending.keep(message, source, receipt, threshold)
        });
    }

    /// Counts a message, and has it put into the batch as it is to be written.
    #[inline]
    fn add(
        &self,
        message: &[u8],
        receipt: Receipt,
        under: UnderPressure,
        push: impl FnOnce(&mut SyslogPending, &[u8], Receipt) -> Added,
    ) {
        let (message, truncated) = self.cut(message, receipt.truncated);
        {
            let mut counters = self.counters.borrow_mut();
            counters.bytes += message.len() as u64;
            if message.is_empty() {
                counters.empty += 1;
                return;
            }
            counters.truncated += u64::from(truncated);
        }
        let receipt = Receipt { truncated, ..receipt };
        let shed = self.intake.add(1, under, |pending| push(pending, message, receipt));
        self.tell_border(message.len(), !shed);
    }

    /// The part of a message that is not beyond the limit, and whether anything is missing.
    #[inline]
    fn cut<'a>(&self, message: &'a [u8], truncated: bool) -> (&'a [u8], bool) {
        match message.get(..self.max_message_size) {
            Some(head) if head.len() < message.len() => (head, true),
            _ => (message, truncated),
        }
    }

    /// Goes through the messages at the front of a stream that the sampler drops, and only counts them. Gives the bytes of
    /// their frames and what is behind them; if that is a message it has been decided on, and is kept with this threshold.
    /// `None` if there is no sampler.
    ///
    /// What each message by itself would go through is gone through once for all of them.
    pub(super) fn skip_dropped<'a>(
        &self,
        framer: &mut Framer,
        bytes: &'a [u8],
        end: bool,
        sender: IpAddr,
        receipt: Receipt,
    ) -> Option<(usize, Step<'a>, Threshold)> {
        let mut border = self.border.as_ref().map(RefCell::borrow_mut);
        let mut counters = self.counters.borrow_mut();
        let (mut messages, mut done) = (0, 0);
        let (step, threshold) = self.intake.with_pending_mut(|pending| {
            let sampling = pending.sampling.as_mut()?;
            // Messages that are dropped whatever they are, and how many of them have come.
            let (mut ahead, mut passed) = (sampling.drops_ahead(), 0);
            let found = loop {
                let step = framer.next(bytes.get(done..).unwrap_or_default(), end);
                let Step::Frame { message, consumed, truncated } = step else { break (step, Threshold::KEEP_ALL) };
                let (message, truncated) = self.cut(message, truncated | receipt.truncated);
                if passed < ahead {
                    passed += 1;
                } else {
                    sampling.drop_ahead(std::mem::take(&mut passed));
                    let facts = SyslogMessage { message, source: Some(sender) };
                    if let Some(threshold) = sampling.decide(&facts, receipt.time_unix_nano) {
                        break (step, threshold);
                    }
                    ahead = sampling.drops_ahead();
                }
                counters.bytes += message.len() as u64;
                counters.truncated += u64::from(truncated);
                if let Some(border) = &mut border {
                    tell(border, message.len(), true);
                }
                messages += 1;
                done += consumed;
            };
            sampling.drop_ahead(passed);
            Some(found)
        })?;
        self.intake.add_sampled_out(messages);
        Some((done, step, threshold))
    }

    /// Counts a message in the engine's metrics of receivers.
    fn tell_border(&self, bytes: usize, taken: bool) {
        if let Some(border) = &self.border {
            tell(&mut border.borrow_mut(), bytes, taken);
        }
    }

    /// What the sampler has decided so far, if there is one.
    pub(super) fn sampling_counts(&self) -> Option<Counts> {
        self.intake.with_pending(|pending| pending.sampling.as_ref().map(Sampling::counts))
    }

    /// Datagrams that the kernel had no room for.
    pub(super) fn kernel_drops(&self) -> u64 {
        self.drops.get().map_or(0, |drops| drops.total())
    }
}

#[inline]
fn tell(border: &mut ReceiverMetrics, bytes: usize, taken: bool) {
    let completed = border.processing().run(|processing| {
        processing.set_payload_size_with(|| bytes);
        if taken { Ok((SignalType::Logs, ())) } else { Err(processing.refused(SignalType::Logs, ())) }
    });
    // The outcome is known already; this counts it.
    let _ = border.record(completed);
}

#[cfg(test)]
mod tests;
