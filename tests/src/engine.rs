//! `catchment --config` as a process.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::{Ended, PATIENCE, Process, Report, Scene, binaries, free_port, http, local, wait_until};

/// The beginning of a configuration, up to its groups: one core a pipeline, admin server on `@admin@`, all counts.
pub const HEAD: &str = r#"version: otel_dataflow/v1
policies:
  resources:
    core_allocation: {type: core_count, count: 1}
  telemetry: {runtime_metrics: detailed}
engine:
  http_admin: {bind_address: "127.0.0.1:@admin@"}
  telemetry:
    reporting_interval: 100ms
    logs: {level: warn}
"#;

/// Starts in which a port was taken meanwhile, before giving up.
const ATTEMPTS: usize = 5;

/// A running engine.
#[derive(Debug)]
pub struct Engine {
    process: Process,
    ports: BTreeMap<String, u16>,
}

/// An engine that has ended by itself or by SIGTERM.
#[derive(Debug)]
pub struct Stopped {
    /// Exit code and output.
    pub ended: Ended,
    /// The report.
    pub report: Report,
}

impl Stopped {
    /// Fails unless the exit code is 0 and the books balance; gives the report.
    ///
    /// # Panics
    /// Otherwise.
    pub fn expect_clean(&self) -> &Report {
        let _ = self.ended.expect_code(0);
        self.report.assert_balanced();
        &self.report
    }
}

impl Engine {
    /// Starts an engine and waits until it says that it is ready. Every `@name@` in `yaml` is a port: that of `known`,
    /// or a free one. `@admin@` must be among them.
    ///
    /// # Panics
    /// If it ends or does not become ready.
    #[must_use]
    pub fn start(scene: &Scene, yaml: &str, known: &[(&str, u16)]) -> Self {
        let mut failure = String::new();
        for _ in 0..ATTEMPTS {
            let (text, ports) = fill_in(yaml, known);
            let file = scene.unused("config");
            std::fs::write(&file, &text).expect("the scene can be written to");
            let process = Process::start(binaries::catchment().arg("--config").arg(&file));
            let mut engine = Self { process, ports };
            let admin = engine.address("admin");
            let mut failed = false;
            wait_until("the engine is ready", || {
                failed = !engine.process.is_running() || engine.process.stderr().contains("Address already in use");
                failed || is_ready(admin)
            });
            if !failed {
                return engine;
            }
            failure = engine.process.stderr();
            assert!(failure.contains("Address already in use"), "the engine ended:\n{text}\n{failure}");
        }
        panic!("no start in {ATTEMPTS} attempts: {failure}")
    }

    /// The address of the port `@name@`.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn address(&self, name: &str) -> SocketAddr {
        local(*self.ports.get(name).unwrap_or_else(|| panic!("no port @{name}@")))
    }

    /// The port `@name@`.
    #[must_use]
    pub fn port(&self, name: &str) -> u16 {
        self.address(name).port()
    }

    /// `udp://` and the address of a port, as generators take it.
    #[must_use]
    pub fn udp(&self, name: &str) -> String {
        format!("udp://{}", self.address(name))
    }

    /// `tcp://` and the address of a port, as generators take it.
    #[must_use]
    pub fn tcp(&self, name: &str) -> String {
        format!("tcp://{}", self.address(name))
    }

    /// Waits until somebody listens on the port.
    pub fn wait_listening(&self, name: &str) {
        let address = self.address(name);
        wait_until("a port is listened on", || TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok());
    }

    /// The sum of a counter or gauge over all nodes that report it, from the admin server.
    #[must_use]
    pub fn metric(&self, set: &str, field: &str) -> u64 {
        self.measurements(set, field).iter().map(|(_, value)| value).sum()
    }

    /// The values of a counter or gauge, each with its attributes, from the admin server.
    #[must_use]
    pub fn measurements(&self, set: &str, field: &str) -> Vec<(BTreeMap<String, String>, u64)> {
        let Ok(answer) = http::get(self.address("admin"), "/api/v1/metrics") else { return Vec::new() };
        // Counters end in `_total`, numbers of bytes have their unit before that.
        let names = ["_total", "", "_bytes", "_bytes_total"].map(|suffix| format!("{field}{suffix}{{"));
        let measurement = |line: &str| {
            let rest = names.iter().find_map(|name| line.strip_prefix(name.as_str()))?;
            let (attributes, value) = rest.rsplit_once("} ")?;
            let pairs = attributes.split("\",").filter_map(|pair| pair.split_once("=\""));
            // Those of the set of metrics as a whole are told with those of its scope.
            let key = |key: &str| key.strip_prefix("otel_scope_").unwrap_or(key).to_owned();
            let attributes: BTreeMap<_, _> =
                pairs.map(|(name, value)| (key(name), value.trim_end_matches('"').to_owned())).collect();
            let value = value.split(' ').next()?.parse().ok()?;
            (attributes.get("name").map(String::as_str) == Some(set)).then_some((attributes, value))
        };
        answer.body.lines().filter_map(measurement).collect()
    }

    /// What it has printed so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        self.process.stdout()
    }

    /// Its resident memory in bytes.
    ///
    /// # Panics
    /// If it has ended.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        self.process.resident_bytes()
    }

    /// Fails if it has ended.
    ///
    /// # Panics
    /// With what it said last.
    pub fn assert_running(&mut self) {
        assert!(self.process.is_running(), "the engine has ended: {}", self.process.stderr());
    }

    /// Shuts a pipeline of the group `site` down with so many seconds for it, and waits until it has ended.
    ///
    /// # Panics
    /// If the engine does not do it.
    pub fn shut_down(&self, pipeline: &str, seconds: u64) {
        let path = format!("/api/v1/groups/site/pipelines/{pipeline}/shutdown?wait=true&timeout_secs={seconds}");
        let answer = http::post(self.address("admin"), &path, "", &[]).expect("an answer");
        assert!(answer.status < 300, "{}: {}", answer.status, answer.body);
    }

    /// Sends SIGTERM and waits for the drain.
    ///
    /// # Panics
    /// If it does not end.
    #[must_use]
    pub fn stop(self) -> Stopped {
        self.stop_within(PATIENCE)
    }

    /// Sends SIGTERM and waits for the drain, at most `patience`.
    ///
    /// # Panics
    /// If it does not end.
    #[must_use]
    pub fn stop_within(self, patience: Duration) -> Stopped {
        let ended = self.process.terminate(patience);
        // Where a console has claimed standard output for its records, the report is on standard error.
        let claimed = ended.stdout.starts_with('{');
        let report = Report::parse(if claimed { &ended.stderr } else { &ended.stdout });
        Stopped { ended, report }
    }
}

/// Whether all pipelines have reported that they are ready. `readyz` alone says so as long as none has reported at all.
fn is_ready(admin: SocketAddr) -> bool {
    let get = |path| http::get(admin, path).ok().filter(|answer| answer.status == 200);
    let status = get("/api/v1/readyz").and_then(|_| get("/api/v1/status"));
    let status: Option<Value> = status.and_then(|answer| serde_json::from_str(&answer.body).ok());
    let pipelines = status.as_ref().and_then(|status| status["pipelines"].as_object());
    let ready = |pipeline: &Value| {
        let conditions = pipeline["conditions"].as_array();
        conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"))
    };
    pipelines.is_some_and(|all| !all.is_empty() && all.values().all(ready))
}

/// Puts ports in the place of names. An `@` that begins no name stays.
fn fill_in(yaml: &str, known: &[(&str, u16)]) -> (String, BTreeMap<String, u16>) {
    let mut ports: BTreeMap<String, u16> = known.iter().map(|(name, port)| ((*name).to_owned(), *port)).collect();
    let mut text = String::new();
    let mut rest = yaml;
    while let Some((before, after)) = rest.split_once('@') {
        text.push_str(before);
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
        match after[end..].strip_prefix('@') {
            Some(behind) if end > 0 => {
                let port = *ports.entry(after[..end].to_owned()).or_insert_with(free_port);
                text.push_str(&port.to_string());
                rest = behind;
            }
            _ => {
                text.push('@');
                rest = after;
            }
        }
    }
    (text + rest, ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same name is the same port, a known one the given, and an address of mail is no name.
    #[test]
    fn names_become_ports() {
        let (text, ports) = fill_in("a: @a@ b: x@32473.y a: @a@ k: @known@ @", &[("known", 7)]);
        let port = ports["a"];
        assert_eq!(text, format!("a: {port} b: x@32473.y a: {port} k: 7 @"));
    }
}
