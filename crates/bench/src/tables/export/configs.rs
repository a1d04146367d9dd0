//! Configurations of the engines.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::super::pipelines;
use super::cases::{Case, Lanes, Side, Target, Wire};
use crate::process::{LOAD_CORE, MAIN};

/// A request of points with three attributes in OTLP has some 160 bytes a point.
const REQUEST_BYTES: &str = "16 MiB";
/// Most items of a request.
const MOST_ITEMS: u32 = 65_535;

/// Receiver -> the end that the side is.
pub(super) fn engine(receiver: Value, case: &Case, side: Side, endpoint: SocketAddr) -> Value {
    match exporter(side, case.batch, endpoint) {
        Some(export) => {
            let nodes = json!({ "receive": receiver, "export": export });
            let pipeline = pipelines::pipeline(nodes, json!([{ "from": "receive", "to": "export" }]));
            let mut config = pipelines::engine(MAIN, pipeline);
            if matches!(case.target, Target::Raw | Target::Distant) {
                // As often as the receiver alone: the exporter's own counter tells the end.
                config["engine"]["telemetry"]["reporting_interval"] = json!("200ms");
            }
            config
        }
        None => pipelines::counting(receiver),
    }
}

/// `None` for nothing.
fn exporter(side: Side, batch: u32, endpoint: SocketAddr) -> Option<Value> {
    let endpoint = format!("http://{endpoint}");
    Some(match side {
        Side::Noop => return None,
        Side::Lanes(wire, lanes) => {
            let (protocol, compression) = match wire {
                Wire::Otlp => ("otlp_grpc", json!({ "codec": "none" })),
                Wire::OtlpZstd(level) => ("otlp_grpc", json!({ "codec": "zstd", "level": level })),
                Wire::OtlpGzip => ("otlp_grpc", json!({ "codec": "gzip" })),
                Wire::Otap => ("otap", json!({ "codec": "none" })),
                Wire::OtapZstd(level) => ("otap", json!({ "codec": "zstd", "level": level, "layer": "ipc" })),
            };
            let key = match lanes {
                Lanes::One | Lanes::Merging => json!({ "key": "single", "count": 1 }),
                Lanes::Turns(count) => json!({ "key": "round_robin", "count": count }),
                Lanes::Keyed(count) => json!({ "key": "series", "count": count }),
            };
            let requests = match lanes {
                // A batch each, however fast answers are: how many wait in the queue must not change what is measured.
                Lanes::One | Lanes::Turns(_) | Lanes::Keyed(_) => json!({ "max_items": batch }),
                Lanes::Merging => json!({ "min_items": MOST_ITEMS - batch, "max_items": MOST_ITEMS }),
            };
            let mut lanes = key;
            lanes["max_queue_batches"] = json!(MOST_ITEMS.div_ceil(batch) + 8);
            json!({ "type": "urn:catchment:exporter:lanes", "config": {
                "protocol": protocol,
                "client": { "endpoint": endpoint },
                "lanes": lanes,
                "batch": requests,
                "request": { "max_bytes": REQUEST_BYTES },
                "compression": compression,
            } })
        }
        Side::Upstream(Wire::OtapZstd(_)) => json!({
            "type": "urn:otel:exporter:otap",
            // Its buffers are compressed by default, and would be again as messages.
            "config": { "grpc_endpoint": endpoint, "compression_method": "none" },
        }),
        Side::Upstream(Wire::Otap) => json!({
            "type": "urn:otel:exporter:otap",
            "config": {
                "grpc_endpoint": endpoint,
                "compression_method": "none",
                "arrow": { "payload_compression": "none" },
            },
        }),
        Side::Upstream(Wire::Otlp) => {
            json!({ "type": "urn:otel:exporter:otlp_grpc", "config": { "grpc_endpoint": endpoint } })
        }
        Side::Upstream(Wire::OtlpZstd(_)) => upstream_otlp(&endpoint, "zstd"),
        Side::Upstream(Wire::OtlpGzip) => upstream_otlp(&endpoint, "gzip"),
    })
}

fn upstream_otlp(endpoint: &str, compression: &str) -> Value {
    json!({
        "type": "urn:otel:exporter:otlp_grpc",
        "config": { "grpc_endpoint": endpoint, "compression_method": compression },
    })
}

/// The engine's own receiver of what a side sends -> nothing, on the core of the load.
pub(super) fn target(side: Side, listening: SocketAddr) -> Value {
    let receiver = if side.wire().is_some_and(Wire::is_otap) {
        json!({
            "type": "urn:otel:receiver:otap",
            "config": { "listening_addr": listening, "wait_for_result": true, "response_stream_channel_size": 64 },
        })
    } else {
        json!({
            "type": "urn:otel:receiver:otlp",
            "config": { "protocols": { "grpc": {
                "listening_addr": listening, "wait_for_result": true, "max_decoding_message_size": REQUEST_BYTES,
            } } },
        })
    };
    let mut config = pipelines::counting(receiver);
    config["policies"]["telemetry"]["runtime_metrics"] = json!("detailed");
    let core = json!({ "type": "core_set", "set": [{ "start": LOAD_CORE, "end": LOAD_CORE }] });
    config["groups"]["default"]["pipelines"][MAIN]["policies"]["resources"]["core_allocation"] = core;
    config
}

#[cfg(test)]
mod tests {
    use super::super::cases;
    use super::*;

    /// Every side sends to the endpoint, in one request a batch unless it merges.
    #[test]
    fn exporters() {
        let endpoint = SocketAddr::from(([127, 0, 0, 1], 4_317));
        for case in cases::all() {
            for side in case.sides.iter().copied() {
                let Some(node) = exporter(side, case.batch, endpoint) else { continue };
                assert_eq!(node.to_string().matches("http://127.0.0.1:4317").count(), 1, "{node}");
                if let Side::Lanes(_, lanes) = side {
                    let merging = node["config"]["batch"]["max_items"] == 65_535;
                    assert_eq!(merging, lanes == Lanes::Merging, "{node}");
                }
            }
        }
    }
}
