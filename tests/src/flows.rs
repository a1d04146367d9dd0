//! An engine with an IPFIX receiver, and a sink behind it.

use std::net::SocketAddr;

use serde_json::{Map, Value};

use crate::{Caught, Engine, HEAD, NodeLine, Report, Scene, Sink};

/// A running engine whose receiver is `edge/flows`, with its port `@flows@`.
#[derive(Debug)]
pub struct Flows {
    /// The engine.
    pub engine: Engine,
    /// What it sends to, by OTAP.
    pub sink: Sink,
}

impl Flows {
    /// The setting `udp` of the receiver, as most tests want it.
    pub const UDP: &str = "udp: {listening_addr: \"127.0.0.1:@flows@\", receive_buffer: 4 MiB}";

    /// Starts them. `config` is the configuration of the receiver, a YAML flow map without its braces.
    #[must_use]
    pub fn start(scene: &Scene, config: &str) -> Self {
        let sink = Sink::start(scene);
        let engine = Engine::start(scene, &Self::yaml(config), &[("sink", sink.otap())]);
        Self { engine, sink }
    }

    /// The configuration of the engine; the sink is on `@sink@`.
    #[must_use]
    pub fn yaml(config: &str) -> String {
        let exporter = "config: {grpc_endpoint: \"http://127.0.0.1:@sink@\", compression_method: zstd, \
                        arrow: {payload_compression: none}}";
        Self::yaml_to(config, &format!("{{type: exporter:otap, {exporter}}}"))
    }

    /// The configuration of the engine with another node at the end.
    #[must_use]
    pub fn yaml_to(config: &str, end: &str) -> String {
        format!(
            "{HEAD}groups:\n  site:\n    pipelines:\n      edge:\n        nodes:\n          flows: {{type: \
             \"urn:catchment:receiver:ipfix\", config: {{{config}}}}}\n          end: {end}\n        connections: \
             [{{from: flows, to: end}}]\n"
        )
    }

    /// Where exporters send to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.engine.address("flows")
    }

    /// A metric of the receiver.
    #[must_use]
    pub fn metric(&self, name: &str) -> u64 {
        self.engine.metric("receiver.ipfix", name)
    }

    /// Stops everything. Each record that was taken in, but for those that nobody asked for, has been sent, acknowledged,
    /// and is at the sink. Gives the line of the receiver.
    ///
    /// # Panics
    /// If something is missing, or the books do not balance.
    #[must_use]
    pub fn stop(self) -> (NodeLine, Caught) {
        let stopped = self.engine.stop();
        let caught = self.sink.stop();
        let line = stopped.expect_clean().node("edge/flows").clone();
        let asked_for = line.received.and_then(|received| received.checked_sub(line.reason("unused")));
        assert_eq!((asked_for, line.note("acknowledged")), (Some(line.sent), line.sent), "{line:?}");
        assert_eq!(caught.logs, line.sent, "{line:?}");
        (line, caught)
    }

    /// Waits for `count` records at the sink, then stops everything as [`stop`](Self::stop) does. There are no more.
    ///
    /// # Panics
    /// If there are other records than that.
    #[must_use]
    pub fn finish(mut self, count: u64) -> (NodeLine, Caught) {
        self.sink.wait_for(usize::try_from(count).expect("a count"));
        let (line, caught) = self.stop();
        assert_eq!(line.sent, count, "{line:?}");
        (line, caught)
    }

    /// Whether a record is a flow, and not options data.
    #[must_use]
    pub fn is_flow(record: &Value) -> bool {
        record["attributes"]["flow.record_type"].is_null()
    }
}

/// The line of the receiver in a report.
#[must_use]
pub fn receiver(report: &Report) -> &NodeLine {
    report.node("edge/flows")
}

/// An attribute that is a number.
///
/// # Panics
/// If it is not.
#[must_use]
pub fn number(record: &Value, key: &str) -> u64 {
    record["attributes"][key].as_u64().unwrap_or_else(|| panic!("no {key} in {record}"))
}

/// The attributes of a record.
///
/// # Panics
/// If it has none.
#[must_use]
pub fn attributes(record: &Value) -> &Map<String, Value> {
    record["attributes"].as_object().expect("attributes")
}
