//! A collector of all exporters at once, against sessions that are apart, and what options data of real exports tells.

mod common;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use catchment_capture::{Item, Reader};
use catchment_ipfix::{
    Admission, Admitted, Collector, CollectorLimits, Counters, DataSet, Kind, Limits, PendingLimits, SamplingFields,
    Session, SessionKey, Template, TemplateScope, Transport,
};

/// The datagrams of a capture with their senders; both ports, as the destination is part of the session.
fn datagrams(folder: &Path, case: &str) -> Vec<(SessionKey, Vec<u8>)> {
    let reader = Reader::open(folder.join(format!("{case}.pcap"))).expect("a capture file");
    let packets = reader.map(|item| match item.expect("a readable capture") {
        Item::Packet(packet) => packet,
        other => panic!("{case}: not a datagram: {other:?}"),
    });
    let mut listeners = Vec::new();
    packets
        .map(|packet| {
            let peer: SocketAddr = packet.source.expect("a source");
            let listener = listeners.iter().position(|known| *known == packet.destination);
            let listener = listener.unwrap_or_else(|| {
                listeners.push(packet.destination);
                listeners.len() - 1
            });
            (SessionKey::Udp { peer, listener: listener as u32 }, packet.payload)
        })
        .collect()
}

fn folders() -> Vec<std::path::PathBuf> {
    [Some(common::own_folder()), common::further_folder()].into_iter().flatten().collect()
}

/// What matters of data sets.
fn shapes(sets: &[DataSet]) -> Vec<(Arc<Template>, Range<usize>, usize)> {
    sets.iter().map(|set| (Arc::clone(&set.template), set.range.clone(), set.records)).collect()
}

/// A collector with the bounds of sessions does for each session what the session alone does.
#[test]
fn like_sessions() {
    for folder in folders() {
        for case in common::cases(&folder) {
            let mut collector = Collector::new(CollectorLimits::default());
            let mut sessions: HashMap<SessionKey, Session> = HashMap::new();
            for (key, datagram) in datagrams(&folder, &case) {
                let (mut one, mut other) = (Admitted::default(), Admitted::default());
                assert_eq!(collector.admit(key, 0, &datagram, &mut one), Admission::Accepted);
                let session = || Session::new(Transport::Udp, Limits::default());
                sessions.entry(key).or_insert_with(session).admit(&datagram, &mut other);
                assert_eq!(one.counters, other.counters, "{case}");
                assert_eq!((one.messages, one.problems), (other.messages, other.problems), "{case}");
                assert_eq!(shapes(&one.sets), shapes(&other.sets), "{case}");
            }
        }
    }
}

/// With waiting data and with all ports of an address together no capture gives fewer records, and some give more.
#[test]
fn waiting_gives_more() {
    let Some(folder) = common::further_folder() else { return };
    let records = |case: &str, limits: CollectorLimits| {
        let mut collector = Collector::new(limits);
        let mut total = Counters::default();
        for (key, datagram) in datagrams(&folder, case) {
            let mut out = Admitted::default();
            let _ = collector.admit(key, 0, &datagram, &mut out);
            total.flow_records += out.counters.flow_records;
            total.options_records += out.counters.options_records;
        }
        total.flow_records + total.options_records
    };
    let mut more = Vec::new();
    for case in common::cases(&folder) {
        let plain = records(&case, CollectorLimits::default());
        let pending = Some(PendingLimits::default());
        let waiting = records(&case, CollectorLimits { pending: pending.clone(), ..CollectorLimits::default() });
        let together =
            CollectorLimits { pending, template_scope: TemplateScope::Address, ..CollectorLimits::default() };
        assert!(waiting >= plain, "{case}: {waiting} of {plain}");
        let _ = records(&case, together);
        if waiting > plain {
            more.push(case);
        }
    }
    assert!(more.iter().any(|case| case == "ipfix-netscaler-data-before-template"), "{more:?}");
}

/// The sampling rates of the flows of a capture, in order, repeats left out.
fn rates(folder: &Path, case: &str) -> Vec<Option<f64>> {
    let mut collector = Collector::new(CollectorLimits::default());
    let mut rates: Vec<Option<f64>> = Vec::new();
    for (key, datagram) in datagrams(folder, case) {
        let mut out = Admitted::default();
        let _ = collector.admit(key, 0, &datagram, &mut out);
        for set in out.sets.iter().filter(|set| set.kind() == Kind::Flow) {
            let message = &out.messages[set.message];
            let plan = SamplingFields::new(&set.template);
            let knowledge = set.knowledge.as_deref();
            let of_set: Vec<Option<f64>> = set
                .records(&datagram)
                .map(|record| plan.rate(&record, message, knowledge, &set.context(message)))
                .collect();
            if plan.is_constant(knowledge) {
                assert!(of_set.windows(2).all(|pair| pair[0] == pair[1]), "{case}");
            }
            rates.extend(of_set);
        }
    }
    rates.dedup();
    rates
}

/// Sampling rates that our own runs were started with: one in ten by pmacctd, all by softflowd.
#[test]
fn rates_of_own_captures() {
    let own = common::own_folder();
    assert_eq!(rates(&own, "local-pmacctd-v9"), [Some(10.0)]);
    assert_eq!(rates(&own, "local-softflowd-ipfix-nano"), [Some(10.0)]);
    assert_eq!(rates(&own, "local-softflowd-v9"), [Some(1.0)]);
    assert_eq!(rates(&own, "local-softflowd-ipfix"), [Some(1.0)]);
}

/// Sampling rates of real routers: by sampler id, in the record, by size and population, by template.
#[test]
fn rates_of_further_captures() {
    let Some(folder) = common::further_folder() else { return };
    assert_eq!(rates(&folder, "ak-template-then-data"), [Some(30_000.0)]);
    assert_eq!(rates(&folder, "ak-samplingrate-in-data").iter().flatten().count(), 1);
    assert_eq!(rates(&folder, "ipfix-cisco-ipv6-sampling-option"), [Some(256.0)]);
    assert_eq!(rates(&folder, "v5-juniper-mx80").len(), 1);
}

/// Flow times of softflowd's IPFIX need the start of the exporter that its options data tells, or the record.
#[test]
fn system_init_of_options_data() {
    let own = common::own_folder();
    let mut collector = Collector::new(CollectorLimits::default());
    let mut seen = 0;
    for (key, datagram) in datagrams(&own, "local-softflowd-ipfix") {
        let mut out = Admitted::default();
        let _ = collector.admit(key, 0, &datagram, &mut out);
        for set in &out.sets {
            let message = &out.messages[set.message];
            let init = set.context(message).system_init_unix_nano;
            if let Some(init) = init.filter(|_| set.kind() == Kind::Flow) {
                assert!((message.export_time_unix_nano - init).abs() < 3_600_000_000_000, "{init}");
                seen += set.records;
            }
        }
    }
    assert!(seen > 0);
}
