//! What the engine's own metrics say about every node: items in and out, by outcome.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use otel_arrow_dfe_telemetry::metrics::MetricValue;
use otel_arrow_dfe_telemetry::registry::TelemetryRegistryHandle;

/// A node by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node {
    pub(crate) group: String,
    pub(crate) pipeline: String,
    pub(crate) node: String,
}

impl std::fmt::Display for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.group, self.pipeline, self.node)
    }
}

/// Items by outcome (`success`, `failure`, `refused`), on either side of a node.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeCounts {
    pub(crate) input: BTreeMap<String, u64>,
    pub(crate) output: BTreeMap<String, u64>,
}

/// The last counts seen of each node. They are sums since the start of the process, so the largest are the last.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<BTreeMap<Node, NodeCounts>>);

impl Counts {
    /// Reads the counts that the engine has now. Those of nodes that are gone are kept.
    pub(super) fn sample(&self, registry: &TelemetryRegistryHandle) {
        let mut seen: BTreeMap<Node, NodeCounts> = BTreeMap::new();
        registry.visit_current_metrics_with_item_attrs(
            |descriptor, scope, item, values| {
                let is_input = match descriptor.name {
                    "node.input" => true,
                    "node.output" => false,
                    _ => return,
                };
                let mut node = Node { group: String::new(), pipeline: String::new(), node: String::new() };
                for (key, value) in scope.iter_attributes() {
                    match key {
                        "pipeline.group.id" => node.group = value.to_string_value(),
                        "pipeline.id" => node.pipeline = value.to_string_value(),
                        "node.id" => node.node = value.to_string_value(),
                        _ => {}
                    }
                }
                let outcome = item.iter().find(|(key, _)| *key == "outcome").map_or("", |(_, outcome)| outcome);
                for (field, value) in values {
                    if let ("items", MetricValue::U64(count)) = (field.name, value) {
                        let counts = seen.entry(node.clone()).or_default();
                        let side = if is_input { &mut counts.input } else { &mut counts.output };
                        // Cores and signals add up.
                        *side.entry(outcome.to_owned()).or_default() += count;
                    }
                }
            },
            false,
        );
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (node, counts) in seen {
            let known = all.entry(node).or_default();
            for (known, now) in [(&mut known.input, counts.input), (&mut known.output, counts.output)] {
                for (outcome, count) in now {
                    let last = known.entry(outcome).or_default();
                    *last = (*last).max(count);
                }
            }
        }
    }

    /// All nodes with their counts.
    pub(crate) fn all(&self) -> BTreeMap<Node, NodeCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
