//! Flow and options records through rules and back out of the batches.

use std::sync::Arc;

use catchment_columns::flow::{FlowBatch, FlowReceipt};
use catchment_columns::metrics::{
    ElementRef, FlowMetricsCounts, FlowMetricsJob, MetricKind, MetricRule, MetricRuleError, MetricRules, SCOPE,
};
use catchment_columns::sonic::U64Overflow;
use catchment_columns::{Budget, Job, OtapArrowRecords, Step};
use catchment_ipfix::{Admitted, Limits, Session, Transport};
use proptest::prelude::*;

mod common;

use common::read::{self, Attributes, Kind, Number, Point, Series};

/// 2026-11-30T12:00:00Z.
const NOON_SECONDS: u32 = 1_796_040_000;
const NOON: u64 = NOON_SECONDS as u64 * 1_000_000_000;

fn message(domain: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let sets = sets.concat();
    let mut out = vec![0, 10];
    out.extend(u16::try_from(16 + sets.len()).expect("short").to_be_bytes());
    out.extend(NOON_SECONDS.to_be_bytes());
    out.extend([0; 4]);
    out.extend(domain.to_be_bytes());
    [out, sets].concat()
}

fn set(id: u16, content: &[u8]) -> Vec<u8> {
    let mut out = id.to_be_bytes().to_vec();
    out.extend(u16::try_from(4 + content.len()).expect("short").to_be_bytes());
    [&out, content].concat()
}

/// A template set; enterprise numbers other than 0 get their bit.
fn template(id: u16, fields: &[(u32, u16, u16)]) -> Vec<u8> {
    let mut content = id.to_be_bytes().to_vec();
    content.extend(u16::try_from(fields.len()).expect("few").to_be_bytes());
    for (enterprise, element, length) in fields {
        content.extend((element | if *enterprise == 0 { 0 } else { 0x8000 }).to_be_bytes());
        content.extend(length.to_be_bytes());
        if *enterprise != 0 {
            content.extend(enterprise.to_be_bytes());
        }
    }
    set(2, &content)
}

fn push(session: &mut Session, batch: &mut FlowBatch, exporter: &str, datagram: &[u8]) {
    let mut admitted = Admitted::default();
    session.admit(datagram, &mut admitted);
    assert!(admitted.problems.is_empty(), "{:?}", admitted.problems);
    let exporter = Some(exporter.parse().expect("an address"));
    let _ = batch.push(datagram, &mut admitted, FlowReceipt { time_unix_nano: 5, exporter });
}

fn batch_of(datagrams: &[Vec<u8>]) -> FlowBatch {
    let mut session = Session::new(Transport::Udp, Limits::default());
    let mut batch = FlowBatch::default();
    for datagram in datagrams {
        push(&mut session, &mut batch, "192.0.2.1:4739", datagram);
    }
    batch
}

fn name(name: &str) -> ElementRef {
    ElementRef::Name(name.to_owned())
}

fn rule(elements: &[&str], kind: MetricKind, keys: &[&str]) -> MetricRule {
    let names = |all: &[&str]| all.iter().map(|element| name(element)).collect();
    MetricRule { elements: names(elements), kind, name: None, keys: names(keys) }
}

fn rules(rules: &[MetricRule]) -> Arc<MetricRules> {
    Arc::new(MetricRules::new(rules, U64Overflow::Saturate).expect("good rules"))
}

/// Points in the order of the batches, which all readers see alike.
fn points(batches: &[OtapArrowRecords]) -> Vec<Point> {
    let view: Vec<Point> = batches.iter().flat_map(|batch| read::through_view(batch, SCOPE)).collect();
    let otlp: Vec<Point> = batches.iter().flat_map(|batch| read::through_otlp(batch, SCOPE)).collect();
    assert_eq!(view, otlp);
    let sent: Vec<Point> = batches.iter().flat_map(|batch| read::through_view(&read::sent(batch), SCOPE)).collect();
    assert_eq!(read::by_series(&view), read::by_series(&sent));
    view
}

fn run(batch: FlowBatch, rules: &Arc<MetricRules>) -> (Vec<Point>, FlowMetricsCounts) {
    let mut job = FlowMetricsJob::new(batch, Arc::clone(rules));
    let batches = job.run().expect("batches");
    (points(&batches), job.counts())
}

fn attributes(pairs: &[(&str, &str)]) -> Attributes {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn of(metric: &str, unit: &str, kind: Kind, keys: &[(&str, &str)]) -> Series {
    let mut attributes = attributes(keys);
    let _ = attributes.insert("flow.observation_domain_id".into(), "9".into());
    let resource = Attributes::from([("flow.sampler_address".into(), "192.0.2.1".into())]);
    Series { resource, metric: metric.into(), unit: unit.into(), kind, attributes }
}

/// Kinds, names, units and times follow the registry; keys are told as in logs.
#[test]
fn kinds_of_the_registry() {
    let fields = [
        (0, 8, 4),
        (0, 4, 1),
        (0, 56, 6),
        (0, 152, 8),
        (0, 153, 8),
        (0, 1, 4),
        (0, 86, 8),
        (0, 160, 8),
        (29_305, 2, 8),
        (0, 198, 8),
    ];
    let millis = |seconds: u64| (seconds * 1_000).to_be_bytes();
    let noon = u64::from(NOON_SECONDS);
    let mut record = vec![192, 0, 2, 7, 6, 0, 0, 94, 0, 83, 1];
    record.extend(millis(noon - 60));
    record.extend(millis(noon - 1));
    record.extend(1_500_u32.to_be_bytes());
    record.extend(77_u64.to_be_bytes());
    record.extend(millis(noon - 3_600));
    record.extend(3_u64.to_be_bytes());
    record.extend(9_u64.to_be_bytes());
    let keys = ["sourceIPv4Address", "protocolIdentifier", "sourceMacAddress", "destinationIPv4Address"];
    let counters = ["octetDeltaCount", "packetTotalCount", "reversePacketDeltaCount", "octetDeltaSumOfSquares"];
    let counters_rule = rule(&counters[..3], MetricKind::Auto, &keys);
    let renamed = MetricRule { name: Some("squares".into()), ..rule(&counters[3..], MetricKind::Gauge, &[]) };
    let datagram = message(9, &[template(256, &fields), set(256, &record)]);
    let (mut points, counts) = run(batch_of(&[datagram]), &rules(&[counters_rule, renamed]));
    let keys = [("source.address", "192.0.2.7"), ("network.transport", "tcp"), ("flow.src_mac", "00:00:5e:00:53:01")];
    let ago = |seconds: u64| NOON - seconds * 1_000_000_000;
    let point = |series, start, value| Point { series, start, time: ago(1), value: Number::Int(value) };
    let mut expected = [
        point(of("flow.io.bytes", "By", Kind::Delta, &keys), ago(60), 1_500),
        point(of("ipfix.packetTotalCount", "{packet}", Kind::Cumulative, &keys), ago(3_600), 77),
        point(of("ipfix.reversePacketDeltaCount", "{packet}", Kind::Delta, &keys), ago(60), 3),
        point(of("squares", "", Kind::Gauge, &[]), 0, 9),
    ];
    points.sort_by(|a, b| a.series.cmp(&b.series));
    expected.sort_by(|a, b| a.series.cmp(&b.series));
    assert_eq!(points, expected);
    assert_eq!(counts, FlowMetricsCounts { records: 1, unmatched: 0, points: 4, overflowed: 0 });
}

/// Records that no rule is about, or whose counter has no value, are counted and give nothing.
#[test]
fn unmatched_records() {
    let datagram = message(
        9,
        &[
            template(256, &[(0, 8, 4)]),
            template(257, &[(0, 1, 8)]),
            template(258, &[(0, 1, 0), (0, 8, 4)]),
            set(256, &[1; 8]),
            set(257, &[0; 16]),
            set(258, &[1; 4]),
        ],
    );
    let (points, counts) = run(batch_of(&[datagram]), &rules(&[rule(&["octetDeltaCount"], MetricKind::Auto, &[])]));
    assert_eq!(points.len(), 2);
    assert_eq!(counts, FlowMetricsCounts { records: 5, unmatched: 3, points: 2, overflowed: 0 });
}

/// One resource an exporter, one attribute a domain; elements of an enterprise by their number; a kind that is asked for.
#[test]
fn exporters_and_domains() {
    let mut batch = FlowBatch::default();
    let exporters =
        [("192.0.2.1:1", "192.0.2.1"), ("[::ffff:192.0.2.1]:2", "192.0.2.1"), ("[2001:db8::1]:3", "2001:db8::1")];
    for (exporter, _) in exporters {
        let mut session = Session::new(Transport::Udp, Limits::default());
        for domain in [7, 8] {
            let sets = [template(256, &[(64_000, 12, 2), (0, 10, 4)]), set(256, &[1, 0, 0, 0, 0, 5])];
            push(&mut session, &mut batch, exporter, &message(domain, &sets));
        }
    }
    let number = ElementRef::Number { enterprise: 64_000, id: 12 };
    let rule = MetricRule { elements: vec![number], ..rule(&[], MetricKind::Cumulative, &["ingressInterface"]) };
    let mut job = FlowMetricsJob::new(batch, rules(&[rule]));
    let batches = job.run().expect("batches");
    assert_eq!(batches.len(), 4, "one an exporter and domain");
    let points = points(&batches);
    for (_, address) in exporters {
        for domain in ["7", "8"] {
            let matches = |point: &&Point| {
                point.series.resource == attributes(&[("flow.sampler_address", address)])
                    && point.series.attributes
                        == attributes(&[("flow.in_if", "5"), ("flow.observation_domain_id", domain)])
            };
            let of_lane: Vec<_> = points.iter().filter(matches).collect();
            assert_eq!(of_lane.len(), if address == "192.0.2.1" { 2 } else { 1 });
            let point = of_lane[0];
            assert_eq!((point.series.metric.as_str(), point.series.kind), ("ipfix.64000.12", Kind::Cumulative));
            assert_eq!((point.time, point.value), (NOON, Number::Int(256)), "the time of export");
        }
    }
}

/// Values above the range of OTLP's integers are held there or become floating-point numbers.
#[test]
fn values_above_the_range() {
    let datagram = || message(9, &[template(256, &[(0, 1, 8)]), set(256, &[0xff; 8])]);
    for (way, value) in [
        (U64Overflow::Saturate, Number::Int(i64::MAX)),
        (U64Overflow::Double, Number::Double(18_446_744_073_709_551_615.0)),
    ] {
        let rules = MetricRules::new(&[rule(&["octetDeltaCount"], MetricKind::Auto, &[])], way).expect("good rules");
        let (points, counts) = run(batch_of(&[datagram()]), &Arc::new(rules));
        assert_eq!((points[0].value, counts.overflowed), (value, 1));
    }
}

/// Rules that make no sense are refused with their position.
#[test]
fn faulty_rules() {
    let refused = |rule: MetricRule| MetricRules::new(&[rule], U64Overflow::Saturate).expect_err("refused");
    assert_eq!(refused(rule(&[], MetricKind::Auto, &[])), MetricRuleError::NoElements { rule: 0 });
    let unknown = refused(rule(&["octets"], MetricKind::Auto, &[]));
    assert_eq!(unknown.to_string(), "rule 0: \"octets\" is no element of the IANA registry");
    assert!(matches!(
        refused(rule(&["octetDeltaCount"], MetricKind::Auto, &["reverse"])),
        MetricRuleError::UnknownName { .. }
    ));
    let two = rule(&["octetDeltaCount", "packetDeltaCount"], MetricKind::Auto, &[]);
    let shared = refused(MetricRule { name: Some("x".into()), ..two });
    assert_eq!(shared.to_string(), "rule 0: name \"x\" is for 2 elements, it can be for one only");
    let one = rule(&["octetDeltaCount"], MetricKind::Auto, &[]);
    assert_eq!(refused(MetricRule { name: Some(String::new()), ..one }), MetricRuleError::EmptyName { rule: 0 });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// However many records there are and however small the steps, each series has its values in the order of receipt.
    #[test]
    fn series_keep_their_order(
        sizes in proptest::collection::vec(1_u16..300, 1..40),
        budget in (1_usize..300, 1_usize..5_000).prop_map(|(records, bytes)| Budget { records, bytes }),
    ) {
        let mut count = 0_u32;
        let mut datagrams = vec![message(9, &[template(256, &[(0, 10, 1), (0, 1, 4), (0, 2, 4)])])];
        let mut expected = vec![Vec::new(); 3];
        for size in sizes {
            let mut content = Vec::new();
            for _ in 0..size {
                count += 1;
                content.push((count % 3) as u8);
                content.extend(count.to_be_bytes().repeat(2));
                expected[(count % 3) as usize].push(Number::Int(count.into()));
            }
            datagrams.push(message(9, &[set(256, &content)]));
        }
        let counters = ["packetDeltaCount", "octetDeltaCount"];
        let rules = rules(&[rule(&counters, MetricKind::Auto, &["ingressInterface"])]);
        let mut job = FlowMetricsJob::new(batch_of(&datagrams), rules);
        let mut batches = Vec::new();
        loop {
            match job.step(budget).expect("a step") {
                Step::More => {}
                Step::Batch(records) => batches.push(records),
                Step::End => break,
            }
        }
        prop_assert_eq!(job.counts().points, u64::from(count) * 2);
        let all = read::by_series(&points(&batches));
        for (interface, expected) in expected.iter().enumerate().filter(|(_, expected)| !expected.is_empty()) {
            for (metric, unit) in [("flow.io.bytes", "By"), ("flow.io.packets", "{packet}")] {
                let series = of(metric, unit, Kind::Delta, &[("flow.in_if", &interface.to_string())]);
                let values: Vec<Number> = all[&series].iter().map(|(_, _, value)| *value).collect();
                prop_assert_eq!(&values, expected);
            }
        }
    }
}
