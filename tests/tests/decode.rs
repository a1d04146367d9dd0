//! `catchment decode`: one JSON object a record, problems with offset and reason, exit code by problems.

use std::path::Path;

use catchment_tests::pcap::{Capture, Ends};
use catchment_tests::{Ended, Scene, catchment, repository, run, run_with_input};
use serde_json::Value;

const LINE_3164: &str = "<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8";
const LINE_5424: &str = r#"<165>1 2026-10-11T22:14:15.003Z host app 42 ID47 [ex@32473 key="v"] An event"#;
const LINE_CEF: &str = "CEF:0|Vendor|Product|1.0|100|Name|5|src=10.0.0.1 msg=two words";

/// Keys of every log record, as they are printed.
const KEYS: &[&str] = &[
    "attributes",
    "body",
    "flags",
    "observed_time",
    "resource",
    "scope",
    "severity_number",
    "severity_text",
    "span_id",
    "time",
    "trace_id",
];

fn decode(arguments: &[&str]) -> Ended {
    run(catchment().arg("decode").args(arguments))
}

fn records(ended: &Ended) -> Vec<Value> {
    let records: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    for record in &records {
        let keys: Vec<_> = record.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(keys, KEYS, "{record}");
    }
    records
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}

fn attribute<'a>(record: &'a Value, key: &str) -> &'a Value {
    &record["attributes"][key]
}

fn flow_count(records: &[Value]) -> usize {
    records.iter().filter(|record| attribute(record, "flow.record_type").is_null()).count()
}

/// Every line of the recording is a record and none has a problem; times of RFC 3164 get year and zone.
#[test]
fn recorded_lines() {
    let ended = decode(&["syslog", "configs/data/syslog.log", "--received-at", "2026-11-30T12:00:00Z"]);
    let found = records(ended.expect_code(0));
    let lines = std::fs::read_to_string(repository().join("configs/data/syslog.log")).expect("the recording");
    assert_eq!(found.len(), lines.lines().count());
    assert_eq!(ended.stderr, "");
    for (record, line) in found.iter().zip(lines.lines()) {
        let expected = if line.contains(">1 ") { "rfc5424" } else { "rfc3164" };
        assert_eq!(attribute(record, "input.format"), expected, "{line}");
        assert!(record["time"].as_str().is_some_and(|time| time.starts_with("2026-11-30T")), "{record}");
        assert_eq!(attribute(record, "syslog.host_name"), "edge01");
    }
}

/// The same messages out of their datagrams, with the peer's address.
#[test]
fn recorded_datagrams() {
    let ended = decode(&["syslog", "configs/data/haproxy.pcap", "--structured-data", "flat"]);
    let found = records(ended.expect_code(0));
    assert_eq!(found.len(), 563);
    assert!(found.iter().all(|record| attribute(record, "network.transport") == "udp"));
    assert!(found.iter().all(|record| attribute(record, "network.peer.address") == "127.0.0.1"));
    let key = "syslog.structured_data.haproxy@32473.time_total_ms";
    assert_eq!(found.iter().filter(|record| attribute(record, key).is_string()).count(), 520);
}

/// Standard input is the default and can be named.
#[test]
fn standard_input() {
    for arguments in [&["decode", "syslog"][..], &["decode", "syslog", "-"]] {
        let ended =
            run_with_input(catchment().args(arguments), format!("{LINE_3164}\n{LINE_5424}\n{LINE_CEF}").as_bytes());
        let found = records(ended.expect_code(0));
        let formats: Vec<_> = found.iter().map(|record| attribute(record, "input.format")).collect();
        assert_eq!(formats, ["rfc3164", "rfc5424", "cef"]);
        assert_eq!(attribute(&found[0], "syslog.content"), "'su root' failed for lonvick on /dev/pts/8");
        assert_eq!(attribute(&found[1], "syslog.message"), "An event");
        assert_eq!(found[1]["time"], "2026-10-11T22:14:15.003000000Z");
        assert_eq!(attribute(&found[2], "msg"), "two words");
    }
}

/// Octet counting is recognised by itself and can be asked for; line ends inside of frames are content.
#[test]
fn octet_counted_stream() {
    let two_lines = "<13>1 - host app - - - first\nsecond";
    let stream = format!("{} {LINE_5424}{} {two_lines}", LINE_5424.len(), two_lines.len());
    for framing in ["auto", "octet_counting"] {
        let ended = run_with_input(catchment().args(["decode", "syslog", "--framing", framing]), stream.as_bytes());
        let found = records(ended.expect_code(0));
        assert_eq!(found.len(), 2);
        assert_eq!(attribute(&found[1], "syslog.message"), "first\nsecond");
    }
}

/// A line without PRI and one too long are told with their offsets, and are records all the same.
#[test]
fn bad_lines_are_told_with_offset_and_reason() {
    let scene = Scene::new();
    let long = format!("<13>1 - host app - - - {}", "x".repeat(2_000));
    let file = scene.write("mixed.log", format!("{LINE_5424}\nno priority here\n{long}\n{LINE_5424}\n"));
    let ended = decode(&["syslog", text(&file), "--max-message-size", "1000", "--framing", "newline"]);
    let found = records(ended.expect_code(1));
    assert_eq!(found.len(), 4);
    assert_eq!(found[1]["body"], "no priority here");
    assert_eq!(attribute(&found[2], "syslog.truncated"), true);
    let second = LINE_5424.len() + 1;
    let third = second + "no priority here\n".len();
    let problems: Vec<_> = ended.stderr.lines().collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with(&format!("offset {second}: ")) && problems[0].contains("PRI"), "{problems:?}");
    assert!(
        problems[1].starts_with(&format!("offset {third}: ")) && problems[1].contains("max-message-size"),
        "{problems:?}"
    );
}

/// What no framing can make sense of ends the run with the offset.
#[test]
fn a_broken_octet_count_is_told() {
    let stream = format!("{} {LINE_5424}9999999999 <13>x", LINE_5424.len());
    let ended =
        run_with_input(catchment().args(["decode", "syslog", "--framing", "octet_counting"]), stream.as_bytes());
    let found = records(ended.expect_code(1));
    assert_eq!(found.len(), 1);
    let offset = LINE_5424.len() + 3;
    assert!(ended.stderr.starts_with(&format!("offset {offset}: ")), "{}", ended.stderr);
}

/// All 2,342 flows of the recording, beside its options records.
#[test]
fn recorded_flows() {
    let ended = decode(&["ipfix", "configs/data/flows.pcap"]);
    let found = records(ended.expect_code(0));
    assert_eq!((flow_count(&found), found.len()), (2_342, 2_348));
    assert!(found.iter().all(|record| attribute(record, "flow.type") == "ipfix"));
    let flows = || found.iter().filter(|record| attribute(record, "flow.record_type").is_null());
    assert!(flows().all(|record| attribute(record, "flow.io.bytes").is_i64()), "each flow has its bytes");
    assert_eq!(flows().filter(|record| attribute(record, "network.type") == "ipv6").count(), 192);
}

/// A capture that ends in the middle of a packet gives what came before, and the problem.
#[test]
fn a_capture_cut_short() {
    let scene = Scene::new();
    let whole = std::fs::read(repository().join("configs/data/flows.pcap")).expect("the recording");
    let file = scene.write("cut.pcap", &whole[..whole.len() - 100]);
    let ended = decode(&["ipfix", text(&file)]);
    let found = records(ended.expect_code(1));
    assert!(found.len() > 2_000 && found.len() < 2_348, "{}", found.len());
    assert!(ended.stderr.starts_with("offset "), "{}", ended.stderr);
    // The offset is that of the packet which is cut.
    let offset: usize =
        ended.stderr["offset ".len()..].split(':').next().and_then(|text| text.parse().ok()).expect("a number");
    assert!(offset > whole.len() - 2_000 && offset < whole.len(), "{}", ended.stderr);
}

/// Datagrams that are damaged or come before their template are told by packet and byte; the others are records.
#[test]
fn damaged_datagrams_are_told() {
    let scene = Scene::new();
    let ends = Ends { from: ([192, 0, 2, 1].into(), 2055), to: ([192, 0, 2, 2].into(), 4739) };
    let mut capture = Capture::default();
    // Version 7; then data for template 300, which nobody sent.
    capture.udp(1_800_000_000, ends, &[0, 7, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    capture.udp(1_800_000_000, ends, &[0, 10, 0, 24, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 44, 0, 8, 1, 2, 3, 4]);
    let file = scene.write("damaged.pcap", capture.bytes());
    let ended = decode(&["ipfix", text(&file)]);
    assert_eq!(records(ended.expect_code(1)).len(), 0);
    let problems: Vec<_> = ended.stderr.lines().collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems.iter().all(|problem| problem.starts_with("offset ") && problem.contains("byte ")), "{problems:?}");
    assert!(problems[1].contains("template 300"), "{problems:?}");
}

/// A stream of IPFIX messages as a TCP connection carries it.
#[test]
fn a_stream_of_messages() {
    let ended = decode(&["ipfix", "crates/ipfix/tests/data/local-softflowd-ipfix-tcp-stream.ipfix"]);
    let found = records(ended.expect_code(0));
    let same = decode(&["ipfix", "crates/ipfix/tests/data/local-softflowd-ipfix-tcp-stream.pcap"]);
    assert!(!found.is_empty());
    assert_eq!(found.len(), records(&same).len(), "the capture holds the same messages");
}

/// Files of no use and wrong options are errors of usage.
#[test]
fn wrong_inputs_are_errors_of_usage() {
    let scene = Scene::new();
    let log = scene.write("plain.log", format!("{LINE_3164}\n"));
    let missing = scene.path("missing");
    let folder = scene.path("");
    for (arguments, said) in [
        (vec!["ipfix", text(&log)], "plain.log"),
        (vec!["ipfix", text(&missing)], "missing"),
        (vec!["ipfix", text(&folder)], text(&folder)),
        (vec!["syslog", text(&missing)], "missing"),
        (vec!["syslog", text(&folder)], "directory"),
        (vec!["syslog", text(&log), "--timezone", "Mars/Base"], "Mars/Base"),
        (vec!["syslog", text(&log), "--received-at", "yesterday"], "yesterday"),
        (vec!["syslog", text(&log), "--framing", "lines"], "octet_counting"),
    ] {
        let ended = decode(&arguments);
        let _ = ended.expect_code(2);
        assert!(ended.stderr.contains(said), "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
}
