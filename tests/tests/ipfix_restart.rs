//! Templates and sampling rates that outlive the engine.

use std::net::UdpSocket;
use std::path::Path;

use catchment_tests::flows::number;
use catchment_tests::message::{Set, counters, counters_template, message, options_template, send, socket_on};
use catchment_tests::{Caught, Flows, NodeLine, Scene, wait_until};

const DOMAIN: u32 = 9;

fn config(cache: &Path) -> String {
    format!("{}, template_cache: {{path: \"{}\", interval: 1s}}", Flows::UDP, cache.display())
}

/// Options template 257 with its record: meteringProcessId as the scope, samplingInterval 10.
fn sampling() -> [Set; 2] {
    let record = [7u32.to_be_bytes(), 10u32.to_be_bytes()].concat();
    [options_template(257, 1, &[(143, 4), (34, 4)]), (257, record)]
}

/// An engine that learns from `exporter` what template 256 is, and that one of ten packets is looked at.
fn learn(scene: &Scene, cache: &Path, exporter: &UdpSocket) -> Flows {
    let flows = Flows::start(scene, &config(cache));
    let [options, rate] = sampling();
    let sets = [counters_template(), options, rate, counters(1, 1)];
    send(exporter, flows.address(), &message(0, DOMAIN, &sets));
    wait_until("it is learned", || flows.metric("records_acknowledged") == 2);
    flows
}

/// A new engine that is sent data without a template from other ports: it reads that of the exporter it knows.
fn recall(scene: &Scene, cache: &Path) -> (NodeLine, Caught) {
    let flows = Flows::start(scene, &config(cache));
    let (known, stranger) = (socket_on(1), socket_on(2));
    send(&known, flows.address(), &message(100, DOMAIN, &[counters(20, 2)]));
    send(&stranger, flows.address(), &message(100, DOMAIN, &[counters(30, 3)]));
    // Another domain of the same exporter.
    send(&known, flows.address(), &message(100, DOMAIN + 1, &[counters(40, 4)]));
    wait_until("all is read", || flows.metric("datagrams_received") == 3);
    flows.stop()
}

fn assert_recalled((line, caught): &(NodeLine, Caught)) {
    assert_eq!(caught.records.len(), 1, "{line:?}");
    let record = &caught.records[0];
    assert_eq!((number(record, "flow.io.bytes"), number(record, "flow.io.packets")), (20, 2));
    assert_eq!(number(record, "flow.sampling_rate"), 10, "{record}");
    assert_eq!(line.note("sets without template"), 2, "{line:?}");
}

/// SIGTERM writes what is known.
#[test]
fn a_restart() {
    let scene = Scene::new();
    let cache = scene.path("templates");
    let (_, caught) = learn(&scene, &cache, &socket_on(1)).finish(2);
    assert_eq!(caught.records.iter().filter(|record| Flows::is_flow(record)).count(), 1);
    assert_recalled(&recall(&scene, &cache));
    // And it is still known after that, though the exporter has not said it again.
    assert_recalled(&recall(&scene, &cache));
}

/// An engine that is killed has written what it knew some time before.
#[test]
fn a_crash() {
    let scene = Scene::new();
    let cache = scene.path("templates");
    let flows = learn(&scene, &cache, &socket_on(1));
    wait_until("the file is written", || std::fs::metadata(&cache).is_ok_and(|file| file.len() > 0));
    drop(flows);
    assert_recalled(&recall(&scene, &cache));
}

/// What an exporter says after a restart holds, not what the file says.
#[test]
fn a_template_that_changed_meanwhile() {
    let scene = Scene::new();
    let cache = scene.path("templates");
    let _ = learn(&scene, &cache, &socket_on(1)).finish(2);
    let flows = Flows::start(&scene, &config(&cache));
    let exporter = socket_on(1);
    let swapped = catchment_tests::message::template(256, &[(2, 8), (1, 8)]);
    for (sequence, sets) in (0..).zip([vec![counters(1, 2)], vec![swapped, counters(3, 4)], vec![counters(5, 6)]]) {
        send(&exporter, flows.address(), &message(sequence, DOMAIN, &sets));
    }
    let (_, caught) = flows.finish(3);
    let mut found: Vec<_> = caught.records.iter().map(|record| number(record, "flow.io.bytes")).collect();
    found.sort_unstable();
    assert_eq!(found, [1, 4, 6]);
}

/// A file that is cut, or something else, costs what is in it and nothing more: the engine starts, and writes it anew.
#[test]
fn a_damaged_file() {
    let scene = Scene::new();
    let cache = scene.path("templates");
    let _ = learn(&scene, &cache, &socket_on(1)).finish(2);
    let whole = std::fs::read(&cache).expect("it is written");
    for content in [&whole[..whole.len() / 2], b"something else\n", &[]] {
        std::fs::write(&cache, content).expect("the scene can be written to");
        let _ = learn(&scene, &cache, &socket_on(1)).finish(2);
        assert_recalled(&recall(&scene, &cache));
    }
}
