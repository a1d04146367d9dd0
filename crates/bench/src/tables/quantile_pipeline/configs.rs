//! Configurations of the processes.

use std::net::SocketAddr;

use catchment_loadgen::metrics::{METRIC_NAME, MetricsProtocol, SERIES_KEYS};
use serde_json::{Value, json};

use super::super::pipelines;
use super::cases::{Case, K, Method};
use super::truth::QUANTILES;
use crate::process::MAIN;

/// Batches of a stream that an exporter may have waiting for an answer, and receivers in their queues.
const QUEUE: usize = 64;

/// What a process does with what it receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Passes points on.
    Pass,
    /// Makes sketches of the observations of a source.
    Create { source: u64 },
    /// Merges those of so many sources.
    Merge { sources: u64 },
    /// Estimates quantiles from those of one source.
    Estimate,
}

/// Receiver -> the node of the role -> exporter, on a core.
pub(super) fn process(
    case: &Case,
    method: Method,
    role: Role,
    core: usize,
    listening: SocketAddr,
    endpoint: SocketAddr,
) -> Value {
    let mut nodes = json!({
        "receive": receiver(case.protocol, listening),
        "export": exporter(case.protocol, endpoint),
    });
    let connections = match node(case, method, role) {
        Some(config) => {
            nodes["quantile"] = json!({ "type": "urn:catchment:processor:quantile", "config": config });
            json!([{ "from": "receive", "to": "quantile" }, { "from": "quantile", "to": "export" }])
        }
        None => json!([{ "from": "receive", "to": "export" }]),
    };
    let mut pipeline = pipelines::pipeline(nodes, connections);
    let core = json!({ "type": "core_set", "set": [{ "start": core, "end": core }] });
    pipeline["policies"]["resources"]["core_allocation"] = core;
    pipelines::engine(MAIN, pipeline)
}

/// Whoever sends hears about every point, so that what is refused is not taken for accepted.
fn receiver(protocol: MetricsProtocol, listening: SocketAddr) -> Value {
    let server = json!({ "listening_addr": listening, "wait_for_result": true });
    match protocol {
        MetricsProtocol::OtlpHttp => {
            json!({ "type": "urn:otel:receiver:otlp", "config": { "protocols": { "http": server } } })
        }
        MetricsProtocol::OtlpGrpc => {
            json!({ "type": "urn:otel:receiver:otlp", "config": { "protocols": { "grpc": server } } })
        }
        MetricsProtocol::Otap => {
            let mut server = server;
            server["response_stream_channel_size"] = json!(QUEUE);
            json!({ "type": "urn:otel:receiver:otap", "config": server })
        }
    }
}

/// Nothing is compressed but the buffers of OTAP, as they are by default.
fn exporter(protocol: MetricsProtocol, endpoint: SocketAddr) -> Value {
    let endpoint = format!("http://{endpoint}");
    match protocol {
        MetricsProtocol::OtlpHttp => json!({
            "type": "urn:otel:exporter:otlp_http",
            "config": { "endpoint": endpoint, "client_pool_size": 1, "http": {} },
        }),
        MetricsProtocol::OtlpGrpc => {
            json!({ "type": "urn:otel:exporter:otlp_grpc", "config": { "grpc_endpoint": endpoint } })
        }
        MetricsProtocol::Otap => json!({
            "type": "urn:otel:exporter:otap",
            "config": { "grpc_endpoint": endpoint, "compression_method": "none" },
        }),
    }
}

/// Inputs are acknowledged when they are in their windows: a sender that waits for each answer would wait for the end of
/// the window, which it has to send itself.
fn node(case: &Case, method: Method, role: Role) -> Option<Value> {
    Some(match role {
        Role::Pass => return None,
        Role::Create { source } => json!({
            "stage": "create",
            "source": format!("source-{source}"),
            "method": if method == Method::Exact { "exact" } else { "kll" },
            "k": K,
            "seed": source,
            // Several connections are not in step.
            "window": { "tumbling": "10s", "allowed_lateness": "10s" },
            // Windows are closed by what comes after them.
            "idle_flush": "60s",
            "ack": "on_accept",
            "measures": [{
                "name": METRIC_NAME,
                "unit": "s",
                "metrics": [METRIC_NAME],
                "group_by": if case.grouped { &SERIES_KEYS[..] } else { &[] },
            }],
        }),
        Role::Merge { sources } => {
            json!({ "stage": "merge", "source": "merge", "k": K, "expected_sources": sources, "ack": "on_accept" })
        }
        Role::Estimate => json!({
            "stage": "estimate",
            "k": K,
            "expected_sources": 1,
            "ack": "on_accept",
            "quantiles": QUANTILES,
            "statistics": ["count"],
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::super::cases;
    use super::*;

    /// Each process listens and sends where it should, on its core.
    #[test]
    fn processes() {
        let [listening, endpoint] = [4_318, 4_319].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        for case in cases::all() {
            for role in [Role::Pass, Role::Create { source: 1 }, Role::Merge { sources: 2 }, Role::Estimate] {
                let config = process(&case, Method::Exact, role, 1, listening, endpoint).to_string();
                assert_eq!(config.matches("127.0.0.1:4318").count(), 1, "{config}");
                assert_eq!(config.matches("127.0.0.1:4319").count(), 1, "{config}");
                assert_eq!(config.contains("urn:catchment:processor:quantile"), role != Role::Pass);
                assert!(config.contains(r#"{"end":1,"start":1}"#), "{config}");
            }
        }
    }

    /// Keys and method are those of the case.
    #[test]
    fn sketches() {
        for case in cases::all() {
            for (method, name) in [(Method::Kll, "kll"), (Method::Exact, "exact")] {
                let node = node(&case, method, Role::Create { source: 0 }).unwrap();
                assert_eq!(node["method"], name);
                let keys = node["measures"][0]["group_by"].as_array().unwrap().len();
                assert_eq!(keys, if case.grouped { 3 } else { 0 });
            }
        }
    }
}
