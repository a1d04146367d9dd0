//! `catchment-loadgen sink` as a process.

use std::fs::File;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{PATIENCE, Process, Scene, binaries, local, wait_for, wait_until};

/// A running sink for OTLP and OTAP that keeps a record.
#[derive(Debug)]
pub struct Sink {
    process: Process,
    record: PathBuf,
    otlp: SocketAddr,
    otap: SocketAddr,
    otlp_http: SocketAddr,
    seen: Seen,
}

/// How far the record has been counted.
#[derive(Debug, Default)]
struct Seen {
    file: Option<File>,
    lines: usize,
}

/// What a sink got in its life.
#[derive(Debug)]
pub struct Caught {
    /// Log records.
    pub logs: u64,
    /// Data points.
    pub points: u64,
    /// Each of them as JSON, in the order of arrival.
    pub records: Vec<Value>,
}

impl Sink {
    /// Starts on free ports.
    #[must_use]
    pub fn start(scene: &Scene) -> Self {
        Self::start_on(scene, 0)
    }

    /// Starts with OTLP on a certain port.
    ///
    /// # Panics
    /// If it does not say where it listens.
    #[must_use]
    pub fn start_on(scene: &Scene, otlp_port: u16) -> Self {
        let record = scene.unused("record");
        let mut command = binaries::catchment_loadgen();
        let _ = command.arg("sink").arg("--record").arg(&record);
        let _ = command.arg("--otlp-grpc").arg(local(otlp_port).to_string()).args(["--otap", "127.0.0.1:0"]);
        let _ = command.args(["--otlp-http", "127.0.0.1:0"]);
        let mut process = Process::start(&mut command);
        let listening: Value = wait_for("the sink says where it listens", || {
            assert!(process.is_running(), "the sink ended: {}", process.stderr());
            serde_json::from_str(process.stdout().lines().next()?).ok()
        });
        let address = |kind: &str| {
            let text = listening["listening"][kind].as_str();
            text.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no {kind} address in {listening}"))
        };
        let (otlp, otap, otlp_http) = (address("otlp_grpc"), address("otap"), address("otlp_http"));
        Self { otlp, otap, otlp_http, process, record, seen: Seen::default() }
    }

    /// Port of OTLP over gRPC.
    #[must_use]
    pub fn otlp(&self) -> u16 {
        self.otlp.port()
    }

    /// Port of OTAP.
    #[must_use]
    pub fn otap(&self) -> u16 {
        self.otap.port()
    }

    /// Port of OTLP over HTTP.
    #[must_use]
    pub fn otlp_http(&self) -> u16 {
        self.otlp_http.port()
    }

    /// Waits until at least `count` records have come.
    ///
    /// # Panics
    /// If they do not come, with their number.
    pub fn wait_for(&mut self, count: usize) {
        let Self { seen, record, .. } = self;
        let last = std::cell::Cell::new(0);
        let reached = crate::wait::within(PATIENCE, || {
            last.set(seen.count(record));
            (last.get() >= count).then_some(())
        });
        assert!(reached.is_some(), "{} records came, expected {count}", last.get());
    }

    /// The records so far.
    #[must_use]
    pub fn records(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.record).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Waits until a record fulfils the condition.
    ///
    /// # Panics
    /// If none does.
    pub fn wait_for_record(&self, what: &str, condition: impl Fn(&Value) -> bool) {
        wait_until(what, || self.records().iter().any(&condition));
    }

    /// Sends a signal to it, such as SIGSTOP to make it take nothing.
    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        self.process.signal(signal);
    }

    /// Ends the sink.
    ///
    /// # Panics
    /// If it failed, could not decode something, or its counts and its record differ.
    #[must_use]
    pub fn stop(self) -> Caught {
        let ended = self.process.terminate(PATIENCE);
        let _ = ended.expect_code(0);
        let counts: Value =
            ended.stdout.lines().last().and_then(|line| serde_json::from_str(line).ok()).expect("counts");
        let count = |key: &str| counts[key].as_u64().unwrap_or_else(|| panic!("no {key} in {counts}"));
        let text = std::fs::read_to_string(&self.record).expect("the record");
        let records: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("each line of a record is JSON")).collect();
        assert_eq!(count("decode_errors"), 0);
        assert_eq!(count("logs") + count("points"), records.len() as u64, "{counts}");
        Caught { logs: count("logs"), points: count("points"), records }
    }
}

impl Seen {
    /// Lines of the record so far; each is read once.
    fn count(&mut self, record: &Path) -> usize {
        if self.file.is_none() {
            self.file = File::open(record).ok();
        }
        let mut bytes = Vec::new();
        if let Some(file) = &mut self.file {
            let _ = file.read_to_end(&mut bytes);
        }
        self.lines += bytes.iter().filter(|byte| **byte == b'\n').count();
        self.lines
    }
}
