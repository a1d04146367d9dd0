use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::admitted::Admitted;
use crate::collector::{CollectorLimits, SessionKey};
use crate::test_wire::{ipfix, ipfix_from, options_template, set, template, template_record, v9, words};

fn udp(host: u8, port: u16) -> SessionKey {
    SessionKey::Udp { peer: ([192, 0, 2, host], port).into(), listener: 3 }
}

fn admit(collector: &mut Collector, key: SessionKey, datagram: &[u8]) -> Admitted {
    let mut out = Admitted::default();
    let _ = collector.admit(key, 0, datagram, &mut out);
    out
}

fn restarted(snapshot: &[u8]) -> (Collector, Restored) {
    let mut collector = Collector::new(CollectorLimits::default());
    let restored = collector.restore(snapshot).expect("a snapshot");
    (collector, restored)
}

/// Templates of IPFIX and NetFlow v9, options and elements of enterprises among them, and facts of all kinds.
fn busy() -> Collector {
    let mut collector = Collector::new(CollectorLimits::default());
    let options = set(3, &words(&[257, 2, 1, 0x8000 | 5, 4, 0, 9, 4, 1]));
    let _ = admit(&mut collector, udp(1, 1), &ipfix(&[template(256, &[(4, 1), (82, 65_535)]), options]));
    let v9_options = set(1, &words(&[258, 4, 4, 2, 4, 82, 4]));
    let _ = admit(&mut collector, udp(2, 1), &v9(0, 0, &[set(0, &template_record(256, &[(33_002, 2)])), v9_options]));
    let facts = [
        options_template(400, 1, &[(48, 1), (34, 1)]),
        set(400, &[7, 100]),
        options_template(401, 1, &[(10, 1), (82, 4)]),
        set(401, b"\x05eth5\x06eth6"),
        options_template(402, 1, &[(234, 1), (236, 3)]),
        set(402, b"\x05red"),
        options_template(403, 1, &[(95, 4), (96, 3)]),
        set(403, b"\x01\0\0\x08egp"),
        options_template(404, 1, &[(346, 4), (303, 2), (339, 1), (344, 1), (341, 3)]),
        set(404, b"\0\0\xff\xff\0\x09\x04\x03abc"),
        options_template(405, 1, &[(149, 1), (160, 8)]),
        set(405, &[0, 0, 0, 0, 0, 0, 0, 0, 5]),
    ];
    let _ = admit(&mut collector, udp(1, 2), &ipfix(&facts));
    collector
}

/// After a restart data decodes before any template was sent again, from another port too.
#[test]
fn restart() {
    let snapshot = busy().templates_snapshot();
    let (mut collector, restored) = restarted(&snapshot);
    assert_eq!((restored.addresses, restored.templates, restored.facts, restored.left_out), (2, 10, 7, 0));
    assert_eq!(collector.gauges().provisional_templates, 10);
    let out = admit(&mut collector, udp(1, 77), &ipfix(&[set(256, &[6, 1, b'x']), set(257, &[0, 0, 0, 1, 6])]));
    assert_eq!((out.sets.len(), out.counters.templates_provisional), (2, 2));
    let known = out.sets[0].knowledge.as_ref().expect("knowledge");
    assert_eq!((known.interface_name(6), known.vrf_name(5)), (Some("eth6"), Some("red")));
    assert_eq!(known.application_name(&[1, 0, 0, 8]), Some("egp"));
    assert_eq!(known.element(0xffff, 9).map(|element| element.name.as_str()), Some("abc"));
    assert_eq!(known.system_init_unix_nano(), Some(5_000_000));
    let key = crate::SamplingKey { selector: Some(7), ..Default::default() };
    assert_eq!(known.sampling_rate(&key), Some(100.0));
    let out = admit(&mut collector, udp(2, 77), &v9(0, 0, &[set(256, &[0, 9])]));
    assert_eq!(out.sets[0].template.fields()[0].name().as_deref(), Some("firewallEventExtended"));
    for (key, datagram) in [
        (udp(3, 1), ipfix(&[set(256, &[6, 1, b'x'])])),
        (udp(1, 1), ipfix_from(8, 0, &[set(256, &[6, 1, b'x'])])),
        (udp(1, 1), v9(0, 0, &[set(256, &[6, 1, b'x'])])),
        (SessionKey::Stream { connection: 1, peer: Some(([192, 0, 2, 1], 9).into()) }, ipfix(&[set(256, &[6, 0])])),
    ] {
        assert_eq!(admit(&mut collector, key, &datagram).unknown_sets.len(), 1, "{key:?}");
    }
}

/// A snapshot is the same after a restart, whether its templates have come into use or not.
#[test]
fn snapshot_of_a_snapshot() {
    let snapshot = busy().templates_snapshot();
    let (mut collector, _) = restarted(&snapshot);
    assert_eq!(collector.templates_snapshot(), snapshot);
    let _ = admit(&mut collector, udp(1, 9), &ipfix(&[set(256, &[6, 1, b'x'])]));
    assert_eq!(collector.templates_snapshot(), snapshot);
}

/// What the exporter sends itself takes the place of what was restored, be it good or bad.
#[test]
fn own_templates_replace() {
    let (mut collector, _) = restarted(&busy().templates_snapshot());
    let out = admit(&mut collector, udp(1, 5), &ipfix(&[template(256, &[(7, 2)]), set(256, &[0, 80])]));
    assert_eq!((out.counters.templates_new, out.sets[0].records), (1, 1));
    let malformed = set(3, &words(&[257, 1, 2, 4, 1]));
    let out = admit(&mut collector, udp(1, 5), &ipfix(&[malformed, set(257, &[0, 0, 0, 1, 6])]));
    assert_eq!(out.unknown_sets.len(), 1, "a malformed definition makes the id unknown");
}

/// Templates from before a restart live no longer than others, and are not written again after that.
#[test]
fn lifetime() {
    let (mut collector, _) = restarted(&busy().templates_snapshot());
    let data = ipfix(&[set(256, &[6, 1, b'x'])]);
    collector.set_clock(Duration::from_secs(3_600));
    assert_eq!(admit(&mut collector, udp(1, 5), &data).sets.len(), 1);
    collector.set_clock(Duration::from_secs(3_601));
    let out = admit(&mut collector, udp(1, 5), &data);
    assert_eq!((out.unknown_sets.len(), out.counters.templates_expired), (1, 1));
    let (_, restored) = restarted(&collector.templates_snapshot());
    assert_eq!((restored.templates, restored.facts), (0, 7));
    collector.expire(Duration::from_secs(3_601));
    assert_eq!(collector.gauges().provisional_templates, 0);
    assert_eq!(collector.addresses.len(), 1, "only the exporter that was heard from");
}

/// The limits of the collector hold for what is restored.
#[test]
fn limits() {
    let snapshot = busy().templates_snapshot();
    let restore = |change: fn(&mut CollectorLimits)| {
        let mut limits = CollectorLimits::default();
        change(&mut limits);
        let mut collector = Collector::new(limits);
        let restored = collector.restore(&snapshot).expect("a snapshot");
        assert_eq!(restored.templates + restored.facts + restored.left_out, 17);
        (restored.addresses, restored.templates, restored.facts)
    };
    assert_eq!(restore(|limits| limits.session.max_templates = 3), (2, 5, 7));
    assert_eq!(restore(|limits| limits.session.max_template_fields = 1), (2, 1, 7));
    assert_eq!(restore(|limits| limits.max_total_fields = 40), (2, 3, 7));
    assert_eq!(restore(|limits| limits.max_total_facts = 4), (2, 10, 3));
    assert_eq!(restore(|limits| limits.session.max_facts = 2), (2, 10, 2));
    assert_eq!(restore(|limits| limits.max_sessions = 1), (0, 0, 0));
}

/// Snapshots with one thing wrong, and what is said of it.
#[test]
fn damaged() {
    let sealed = |body: &[u8]| {
        let mut bytes = b"CTIX\x01".to_vec();
        bytes.extend(crc32c::crc32c(body).to_be_bytes());
        bytes.extend(body);
        bytes
    };
    let fault = |bytes: &[u8]| {
        let error = Collector::new(CollectorLimits::default()).restore(bytes).expect_err("damage");
        (error.offset, error.to_string())
    };
    let exporter = [1, 4, 192, 0, 2, 1, 0, 0, 0, 3];
    let with = |item: &[u8]| fault(&sealed(&[&exporter[..], item].concat()));
    let at = |offset: usize, text: &str| (offset, format!("template snapshot at offset {offset}: {text}"));
    assert_eq!(fault(b"CTI"), at(0, "not a template snapshot, which starts with CTIX"));
    assert_eq!(fault(b"CTIX\x02"), at(4, "format version 2, only version 1 is read"));
    assert_eq!(fault(b"CTIX\x01\0"), at(5, "ends inside an item, 3 more bytes are needed"));
    assert_eq!(fault(b"CTIX\x01\0\0\0\x01"), at(5, "checksum 00000000, the head says 00000001"));
    assert_eq!(with(&[9]), at(19, "9 is no item"));
    assert_eq!(with(&[1, 5]), at(20, "5 is no address family"));
    assert_eq!(fault(&sealed(&[3, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1])), at(9, "item before the first exporter"));
    assert_eq!(
        with(&[2, 10, 0, 0, 0, 7, 0, 0, 255, 0, 1, 0, 0, 0, 4, 0, 1]).1,
        at(19, "template id 255 is reserved, templates start at 256").1
    );
    assert_eq!(with(&[2, 10, 0, 0, 0, 7, 0, 1, 0, 0, 0, 0, 0]).1, at(19, "template 256 has no fields").1);
    assert_eq!(
        with(&[2, 10, 0, 0, 0, 7, 0, 1, 0, 0, 9, 0, 0, 0, 4]),
        at(34, "ends inside an item, 2 more bytes are needed")
    );
    assert_eq!(with(&[3, 0, 0, 0, 7, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 255]), at(33, "text is not UTF-8"));
    assert_eq!(with(&[3, 0, 0, 0, 7, 2, 0, 0, 0, 0, 0, 0, 0, 1, 9, 9]), at(33, "2313 is no length of a text"));
}

/// A template of any fields.
fn definition() -> impl Strategy<Value = Vec<(u16, u16, Option<u32>)>> {
    let field = (any::<u16>(), any::<u16>(), proptest::option::of(any::<u32>()));
    proptest::collection::vec(field, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Templates of any fields come back equal, in both protocols and kinds.
    #[test]
    fn round_trip(
        definitions in proptest::collection::vec((definition(), any::<bool>(), any::<bool>(), any::<u32>()), 1..8)
    ) {
        let mut collector = Collector::new(CollectorLimits::default());
        for (number, (fields, netflow_v9, options, domain)) in definitions.iter().enumerate() {
            let id = 256 + number as u16;
            let (scopes, count) = (u16::from(*options), fields.len() as u16);
            let mut record = match (netflow_v9, options) {
                (true, true) => words(&[id, 4, 4 * (count - 1)]),
                (false, true) => words(&[id, count, scopes]),
                (_, false) => words(&[id, count]),
            };
            for &(field, length, enterprise) in fields {
                let enterprise = enterprise.filter(|_| !netflow_v9);
                let bit = if *netflow_v9 { field & 0x8000 } else { u16::from(enterprise.is_some()) << 15 };
                record.extend(words(&[field & 0x7fff | bit, length]));
                record.extend(enterprise.into_iter().flat_map(u32::to_be_bytes));
            }
            let datagram = if *netflow_v9 {
                v9(0, 0, &[set(scopes, &record)])
            } else {
                ipfix_from(*domain, 0, &[set(2 + scopes, &record)])
            };
            let _ = admit(&mut collector, udp(number as u8 % 3, 1), &datagram);
        }
        let snapshot = collector.templates_snapshot();
        let (restored, counts) = restarted(&snapshot);
        prop_assert_eq!(counts.templates, collector.gauges().templates);
        prop_assert_eq!(restored.templates_snapshot(), snapshot);
        for (key, entry) in collector.newcomers.iter() {
            let address = restored.addresses.get(&key.address).expect("an address");
            let (_, provisional) = address.provisional.first().expect("templates");
            for (version, domain, template) in entry.session.templates() {
                let key = TemplateKey { version, domain, id: template.id() };
                let (back, _) = provisional.get(&key).expect("a template");
                prop_assert_eq!(&back, template);
            }
        }
    }

    /// Any bytes, sealed or not, and any damage to a snapshot give an error or are taken; nothing else.
    #[test]
    fn arbitrary_bytes(body in proptest::collection::vec(any::<u8>(), 0..200), place in any::<usize>(), byte in any::<u8>()) {
        let mut sealed = b"CTIX\x01".to_vec();
        sealed.extend(crc32c::crc32c(&body).to_be_bytes());
        sealed.extend(&body);
        let good = busy().templates_snapshot();
        let mut changed = good.clone();
        let place = place % good.len();
        changed[place] = byte;
        let resealed = [b"CTIX\x01", &crc32c::crc32c(&changed[9..]).to_be_bytes()[..], &changed[9..]].concat();
        for bytes in [body, sealed, resealed, good[..place].to_vec()] {
            let mut collector = Collector::new(CollectorLimits::default());
            if let Err(error) = collector.restore(&bytes) {
                prop_assert!(error.offset <= bytes.len());
                prop_assert_eq!(collector.gauges(), crate::collector::Gauges::default(), "nothing was taken");
            }
        }
        if changed != good {
            prop_assert!(Collector::new(CollectorLimits::default()).restore(&changed).is_err());
        }
    }
}
