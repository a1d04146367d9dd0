//! The rows, and what they say about where they were measured.

use std::fs::File;
use std::io::{self, Write};
use std::process::Command;

use serde::Serialize;

use crate::process::cpu_model;

/// One number of ours, with a peer's beside it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measured<'a> {
    pub(crate) table: &'a str,
    pub(crate) case: &'a str,
    pub(crate) metric: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) ours: f64,
    pub(crate) peer: Option<Peer<'a>>,
}

/// What we compare with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Peer<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: f64,
}

/// Where rows were measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine {
    commit: String,
    cpu: String,
}

impl Machine {
    /// This machine, and the commit of the sources this program was built from.
    pub(crate) fn detect() -> Self {
        Self { commit: commit().unwrap_or_else(|| "unknown".into()), cpu: cpu_model() }
    }
}

/// The short hash, with `-dirty` if tracked files were changed since.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(env!("CARGO_MANIFEST_DIR")).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let hash = git(&["rev-parse", "--short", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { hash } else { hash + "-dirty" })
}

/// The JSON of a row. The names are read by other programs: they do not change.
#[derive(Debug, Serialize)]
struct Line<'a> {
    table: &'a str,
    case: &'a str,
    metric: &'a str,
    unit: &'a str,
    ours: f64,
    peer: Option<f64>,
    peer_name: Option<&'a str>,
    ratio: Option<f64>,
    commit: &'a str,
    cpu: &'a str,
}

impl<'a> Line<'a> {
    fn new(row: &Measured<'a>, machine: &'a Machine) -> Self {
        Self {
            table: row.table,
            case: row.case,
            metric: row.metric,
            unit: row.unit,
            ours: rounded(row.ours),
            peer: row.peer.map(|peer| rounded(peer.value)),
            peer_name: row.peer.map(|peer| peer.name),
            // Division by zero gives no number, and serde_json writes that as null.
            ratio: row.peer.map(|peer| rounded(row.ours / peer.value)),
            commit: &machine.commit,
            cpu: &machine.cpu,
        }
    }
}

/// Four decimals: more than any run repeats.
fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

/// Writes rows as they come, to standard output and maybe a file.
#[derive(Debug)]
pub(crate) struct Rows<W> {
    machine: Machine,
    out: W,
    file: Option<File>,
}

impl<W: Write> Rows<W> {
    pub(crate) fn new(machine: Machine, out: W, file: Option<File>) -> Self {
        Self { machine, out, file }
    }

    pub(crate) fn add(&mut self, row: &Measured<'_>) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Line::new(row, &self.machine))?;
        line.push(b'\n');
        if let Some(file) = &mut self.file {
            file.write_all(&line)?;
        }
        self.out.write_all(&line)?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(peer: Option<Peer<'_>>) -> String {
        let machine = Machine { commit: "abc1234-dirty".into(), cpu: "Some CPU".into() };
        let mut out = Vec::new();
        let row = Measured {
            table: "syslog",
            case: "tcp-otap-zstd/cef",
            metric: "cpu",
            unit: "us/log",
            ours: 1.500_04,
            peer,
        };
        Rows::new(machine, &mut out, None).add(&row).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Keys, order and rounding.
    #[test]
    fn with_a_peer() {
        let expected = concat!(
            r#"{"table":"syslog","case":"tcp-otap-zstd/cef","metric":"cpu","unit":"us/log","ours":1.5,"peer":3.0,"#,
            r#""peer_name":"upstream","ratio":0.5,"commit":"abc1234-dirty","cpu":"Some CPU"}"#,
            "\n"
        );
        assert_eq!(line(Some(Peer { name: "upstream", value: 3.0 })), expected);
    }

    /// Without a peer, or without a usable number of it, there is null.
    #[test]
    fn without_a_peer() {
        assert!(line(None).contains(r#""peer":null,"peer_name":null,"ratio":null"#));
        assert!(line(Some(Peer { name: "none", value: 0.0 })).contains(r#""ratio":null"#));
    }

    /// The same lines go to the file.
    #[test]
    fn file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let machine = Machine { commit: String::new(), cpu: String::new() };
        let mut out = Vec::new();
        let mut rows = Rows::new(machine, &mut out, Some(file.reopen().unwrap()));
        for metric in ["cpu", "rate"] {
            rows.add(&Measured { table: "t", case: "c", metric, unit: "u", ours: 1.0, peer: None }).unwrap();
        }
        let mut written = String::new();
        let _ = io::Read::read_to_string(&mut file, &mut written).unwrap();
        assert_eq!(written.lines().count(), 2);
        assert_eq!(written.as_bytes(), out);
    }
}
