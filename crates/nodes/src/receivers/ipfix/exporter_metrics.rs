//! Metric set `receiver.ipfix.exporter`: what came from each exporter, for a bounded number of them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;

use catchment_ipfix::{ExporterCounters, ExporterTotals};
use otel_arrow_dfe_engine::context::PipelineContext;
use otel_arrow_dfe_telemetry::instrument::Counter;
use otel_arrow_dfe_telemetry::metrics::{MetricSet, MetricSetSnapshot};
use otel_arrow_dfe_telemetry::registry::TelemetryRegistryHandle;
use otel_arrow_dfe_telemetry::reporter::MetricsReporter;
use otel_arrow_dfe_telemetry_macros::{attribute_set, metric_set};

use crate::accounts::NodeName;

/// Value of `exporter` for all exporters that have no set of their own.
const OTHERS: &str = "other";

/// Which exporter of which receiver. The names of the first four are those of the engine's own attributes of nodes.
#[attribute_set(scope, name = "ipfix.exporter.attrs")]
#[derive(Debug, Clone, Default, Hash)]
pub struct ExporterAttributes {
    /// The receiver.
    pub node_id: Cow<'static, str>,
    /// Its pipeline.
    pub pipeline_id: Cow<'static, str>,
    /// The group of that.
    pub pipeline_group_id: Cow<'static, str>,
    /// The core it runs on.
    pub core_id: usize,
    /// Address of the exporter, `file` for streams of files, `other` for all without a set of their own.
    pub exporter: Cow<'static, str>,
    /// Observation domain (IPFIX), source id (v9), or engine type and id (v5).
    pub observation_domain: u64,
}

/// What came from an exporter since the last report.
#[metric_set(name = "receiver.ipfix.exporter")]
#[derive(Debug, Default, Clone)]
pub struct ExporterMetrics {
    /// Datagrams, or messages of a stream.
    #[metric(unit = "{datagram}")]
    pub datagrams: Counter<u64>,
    /// Bytes of them.
    #[metric(unit = "By")]
    pub bytes: Counter<u64>,
    /// Flow and options records with a known template.
    #[metric(unit = "{record}")]
    pub records: Counter<u64>,
    /// Records (IPFIX), packets (v9) or flows (v5) that are missing by the sequence numbers.
    #[metric(unit = "{item}")]
    pub lost: Counter<u64>,
    /// Data sets whose template was not known when they came.
    #[metric(unit = "{set}")]
    pub unknown_template_sets: Counter<u64>,
    /// Faults in the bytes.
    #[metric(unit = "{error}")]
    pub problems: Counter<u64>,
    /// Of the records, those that `sampling` has dropped.
    #[metric(unit = "{record}")]
    pub records_sampled_out: Counter<u64>,
}

/// An exporter with one observation domain; `None` stands for the sources without an address.
type Key = (Option<IpAddr>, u32);

/// The sets of the exporters heard of first, up to a limit, and one for all others.
pub(super) struct ExporterReports {
    registry: TelemetryRegistryHandle,
    node: NodeName,
    most: usize,
    sets: HashMap<Key, MetricSet<ExporterMetrics>>,
    others: Option<MetricSet<ExporterMetrics>>,
    /// What was told of each exporter, whichever set it went into.
    told: HashMap<Key, ExporterCounters>,
    /// What was told of exporters that are gone.
    told_others: ExporterCounters,
}

impl ExporterReports {
    /// Reports on up to `most` exporters apart; 0 switches all of it off.
    pub(super) fn new(pipeline: &PipelineContext, most: usize) -> Self {
        Self {
            registry: pipeline.metrics_registry(),
            node: NodeName::of(pipeline),
            most,
            sets: HashMap::new(),
            others: None,
            told: HashMap::new(),
            told_others: ExporterCounters::default(),
        }
    }

    /// Takes the sums of all exporters. One that is gone leaves its set to the next; what it had sent is in the sum of
    /// those that are gone, and was told already for the greatest part.
    pub(super) fn update(&mut self, totals: &ExporterTotals) {
        if self.most == 0 {
            return;
        }
        let mut told = HashMap::with_capacity(totals.busiest.len());
        for exporter in &totals.busiest {
            let key = (exporter.address, exporter.domain);
            let before = self.told.remove(&key).unwrap_or_default();
            if !self.sets.contains_key(&key) && self.sets.len() < self.most {
                let set = self.register(key);
                let _ = self.sets.insert(key, set);
            }
            let set = match self.sets.get_mut(&key) {
                Some(set) => set,
                None => self.others.get_or_insert_with(|| register(&self.registry, &self.node, OTHERS.into(), 0)),
            };
            add(set, &exporter.counters.since(&before));
            // Of several sessions of one exporter some may have gone, and the sum with them.
            self.told_others.add(&before.since(&exporter.counters));
            let _ = told.insert(key, exporter.counters);
        }
        for (key, before) in std::mem::replace(&mut self.told, told) {
            self.told_others.add(&before);
            if let Some(set) = self.sets.remove(&key) {
                let _ = self.registry.unregister_metric_set(set.metric_set_key());
            }
        }
        let others = totals.others.since(&self.told_others);
        if others != ExporterCounters::default() {
            let set = self.others.get_or_insert_with(|| register(&self.registry, &self.node, OTHERS.into(), 0));
            add(set, &others);
            self.told_others.add(&others);
        }
    }

    fn register(&self, (address, domain): Key) -> MetricSet<ExporterMetrics> {
        let exporter = address.map_or(Cow::Borrowed("file"), |address| address.to_canonical().to_string().into());
        register(&self.registry, &self.node, exporter, domain)
    }

    /// Hands the values to `reporter`.
    pub(super) fn report(&mut self, reporter: &mut MetricsReporter) {
        for set in self.sets.values_mut().chain(&mut self.others) {
            // A full channel keeps the values for the next time.
            let _ = reporter.report(set);
        }
    }

    /// The last values.
    pub(super) fn last(&self) -> Vec<MetricSetSnapshot> {
        self.sets.values().chain(&self.others).map(MetricSet::snapshot).collect()
    }
}

impl Drop for ExporterReports {
    fn drop(&mut self) {
        for set in self.sets.values().chain(&self.others) {
            let _ = self.registry.unregister_metric_set(set.metric_set_key());
        }
    }
}

fn register(
    registry: &TelemetryRegistryHandle,
    node: &NodeName,
    exporter: Cow<'static, str>,
    domain: u32,
) -> MetricSet<ExporterMetrics> {
    let attributes = ExporterAttributes {
        node_id: node.node.clone().into(),
        pipeline_id: node.pipeline.clone().into(),
        pipeline_group_id: node.group.clone().into(),
        core_id: node.core,
        exporter,
        observation_domain: domain.into(),
    };
    registry.register_metric_set(attributes)
}

fn add(set: &mut MetricSet<ExporterMetrics>, more: &ExporterCounters) {
    set.datagrams.add(more.datagrams);
    set.bytes.add(more.bytes);
    set.records.add(more.records);
    set.lost.add(more.lost);
    set.unknown_template_sets.add(more.unknown_template_sets);
    set.problems.add(more.problems);
    set.records_sampled_out.add(more.left_out);
}
