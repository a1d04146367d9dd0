//! Metric set `receiver.syslog`.

use std::rc::Rc;

use otel_arrow_dfe_telemetry::instrument::{Counter, Gauge};
use otel_arrow_dfe_telemetry::metrics::{MetricSet, MetricSetSnapshot};
use otel_arrow_dfe_telemetry::reporter::MetricsReporter;
use otel_arrow_dfe_telemetry_macros::metric_set;

use super::shared::{Counters, Shared};
use crate::ingest::{Books, Report};

/// What the receiver did since the last report.
#[metric_set(name = "receiver.syslog")]
#[derive(Debug, Default, Clone)]
pub struct SyslogMetrics {
    /// Messages taken in: the sum of sent, shed, failed and waiting.
    #[metric(unit = "{message}")]
    pub messages_received: Counter<u64>,
    /// Messages handed to the next node.
    #[metric(unit = "{message}")]
    pub messages_sent: Counter<u64>,
    /// Messages dropped under memory pressure.
    #[metric(unit = "{message}")]
    pub messages_shed: Counter<u64>,
    /// Messages lost because a batch could not be built or handed on.
    #[metric(unit = "{message}")]
    pub messages_failed: Counter<u64>,
    /// Messages taken in and waiting for their batch.
    #[metric(unit = "{message}")]
    pub messages_waiting: Gauge<u64>,
    /// Sent messages acknowledged by the end of the pipeline.
    #[metric(unit = "{message}")]
    pub messages_acknowledged: Counter<u64>,
    /// Sent messages refused for good downstream.
    #[metric(unit = "{message}")]
    pub messages_refused: Counter<u64>,
    /// Messages of which only the beginning was kept.
    #[metric(unit = "{message}")]
    pub messages_truncated: Counter<u64>,
    /// Datagrams without content; they are no messages.
    #[metric(unit = "{datagram}")]
    pub datagrams_empty: Counter<u64>,
    /// Bytes of messages, without frames.
    #[metric(unit = "By")]
    pub bytes_received: Counter<u64>,
    /// Batches handed to the next node.
    #[metric(unit = "{batch}")]
    pub batches_sent: Counter<u64>,
    /// Pauses of decode jobs to let others run.
    #[metric(unit = "{yield}")]
    pub decode_yields: Counter<u64>,
    /// Errors in the framing of TCP streams.
    #[metric(unit = "{error}")]
    pub framing_errors: Counter<u64>,
    /// Connections accepted.
    #[metric(unit = "{connection}")]
    pub connections_accepted: Counter<u64>,
    /// Connections closed at once because of the limit.
    #[metric(unit = "{connection}")]
    pub connections_refused: Counter<u64>,
    /// Connections open now.
    #[metric(unit = "{connection}")]
    pub connections_open: Gauge<u64>,
    /// Failed accepts.
    #[metric(unit = "{error}")]
    pub accept_errors: Counter<u64>,
    /// Failed reads of sockets and connections.
    #[metric(unit = "{error}")]
    pub receive_errors: Counter<u64>,
    /// Packets of replayed files that hold no message: other protocols, fragments, empty lines. Counted at the end of a
    /// file.
    #[metric(unit = "{packet}")]
    pub replay_skipped: Counter<u64>,
}

/// Turns sums into reports, and closes the account at the end.
pub(super) struct Metrics {
    set: MetricSet<SyslogMetrics>,
    shared: Rc<Shared>,
    told: (Books, Counters),
}

impl Metrics {
    pub(super) fn new(set: MetricSet<SyslogMetrics>, shared: Rc<Shared>) -> Self {
        Self { set, shared, told: Default::default() }
    }

    fn update(&mut self) {
        let books = self.shared.intake.books().clone();
        let counters = self.shared.counters.borrow().clone();
        let (old_books, old) = &self.told;
        let set = &mut self.set;
        set.messages_received.add(books.received - old_books.received);
        // A send that failed after it was counted is taken back, so this sum alone may shrink by a batch.
        set.messages_sent.add(books.sent.saturating_sub(old_books.sent));
        set.messages_shed.add(books.shed - old_books.shed);
        set.messages_failed.add(books.failed - old_books.failed);
        set.messages_waiting.set(books.waiting());
        set.messages_acknowledged.add(books.acknowledged - old_books.acknowledged);
        set.messages_refused.add(books.refused - old_books.refused);
        set.batches_sent.add(books.batches - old_books.batches);
        set.decode_yields.add(books.yields - old_books.yields);
        set.messages_truncated.add(counters.truncated - old.truncated);
        set.datagrams_empty.add(counters.empty - old.empty);
        set.bytes_received.add(counters.bytes - old.bytes);
        set.framing_errors.add(counters.framing_errors - old.framing_errors);
        set.connections_accepted.add(counters.connections_accepted - old.connections_accepted);
        set.connections_refused.add(counters.connections_refused - old.connections_refused);
        set.connections_open.set(counters.connections_open);
        set.accept_errors.add(counters.accept_errors - old.accept_errors);
        set.receive_errors.add(counters.receive_errors - old.receive_errors);
        set.replay_skipped.add(counters.replay_skipped - old.replay_skipped);
        self.told = (books, counters);
    }
}

impl Report for Metrics {
    fn report(&mut self, reporter: &mut MetricsReporter) {
        self.update();
        // A full channel keeps the values for the next time.
        let _ = reporter.report(&mut self.set);
    }

    fn last(&mut self) -> Vec<MetricSetSnapshot> {
        self.update();
        vec![self.set.snapshot()]
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        let counters = self.shared.counters.borrow();
        let notes = vec![
            ("truncated", counters.truncated),
            ("framing errors", counters.framing_errors),
            ("receive errors", counters.accept_errors + counters.receive_errors),
            ("connections refused", counters.connections_refused),
        ];
        self.shared.intake.books().close(self.shared.name.clone(), "messages", notes);
    }
}
