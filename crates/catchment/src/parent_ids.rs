//! Where our receivers may write parent ids in OTAP's transport encoding: where every node behind them reads it.
//!
//! An exporter that gets them so has nothing to sort. Some of the engine's nodes, such as `exporter:console`, read parent
//! ids without a look at their encoding, and a receiver cannot see what stands behind it; the program that has the
//! configuration can. A pipeline that is changed while the engine runs gets plain ids, until the next start.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use otel_arrow_dfe_config::engine::OtelDataflowSpec;
use otel_arrow_dfe_config::node::NodeUserConfig;
use otel_arrow_dfe_config::pipeline::PipelineConfig;
use serde_json::{Value, json};

const SYSLOG: &str = "urn:catchment:receiver:syslog";
const IPFIX: &str = "urn:catchment:receiver:ipfix";

/// Nodes that hand batches on as they are, or look at the encoding of their ids; of logs and of metrics.
const UNDERSTANDING: [&str; 12] = [
    "urn:catchment:exporter:console_table",
    LANES,
    "urn:catchment:processor:quantile",
    "urn:otel:exporter:noop",
    OTAP,
    "urn:otel:exporter:otlp_grpc",
    "urn:otel:exporter:otlp_http",
    "urn:otel:processor:fanout",
    "urn:otel:processor:filter",
    "urn:otel:processor:log_sampling",
    "urn:otel:processor:retry",
    "urn:otel:processor:type_router",
];

/// A node that gains by it. Those that give OTLP have to undo the encoding.
const OTAP: &str = "urn:otel:exporter:otap";
/// One that gains by it if it speaks OTAP: rows come in the order that takes the fewest bytes.
const LANES: &str = "urn:catchment:exporter:lanes";

/// The engine's batch processor decodes ids before it merges batches, but not before it cuts them: then it gives attributes
/// to the wrong records.
const BATCH: &str = "urn:otel:processor:batch";

/// Sets `parent_ids: transport` on every receiver of ours that leaves the choice and has only nodes behind it that
/// understand it, one of which gains by it.
pub(crate) fn choose(spec: &mut OtelDataflowSpec) {
    for group in spec.groups.values_mut() {
        for pipeline in group.pipelines.values_mut() {
            if let Some(changed) = changed(pipeline) {
                *pipeline = changed;
            }
        }
    }
}

/// The pipeline with the choices made; nothing if there are none to make.
fn changed(pipeline: &PipelineConfig) -> Option<PipelineConfig> {
    let receivers: Vec<String> = pipeline
        .node_iter()
        .filter(|(_, node)| leaves_choice(node))
        .map(|(id, _)| id.to_string())
        .filter(|id| {
            let nodes = behind(pipeline, id);
            nodes.iter().all(|node| understands(node)) && nodes.iter().any(|node| gains(node))
        })
        .collect();
    if receivers.is_empty() {
        return None;
    }
    let mut document = serde_json::to_value(pipeline).ok()?;
    for receiver in receivers {
        *document
            .get_mut("nodes")?
            .get_mut(&receiver)?
            .get_mut("config")?
            .as_object_mut()?
            .entry("parent_ids")
            .or_insert(Value::Null) = json!("transport");
    }
    // Should the engine's model ever not read what it wrote, the ids stay plain, which is right everywhere.
    serde_json::from_value(document).ok()
}

/// Whether the node is a receiver that has a choice, and its configuration does not make it.
fn leaves_choice(node: &NodeUserConfig) -> bool {
    let config = &node.config;
    let is = |key: &str, default: &[&str]| config.get(key).is_none_or(|value| default.iter().any(|word| value == word));
    let has_choice = match node.r#type.as_ref() {
        SYSLOG => true,
        // Metrics of flows have one form of ids.
        IPFIX => config.get("profile").is_some_and(|profile| profile == "sonic_hft") || is("signal", &["logs"]),
        _ => false,
    };
    has_choice && config.is_object() && is("parent_ids", &["auto"]) && is("emit", &["records"])
}

fn gains(node: &NodeUserConfig) -> bool {
    match node.r#type.as_ref() {
        OTAP => true,
        LANES => node.config.get("protocol").is_some_and(|protocol| protocol == "otap"),
        _ => false,
    }
}

fn understands(node: &NodeUserConfig) -> bool {
    let urn = node.r#type.as_ref();
    UNDERSTANDING.contains(&urn) || (urn == BATCH && only_merges(&node.config))
}

/// Whether a batch processor with this configuration never cuts batches of columns. Its own check lets unknown keys pass,
/// so any that speaks of a largest size counts, but for that of protobuf.
fn only_merges(config: &Value) -> bool {
    match config {
        Value::Object(keys) => keys.iter().all(|(key, value)| {
            key == "otlp" || (!(key.contains("max") && key.contains("size") && !value.is_null()) && only_merges(value))
        }),
        Value::Array(values) => values.iter().all(only_merges),
        _ => true,
    }
}

/// All nodes that something from `start` may come to.
fn behind(pipeline: &PipelineConfig, start: &str) -> Vec<Arc<NodeUserConfig>> {
    let mut edges: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for connection in pipeline.connection_iter() {
        let targets: Vec<String> = connection.to_nodes().iter().map(ToString::to_string).collect();
        for source in connection.from_sources() {
            edges.entry(source.node_id().to_string()).or_default().extend(targets.iter().cloned());
        }
    }
    let mut reached = BTreeSet::new();
    let mut next = vec![start.to_owned()];
    while let Some(node) = next.pop() {
        for target in edges.get(&node).into_iter().flatten() {
            if reached.insert(target.clone()) {
                next.push(target.clone());
            }
        }
    }
    pipeline.node_iter().filter(|(id, _)| reached.contains(id.as_ref())).map(|(_, node)| Arc::clone(node)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A syslog receiver, then nodes of the given types in a row.
    fn chosen(receiver: &str, types: &[&str]) -> Value {
        chosen_for(SYSLOG, receiver, types)
    }

    /// The same for a receiver of this type.
    fn chosen_for(urn: &str, receiver: &str, types: &[&str]) -> Value {
        let mut yaml = format!(
            "version: otel_dataflow/v1\ngroups: {{g: {{pipelines: {{p: {{nodes: {{n0: {{type: {urn}, config: {receiver}}}"
        );
        for (number, urn) in types.iter().enumerate() {
            yaml += &format!(", n{}: {{type: {urn}, config: {{}}}}", number + 1);
        }
        yaml += "}, connections: [";
        for number in 0..types.len() {
            yaml += &format!("{{from: n{number}, to: n{}}}, ", number + 1);
        }
        yaml += "]}}}}";
        let mut spec = OtelDataflowSpec::from_yaml(&yaml).expect("valid");
        choose(&mut spec);
        let pipeline = spec.groups.values().next().and_then(|group| group.pipelines.values().next()).expect("pipeline");
        let (_, node) = pipeline.node_iter().find(|(id, _)| id.as_ref() == "n0").expect("receiver");
        node.config.get("parent_ids").cloned().unwrap_or(Value::Null)
    }

    const TCP: &str = "{tcp: {listening_addr: \"127.0.0.1:0\"}}";

    /// Chosen where all nodes behind understand, and nowhere else.
    #[test]
    fn the_nodes_behind_decide() {
        assert_eq!(chosen(TCP, &["processor:filter", "processor:retry", "exporter:otap"]), "transport");
        assert_eq!(chosen(TCP, &["processor:filter", "exporter:console"]), Value::Null);
        assert_eq!(chosen(TCP, &["processor:batch", "exporter:otap"]), "transport");
        assert_eq!(chosen(TCP, &["processor:batch", "exporter:console"]), Value::Null);
        assert_eq!(chosen(TCP, &["processor:debug", "exporter:otap"]), Value::Null);
        assert_eq!(chosen(TCP, &["exporter:otlp_grpc"]), Value::Null);
    }

    /// Lanes gain if they speak OTAP, and understand in any case.
    #[test]
    fn lanes() {
        let node = |protocol: &str| {
            let config = json!({ "type": LANES, "config": { "protocol": protocol } });
            serde_json::from_value::<NodeUserConfig>(config).expect("a node")
        };
        for (protocol, expected) in [("otap", true), ("otlp_grpc", false), ("otlp_http", false)] {
            assert_eq!((gains(&node(protocol)), understands(&node(protocol))), (expected, true), "{protocol}");
        }
    }

    /// A batch processor that may cut batches does not understand.
    #[test]
    fn cutting_is_seen() {
        for (config, is_understood) in [
            (json!({"otap": {"min_size": 10, "sizer": "items"}}), true),
            (json!({"otap": {"min_size": 10, "max_size": 20}}), false),
            (json!({"otap": {"max_size": null}, "otlp": {"max_size": 20}}), true),
            (json!({"send_batch_max_size": 20}), false),
            (json!({"codecs": {"x": {"max_size": 20}}}), false),
            (json!(null), true),
        ] {
            assert_eq!(only_merges(&config), is_understood, "{config}");
        }
    }

    /// Of flow records logs have the choice and metrics do not; SONiC's points have it.
    #[test]
    fn ipfix_receivers_have_it_too() {
        for (more, expected) in [
            ("", json!("transport")),
            (", profile: flows, signal: logs", json!("transport")),
            (", signal: metrics, metrics: [{elements: [octetDeltaCount]}]", Value::Null),
            (", profile: flows, signal: metrics, metrics: [{elements: [octetDeltaCount]}]", Value::Null),
            (", profile: sonic_hft", json!("transport")),
            (", profile: sonic_hft, signal: metrics", json!("transport")),
            (", profile: sonic_hft, emit: encoded", Value::Null),
            (", profile: sonic_hft, parent_ids: plain", json!("plain")),
        ] {
            let receiver = format!("{{udp: {{listening_addr: \"127.0.0.1:0\"}}{more}}}");
            let behind = |types: &[&str]| chosen_for(IPFIX, &receiver, types);
            assert_eq!(behind(&["processor:batch", "exporter:otap"]), expected, "{receiver}");
            let not_chosen = if expected == "plain" { expected } else { Value::Null };
            assert_eq!(behind(&["processor:debug", "exporter:otap"]), not_chosen, "{receiver}");
        }
        assert_eq!(chosen_for("urn:otel:receiver:otap", "{}", &["exporter:otap"]), Value::Null);
    }

    /// What the user has said stands.
    #[test]
    fn the_user_decides_first() {
        let with = |more: &str| format!("{{tcp: {{listening_addr: \"127.0.0.1:0\"}}, {more}}}");
        assert_eq!(chosen(&with("parent_ids: plain"), &["exporter:otap"]), "plain");
        assert_eq!(chosen(&with("parent_ids: auto"), &["exporter:otap"]), "transport");
        assert_eq!(chosen(&with("emit: encoded"), &["exporter:otap"]), Value::Null);
        assert_eq!(chosen(&with("parent_ids: transport"), &["exporter:console"]), "transport");
    }
}
