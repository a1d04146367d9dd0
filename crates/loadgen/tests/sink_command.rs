//! The `sink` command as a process: what it prints, and how it ends.
#![cfg(feature = "sink")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
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

/// A raw sink ends with its time; items cannot be expected of it.
#[test]
fn raw() {
    for (arguments, code) in [(&["--timeout", "20ms"], 0), (&["--expect", "1"], 2)] {
        let (mut child, _out) = start(&[&["--raw", "--otap", "127.0.0.1:0"][..], arguments].concat());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{arguments:?}");
    }
}

/// Without an address there is nothing to do.
#[test]
fn no_address() {
    let (mut child, _) = start(&[]);
    assert_eq!(child.wait().unwrap().code(), Some(2), "clap's code for wrong arguments");
}

/// A script is followed, and the report tells of it; a wrong one is refused with the key at fault.
#[test]
fn scripts() {
    let folder = tempfile::tempdir().unwrap();
    let (script, report) = (folder.path().join("script.yaml"), folder.path().join("report.json"));
    let (script, report) = (script.to_str().unwrap(), report.to_str().unwrap());
    std::fs::write(script, "steps: [{ when: { to: 1 }, answer: { http: { status: 429 } } }]").unwrap();
    let arguments = ["--otlp-http", "127.0.0.1:0", "--expect", "1", "--script", script, "--report", report];
    let (mut child, mut out) = start(&arguments);
    let address = line(&mut out)["listening"]["otlp_http"].as_str().unwrap().to_owned();
    // One log record without anything: resource logs, scope logs, record.
    let body = b"\x0a\x04\x12\x02\x12\x00";
    let head = "POST /v1/logs HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n";
    for expected in ["HTTP/1.1 429", "HTTP/1.1 200"] {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        let head = format!("{head}content-length: {}\r\n\r\n", body.len());
        stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        let mut answer = [0; 12];
        // The sink ends as soon as the item is there; the answer may be lost with it.
        if stream.read_exact(&mut answer).is_ok() {
            assert_eq!(answer, expected.as_bytes());
        }
    }
    assert_eq!(line(&mut out)["logs"], 1);
    let told = &line(&mut out)["report"];
    assert_eq!((&told["totals"]["requests"], &told["totals"]["stored_items"]), (&2.into(), &1.into()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let whole: Value = serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
    assert_eq!(whole["requests"][0]["action"], "http 429");
    assert_eq!(whole["requests"][0]["outcome"], "refused");

    std::fs::write(script, "steps: [{ times: 0 }]").unwrap();
    let ended = Command::new(env!("CARGO_BIN_EXE_catchment-loadgen"))
        .args(["sink", "--otap", "127.0.0.1:0", "--script", script])
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let error = String::from_utf8(ended.stderr).unwrap();
    assert!(error.contains("script.yaml: steps[0].times: 0, expected at least 1"), "{error}");
}

/// A random script is printed, so that it can be kept, and is a script itself.
#[test]
fn random_script() {
    let arguments = ["--otap", "127.0.0.1:0", "--random-script", "7", "--timeout", "20ms"];
    let printed = |arguments: &[&str]| {
        let (mut child, mut out) = start(arguments);
        let script = line(&mut out)["script"].to_string();
        let _ = child.wait().unwrap();
        script
    };
    let script = printed(&arguments);
    assert!(script.contains("steps"), "{script}");
    assert_eq!(printed(&arguments), script);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), script).unwrap();
    let path = file.path().to_str().unwrap();
    let (mut child, mut out) = start(&["--otap", "127.0.0.1:0", "--script", path, "--timeout", "20ms"]);
    assert!(line(&mut out)["listening"]["otap"].is_string());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let (mut child, _) = start(&["--otap", "127.0.0.1:0", "--otlp-grpc", "127.0.0.1:0", "--random-script", "7"]);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
