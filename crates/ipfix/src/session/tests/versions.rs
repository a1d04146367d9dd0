//! What is particular to NetFlow v9 and v5.

use super::{admit, kinds, records, session, set, template_record, v9, words};
use crate::field::Namespace;
use crate::problem::ProblemKind;
use crate::sequence::SequenceCheck;
use crate::session::Transport;
use crate::template::Kind;

/// Templates are in set 0, lengths decide, the count of the header does not.
#[test]
fn v9_templates_and_data() {
    let record = template_record(256, &[(33_002, 2), (82, 65_535)]);
    let packet = v9(0, 1_000, &[set(0, &record), set(256, &[0, 1, 2, b'a', b'b', 0, 2, 0])]);
    let admitted = admit(&mut session(Transport::Udp), &packet);
    assert_eq!(records(&admitted), [2]);
    assert!(admitted.problems.is_empty());
    assert_eq!(admitted.messages[0].header_count, Some(99));
    let fields = admitted.sets[0].template.fields();
    assert_eq!((fields[0].id, fields[0].enterprise, fields[0].namespace), (33_002, 0, Namespace::NetflowV9));
    assert_eq!(fields[0].name().as_deref(), Some("firewallEventExtended"));
}

/// Options templates give their lengths in bytes; a scope may take none.
#[test]
fn v9_options_templates() {
    let record = words(&[256, 8, 4, 1, 0, 2, 4, 34, 4]);
    let padded = [record, vec![0, 0]].concat();
    let packet = v9(0, 0, &[set(1, &padded), set(256, &[0, 0, 0, 1, 0, 0, 0, 10])]);
    let admitted = admit(&mut session(Transport::Udp), &packet);
    assert!(admitted.problems.is_empty());
    let template = &admitted.sets[0].template;
    assert_eq!((template.kind(), template.scope_field_count()), (Kind::Options, 2));
    let names: Vec<_> = template.fields().iter().filter_map(|field| field.name()).collect();
    assert_eq!(names, ["scopeSystem", "scopeInterface", "samplingInterval"]);
}

/// Lengths that are not whole fields cost only that template.
#[test]
fn v9_odd_options_lengths() {
    let odd = [words(&[256, 2, 4, 1]), words(&[4, 34])].concat();
    let good = words(&[257, 4, 0, 1, 4]);
    let packet = v9(0, 0, &[set(1, &[odd, good].concat()), set(257, &[1, 2, 3, 4])]);
    let admitted = admit(&mut session(Transport::Udp), &packet);
    assert_eq!(kinds(&admitted), [ProblemKind::TemplateInvalid]);
    assert_eq!(records(&admitted), [1]);
    let overrun = v9(0, 0, &[set(1, &words(&[256, 1, 0]))]);
    assert_eq!(kinds(&admit(&mut session(Transport::Udp), &overrun)), [ProblemKind::TemplateOverrun]);
}

/// Zeros after the last set are padding, of any length; other bytes there are a fault, unless too few for a set.
#[test]
fn v9_tail() {
    let sets = [set(0, &template_record(256, &[(4, 1)])), set(256, &[6])].concat();
    for tail in [0, 1, 3, 4, 5, 1_300] {
        let packet = v9(0, 0, &[sets.clone(), vec![0; tail]]);
        let admitted = admit(&mut session(Transport::Udp), &packet);
        assert_eq!((records(&admitted), admitted.counters.padding_bytes), (vec![1], tail as u64));
        assert!(admitted.problems.is_empty(), "{tail} zeros");
    }
    let packet = v9(0, 0, &[sets, vec![0, 0, 0, 0, 1]]);
    let admitted = admit(&mut session(Transport::Udp), &packet);
    assert_eq!((kinds(&admitted), records(&admitted)), (vec![ProblemKind::SetLength], vec![1]));
}

/// Templates without fields mean nothing in v9: there are no withdrawals.
#[test]
fn v9_has_no_withdrawals() {
    let mut session = session(Transport::Stream);
    let _ = admit(&mut session, &v9(0, 0, &[set(0, &template_record(256, &[(4, 1)]))]));
    let nothing = [set(0, &words(&[256, 0])), set(1, &words(&[256, 0, 0])), set(256, &[6])];
    let admitted = admit(&mut session, &v9(1, 0, &nothing));
    assert!(admitted.problems.is_empty());
    assert_eq!(records(&admitted), [1]);
}

/// v9 counts packets, and an uptime that goes back is a restart that leaves the templates alone.
#[test]
fn v9_sequence() {
    let mut session = session(Transport::Udp);
    let mut check = |sequence, uptime_ms, sets: &[Vec<u8>]| {
        let admitted = admit(&mut session, &v9(sequence, uptime_ms, sets));
        (admitted.messages[0].sequence_check, admitted.counters.lost_packets, admitted.sets.len())
    };
    let learn = [set(0, &template_record(256, &[(4, 1)]))];
    let data = [set(256, &[6, 17])];
    assert_eq!(check(50, 1_000_000, &learn), (SequenceCheck::First, 0, 0));
    assert_eq!(check(51, 1_001_000, &data), (SequenceCheck::InOrder, 0, 1));
    assert_eq!(check(54, 1_002_000, &data), (SequenceCheck::Gap(2), 2, 1));
    assert_eq!(check(3, 500, &data), (SequenceCheck::Restart, 0, 1));
    assert_eq!(check(4, 600, &data), (SequenceCheck::InOrder, 0, 1));
}

fn v5(count: u16, sequence: u32, records: usize, stray: usize) -> Vec<u8> {
    let mut packet = words(&[5, count]);
    packet.extend([0, 0, 3, 232, 0, 0, 0, 60, 0, 0, 0, 9]);
    packet.extend(sequence.to_be_bytes());
    packet.extend([0, 1, 0, 0]);
    packet.extend(vec![3; records * 48 + stray]);
    packet
}

/// v5 records go by the built-in template; what the datagram holds is decoded, whatever the count says.
#[test]
fn v5_counts() {
    for (count, there, stray, decoded, problem) in [
        (2, 2, 0, 2, None),
        (30, 2, 0, 2, Some(ProblemKind::RecordCount)),
        (3, 2, 47, 2, Some(ProblemKind::RecordCount)),
        (1, 2, 0, 1, Some(ProblemKind::TrailingBytes)),
        (0, 0, 0, 0, None),
    ] {
        let packet = v5(count, 0, there, stray);
        let admitted = admit(&mut session(Transport::Udp), &packet);
        assert_eq!(admitted.counters.flow_records, decoded, "{count} of {there}");
        assert_eq!(admitted.problems.first().map(|problem| problem.kind), problem, "{count} of {there}");
        let end = 24 + 48 * decoded as usize;
        assert_eq!(admitted.messages[0].length, end);
        assert_eq!(admitted.counters.trailing_bytes as usize, packet.len() - end);
    }
}

/// v5 counts flows.
#[test]
fn v5_sequence() {
    let mut session = session(Transport::Udp);
    let _ = admit(&mut session, &v5(2, 10, 2, 0));
    assert_eq!(admit(&mut session, &v5(1, 12, 1, 0)).counters.lost_flows, 0);
    assert_eq!(admit(&mut session, &v5(3, 20, 1, 0)).counters.lost_flows, 7);
    let after_wrong_count = admit(&mut session, &v5(1, 90, 1, 0));
    assert_eq!(after_wrong_count.messages[0].sequence_check, SequenceCheck::Unchecked);
}
