//! What the sources of one receiver share, and how a datagram is admitted.

use std::cell::{OnceCell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use catchment_columns::flow::{FlowBatch, FlowJob, FlowReceipt};
use catchment_ipfix::{Admitted, Counters, Limits, ProblemKind};
use otel_arrow_dfe_engine::memory_limiter::LocalReceiverAdmissionState;

use super::config::Config;
use super::exporters::Exporters;
use crate::accounts::NodeName;
use crate::ingest::{Intake, KernelDrops, Payload, Pending, UnderPressure};

/// At most one warning in this time; what happened in between is in the counters.
const WARNING_INTERVAL: Duration = Duration::from_secs(5);

impl Pending for FlowBatch {
    type Job = FlowJob;

    fn items(&self) -> usize {
        self.len()
    }

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }

    fn take_payload(&mut self) -> Payload<FlowJob> {
        Payload::Job(FlowJob::new(self.take()))
    }
}

/// Sums over the life of the receiver that the sessions do not keep.
#[derive(Debug, Clone, Default)]
pub(super) struct Totals {
    pub(super) admitted: Counters,
    pub(super) receive_errors: u64,
    pub(super) replay_skipped: u64,
}

pub(super) struct Shared {
    pub(super) intake: Rc<Intake<FlowBatch>>,
    pub(super) exporters: RefCell<Exporters>,
    admitted: RefCell<Admitted>,
    pub(super) totals: RefCell<Totals>,
    warned: RefCell<Option<Instant>>,
    pub(super) name: NodeName,
    /// Of the UDP socket, once it is open.
    pub(super) drops: OnceCell<Rc<KernelDrops>>,
}

impl Shared {
    pub(super) fn new(config: &Config, pressure: LocalReceiverAdmissionState, name: NodeName) -> Self {
        let limits = Limits { max_templates: config.max_templates, ..Limits::default() };
        Self {
            intake: Rc::new(Intake::new(
                FlowBatch::default(),
                config.batch.clone(),
                config.max_in_flight_bytes,
                pressure,
            )),
            exporters: RefCell::new(Exporters::new(config.max_exporters, limits)),
            admitted: RefCell::default(),
            totals: RefCell::default(),
            warned: RefCell::default(),
            name,
            drops: OnceCell::new(),
        }
    }

    /// Admits a datagram and puts its data sets into the batch. Templates are learned even if records are shed.
    pub(super) fn take(&self, datagram: &[u8], exporter: Option<SocketAddr>, time_unix_nano: i64) {
        let mut admitted = self.admitted.borrow_mut();
        admitted.clear();
        self.exporters.borrow_mut().session(exporter).admit(datagram, &mut admitted);
        add(&mut self.totals.borrow_mut().admitted, &admitted.counters);
        self.warn(&admitted, exporter);
        let records = admitted.counters.flow_records + admitted.counters.options_records;
        let receipt = FlowReceipt { time_unix_nano, exporter };
        let push = |batch: &mut FlowBatch| batch.push(datagram, &mut admitted, receipt) as u64;
        let _ = self.intake.add(records, UnderPressure::Shed, push);
    }

    /// Datagrams that the kernel had no room for.
    pub(super) fn kernel_drops(&self) -> u64 {
        self.drops.get().map_or(0, |drops| drops.total())
    }

    fn warn(&self, admitted: &Admitted, exporter: Option<SocketAddr>) {
        let unknown = admitted.unknown_sets.first();
        let problem = admitted.problems.iter().find(|problem| problem.kind != ProblemKind::UnknownTemplate);
        if unknown.is_none() && problem.is_none() {
            return;
        }
        let mut warned = self.warned.borrow_mut();
        if warned.is_some_and(|at| at.elapsed() < WARNING_INTERVAL) {
            return;
        }
        *warned = Some(Instant::now());
        let exporter = exporter.map_or_else(|| "file".to_owned(), |address| address.to_string());
        if let Some(problem) = problem {
            otel_warn!(
                "ipfix_receiver.malformed",
                exporter = exporter.as_str(),
                offset = problem.offset,
                kind = problem.kind.as_str(),
                problem = %problem.fault
            );
        } else if let Some(set) = unknown {
            otel_warn!(
                "ipfix_receiver.unknown_template",
                exporter = exporter.as_str(),
                template_id = set.template_id,
                message = "data without its template is dropped; normal until the exporter sends its templates again"
            );
        }
    }
}

/// Adds the counts of one datagram to the sums.
fn add(total: &mut Counters, one: &Counters) {
    let Counters {
        datagrams,
        bytes,
        header_bytes,
        template_bytes,
        record_bytes,
        padding_bytes,
        skipped_bytes,
        discarded_bytes,
        trailing_bytes,
        messages,
        incomplete_messages,
        rejected_messages,
        data_sets,
        unknown_template_sets,
        nonzero_padding_sets,
        flow_records,
        options_records,
        templates_new,
        templates_refreshed,
        templates_replaced,
        templates_withdrawn,
        templates_invalidated,
        templates_evicted,
        templates_expired,
        domains_evicted,
        lost_records,
        lost_packets,
        lost_flows,
        late_messages,
        sequence_restarts,
        problems,
    } = one;
    total.datagrams += datagrams;
    total.bytes += bytes;
    total.header_bytes += header_bytes;
    total.template_bytes += template_bytes;
    total.record_bytes += record_bytes;
    total.padding_bytes += padding_bytes;
    total.skipped_bytes += skipped_bytes;
    total.discarded_bytes += discarded_bytes;
    total.trailing_bytes += trailing_bytes;
    total.messages += messages;
    total.incomplete_messages += incomplete_messages;
    total.rejected_messages += rejected_messages;
    total.data_sets += data_sets;
    total.unknown_template_sets += unknown_template_sets;
    total.nonzero_padding_sets += nonzero_padding_sets;
    total.flow_records += flow_records;
    total.options_records += options_records;
    total.templates_new += templates_new;
    total.templates_refreshed += templates_refreshed;
    total.templates_replaced += templates_replaced;
    total.templates_withdrawn += templates_withdrawn;
    total.templates_invalidated += templates_invalidated;
    total.templates_evicted += templates_evicted;
    total.templates_expired += templates_expired;
    total.domains_evicted += domains_evicted;
    total.lost_records += lost_records;
    total.lost_packets += lost_packets;
    total.lost_flows += lost_flows;
    total.late_messages += late_messages;
    total.sequence_restarts += sequence_restarts;
    for (sum, count) in total.problems.iter_mut().zip(problems) {
        *sum += count;
    }
}
