//! `catchment-loadgen sink --script` as a process.

use std::path::PathBuf;

use serde_json::Value;

use crate::{PATIENCE, Process, Scene, binaries, local, wait_for};

/// A sink for all protocols that follows a script.
#[derive(Debug)]
pub struct ScriptedSink {
    process: Process,
    listening: Value,
    requests: PathBuf,
}

/// What it had to say at its end.
#[derive(Debug)]
pub struct Followed {
    counts: Value,
    report: Value,
    /// Each request, as the sink lists it.
    pub requests: Vec<Value>,
}

impl ScriptedSink {
    /// Starts on free ports.
    ///
    /// # Panics
    /// If it does not say where it listens.
    #[must_use]
    pub fn start(scene: &Scene, script: &str) -> Self {
        Self::start_on(scene, script, "", 0)
    }

    /// Starts on free ports but for that of `otlp_grpc`, `otlp_http` or `otap`.
    ///
    /// # Panics
    /// If it does not say where it listens.
    #[must_use]
    pub fn start_on(scene: &Scene, script: &str, protocol: &str, port: u16) -> Self {
        let file = scene.unused("script");
        std::fs::write(&file, script).expect("the scene can be written to");
        let mut command = binaries::catchment_loadgen();
        let _ = command.arg("sink").arg("--script").arg(&file);
        let requests = scene.unused("requests");
        let _ = command.arg("--report").arg(&requests);
        for name in ["otlp_grpc", "otlp_http", "otap"] {
            let address = local(if name == protocol { port } else { 0 });
            let _ = command.arg(format!("--{}", name.replace('_', "-"))).arg(address.to_string());
        }
        let mut process = Process::start(&mut command);
        let mut listening: Value = wait_for("the sink says where it listens", || {
            assert!(process.is_running(), "the sink ended: {}", process.stderr());
            serde_json::from_str(process.stdout().lines().next()?).ok()
        });
        Self { process, listening: listening["listening"].take(), requests }
    }

    /// The port of `otlp_grpc`, `otlp_http` or `otap`.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn port(&self, protocol: &str) -> u16 {
        let address = self.listening[protocol].as_str().and_then(|text| text.rsplit_once(':'));
        address.and_then(|(_, port)| port.parse().ok()).unwrap_or_else(|| panic!("no {protocol}"))
    }

    /// Ends the sink.
    ///
    /// # Panics
    /// If it failed or could not decode something.
    #[must_use]
    pub fn stop(self) -> Followed {
        let ended = self.process.terminate(PATIENCE);
        let mut lines = ended.expect_code(0).stdout.lines().skip(1);
        let mut line = || -> Value { serde_json::from_str(lines.next().expect("a line")).expect("JSON") };
        let (counts, mut report) = (line(), line());
        assert_eq!(counts["decode_errors"], 0, "{counts}");
        let listed = std::fs::read_to_string(&self.requests).expect("the list of requests");
        let listed: Value = serde_json::from_str(&listed).expect("JSON");
        let requests = listed["requests"].as_array().cloned().unwrap_or_default();
        Followed { counts, report: report["report"].take(), requests }
    }
}

impl Followed {
    /// A count: `logs`, `points`, `spans`, `requests`.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        self.counts[name].as_u64().unwrap_or_else(|| panic!("no {name} in {}", self.counts))
    }

    /// A sum of the report, such as `first_accepted`.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn total(&self, name: &str) -> u64 {
        self.report["totals"][name].as_u64().unwrap_or_else(|| panic!("no {name} in {}", self.report))
    }

    /// What became of each key.
    ///
    /// # Panics
    /// If it is not told.
    #[must_use]
    pub fn keys(&self) -> &[Value] {
        self.report["keys"].as_array().expect("keys")
    }

    /// Fails unless so many items came, each once, in order within their keys.
    ///
    /// # Panics
    /// Otherwise, with the sums.
    pub fn assert_all_in_order(&self, items: u64) {
        let totals = &self.report["totals"];
        assert_eq!(self.total("first_accepted"), items, "{totals}");
        for none in ["duplicates", "out_of_order", "without_key"] {
            assert_eq!(self.total(none), 0, "{none}: {totals}");
        }
    }
}
