//! Data that waits for its template.

use proptest::prelude::*;

use super::{admit, collector, data, seconds, stream, udp};
use crate::collector::{Collector, CollectorLimits, PendingLimits, SessionKey};
use crate::test_wire::{ipfix_from, set, template};

fn waiting(change: impl FnOnce(&mut CollectorLimits, &mut PendingLimits)) -> Collector {
    let mut pending = PendingLimits::default();
    collector(|limits| {
        change(limits, &mut pending);
        limits.pending = Some(pending);
    })
}

fn values(collector_out: &crate::Admitted) -> Vec<(i64, Vec<u8>)> {
    let released = collector_out.released.iter();
    released
        .map(|one| (one.received_unix_nano, one.records().flat_map(|record| record.bytes().to_vec()).collect()))
        .collect()
}

/// What came before its template is given out when that comes, in the order received and under its own times.
#[test]
fn in_order() {
    let mut collector = waiting(|_, _| {});
    for (at, value) in [(1, 10), (2, 20), (3, 30)] {
        let (_, out) = admit(&mut collector, at, udp(1, 1), &ipfix_from(7, 0, &[set(256, &[value, value])]));
        assert!(out.unknown_sets[0].held && out.released.is_empty());
    }
    let _ = admit(&mut collector, 3, udp(1, 1), &ipfix_from(7, 0, &[set(257, &[9])]));
    let (_, out) = admit(&mut collector, 4, udp(1, 1), &ipfix_from(8, 0, &[template(256, &[(4, 1)])]));
    assert!(out.released.is_empty(), "another domain");
    let sets = [template(256, &[(4, 1)]), set(256, &[40])];
    let (_, out) = admit(&mut collector, 5, udp(1, 1), &ipfix_from(7, 0, &sets));
    assert_eq!(values(&out), [(1, vec![10, 10]), (2, vec![20, 20]), (3, vec![30, 30])]);
    assert_eq!((out.sets.len(), out.counters.flow_records, out.counters.data_sets), (1, 7, 4));
    assert_eq!(out.released[0].message.export_time_unix_nano, 60_000_000_000);
    let counters = collector.counters();
    assert_eq!((counters.pending_held_sets, counters.pending_released_sets), (4, 3));
    assert_eq!((counters.pending_released_records, collector.gauges().pending_sets), (6, 1));
}

/// A template in the same datagram, after its data, is soon enough.
#[test]
fn in_one_datagram() {
    let mut collector = waiting(|_, _| {});
    let (_, out) = admit(&mut collector, 1, udp(1, 1), &ipfix_from(7, 0, &[data(), template(256, &[(4, 1)])]));
    assert_eq!((values(&out), collector.gauges().pending_bytes), (vec![(1, vec![6])], 0));
}

/// Without the setting nothing is held.
#[test]
fn off() {
    let mut collector = collector(|_| {});
    let (_, out) = admit(&mut collector, 1, udp(1, 1), &ipfix_from(7, 0, &[data()]));
    assert!(!out.unknown_sets[0].held);
    let (_, out) = admit(&mut collector, 1, udp(1, 1), &ipfix_from(7, 0, &[template(256, &[(4, 1)])]));
    assert!(out.released.is_empty());
}

/// The oldest give way within a session; the room of all sessions is not theirs to take from each other.
#[test]
fn limits() {
    let mut collector = waiting(|_, pending| {
        pending.bytes_per_session = 300;
        pending.bytes_total = 4 * 500;
    });
    for value in 1..=3 {
        let _ = admit(&mut collector, 1, udp(1, 1), &ipfix_from(7, 0, &[set(256, &[value])]));
    }
    let (_, out) = admit(&mut collector, 1, udp(2, 1), &ipfix_from(7, 0, &[data(), data(), set(256, &[0; 200])]));
    let held: Vec<bool> = out.unknown_sets.iter().map(|set| set.held).collect();
    assert_eq!(held, [true, false, false], "no room, and too large");
    let (_, out) = admit(&mut collector, 1, udp(1, 1), &ipfix_from(7, 0, &[template(256, &[(4, 1)])]));
    assert_eq!(values(&out), [(1, vec![2]), (1, vec![3])]);
    let counters = collector.counters();
    assert_eq!((counters.pending_dropped_limit, counters.pending_refused_sets), (1, 2));
}

/// What waits for too long is dropped, by its own session or by the timer, and what a session leaves behind too.
#[test]
fn age_and_end() {
    let mut collector = waiting(|_, pending| pending.max_age = seconds(10));
    for key in [udp(1, 1), udp(2, 1), stream(1)] {
        let _ = admit(&mut collector, 0, key, &ipfix_from(7, 0, &[data()]));
    }
    let (_, out) = admit(&mut collector, 11, udp(1, 1), &ipfix_from(7, 0, &[template(256, &[(4, 1)])]));
    assert!(out.released.is_empty());
    assert!(collector.close(stream(1)));
    assert_eq!((collector.gauges().pending_sets, collector.counters().pending_dropped_age), (1, 1));
    collector.expire(seconds(12));
    assert_eq!((collector.gauges().pending_sets, collector.gauges().pending_bytes), (0, 0));
    let counters = collector.counters();
    assert_eq!((counters.pending_dropped_age, counters.pending_dropped_closed), (2, 1));
}

#[derive(Debug, Clone)]
enum Step {
    Data { host: u16, id: u16, length: usize },
    Template { host: u16, id: u16 },
    Close { host: u16 },
    Wait { seconds: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let (host, id) = (1_u16..5, 256_u16..259);
    prop_oneof![
        6 => (host.clone(), id.clone(), 1_usize..400).prop_map(|(host, id, length)| Step::Data { host, id, length }),
        2 => (host.clone(), id).prop_map(|(host, id)| Step::Template { host, id }),
        1 => host.prop_map(|host| Step::Close { host }),
        1 => (0_u64..9).prop_map(|seconds| Step::Wait { seconds }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every set that was held is released, dropped for one reason, or held still; and the bytes obey the limits.
    #[test]
    fn conservation(steps in proptest::collection::vec(step(), 0..120)) {
        let mut collector = waiting(|limits, pending| {
            (pending.bytes_per_session, pending.bytes_total, pending.max_age) = (2_000, 12_000, seconds(5));
            limits.max_sessions = 3;
            limits.newcomer_hold = seconds(3);
            limits.establish_after = seconds(4);
        });
        let (mut clock, mut held, mut released) = (0, 0, 0);
        for step in steps {
            let (key, datagram): (SessionKey, Vec<u8>) = match step {
                Step::Data { host, id, length } => (udp(host, 1), ipfix_from(7, 0, &[set(id, &vec![1; length])])),
                Step::Template { host, id } => (udp(host, 1), ipfix_from(7, 0, &[template(id, &[(4, 1)])])),
                Step::Close { host } => {
                    let _ = collector.close(udp(host, 1));
                    continue;
                }
                Step::Wait { seconds: more } => {
                    clock += more;
                    collector.expire(seconds(clock));
                    continue;
                }
            };
            let (_, out) = admit(&mut collector, clock, key, &datagram);
            held += out.unknown_sets.iter().filter(|set| set.held).count() as u64;
            released += out.released.len() as u64;
            let (counters, gauges) = (collector.counters(), collector.gauges());
            let dropped =
                counters.pending_dropped_age + counters.pending_dropped_limit + counters.pending_dropped_closed;
            prop_assert_eq!((counters.pending_held_sets, counters.pending_released_sets), (held, released));
            prop_assert_eq!(held, released + dropped + gauges.pending_sets as u64);
            prop_assert!(gauges.pending_bytes <= 12_000);
            prop_assert_eq!(gauges.pending_bytes == 0, gauges.pending_sets == 0);
        }
    }
}
