//! Syslog from the socket to a backend over two processes, with generated and real senders.
//!
//! Edge: syslog receiver, batch, OTAP exporter (zstd). Backend: OTAP receiver, OTLP exporter. Behind it a sink.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{Shutdown, TcpStream};

use catchment_tests::{Caught, Engine, HEAD, Report, Scene, Sender, Sink, generated_lines, loadgen};
use serde_json::Value;

const EDGE: &str = r#"groups:
  site:
    pipelines:
      edge:
        nodes:
          syslog:
            type: urn:catchment:receiver:syslog
            config:
              udp: {listening_addr: "127.0.0.1:@syslog@", receive_buffer: 4 MiB}
              tcp: {listening_addr: "127.0.0.1:@syslog@"}
              max_message_size: 4 KiB
          batch:
            type: processor:batch
            config:
              format: otap
              otap: {min_size: 1000, max_size: 8000, sizer: items}
              max_batch_duration: 100ms
          otap:
            type: exporter:otap
            config: {grpc_endpoint: "http://127.0.0.1:@backend@", compression_method: zstd, arrow: {payload_compression: none}}
        connections:
          - {from: syslog, to: batch}
          - {from: batch, to: otap}
"#;

const BACKEND: &str = r#"groups:
  site:
    pipelines:
      backend:
        nodes:
          otap:
            type: receiver:otap
            config: {listening_addr: "127.0.0.1:@backend@", response_stream_channel_size: 64, wait_for_result: true}
          otlp:
            type: exporter:otlp_grpc
            # One request at a time keeps the order.
            config: {grpc_endpoint: "http://127.0.0.1:@sink@", max_in_flight: 1}
        connections: [{from: otap, to: otlp}]
"#;

/// Edge, backend and sink.
struct Chain {
    edge: Engine,
    backend: Engine,
    sink: Sink,
}

impl Chain {
    fn start(scene: &Scene) -> Self {
        let sink = Sink::start(scene);
        let backend = Engine::start(scene, &format!("{HEAD}{BACKEND}"), &[("sink", sink.otlp())]);
        backend.wait_listening("backend");
        let edge = Engine::start(scene, &format!("{HEAD}{EDGE}"), &[("backend", backend.port("backend"))]);
        Self { edge, backend, sink }
    }

    /// Waits for `count` records at the sink, then stops everything and checks that every node has seen all.
    fn finish(mut self, count: usize) -> (Report, Caught) {
        self.sink.wait_for(count);
        let edge = self.edge.stop();
        let backend = self.backend.stop();
        let caught = self.sink.stop();
        let report = edge.expect_clean().clone();
        backend.expect_clean();
        let expected = u64::try_from(count).expect("a count");
        let receiver = report.node("edge/syslog");
        assert_eq!(
            (receiver.received, receiver.sent, receiver.note("acknowledged")),
            (Some(expected), expected, expected)
        );
        assert_eq!((caught.logs, caught.points), (expected, 0));
        (report, caught)
    }
}

fn text<'a>(record: &'a Value, key: &str) -> &'a str {
    record["attributes"][key].as_str().unwrap_or_else(|| panic!("no {key} in {record}"))
}

/// What identifies a message: everything its line says, in the words of the record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Message {
    priority: u64,
    time: String,
    host: String,
    /// The text, or the header of CEF.
    content: String,
    /// Extension of CEF.
    extension: BTreeMap<String, String>,
}

impl Message {
    /// Reads a generated line of RFC 5424 (`<P>1 TIME HOST loadgen - - - TEXT`) or RFC 3164
    /// (`<P>Mmm dd hh:mm:ss HOST loadgen: TEXT`) by its fixed shape.
    fn of_line(line: &str) -> Self {
        let (priority, rest) = line.strip_prefix('<').and_then(|rest| rest.split_once('>')).expect("a PRI");
        let (time, rest) = match rest.strip_prefix("1 ") {
            Some(rest) => {
                let (stamp, rest) = rest.split_once(' ').expect("a stamp");
                (format!("{}000Z", stamp.strip_suffix('Z').expect("UTC")), rest)
            }
            // January is all that the generator knows in these tests; the year is that of its start or the last one.
            None => (rest[..15].replace("Jan  1 ", "01-01T") + ".000000000Z", &rest[16..]),
        };
        let (host, rest) = rest.split_once(" loadgen").expect("host and tag");
        let content = rest.strip_prefix(" - - - ").or_else(|| rest.strip_prefix(": ")).expect("a text");
        let mut message = Self {
            priority: priority.parse().expect("a number"),
            time,
            host: host.to_owned(),
            content: content.to_owned(),
            extension: BTreeMap::new(),
        };
        if content.starts_with("CEF:") {
            let at = content.match_indices('|').nth(6).expect("seven bars").0;
            message.content = content[..at].to_owned();
            let mut key = "";
            for word in content[at + 1..].split(' ') {
                match word.split_once('=') {
                    Some((next, value)) => {
                        key = next;
                        let _ = message.extension.insert(key.to_owned(), value.to_owned());
                    }
                    None => message.extension.get_mut(key).expect("a key").extend([" ", word]),
                }
            }
        }
        message
    }

    fn of_record(record: &Value) -> Self {
        let attributes = record["attributes"].as_object().expect("attributes");
        let number = |key: &str| attributes[key].as_u64().expect("a number");
        let is_cef = text(record, "input.format").starts_with("cef");
        let content = if is_cef {
            let fields = ["vendor", "product", "version", "event_class_id"]
                .map(|field| text(record, &format!("cef.device_{field}")));
            format!(
                "CEF:{}|{}|{}|{}",
                number("cef.version"),
                fields.join("|"),
                text(record, "cef.name"),
                text(record, "cef.severity")
            )
        } else {
            let key = if attributes.contains_key("syslog.version") { "syslog.message" } else { "syslog.content" };
            text(record, key).to_owned()
        };
        let is_own = |key: &str| ["syslog.", "cef.", "network.", "input."].iter().any(|own| key.starts_with(own));
        let time = record["time"].as_str().expect("a time");
        Self {
            priority: number("syslog.facility") * 8 + number("syslog.severity"),
            time: if attributes.contains_key("syslog.version") { time.to_owned() } else { time[5..].to_owned() },
            host: text(record, "syslog.host_name").to_owned(),
            content,
            extension: attributes
                .iter()
                .filter(|(key, _)| !is_own(key))
                .map(|(key, value)| (key.clone(), value.as_str().expect("text").to_owned()))
                .collect(),
        }
    }
}

/// Messages of all records that came from one peer, in the order of arrival, by its port.
fn by_peer(caught: &Caught) -> BTreeMap<u64, Vec<Message>> {
    let mut peers: BTreeMap<u64, Vec<Message>> = BTreeMap::new();
    for record in &caught.records {
        assert_eq!(text(record, "network.peer.address"), "127.0.0.1");
        let port = record["attributes"]["network.peer.port"].as_u64().expect("a port");
        peers.entry(port).or_default().push(Message::of_record(record));
    }
    peers
}

fn assert_transport(caught: &Caught, transport: &str, formats: &[&str]) {
    for record in &caught.records {
        assert_eq!(text(record, "network.transport"), transport, "{record}");
        assert!(formats.contains(&text(record, "input.format")), "{record}");
    }
}

/// Sends generated lines over one connection or socket and expects each once and in order.
fn one_connection(udp: bool, format: &str, framing: &str, count: usize, formats: &[&str]) {
    let scene = Scene::new();
    let chain = Chain::start(&scene);
    let number = count.to_string();
    let generated = ["--format", format, "--count", &number, "--seed", "7", "--fresh-time"];
    let to = if udp { chain.edge.udp("syslog") } else { chain.edge.tcp("syslog") };
    let more: &[&str] = if udp { &["--rate", "5000"] } else { &["--framing", framing] };
    let sent = loadgen("syslog", &to, &[&generated[..], more].concat());
    assert_eq!(sent.messages, u64::try_from(count).expect("a count"));
    let (_, caught) = chain.finish(count);
    let expected: Vec<Message> = generated_lines(&generated).iter().map(|line| Message::of_line(line)).collect();
    let peers = by_peer(&caught);
    assert_eq!(peers.len(), 1, "one socket, one peer");
    let found = peers.into_values().next().unwrap_or_default();
    let differs = found.iter().zip(&expected).position(|(found, expected)| found != expected);
    assert!(differs.is_none(), "record {differs:?}: {:#?}", differs.map(|at| (&found[at], &expected[at])));
    assert_eq!(found.len(), expected.len());
    assert_transport(&caught, if udp { "udp" } else { "tcp" }, formats);
}

#[test]
fn udp_rfc5424() {
    one_connection(true, "rfc5424", "newline", 4_000, &["rfc5424", "cef_rfc5424"]);
}

#[test]
fn tcp_newline_rfc5424() {
    one_connection(false, "rfc5424", "newline", 10_000, &["rfc5424", "cef_rfc5424"]);
}

#[test]
fn tcp_newline_rfc3164() {
    one_connection(false, "rfc3164", "newline", 5_000, &["rfc3164", "cef_rfc3164"]);
}

#[test]
fn tcp_octet_counting() {
    one_connection(false, "rfc5424", "octet", 10_000, &["rfc5424", "cef_rfc5424"]);
}

/// Connections side by side: the lines of each come whole, once, and in their order.
#[test]
fn several_tcp_connections() {
    const CONNECTIONS: u64 = 4;
    const EACH: u64 = 2_000;
    let scene = Scene::new();
    let chain = Chain::start(&scene);
    let (connections, total) = (CONNECTIONS.to_string(), (CONNECTIONS * EACH).to_string());
    let arguments =
        ["--format", "rfc5424", "--fresh-time", "--seed", "20", "--count", &total, "--connections", &connections];
    let sent = loadgen("syslog", &chain.edge.tcp("syslog"), &arguments);
    assert_eq!(sent.messages, CONNECTIONS * EACH);
    let (_, caught) = chain.finish(8_000);
    assert_transport(&caught, "tcp", &["rfc5424", "cef_rfc5424"]);
    // Each connection has the seed of its number.
    let each = EACH.to_string();
    let mut expected: Vec<Vec<Message>> = (20..20 + CONNECTIONS)
        .map(|seed| {
            let seed = seed.to_string();
            let lines = generated_lines(&["--format", "rfc5424", "--fresh-time", "--seed", &seed, "--count", &each]);
            lines.iter().map(|line| Message::of_line(line)).collect()
        })
        .collect();
    let mut found: Vec<Vec<Message>> = by_peer(&caught).into_values().collect();
    expected.sort();
    found.sort();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert!(found == expected, "a connection lost its order");
    }
}

fn write_and_close(chain: &Chain, bytes: &[u8]) {
    let mut stream = TcpStream::connect(chain.edge.address("syslog")).expect("a connection");
    // The receiver may close first: it does so after an error.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
}

const GOOD: &str = "<13>1 2026-11-30T12:00:00Z host app - - - ";

fn octet_counted(text: &str) -> String {
    let message = format!("{GOOD}{text}");
    format!("{} {message}", message.len())
}

fn messages(caught: &Caught) -> Vec<String> {
    let mut found: Vec<_> = caught.records.iter().map(|record| text(record, "syslog.message").to_owned()).collect();
    found.sort();
    found
}

/// A length that is none is counted and ends that stream; what came before it and the next connection are whole.
#[test]
fn a_broken_octet_count_hurts_nobody_else() {
    let scene = Scene::new();
    let sink = Sink::start(&scene);
    let backend = Engine::start(&scene, &format!("{HEAD}{BACKEND}"), &[("sink", sink.otlp())]);
    backend.wait_listening("backend");
    let octets = EDGE.replace(
        "tcp: {listening_addr: \"127.0.0.1:@syslog@\"",
        "tcp: {framing: octet_counting, listening_addr: \"127.0.0.1:@syslog@\"",
    );
    let edge = Engine::start(&scene, &format!("{HEAD}{octets}"), &[("backend", backend.port("backend"))]);
    let chain = Chain { edge, backend, sink };
    write_and_close(&chain, format!("{}12x {GOOD}lost", octet_counted("before")).as_bytes());
    write_and_close(&chain, format!("99999999999999999999 {GOOD}lost").as_bytes());
    write_and_close(&chain, format!("{}{}", octet_counted("after one"), octet_counted("after two")).as_bytes());
    let (report, caught) = chain.finish(3);
    assert_eq!(messages(&caught), ["after one", "after two", "before"]);
    assert_eq!(report.node("edge/syslog").note("framing errors"), 2);
}

/// A line over `max_message_size` gives one record with its beginning, whatever the framing; the next one is whole.
#[test]
fn long_lines_are_cut() {
    let scene = Scene::new();
    let chain = Chain::start(&scene);
    let long = "x".repeat(10_000);
    write_and_close(&chain, format!("{GOOD}{long}\n{GOOD}after newline\n").as_bytes());
    write_and_close(&chain, format!("{}{}", octet_counted(&long), octet_counted("after octets")).as_bytes());
    let (report, caught) = chain.finish(4);
    let cut: Vec<_> = caught.records.iter().filter(|record| record["attributes"]["syslog.truncated"] == true).collect();
    assert_eq!(cut.len(), 2);
    for record in cut {
        assert_eq!(text(record, "syslog.message").len(), 4_096 - GOOD.len());
    }
    assert_eq!(report.node("edge/syslog").note("truncated"), 2);
    assert_eq!(report.node("edge/syslog").note("framing errors"), 0);
}

/// `logger` of util-linux: both formats, both transports, both framings.
#[test]
fn logger() {
    let Some(logger) = Sender::find("logger") else { return };
    let scene = Scene::new();
    let chain = Chain::start(&scene);
    let port = chain.edge.port("syslog").to_string();
    let common = ["-n", "127.0.0.1", "-P", &port, "-t", "probe", "--id=42", "-p", "local3.warning"];
    for (more, message) in [
        (&["--rfc3164", "-d"][..], "old over udp"),
        (&["--rfc3164", "-T"], "old over tcp"),
        (&["--rfc5424", "-d"], "new over udp"),
        (&["--rfc5424", "-T"], "new over tcp"),
        (&["--rfc5424", "-T", "--octet-count"], "new over tcp, counted"),
        (&["--rfc5424=notq", "-T", "--msgid", "M1", "--sd-id", "a@1", "--sd-param", "x=\"1\""], "with data"),
    ] {
        let _ = logger.run(&[&common[..], more, &["--", message]].concat());
    }
    let (report, caught) = chain.finish(6);
    assert_eq!(report.node("edge/syslog").note("framing errors"), 0);
    for record in &caught.records {
        let is_new = text(record, "input.format") == "rfc5424";
        let message = text(record, if is_new { "syslog.message" } else { "syslog.content" });
        assert_eq!(message.starts_with("old"), !is_new, "{record}");
        assert_eq!(message.contains("udp"), text(record, "network.transport") == "udp", "{record}");
        assert_eq!(text(record, "syslog.app_name"), "probe");
        let attributes = &record["attributes"];
        assert_eq!(
            (attributes["syslog.facility"].as_u64(), attributes["syslog.severity"].as_u64()),
            (Some(19), Some(4))
        );
        assert_eq!(attributes["syslog.process_id"], 42);
        if message == "with data" {
            assert_eq!(attributes["syslog.structured_data"]["a@1"]["x"], "1");
            assert_eq!(text(record, "syslog.msg_id"), "M1");
        }
    }
}
