//! The `sink` command as a process: what it prints, and how it ends.
#![cfg(feature = "sink")]

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

fn start(arguments: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_catchment-loadgen"))
        .arg("sink")
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let out = BufReader::new(child.stdout.take().expect("it is piped"));
    (child, out)
}

fn line(out: &mut BufReader<ChildStdout>) -> Value {
    let mut line = String::new();
    let _ = out.read_line(&mut line).expect("it can be read");
    serde_json::from_str(&line).expect("each line is JSON")
}

/// It says where it listens, and both signals end it with the counts and success.
#[test]
fn ended_by_signals() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let (mut child, mut out) = start(&["--otap", "127.0.0.1:0", "--otlp-grpc", "127.0.0.1:0"]);
        let listening = &line(&mut out)["listening"];
        for protocol in ["otap", "otlp_grpc"] {
            let address: SocketAddr = listening[protocol].as_str().unwrap().parse().unwrap();
            assert_ne!(address.port(), 0, "{protocol}");
        }
        kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
        let counts = line(&mut out);
        for key in ["logs", "points", "spans", "requests", "wire_bytes", "decode_errors"] {
            assert_eq!(counts[key], 0, "{key}");
        }
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
    }
}

/// The exit code says whether what was expected has arrived.
#[test]
fn expectations() {
    for (arguments, code) in
        [(&["--expect", "0"][..], 0), (&["--expect", "1", "--timeout", "20ms"], 1), (&["--timeout", "20ms"], 0)]
    {
        let (mut child, mut out) = start(&[&["--otap", "127.0.0.1:0"], arguments].concat());
        assert!(line(&mut out)["listening"]["otlp_grpc"].is_null());
        assert_eq!(line(&mut out)["logs"], 0);
        assert_eq!(child.wait().unwrap().code(), Some(code), "{arguments:?}");
    }
}

/// Without an address there is nothing to do.
#[test]
fn no_address() {
    let (mut child, _) = start(&[]);
    assert_eq!(child.wait().unwrap().code(), Some(2), "clap's code for wrong arguments");
}
