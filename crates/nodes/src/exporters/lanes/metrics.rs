//! Metric sets `exporter.lanes` and `exporter.lanes.lane`, and the account of the node.

use std::borrow::Cow;

use catchment_delivery::lane::{Counters, Refusal, State};
use otel_arrow_dfe_engine::context::PipelineContext;
use otel_arrow_dfe_telemetry::instrument::{Counter, Gauge};
use otel_arrow_dfe_telemetry::metrics::{MetricSet, MetricSetRegistrar, MetricSetSnapshot};
use otel_arrow_dfe_telemetry::reporter::MetricsReporter;
use otel_arrow_dfe_telemetry_macros::{attribute_set, metric_set};

use crate::accounts::{self, Account, NodeName};

/// What the exporter did since the last report, all lanes together.
#[metric_set(name = "exporter.lanes")]
#[derive(Debug, Default, Clone)]
pub struct LanesMetrics {
    /// Items taken in: the sum of all below, those held included.
    #[metric(unit = "{item}")]
    pub items_received: Counter<u64>,
    /// Items that the server took.
    #[metric(unit = "{item}")]
    pub items_delivered: Counter<u64>,
    /// Items lost alone: rejected by a server that took the rest of their request, or too large for any request.
    #[metric(unit = "{item}")]
    pub items_rejected: Counter<u64>,
    /// Items that the server will never take.
    #[metric(unit = "{item}")]
    pub items_refused: Counter<u64>,
    /// Items that could not be read or encoded.
    #[metric(unit = "{item}")]
    pub items_unencodable: Counter<u64>,
    /// Items that made room for newer ones.
    #[metric(unit = "{item}")]
    pub items_dropped: Counter<u64>,
    /// Items given back because the time for retries was over.
    #[metric(unit = "{item}")]
    pub items_expired: Counter<u64>,
    /// Items given back because their lane was full.
    #[metric(unit = "{item}")]
    pub items_queue_full: Counter<u64>,
    /// Items given back at the end of the node, before they were sent.
    #[metric(unit = "{item}")]
    pub items_shut_down: Counter<u64>,
    /// Items given back at the end of the node whose answer was outstanding.
    #[metric(unit = "{item}")]
    pub items_unanswered: Counter<u64>,
    /// Items given back because a lane failed.
    #[metric(unit = "{item}")]
    pub items_failed: Counter<u64>,
    /// Items that wait or are in flight.
    #[metric(unit = "{item}")]
    pub items_held: Gauge<u64>,
    /// Items in attempts whose end is unknown: as many may have arrived twice.
    #[metric(unit = "{item}")]
    pub items_ambiguous: Counter<u64>,
    /// Batches taken in.
    #[metric(unit = "{batch}")]
    pub batches_received: Counter<u64>,
    /// Batches acknowledged.
    #[metric(unit = "{batch}")]
    pub batches_acked: Counter<u64>,
    /// Batches given back, to be handed in again.
    #[metric(unit = "{batch}")]
    pub batches_nacked: Counter<u64>,
    /// Batches refused for good.
    #[metric(unit = "{batch}")]
    pub batches_refused: Counter<u64>,
    /// Batches without the key that decides over the lane.
    #[metric(unit = "{batch}")]
    pub batches_unkeyed: Counter<u64>,
    /// Requests that the server took.
    #[metric(unit = "{request}")]
    pub requests: Counter<u64>,
    /// Attempts begun.
    #[metric(unit = "{attempt}")]
    pub attempts: Counter<u64>,
    /// Attempts behind the first one of their request.
    #[metric(unit = "{attempt}")]
    pub retries: Counter<u64>,
    /// Attempts that failed with a delay that the server named.
    #[metric(unit = "{attempt}")]
    pub attempts_throttled: Counter<u64>,
    /// Attempts that failed without an answer, or with one that leaves the end open.
    #[metric(unit = "{attempt}")]
    pub attempts_unanswered: Counter<u64>,
    /// Attempts that failed before the server took anything: no connection, or a refusal that passes.
    #[metric(unit = "{attempt}")]
    pub attempts_unavailable: Counter<u64>,
    /// Requests split because they were too large.
    #[metric(unit = "{request}")]
    pub requests_split: Counter<u64>,
    /// Answers with a warning, and answers that could not be read.
    #[metric(unit = "{request}")]
    pub warnings: Counter<u64>,
    /// Bytes of messages before their compression.
    #[metric(unit = "By")]
    pub bytes_raw: Counter<u64>,
    /// Bytes of messages behind it.
    #[metric(unit = "By")]
    pub bytes_wire: Counter<u64>,
    /// Streams that ended before they should.
    #[metric(unit = "{stream}")]
    pub stream_resets: Counter<u64>,
    /// Tables of OTAP that were those of the message before, and were sent again as they were.
    #[metric(unit = "{table}")]
    pub tables_reused: Counter<u64>,
    /// Schemas sent: each is the beginning of a table in a stream.
    #[metric(unit = "{schema}")]
    pub schemas_sent: Counter<u64>,
    /// Dictionaries that the server had in full already.
    #[metric(unit = "{dictionary}")]
    pub dictionaries_reused: Counter<u64>,
    /// Dictionaries that values were added to.
    #[metric(unit = "{dictionary}")]
    pub dictionaries_extended: Counter<u64>,
    /// Dictionaries sent as a whole.
    #[metric(unit = "{dictionary}")]
    pub dictionaries_sent: Counter<u64>,
    /// Changes between OTAP and OTLP.
    #[metric(unit = "{change}")]
    pub protocol_changes: Counter<u64>,
    /// Bytes that wait.
    #[metric(unit = "By")]
    pub queue_bytes: Gauge<u64>,
    /// Age of the oldest item held.
    #[metric(unit = "ms")]
    pub oldest_age: Gauge<u64>,
    /// Time during which a batch waited for room in a lane.
    #[metric(unit = "ms")]
    pub blocked_time: Counter<u64>,
}

/// Which lane of which exporter. The names of the first four are those of the engine's own attributes of nodes.
#[attribute_set(scope, name = "lanes.lane.attrs")]
#[derive(Debug, Clone, Default, Hash)]
pub struct LaneAttributes {
    /// The exporter.
    pub node_id: Cow<'static, str>,
    /// Its pipeline.
    pub pipeline_id: Cow<'static, str>,
    /// The group of that.
    pub pipeline_group_id: Cow<'static, str>,
    /// The core it runs on.
    pub core_id: usize,
    /// Number of the lane, from 0.
    pub lane: u64,
}

/// One lane.
#[metric_set(name = "exporter.lanes.lane")]
#[derive(Debug, Default, Clone)]
pub struct LaneMetrics {
    /// Items that the server took.
    #[metric(unit = "{item}")]
    pub items_delivered: Counter<u64>,
    /// Attempts begun.
    #[metric(unit = "{attempt}")]
    pub attempts: Counter<u64>,
    /// Batches, or parts of them, that wait.
    #[metric(unit = "{batch}")]
    pub queue_batches: Gauge<u64>,
    /// Items that wait.
    #[metric(unit = "{item}")]
    pub queue_items: Gauge<u64>,
    /// Bytes that wait.
    #[metric(unit = "By")]
    pub queue_bytes: Gauge<u64>,
    /// Items of the request in flight.
    #[metric(unit = "{item}")]
    pub in_flight_items: Gauge<u64>,
    /// Bytes of it.
    #[metric(unit = "By")]
    pub in_flight_bytes: Gauge<u64>,
    /// Age of the oldest item held.
    #[metric(unit = "ms")]
    pub oldest_age: Gauge<u64>,
    /// Time during which a batch waited for room.
    #[metric(unit = "ms")]
    pub blocked_time: Counter<u64>,
    /// 1 while it waits before another attempt.
    #[metric(unit = "1")]
    pub backing_off: Gauge<u64>,
}

/// What the node counts itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Own {
    /// Items and batches that could not be read.
    pub(super) unreadable_items: u64,
    pub(super) unreadable_batches: u64,
    /// Items and batches that wait for room in front of their lane; given back there in the end.
    pub(super) waiting_items: u64,
    pub(super) given_back_items: u64,
    pub(super) given_back_batches: u64,
    pub(super) waiting_batches: u64,
    pub(super) acked: u64,
    pub(super) nacked: u64,
    pub(super) refused: u64,
    pub(super) unkeyed: u64,
}

/// Sums, reports, and the account at the end.
pub(super) struct Metrics {
    set: MetricSet<LanesMetrics>,
    lanes: Vec<MetricSet<LaneMetrics>>,
    name: NodeName,
    told: Vec<Counters>,
    told_own: Own,
    pub(super) own: Own,
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Metrics {
    /// Registers the sets: that of the node with `registrar`, which knows its entity.
    pub(super) fn new(pipeline: &PipelineContext, registrar: &impl MetricSetRegistrar, lanes: usize) -> Self {
        let name = NodeName::of(pipeline);
        let registry = pipeline.metrics_registry();
        let lane = |lane| {
            registry.register_metric_set::<LaneMetrics>(LaneAttributes {
                node_id: name.node.clone().into(),
                pipeline_id: name.pipeline.clone().into(),
                pipeline_group_id: name.group.clone().into(),
                core_id: name.core,
                lane,
            })
        };
        Self {
            set: LanesMetrics::register(registrar),
            lanes: (0..lanes as u64).map(lane).collect(),
            name: name.clone(),
            told: vec![Counters::default(); lanes],
            told_own: Own::default(),
            own: Own::default(),
        }
    }

    /// Takes the counters of all lanes, in their order.
    pub(super) fn update(&mut self, now: &[Counters]) {
        let mut sums = Sums::default();
        for ((now, told), set) in now.iter().zip(&mut self.told).zip(&mut self.lanes) {
            set.items_delivered.add(now.delivered - told.delivered);
            set.attempts.add(now.attempts - told.attempts);
            set.blocked_time.add(millis(now.blocked).saturating_sub(millis(told.blocked)));
            set.queue_batches.set(now.queue_batches);
            set.queue_items.set(now.queue_items);
            set.queue_bytes.set(now.queue_bytes);
            set.in_flight_items.set(now.in_flight_items);
            set.in_flight_bytes.set(now.in_flight_bytes);
            set.oldest_age.set(millis(now.oldest.unwrap_or_default()));
            set.backing_off.set(u64::from(matches!(now.state, State::Backoff { .. })));
            sums.add(&mut self.set, now, told);
            *told = now.clone();
        }
        let Self { set, own, told_own: told, .. } = self;
        let received = |own: &Own| own.unreadable_items + own.waiting_items + own.given_back_items;
        let batches = |own: &Own| own.unreadable_batches + own.waiting_batches + own.given_back_batches;
        // What waited and is now in its lane has been told already.
        let (now_received, now_batches) = (sums.received + received(own), sums.payloads + batches(own));
        set.items_received.add(now_received - sums.told_received - received(told));
        set.batches_received.add(now_batches - sums.told_payloads - batches(told));
        set.items_unencodable.add(own.unreadable_items - told.unreadable_items);
        set.items_shut_down.add(own.given_back_items - told.given_back_items);
        set.items_held.set(sums.held + own.waiting_items);
        set.batches_acked.add(own.acked - told.acked);
        set.batches_nacked.add(own.nacked - told.nacked);
        set.batches_refused.add(own.refused - told.refused);
        set.batches_unkeyed.add(own.unkeyed - told.unkeyed);
        set.queue_bytes.set(sums.queue_bytes);
        set.oldest_age.set(sums.oldest);
        *told = own.clone();
    }

    pub(super) fn report(&mut self, reporter: &mut MetricsReporter) {
        // A full channel keeps the values for the next time.
        let _ = reporter.report(&mut self.set);
        for set in &mut self.lanes {
            let _ = reporter.report(set);
        }
    }

    pub(super) fn snapshots(&self) -> Vec<MetricSetSnapshot> {
        std::iter::once(self.set.snapshot()).chain(self.lanes.iter().map(MetricSet::snapshot)).collect()
    }
}

/// What is told as a sum of lanes, now and the last time.
#[derive(Default)]
struct Sums {
    received: u64,
    told_received: u64,
    payloads: u64,
    told_payloads: u64,
    held: u64,
    queue_bytes: u64,
    oldest: u64,
}

impl Sums {
    fn add(&mut self, set: &mut MetricSet<LanesMetrics>, now: &Counters, told: &Counters) {
        self.received += now.received;
        self.told_received += told.received;
        self.payloads += now.payloads;
        self.told_payloads += told.payloads;
        self.held += now.held;
        self.queue_bytes += now.queue_bytes;
        self.oldest = self.oldest.max(millis(now.oldest.unwrap_or_default()));
        let refused = |reason: Refusal| now.refused[reason.index()] - told.refused[reason.index()];
        set.items_delivered.add(now.delivered - told.delivered);
        set.items_rejected.add(now.rejected - told.rejected);
        set.items_refused.add(refused(Refusal::Permanent));
        set.items_unencodable.add(refused(Refusal::Unencodable));
        set.items_dropped.add(refused(Refusal::Dropped));
        set.items_expired.add(refused(Refusal::Expired));
        set.items_queue_full.add(refused(Refusal::QueueFull));
        set.items_shut_down.add(refused(Refusal::Shutdown));
        set.items_unanswered.add(refused(Refusal::Ambiguous));
        set.items_failed.add(refused(Refusal::LaneFailed));
        set.items_ambiguous.add(now.ambiguous - told.ambiguous);
        set.requests.add(now.requests - told.requests);
        set.attempts.add(now.attempts - told.attempts);
        set.retries.add(now.retries - told.retries);
        set.attempts_throttled.add(now.throttled - told.throttled);
        set.attempts_unanswered.add(now.unanswered - told.unanswered);
        set.attempts_unavailable.add(now.unavailable - told.unavailable);
        set.requests_split.add(now.splits - told.splits);
        set.warnings.add(now.warnings - told.warnings);
        set.bytes_raw.add(now.raw_bytes - told.raw_bytes);
        set.bytes_wire.add(now.wire_bytes - told.wire_bytes);
        set.stream_resets.add(now.stream_resets - told.stream_resets);
        let (stream, told_stream) = (&now.stream, &told.stream);
        set.tables_reused.add(stream.tables_reused - told_stream.tables_reused);
        set.schemas_sent.add(stream.schemas - told_stream.schemas);
        set.dictionaries_reused.add(stream.dictionaries_reused - told_stream.dictionaries_reused);
        set.dictionaries_extended.add(stream.dictionaries_extended - told_stream.dictionaries_extended);
        set.dictionaries_sent.add(stream.dictionaries_sent - told_stream.dictionaries_sent);
        set.protocol_changes.add(now.switches - told.switches);
        set.blocked_time.add(millis(now.blocked).saturating_sub(millis(told.blocked)));
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        let sum = |of: fn(&Counters) -> u64| self.told.iter().map(of).sum::<u64>();
        let refused = |reason: Refusal| self.told.iter().map(|lane| lane.refused[reason.index()]).sum::<u64>();
        let own = &self.own;
        accounts::publish(Account {
            name: self.name.clone(),
            items: "items",
            received: sum(|lane| lane.received) + own.unreadable_items + own.waiting_items + own.given_back_items,
            sent: sum(|lane| lane.delivered),
            dropped: vec![
                ("rejected", sum(|lane| lane.rejected)),
                ("refused", refused(Refusal::Permanent)),
                ("unencodable", refused(Refusal::Unencodable) + own.unreadable_items),
                ("dropped", refused(Refusal::Dropped)),
                ("expired", refused(Refusal::Expired)),
                ("queue full", refused(Refusal::QueueFull)),
                ("shut down", refused(Refusal::Shutdown) + own.given_back_items),
                ("unanswered", refused(Refusal::Ambiguous)),
                ("failed", refused(Refusal::LaneFailed)),
            ],
            in_flight: sum(|lane| lane.held) + own.waiting_items,
            notes: vec![
                ("requests", sum(|lane| lane.requests)),
                ("retries", sum(|lane| lane.retries)),
                ("ambiguous", sum(|lane| lane.ambiguous)),
                ("batches nacked", own.nacked),
                ("batches refused", own.refused),
                ("batches unkeyed", own.unkeyed),
            ],
        });
    }
}
