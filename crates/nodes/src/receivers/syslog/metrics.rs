//! Metric set `receiver.syslog`.

use std::rc::Rc;

use otel_arrow_dfe_engine::Interests;
use otel_arrow_dfe_engine::context::PipelineContext;
use otel_arrow_dfe_otap::metrics::ReceiverMetrics;
use otel_arrow_dfe_telemetry::instrument::{Counter, Gauge, Mmsc};
use otel_arrow_dfe_telemetry::metrics::{MetricSet, MetricSetSnapshot};
use otel_arrow_dfe_telemetry::reporter::MetricsReporter;
use otel_arrow_dfe_telemetry_macros::metric_set;

use super::parsed::Told;
use super::shared::{Counters, Shared};
use crate::ingest::tcp::ConnectionCounters;
use crate::ingest::{Books, Report, SamplingReports, merge};

/// What the receiver did since the last report.
#[metric_set(name = "receiver.syslog")]
#[derive(Debug, Default, Clone)]
pub struct SyslogMetrics {
    /// Messages taken in: the sum of sent, shed, rate limited, sampled out, failed and waiting.
    #[metric(unit = "{message}")]
    pub messages_received: Counter<u64>,
    /// Messages handed to the next node.
    #[metric(unit = "{message}")]
    pub messages_sent: Counter<u64>,
    /// Messages dropped under memory pressure.
    #[metric(unit = "{message}")]
    pub messages_shed: Counter<u64>,
    /// Messages dropped because their sender was over its rate.
    #[metric(unit = "{message}")]
    pub messages_rate_limited: Counter<u64>,
    /// Messages that the sampler has dropped.
    #[metric(unit = "{message}")]
    pub messages_sampled_out: Counter<u64>,
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
    /// Datagrams that the kernel dropped because the receive buffer was full.
    #[metric(unit = "{datagram}")]
    pub datagrams_dropped_by_kernel: Counter<u64>,
    /// Datagrams without content; they are no messages.
    #[metric(unit = "{datagram}")]
    pub datagrams_empty: Counter<u64>,
    /// Bytes of messages, without frames.
    #[metric(unit = "By")]
    pub bytes_received: Counter<u64>,
    /// Batches handed to the next node.
    #[metric(unit = "{batch}")]
    pub batches_sent: Counter<u64>,
    /// Bytes of messages that wait for their batch.
    #[metric(unit = "By")]
    pub bytes_waiting: Gauge<u64>,
    /// Bytes that connections hold of messages that are not complete.
    #[metric(unit = "By")]
    pub bytes_buffered: Gauge<u64>,
    /// Bytes of messages in batches that were handed on and are still in memory.
    #[metric(unit = "By")]
    pub bytes_in_flight: Gauge<u64>,
    /// From the receipt of the first message of a batch until the batch has been handed on.
    #[metric(unit = "s")]
    pub receipt_to_send_duration: Mmsc,
    /// Work of decode jobs, a batch at a time, without their pauses.
    #[metric(unit = "s")]
    pub decode_duration: Mmsc,
    /// Steps of decode jobs.
    #[metric(unit = "{step}")]
    pub decode_steps: Counter<u64>,
    /// Pauses of decode jobs to let others run.
    #[metric(unit = "{yield}")]
    pub decode_yields: Counter<u64>,
    /// Errors in the framing of TCP streams, of all kinds.
    #[metric(unit = "{error}")]
    pub framing_errors: Counter<u64>,
    /// Of those, line ends and NULs between octet-counted messages; nothing is lost by them.
    #[metric(unit = "{error}")]
    pub framing_errors_stray_delimiter: Counter<u64>,
    /// Of those, what should be a length and is none; the connection is closed.
    #[metric(unit = "{error}")]
    pub framing_errors_invalid_length: Counter<u64>,
    /// Of those, streams that ended inside an octet-counted message.
    #[metric(unit = "{error}")]
    pub framing_errors_unexpected_end: Counter<u64>,
    /// Connections accepted.
    #[metric(unit = "{connection}")]
    pub connections_accepted: Counter<u64>,
    /// Connections closed at once because of a limit.
    #[metric(unit = "{connection}")]
    pub connections_refused: Counter<u64>,
    /// Of those, because of the limit for one source address.
    #[metric(unit = "{connection}")]
    pub connections_refused_per_source: Counter<u64>,
    /// Connections closed because nothing came for too long.
    #[metric(unit = "{connection}")]
    pub connections_idle_closed: Counter<u64>,
    /// Connections open now.
    #[metric(unit = "{connection}")]
    pub connections_open: Gauge<u64>,
    /// TLS handshakes that failed, and clients that spoke TLS to a port without.
    #[metric(unit = "{error}")]
    pub tls_handshake_errors: Counter<u64>,
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

/// The engine's metrics of messages at the border. Its duration is left out: it would be that of a copy, as messages
/// are decoded by the batch; see `decode_duration`.
pub(super) fn border(pipeline: &PipelineContext) -> ReceiverMetrics {
    let interests = pipeline.node_interests().difference(Interests::NODE_LOCAL_DURATION);
    ReceiverMetrics::register_with_distribution(pipeline, interests, pipeline.node_duration_distribution())
}

/// Turns sums into reports, and closes the account at the end.
pub(super) struct Metrics {
    set: MetricSet<SyslogMetrics>,
    shared: Rc<Shared>,
    parsed: Told,
    sampled: SamplingReports,
    told: (Books, Counters, ConnectionCounters, u64),
}

impl Metrics {
    pub(super) fn new(
        set: MetricSet<SyslogMetrics>,
        parsed: Told,
        sampled: SamplingReports,
        shared: Rc<Shared>,
    ) -> Self {
        Self { set, shared, parsed, sampled, told: Default::default() }
    }

    fn update(&mut self) {
        let books = self.shared.intake.books().clone();
        let counters = self.shared.counters.borrow().clone();
        let durations = self.shared.intake.take_durations();
        if let Some(drops) = self.shared.drops.get() {
            drops.look();
        }
        let drops = self.shared.kernel_drops();
        let listener = self.shared.connections.get();
        let connections = listener.map(|listener| listener.counters.borrow().clone()).unwrap_or_default();
        let (old_books, old, old_connections, old_drops) = &self.told;
        let set = &mut self.set;
        set.messages_received.add(books.received - old_books.received);
        // A send that failed after it was counted is taken back, so this sum alone may shrink by a batch.
        set.messages_sent.add(books.sent.saturating_sub(old_books.sent));
        set.messages_shed.add(books.shed - old_books.shed);
        set.messages_rate_limited.add(books.rate_limited - old_books.rate_limited);
        set.messages_sampled_out.add(books.sampled_out - old_books.sampled_out);
        set.messages_failed.add(books.failed - old_books.failed);
        set.messages_waiting.set(books.waiting());
        set.messages_acknowledged.add(books.acknowledged - old_books.acknowledged);
        set.messages_refused.add(books.refused - old_books.refused);
        set.batches_sent.add(books.batches - old_books.batches);
        set.datagrams_dropped_by_kernel.add(drops - old_drops);
        set.bytes_waiting.set(self.shared.intake.bytes_waiting() as u64);
        set.bytes_buffered.set(listener.map_or(0, |listener| listener.buffered.bytes()) as u64);
        set.bytes_in_flight.set(self.shared.intake.bytes_in_flight() as u64);
        merge(&mut set.receipt_to_send_duration, &durations.receipt_to_send);
        merge(&mut set.decode_duration, &durations.decode);
        set.decode_steps.add(books.steps - old_books.steps);
        set.decode_yields.add(books.yields - old_books.yields);
        set.messages_truncated.add(counters.truncated - old.truncated);
        set.datagrams_empty.add(counters.empty - old.empty);
        set.bytes_received.add(counters.bytes - old.bytes);
        set.framing_errors.add(counters.framing_errors() - old.framing_errors());
        set.framing_errors_stray_delimiter.add(counters.stray_delimiters - old.stray_delimiters);
        set.framing_errors_invalid_length.add(counters.invalid_lengths - old.invalid_lengths);
        set.framing_errors_unexpected_end.add(counters.unexpected_ends - old.unexpected_ends);
        set.connections_accepted.add(connections.accepted - old_connections.accepted);
        set.connections_refused.add(connections.all_refused() - old_connections.all_refused());
        set.connections_refused_per_source.add(connections.refused_of_source - old_connections.refused_of_source);
        set.connections_idle_closed.add(connections.idle_closed - old_connections.idle_closed);
        set.tls_handshake_errors.add(connections.handshake_errors - old_connections.handshake_errors);
        set.connections_open.set(connections.open);
        set.accept_errors.add(connections.accept_errors - old_connections.accept_errors);
        let read_errors = connections.read_errors - old_connections.read_errors;
        set.receive_errors.add(counters.receive_errors - old.receive_errors + read_errors);
        set.replay_skipped.add(counters.replay_skipped - old.replay_skipped);
        self.told = (books, counters, connections, drops);
        self.parsed.update(self.shared.intake.with_pending(|pending| pending.parsed));
        self.sampled.update(self.shared.sampling_counts());
    }
}

impl Report for Metrics {
    fn report(&mut self, reporter: &mut MetricsReporter) {
        self.update();
        // A full channel keeps the values for the next time.
        let _ = reporter.report(&mut self.set);
        self.parsed.report(reporter);
        self.sampled.report(reporter);
        if let Some(border) = &self.shared.border {
            let _ = border.borrow_mut().report(reporter);
        }
    }

    fn last(&mut self) -> Vec<MetricSetSnapshot> {
        self.update();
        let mut last = vec![self.set.snapshot()];
        last.extend(self.parsed.last());
        last.extend(self.sampled.last());
        if let Some(border) = &self.shared.border {
            last.extend(border.borrow_mut().terminal_snapshots());
        }
        last
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        let counters = self.shared.counters.borrow();
        let sampling = self.shared.sampling_counts();
        let listener = self.shared.connections.get();
        let connections = listener.map(|listener| listener.counters.borrow().clone()).unwrap_or_default();
        let errors = counters.receive_errors + connections.accept_errors + connections.read_errors;
        let notes = vec![
            ("truncated", counters.truncated),
            ("dropped by the kernel", self.shared.kernel_drops()),
            ("framing errors", counters.framing_errors()),
            ("receive errors", errors),
            ("connections refused", connections.all_refused()),
            ("connections closed idle", connections.idle_closed),
            ("tls handshake errors", connections.handshake_errors),
        ];
        self.shared.intake.books().close(self.shared.name.clone(), "messages", sampling.as_ref(), notes);
    }
}
