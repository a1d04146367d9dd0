//! Floods of spoofed sources.

use proptest::prelude::*;

use super::{admit, collector, establish, seconds, udp};
use crate::collector::{Collector, CollectorLimits, PendingLimits};
use crate::test_wire::{ipfix_from, options_template, set, template};

const MAX_SESSIONS: usize = 24;
const MAX_FIELDS: usize = 600;
const MAX_FACTS: usize = 40;
const MAX_PENDING: usize = 8_000;

fn limits(limits: &mut CollectorLimits) {
    limits.max_sessions = MAX_SESSIONS;
    limits.max_sessions_per_address = 4;
    limits.max_total_fields = MAX_FIELDS;
    limits.max_total_facts = MAX_FACTS;
    limits.establish_after = seconds(2);
    limits.newcomer_hold = seconds(2);
    limits.idle = seconds(100_000);
    limits.pending = Some(PendingLimits { bytes_total: MAX_PENDING, ..PendingLimits::default() });
}

/// One datagram of the flood.
#[derive(Debug, Clone)]
struct Spoofed {
    host: u16,
    port: u16,
    id: u16,
    fields: usize,
    kind: u8,
}

fn spoofed() -> impl Strategy<Value = Spoofed> {
    (100_u16..400, 1_u16..9, 256_u16..300, 1_usize..80, 0_u8..5).prop_map(|(host, port, id, fields, kind)| Spoofed {
        host,
        port,
        id,
        fields,
        kind,
    })
}

impl Spoofed {
    fn datagram(&self) -> Vec<u8> {
        let template = template(self.id, &vec![(4, 1); self.fields]);
        let data = set(self.id, &vec![1; self.fields]);
        match self.kind {
            0 => ipfix_from(self.id.into(), 0, &[template]),
            1 => ipfix_from(7, 0, &[data]),
            2 => vec![0, 9, 9],
            3 => {
                let records: Vec<u8> = (0..20).flat_map(|index| [index, b'x', self.id as u8]).collect();
                ipfix_from(7, 0, &[options_template(self.id, 1, &[(10, 1), (82, 2)]), set(self.id, &records)])
            }
            _ => ipfix_from(7, 0, &[template, data]),
        }
    }
}

fn check_bounds(collector: &Collector) -> Result<(), TestCaseError> {
    let gauges = collector.gauges();
    prop_assert!(gauges.sessions <= MAX_SESSIONS);
    prop_assert!(gauges.template_fields <= MAX_FIELDS, "{} fields", gauges.template_fields);
    prop_assert!(gauges.facts <= MAX_FACTS && gauges.pending_bytes <= MAX_PENDING);
    prop_assert!(collector.addresses.len() <= MAX_SESSIONS);
    let counted: usize = collector.entries().map(|entry| entry.usage().weight).sum();
    prop_assert_eq!(counted, gauges.template_fields, "the running sum");
    let facts: usize = collector.entries().map(|entry| entry.usage().facts).sum();
    prop_assert_eq!(facts, gauges.facts);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever spoofed sources send, exporters that are established keep their templates and facts; and no bound is
    /// passed.
    #[test]
    fn established_exporters_stay(flood in proptest::collection::vec((spoofed(), 0_u64..2), 1..300)) {
        let mut collector = collector(limits);
        let exporters: Vec<_> = (1..=8).map(|host| udp(host, 1)).collect();
        for &exporter in &exporters {
            establish(&mut collector, 0, exporter);
            let names = ipfix_from(7, 0, &[options_template(400, 1, &[(10, 1), (82, 2)]), set(400, b"\x05e5")]);
            prop_assert_eq!(admit(&mut collector, 2, exporter, &names).1.counters.facts_refused, 0);
        }
        let data = ipfix_from(7, 0, &[set(256, &[6])]);
        let mut clock = 3;
        for (number, (spoofed, wait)) in flood.iter().enumerate() {
            clock += wait;
            let _ = admit(&mut collector, clock, udp(spoofed.host, spoofed.port), &spoofed.datagram());
            check_bounds(&collector)?;
            let exporter = exporters[number % exporters.len()];
            let (_, out) = admit(&mut collector, clock, exporter, &data);
            prop_assert_eq!(out.sets.len(), 1, "the template is known");
            let name = out.sets[0].knowledge.as_ref().and_then(|known| known.interface_name(5));
            prop_assert_eq!(name, Some("e5"));
        }
        prop_assert_eq!(collector.counters().idle_evicted, 0);
    }

    /// A source that is real finds a place in the flood once others have been silent, and becomes established.
    #[test]
    fn real_newcomers_get_in(hosts in proptest::collection::vec(100_u16..4_000, 40)) {
        let mut collector = collector(limits);
        let mut clock = 0;
        for round in 0..4 {
            for &host in &hosts {
                let spoofed = ipfix_from(7, 0, &[template(256, &[(4, 1)])]);
                let _ = admit(&mut collector, clock, udp(host + round * 5_000, 1), &spoofed);
            }
            clock += 3;
            let _ = admit(&mut collector, clock, udp(1, 1), &super::hello());
        }
        prop_assert_eq!(collector.gauges().established_sessions, 1);
    }
}
