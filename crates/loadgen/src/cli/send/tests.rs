use std::io::Read as _;
use std::net::{TcpListener, UdpSocket};

use clap::Parser as _;

use super::*;
use crate::cli::{Args as Cli, Command};

pub(in crate::cli) fn command(words: &[&str]) -> Command {
    let words = std::iter::once("catchment-loadgen").chain(words.iter().copied());
    Cli::try_parse_from(words).unwrap().command
}

/// The lines and the rate are divided without loss.
#[test]
fn shares() {
    for (total, parts) in [(10, 3), (2, 5), (0, 4), (u64::MAX, 7)] {
        let sum: u64 = (0..parts).map(|number| share(total, parts, number)).sum();
        assert_eq!(sum, total, "{total} in {parts}");
    }
    assert_eq!([0, 1, 2].map(|number| share(10, 3, number)), [4, 3, 3]);
}

/// Several connections send all lines between them, in the framing asked for.
#[test]
fn syslog_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("tcp://{}", listener.local_addr().unwrap());
    let reader = std::thread::spawn(move || {
        let mut lines = Vec::new();
        for _ in 0..3 {
            let mut text = String::new();
            let _ = listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
            lines.extend(text.lines().map(str::to_owned));
        }
        lines
    });
    let args = ["syslog", "--to", &to, "--format", "rfc5424_sd", "--count", "100", "--connections", "3"];
    let Command::Syslog(args) = command(&args) else { panic!("not syslog") };
    let summary = syslog(&args).unwrap();
    let lines = reader.join().unwrap();
    assert_eq!((summary.messages, summary.records, lines.len()), (100, 100, 100));
    assert!(lines.iter().all(|line| line.starts_with('<') && line.contains("[")));
}

/// A rate that cannot be shared is refused, and so is a file for several connections.
#[test]
fn refused() {
    let args =
        ["syslog", "--to", "udp://127.0.0.1:9", "--format", "cef", "--count", "5", "--connections", "3", "--rate", "2"];
    let Command::Syslog(args) = command(&args) else { panic!("not syslog") };
    assert!(syslog(&args).unwrap_err().to_string().contains("--rate"));
    let args = ["syslog", "--to", "file:/tmp/none", "--format", "cef", "--count", "5", "--connections", "3"];
    let Command::Syslog(args) = command(&args) else { panic!("not syslog") };
    assert!(syslog(&args).unwrap_err().to_string().contains("one file"));
}

/// Each line of a text recording is a datagram; what is not there is named.
#[test]
fn replayed_lines() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines.log");
    std::fs::write(&file, "<13>one\n<14>two\n").unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = format!("udp://{}", socket.local_addr().unwrap());
    let Command::Replay(args) = command(&["replay", "--to", &to, file.to_str().unwrap()]) else { panic!("not replay") };
    let summary = replay(&args).unwrap();
    assert_eq!((summary.messages, summary.bytes, summary.skipped), (2, 14, Some(0)));
    for expected in ["<13>one", "<14>two"] {
        let mut datagram = [0; 100];
        let length = socket.recv(&mut datagram).unwrap();
        assert_eq!(std::str::from_utf8(&datagram[..length]).unwrap(), expected);
    }
    let Command::Replay(args) = command(&["replay", "--to", &to, "/nowhere.pcap"]) else { panic!("not replay") };
    assert!(replay(&args).unwrap_err().to_string().contains("/nowhere.pcap"));
}
