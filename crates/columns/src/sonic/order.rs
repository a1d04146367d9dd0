//! The order of the points of a template: metrics, resources, columns.

use catchment_ipfix::sonic::{Counter, SonicTemplate, StatisticId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::mapping::{AttributesAt, SonicMapping, SonicNames};

/// A metric: a statistic in a resource. Ordered as an OTAP exporter sends them: where metrics stand in another order it
/// numbers them anew, and then sorts points in a way that does not keep the order in a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct MetricKey {
    pub(super) resource: u16,
    pub(super) is_sum: bool,
    /// Position of the name among those of the template.
    pub(super) name: u16,
    /// The second occurrence of a series in a record has a metric of its own.
    occurrence: u16,
}

/// An object, as a resource: its label and the number of its type.
pub(super) type ObjectKey = (u16, u32);

/// Counters in the order of their points, and the metrics and resources that they belong to. Making it is the first half of
/// making a skeleton.
#[derive(Debug)]
pub(super) struct Order {
    /// The counters.
    pub(super) columns: Vec<Counter>,
    /// For each column the position of its metric.
    pub(super) metric_of: Vec<u16>,
    pub(super) metrics: Vec<MetricKey>,
    /// Names of metrics in ascending order.
    pub(super) names: Vec<String>,
    /// Objects that are resources.
    pub(super) objects: Vec<ObjectKey>,
    /// A series occurs more than once in a record.
    pub(super) repeats: bool,
}

impl Order {
    pub(super) fn new(template: &SonicTemplate, mapping: &SonicMapping) -> Self {
        let counters = template.counters();
        let statistics = Statistics::new(counters, mapping);
        let mut columns: Vec<(MetricKey, Counter)> = Vec::with_capacity(counters.len());
        let mut resources: FxHashMap<ObjectKey, u16> = FxHashMap::default();
        let mut objects: Vec<ObjectKey> = Vec::new();
        let mut occurrences: FxHashMap<(u16, StatisticId), u16> = FxHashMap::default();
        occurrences.reserve(counters.len());
        for counter in counters {
            let object = (counter.label, counter.statistic.object_type);
            let resource = match mapping.attributes_at {
                AttributesAt::Point => 0,
                AttributesAt::Resource => *resources.entry(object).or_insert_with(|| {
                    objects.push(object);
                    number(objects.len() - 1)
                }),
            };
            let seen = occurrences.entry((counter.label, counter.statistic)).or_insert(0);
            let (name, is_sum) = statistics.of(counter.statistic);
            columns.push((MetricKey { resource, is_sum, name, occurrence: *seen }, *counter));
            *seen += 1;
        }
        let repeats = occurrences.len() < counters.len();
        if !mapping.is_wire_order() {
            columns.sort_by_key(|(key, _)| *key);
        }
        let mut metrics: Vec<MetricKey> = Vec::new();
        let mut index: FxHashMap<MetricKey, u16> = FxHashMap::default();
        let metric_of = columns.iter().map(|(key, _)| {
            // In their order columns of one metric stand together.
            if !mapping.is_wire_order() {
                if metrics.last() != Some(key) {
                    metrics.push(*key);
                }
                return number(metrics.len() - 1);
            }
            *index.entry(*key).or_insert_with(|| {
                metrics.push(*key);
                number(metrics.len() - 1)
            })
        });
        let metric_of: Vec<u16> = metric_of.collect();
        let columns: Vec<Counter> = columns.into_iter().map(|(_, counter)| counter).collect();
        Self { columns, metric_of, metrics, names: statistics.names, objects, repeats }
    }
}

/// Ids count metrics and resources, of which there are no more than counters.
pub(super) fn number(index: usize) -> u16 {
    u16::try_from(index).unwrap_or(u16::MAX)
}

/// The statistics of a template: how their metrics are named, and which are sums.
#[derive(Debug)]
struct Statistics {
    /// Names in ascending order.
    names: Vec<String>,
    /// For each statistic the position of its name, and whether it is a sum.
    known: FxHashMap<StatisticId, (u16, bool)>,
}

impl Statistics {
    fn new(counters: &[Counter], mapping: &SonicMapping) -> Self {
        let statistics: FxHashSet<StatisticId> = counters.iter().map(|counter| counter.statistic).collect();
        let name = |id: StatisticId| match mapping.names {
            SonicNames::Sai => id.statistic_name().into_owned(),
            SonicNames::Legacy => format!("sai_counter_type_{}_stat_{}", id.object_type, id.statistic),
        };
        let mut named: Vec<(String, StatisticId)> = statistics.into_iter().map(|id| (name(id), id)).collect();
        named.sort();
        let is_sum = |id: StatisticId| mapping.is_cumulative(&id.statistic_name());
        let known = named.iter().enumerate().map(|(place, (_, id))| (*id, (number(place), is_sum(*id)))).collect();
        Self { names: named.into_iter().map(|(name, _)| name).collect(), known }
    }

    /// Position of the name, and whether the metric is a sum.
    fn of(&self, statistic: StatisticId) -> (u16, bool) {
        self.known.get(&statistic).copied().unwrap_or_default()
    }
}
