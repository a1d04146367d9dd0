//! Datagrams through session and job and back out as JSON.

use catchment_ipfix::{Admitted, Limits, Session, Transport};
use serde_json::{Value, json};

use super::*;
use crate::{Budget, Job, Step, json as records_json};

mod captures;
mod random;
mod settings;

/// 2026-11-30T12:00:00Z.
const NOON: i64 = 1_796_040_000_000_000_000;

fn message(domain: u32, sets: &[u8]) -> Vec<u8> {
    let length = u16::try_from(16 + sets.len()).expect("short");
    let mut out = vec![0, 10];
    out.extend(length.to_be_bytes());
    out.extend(1_796_040_000u32.to_be_bytes());
    out.extend(7u32.to_be_bytes());
    out.extend(domain.to_be_bytes());
    out.extend(sets);
    out
}

fn set(id: u16, content: &[u8]) -> Vec<u8> {
    let mut out = id.to_be_bytes().to_vec();
    out.extend(u16::try_from(4 + content.len()).expect("short").to_be_bytes());
    out.extend(content);
    out
}

fn template(id: u16, fields: &[(u16, u16)]) -> Vec<u8> {
    let words = [id, u16::try_from(fields.len()).expect("few")];
    let fields = fields.iter().flat_map(|(element, length)| [*element, *length]);
    words.into_iter().chain(fields).flat_map(u16::to_be_bytes).collect()
}

fn batch(datagrams: &[Vec<u8>]) -> FlowBatch {
    let mut session = Session::new(Transport::Udp, Limits::default());
    let mut batch = FlowBatch::default();
    let mut admitted = Admitted::default();
    for datagram in datagrams {
        admitted.clear();
        session.admit(datagram, &mut admitted);
        assert!(admitted.problems.is_empty(), "{:?}", admitted.problems);
        let exporter = Some("[::ffff:192.0.2.1]:4739".parse().expect("address"));
        let _ = batch.push(datagram, &mut admitted, FlowReceipt { time_unix_nano: NOON, exporter });
    }
    batch
}

fn objects(batch: FlowBatch) -> Vec<Value> {
    let mut out = Vec::new();
    for records in FlowJob::new(batch).run().expect("decoded") {
        records_json::objects(&records, |object| out.push(object)).expect("readable");
    }
    out
}

/// The name of a value, or the number where it has none.
fn named(element: u16, value: u64) -> Value {
    let field = catchment_ipfix::FieldSpec::ipfix(element, 0, 1, false);
    catchment_ipfix::enumeration_name(&field, value).map_or(json!(value), Value::from)
}

/// The collector's names, the registered names for all else, and times in their places.
#[test]
fn a_flow_record_has_the_collectors_names() {
    let fields = [(8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (1, 4), (2, 8), (152, 8), (61, 1), (30_000, 2)];
    let mut sets = set(2, &template(256, &fields));
    let mut record = vec![192, 0, 2, 7, 198, 51, 100, 9, 0x9c, 0x40, 1, 187, 6, 0, 0, 5, 220];
    record.extend(u64::MAX.to_be_bytes());
    record.extend(1_796_039_990_000u64.to_be_bytes());
    record.extend([1, 0xab, 0xcd]);
    sets.extend(set(256, &record));
    let all = objects(batch(&[message(3, &sets)]));
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["time"], "2026-11-30T11:59:50.000000000Z");
    assert_eq!(all[0]["observed_time"], "2026-11-30T12:00:00.000000000Z");
    assert_eq!(all[0]["scope"], "catchment.receiver.ipfix");
    let mut attributes = all[0]["attributes"].clone();
    let packets = attributes.as_object_mut().and_then(|all| all.remove("flow.io.packets")).expect("packets");
    assert!(packets.as_f64().is_some_and(|n| n > 1.8e19), "never wraps to a negative number: {packets}");
    assert_eq!(
        attributes,
        json!({
            "source.address": "192.0.2.7", "destination.address": "198.51.100.9", "source.port": 40000,
            "destination.port": 443, "network.transport": "tcp", "network.type": "ipv4", "flow.io.bytes": 1500,
            "ipfix.flowStartMilliseconds": 1_796_039_990_000_000_000i64, "flow.start": 1_796_039_990_000_000_000i64,
            "ipfix.flowDirection": named(61, 1), "ipfix.30000": {"base16": "abcd"}, "flow.type": "ipfix",
            "flow.sequence_num": 7, "flow.observation_domain_id": 3, "flow.template_id": 256,
            "flow.time_received": NOON, "flow.time_exported": NOON, "flow.sampler_address": "192.0.2.1",
        })
    );
}

/// An element that a template names twice keeps both values, in order, under one name.
#[test]
fn repeated_elements_become_a_list() {
    let mut sets = set(2, &template(300, &[(58, 2), (1, 1), (58, 2)]));
    sets.extend(set(300, &[0, 10, 9, 0, 20]));
    let attributes = &objects(batch(&[message(0, &sets)]))[0]["attributes"];
    assert_eq!(attributes["flow.src_vlan"], json!([10, 20]));
    assert_eq!(attributes["flow.io.bytes"], 9);
}

/// A template with as many fields as are allowed, half of them twice, keeps every value in its place.
#[test]
fn large_templates_keep_every_value() {
    let fields: Vec<(u16, u16)> = (0..8_000u16).map(|i| (20_000 + i % 4_000, 1)).collect();
    let mut sets = set(2, &template(256, &fields));
    let record: Vec<u8> = (0..8_000u32).map(|i| u8::try_from(i / 4_000 + 1).expect("1 or 2")).collect();
    sets.extend(set(256, &record));
    let attributes = &objects(batch(&[message(0, &sets)]))[0]["attributes"];
    for element in [20_000, 23_999] {
        assert_eq!(attributes[format!("ipfix.{element}")], json!([{"base16": "01"}, {"base16": "02"}]));
    }
}

/// Options data is a record too, with its scope told.
#[test]
fn options_data_is_marked() {
    // Options template 257: scope ingressInterface, then interfaceName and samplingInterval.
    let options = [1, 1, 0, 3, 0, 1, 0, 10, 0, 4, 0, 82, 0, 4, 0, 34, 0, 4];
    let mut sets = set(3, &options);
    sets.extend(set(257, b"\0\0\0\x05eth0\0\0\0\x64"));
    let attributes = &objects(batch(&[message(0, &sets)]))[0]["attributes"];
    assert_eq!(attributes["flow.record_type"], "options");
    assert_eq!(attributes["flow.scope_fields"], json!(["ipfix.ingressInterface"]));
    assert_eq!(attributes["ipfix.ingressInterface"], 5);
    assert_eq!(attributes["ipfix.interfaceName"], "eth0");
    assert_eq!(attributes["flow.sampling_rate"], 100);
}

/// An element in the scope and behind it too is a list, and in the scope all the same; its name is told once.
#[test]
fn a_scope_field_that_comes_again() {
    for scope_fields in [1, 2] {
        let options = [1, 1, 0, 3, 0, scope_fields, 0, 234, 0, 4, 0, 234, 0, 4, 0, 34, 0, 4];
        let mut sets = set(3, &options);
        sets.extend(set(257, b"\0\0\0\x05\0\0\0\x06\0\0\0\x64"));
        let attributes = &objects(batch(&[message(0, &sets)]))[0]["attributes"];
        assert_eq!(attributes["flow.scope_fields"], json!(["ipfix.ingressVRFID"]));
        assert_eq!(attributes["ipfix.ingressVRFID"], json!([5, 6]));
    }
}

/// A batch decoded later uses the template that was valid at receipt, whatever came after.
#[test]
fn a_replaced_template_does_not_change_earlier_records() {
    let mut first = set(2, &template(256, &[(7, 2)]));
    first.extend(set(256, &[0, 80]));
    let mut second = set(2, &template(256, &[(11, 2)]));
    second.extend(set(256, &[0, 81]));
    let all = objects(batch(&[message(0, &first), message(0, &second)]));
    assert_eq!(all[0]["attributes"]["source.port"], 80);
    assert_eq!(all[1]["attributes"]["destination.port"], 81);
}

/// Whatever the budget, the same records come out.
#[test]
fn the_budget_changes_nothing_but_the_steps() {
    let mut sets = set(2, &template(256, &[(7, 2), (11, 2)]));
    let content: Vec<u8> = (0u16..600).flat_map(|i| [i.to_be_bytes(), [0, 53]]).flatten().collect();
    sets.extend(set(256, &content));
    let whole = objects(batch(&[message(0, &sets)]));
    assert_eq!(whole.len(), 600);
    let mut job = FlowJob::new(batch(&[message(0, &sets)]));
    let (mut out, mut steps) = (Vec::new(), 0);
    loop {
        steps += 1;
        match job.step(Budget { records: 7, bytes: 20 }).expect("decoded") {
            Step::More => {}
            Step::Batch(records) => records_json::objects(&records, |o| out.push(o)).expect("readable"),
            Step::End => break,
        }
    }
    assert_eq!(out, whole);
    assert!(steps > 600 / 7);
}
