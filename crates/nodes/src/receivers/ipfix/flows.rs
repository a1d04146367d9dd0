//! Flow exporters: datagrams and messages on their way into the batch.

use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::time::Instant;

use catchment_columns::flow::{FlowReceipt, Sampled};
use catchment_ipfix::{
    Admitted, CacheError, Collector, CollectorCounters, CollectorLimits, Counters, ExporterTotals, Gauges, ProblemKind,
    Released, SessionKey,
};

use super::pending::IpfixPending;
use crate::ingest::{Added, Intake, Seldom, UnderPressure};

/// The sessions of all exporters, and what was learned of them.
pub(super) struct Flows {
    collector: RefCell<Collector>,
    /// Used again for each datagram; its counters are sums over the life of the receiver.
    admitted: RefCell<Admitted>,
    began: Instant,
    malformed_told: Seldom,
    awaited_told: Seldom,
    unknown_told: Seldom,
    /// Hash of the templates as they were written last.
    saved: Cell<Option<u64>>,
}

impl Flows {
    pub(super) fn new(limits: CollectorLimits) -> Self {
        Self {
            collector: RefCell::new(Collector::new(limits)),
            admitted: RefCell::default(),
            began: Instant::now(),
            malformed_told: Seldom::default(),
            awaited_told: Seldom::default(),
            unknown_told: Seldom::default(),
            saved: Cell::new(None),
        }
    }

    /// Admits a datagram, or a message of a stream, and puts its records into the batch. Templates and options data are
    /// learned even if records are shed.
    pub(super) fn take(
        &self,
        intake: &Intake<IpfixPending>,
        key: SessionKey,
        payload: &[u8],
        time_unix_nano: i64,
        under: UnderPressure,
    ) {
        let mut admitted = self.admitted.borrow_mut();
        admitted.begin_next();
        let held = {
            let mut collector = self.collector.borrow_mut();
            let before = collector.counters().pending_held_sets;
            collector.set_clock(self.began.elapsed());
            let _ = collector.admit(key, time_unix_nano, payload, &mut admitted);
            collector.counters().pending_held_sets - before
        };
        self.tell(&admitted, held, key.peer());
        let records = admitted.sets.iter().map(|set| set.records as u64).sum::<u64>()
            + admitted.released.iter().map(|released| released.set.records as u64).sum::<u64>();
        if records == 0 {
            return;
        }
        let exporter = key.peer();
        let push = |pending: &mut IpfixPending| {
            let Some((batch, sampling)) = pending.flows() else { return Added::default() };
            let receipt = FlowReceipt { time_unix_nano, exporter };
            let of_released = |time_unix_nano| FlowReceipt { time_unix_nano, exporter };
            let Some(sampling) = sampling else {
                let mut added = 0;
                for Released { content, message, received_unix_nano, set } in admitted.released.drain(..) {
                    added += batch.push_released(&content, &message, of_released(received_unix_nano), set);
                }
                added += batch.push(payload, &mut admitted, receipt);
                return Added::from(added as u64);
            };
            let (sampler, now) = sampling.at(time_unix_nano);
            let mut sum = Sampled::default();
            for Released { content, message, received_unix_nano, set } in admitted.released.drain(..) {
                let receipt = of_released(received_unix_nano);
                sum += batch.push_released_sampled(&content, &message, receipt, set, sampler, now);
            }
            sum += batch.push_sampled(payload, &mut admitted, receipt, sampler, now);
            if sum.dropped > 0 {
                self.collector.borrow_mut().count_left_out(key, sum.dropped as u64);
            }
            Added { kept: sum.kept as u64, sampled_out: sum.dropped as u64 }
        };
        let _ = intake.add(records, under, push);
    }

    /// The end of a connection: its templates are no longer valid.
    pub(super) fn close(&self, key: SessionKey) {
        let _ = self.collector.borrow_mut().close(key);
    }

    /// Drops what has waited too long for its template.
    pub(super) fn expire(&self) {
        self.collector.borrow_mut().expire(self.began.elapsed());
    }

    pub(super) fn admitted(&self) -> Counters {
        self.admitted.borrow().counters.clone()
    }

    pub(super) fn collected(&self) -> CollectorCounters {
        *self.collector.borrow().counters()
    }

    pub(super) fn exporters(&self) -> ExporterTotals {
        self.collector.borrow().exporters(usize::MAX)
    }

    pub(super) fn gauges(&self) -> Gauges {
        self.collector.borrow().gauges()
    }

    /// Puts templates back that were kept; gives their number.
    pub(super) fn restore(&self, bytes: &[u8]) -> Result<usize, CacheError> {
        self.collector.borrow_mut().restore(bytes).map(|restored| restored.templates)
    }

    /// The templates as they are to be kept, if they are not as they were the last time.
    pub(super) fn snapshot_if_changed(&self) -> Option<Vec<u8>> {
        let snapshot = self.collector.borrow().templates_snapshot();
        let mut hasher = DefaultHasher::new();
        snapshot.hash(&mut hasher);
        let hash = Some(hasher.finish());
        (self.saved.replace(hash) != hash).then_some(snapshot)
    }

    /// Says what is wrong; `held` of the sets without template wait for theirs.
    fn tell(&self, admitted: &Admitted, held: u64, exporter: Option<SocketAddr>) {
        let problem = admitted.problems.iter().find(|problem| problem.kind != ProblemKind::UnknownTemplate);
        let unknown = admitted.unknown_sets.first();
        if problem.is_none() && unknown.is_none() {
            return;
        }
        let exporter = || exporter.map_or_else(|| "file".to_owned(), |address| address.to_string());
        if let Some(problem) = problem.filter(|_| self.malformed_told.now()) {
            otel_warn!(
                "ipfix_receiver.malformed",
                exporter = exporter().as_str(),
                offset = problem.offset,
                kind = problem.kind.as_str(),
                problem = %problem.fault
            );
        }
        let Some(set) = unknown else { return };
        if held >= admitted.unknown_sets.len() as u64 {
            if self.awaited_told.now() {
                otel_info!(
                    "ipfix_receiver.template_awaited",
                    exporter = exporter().as_str(),
                    template_id = set.template_id,
                    message = "data has come before its template and is kept until that comes, as `pending` allows"
                );
            }
        } else if self.unknown_told.now() {
            otel_warn!(
                "ipfix_receiver.unknown_template",
                exporter = exporter().as_str(),
                template_id = set.template_id,
                message = "data has come before its template and is dropped: `pending` leaves no room for it. This goes on until the exporter sends its templates again"
            );
        }
    }
}
