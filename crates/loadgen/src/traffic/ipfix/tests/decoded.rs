//! What is generated, read by the decoder that receivers use.

use std::net::Ipv4Addr;

use catchment_ipfix::{
    Admitted, DataSet, Kind, Limits, Problem, ProblemKind, Session, Transport, Value, decode, flow_times,
};

use super::super::fields::{INTERFACES, SAMPLER};
use super::super::options::interface_name;
use super::*;

/// A generator, and a session that gets what it makes.
struct Decoded {
    exporter: FlowExporter,
    session: Session,
    datagram: Vec<u8>,
    admitted: Admitted,
}

impl Decoded {
    fn new(options: FlowOptions) -> Self {
        let session = Session::new(Transport::Udp, Limits::default());
        let exporter = FlowExporter::new(options).unwrap();
        Self { exporter, session, datagram: Vec::new(), admitted: Admitted::default() }
    }

    /// Makes and admits the next message; nothing may be wrong with it but that its template is not known.
    fn next(&mut self) -> u64 {
        self.datagram.clear();
        let records = self.exporter.append_next(&mut self.datagram).unwrap();
        self.admitted.messages.clear();
        self.admitted.sets.clear();
        self.session.admit(&self.datagram, &mut self.admitted);
        let unknown = |problem: &Problem| problem.kind == ProblemKind::UnknownTemplate;
        assert!(self.admitted.problems.iter().all(unknown), "{:?}", self.admitted.problems);
        records
    }

    fn sets(&self, kind: Kind) -> impl Iterator<Item = &DataSet> {
        self.admitted.sets.iter().filter(move |set| set.kind() == kind)
    }

    /// Records as values by element.
    fn records(&self, kind: Kind) -> Vec<Vec<(u16, Value<'_>)>> {
        let context = self.admitted.messages[0].context();
        let set = |set: &'_ DataSet| -> Vec<Vec<(u16, Value<'_>)>> {
            let records = catchment_ipfix::Records::new(&set.template, &self.datagram[set.range.clone()]);
            let field = |(field, bytes): (&catchment_ipfix::FieldSpec, _)| (field.id, decode(field, bytes, &context));
            records.map(|record| record.fields().map(field).collect()).collect()
        };
        self.sets(kind).flat_map(set).collect()
    }
}

const PROTOCOLS: [FlowProtocol; 3] = [FlowProtocol::Ipfix, FlowProtocol::NetflowV9, FlowProtocol::NetflowV5];
const FIELDS: [FlowFields; 5] =
    [FlowFields::Basic, FlowFields::Softflowd, FlowFields::Router, FlowFields::IosXr, FlowFields::IosXrLayer2];

/// Every field of every record has the value that was drawn for it, the times too, in the type of its element.
#[test]
fn field_by_field() {
    for protocol in PROTOCOLS {
        for kind in FIELDS {
            let mut decoded = Decoded::new(FlowOptions::new(protocol, kind, 5, 21));
            let (mut random, mut end_ms) = (Random::new(21), DEFAULT_START_UNIX_NANO / 1_000_000);
            for _ in 0..3 {
                let records = decoded.next();
                let exported_ms = end_ms + records * FLOW_STEP_MS;
                let context = decoded.admitted.messages[0].context();
                let mut count = 0;
                for set in decoded.sets(Kind::Flow) {
                    for record in set.records(&decoded.datagram) {
                        end_ms += FLOW_STEP_MS;
                        let flow = Flow::new(end_ms, &mut random);
                        for (field, bytes) in record.fields() {
                            check(&flow, field.id, &decode(field, bytes, &context), protocol);
                        }
                        let times = flow_times(&record, &context);
                        let told = protocol != FlowProtocol::Ipfix || !is_ios_xr(kind);
                        // The header of v9 tells the time of export in whole seconds.
                        let cut_ms = if protocol == FlowProtocol::NetflowV9 { exported_ms % 1_000 } else { 0 };
                        let nano = |ms: u64| told.then_some((ms - cut_ms) as i64 * 1_000_000);
                        assert_eq!(times.start_unix_nano, nano(flow.start_ms), "{protocol:?} {kind:?}");
                        assert_eq!(times.end_unix_nano, nano(flow.end_ms), "{protocol:?} {kind:?}");
                        count += 1;
                    }
                }
                assert_eq!(count, records);
            }
        }
    }
}

fn is_ios_xr(kind: FlowFields) -> bool {
    matches!(kind, FlowFields::IosXr | FlowFields::IosXrLayer2)
}

/// Compares a value with what the flow has.
fn check(flow: &Flow, element: u16, value: &Value<'_>, protocol: FlowProtocol) {
    let number = flow.value(element);
    let v5 = protocol == FlowProtocol::NetflowV5;
    match (element, value) {
        // Times are looked at on their own.
        (ie::START_MS | ie::END_MS | ie::FIRST_SWITCHED | ie::LAST_SWITCHED, _) => {}
        // The only address that v5 records have and the others here have not: the next hop.
        (15, Value::Ipv4(address)) if v5 => assert_eq!(u64::from(u32::from(*address)), flow.value(ie::BGP_NEXT_HOP)),
        (ie::SOURCE_ADDRESS, value) => assert_eq!(*value, Value::Ipv4(Ipv4Addr::from(flow.source))),
        (_, Value::Ipv4(address)) => assert_eq!(u64::from(u32::from(*address)), number, "{element}"),
        (_, Value::Mac(mac)) => assert_eq!(mac.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)), number),
        (_, Value::Unsigned(found)) => assert_eq!(*found, number, "{element}"),
        (_, Value::Absent) if v5 => {}
        (element, other) => panic!("element {element}: {other:?}"),
    }
}

/// Sequence numbers have no gaps, whatever else is sent between.
#[test]
fn sequences() {
    for protocol in PROTOCOLS {
        let mut options = FlowOptions::new(protocol, FlowFields::Router, 9, 2);
        options.options_every = 7;
        let mut decoded = Decoded::new(options);
        let records: u64 = (0..100).map(|_| decoded.next()).sum();
        let counters = &decoded.admitted.counters;
        assert_eq!(counters.flow_records + counters.options_records, records, "{protocol:?}");
        assert_eq!(counters.options_records > 0, protocol != FlowProtocol::NetflowV5);
        let missed = [counters.lost_records, counters.lost_packets, counters.lost_flows, counters.late_messages];
        assert_eq!(missed, [0; 4], "{protocol:?}");
        assert_eq!((counters.sequence_restarts, counters.messages), (0, 100));
    }
}

/// Options data names the interfaces, the sampler of the records, and when the exporter started.
#[test]
fn options_data() {
    for (protocol, selector) in [(FlowProtocol::Ipfix, ie::SELECTOR), (FlowProtocol::NetflowV9, ie::SAMPLER_ID)] {
        let mut options = FlowOptions::new(protocol, FlowFields::IosXr, 3, 2);
        (options.options_every, options.sampling_interval) = (4, 512);
        let mut decoded = Decoded::new(options);
        assert_eq!(decoded.next(), u64::from(INTERFACES) + if protocol == FlowProtocol::Ipfix { 2 } else { 1 });
        let records = decoded.records(Kind::Options);
        let has = |element, value: &Value<'_>| records.iter().any(|record| record.contains(&(element, *value)));
        assert!(has(selector, &Value::Unsigned(SAMPLER.into())));
        if protocol == FlowProtocol::Ipfix {
            assert!(has(ie::SAMPLING_SPACE, &Value::Unsigned(511)));
            let start = DEFAULT_START_UNIX_NANO - UPTIME_AT_START_MS * 1_000_000;
            assert!(has(ie::SYSTEM_INIT_MS, &Value::TimeUnixNano(start as i64)));
        } else {
            assert!(has(ie::SAMPLER_INTERVAL, &Value::Unsigned(512)));
        }
        for index in 1..=INTERFACES {
            let name = interface_name(index);
            let named = |record: &Vec<(u16, Value<'_>)>| {
                record[0].1 == Value::Unsigned(index.into()) && record[1].1 == Value::Text(name.as_bytes())
            };
            assert!(records.iter().any(named), "{name}");
        }
        decoded.next();
        assert!(decoded.records(Kind::Flow).iter().all(|record| record.contains(&(selector, Value::Unsigned(1)))));
        assert_eq!((0..4).map(|_| decoded.next()).filter(|records| *records > u64::from(INTERFACES)).count(), 1);
    }
    let mut options = FlowOptions::new(FlowProtocol::NetflowV5, FlowFields::Basic, 0x0102, 2);
    (options.options_every, options.sampling_interval) = (1, 100);
    let mut decoded = Decoded::new(options);
    assert_eq!(decoded.next(), 30);
    assert_eq!(decoded.admitted.messages[0].sampling_interval(), Some(100));
}

/// Templates that come late, change, are new each time, or never come.
#[test]
fn irregular_templates() {
    let counters = |protocol, templates: &str, messages: usize| {
        let mut options = FlowOptions::new(protocol, FlowFields::Basic, 1, 2);
        options.templates = templates.parse().unwrap();
        let mut decoded = Decoded::new(options);
        let records: u64 = (0..messages).map(|_| decoded.next()).sum();
        (decoded.admitted.counters, records, decoded.exporter.records_per_message() as u64)
    };
    for protocol in [FlowProtocol::Ipfix, FlowProtocol::NetflowV9] {
        let (late, sent, each) = counters(protocol, "late:5", 8);
        assert_eq!((late.unknown_template_sets, late.templates_new, late.flow_records), (5, 1, 3 * each));
        assert_eq!(sent, 8 * each);
        let (flip, sent, _) = counters(protocol, "flip:3", 12);
        assert_eq!((flip.templates_new, flip.templates_replaced, flip.flow_records), (1, 3, sent));
        let (ids, sent, _) = counters(protocol, "new_ids", 20);
        assert_eq!((ids.templates_new, ids.flow_records), (20, sent));
        let (domains, sent, _) = counters(protocol, "new_domains", 20);
        assert_eq!((domains.templates_new, domains.flow_records), (20, sent));
        assert_eq!((domains.lost_records, domains.lost_packets), (0, 0));
        let (never, _, _) = counters(protocol, "never", 20);
        assert_eq!((never.unknown_template_sets, never.flow_records), (20, 0));
    }
    for wrong in ["", "late", "late:x", "flip:0", "regular:1", "sometimes"] {
        assert_eq!(wrong.parse::<FlowTemplates>(), Err(FlowTemplatesError), "{wrong}");
    }
}

/// Options that cannot be followed.
#[test]
fn refused() {
    let mut options = FlowOptions::new(FlowProtocol::NetflowV5, FlowFields::Basic, 1, 2);
    options.records_per_message = Some(31);
    let error = FlowExporter::new(options.clone()).unwrap_err();
    assert_eq!(error, FlowOptionsError::RecordsPerMessage { found: 31, most: 30 });
    options.records_per_message = None;
    options.templates = FlowTemplates::NewIds;
    assert_eq!(FlowExporter::new(options.clone()).unwrap_err(), FlowOptionsError::NoTemplates);
    options.templates = FlowTemplates::Regular;
    options.sampling_interval = 0x4000;
    let error = FlowExporter::new(options).unwrap_err();
    assert_eq!(error, FlowOptionsError::SamplingInterval { found: 0x4000 });
}
