use std::net::SocketAddr;
use std::time::Duration;

use super::{Admission, Collector, CollectorLimits, Refusal, SessionKey};
use crate::admitted::Admitted;
use crate::session::Limits;
use crate::test_wire::{ipfix_from, set, template};

mod budget;
mod flood;
mod pending;
mod scope;

/// An exporter by the last part of its address.
fn udp(host: u16, port: u16) -> SessionKey {
    let [high, low] = host.to_be_bytes();
    SessionKey::Udp { peer: SocketAddr::from(([198, 18, high, low], port)), listener: 0 }
}

fn stream(connection: u64) -> SessionKey {
    SessionKey::Stream { connection, peer: Some(SocketAddr::from(([192, 0, 2, 9], 1_000))) }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn collector(change: impl FnOnce(&mut CollectorLimits)) -> Collector {
    let mut limits = CollectorLimits::default();
    change(&mut limits);
    Collector::new(limits)
}

/// Admits one datagram at a time in seconds.
fn admit(collector: &mut Collector, at: u64, key: SessionKey, datagram: &[u8]) -> (Admission, Admitted) {
    collector.set_clock(seconds(at));
    let mut out = Admitted::default();
    let admission = collector.admit(key, at as i64, datagram, &mut out);
    (admission, out)
}

/// Template 256 of one field and a record for it.
fn hello() -> Vec<u8> {
    ipfix_from(7, 0, &[template(256, &[(4, 1)]), data()])
}

fn data() -> Vec<u8> {
    set(256, &[6])
}

fn only_data() -> Vec<u8> {
    ipfix_from(7, 0, &[data()])
}

/// Makes an exporter established within two seconds from `at` on; needs `establish_after` of at most that.
fn establish(collector: &mut Collector, at: u64, key: SessionKey) {
    for second in at..=at + 2 {
        let (admission, out) = admit(collector, second, key, &hello());
        assert_eq!((admission, out.sets.len()), (Admission::Accepted, 1));
    }
}

/// Every pair of address and port has its own templates, and so has every listener and every connection.
#[test]
fn sessions_are_apart() {
    let mut collector = collector(|_| {});
    let other_listener = SessionKey::Udp { peer: SocketAddr::from(([198, 18, 0, 1], 5)), listener: 1 };
    assert_eq!(admit(&mut collector, 0, udp(1, 5), &hello()).1.sets.len(), 1);
    for key in [udp(1, 6), udp(2, 5), other_listener, stream(1), stream(2)] {
        let (admission, out) = admit(&mut collector, 0, key, &only_data());
        assert_eq!((admission, out.sets.len(), out.unknown_sets.len()), (Admission::Accepted, 0, 1), "{key:?}");
    }
    let mapped = SessionKey::Udp { peer: "[::ffff:198.18.0.1]:5".parse().expect("an address"), listener: 0 };
    assert_eq!(admit(&mut collector, 0, mapped, &only_data()).1.sets.len(), 1, "the same IPv4 address");
    let gauges = collector.gauges();
    assert_eq!((gauges.sessions, gauges.templates, gauges.template_fields), (6, 1, 9));
    assert_eq!(collector.counters().sessions_opened, 6);
}

/// A session is established by records over some time, not by templates and not by one burst.
#[test]
fn establishing() {
    let mut collector = collector(|limits| limits.establish_after = seconds(60));
    let established = |collector: &Collector| collector.gauges().established_sessions;
    for at in [0, 1, 59] {
        let _ = admit(&mut collector, at, udp(1, 1), &hello());
        let _ = admit(&mut collector, at, udp(2, 1), &ipfix_from(7, 0, &[template(256, &[(4, 1)])]));
        let _ = admit(&mut collector, at, udp(3, 1), &only_data());
    }
    assert_eq!(established(&collector), 0);
    for host in 1..=3 {
        let datagram = if host == 1 { only_data() } else { ipfix_from(7, 0, &[]) };
        let _ = admit(&mut collector, 61, udp(host, 1), &datagram);
    }
    assert_eq!((established(&collector), collector.counters().sessions_established), (1, 1));
    assert_eq!(collector.gauges().sessions, 3);
}

/// A newcomer takes the place of one that was silent, and is refused while there is none.
#[test]
fn places_of_newcomers() {
    let mut collector = collector(|limits| {
        limits.max_sessions = 4;
        limits.newcomer_hold = seconds(10);
    });
    for host in 1..=4 {
        let _ = admit(&mut collector, 0, udp(host, 1), &hello());
    }
    let _ = admit(&mut collector, 9, udp(2, 1), &only_data());
    let (admission, out) = admit(&mut collector, 10, udp(5, 1), &hello());
    assert_eq!(admission, Admission::Refused(Refusal::Sessions));
    assert_eq!((out.sets.len(), out.counters.datagrams), (0, 1));
    assert_eq!(out.counters.discarded_bytes, out.counters.bytes);
    let (admission, _) = admit(&mut collector, 11, udp(5, 1), &hello());
    assert_eq!(admission, Admission::Accepted);
    assert_eq!(admit(&mut collector, 11, udp(2, 1), &only_data()).1.sets.len(), 1, "was heard");
    let counters = collector.counters();
    assert_eq!((counters.newcomers_evicted, counters.refused_sessions, collector.sessions()), (1, 1, 4));
}

/// Established sessions take three quarters of the places at most, and give them away after a long silence.
#[test]
fn places_of_established_sessions() {
    let mut collector = collector(|limits| {
        limits.max_sessions = 4;
        limits.establish_after = seconds(1);
        limits.newcomer_hold = seconds(10);
        limits.idle = seconds(100);
    });
    for host in 1..=4 {
        establish(&mut collector, u64::from(host), udp(host, 1));
    }
    assert_eq!(collector.gauges().established_sessions, 3);
    for at in [20, 101] {
        let _ = admit(&mut collector, at, udp(4, 1), &only_data());
    }
    assert_eq!(collector.gauges().established_sessions, 3, "nobody was idle for long enough");
    let _ = admit(&mut collector, 104, udp(4, 1), &only_data());
    assert_eq!(admit(&mut collector, 104, udp(1, 1), &only_data()).1.unknown_sets.len(), 1, "gave its place away");
    assert_eq!(collector.counters().idle_evicted, 1);
}

/// One address has a limited number of sessions; those that are silent give way to new ones.
#[test]
fn sessions_of_one_address() {
    let mut collector = collector(|limits| {
        limits.max_sessions_per_address = 3;
        limits.newcomer_hold = seconds(10);
    });
    for port in 1..=3 {
        let _ = admit(&mut collector, u64::from(port), udp(1, port), &hello());
    }
    assert_eq!(admit(&mut collector, 4, udp(1, 4), &hello()).0, Admission::Refused(Refusal::SessionsOfAddress));
    assert_eq!(admit(&mut collector, 4, udp(2, 4), &hello()).0, Admission::Accepted);
    assert_eq!(admit(&mut collector, 12, udp(1, 4), &hello()).0, Admission::Accepted);
    assert_eq!(admit(&mut collector, 12, udp(1, 5), &hello()).0, Admission::Refused(Refusal::SessionsOfAddress));
    assert_eq!(admit(&mut collector, 12, udp(1, 2), &only_data()).1.sets.len(), 1);
    assert_eq!((collector.counters().newcomers_evicted, collector.sessions()), (1, 4));
}

/// Streams are not evicted, count withdrawals, never expire templates, and end when told so.
#[test]
fn streams() {
    let mut collector = collector(|limits| {
        limits.max_sessions = 4;
        limits.session = Limits { template_lifetime: Some(seconds(5)), ..Limits::default() };
    });
    for connection in 1..=3 {
        assert_eq!(admit(&mut collector, 0, stream(connection), &hello()).0, Admission::Accepted);
    }
    assert_eq!(admit(&mut collector, 100_000, stream(4), &hello()).0, Admission::Refused(Refusal::Sessions));
    assert_eq!(admit(&mut collector, 100_000, stream(1), &only_data()).1.sets.len(), 1);
    let withdrawal = ipfix_from(7, 0, &[set(2, &[1, 0, 0, 0])]);
    assert_eq!(admit(&mut collector, 100_000, stream(1), &withdrawal).1.counters.templates_withdrawn, 1);
    assert!(collector.close(stream(2)) && !collector.close(stream(2)));
    assert_eq!(admit(&mut collector, 100_001, stream(2), &only_data()).1.unknown_sets.len(), 1);
    assert_eq!((collector.counters().sessions_closed, collector.sessions()), (1, 3));
}

/// Templates over UDP expire when they are not sent again.
#[test]
fn lifetime() {
    let mut collector = collector(|_| {});
    let _ = admit(&mut collector, 0, udp(1, 1), &hello());
    assert_eq!(admit(&mut collector, 3_600, udp(1, 1), &only_data()).1.sets.len(), 1);
    let (_, out) = admit(&mut collector, 3_601, udp(1, 1), &only_data());
    assert_eq!((out.unknown_sets.len(), out.counters.templates_expired), (1, 1));
}

/// A sender of nonsense only is skipped for a while; one good datagram makes everything as before.
#[test]
fn shut_out() {
    let mut collector = collector(|limits| {
        let shut_out = limits.shut_out.as_mut().expect("the default");
        (shut_out.datagrams, shut_out.period, shut_out.pause) = (3, seconds(5), seconds(60));
    });
    let junk = [0, 1, 2];
    for at in [0, 1, 2, 3, 4] {
        assert_eq!(admit(&mut collector, at, udp(1, 1), &junk).0, Admission::Accepted);
    }
    let _ = admit(&mut collector, 4, udp(1, 1), &hello());
    for at in [5, 6, 9, 10] {
        assert_eq!(admit(&mut collector, at, udp(1, 1), &junk).0, Admission::Accepted, "a new run at {at}");
    }
    assert_eq!(admit(&mut collector, 11, udp(1, 1), &hello()).0, Admission::Refused(Refusal::ShutOut));
    assert_eq!(admit(&mut collector, 69, udp(1, 1), &junk).0, Admission::Refused(Refusal::ShutOut));
    assert_eq!(admit(&mut collector, 70, udp(1, 1), &junk).0, Admission::Accepted, "tried again");
    assert_eq!(admit(&mut collector, 71, udp(1, 1), &junk).0, Admission::Refused(Refusal::ShutOut));
    let (admission, out) = admit(&mut collector, 130, udp(1, 1), &hello());
    assert_eq!((admission, out.sets.len()), (Admission::Accepted, 1));
    assert_eq!(admit(&mut collector, 131, udp(1, 1), &junk).0, Admission::Accepted, "as before");
    assert_eq!((collector.counters().shut_outs, collector.counters().refused_shut_out), (2, 3));
}

/// What the caller leaves out of an admission is counted where that is, also if its session is gone by then.
#[test]
fn left_out() {
    let mut collector = collector(|_| {});
    for (peer, message) in [(1, hello()), (2, hello()), (1, ipfix_from(8, 0, &[data()]))] {
        let _ = admit(&mut collector, 0, udp(peer, 1), &message);
        collector.count_left_out(udp(peer, 1), u64::from(peer));
    }
    let _ = admit(&mut collector, 0, stream(1), &hello());
    collector.count_left_out(stream(1), 5);
    let left_out = |collector: &Collector| {
        let totals = collector.exporters(100);
        let counts = |one: &super::ExporterStatistics| (one.address.is_some(), one.domain, one.counters.left_out);
        let mut named: Vec<_> = totals.busiest.iter().map(counts).collect();
        named.sort_unstable();
        (named, totals.others.left_out)
    };
    assert_eq!(left_out(&collector), (vec![(true, 7, 1), (true, 7, 2), (true, 7, 5), (true, 8, 1)], 0));
    assert!(collector.close(stream(1)));
    collector.count_left_out(stream(1), 3);
    assert_eq!(left_out(&collector), (vec![(true, 7, 1), (true, 7, 2), (true, 8, 1)], 8));
}

/// Counts by address and domain; what is beyond the limit and what is gone is with the others.
#[test]
fn statistics() {
    let mut collector = collector(|_| {});
    for _ in 0..3 {
        let _ = admit(&mut collector, 0, udp(1, 1), &hello());
    }
    let _ = admit(&mut collector, 0, udp(1, 2), &hello());
    let _ = admit(&mut collector, 0, udp(1, 1), &ipfix_from(8, 0, &[data()]));
    let _ = admit(&mut collector, 0, udp(1, 1), &[9]);
    let _ = admit(&mut collector, 0, stream(1), &hello());
    let totals = collector.exporters(1);
    let busiest = totals.busiest[0];
    assert_eq!((busiest.address, busiest.domain), (Some([198, 18, 0, 1].into()), 7));
    assert_eq!((busiest.counters.datagrams, busiest.counters.records, busiest.counters.problems), (4, 4, 0));
    assert_eq!((totals.others.datagrams, totals.others.unknown_template_sets), (3, 1));
    assert_eq!((totals.others.records, totals.others.problems), (1, 2));
    let all = collector.exporters(100);
    assert_eq!(all.busiest.len(), 3);
    assert_eq!(
        (all.others.datagrams, all.busiest[1].counters.problems),
        (0, 2),
        "junk belongs to the domain before it"
    );
    assert!(collector.close(stream(1)));
    assert_eq!(collector.exporters(100).others.datagrams, 1);
}
