//! What a session learns from options data, and when it holds.

use super::{admit, ipfix, ipfix_from, session, set, template, v9, words};
use crate::knowledge::SamplingKey;
use crate::session::{Limits, Session, Transport};
use crate::test_wire::options_template;

fn number(value: u32) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}

/// Options data holds for the sets after it, in the same message too, and never for those before.
#[test]
fn from_the_next_set_on() {
    let mut session = session(Transport::Udp);
    let message = ipfix(&[
        template(256, &[(4, 1)]),
        options_template(257, 1, &[(10, 4), (82, 4)]),
        set(256, &[6]),
        set(257, &[number(5), b"eth5".to_vec()].concat()),
        set(256, &[6]),
    ]);
    let admitted = admit(&mut session, &message);
    let name = |index: usize| admitted.sets[index].knowledge.as_ref().and_then(|known| known.interface_name(5));
    assert_eq!((name(0), name(1), name(2)), (None, None, Some("eth5")));
    let later = admit(&mut session, &ipfix(&[set(257, &[number(5), b"xe-5".to_vec()].concat()), set(256, &[6])]));
    let known = later.sets[1].knowledge.as_ref().expect("knowledge");
    assert_eq!(known.interface_name(5), Some("xe-5"), "a later value replaces an earlier one");
    assert_eq!(name(2), Some("eth5"), "what was given out stays");
}

/// The snapshot is the same as long as nothing new is learned, so that it costs nothing.
#[test]
fn snapshots_are_shared() {
    let mut session = session(Transport::Udp);
    let options = options_template(257, 1, &[(10, 4), (82, 4)]);
    let data = set(257, &[number(5), b"eth5".to_vec()].concat());
    let first = admit(&mut session, &ipfix(&[template(256, &[(4, 1)]), options, data.clone(), set(256, &[6])]));
    let second = admit(&mut session, &ipfix(&[data, set(256, &[6])]));
    let of = |admitted: &crate::Admitted| admitted.sets[1].knowledge.clone().expect("knowledge");
    assert!(std::sync::Arc::ptr_eq(&of(&first), &of(&second)));
}

/// However often options data and flows take turns in a datagram, no more than a few snapshots are made of it; what came
/// last is known from the next datagram on.
#[test]
fn snapshots_of_a_datagram_are_few() {
    let mut session = session(Transport::Udp);
    let turn = |value: u8| [set(257, &[0, value, value]), set(256, &[value])];
    let mut sets = vec![template(256, &[(4, 1)]), options_template(257, 1, &[(10, 2), (82, 1)])];
    sets.extend((b'A'..=b'z').flat_map(turn));
    let admitted = admit(&mut session, &ipfix(&sets));
    let mut snapshots: Vec<_> = admitted.sets.iter().filter_map(|set| set.knowledge.clone()).collect();
    let name = |set: &crate::DataSet, value: u8| {
        set.knowledge.as_ref().and_then(|known| known.interface_name(value.into()).map(str::to_owned))
    };
    for (turn, value) in (b'A'..=b'D').enumerate() {
        assert_eq!(name(&admitted.sets[2 * turn + 1], value), Some(char::from(value).to_string()));
    }
    snapshots.dedup_by(|one, other| std::sync::Arc::ptr_eq(one, other));
    assert!((4..=20).contains(&snapshots.len()), "{} snapshots", snapshots.len());
    let later = admit(&mut session, &ipfix(&[set(256, &[6])]));
    assert_eq!(name(&later.sets[0], b'z').as_deref(), Some("z"));
}

/// Fields without bytes say nothing, and do not hide those with some.
#[test]
fn fields_without_bytes() {
    let mut session = session(Transport::Udp);
    let options = options_template(257, 1, &[(10, 0), (10, 1), (82, 0), (34, 0), (82, 4)]);
    let admitted =
        admit(&mut session, &ipfix(&[options, set(257, b"\x05eth5"), template(256, &[(4, 1)]), set(256, &[6])]));
    let known = admitted.sets[1].knowledge.as_ref().expect("knowledge");
    assert_eq!(known.interface_name(5), Some("eth5"));
    assert_eq!(known.sampling_rate(&SamplingKey::default()), None);
}

/// Facts of another domain are seen too, behind those of the own one.
#[test]
fn domains() {
    let mut session = session(Transport::Udp);
    let options = options_template(257, 1, &[(149, 4), (160, 8)]);
    let init = |domain: u32, ms: u64| {
        let record = [number(domain), ms.to_be_bytes().to_vec()].concat();
        ipfix_from(domain, 0, &[options.clone(), template(256, &[(4, 1)]), set(257, &record), set(256, &[6])])
    };
    let context = |admitted: &crate::Admitted, set: usize| {
        let set = &admitted.sets[set];
        set.context(&admitted.messages[set.message]).system_init_unix_nano
    };
    let first = admit(&mut session, &init(1, 5));
    assert_eq!(context(&first, 1), Some(5_000_000));
    let other = admit(&mut session, &ipfix_from(2, 0, &[template(256, &[(4, 1)]), set(256, &[6])]));
    assert_eq!(context(&other, 0), Some(5_000_000));
    let own = admit(&mut session, &init(2, 9));
    assert_eq!(context(&own, 1), Some(9_000_000));
    let back = admit(&mut session, &ipfix_from(1, 0, &[set(256, &[6])]));
    assert_eq!(context(&back, 0), Some(5_000_000));
}

/// NetFlow v9 numbers its scopes apart: system, interface, template.
#[test]
fn scopes_of_netflow_v9() {
    let mut session = session(Transport::Udp);
    // Scope interface with a name; scope system with a rate; both have one scope and one option.
    let names = set(1, &words(&[257, 4, 4, 2, 4, 82, 4]));
    let rates = set(1, &words(&[258, 4, 4, 1, 4, 34, 4]));
    let records = [set(257, &[number(7), b"Gi7\0".to_vec()].concat()), set(258, &[number(1), number(100)].concat())];
    let flows = [set(0, &super::template_record(256, &[(4, 1)])), set(256, &[6])];
    let admitted = admit(&mut session, &v9(0, 0, &[vec![names, rates], records.to_vec(), flows.to_vec()].concat()));
    let known = admitted.sets.last().and_then(|set| set.knowledge.clone()).expect("knowledge");
    assert_eq!(known.interface_name(7), Some("Gi7"));
    assert_eq!(known.sampling_rate(&SamplingKey::default()), Some(100.0));
    assert!(!known.sampling_depends_on_record());
}

/// No more facts are kept than the limit says, but those that are there may change.
#[test]
fn limits() {
    let limits = Limits { max_facts: 3, ..Limits::default() };
    let mut session = Session::new(Transport::Udp, limits);
    let record = |index: u32, name: &str| [number(index), name.as_bytes().to_vec()].concat();
    let records: Vec<u8> = (0..5).flat_map(|index| record(index, "eth0")).collect();
    let admitted = admit(&mut session, &ipfix(&[options_template(257, 1, &[(10, 4), (82, 4)]), set(257, &records)]));
    assert_eq!((admitted.counters.facts_refused, session.facts()), (2, 3));
    let changed = [record(1, "\0\0\0\0"), record(2, "xe-2"), record(4, "eth4")].concat();
    let admitted = admit(&mut session, &ipfix(&[set(257, &changed), template(256, &[(4, 1)]), set(256, &[6])]));
    let known = admitted.sets[1].knowledge.as_ref().expect("knowledge");
    let names: Vec<_> = (0..5).map(|index| known.interface_name(index)).collect();
    assert_eq!(names, [Some("eth0"), None, Some("xe-2"), None, Some("eth4")]);
    assert_eq!(admitted.counters.facts_refused, 0);
}
