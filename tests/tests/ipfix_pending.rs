//! Data that comes before its template.

use catchment_tests::flows::number;
use catchment_tests::message::{EXPORTED, counters, counters_template, message_at, send, socket_on, template};
use catchment_tests::{Flows, Scene, wait_until};

const DOMAIN: u32 = 9;

fn config(max_bytes_per_exporter: &str, max_bytes: &str, max_age: &str) -> String {
    let bounds =
        format!("max_bytes_per_exporter: {max_bytes_per_exporter}, max_bytes: {max_bytes}, max_age: {max_age}");
    format!("{}, pending: {{{bounds}}}", Flows::UDP)
}

/// A message with the record `number`, exported `number` seconds after the beginning.
fn data(number: u32) -> Vec<u8> {
    message_at(EXPORTED + number, number, DOMAIN, &[counters(u64::from(number), 1)])
}

fn template_only(sequence: u32) -> Vec<u8> {
    message_at(EXPORTED + sequence, sequence, DOMAIN, &[counters_template()])
}

/// What came before its template comes out after it: in its order, before what follows, and with its own times.
#[test]
fn held_until_the_template_comes() {
    let scene = Scene::new();
    let flows = Flows::start(&scene, &config("64 KiB", "1 MiB", "60s"));
    let (early, other) = (socket_on(1), socket_on(1));
    for number in 0..10 {
        send(&early, flows.address(), &data(number));
    }
    // What another exporter says of the same id, and what is said of another id, is nothing to it.
    send(&other, flows.address(), &template_only(0));
    let another_id = template(300, &[(1, 8)]);
    send(&early, flows.address(), &message_at(EXPORTED, 10, DOMAIN, &[another_id]));
    wait_until("all is read", || flows.metric("datagrams_received") == 12);
    assert_eq!(flows.metric("records_received"), 0);
    send(&early, flows.address(), &template_only(10));
    send(&early, flows.address(), &data(10));
    let (line, caught) = flows.finish(11);
    let found: Vec<_> = caught
        .records
        .iter()
        .map(|record| ["flow.io.bytes", "flow.sequence_num", "flow.time_exported"].map(|key| number(record, key)))
        .collect();
    let expected = |at: u64| [at, at, (u64::from(EXPORTED) + at) * 1_000_000_000];
    assert_eq!(found, (0..11).map(expected).collect::<Vec<_>>());
    assert_eq!((line.note("sets without template"), line.note("missing by sequence")), (10, 0), "{line:?}");
    assert_eq!((line.note("sets held"), line.note("sets released")), (10, 10), "{line:?}");
}

/// Template and data in one message, behind data that has waited.
#[test]
fn the_template_in_the_same_message_as_data() {
    let scene = Scene::new();
    let flows = Flows::start(&scene, &config("64 KiB", "1 MiB", "60s"));
    let exporter = socket_on(1);
    send(&exporter, flows.address(), &data(0));
    let sets = [counters(1, 1), counters_template(), counters(2, 1)];
    send(&exporter, flows.address(), &message_at(EXPORTED, 1, DOMAIN, &sets));
    let (_, caught) = flows.finish(3);
    assert_eq!(caught.records.iter().map(|record| number(record, "flow.io.bytes")).collect::<Vec<_>>(), [0, 1, 2]);
}

/// A bound of 0 holds nothing: the data is dropped and counted.
#[test]
fn nothing_is_held() {
    let scene = Scene::new();
    let flows = Flows::start(&scene, &config("0", "1 MiB", "60s"));
    let exporter = socket_on(1);
    for number in 0..5 {
        send(&exporter, flows.address(), &data(number));
    }
    send(&exporter, flows.address(), &template_only(5));
    send(&exporter, flows.address(), &data(5));
    let (line, caught) = flows.finish(1);
    assert_eq!(number(&caught.records[0], "flow.io.bytes"), 5);
    assert_eq!((line.note("sets without template"), line.note("sets held")), (5, 0), "{line:?}");
}

/// Above the bound of an exporter its data is dropped and counted, each set once: as held and decoded, or as dropped.
/// Another exporter's is not concerned.
#[test]
fn the_bound_of_an_exporter() {
    const FLOOD: u32 = 1_000;
    let scene = Scene::new();
    let flows = Flows::start(&scene, &config("4 KiB", "1 MiB", "60s"));
    let (flooding, other) = (socket_on(2), socket_on(1));
    send(&other, flows.address(), &data(0));
    for number in 0..FLOOD {
        send(&flooding, flows.address(), &data(1_000 + number));
    }
    send(&other, flows.address(), &template_only(1));
    send(&flooding, flows.address(), &template_only(1_000 + FLOOD));
    wait_until("all is read", || flows.metric("datagrams_received") == u64::from(FLOOD) + 3);
    let (line, caught) = flows.stop();
    let held = caught.records.iter().filter(|record| number(record, "flow.io.bytes") >= 1_000).count();
    assert_eq!(caught.records.len(), held + 1, "that of the other exporter");
    // The content of a set is 16 bytes; what it costs beside that is up to the receiver.
    assert!(held > 0 && held <= 4_096 / 16, "{held}");
    assert_eq!(line.note("sets without template"), u64::from(FLOOD) + 1, "{line:?}");
    assert_eq!(line.note("sets released"), held as u64 + 1, "{line:?}");
    let ends = ["sets released", "sets held and dropped", "sets still held"].map(|note| line.note(note));
    assert_eq!(line.note("sets held"), ends.iter().sum::<u64>(), "{line:?}");
}

/// The bound of all together: many exporters that never send a template cost no more than that.
#[test]
fn the_bound_of_all() {
    let scene = Scene::new();
    let mut flows = Flows::start(&scene, &config("64 KiB", "1 MiB", "60s"));
    let big = |number: u32| {
        let records = vec![0; 16 * 3_900];
        message_at(EXPORTED, number, DOMAIN, &[(256, records)])
    };
    let good = socket_on(1);
    send(&good, flows.address(), &message_at(EXPORTED, 0, DOMAIN, &[counters_template(), counters(1, 1)]));
    wait_until("the first is acknowledged", || flows.metric("records_acknowledged") == 1);
    let before = flows.engine.resident_bytes();
    for number in 0..500 {
        let socket = socket_on(u8::try_from(2 + number % 200).expect("8 bits"));
        send(&socket, flows.address(), &big(number));
    }
    wait_until("all is read", || flows.metric("datagrams_received") == 501);
    let grown = flows.engine.resident_bytes().saturating_sub(before);
    assert!(grown < 16 << 20, "{} KiB more for 1 MiB that may be held", grown >> 10);
    flows.engine.assert_running();
    let (line, _) = flows.finish(1);
    assert_eq!(line.note("sets without template"), 500, "{line:?}");
    let ends = ["sets released", "sets held and dropped", "sets still held"].map(|note| line.note(note));
    assert_eq!((ends[0], line.note("sets held")), (0, ends.iter().sum()), "{line:?}");
    assert!(ends[2] > 0, "{line:?}");
}

/// What has waited too long is dropped, though its template comes after that.
#[test]
fn what_has_waited_too_long() {
    let scene = Scene::new();
    let flows = Flows::start(&scene, &config("64 KiB", "1 MiB", "1s"));
    let exporter = socket_on(1);
    send(&exporter, flows.address(), &data(0));
    wait_until("it is dropped", || flows.metric("pending_sets_dropped") == 1);
    send(&exporter, flows.address(), &template_only(1));
    send(&exporter, flows.address(), &data(1));
    let (line, caught) = flows.finish(1);
    assert_eq!(number(&caught.records[0], "flow.io.bytes"), 1);
    assert_eq!((line.note("sets held"), line.note("sets held and dropped")), (1, 1), "{line:?}");
}
