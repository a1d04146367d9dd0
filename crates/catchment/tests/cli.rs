//! The command line of the binary: answers, exit codes, and on which stream.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn catchment(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_catchment"))
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .stdin(Stdio::null())
        .output()
        .expect("the binary starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Help is an answer, and has examples of every command.
#[test]
fn help_shows_the_commands() {
    let output = catchment(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let help = text(&output.stdout);
    for part in ["--config", "validate", "components", "decode", "Examples:", "configs/quickstart.yaml"] {
        assert!(help.contains(part), "{part} is not in: {help}");
    }
    assert!(output.stderr.is_empty());
}

/// The version is that of the package.
#[test]
fn version() {
    let output = catchment(&["--version"]);
    assert_eq!(text(&output.stdout), format!("catchment {}\n", env!("CARGO_PKG_VERSION")));
}

/// Own nodes first, each with the version of the package; upstream's behind them with that of the engine.
#[test]
fn components_are_listed() {
    let output = catchment(&["components"]);
    assert_eq!(output.status.code(), Some(0));
    let listing = text(&output.stdout);
    let nodes: Vec<(&str, &str)> = listing.lines().skip(1).filter_map(|line| line.split_once("  ")).collect();
    let own = nodes.iter().take_while(|(urn, _)| urn.starts_with("urn:catchment:")).count();
    for urn in ["receiver:syslog", "receiver:ipfix", "processor:quantile", "exporter:console_table", "exporter:lanes"] {
        let found = nodes[..own].iter().find(|(node, _)| *node == format!("urn:catchment:{urn}"));
        assert_eq!(found.map(|(_, version)| version.trim()), Some(env!("CARGO_PKG_VERSION")), "{urn} in {listing}");
    }
    for urn in ["urn:otel:receiver:otap", "urn:otel:processor:batch", "urn:otel:exporter:otlp_grpc"] {
        assert!(nodes[own..].iter().any(|(node, _)| *node == urn), "{urn} is not in: {listing}");
    }
}

/// A right configuration is summed up on standard output, by the command and by the flag.
#[test]
fn validation_says_what_it_found() {
    for arguments in
        [&["validate", "configs/quickstart.yaml"][..], &["--config", "configs/quickstart.yaml", "--validate-and-exit"]]
    {
        let output = catchment(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "valid: 2 pipelines, 8 nodes\n");
    }
}

/// Wrong command lines and files end with 2, say why on standard error, and leave standard output alone.
#[test]
fn errors_of_usage() {
    for (arguments, said) in [
        (&["--config", "configs/missing.yaml"][..], "configs/missing.yaml"),
        (&["validate", "configs/missing.yaml"], "configs/missing.yaml"),
        (&["validate"], "<FILE>"),
        (&["--num-cores", "some"], "--num-cores"),
        (&["--num-cores", "1", "--core-id-range", "0-1"], "--core-id-range"),
        (&["--core-id-range", "3-0"], "backwards"),
        (&["decode"], "Usage"),
        (&["decode", "netflow"], "netflow"),
        (&["decode", "syslog", "configs/missing.log"], "configs/missing.log"),
        (&["frobnicate"], "frobnicate"),
    ] {
        let output = catchment(arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{arguments:?}: {}", text(&output.stdout));
    }
}

/// A reader that has seen enough is no failure.
#[test]
fn a_closed_pipe_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_catchment"))
        .args(["decode", "ipfix", "configs/data/flows.pcap"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}
