//! Templates shared by the sessions of an address, and facts shared by all of them.

use super::{admit, collector, data, hello, only_data, udp};
use crate::collector::TemplateScope;
use crate::sequence::SequenceCheck;
use crate::test_wire::{ipfix_from, options_template, set, template};

/// Templates from one port, data from another; each port has sequence numbers of its own.
#[test]
fn address() {
    let mut collector = collector(|limits| limits.template_scope = TemplateScope::Address);
    let _ = admit(&mut collector, 0, udp(1, 1), &hello());
    assert_eq!(admit(&mut collector, 0, udp(1, 2), &only_data()).1.sets.len(), 1);
    assert_eq!(admit(&mut collector, 0, udp(2, 2), &only_data()).1.sets.len(), 0, "another address");
    assert_eq!(admit(&mut collector, 0, udp(1, 2), &ipfix_from(8, 0, &[data()])).1.sets.len(), 0, "another domain");
    let mut check = |port, sequence| {
        let datagram = ipfix_from(9, sequence, &[]);
        admit(&mut collector, 0, udp(1, port), &datagram).1.messages[0].sequence_check
    };
    assert_eq!((check(1, 500), check(2, 9)), (SequenceCheck::First, SequenceCheck::First));
    assert_eq!((check(1, 501), check(2, 9)), (SequenceCheck::Gap(1), SequenceCheck::InOrder));
    assert_eq!(collector.sessions(), 2);
}

/// What one port of an exporter tells in options data is known for data from another.
#[test]
fn knowledge_of_the_address() {
    let mut collector = collector(|_| {});
    let options = [options_template(257, 1, &[(10, 1), (82, 4)]), set(257, b"\x05eth5")];
    let _ = admit(&mut collector, 0, udp(1, 1), &ipfix_from(3, 0, &options));
    let name = |collector: &mut super::Collector, host, port| {
        let flows = ipfix_from(7, 0, &[template(256, &[(4, 1)]), data()]);
        let (_, out) = admit(collector, 0, udp(host, port), &flows);
        out.sets[0].knowledge.as_ref().and_then(|known| known.interface_name(5).map(str::to_owned))
    };
    assert_eq!(name(&mut collector, 1, 2).as_deref(), Some("eth5"));
    assert_eq!(name(&mut collector, 2, 2), None);
    assert_eq!(collector.gauges().facts, 1);
    assert!(collector.close(udp(1, 1)));
    assert_eq!(name(&mut collector, 1, 2), None, "it went with its session");
    assert_eq!(collector.gauges().facts, 0);
    assert!(collector.close(udp(1, 2)) && collector.close(udp(2, 2)));
    assert!(collector.addresses.is_empty(), "nothing is left of addresses that are gone");
}
