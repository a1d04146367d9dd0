//! An engine with a syslog receiver for each way in.

use serde_json::Value;

use crate::{Caught, Certificates, Engine, HEAD, Report, Scene, Sink};

/// An engine with the ports `plain` (UDP and TCP), `tls` and `mutual` (TLS where clients show a certificate, whose
/// subject goes into the records); all of it goes through one batch processor to a sink.
#[derive(Debug)]
pub struct Listeners {
    /// The engine.
    pub engine: Engine,
    /// The sink.
    pub sink: Sink,
    /// What the TLS ports and their clients show.
    pub certificates: Certificates,
}

const RECEIVERS: [&str; 3] = ["plain", "tls", "mutual"];

impl Listeners {
    /// Starts them.
    #[must_use]
    pub fn start(scene: &Scene) -> Self {
        let certificates = Certificates::new(scene);
        let sink = Sink::start(scene);
        let (cert, key, ca) = (&certificates.server, &certificates.server_key, &certificates.authority);
        let tls = format!("cert_file: {}, key_file: {}", cert.display(), key.display());
        let yaml = format!(
            r#"{HEAD}groups:
  site:
    pipelines:
      edge:
        nodes:
          plain:
            type: urn:catchment:receiver:syslog
            config: {{udp: {{listening_addr: "127.0.0.1:@plain@"}}, tcp: {{listening_addr: "127.0.0.1:@plain@"}}}}
          tls:
            type: urn:catchment:receiver:syslog
            config: {{tcp: {{listening_addr: "127.0.0.1:@tls@", tls: {{{tls}}}}}}}
          mutual:
            type: urn:catchment:receiver:syslog
            config:
              tcp:
                listening_addr: "127.0.0.1:@mutual@"
                tls: {{{tls}, client_ca_file: {ca}}}
                tls_client_subject: true
          batch:
            type: processor:batch
            config: {{format: otap, otap: {{min_size: 1000, max_size: 8000, sizer: items}}, max_batch_duration: 100ms}}
          otap:
            type: exporter:otap
            config: {{grpc_endpoint: "http://127.0.0.1:@sink@", compression_method: zstd}}
        connections:
          - {{from: [plain, tls, mutual], to: batch}}
          - {{from: batch, to: otap}}
"#,
            ca = ca.display()
        );
        let engine = Engine::start(scene, &yaml, &[("sink", sink.otap())]);
        Self { engine, sink, certificates }
    }

    /// Waits for `count` records at the sink, then stops everything and checks that every node has seen all of them, and
    /// no receiver a framing error.
    ///
    /// # Panics
    /// If one has not.
    #[must_use]
    pub fn finish(mut self, count: usize) -> (Report, Caught) {
        self.sink.wait_for(count);
        let edge = self.engine.stop();
        let caught = self.sink.stop();
        let report = edge.expect_clean().clone();
        let mut received = 0;
        for receiver in RECEIVERS {
            let line = report.node(&format!("edge/{receiver}"));
            assert_eq!((line.received, line.note("acknowledged")), (Some(line.sent), line.sent), "{line:?}");
            assert_eq!(line.note("framing errors"), 0, "{line:?}");
            received += line.sent;
        }
        assert_eq!((received, caught.logs, caught.records.len()), (count as u64, count as u64, count));
        for record in &caught.records {
            assert_eq!(record["attributes"]["network.peer.address"], "127.0.0.1", "{record}");
            assert!(record["attributes"]["syslog.truncated"].is_null(), "{record}");
            assert_eq!(record["body"], Value::Null, "all of it can be taken apart: {record}");
        }
        (report, caught)
    }
}
