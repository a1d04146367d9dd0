//! Metric set `receiver.ipfix`, and the sets of problems and exporters beside it.

use std::rc::Rc;

use catchment_ipfix::sonic::SonicCounters;
use catchment_ipfix::{CollectorCounters, Counters, Gauges};
use otel_arrow_dfe_telemetry::instrument::{Counter, Gauge, Mmsc};
use otel_arrow_dfe_telemetry::metrics::{MetricSet, MetricSetSnapshot};
use otel_arrow_dfe_telemetry::reporter::MetricsReporter;
use otel_arrow_dfe_telemetry_macros::metric_set;

use super::exporter_metrics::ExporterReports;
use super::pending::Decoded;
use super::problem_metrics::ProblemReports;
use super::shared::{Mode, Shared, Totals};
use super::sources::{files::FilesCounters, netlink::NetlinkCounters, redis::RedisCounters, unix::UnixCounters};
use super::tcp::StreamCounters;
use crate::ingest::tcp::ConnectionCounters;
use crate::ingest::{Books, Report, SamplingReports, merge};

/// What the receiver did since the last report.
#[metric_set(name = "receiver.ipfix")]
#[derive(Debug, Default, Clone)]
pub struct IpfixMetrics {
    /// Datagrams, and messages of streams, received.
    #[metric(unit = "{datagram}")]
    pub datagrams_received: Counter<u64>,
    /// Datagrams that the kernel dropped because the receive buffer was full.
    #[metric(unit = "{datagram}")]
    pub datagrams_dropped_by_kernel: Counter<u64>,
    /// Datagrams longer than what is read of one; they are dropped.
    #[metric(unit = "{datagram}")]
    pub datagrams_truncated: Counter<u64>,
    /// Datagrams dropped because their sender, or all together, were over their rate.
    #[metric(unit = "{datagram}")]
    pub datagrams_rate_limited: Counter<u64>,
    /// Datagrams dropped because there are too many exporters, in all or of their address.
    #[metric(unit = "{datagram}")]
    pub datagrams_refused: Counter<u64>,
    /// Datagrams dropped because nothing that their sender had sent for some time could be read.
    #[metric(unit = "{datagram}")]
    pub datagrams_shut_out: Counter<u64>,
    /// Bytes of datagrams.
    #[metric(unit = "By")]
    pub bytes_received: Counter<u64>,
    /// Bytes behind the last message of a datagram.
    #[metric(unit = "By")]
    pub bytes_trailing: Counter<u64>,
    /// Messages with a readable header.
    #[metric(unit = "{message}")]
    pub messages_received: Counter<u64>,
    /// Messages without a readable header: other version, impossible length.
    #[metric(unit = "{message}")]
    pub messages_rejected: Counter<u64>,
    /// Messages malformed further on; what came before the fault was used.
    #[metric(unit = "{message}")]
    pub messages_incomplete: Counter<u64>,
    /// Messages behind those that they should have come before, by their sequence number.
    #[metric(unit = "{message}")]
    pub messages_late: Counter<u64>,
    /// Times an exporter began to count anew.
    #[metric(unit = "{restart}")]
    pub sequence_restarts: Counter<u64>,
    /// Data sets whose template was not known when they came.
    #[metric(unit = "{set}")]
    pub unknown_template_sets: Counter<u64>,
    /// Those of them that were kept until the template comes.
    #[metric(unit = "{set}")]
    pub pending_sets_held: Counter<u64>,
    /// Kept sets whose template came.
    #[metric(unit = "{set}")]
    pub pending_sets_released: Counter<u64>,
    /// Kept sets that were dropped: too old, over a limit, or their exporter is gone.
    #[metric(unit = "{set}")]
    pub pending_sets_dropped: Counter<u64>,
    /// Kept sets that wait now.
    #[metric(unit = "{set}")]
    pub pending_sets: Gauge<u64>,
    /// Bytes of them.
    #[metric(unit = "By")]
    pub pending_bytes: Gauge<u64>,
    /// Data sets whose padding is not all zero.
    #[metric(unit = "{set}")]
    pub nonzero_padding_sets: Counter<u64>,
    /// Records (of SONiC, points) taken in: the sum of sent, shed, sampled out, unused, failed and waiting.
    #[metric(unit = "{record}")]
    pub records_received: Counter<u64>,
    /// Options records read.
    #[metric(unit = "{record}")]
    pub options_records_received: Counter<u64>,
    /// Records handed to the next node.
    #[metric(unit = "{record}")]
    pub records_sent: Counter<u64>,
    /// Records dropped under memory pressure.
    #[metric(unit = "{record}")]
    pub records_shed: Counter<u64>,
    /// Records that the sampler has dropped.
    #[metric(unit = "{record}")]
    pub records_sampled_out: Counter<u64>,
    /// Records that the configuration asks nothing of.
    #[metric(unit = "{record}")]
    pub records_unused: Counter<u64>,
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
    /// Values that do not fit the type of their element; they are kept as bytes.
    #[metric(unit = "{value}")]
    pub values_opaque: Counter<u64>,
    /// Values above the range of OTLP's integers.
    #[metric(unit = "{value}")]
    pub values_overflowed: Counter<u64>,
    /// Fields of templates whose element no table knows.
    #[metric(unit = "{field}")]
    pub unknown_elements: Counter<u64>,
    /// Templates learned.
    #[metric(unit = "{template}")]
    pub templates_new: Counter<u64>,
    /// Templates sent again as they were.
    #[metric(unit = "{template}")]
    pub templates_refreshed: Counter<u64>,
    /// Templates replaced by another definition of their id.
    #[metric(unit = "{template}")]
    pub templates_replaced: Counter<u64>,
    /// Templates forgotten because of a withdrawal.
    #[metric(unit = "{template}")]
    pub templates_withdrawn: Counter<u64>,
    /// Templates forgotten because a new definition of their id cannot be used.
    #[metric(unit = "{template}")]
    pub templates_invalidated: Counter<u64>,
    /// Templates forgotten because they were not sent again for long.
    #[metric(unit = "{template}")]
    pub templates_expired: Counter<u64>,
    /// Templates forgotten because of a limit.
    #[metric(unit = "{template}")]
    pub templates_evicted: Counter<u64>,
    /// Templates not taken because there is no room among those of all exporters.
    #[metric(unit = "{template}")]
    pub templates_refused: Counter<u64>,
    /// Templates kept over a restart that came into use.
    #[metric(unit = "{template}")]
    pub templates_from_cache: Counter<u64>,
    /// Templates known now.
    #[metric(unit = "{template}")]
    pub templates: Gauge<u64>,
    /// Failed writes of the template cache.
    #[metric(unit = "{error}")]
    pub template_cache_errors: Counter<u64>,
    /// Records missing by the sequence numbers of IPFIX, and flows missing by those of v5.
    #[metric(unit = "{record}")]
    pub lost_records: Counter<u64>,
    /// Packets missing by the sequence numbers of v9.
    #[metric(unit = "{packet}")]
    pub lost_packets: Counter<u64>,
    /// Exporters known now: source addresses with their ports, connections, files.
    #[metric(unit = "{exporter}")]
    pub exporters: Gauge<u64>,
    /// Exporters forgotten to make room.
    #[metric(unit = "{exporter}")]
    pub exporters_evicted: Counter<u64>,
    /// TCP connections accepted.
    #[metric(unit = "{connection}")]
    pub connections_accepted: Counter<u64>,
    /// TCP connections closed at once because of a limit.
    #[metric(unit = "{connection}")]
    pub connections_refused: Counter<u64>,
    /// TCP connections closed because nothing came for long.
    #[metric(unit = "{connection}")]
    pub connections_idle_closed: Counter<u64>,
    /// TCP connections open now.
    #[metric(unit = "{connection}")]
    pub connections_open: Gauge<u64>,
    /// TLS handshakes that failed.
    #[metric(unit = "{error}")]
    pub tls_handshake_errors: Counter<u64>,
    /// TCP connections closed because no message begins where one should.
    #[metric(unit = "{error}")]
    pub framing_errors: Counter<u64>,
    /// Messages lost because their connection ended inside of them.
    #[metric(unit = "{message}")]
    pub messages_cut_off: Counter<u64>,
    /// SONiC's payloads dropped whole: framing, or a limit.
    #[metric(unit = "{payload}")]
    pub sonic_payloads_rejected: Counter<u64>,
    /// SONiC's telemetry sessions known now.
    #[metric(unit = "{session}")]
    pub sonic_sessions: Gauge<u64>,
    /// Rows of SONiC's session table that cannot be used.
    #[metric(unit = "{session}")]
    pub sonic_sessions_refused: Counter<u64>,
    /// Tries to reach SONiC's database that failed, and connections to it that broke.
    #[metric(unit = "{error}")]
    pub redis_failures: Counter<u64>,
    /// Tries to join the kernel's group that failed, and times it vanished.
    #[metric(unit = "{error}")]
    pub netlink_failures: Counter<u64>,
    /// Times the kernel dropped payloads because the receive buffer was full. How many they were it does not tell.
    #[metric(unit = "{overrun}")]
    pub netlink_overruns: Counter<u64>,
    /// Failed reads of sockets and files.
    #[metric(unit = "{error}")]
    pub receive_errors: Counter<u64>,
    /// Packets of replayed files that are no UDP datagrams. Counted at the end of a file.
    #[metric(unit = "{packet}")]
    pub replay_skipped: Counter<u64>,
}

/// All sums of the receiver at one moment.
#[derive(Debug, Clone, Default)]
struct Sums {
    books: Books,
    totals: Totals,
    flows: Counters,
    collector: CollectorCounters,
    sonic: SonicCounters,
    decoded: Decoded,
    connections: ConnectionCounters,
    streams: StreamCounters,
    netlink: NetlinkCounters,
    unix: UnixCounters,
    redis: RedisCounters,
    files: FilesCounters,
    kernel_drops: u64,
}

impl Sums {
    fn of(shared: &Shared) -> Self {
        let (flows, collector, sonic) = match &shared.mode {
            Mode::Flows(flows) => (flows.admitted(), flows.collected(), SonicCounters::default()),
            Mode::Sonic(sonic) => (Counters::default(), CollectorCounters::default(), sonic.counters()),
        };
        let connections = shared.connections.get();
        Self {
            books: shared.intake.books().clone(),
            totals: shared.totals.borrow().clone(),
            flows,
            collector,
            sonic,
            decoded: shared.intake.with_pending(|pending| pending.decoded),
            connections: connections.map(|all| all.counters.borrow().clone()).unwrap_or_default(),
            streams: *shared.streams.borrow(),
            netlink: *shared.netlink.borrow(),
            unix: *shared.unix.borrow(),
            redis: *shared.redis.borrow(),
            files: *shared.files.borrow(),
            kernel_drops: shared.kernel_drops(),
        }
    }

    fn datagrams(&self) -> u64 {
        self.flows.datagrams + self.sonic.payloads
    }

    fn truncated(&self) -> u64 {
        self.totals.truncated_datagrams + self.netlink.truncated + self.unix.truncated
    }

    fn pending_dropped(&self) -> u64 {
        let collector = &self.collector;
        collector.pending_dropped_age + collector.pending_dropped_limit + collector.pending_dropped_closed
    }

    fn exporters_evicted(&self) -> u64 {
        let collector = &self.collector;
        collector.newcomers_evicted + collector.newcomers_evicted_for_room + collector.idle_evicted
    }

    fn payloads_rejected(&self) -> u64 {
        self.sonic.rejected_framing + self.sonic.rejected_limit
    }

    fn receive_errors(&self) -> u64 {
        let connections = self.connections.accept_errors + self.connections.read_errors;
        let sources = self.netlink.receive_errors + self.netlink.damaged + self.unix.receive_errors + self.files.errors;
        self.totals.receive_errors + connections + sources
    }
}

/// Turns sums into reports, and closes the account at the end.
pub(super) struct Metrics {
    set: MetricSet<IpfixMetrics>,
    problems: ProblemReports,
    exporters: ExporterReports,
    sampled: SamplingReports,
    shared: Rc<Shared>,
    told: Sums,
}

impl Metrics {
    pub(super) fn new(
        set: MetricSet<IpfixMetrics>,
        problems: ProblemReports,
        exporters: ExporterReports,
        sampled: SamplingReports,
        shared: Rc<Shared>,
    ) -> Self {
        Self { set, problems, exporters, sampled, shared, told: Sums::default() }
    }

    fn update(&mut self) {
        if let Some(drops) = self.shared.drops.get() {
            drops.look();
        }
        let now = Sums::of(&self.shared);
        let old = std::mem::replace(&mut self.told, now.clone());
        let set = &mut self.set;
        // A send that failed after it was counted is taken back, so that sum alone may shrink by a batch.
        macro_rules! tell {
            ($($field:ident: |$sums:ident| $value:expr;)*) => {
                $(
                    let value = |$sums: &Sums| -> u64 { $value };
                    set.$field.add(value(&now).saturating_sub(value(&old)));
                )*
            };
        }
        tell! {
            datagrams_received: |s| s.datagrams();
            datagrams_dropped_by_kernel: |s| s.kernel_drops;
            datagrams_truncated: |s| s.truncated();
            datagrams_rate_limited: |s| s.totals.rate_limited;
            datagrams_refused: |s| s.collector.refused_sessions + s.collector.refused_sessions_of_address;
            datagrams_shut_out: |s| s.collector.refused_shut_out;
            bytes_received: |s| s.flows.bytes + s.sonic.bytes;
            bytes_trailing: |s| s.flows.trailing_bytes;
            messages_received: |s| s.flows.messages + s.sonic.messages;
            messages_rejected: |s| s.flows.rejected_messages;
            messages_incomplete: |s| s.flows.incomplete_messages;
            messages_late: |s| s.flows.late_messages;
            sequence_restarts: |s| s.flows.sequence_restarts;
            unknown_template_sets: |s| s.flows.unknown_template_sets + s.sonic.unknown_template_sets;
            pending_sets_held: |s| s.collector.pending_held_sets;
            pending_sets_released: |s| s.collector.pending_released_sets;
            pending_sets_dropped: |s| s.pending_dropped();
            nonzero_padding_sets: |s| s.flows.nonzero_padding_sets + s.sonic.nonzero_padding_sets;
            records_received: |s| s.books.received;
            options_records_received: |s| s.flows.options_records;
            records_sent: |s| s.books.sent;
            records_shed: |s| s.books.shed;
            records_sampled_out: |s| s.books.sampled_out;
            records_unused: |s| s.books.unused;
            records_failed: |s| s.books.failed;
            records_acknowledged: |s| s.books.acknowledged;
            records_refused: |s| s.books.refused;
            batches_sent: |s| s.books.batches;
            decode_steps: |s| s.books.steps;
            decode_yields: |s| s.books.yields;
            values_opaque: |s| s.decoded.flows.opaque_values;
            values_overflowed: |s| s.decoded.flows.overflowed_values + s.decoded.overflowed_points;
            unknown_elements: |s| s.flows.unknown_elements;
            templates_new: |s| s.flows.templates_new + s.sonic.templates_learned;
            templates_refreshed: |s| s.flows.templates_refreshed;
            templates_replaced: |s| s.flows.templates_replaced;
            templates_withdrawn: |s| s.flows.templates_withdrawn + s.sonic.templates_withdrawn;
            templates_invalidated: |s| s.flows.templates_invalidated;
            templates_expired: |s| s.flows.templates_expired;
            templates_evicted: |s| s.flows.templates_evicted + s.sonic.templates_evicted;
            templates_refused: |s| s.flows.templates_refused + s.sonic.templates_refused;
            templates_from_cache: |s| s.flows.templates_provisional;
            template_cache_errors: |s| s.totals.template_cache_errors;
            lost_records: |s| s.flows.lost_records + s.flows.lost_flows;
            lost_packets: |s| s.flows.lost_packets;
            exporters_evicted: |s| s.exporters_evicted();
            connections_accepted: |s| s.connections.accepted;
            connections_refused: |s| s.connections.all_refused();
            connections_idle_closed: |s| s.connections.idle_closed;
            tls_handshake_errors: |s| s.connections.handshake_errors;
            framing_errors: |s| s.streams.framing_errors;
            messages_cut_off: |s| s.streams.incomplete_messages;
            sonic_payloads_rejected: |s| s.payloads_rejected();
            sonic_sessions_refused: |s| s.sonic.sessions_refused + s.redis.rows_refused;
            redis_failures: |s| s.redis.failures;
            netlink_failures: |s| s.netlink.failures;
            netlink_overruns: |s| s.netlink.overruns;
            receive_errors: |s| s.receive_errors();
            replay_skipped: |s| s.totals.replay_skipped;
        }
        self.problems.update(&now.flows.problems);
        self.sampled.update(self.shared.sampling_counts());
        self.gauges(&now);
    }

    fn gauges(&mut self, now: &Sums) {
        let (set, intake) = (&mut self.set, &self.shared.intake);
        let durations = intake.take_durations();
        merge(&mut set.receipt_to_send_duration, &durations.receipt_to_send);
        merge(&mut set.decode_duration, &durations.decode);
        set.records_waiting.set(now.books.waiting());
        set.bytes_waiting.set(intake.bytes_waiting() as u64);
        set.bytes_in_flight.set(intake.bytes_in_flight() as u64);
        set.connections_open.set(now.connections.open);
        match &self.shared.mode {
            Mode::Flows(flows) => {
                let Gauges { sessions, templates, pending_sets, pending_bytes, .. } = flows.gauges();
                set.exporters.set(sessions as u64);
                set.templates.set(templates as u64);
                set.pending_sets.set(pending_sets as u64);
                set.pending_bytes.set(pending_bytes as u64);
                self.exporters.update(&flows.exporters());
            }
            Mode::Sonic(sonic) => set.sonic_sessions.set(sonic.sessions() as u64),
        }
    }
}

impl Report for Metrics {
    fn report(&mut self, reporter: &mut MetricsReporter) {
        self.update();
        // A full channel keeps the values for the next time.
        let _ = reporter.report(&mut self.set);
        self.problems.report(reporter);
        self.exporters.report(reporter);
        self.sampled.report(reporter);
    }

    fn last(&mut self) -> Vec<MetricSetSnapshot> {
        self.update();
        let mut last = vec![self.set.snapshot()];
        last.extend(self.problems.last());
        last.extend(self.exporters.last());
        last.extend(self.sampled.last());
        last
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        let sums = Sums::of(&self.shared);
        let waiting = match &self.shared.mode {
            Mode::Flows(flows) => flows.gauges().pending_sets as u64,
            Mode::Sonic(_) => 0,
        };
        let malformed = sums.flows.rejected_messages + sums.flows.incomplete_messages;
        let refused = sums.collector.refused_sessions
            + sums.collector.refused_sessions_of_address
            + sums.collector.refused_shut_out;
        let notes = vec![
            ("datagrams", sums.datagrams()),
            ("malformed messages", malformed + sums.payloads_rejected()),
            ("sets without template", sums.flows.unknown_template_sets + sums.sonic.unknown_template_sets),
            ("sets held", sums.collector.pending_held_sets),
            ("sets released", sums.collector.pending_released_sets),
            ("sets held and dropped", sums.pending_dropped()),
            ("sets still held", waiting),
            ("missing by sequence", sums.flows.lost_records + sums.flows.lost_flows + sums.flows.lost_packets),
            ("datagrams refused", refused),
            ("datagrams rate limited", sums.totals.rate_limited),
            ("dropped by the kernel", sums.kernel_drops),
            ("overruns of netlink", sums.netlink.overruns),
            ("framing errors", sums.streams.framing_errors),
            ("messages cut off", sums.streams.incomplete_messages),
            ("connections refused", sums.connections.all_refused()),
            ("tls handshake errors", sums.connections.handshake_errors),
            ("receive errors", sums.receive_errors()),
        ];
        let sampling = self.shared.sampling_counts();
        let items = if self.shared.sonic().is_some() { "points" } else { "records" };
        self.shared.intake.books().close(self.shared.name.clone(), items, sampling.as_ref(), notes);
    }
}
