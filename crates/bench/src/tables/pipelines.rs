//! Parts of configurations of engines that all tables have in common.

use serde_json::{Value, json};

use crate::process::{ENGINE_CORE, MAIN};

/// Receiver -> nothing. The engine counts what its own receivers take in, and reports five times a second.
pub(super) fn counting(receiver: Value) -> Value {
    let mut config = engine(MAIN, into_noop(receiver));
    config["policies"] = json!({ "telemetry": { "runtime_metrics": "normal" } });
    config["engine"]["telemetry"]["reporting_interval"] = json!("200ms");
    config
}

/// A pipeline: receiver -> nothing.
pub(super) fn into_noop(receiver: Value) -> Value {
    let nodes = json!({ "receive": receiver, "export": { "type": "urn:otel:exporter:noop", "config": {} } });
    pipeline(nodes, json!([{ "from": "receive", "to": "export" }]))
}

/// A pipeline on the core of the engine.
pub(super) fn pipeline(nodes: Value, connections: Value) -> Value {
    let core = json!({ "type": "core_set", "set": [{ "start": ENGINE_CORE, "end": ENGINE_CORE }] });
    json!({
        "policies": { "resources": { "core_allocation": core } },
        "nodes": nodes,
        "connections": connections,
    })
}

/// An engine with one pipeline.
pub(super) fn engine(name: &str, pipeline: Value) -> Value {
    json!({
        "version": "otel_dataflow/v1",
        "engine": { "telemetry": { "logs": { "level": "warn" } } },
        "groups": { "default": { "pipelines": { name: pipeline } } },
    })
}
