//! Metric set `receiver.ipfix`.

use std::rc::Rc;

use otel_arrow_dfe_telemetry::instrument::{Counter, Gauge, Mmsc};
use otel_arrow_dfe_telemetry::metrics::{MetricSet, MetricSetSnapshot};
use otel_arrow_dfe_telemetry::reporter::MetricsReporter;
use otel_arrow_dfe_telemetry_macros::metric_set;

use super::shared::{Shared, Totals};
use crate::ingest::{Books, Report, merge};

/// What the receiver did since the last report.
#[metric_set(name = "receiver.ipfix")]
#[derive(Debug, Default, Clone)]
pub struct IpfixMetrics {
    /// Datagrams received.
    #[metric(unit = "{datagram}")]
    pub datagrams_received: Counter<u64>,
    /// Datagrams that the kernel dropped because the receive buffer was full.
    #[metric(unit = "{datagram}")]
    pub datagrams_dropped_by_kernel: Counter<u64>,
    /// Bytes of datagrams.
    #[metric(unit = "By")]
    pub bytes_received: Counter<u64>,
    /// Messages with a readable header.
    #[metric(unit = "{message}")]
    pub messages_received: Counter<u64>,
    /// Messages without a readable header: other version, impossible length.
    #[metric(unit = "{message}")]
    pub messages_rejected: Counter<u64>,
    /// Messages malformed further on; what came before the fault was used.
    #[metric(unit = "{message}")]
    pub messages_incomplete: Counter<u64>,
    /// Faults in the bytes, of all kinds.
    #[metric(unit = "{error}")]
    pub problems: Counter<u64>,
    /// Data sets dropped because their template was not known.
    #[metric(unit = "{set}")]
    pub unknown_template_sets: Counter<u64>,
    /// Records (flows and options) taken in: the sum of sent, shed, failed and waiting.
    #[metric(unit = "{record}")]
    pub records_received: Counter<u64>,
    /// Those of the records that are options data.
    #[metric(unit = "{record}")]
    pub options_records_received: Counter<u64>,
    /// Records handed to the next node.
    #[metric(unit = "{record}")]
    pub records_sent: Counter<u64>,
    /// Records dropped under memory pressure.
    #[metric(unit = "{record}")]
    pub records_shed: Counter<u64>,
    /// Records lost because a batch could not be built or handed on.
    #[metric(unit = "{record}")]
    pub records_failed: Counter<u64>,
    /// Records taken in and waiting for their batch.
    #[metric(unit = "{record}")]
    pub records_waiting: Gauge<u64>,
    /// Sent records acknowledged by the end of the pipeline.
    #[metric(unit = "{record}")]
    pub records_acknowledged: Counter<u64>,
    /// Sent records refused for good downstream.
    #[metric(unit = "{record}")]
    pub records_refused: Counter<u64>,
    /// Batches handed to the next node.
    #[metric(unit = "{batch}")]
    pub batches_sent: Counter<u64>,
    /// Bytes of datagrams that wait for their batch.
    #[metric(unit = "By")]
    pub bytes_waiting: Gauge<u64>,
    /// Bytes of datagrams in batches that were handed on and are still in memory.
    #[metric(unit = "By")]
    pub bytes_in_flight: Gauge<u64>,
    /// From the receipt of the first record of a batch until the batch has been handed on.
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
    /// Templates learned.
    #[metric(unit = "{template}")]
    pub templates_new: Counter<u64>,
    /// Templates replaced by another definition of their id.
    #[metric(unit = "{template}")]
    pub templates_replaced: Counter<u64>,
    /// Templates forgotten because of a limit.
    #[metric(unit = "{template}")]
    pub templates_evicted: Counter<u64>,
    /// Records missing by the sequence numbers of IPFIX, and flows missing by those of v5.
    #[metric(unit = "{record}")]
    pub lost_records: Counter<u64>,
    /// Packets missing by the sequence numbers of v9.
    #[metric(unit = "{packet}")]
    pub lost_packets: Counter<u64>,
    /// Exporters known now.
    #[metric(unit = "{exporter}")]
    pub exporters: Gauge<u64>,
    /// Exporters forgotten because of the limit.
    #[metric(unit = "{exporter}")]
    pub exporters_evicted: Counter<u64>,
    /// Failed reads of sockets and files.
    #[metric(unit = "{error}")]
    pub receive_errors: Counter<u64>,
    /// Packets of replayed files that are no UDP datagrams. Counted at the end of a file.
    #[metric(unit = "{packet}")]
    pub replay_skipped: Counter<u64>,
}

/// What was forgotten, and what the kernel dropped.
#[derive(Debug, Clone, Copy, Default)]
struct Dropped {
    exporters: u64,
    datagrams: u64,
}

/// Turns sums into reports, and closes the account at the end.
pub(super) struct Metrics {
    set: MetricSet<IpfixMetrics>,
    shared: Rc<Shared>,
    told: (Books, Totals, Dropped),
}

impl Metrics {
    pub(super) fn new(set: MetricSet<IpfixMetrics>, shared: Rc<Shared>) -> Self {
        Self { set, shared, told: Default::default() }
    }

    fn update(&mut self) {
        let books = self.shared.intake.books().clone();
        let totals = self.shared.totals.borrow().clone();
        let exporters = self.shared.exporters.borrow();
        let (old_books, old_totals, old_dropped) = &self.told;
        if let Some(drops) = self.shared.drops.get() {
            drops.look();
        }
        let dropped = Dropped { exporters: exporters.evicted(), datagrams: self.shared.kernel_drops() };
        let durations = self.shared.intake.take_durations();
        let (now, old) = (&totals.admitted, &old_totals.admitted);
        let set = &mut self.set;
        set.datagrams_received.add(now.datagrams - old.datagrams);
        set.bytes_received.add(now.bytes - old.bytes);
        set.messages_received.add(now.messages - old.messages);
        set.messages_rejected.add(now.rejected_messages - old.rejected_messages);
        set.messages_incomplete.add(now.incomplete_messages - old.incomplete_messages);
        set.problems.add(now.problems.iter().sum::<u64>() - old.problems.iter().sum::<u64>());
        set.unknown_template_sets.add(now.unknown_template_sets - old.unknown_template_sets);
        set.records_received.add(books.received - old_books.received);
        set.options_records_received.add(now.options_records - old.options_records);
        // A send that failed after it was counted is taken back, so this sum alone may shrink by a batch.
        set.records_sent.add(books.sent.saturating_sub(old_books.sent));
        set.records_shed.add(books.shed - old_books.shed);
        set.records_failed.add(books.failed - old_books.failed);
        set.records_waiting.set(books.waiting());
        set.records_acknowledged.add(books.acknowledged - old_books.acknowledged);
        set.records_refused.add(books.refused - old_books.refused);
        set.batches_sent.add(books.batches - old_books.batches);
        set.decode_yields.add(books.yields - old_books.yields);
        set.templates_new.add(now.templates_new - old.templates_new);
        set.templates_replaced.add(now.templates_replaced - old.templates_replaced);
        set.templates_evicted.add(now.templates_evicted - old.templates_evicted);
        set.lost_records.add(now.lost_records + now.lost_flows - old.lost_records - old.lost_flows);
        set.lost_packets.add(now.lost_packets - old.lost_packets);
        set.exporters.set(exporters.len() as u64);
        set.exporters_evicted.add(dropped.exporters - old_dropped.exporters);
        set.datagrams_dropped_by_kernel.add(dropped.datagrams - old_dropped.datagrams);
        set.bytes_waiting.set(self.shared.intake.bytes_waiting() as u64);
        set.bytes_in_flight.set(self.shared.intake.bytes_in_flight() as u64);
        merge(&mut set.receipt_to_send_duration, &durations.receipt_to_send);
        merge(&mut set.decode_duration, &durations.decode);
        set.decode_steps.add(books.steps - old_books.steps);
        set.receive_errors.add(totals.receive_errors - old_totals.receive_errors);
        set.replay_skipped.add(totals.replay_skipped - old_totals.replay_skipped);
        self.told = (books, totals, dropped);
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
        let totals = self.shared.totals.borrow();
        let admitted = &totals.admitted;
        let notes = vec![
            ("datagrams", admitted.datagrams),
            ("malformed messages", admitted.rejected_messages + admitted.incomplete_messages),
            ("sets without template", admitted.unknown_template_sets),
            ("missing by sequence", admitted.lost_records + admitted.lost_flows + admitted.lost_packets),
            ("dropped by the kernel", self.shared.kernel_drops()),
            ("receive errors", totals.receive_errors),
        ];
        self.shared.intake.books().close(self.shared.name.clone(), "records", notes);
    }
}
