//! Settings of the receiver that change what becomes of records, and where they come from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use catchment_tests::expected::own_captures;
use catchment_tests::flows::{attributes, number};
use catchment_tests::message::{counters, counters_template, message, options_template, send, socket_on};
use catchment_tests::{Caught, Engine, Flows, Scene, Sink, catchment, pcap, repository, run, wait_until};
use serde_json::Value;

const DOMAIN: u32 = 9;

/// Records without the times of receipt, sorted.
fn comparable(caught: Caught) -> Vec<Value> {
    let mut records = caught.records;
    for record in &mut records {
        let _ = record["attributes"].as_object_mut().map(|attributes| attributes.remove("flow.time_received"));
        let _ = record.as_object_mut().map(|record| record.remove("observed_time"));
    }
    records.sort_by_cached_key(Value::to_string);
    records
}

/// Exporters of each version with their datagrams.
fn exporters() -> Vec<Vec<Vec<u8>>> {
    let names = ["local-softflowd-ipfix", "local-softflowd-v9", "local-softflowd-v5", "local-pmacctd-v9"];
    let capture = |name: &str| std::fs::read(own_captures().join(format!("{name}.pcap"))).expect("a capture");
    names.iter().map(|name| pcap::udp_payloads(&capture(name))).collect()
}

/// What leaves an engine undecoded and is decoded by a later node is the same, whatever the mapping.
#[test]
fn encoded_batches() {
    let exporters = exporters();
    for mapping in ["", ", schema: ipfix, enumerations: numbers, times: rfc3339, exporter_at: resource"] {
        let [plain, encoded] = ["records", "encoded"].map(|emit| {
            let scene = Scene::new();
            let flows = Flows::start(&scene, &format!("{}{mapping}, emit: {emit}", Flows::UDP));
            let mut datagrams = 0;
            for exporter in &exporters {
                let socket = socket_on(1);
                for datagram in exporter {
                    send(&socket, flows.address(), datagram);
                    datagrams += 1;
                }
            }
            wait_until("all is read", || flows.metric("datagrams_received") == datagrams);
            comparable(flows.stop().1)
        });
        assert!(!plain.is_empty());
        assert_eq!(plain.len(), encoded.len());
        for (plain, encoded) in plain.iter().zip(&encoded) {
            assert_eq!(plain, encoded);
        }
    }
}

/// Sends a template, a sampling rate of 10 for the whole exporter, and a record; gives the record.
fn sampled(config: &str) -> Value {
    let scene = Scene::new();
    let flows = Flows::start(&scene, &format!("{}{config}", Flows::UDP));
    let rate = [7u32.to_be_bytes(), 10u32.to_be_bytes()].concat();
    let options = options_template(257, 1, &[(143, 4), (34, 4)]);
    let exporter = socket_on(1);
    send(&exporter, flows.address(), &message(0, DOMAIN, &[counters_template(), options, (257, rate)]));
    // Flows come from another port of the exporter.
    let other_port = socket_on(1);
    send(&other_port, flows.address(), &message(0, DOMAIN, &[counters_template(), counters(1_500, 3)]));
    wait_until("both are read", || flows.metric("datagrams_received") == 2);
    let (_, caught) = flows.stop();
    let mut found: Vec<_> = caught.records.into_iter().filter(Flows::is_flow).collect();
    assert_eq!(found.len(), 1);
    found.remove(0)
}

/// A sampling rate out of options data is told, and only where it is asked for counters are multiplied by it.
#[test]
fn sampling_rates() {
    for (config, factor) in [("", 1), (", sampling: apply", 10), (", sampling: apply, options: use", 10)] {
        let record = sampled(config);
        assert_eq!(number(&record, "flow.sampling_rate"), 10, "{record}");
        assert_eq!(number(&record, "flow.io.bytes"), 1_500 * factor, "{record}");
        assert_eq!(number(&record, "flow.io.packets"), 3 * factor, "{record}");
    }
    let record = sampled(", options: emit");
    assert!(record["attributes"]["flow.sampling_rate"].is_null(), "{record}");
}

/// Options data comes as records, is used, or both.
#[test]
fn options_data() {
    for (options, comes) in [("both", true), ("emit", true), ("use", false)] {
        let scene = Scene::new();
        let flows = Flows::start(&scene, &format!("{}, options: {options}", Flows::UDP));
        let exporter = socket_on(1);
        let sets = [counters_template(), options_template(257, 1, &[(143, 4), (34, 4)]), (257, vec![1; 8])];
        send(&exporter, flows.address(), &message(0, DOMAIN, &sets));
        send(&exporter, flows.address(), &message(1, DOMAIN, &[counters(1, 1)]));
        wait_until("both are read", || flows.metric("datagrams_received") == 2);
        let (line, caught) = flows.stop();
        let unused = u64::from(!comes);
        assert_eq!((line.received, line.sent, line.reason("unused")), (Some(2), 2 - unused, unused), "{line:?}");
        assert_eq!(caught.records.iter().any(|record| !Flows::is_flow(record)), comes);
    }
}

/// The exporter's address is on the resource and not on the record, and batches of several exporters keep them apart.
#[test]
fn exporters_as_resources() {
    for more in ["", ", batch_per_exporter: true"] {
        let scene = Scene::new();
        let flows = Flows::start(&scene, &format!("{}, exporter_at: resource{more}", Flows::UDP));
        let exporters = [1, 2, 3].map(|last| (last, socket_on(last)));
        for sequence in 0..20 {
            for (last, socket) in &exporters {
                let sets = [counters_template(), counters(u64::from(*last), 1)];
                send(socket, flows.address(), &message(sequence, DOMAIN, &sets));
            }
        }
        let (_, caught) = flows.finish(60);
        for record in &caught.records {
            assert!(!attributes(record).contains_key("flow.sampler_address"), "{record}");
            let expected = format!("127.0.0.{}", number(record, "flow.io.bytes"));
            assert_eq!(record["resource"]["flow.sampler_address"], expected, "{record}");
        }
    }
}

/// A source that sends faster than it may is cut, each datagram is counted once, and other sources are not concerned.
#[test]
fn a_source_over_its_rate() {
    const FAST: u64 = 500;
    let scene = Scene::new();
    let flows = Flows::start(&scene, &format!("{}, max_datagrams_per_second_per_source: 5", Flows::UDP));
    let (fast, slow) = (socket_on(2), socket_on(1));
    let datagram = |bytes| message(0, DOMAIN, &[counters_template(), counters(bytes, 1)]);
    for _ in 0..FAST {
        send(&fast, flows.address(), &datagram(2));
    }
    for _ in 0..3 {
        send(&slow, flows.address(), &datagram(1));
    }
    let limited = || flows.metric("datagrams_rate_limited");
    wait_until("all are read", || flows.metric("datagrams_received") + limited() == FAST + 3);
    let (line, caught) = flows.stop();
    let of_slow = caught.records.iter().filter(|record| number(record, "flow.io.bytes") == 1).count();
    assert_eq!(of_slow, 3);
    assert_eq!(line.note("datagrams") + line.note("datagrams rate limited"), FAST + 3, "{line:?}");
    assert_eq!(line.sent, line.note("datagrams"), "{line:?}");
    // Five at once, and as many a second while the test sends.
    assert!(line.note("datagrams rate limited") > FAST / 2, "{line:?}");
}

/// Exporters that tell their templates from one port and send data from another: on two cores all data of an address meets
/// its templates.
#[test]
fn templates_and_data_from_different_ports_on_two_cores() {
    const EXPORTERS: u8 = 16;
    let scene = Scene::new();
    let sink = Sink::start(&scene);
    let yaml = Flows::yaml(&format!("{}, template_scope: address", Flows::UDP));
    let yaml = yaml.replace("{type: core_count, count: 1}", "{type: core_count, count: 2}");
    let flows = Flows { engine: Engine::start(&scene, &yaml, &[("sink", sink.otap())]), sink };
    for last in 1..=EXPORTERS {
        send(&socket_on(last), flows.address(), &message(0, DOMAIN, &[counters_template()]));
    }
    let datagrams = || flows.engine.measurements("receiver.ipfix", "datagrams_received");
    let read = || datagrams().iter().map(|(_, value)| value).sum::<u64>();
    wait_until("the templates are read", || read() == u64::from(EXPORTERS));
    for round in 0..10 {
        for last in 1..=EXPORTERS {
            send(&socket_on(last), flows.address(), &message(round, DOMAIN, &[counters(last.into(), 1)]));
        }
    }
    let Flows { engine, mut sink } = flows;
    let count = 10 * usize::from(EXPORTERS);
    sink.wait_for(count);
    let used = || engine.measurements("receiver.ipfix", "datagrams_received");
    wait_until("all is counted", || used().iter().map(|(_, value)| value).sum::<u64>() == 11 * u64::from(EXPORTERS));
    let cores: BTreeSet<_> =
        used().into_iter().filter(|(_, value)| *value > 0).map(|(all, _)| all["core_id"].clone()).collect();
    assert_eq!(cores.len(), 2, "sixteen addresses are on both cores");
    assert_eq!(engine.metric("receiver.ipfix", "unknown_template_sets"), 0);
    let stopped = engine.stop();
    let caught = sink.stop();
    let _ = stopped.expect_clean();
    let mut found: BTreeMap<u64, u64> = BTreeMap::new();
    for record in &caught.records {
        *found.entry(number(record, "flow.io.bytes")).or_default() += 1;
        assert_eq!(
            record["attributes"]["flow.sampler_address"],
            format!("127.0.0.{}", number(record, "flow.io.bytes"))
        );
    }
    assert_eq!(found, (1..=EXPORTERS.into()).map(|last| (last, 10)).collect());
}

/// A file in the engine gives what `catchment decode` gives.
fn replayed(file: &Path) {
    let ended = run(catchment().args(["decode", "ipfix", "--pending"]).arg(file));
    let records = ended.stdout.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    let expected = comparable(Caught { logs: 0, points: 0, records });
    assert!(!expected.is_empty());
    let scene = Scene::new();
    let flows = Flows::start(&scene, &format!("replay: {{path: \"{}\", rate: unlimited}}", file.display()));
    let (line, caught) = flows.finish(expected.len() as u64);
    let told = ended.stderr.lines().filter(|line| line.contains("not known")).count() as u64;
    assert_eq!(line.note("sets without template"), told, "{line:?}");
    let found = comparable(caught);
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected, "{}", file.display());
    }
}

#[test]
fn replay_of_captures() {
    for name in ["local-softflowd-ipfix", "local-softflowd-v9", "local-softflowd-v5", "local-pmacctd-v9"] {
        replayed(&own_captures().join(format!("{name}.pcap")));
    }
    replayed(&repository().join("configs/data/flows.pcap"));
}

#[test]
fn replay_of_a_stream() {
    replayed(&own_captures().join("local-softflowd-ipfix-tcp-stream.ipfix"));
}

/// A record of both directions becomes two log records and is one in the books.
#[test]
fn both_directions_apart() {
    const RECORDS: u32 = 6_000;
    let scene = Scene::new();
    let flows = Flows::start(&scene, &format!("{}, biflow: two", Flows::UDP));
    let exporter = socket_on(1);
    // octetDeltaCount and reverseOctetDeltaCount, after RFC 5103.
    let both = (2, [&[1, 0, 0, 2, 0, 1, 0, 8, 0x80, 1, 0, 8][..], &29_305u32.to_be_bytes()].concat());
    send(&exporter, flows.address(), &message(0, DOMAIN, &[both]));
    // More than fit into a batch when they are two each.
    for first in (0..RECORDS).step_by(500) {
        let data: Vec<u8> = (first..first + 500)
            .flat_map(|number| [u64::from(number).to_be_bytes(), u64::from(number + 100_000).to_be_bytes()].concat())
            .collect();
        send(&exporter, flows.address(), &message(first, DOMAIN, &[(256, data)]));
    }
    let Flows { engine, mut sink } = flows;
    sink.wait_for(2 * RECORDS as usize);
    let stopped = engine.stop();
    let caught = sink.stop();
    let line = stopped.expect_clean().node("edge/flows");
    let counts = (line.received, line.sent, line.note("acknowledged"));
    assert_eq!(counts, (Some(RECORDS.into()), RECORDS.into(), RECORDS.into()), "{line:?}");
    let mut bytes: Vec<_> = caught.records.iter().map(|record| number(record, "flow.io.bytes")).collect();
    bytes.sort_unstable();
    let expected = (0..RECORDS).chain(100_000..100_000 + RECORDS).map(u64::from);
    assert!(bytes.into_iter().eq(expected), "each direction once");
}
