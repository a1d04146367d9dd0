//! `catchment-loadgen` as a sender.

use std::io::{ErrorKind, Read as _};
use std::net::TcpListener;

use serde_json::Value;

use crate::{Process, binaries, local, wait_for};

/// What a generator says it sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Messages.
    pub messages: u64,
    /// Records in them.
    pub records: u64,
}

/// Runs a generator to its end: `command` is `syslog`, `ipfix` or `replay`, `to` the target, `arguments` the rest.
///
/// # Panics
/// If it fails.
pub fn loadgen(command: &str, to: &str, arguments: &[&str]) -> Sent {
    let ended = start_loadgen(command, to, arguments).wait();
    let line: Value = serde_json::from_str(ended.expect_code(0).stdout.trim()).expect("one JSON object");
    let count = |key: &str| line[key].as_u64().unwrap_or_else(|| panic!("no {key} in {line}"));
    Sent { messages: count("messages"), records: count("records") }
}

/// Starts a generator.
#[must_use]
pub fn start_loadgen(command: &str, to: &str, arguments: &[&str]) -> Process {
    Process::start(binaries::catchment_loadgen().args([command, "--to", to]).args(arguments))
}

/// The lines that `loadgen("syslog", .., arguments)` sends over its one connection: the same arguments give the same
/// lines, so they are caught here.
///
/// # Panics
/// If the generator fails.
#[must_use]
pub fn generated_lines(arguments: &[&str]) -> Vec<String> {
    let listener = TcpListener::bind(local(0)).expect("a free port");
    let address = listener.local_addr().expect("an address");
    listener.set_nonblocking(true).expect("a mode of sockets");
    let mut process = start_loadgen("syslog", &format!("tcp://{address}"), arguments);
    let mut stream = wait_for("the generator connects", || match listener.accept() {
        Ok((stream, _)) => Some(stream),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            assert!(process.is_running(), "the generator ended: {}", process.stderr());
            None
        }
        Err(error) => panic!("cannot accept: {error}"),
    });
    stream.set_nonblocking(false).expect("a mode of sockets");
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text).expect("text");
    let _ = process.wait().expect_code(0);
    text.lines().map(str::to_owned).collect()
}
