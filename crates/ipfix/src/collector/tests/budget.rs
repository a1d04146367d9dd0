//! Bounds on the templates and facts of all sessions together.

use super::{admit, collector, establish, seconds, udp};
use crate::collector::{Collector, CollectorLimits};
use crate::problem::ProblemKind;
use crate::test_wire::{ipfix_from, options_template, set, template};

/// A template of so many fields, which weighs eight more.
fn large(id: u16, fields: usize) -> Vec<u8> {
    ipfix_from(7, 0, &[template(id, &vec![(4, 1); fields])])
}

fn tight() -> Collector {
    collector(|limits: &mut CollectorLimits| {
        limits.max_total_fields = 400;
        limits.max_total_facts = 8;
        limits.establish_after = seconds(1);
    })
}

/// A newcomer may use what is free, gives up its own templates for a new one, and never those of others.
#[test]
fn newcomers() {
    let mut collector = tight();
    for id in [300, 301, 302] {
        assert_eq!(admit(&mut collector, 0, udp(1, 1), &large(id, 92)).1.counters.templates_new, 1);
    }
    let (_, out) = admit(&mut collector, 0, udp(1, 1), &large(303, 150));
    assert_eq!((out.counters.templates_new, out.counters.templates_evicted), (1, 1));
    assert_eq!(collector.gauges().template_fields, 358);
    let (_, out) = admit(&mut collector, 0, udp(2, 1), &large(300, 92));
    assert_eq!((out.counters.templates_refused, out.counters.problem(ProblemKind::TemplateBudget)), (1, 1));
    let (_, out) = admit(&mut collector, 0, udp(2, 1), &large(300, 30));
    assert_eq!(out.counters.templates_new, 1);
    assert_eq!(collector.gauges().template_fields, 396);
}

/// A refused definition makes its id unknown: records never go by an older one.
#[test]
fn refused_definitions() {
    let mut collector = tight();
    let _ = admit(&mut collector, 0, udp(1, 1), &large(300, 10));
    let (_, out) = admit(&mut collector, 0, udp(1, 1), &large(300, 600));
    assert_eq!((out.counters.templates_refused, out.counters.templates_invalidated), (1, 1));
    let (_, out) = admit(&mut collector, 0, udp(1, 1), &ipfix_from(7, 0, &[set(300, &[1; 10])]));
    assert_eq!((out.unknown_sets.len(), collector.gauges().template_fields), (1, 0));
}

/// Established sessions have three quarters, and newcomers go when they need it.
#[test]
fn established_sessions() {
    let mut collector = tight();
    establish(&mut collector, 0, udp(1, 1));
    for host in 2..=4 {
        assert_eq!(admit(&mut collector, 3, udp(host, 1), &large(300, 110)).1.counters.templates_new, 1);
    }
    // 9 are used by the established session, 354 by newcomers.
    let (_, out) = admit(&mut collector, 3, udp(1, 1), &large(300, 150));
    assert_eq!((out.counters.templates_new, out.counters.templates_evicted), (1, 0));
    assert_eq!((collector.counters().newcomers_evicted_for_room, collector.gauges().template_fields), (2, 285));
    let (_, out) = admit(&mut collector, 3, udp(1, 1), &large(301, 200));
    assert_eq!((out.counters.templates_new, out.counters.templates_evicted), (1, 2), "its own go beyond that");
    assert_eq!(collector.gauges().template_fields, 118 + 208);
}

/// Facts are shared in the same way.
#[test]
fn facts() {
    let mut collector = tight();
    let names = |from: u8, count: u8| -> Vec<u8> {
        let records: Vec<u8> = (from..from + count).flat_map(|index| [index, b'e', index]).collect();
        ipfix_from(7, 0, &[options_template(400, 1, &[(10, 1), (82, 2)]), set(400, &records)])
    };
    assert_eq!(admit(&mut collector, 0, udp(1, 1), &names(60, 9)).1.counters.facts_refused, 1);
    assert_eq!(admit(&mut collector, 0, udp(2, 1), &names(60, 1)).1.counters.facts_refused, 1);
    establish(&mut collector, 0, udp(3, 1));
    assert_eq!(admit(&mut collector, 3, udp(3, 1), &names(60, 9)).1.counters.facts_refused, 3);
    assert_eq!(collector.gauges().facts, 6);
    assert_eq!(collector.counters().newcomers_evicted_for_room, 1);
}

/// Streams are established from the start: their templates take room from newcomers, and no bound is passed.
#[test]
fn streams() {
    let mut collector = tight();
    assert_eq!(admit(&mut collector, 0, udp(1, 1), &large(300, 350)).1.counters.templates_new, 1);
    for connection in 1..=3 {
        let (_, out) = admit(&mut collector, 0, super::stream(connection), &large(300, 92));
        assert_eq!(out.counters.templates_new, 1);
        assert!(collector.gauges().template_fields <= 400);
    }
    assert_eq!(collector.counters().newcomers_evicted_for_room, 1);
    assert_eq!(collector.gauges().template_fields, 300);
    assert_eq!(collector.gauges().established_sessions, 3);
}
