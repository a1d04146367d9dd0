//! Received IPFIX and NetFlow data sets -> OTAP metrics, by rules.
//!
//! A [`MetricRule`] says which elements of a record are counters, and which tell what is counted. A record gives one point
//! for each of its fields that is a counter by some rule, with the values of the rule's keys as attributes. Counters are as
//! sent; sampling is not made up for. Records without such a field are counted and dropped.
//!
//! The exporter is the resource (`flow.sampler_address`), the observation domain an attribute of each point
//! (`flow.observation_domain_id`).

mod job;
mod plan;
mod rules;
mod table;

pub use job::{FlowMetricsCounts, FlowMetricsJob};
pub use rules::{ElementRef, MetricKind, MetricRule, MetricRuleError, MetricRules};

/// Instrumentation scope of the points.
pub const SCOPE: &str = "catchment.receiver.ipfix";
