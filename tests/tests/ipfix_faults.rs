//! Exporters that flood, break off, repeat themselves or contradict each other: nobody else is hurt, and everything is
//! in the books.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

use catchment_tests::expected::{Expected, capture_names, own_captures};
use catchment_tests::flows::{number, receiver};
use catchment_tests::message::{Set, counters, counters_template, message, send, socket_on, template};
use catchment_tests::{Caught, Elements, Engine, Flows, Scene, Schema, pcap, udp_queue, wait_until};

const MIB: u64 = 1 << 20;

/// An exporter that tells its template once and then counts.
struct Good {
    socket: UdpSocket,
    to: SocketAddr,
    sent: u64,
}

impl Good {
    fn start(flows: &Flows) -> Self {
        let mut good = Self { socket: socket_on(1), to: flows.address(), sent: 0 };
        send(&good.socket, good.to, &message(0, 9, &[counters_template()]));
        good.send();
        wait_until("the first record is acknowledged", || flows.metric("records_acknowledged") == 1);
        good
    }

    fn send(&mut self) {
        let sequence = u32::try_from(self.sent).expect("few records");
        send(&self.socket, self.to, &message(sequence, 9, &[counters(self.sent, 1)]));
        self.sent += 1;
    }

    /// Every record has come, once.
    fn check(&self, caught: &Caught) {
        assert_eq!(bytes_of(caught), (0..self.sent).collect::<Vec<_>>());
    }
}

fn bytes_of(caught: &Caught) -> Vec<u64> {
    let mut bytes: Vec<_> = caught.records.iter().map(|record| number(record, "flow.io.bytes")).collect();
    bytes.sort_unstable();
    bytes
}

/// `count` templates of one field, from an id on.
fn templates(first: u16, count: u16) -> Set {
    let ids = (0..count).map(|number| 256 + (first.wrapping_add(number)) % 65_000);
    (2, ids.flat_map(|id| template(id, &[(1, 8)]).1).collect())
}

/// Sends what `flood` gives for each number, a record of a good exporter after each, and checks that no record is lost
/// and that the engine grows by less than `most` bytes.
fn flood(config: &str, datagrams: u32, most: u64, flood: impl Fn(u32) -> (UdpSocket, Vec<u8>)) {
    let scene = Scene::new();
    let mut flows = Flows::start(&scene, &format!("{}{config}", Flows::UDP));
    let mut good = Good::start(&flows);
    let before = flows.engine.resident_bytes();
    for number in 0..datagrams {
        let (socket, datagram) = flood(number);
        send(&socket, good.to, &datagram);
        good.send();
    }
    let all = u64::from(2 * datagrams) + 2;
    wait_until("everything is read", || flows.metric("datagrams_received") == all);
    assert_eq!(udp_queue(good.to.port()).dropped, 0, "the test itself sent too fast");
    wait_until("every record is acknowledged", || flows.metric("records_acknowledged") == good.sent);
    let grown = flows.engine.resident_bytes().saturating_sub(before);
    assert!(grown < most, "{} KiB more", grown >> 10);
    flows.engine.assert_running();
    let (line, caught) = flows.stop();
    assert_eq!((line.sent, line.note("malformed messages")), (good.sent, 0), "{line:?}");
    good.check(&caught);
}

/// One exporter that never stops making up templates of new ids, in new domains.
#[test]
fn a_flood_of_templates_from_one_port() {
    let socket = socket_on(2);
    flood("", 100, 24 * MIB, |number| {
        let first = u16::try_from(number * 8_000 % 65_000).expect("16 bits");
        (socket.try_clone().expect("a socket"), message(0, number, &[templates(first, 8_000)]))
    });
}

/// The same with templates of many fields.
#[test]
fn a_flood_of_large_templates() {
    let socket = socket_on(2);
    let fields = vec![(1, 8); 9_000];
    flood("", 400, 96 * MIB, |number| {
        let id = u16::try_from(256 + number).expect("16 bits");
        (socket.try_clone().expect("a socket"), message(0, 7, &[template(id, &fields)]))
    });
}

/// A thousand exporters on many addresses, each with as many templates as it may have.
#[test]
fn a_flood_of_templates_from_many_ports() {
    flood(", max_exporters: 32, max_templates: 256", 1_000, 24 * MIB, |number| {
        let last = u8::try_from(2 + number % 250).expect("8 bits");
        let address = Ipv4Addr::new(127, 0, u8::try_from(number / 250).expect("8 bits"), last);
        let socket = UdpSocket::bind((address, 0)).expect("all of 127.0.0.0/8 is loopback");
        (socket, message(0, 9, &[templates(0, 1_000)]))
    });
}

/// Many ports of one address, each with as many templates as an exporter may have, under the limits as they are.
///
/// All exporters together may have 4,000,000 fields of templates, of which each takes about 40 bytes in memory, and a
/// template counts as eight fields more: that is 160 MB, and some for what the allocator does not give back.
#[test]
fn a_flood_of_templates_at_default_limits() {
    // Twice as many templates as there is room for.
    const PORTS: u32 = 500;
    let flooding: Vec<_> = (0..PORTS).map(|_| socket_on(2)).collect();
    let content = message(0, 9, &[templates(0, 2_000)]);
    flood("", PORTS, 192 * MIB, |number| {
        let socket = &flooding[usize::try_from(number).expect("a small number")];
        (socket.try_clone().expect("a socket"), content.clone())
    });
}

/// Datagrams of real exporters in which a byte is wrong: none ends the engine, all are in the books, and what comes after
/// them is read as if they had not been.
#[test]
fn damaged_datagrams() {
    const CHANGES: usize = 4_000;
    let scene = Scene::new();
    let yaml = Flows::yaml_to(Flows::UDP, "{type: \"exporter:noop\", config: {}}");
    let mut engine = Engine::start(&scene, &yaml, &[]);
    let to = engine.address("flows");
    let folder = own_captures();
    let elements = Elements::load();
    let (mut datagrams, mut records) = (Vec::new(), 0);
    for name in capture_names(&folder) {
        let capture = std::fs::read(folder.join(format!("{name}.pcap"))).expect("a capture");
        datagrams.push(pcap::udp_payloads(&capture));
        let expected = Expected::load(&folder, &name);
        let outcomes = expected.outcomes(&elements, Schema::Collector, true);
        records += outcomes.map(|outcome| outcome.records.len() as u64).sum::<u64>();
    }
    let bytes: usize = datagrams.iter().flatten().map(Vec::len).sum();
    let (mut sent, mut position) = (0, 0);
    for capture in &datagrams {
        let socket = socket_on(3);
        for datagram in capture {
            for at in 0..datagram.len() {
                // Bytes at even distances over all datagrams, and every byte of the headers.
                position += 1;
                if position % (bytes / CHANGES).max(1) != 0 && at >= 24 {
                    continue;
                }
                let mut changed = datagram.clone();
                changed[at] ^= [0x01, 0x80, 0xff][position % 3];
                send(&socket, to, &changed);
                sent += 1;
            }
        }
    }
    let metric = |engine: &Engine, name: &str| engine.metric("receiver.ipfix", name);
    wait_until("all are read", || metric(&engine, "datagrams_received") == sent);
    engine.assert_running();
    let before = ["records_received", "messages_received", "messages_rejected"].map(|name| metric(&engine, name));
    assert!(before[1] + before[2] >= sent, "each is a message or rejected: {before:?}, {sent} were sent");
    assert!(before[2] > 0 && metric(&engine, "messages_incomplete") > 0, "{before:?}");
    let mut good = 0;
    for capture in &datagrams {
        let socket = socket_on(4);
        for datagram in capture {
            send(&socket, to, datagram);
            good += 1;
        }
    }
    wait_until("the good ones are read", || metric(&engine, "datagrams_received") == sent + good);
    wait_until("the good ones are sent on", || metric(&engine, "records_sent") == before[0] + records);
    let after = ["records_received", "messages_received", "messages_rejected"].map(|name| metric(&engine, name));
    assert_eq!(after, [before[0] + records, before[1] + good, before[2]]);
    assert_eq!(udp_queue(to.port()).dropped, 0, "the test itself sent too fast");
    let stopped = engine.stop();
    let line = receiver(stopped.expect_clean());
    assert_eq!((line.received, line.sent, line.note("acknowledged")), (Some(after[0]), after[0], after[0]));
    assert_eq!(line.note("datagrams"), sent + good);
}

/// A message of three records that begin with the number `first`.
fn three(first: u32, domain: u32) -> Vec<u8> {
    let records = (first..first + 3).map(|number| counters(u64::from(domain * 1_000 + number), 1));
    let sets: Vec<_> = std::iter::once(counters_template()).chain(records).collect();
    message(first, domain, &sets)
}

/// Sequence numbers tell what is missing, and neither what comes twice nor what comes late is taken for missing.
#[test]
fn repeated_reordered_and_lost_datagrams() {
    let scene = Scene::new();
    let flows = Flows::start(&scene, Flows::UDP);
    let socket = socket_on(1);
    let (mut datagrams, mut expected) = (0, Vec::new());
    let mut lost_after = |domain: u32, firsts: &[u32]| {
        for first in firsts {
            send(&socket, flows.address(), &three(*first, domain));
            expected.extend((*first..*first + 3).map(|number| u64::from(domain * 1_000 + number)));
            datagrams += 1;
        }
        wait_until("all are read", || flows.metric("datagrams_received") == datagrams);
        flows.metric("lost_records")
    };
    assert_eq!(lost_after(1, &[0, 3, 3, 6, 3, 9, 9, 12]), 0, "twice");
    let lost = lost_after(2, &[0, 3, 9, 12]);
    assert_eq!(lost, 3, "the records 6 to 8");
    let reordered = lost_after(3, &[0, 6, 3, 9, 12]) - lost;
    assert!(reordered <= 3, "what is late was missing for a while, and nothing more: {reordered}");
    let before = flows.metric("lost_records");
    assert_eq!(lost_after(4, &[3_000, 3_003, 0, 3]), before, "an exporter that starts anew has lost nothing");
    let (_, caught) = flows.stop();
    expected.sort_unstable();
    assert_eq!(bytes_of(&caught), expected);
}

/// SIGTERM while an exporter sends: what was taken in is a beginning of what was sent, all of it is delivered.
#[test]
fn an_end_while_an_exporter_sends() {
    let scene = Scene::new();
    let flows = Flows::start(&scene, Flows::UDP);
    let address = flows.address();
    let ended = AtomicBool::new(false);
    let (line, caught) = std::thread::scope(|threads| {
        let _ = threads.spawn(|| {
            let socket = socket_on(1);
            let mut sequence = 0;
            while !ended.load(Ordering::Relaxed) {
                let records = (0..10).map(|number| counters(sequence + number, 1));
                let sets: Vec<_> = std::iter::once(counters_template()).chain(records).collect();
                send(&socket, address, &message(u32::try_from(sequence).expect("few records"), 9, &sets));
                sequence += 10;
            }
        });
        wait_until("records are acknowledged", || flows.metric("records_acknowledged") > 2_000);
        let stopped = flows.stop();
        ended.store(true, Ordering::Relaxed);
        stopped
    });
    assert_eq!(line.dropped, 0, "{line:?}");
    assert_eq!(bytes_of(&caught), (0..line.sent).collect::<Vec<_>>());
}

/// Two exporters with the same template id in the same domain, which mean different things by it, and each of them
/// changes its mind: every record is read by the template that its exporter had told last.
#[test]
fn templates_of_the_same_id() {
    const ROUNDS: u64 = 300;
    let scene = Scene::new();
    let flows = Flows::start(&scene, Flows::UDP);
    let exporters = [socket_on(1), socket_on(1), socket_on(2)];
    let layouts = [counters_template(), template(256, &[(2, 8), (1, 8)]), template(256, &[(1, 4), (210, 4), (2, 8)])];
    let data = |layout: usize, bytes: u64, packets: u64| match layout {
        0 => counters(bytes, packets),
        1 => counters(packets, bytes),
        _ => {
            let short = u32::try_from(bytes).expect("32 bits").to_be_bytes();
            (256, [&short[..], &[0xff; 4], &packets.to_be_bytes()].concat())
        }
    };
    for round in 0..ROUNDS {
        for (number, socket) in (0u64..).zip(&exporters) {
            let layout = usize::try_from(round / 5 + number).expect("a small number") % layouts.len();
            let bytes = round * 10 + number;
            let mut sets = vec![data(layout, bytes, 1_000_000 + bytes)];
            if round % 5 == 0 {
                sets.insert(0, layouts[layout].clone());
            }
            send(socket, flows.address(), &message(u32::try_from(round).expect("few"), 9, &sets));
        }
    }
    let (line, caught) = flows.finish(3 * ROUNDS);
    assert_eq!((line.note("malformed messages"), line.note("missing by sequence")), (0, 0), "{line:?}");
    assert_eq!(
        bytes_of(&caught),
        (0..ROUNDS).flat_map(|round| (0..3).map(move |n| round * 10 + n)).collect::<Vec<_>>()
    );
    for record in &caught.records {
        assert_eq!(number(record, "flow.io.packets"), 1_000_000 + number(record, "flow.io.bytes"), "{record}");
    }
}
