//! Flows from the socket to a sink: generated exporters, and datagrams that no exporter should send.

use std::collections::BTreeMap;

use catchment_tests::flows::number;
use catchment_tests::message::{Set, counters, counters_template, send, socket_on};
use catchment_tests::{Flows, Scene, loadgen, message};

/// Two exporters on one receiver: every record arrives, belongs to its observation domain, and none is missed.
fn generated(protocol: &str, fields: &str) {
    let scene = Scene::new();
    let setup = Flows::start(&scene, Flows::UDP);
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
    let (receiver, caught) = setup.finish(expected.values().sum());
    let mut found = BTreeMap::new();
    for record in &caught.records {
        *found.entry(number(record, "flow.observation_domain_id")).or_insert(0) += 1;
        assert_eq!(record["attributes"]["flow.type"], protocol);
        assert!(number(record, "flow.io.bytes") >= number(record, "flow.io.packets"), "{record}");
        assert!(record["attributes"]["source.address"].is_string(), "{record}");
        assert!(number(record, "flow.start") <= number(record, "flow.end"), "{record}");
    }
    assert_eq!(found, expected);
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

/// A message in domain 9.
fn message(sequence: u32, sets: &[Set]) -> Vec<u8> {
    message::message(sequence, 9, sets)
}

/// Malformed datagrams are counted one by one and hurt nothing: the exporter's next good one is a record.
#[test]
fn malformed_datagrams_are_counted() {
    let scene = Scene::new();
    let mut setup = Flows::start(&scene, Flows::UDP);
    let socket = socket_on(1);
    let whole = message(0, &[counters_template()]);
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
        let _ = socket.send_to(datagram, setup.address()).expect("it is sent");
    }
    // Template and data after all that: the sign that everything before was read.
    let good = message(0, &[counters_template(), counters(1_234, 5)]);
    let _ = socket.send_to(&good, setup.address()).expect("it is sent");
    setup.sink.wait_for(1);
    setup.engine.assert_running();
    let (receiver, caught) = setup.finish(1);
    assert_eq!(
        (number(&caught.records[0], "flow.io.bytes"), number(&caught.records[0], "flow.io.packets")),
        (1_234, 5)
    );
    assert_eq!(receiver.note("datagrams"), 8);
    assert_eq!(receiver.note("malformed messages"), 7, "{receiver:?}");
}

/// Data before its template is counted; it waits for its template if it may. From the template on, and from another
/// exporter, records come.
#[test]
fn data_before_its_template_is_counted() {
    for (setting, waits) in [("", true), (", pending: {max_bytes: 0}", false)] {
        let scene = Scene::new();
        let flows = Flows::start(&scene, &format!("{}{setting}", Flows::UDP));
        let [early, other] = [0, 1].map(|_| socket_on(1));
        for (socket, datagram) in [
            (&early, message(0, &[counters(1, 1)])),
            (&early, message(1, &[counters(2, 2), counters(3, 3)])),
            (&other, message(0, &[counters_template(), counters(10, 10)])),
            // What one exporter says of template 256 is nothing to another one.
            (&early, message(3, &[counters(4, 4)])),
            (&early, message(4, &[counters_template(), counters(20, 20)])),
            (&early, message(5, &[counters(30, 30)])),
        ] {
            send(socket, flows.address(), &datagram);
        }
        let expected: &[u64] = if waits { &[10, 1, 2, 3, 4, 20, 30] } else { &[10, 20, 30] };
        let (receiver, caught) = flows.finish(expected.len() as u64);
        let bytes: Vec<_> = caught.records.iter().map(|record| number(record, "flow.io.bytes")).collect();
        assert_eq!(bytes, expected);
        let held = if waits { 4 } else { 0 };
        assert_eq!(receiver.note("sets without template"), 4, "{receiver:?}");
        assert_eq!((receiver.note("sets held"), receiver.note("sets released")), (held, held), "{receiver:?}");
        assert_eq!(receiver.note("malformed messages"), 0, "{receiver:?}");
        assert_eq!(receiver.note("missing by sequence"), 0, "{receiver:?}");
    }
}
