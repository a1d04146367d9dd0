use std::time::Duration;

use super::{Limits, Session, Transport};
use crate::admitted::Admitted;
use crate::message::Version;
use crate::problem::ProblemKind;
use crate::sequence::SequenceCheck;
use crate::template::Kind;
use crate::test_wire::{ipfix, ipfix_from, set, template, template_record, v9, words};

mod knowledge;
mod limits;
mod lists;
mod templates;
mod versions;

fn session(transport: Transport) -> Session {
    Session::new(transport, Limits::default())
}

fn admit(session: &mut Session, datagram: &[u8]) -> Admitted {
    let mut admitted = Admitted::default();
    session.admit(datagram, &mut admitted);
    admitted
}

/// The kinds of the problems, in order.
fn kinds(admitted: &Admitted) -> Vec<ProblemKind> {
    admitted.problems.iter().map(|problem| problem.kind).collect()
}

/// Number of records of each data set.
fn records(admitted: &Admitted) -> Vec<usize> {
    admitted.sets.iter().map(|set| set.records).collect()
}

/// A template is valid from the next set on, and not before.
#[test]
fn templates_take_effect_in_order() {
    let data = set(256, &[1, 2, 3, 4]);
    let message = ipfix(&[data.clone(), template(256, &[(4, 1), (5, 1)]), data]);
    let admitted = admit(&mut session(Transport::Udp), &message);
    assert_eq!(records(&admitted), [2]);
    assert_eq!(admitted.unknown_sets.len(), 1);
    assert_eq!(admitted.unknown_sets[0].range, 20..24);
    assert_eq!(admitted.sets[0].range.end, message.len());
    assert_eq!(kinds(&admitted), [ProblemKind::UnknownTemplate]);
}

/// After a fault in the framing what came before stays, and the rest is one problem.
#[test]
fn framing_faults() {
    let good = [template(256, &[(4, 1)]), set(256, &[6, 17])];
    let faults: [(Vec<u8>, ProblemKind); 5] = [
        (words(&[256, 3]), ProblemKind::SetLength),
        (words(&[256, 0]), ProblemKind::SetLength),
        (words(&[256, 9]), ProblemKind::SetLength),
        (vec![1, 0], ProblemKind::SetLength),
        (set(2, &words(&[257, 9, 4, 1])), ProblemKind::TemplateOverrun),
    ];
    for (fault, kind) in faults {
        let message = ipfix(&[good.concat(), fault.clone()]);
        let admitted = admit(&mut session(Transport::Udp), &message);
        assert_eq!(records(&admitted), [2], "{fault:?}");
        assert_eq!(kinds(&admitted), [kind], "{fault:?}");
        assert!(admitted.problems[0].discarded && !admitted.messages[0].complete);
        assert_eq!(admitted.counters.templates_new, 1);
        let in_set = if kind == ProblemKind::TemplateOverrun { 4 } else { 0 };
        assert_eq!(admitted.counters.discarded_bytes as usize, fault.len() - in_set);
    }
}

/// A value that reaches past its set ends the message, but costs no record before it.
#[test]
fn record_overrun() {
    let message =
        ipfix(&[template(256, &[(82, 65_535)]), set(256, &[1, b'a', 2, b'b', b'c', 9, b'd']), set(256, &[1, b'e'])]);
    let admitted = admit(&mut session(Transport::Udp), &message);
    assert_eq!(records(&admitted), [2]);
    assert_eq!(admitted.sets[0].range.len(), 5);
    assert_eq!(kinds(&admitted), [ProblemKind::RecordOverrun]);
    assert_eq!(admitted.counters.discarded_bytes, 2 + 6);
}

/// Headers that cannot be are refused, and leave the session as it was.
#[test]
fn refused_messages() {
    let mut session = session(Transport::Udp);
    let _ = admit(&mut session, &ipfix(&[template(256, &[(4, 1)])]));
    let data = ipfix(&[set(256, &[6])]);
    let with_length = |length: u8| [&data[..3], &[length], &data[4..]].concat();
    let bad = [
        (vec![], ProblemKind::Truncated),
        (data[..15].to_vec(), ProblemKind::Truncated),
        (with_length(15), ProblemKind::MessageLength),
        (with_length(0), ProblemKind::MessageLength),
        (with_length(22), ProblemKind::MessageLength),
        ([&[0, 11], &data[2..]].concat(), ProblemKind::Version),
    ];
    for (datagram, kind) in bad {
        let admitted = admit(&mut session, &datagram);
        assert_eq!(kinds(&admitted), [kind], "{datagram:?}");
        assert_eq!((admitted.messages.len(), admitted.counters.rejected_messages), (0, 1));
        assert_eq!(admitted.counters.discarded_bytes as usize, datagram.len());
    }
    assert_eq!(records(&admit(&mut session, &data)), [1]);
}

/// Messages may follow each other in a datagram; anything else after one is counted and left.
#[test]
fn several_messages() {
    let first = ipfix(&[template(256, &[(4, 1)])]);
    let second = ipfix_from(7, 0, &[set(256, &[6, 17])]);
    let stray = [&second[..15], &[0]].concat();
    let datagram = [first.clone(), second.clone(), stray.clone()].concat();
    let admitted = admit(&mut session(Transport::Udp), &datagram);
    assert_eq!(admitted.messages.len(), 2);
    assert_eq!(admitted.sets[0].message, 1);
    assert_eq!(admitted.messages[1].offset, first.len());
    assert_eq!(admitted.counters.trailing_bytes as usize, stray.len());
    assert_eq!(kinds(&admitted), [ProblemKind::TrailingBytes]);
}

/// Messages of the smallest and of the largest length.
#[test]
fn message_lengths() {
    let mut session = session(Transport::Udp);
    let empty = admit(&mut session, &ipfix(&[]));
    assert_eq!((empty.messages[0].length, empty.problems.len()), (16, 0));
    let content = vec![1; 65_535 - 16 - 12 - 4];
    let largest = ipfix(&[template(256, &[(4, 1)]), set(256, &content)]);
    assert_eq!(largest.len(), 65_535);
    assert_eq!(records(&admit(&mut session, &largest)), [content.len()]);
}

/// Reserved set ids are skipped, and the sets after them are read.
#[test]
fn reserved_sets() {
    let sets = [0, 1, 4, 255].map(|id| set(id, &[1, 2, 3]));
    let message = ipfix(&[sets.concat(), template(256, &[(4, 1)]), set(256, &[6])]);
    let admitted = admit(&mut session(Transport::Udp), &message);
    assert_eq!(kinds(&admitted), [ProblemKind::ReservedSet; 4]);
    assert_eq!(records(&admitted), [1]);
    assert!(admitted.messages[0].complete);
}

/// Padding is what is shorter than a record; it may be long, and need not be zero.
#[test]
fn padding() {
    let message =
        ipfix(&[template(256, &[(27, 16)]), set(256, &[&[1; 16][..], &[0; 15]].concat()), set(256, &[7; 15])]);
    let admitted = admit(&mut session(Transport::Udp), &message);
    assert_eq!((records(&admitted), admitted.sets[0].padding), (vec![1], 15));
    assert_eq!((admitted.counters.padding_bytes, admitted.counters.nonzero_padding_sets), (30, 1));
    assert!(admitted.problems.is_empty());
}

/// Data that came before its template is decoded when that is there.
#[test]
fn late_templates() {
    let mut session = session(Transport::Udp);
    let message = ipfix_from(7, 40, &[set(256, &[6, 17])]);
    let early = admit(&mut session, &message);
    let unknown = &early.unknown_sets[0];
    let info = early.messages[unknown.message];
    let content = &message[unknown.range.clone()];
    let mut late = Admitted::default();
    assert!(!session.admit_set(&info, unknown.template_id, content, &mut late));
    assert!(late.messages.is_empty());
    let _ = admit(&mut session, &ipfix_from(8, 0, &[template(256, &[(4, 1)])]));
    assert!(!session.admit_set(&info, unknown.template_id, content, &mut late), "another domain");
    let _ = admit(&mut session, &ipfix_from(7, 42, &[template(256, &[(4, 1)])]));
    assert!(session.admit_set(&info, unknown.template_id, content, &mut late));
    assert_eq!((records(&late), late.sets[0].range.clone()), (vec![2], 0..2));
    assert_eq!(late.messages[0].export_time_unix_nano, info.export_time_unix_nano);
}

/// IPFIX counts data records, options data included; a set that cannot be counted raises no alarm.
#[test]
fn ipfix_sequence() {
    let mut session = session(Transport::Udp);
    let options = set(3, &words(&[257, 1, 1, 149, 4]));
    let mut check = |sequence, sets: &[Vec<u8>]| {
        let admitted = admit(&mut session, &ipfix_from(7, sequence, sets));
        (admitted.messages[0].sequence_check, admitted.counters.lost_records)
    };
    let sets = [template(256, &[(4, 1)]), options, set(256, &[1, 2]), set(257, &[0; 8])];
    assert_eq!(check(100, &sets), (SequenceCheck::First, 0));
    assert_eq!(check(104, &[]), (SequenceCheck::InOrder, 0));
    assert_eq!(check(109, &[set(256, &[1])]), (SequenceCheck::Gap(5), 5));
    assert_eq!(check(110, &[set(300, &[1])]), (SequenceCheck::InOrder, 0));
    assert_eq!(check(175, &[set(256, &[1])]), (SequenceCheck::Unchecked, 0));
    assert_eq!(check(177, &[]), (SequenceCheck::Gap(1), 1));
}

/// Each domain is numbered for itself.
#[test]
fn sequence_by_domain() {
    let mut session = session(Transport::Udp);
    for (domain, sequence, expected) in
        [(1, 5, SequenceCheck::First), (2, 900, SequenceCheck::First), (1, 5, SequenceCheck::InOrder)]
    {
        let admitted = admit(&mut session, &ipfix_from(domain, sequence, &[]));
        assert_eq!(admitted.messages[0].sequence_check, expected);
    }
}

/// Templates that are not sent again die, when they are to; those sent again live on.
#[test]
fn expiry() {
    let limits = Limits { template_lifetime: Some(Duration::from_secs(10)), ..Limits::default() };
    let mut session = Session::new(Transport::Udp, limits);
    let both = ipfix(&[template(256, &[(4, 1)]), template(257, &[(4, 1)])]);
    let _ = admit(&mut session, &both);
    session.set_clock(Duration::from_secs(8));
    let _ = admit(&mut session, &ipfix(&[template(257, &[(4, 1)])]));
    session.set_clock(Duration::from_secs(11));
    let admitted = admit(&mut session, &ipfix(&[set(256, &[1]), set(257, &[1])]));
    assert_eq!((records(&admitted), admitted.counters.templates_expired), (vec![1], 1));
    assert_eq!(session.templates().count(), 1);
}

/// An exporter that takes long to send a template again is given three times as long.
#[test]
fn expiry_of_slow_exporters() {
    let limits = Limits { template_lifetime: Some(Duration::from_secs(10)), ..Limits::default() };
    let mut session = Session::new(Transport::Udp, limits);
    let mut sets_at = |second, sets: &[Vec<u8>]| {
        session.set_clock(Duration::from_secs(second));
        admit(&mut session, &ipfix(sets)).sets.len()
    };
    for second in [0, 9] {
        assert_eq!(sets_at(second, &[template(256, &[(4, 1)])]), 0);
    }
    assert_eq!((sets_at(9 + 27, &[set(256, &[1])]), sets_at(9 + 28, &[set(256, &[1])])), (1, 0));
}

/// Fields that no table knows are counted when a template says something new, and cost no record.
#[test]
fn unknown_elements() {
    let mut session = session(Transport::Udp);
    let message = |id| ipfix(&[template(256, &[(id, 2), (4, 1), (32_000, 1)]), set(256, &[1, 2, 6, 9])]);
    let first = admit(&mut session, &message(32_001));
    assert_eq!((first.counters.unknown_elements, records(&first)), (2, vec![1]));
    assert_eq!(admit(&mut session, &message(32_001)).counters.unknown_elements, 0, "a refresh");
    assert_eq!(admit(&mut session, &message(7)).counters.unknown_elements, 1);
}

/// Templates can be carried over to another session.
#[test]
fn carried_over() {
    let mut before = session(Transport::Udp);
    let _ = admit(&mut before, &ipfix(&[template(256, &[(4, 1)])]));
    let mut after = session(Transport::Udp);
    for (version, domain, template) in before.templates() {
        assert_eq!((version, domain, template.kind()), (Version::Ipfix, 7, Kind::Flow));
        assert!(after.insert_template(version, domain, template.clone()).is_none());
    }
    assert_eq!(records(&admit(&mut after, &ipfix(&[set(256, &[1])]))), [1]);
    let again = admit(&mut after, &ipfix(&[template(256, &[(4, 1)])]));
    assert_eq!(again.counters.templates_refreshed, 1);
}
