//! Flows from the socket to a sink: generated exporters, softflowd, and datagrams that no exporter should send.

use std::collections::BTreeMap;
use std::net::UdpSocket;

use catchment_tests::pcap::{Capture, Ends};
use catchment_tests::{Caught, Engine, HEAD, Report, Scene, Sender, Sink, loadgen, local};
use serde_json::Value;

const PIPELINE: &str = r#"groups:
  site:
    pipelines:
      edge:
        nodes:
          flows:
            type: urn:catchment:receiver:ipfix
            config: {udp: {listening_addr: "127.0.0.1:@flows@", receive_buffer: 4 MiB}}
          otap:
            type: exporter:otap
            config: {grpc_endpoint: "http://127.0.0.1:@sink@", compression_method: zstd, arrow: {payload_compression: none}}
        connections: [{from: flows, to: otap}]
"#;

struct Setup {
    engine: Engine,
    sink: Sink,
}

impl Setup {
    fn start(scene: &Scene) -> Self {
        let sink = Sink::start(scene);
        let engine = Engine::start(scene, &format!("{HEAD}{PIPELINE}"), &[("sink", sink.otap())]);
        Self { engine, sink }
    }

    /// Waits for `count` records at the sink, then stops everything and checks that every node has seen all.
    fn finish(mut self, count: u64) -> (Report, Caught) {
        self.sink.wait_for(usize::try_from(count).expect("a count"));
        let stopped = self.engine.stop();
        let caught = self.sink.stop();
        let report = stopped.expect_clean().clone();
        let receiver = report.node("edge/flows");
        assert_eq!((receiver.received, receiver.sent, receiver.note("acknowledged")), (Some(count), count, count));
        assert_eq!(caught.logs, count);
        (report, caught)
    }
}

fn number(record: &Value, key: &str) -> u64 {
    record["attributes"][key].as_u64().unwrap_or_else(|| panic!("no {key} in {record}"))
}

/// Two exporters on one receiver: every record arrives, belongs to its observation domain, and none is missed.
fn generated(protocol: &str, fields: &str) {
    let scene = Scene::new();
    let setup = Setup::start(&scene);
    let mut expected = BTreeMap::new();
    for domain in [3u64, 4] {
        let name = domain.to_string();
        let messages = (100 * domain).to_string();
        let arguments =
            ["--protocol", protocol, "--fields", fields, "--domain", &name, "--messages", &messages, "--rate", "1000"];
        let sent = loadgen("ipfix", &setup.engine.udp("flows"), &arguments);
        assert_eq!(sent.messages, 100 * domain);
        let _ = expected.insert(domain, sent.records);
    }
    let (report, caught) = setup.finish(expected.values().sum());
    let mut found = BTreeMap::new();
    for record in &caught.records {
        *found.entry(number(record, "flow.observation_domain_id")).or_insert(0) += 1;
        assert_eq!(record["attributes"]["flow.type"], protocol);
        assert!(number(record, "flow.io.bytes") >= number(record, "flow.io.packets"), "{record}");
        assert!(record["attributes"]["source.address"].is_string(), "{record}");
        assert!(number(record, "flow.start") <= number(record, "flow.end"), "{record}");
    }
    assert_eq!(found, expected);
    let receiver = report.node("edge/flows");
    assert_eq!(receiver.note("datagrams"), 700);
    for note in ["malformed messages", "sets without template", "missing by sequence", "receive errors"] {
        assert_eq!(receiver.note(note), 0, "{note}");
    }
}

#[test]
fn generated_ipfix() {
    generated("ipfix", "softflowd");
}

#[test]
fn generated_netflow_v9() {
    generated("netflow_v9", "router");
}

/// Flows of a made-up capture: packets and IP bytes of each, by source port.
fn made_up_traffic() -> (Capture, BTreeMap<u64, (u64, u64)>) {
    let mut capture = Capture::default();
    let mut expected = BTreeMap::new();
    for number in 0..20u16 {
        let from = ([192, 0, 2, 1].into(), 40_000 + number);
        let ends = Ends { from, to: ([198, 51, 100, 1].into(), 53) };
        let bytes = usize::from(10 + number);
        let packets = 1 + u64::from(number % 3);
        for packet in 0..packets {
            let second = u32::try_from(packet).expect("a few seconds");
            capture.udp(1_796_000_000 + second, ends, &vec![0; bytes]);
        }
        let _ = expected.insert(u64::from(from.1), (packets, packets * (28 + bytes as u64)));
    }
    // One direction of a connection: begin, content, end.
    let ends = Ends { from: ([192, 0, 2, 1].into(), 50_000), to: ([198, 51, 100, 1].into(), 443) };
    for (second, flags, bytes) in [(0, 0x02, 0), (1, 0x18, 700), (2, 0x11, 0)] {
        capture.tcp(1_796_000_000 + second, ends, flags, &vec![0; bytes]);
    }
    let _ = expected.insert(50_000, (3, 3 * 40 + 700));
    (capture, expected)
}

/// softflowd's flows of known packets, in three protocols: packets and bytes come through as they were.
fn softflowd(version: &str, flow_type: &str) {
    let Some(softflowd) = Sender::find("softflowd") else { return };
    let scene = Scene::new();
    let setup = Setup::start(&scene);
    let (capture, expected) = made_up_traffic();
    let file = scene.write("traffic.pcap", capture.bytes());
    let target = setup.engine.address("flows").to_string();
    let pid_file = scene.path("softflowd.pid");
    let paths = [&file, &pid_file].map(|path| path.to_str().expect("a path of text"));
    let _ = softflowd.run(&["-r", paths[0], "-n", &target, "-v", version, "-d", "-c", "none", "-p", paths[1]]);
    // Options records come beside the flows, as many as the version has.
    let is_flow = |record: &&Value| record["attributes"]["flow.record_type"].is_null();
    catchment_tests::wait_until("all flows", || setup.sink.records().iter().filter(is_flow).count() >= expected.len());
    let options = setup.sink.records().iter().filter(|record| !is_flow(record)).count();
    let (report, caught) = setup.finish((expected.len() + options) as u64);
    let flows: Vec<_> = caught.records.iter().filter(is_flow).collect();
    assert_eq!(flows.len(), expected.len());
    let found: BTreeMap<_, _> = flows
        .iter()
        .map(|record| {
            (number(record, "source.port"), (number(record, "flow.io.packets"), number(record, "flow.io.bytes")))
        })
        .collect();
    assert_eq!(found, expected);
    for record in &caught.records {
        assert_eq!(record["attributes"]["flow.type"], flow_type, "{record}");
    }
    let transport = |port: u64| {
        flows
            .iter()
            .find(|record| number(record, "source.port") == port)
            .map(|record| &record["attributes"]["network.transport"])
    };
    assert_eq!((transport(40_000), transport(50_000)), (Some(&"udp".into()), Some(&"tcp".into())));
    assert_eq!(report.node("edge/flows").note("malformed messages"), 0);
}

#[test]
fn softflowd_ipfix() {
    softflowd("10", "ipfix");
}

#[test]
fn softflowd_netflow_v9() {
    softflowd("9", "netflow_v9");
}

#[test]
fn softflowd_netflow_v5() {
    softflowd("5", "netflow_v5");
}

/// An IPFIX message of `sets` (id and content) in domain 9, by RFC 7011.
fn message(sequence: u32, sets: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (id, content) in sets {
        body.extend(id.to_be_bytes());
        body.extend(u16::try_from(4 + content.len()).expect("a small set").to_be_bytes());
        body.extend(content);
    }
    let mut out = vec![0, 10];
    out.extend(u16::try_from(16 + body.len()).expect("a small message").to_be_bytes());
    for word in [1_796_000_000, sequence, 9] {
        out.extend(word.to_be_bytes());
    }
    out.extend(body);
    out
}

/// Template 256: octetDeltaCount and packetDeltaCount, eight bytes each.
fn template() -> (u16, Vec<u8>) {
    let words: [u16; 6] = [256, 2, 1, 8, 2, 8];
    (2, words.iter().flat_map(|word| word.to_be_bytes()).collect())
}

fn data(bytes: u64, packets: u64) -> (u16, Vec<u8>) {
    (256, [bytes.to_be_bytes(), packets.to_be_bytes()].concat())
}

/// Malformed datagrams are counted one by one and hurt nothing: the exporter's next good one is a record.
#[test]
fn malformed_datagrams_are_counted() {
    let scene = Scene::new();
    let mut setup = Setup::start(&scene);
    let socket = UdpSocket::bind(local(0)).expect("a free port");
    let whole = message(0, &[template()]);
    let mut too_long = whole.clone();
    too_long[2..4].copy_from_slice(&500u16.to_be_bytes());
    let mut too_many_fields = whole.clone();
    too_many_fields[22..24].copy_from_slice(&60_000u16.to_be_bytes());
    let noise: Vec<u8> = (0..200u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    assert_ne!(noise[..2], [0, 10]);
    let damaged: [&[u8]; 7] = [
        &[],
        &noise,
        &[0, 7, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &whole[..10],
        &whole[..25],
        &too_long,
        &too_many_fields,
    ];
    for datagram in damaged {
        let _ = socket.send_to(datagram, setup.engine.address("flows")).expect("it is sent");
    }
    // Template and data after all that: the sign that everything before was read.
    let good = message(0, &[template(), data(1_234, 5)]);
    let _ = socket.send_to(&good, setup.engine.address("flows")).expect("it is sent");
    setup.sink.wait_for(1);
    setup.engine.assert_running();
    let (report, caught) = setup.finish(1);
    assert_eq!(
        (number(&caught.records[0], "flow.io.bytes"), number(&caught.records[0], "flow.io.packets")),
        (1_234, 5)
    );
    let receiver = report.node("edge/flows");
    assert_eq!(receiver.note("datagrams"), 8);
    assert_eq!(receiver.note("malformed messages"), 7, "{receiver:?}");
}

/// Data before its template is counted and dropped; from the template on, and from another exporter, records come.
#[test]
fn data_before_its_template_is_counted() {
    let scene = Scene::new();
    let setup = Setup::start(&scene);
    let address = setup.engine.address("flows");
    let [early, other] = [0, 1].map(|_| UdpSocket::bind(local(0)).expect("a free port"));
    for (socket, datagram) in [
        (&early, message(0, &[data(1, 1)])),
        (&early, message(1, &[data(2, 2), data(3, 3)])),
        (&other, message(0, &[template(), data(10, 10)])),
        // What one exporter says of template 256 is nothing to another one.
        (&early, message(3, &[data(4, 4)])),
        (&early, message(4, &[template(), data(20, 20)])),
        (&early, message(5, &[data(30, 30)])),
    ] {
        let _ = socket.send_to(&datagram, address).expect("it is sent");
    }
    let (report, caught) = setup.finish(3);
    let mut bytes: Vec<_> = caught.records.iter().map(|record| number(record, "flow.io.bytes")).collect();
    bytes.sort_unstable();
    assert_eq!(bytes, [10, 20, 30]);
    let receiver = report.node("edge/flows");
    assert_eq!(receiver.note("sets without template"), 4, "{receiver:?}");
    assert_eq!(receiver.note("malformed messages"), 0, "{receiver:?}");
}
