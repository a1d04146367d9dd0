//! Targets for the sessions of many exporters.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use catchment_ipfix::{
    Admission, Admitted, Collector, CollectorLimits, Limits, PendingLimits, SessionKey, ShutOutLimits, TemplateScope,
    TimeEncoding,
};

use crate::ipfix::{check_admitted, message, tight_limits};

/// Places of the tight limits.
const SESSIONS: usize = 6;
const FIELDS: usize = 120;
const FACTS: usize = 12;
const PENDING_BYTES: usize = 3_000;

/// Admits datagrams of several exporters to a collector with tight limits.
///
/// The bits of the first byte choose whether the ports of an address share templates, whether data waits for its
/// template, and whether senders of nonsense are shut out. Then come datagrams, each behind four bytes: who sends it
/// (three bits of address, two of port, one of listener, one for a stream, one to close the session first), seconds
/// since the one before, and its length.
///
/// Asserted after each: what holds for one session, that no bound is passed, that running sums are right, and that of
/// the sets that wait none is lost. At the end a snapshot can be taken, restored and taken again.
pub fn ipfix_collector(input: &[u8]) {
    let Some((&choice, mut rest)) = input.split_first() else {
        return;
    };
    let limits = limits(choice);
    let session_limits = limits.session.clone();
    let mut collector = Collector::new(limits);
    let (mut clock, mut admitted) = (0, Admitted::default());
    let (mut datagrams, mut held, mut released) = (0, 0, 0);
    while let Some((&[who, seconds, high, low], following)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([high, low])).min(following.len());
        let (datagram, following) = following.split_at(length);
        rest = following;
        clock += u64::from(seconds);
        collector.set_clock(Duration::from_secs(clock));
        let key = key(who);
        if who & 128 != 0 {
            let _ = collector.close(key);
        }
        admitted.clear();
        let admission = collector.admit(key, clock as i64, datagram, &mut admitted);
        datagrams += 1;
        if let Admission::Refused(_) = admission {
            assert!(admitted.sets.is_empty() && admitted.messages.is_empty());
            assert_eq!(admitted.counters.discarded_bytes, datagram.len() as u64);
        } else {
            check_admitted(datagram, &admitted, &session_limits, TimeEncoding::Auto);
        }
        held += admitted.unknown_sets.iter().filter(|set| set.held).count() as u64;
        released += admitted.released.len() as u64;
        if seconds == 255 {
            collector.expire(Duration::from_secs(clock));
        }
        check_collector(&collector, datagrams, held, released);
    }
    check_snapshot(&collector);
}

fn limits(choice: u8) -> CollectorLimits {
    let pending =
        PendingLimits { bytes_per_session: 1_000, bytes_total: PENDING_BYTES, max_age: Duration::from_secs(20) };
    let shut_out = ShutOutLimits { datagrams: 3, period: Duration::from_secs(1), pause: Duration::from_secs(4) };
    CollectorLimits {
        session: Limits { template_lifetime: Some(Duration::from_secs(500)), ..tight_limits() },
        newcomer_domains: 1,
        max_sessions: SESSIONS,
        max_sessions_per_address: 3,
        max_total_fields: FIELDS,
        max_total_facts: FACTS,
        template_scope: if choice & 1 == 0 { TemplateScope::Session } else { TemplateScope::Address },
        establish_after: Duration::from_secs(3),
        newcomer_hold: Duration::from_secs(5),
        idle: Duration::from_secs(100),
        pending: (choice & 2 != 0).then_some(pending),
        shut_out: (choice & 4 != 0).then_some(shut_out),
    }
}

/// The sender that a byte stands for.
pub(crate) fn key(who: u8) -> SessionKey {
    let address: IpAddr = [192, 0, 2, who & 7].into();
    let peer = SocketAddr::new(address, 1_000 + u16::from(who >> 3 & 3));
    if who & 64 == 0 {
        SessionKey::Udp { peer, listener: u32::from(who >> 5 & 1) }
    } else {
        SessionKey::Stream { connection: u64::from(who & 31), peer: (who & 7 != 0).then_some(peer) }
    }
}

fn check_collector(collector: &Collector, datagrams: u64, held: u64, released: u64) {
    let (counters, gauges) = (collector.counters(), collector.gauges());
    assert!(gauges.sessions <= SESSIONS && gauges.established_sessions <= gauges.sessions);
    assert!(gauges.template_fields <= FIELDS && gauges.templates * 8 <= gauges.template_fields);
    assert!(gauges.facts <= FACTS && gauges.pending_bytes <= PENDING_BYTES);
    let dropped = counters.pending_dropped_age + counters.pending_dropped_limit + counters.pending_dropped_closed;
    assert_eq!(counters.pending_held_sets, held);
    // A released set without a whole record is given out as nothing.
    assert!(counters.pending_released_sets >= released);
    assert_eq!(held, counters.pending_released_sets + dropped + gauges.pending_sets as u64);
    let refused = counters.refused_sessions + counters.refused_sessions_of_address + counters.refused_shut_out;
    let (totals, few) = (collector.exporters(usize::MAX), collector.exporters(1));
    let sum = |totals: &catchment_ipfix::ExporterTotals| {
        totals.others.datagrams + totals.busiest.iter().map(|one| one.counters.datagrams).sum::<u64>()
    };
    assert_eq!((sum(&totals), sum(&few)), (datagrams - refused, datagrams - refused));
}

/// A snapshot is restored whole where there is room for it, and is the same when taken again.
fn check_snapshot(collector: &Collector) {
    let snapshot = collector.templates_snapshot();
    let mut other = Collector::new(CollectorLimits::default());
    let restored = other.restore(&snapshot).expect("what was written");
    assert_eq!((restored.left_out, restored.templates), (0, other.gauges().provisional_templates));
    assert_eq!(other.templates_snapshot(), snapshot);
}

/// Restores a snapshot of templates: `input` as it is, and as the body of one with a good checksum.
///
/// Asserted: damage is told with its place and takes nothing; what was restored is the same after another snapshot,
/// obeys tight limits too, and can be used.
pub fn ipfix_template_cache(input: &[u8]) {
    let mut sealed = b"CTIX\x01".to_vec();
    sealed.extend(crc32c::crc32c(input).to_be_bytes());
    sealed.extend(input);
    for bytes in [input, &sealed] {
        let mut collector = Collector::new(CollectorLimits::default());
        match collector.restore(bytes) {
            Ok(restored) => {
                assert_eq!(collector.sessions(), 0);
                if restored.left_out == 0 {
                    check_snapshot(&collector);
                }
            }
            Err(error) => {
                assert!(error.offset <= bytes.len() && !error.to_string().is_empty());
                assert_eq!(collector.gauges(), catchment_ipfix::Gauges::default());
                continue;
            }
        }
        let mut tight = Collector::new(limits(0));
        let restored = tight.restore(bytes).expect("the same bytes");
        let gauges = tight.gauges();
        assert!(restored.addresses <= SESSIONS && gauges.provisional_templates * 9 <= FIELDS);
        let mut admitted = Admitted::default();
        for (number, collector) in [&mut collector, &mut tight].into_iter().enumerate() {
            for id in [256, 257] {
                admitted.clear();
                let datagram = message(&[(id, &[1, 2, 3, 4, 5, 6, 7, 8])]);
                let _ = collector.admit(key(1), 0, &datagram, &mut admitted);
                let limits = if number == 0 { Limits::default() } else { tight_limits() };
                check_admitted(&datagram, &admitted, &limits, TimeEncoding::Auto);
            }
        }
    }
}
