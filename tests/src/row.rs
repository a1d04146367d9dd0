//! The corpus through a pipeline.

use std::io::Write as _;
use std::net::{Shutdown, TcpStream};

use serde_json::Value;

use crate::{Corpus, Engine, HEAD, Scene, Sink, Stopped, comparable};

/// What stands behind the receiver `syslog` of the pipeline `edge`.
///
/// `@otap@` and `@otlp@` in it are the ports of the sink.
#[derive(Debug, Default)]
pub struct Behind {
    nodes: String,
    connections: String,
    last: String,
    more: String,
}

impl Behind {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self { last: "syslog".to_owned(), ..Self::default() }
    }

    /// A node behind the last one. `rest` is what its YAML flow map has beside its type.
    #[must_use]
    pub fn node(mut self, name: &str, urn: &str, rest: &str) -> Self {
        let from = std::mem::replace(&mut self.last, name.to_owned());
        self.branch(&from, name, urn, rest)
    }

    /// A node behind an output, such as `fanout["a"]`.
    #[must_use]
    pub fn branch(mut self, from: &str, name: &str, urn: &str, rest: &str) -> Self {
        self.nodes += &format!("          {name}: {{type: \"{urn}\", {rest}}}\n");
        self.connections += &format!("          - {{from: '{from}', to: {name}}}\n");
        self
    }

    /// Another pipeline in the same engine.
    #[must_use]
    pub fn pipeline(mut self, yaml: &str) -> Self {
        self.more += yaml;
        self
    }

    /// The exporter to OTAP, as the end.
    #[must_use]
    pub fn otap(self) -> Self {
        self.node(
            "otap",
            "exporter:otap",
            "config: {grpc_endpoint: \"http://127.0.0.1:@otap@\", compression_method: zstd}",
        )
    }

    /// The exporter to OTLP over gRPC, as the end.
    #[must_use]
    pub fn otlp(self) -> Self {
        self.node("otlp", "exporter:otlp_grpc", "config: {grpc_endpoint: \"http://127.0.0.1:@otlp@\"}")
    }

    /// A batch processor that makes batches of other sizes than the receiver.
    #[must_use]
    pub fn batch(self) -> Self {
        let sizes = "otap: {min_size: 250, max_size: 333, sizer: items}";
        self.node("batch", "processor:batch", &format!("config: {{format: otap, {sizes}, max_batch_duration: 100ms}}"))
    }

    /// The configuration, with `settings` of the receiver beside its listener `@syslog@`.
    #[must_use]
    pub fn yaml(&self, settings: &str) -> String {
        let Self { nodes, connections, more, .. } = self;
        format!(
            "{HEAD}groups:\n  site:\n    pipelines:\n      edge:\n        nodes:\n          syslog: {{type: \
             \"urn:catchment:receiver:syslog\", config: {{tcp: {{listening_addr: \"127.0.0.1:@syslog@\", framing: octet_counting}}{settings}}}}}\n\
             {nodes}        connections:\n{connections}{more}"
        )
    }
}

/// Sends the corpus to the receiver and gives what comes out at the sink, [`comparable`], and how the engine ended.
/// `passing` of the messages come so far. The receiver has taken in, sent and got acknowledged all.
///
/// # Panics
/// If something is lost, or the books do not balance.
#[must_use]
pub fn carried(corpus: &Corpus, settings: &str, behind: &Behind, passing: usize) -> (Vec<Value>, Stopped) {
    let scene = Scene::new();
    let mut sink = Sink::start(&scene);
    let known = [("otap", sink.otap()), ("otlp", sink.otlp())];
    let engine = Engine::start(&scene, &behind.yaml(settings), &known);
    let mut stream = TcpStream::connect(engine.address("syslog")).expect("a connection");
    stream.write_all(&corpus.stream()).expect("it is read");
    stream.shutdown(Shutdown::Write).expect("it is open");
    sink.wait_for(passing);
    let all = corpus.count() as u64;
    crate::wait_until("all is acknowledged", || engine.metric("receiver.syslog", "messages_acknowledged") == all);
    let stopped = engine.stop();
    let caught = sink.stop();
    let line = stopped.expect_clean().node("edge/syslog");
    assert_eq!((line.received, line.sent, line.note("acknowledged")), (Some(all), all, all), "{line:?}");
    assert_eq!(caught.records.len(), passing);
    for record in &caught.records {
        let (transport, peer) =
            (&record["attributes"]["network.transport"], &record["attributes"]["network.peer.address"]);
        assert_eq!((transport.as_str(), peer.as_str()), (Some("tcp"), Some("127.0.0.1")), "{record}");
    }
    (comparable(caught.records), stopped)
}
