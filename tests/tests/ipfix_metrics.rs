//! Metrics made of counters in flow records, and the receiver's own metrics.

use std::collections::BTreeMap;

use catchment_tests::flows::{attributes, number, receiver};
use catchment_tests::message::{
    counters, counters_template, message, options_template, received, send, socket_on, template,
};
use catchment_tests::pcap::{Capture, Ends};
use catchment_tests::{Flows, NodeLine, Scene, catchment, loadgen, run, wait_until};
use serde_json::{Value, json};

const DOMAIN: u32 = 9;

/// Waits until everything has been read and acknowledged, stops the engine, and gives the line of the receiver and the
/// points.
fn stop(flows: Flows, datagrams: u64, records: u64) -> (NodeLine, Vec<Value>) {
    wait_until("all is read", || flows.metric("datagrams_received") == datagrams);
    wait_until("all is decoded", || flows.metric("records_sent") + flows.metric("records_unused") == records);
    let Flows { engine, sink } = flows;
    let stopped = engine.stop();
    let caught = sink.stop();
    let line = receiver(stopped.expect_clean()).clone();
    assert_eq!((line.received, line.note("acknowledged")), (Some(records), line.sent), "{line:?}");
    assert_eq!(caught.logs, 0);
    (line, caught.records)
}

/// Sums of bytes and packets by protocol.
type Sums = BTreeMap<String, [u64; 2]>;

/// A generated exporter: the sums of its counters by protocol are those of its records, as they are decoded to logs. Its
/// options data, which no rule is about, is counted.
#[test]
fn counters_of_a_generated_exporter() {
    let scene = Scene::new();
    let inbox = socket_on(1);
    let generator = ["--protocol", "ipfix", "--fields", "softflowd", "--messages", "60", "--options-every", "10"];
    let _ = loadgen("ipfix", &format!("udp://{}", inbox.local_addr().expect("an address")), &generator);
    let datagrams = received(&inbox);
    let mut capture = Capture::default();
    let ends = Ends { from: ([192, 0, 2, 1].into(), 2055), to: ([192, 0, 2, 2].into(), 4739) };
    datagrams.iter().for_each(|datagram| capture.udp(1_796_000_000, ends, datagram));
    let file = scene.write("generated.pcap", capture.bytes());
    let ended = run(catchment().args(["decode", "ipfix"]).arg(file));
    let (mut expected, mut options, mut records) = (Sums::new(), 0, 0);
    for line in ended.expect_code(0).stdout.lines() {
        let record: Value = serde_json::from_str(line).expect("each line is JSON");
        records += 1;
        if !Flows::is_flow(&record) {
            options += 1;
            continue;
        }
        let protocol = record["attributes"]["network.transport"].as_str().expect("a protocol");
        let sums = expected.entry(protocol.to_owned()).or_default();
        sums[0] += number(&record, "flow.io.bytes");
        sums[1] += number(&record, "flow.io.packets");
    }
    assert!(options > 0 && expected.len() > 1, "{options} options records, {expected:?}");

    let rules = "metrics: [{elements: [octetDeltaCount, packetDeltaCount], keys: [protocolIdentifier]}]";
    let flows = Flows::start(&scene, &format!("{}, signal: metrics, {rules}", Flows::UDP));
    let exporter = socket_on(1);
    for datagram in &datagrams {
        send(&exporter, flows.address(), datagram);
    }
    let (line, points) = stop(flows, datagrams.len() as u64, records);
    assert_eq!((line.reason("unused"), line.dropped), (options, options), "{line:?}");
    assert_eq!(points.len() as u64, 2 * (records - options));
    let mut found = Sums::new();
    for point in &points {
        let kind = ["type", "temporality", "monotonic"].map(|key| &point[key]);
        assert_eq!(kind, [&json!("sum"), &json!("delta"), &json!(true)], "{point}");
        assert_eq!(point["resource"]["flow.sampler_address"], "127.0.0.1", "{point}");
        assert_eq!(number(point, "flow.observation_domain_id"), 0, "{point}");
        let sums =
            found.entry(point["attributes"]["network.transport"].as_str().expect("a key").to_owned()).or_default();
        let place = match (point["name"].as_str(), point["unit"].as_str()) {
            (Some("flow.io.bytes"), Some("By")) => 0,
            (Some("flow.io.packets"), Some("{packet}")) => 1,
            _ => panic!("{point}"),
        };
        sums[place] += point["value"].as_u64().expect("a number");
    }
    assert_eq!(found, expected);
}

/// Kinds by the registry and by a rule, a name of its own, several keys, and records that no rule is about.
#[test]
fn kinds_and_names() {
    let scene = Scene::new();
    let rules = "{elements: [octetTotalCount], keys: [ingressInterface, egressInterface]}, \
                 {elements: [packetDeltaCount], kind: gauge, name: packets.seen}";
    let flows = Flows::start(&scene, &format!("{}, signal: metrics, metrics: [{rules}]", Flows::UDP));
    let exporter = socket_on(1);
    let counted = template(256, &[(85, 8), (10, 4), (2, 8)]);
    let data = [&1_000u64.to_be_bytes()[..], &7u32.to_be_bytes(), &3u64.to_be_bytes()].concat();
    let of_nothing = template(257, &[(8, 4)]);
    let sets = [counted, of_nothing, (256, data), (257, vec![192, 0, 2, 1, 192, 0, 2, 2])];
    send(&exporter, flows.address(), &message(0, DOMAIN, &sets));
    let (line, points) = stop(flows, 1, 3);
    assert_eq!((line.sent, line.reason("unused")), (1, 2), "{line:?}");
    assert_eq!(points.len(), 2, "{points:?}");
    let point = |name: &str| points.iter().find(|point| point["name"] == name).unwrap_or_else(|| panic!("{points:?}"));
    let total = point("ipfix.octetTotalCount");
    let kind = ["type", "temporality", "monotonic", "value"].map(|key| &total[key]);
    assert_eq!(kind, [&json!("sum"), &json!("cumulative"), &json!(true), &json!(1_000)], "{total}");
    // A key that a record does not have is left out.
    let keys: Vec<_> = attributes(total).iter().map(|(key, value)| (key.as_str(), value.as_u64())).collect();
    assert_eq!(keys, [("flow.in_if", Some(7)), ("flow.observation_domain_id", Some(9))]);
    let seen = point("packets.seen");
    assert_eq!((&seen["type"], &seen["value"]), (&json!("gauge"), &json!(3)), "{seen}");
    assert_eq!(attributes(seen).len(), 1, "{seen}");
}

/// Each exporter has counts of its own on the admin server, up to a limit; the others have theirs together, and nothing is
/// counted twice or not at all.
#[test]
fn counts_of_each_exporter() {
    let scene = Scene::new();
    let flows = Flows::start(&scene, &format!("{}, exporter_metrics: 2", Flows::UDP));
    // The exporter on 127.0.0.N sends N records, and one of them is lost on the way.
    let exporters: Vec<_> = (1..=5u8).map(|last| (last, socket_on(last))).collect();
    for (last, socket) in &exporters {
        for sequence in (0..=u32::from(*last)).filter(|sequence| *sequence != 1) {
            let sets = [counters_template(), counters(1, 1)];
            send(socket, flows.address(), &message(sequence, DOMAIN + u32::from(*last), &sets));
        }
    }
    let sum = 1 + 2 + 3 + 4 + 5;
    let values = |field: &str| flows.engine.measurements("receiver.ipfix.exporter", field);
    let records = || values("records");
    wait_until("all are counted", || records().iter().map(|(_, value)| value).sum::<u64>() == sum);
    let mut addresses = Vec::new();
    let mut of_others = sum;
    for (attributes, value) in records() {
        assert_eq!(
            (attributes["node_id"].as_str(), attributes["pipeline_id"].as_str()),
            ("flows", "edge"),
            "{attributes:?}"
        );
        let exporter = attributes["exporter"].as_str();
        if exporter != "other" {
            let last = exporter.strip_prefix("127.0.0.").unwrap_or_else(|| panic!("{attributes:?}"));
            assert_eq!(value.to_string(), last, "{attributes:?}");
            assert_eq!(attributes["observation_domain"], (u64::from(DOMAIN) + value).to_string());
            of_others -= value;
        } else {
            assert_eq!(value, of_others, "{attributes:?}");
        }
        addresses.push(exporter.to_owned());
    }
    assert_eq!(addresses.len(), 3, "two and the others: {addresses:?}");
    assert!(addresses.iter().any(|address| address == "other"), "{addresses:?}");
    let lost = values("lost").iter().map(|(_, value)| value).sum::<u64>();
    assert_eq!((lost, flows.metric("lost_records")), (4, 4), "all but that of one record");
    let datagrams = values("datagrams").iter().map(|(_, value)| value).sum::<u64>();
    assert_eq!(datagrams, sum);
    let _ = flows.finish(sum);
}

/// Faults are counted by their kind, and their sum is that of all.
#[test]
fn faults_by_kind() {
    let scene = Scene::new();
    let flows = Flows::start(&scene, Flows::UDP);
    let exporter = socket_on(1);
    let whole = message(0, DOMAIN, &[counters_template()]);
    let mut other_version = whole.clone();
    other_version[1] = 7;
    let no_scope = options_template(258, 0, &[(34, 4)]);
    let datagrams = [
        whole[..10].to_vec(),
        other_version.clone(),
        other_version,
        message(0, DOMAIN, &[(9, vec![0; 4])]),
        message(0, DOMAIN, &[no_scope]),
        message(0, DOMAIN, &[(256, vec![0; 16])]),
    ];
    for datagram in &datagrams {
        send(&exporter, flows.address(), datagram);
    }
    let kinds = || {
        let all = flows.engine.measurements("receiver.ipfix.problems", "problems");
        all.into_iter().map(|(mut attributes, value)| (attributes.remove("kind").unwrap_or_default(), value)).collect()
    };
    let expected = [("truncated", 1), ("version", 2), ("reserved_set", 1), ("empty_scope", 1), ("unknown_template", 1)];
    let expected: BTreeMap<_, _> = expected.map(|(kind, count)| (kind.to_owned(), count)).into();
    wait_until("all are counted", || {
        let kinds: BTreeMap<String, u64> = kinds();
        kinds.values().sum::<u64>() >= datagrams.len() as u64
    });
    assert_eq!(kinds(), expected);
    let (line, _) = flows.stop();
    assert_eq!(line.note("malformed messages"), 3, "{line:?}");
}
