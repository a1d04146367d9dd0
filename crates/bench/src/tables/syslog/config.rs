//! Configurations of engines: whatever is compared runs with the same settings but for the receiver.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::super::pipelines::{counting, engine, into_noop, pipeline};
use super::sides::{Side, Transport};
use crate::process::MAIN;

/// Smallest batch that the batch processor sends on without waiting for more.
const MIN_BATCH_ITEMS: u64 = 8_000;

/// Lines over TCP -> receiver -> batches -> OTAP with zstd.
pub(super) fn tcp_otap(side: Side, listening: SocketAddr, endpoint: SocketAddr) -> Value {
    let nodes = json!({
        "receive": side.receiver(Transport::Tcp, listening),
        "batch": {
            "type": "urn:otel:processor:batch",
            "config": {
                "format": "otap",
                "otap": { "min_size": MIN_BATCH_ITEMS, "sizer": "items" },
                "max_batch_duration": "200ms",
            },
        },
        "export": {
            "type": "urn:otel:exporter:otap",
            "config": { "grpc_endpoint": format!("http://{endpoint}"), "compression_method": "zstd" },
        },
    });
    engine(MAIN, pipeline(nodes, json!([{ "from": "receive", "to": "batch" }, { "from": "batch", "to": "export" }])))
}

/// Lines -> receiver -> nothing.
pub(super) fn noop(side: Side, transport: Transport, listening: SocketAddr) -> Value {
    counting(side.receiver(transport, listening))
}

/// Adds a pipeline that takes OTLP over HTTP and drops it.
pub(super) fn with_probe(mut config: Value, listening: SocketAddr) -> Value {
    let receiver = json!({
        "type": "urn:otel:receiver:otlp",
        "config": { "protocols": { "http": { "listening_addr": listening } } },
    });
    config["groups"]["default"]["pipelines"]["probe"] = into_noop(receiver);
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDES: [Side; 5] =
        [Side::Ours, Side::OursDefault, Side::Upstream62Default, Side::Upstream62, Side::Upstream63];

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    /// Takes the receiver out; it must have been there.
    fn without_receiver(mut config: Value) -> Value {
        let receiver = config.pointer_mut("/groups/default/pipelines/main/nodes/receive").unwrap();
        assert!(receiver["type"].is_string());
        *receiver = Value::Null;
        config
    }

    /// In every kind of run.
    #[test]
    fn sides_differ_in_the_receiver_only() {
        let kinds: [fn(Side) -> Value; 4] = [
            |side| tcp_otap(side, address(514), address(4317)),
            |side| noop(side, Transport::Tcp, address(514)),
            |side| noop(side, Transport::Udp, address(514)),
            |side| with_probe(tcp_otap(side, address(514), address(4317)), address(4318)),
        ];
        for kind in kinds {
            let [first, others @ ..] = SIDES.map(kind);
            for other in others {
                assert_ne!(first, other);
                assert_eq!(without_receiver(first.clone()), without_receiver(other));
            }
        }
    }

    /// The probe has a pipeline of its own on the same core, and the other is as it was.
    #[test]
    fn probe_beside() {
        let alone = tcp_otap(Side::Ours, address(514), address(4317));
        let both = with_probe(alone.clone(), address(4318));
        let [main, probe] = ["main", "probe"].map(|name| &both["groups"]["default"]["pipelines"][name]);
        assert_eq!(main, &alone["groups"]["default"]["pipelines"]["main"]);
        assert_eq!(probe["policies"], main["policies"]);
        let http = &probe["nodes"]["receive"]["config"]["protocols"]["http"];
        assert_eq!(http["listening_addr"], "127.0.0.1:4318");
    }
}
