//! Flow records past a sampler: what may be skipped, what may not, and what that costs.

use std::net::SocketAddr;

use catchment_columns::flow::{FlowBatch, FlowJob, FlowMapping, FlowReceipt, Sampled};
use catchment_columns::metrics::{ElementRef, FlowMetricsJob, MetricKind, MetricRule, MetricRules};
use catchment_columns::sonic::U64Overflow;
use catchment_columns::{Job, json};
use catchment_ipfix::{Admitted, Limits, Session, Transport};
use catchment_sampling::{Input, Sampler, SamplingConfig};
use counting::allocations;
use serde_json::Value;

#[path = "common/counting.rs"]
mod counting;

const NOON_SECONDS: u32 = 1_796_040_000;

/// Addresses, ports, protocol, octets.
const FIXED: [(u16, u16); 6] = [(8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (1, 4)];
/// The same behind a value of variable length.
const VARIABLE: [(u16, u16); 7] = [(82, 65_535), (8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (1, 4)];

fn set(id: u16, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + content.len()).expect("short");
    [&id.to_be_bytes()[..], &length.to_be_bytes(), content].concat()
}

fn template(id: u16, fields: &[(u16, u16)]) -> Vec<u8> {
    let words = [id, u16::try_from(fields.len()).expect("few")];
    let words = words.into_iter().chain(fields.iter().flat_map(|(element, length)| [*element, *length]));
    set(2, &words.flat_map(u16::to_be_bytes).collect::<Vec<_>>())
}

fn message(sequence: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let sets = sets.concat();
    let mut out = [10, u16::try_from(16 + sets.len()).expect("short")].map(u16::to_be_bytes).concat();
    out.extend([NOON_SECONDS, sequence, 7].map(u32::to_be_bytes).concat());
    [out, sets].concat()
}

/// The record of a number: its flow is one of 200, its octets are the number. A record of variable length has a name of up to
/// 300 bytes, so that both forms of the length come.
fn record(number: u32, is_variable: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if is_variable {
        let name = vec![b'x'; usize::try_from(number * 37 % 300).expect("small")];
        match u8::try_from(name.len()).ok().filter(|length| *length < 255) {
            Some(length) => out.push(length),
            None => {
                out.push(255);
                out.extend(u16::try_from(name.len()).expect("short").to_be_bytes());
            }
        }
        out.extend(name);
    }
    let flow = number % 200;
    out.extend((0x0a00_0000 + flow).to_be_bytes());
    out.extend([192, 0, 2, 1]);
    out.extend([1_000 + u16::try_from(flow).expect("small"), 443].map(u16::to_be_bytes).concat());
    out.push(6);
    out.extend(number.to_be_bytes());
    out
}

fn data(sequence: u32, records: u32, is_variable: bool) -> Vec<u8> {
    let content: Vec<u8> = (sequence..sequence + records).flat_map(|number| record(number, is_variable)).collect();
    message(sequence, &[set(if is_variable { 257 } else { 256 }, &content)])
}

fn sampler(policies: &str) -> Sampler {
    let config: SamplingConfig =
        serde_json::from_str(&format!(r#"{{"seed": 3, "policies": [{policies}]}}"#)).expect("a config");
    config.compile(Input::Flows, 0).expect("valid")
}

/// An exporter, its session, and what is kept of it.
struct Exporter {
    session: Session,
    admitted: Admitted,
    sampler: Sampler,
    batch: FlowBatch,
}

impl Exporter {
    fn new(policies: &str) -> Self {
        Self {
            session: Session::new(Transport::Udp, Limits::default()),
            admitted: Admitted::default(),
            sampler: sampler(policies),
            batch: FlowBatch::default(),
        }
    }

    fn send(&mut self, datagram: &[u8]) -> Sampled {
        self.admitted.begin_next();
        self.session.admit(datagram, &mut self.admitted);
        assert!(self.admitted.problems.is_empty(), "{:?}", self.admitted.problems);
        let exporter = Some(SocketAddr::from(([192, 0, 2, 9], 4_739)));
        let receipt = FlowReceipt { time_unix_nano: 5, exporter };
        self.batch.push_sampled(datagram, &mut self.admitted, receipt, &mut self.sampler, 0)
    }

    fn records(&mut self) -> Vec<Value> {
        let mut out = Vec::new();
        for records in FlowJob::with_mapping(self.batch.take(), &FlowMapping::default()).run().expect("decoded") {
            json::objects(&records, |object| out.push(object)).expect("readable");
        }
        out
    }
}

fn octets(record: &Value) -> u64 {
    record["attributes"]["flow.io.bytes"].as_u64().expect("octets")
}

/// Records of both layouts, thinned by each policy: kept records are those that were sent, in order, whole, and each says what
/// it stands for; the sums of that are near the whole; sequence numbers know nothing of it.
#[test]
fn kept_records_are_whole_and_weighted() {
    const COUNT: u32 = 20_000;
    for is_variable in [false, true] {
        for (policies, spread) in [
            (r#"{"ratio": 0.1}"#, 1.0),
            (r#"{"ratio": {"ratio": 0.1, "draw": "systematic"}}"#, 0.01),
            // 100 records have one fate each.
            (r#"{"key_hash": {"ratio": 0.25, "key": "flow"}}"#, 10.0),
            (r#"{"always_keep": {"sources": ["198.51.100.0/24"]}}, {"ratio": 0.5}"#, 1.0),
        ] {
            let mut exporter = Exporter::new(policies);
            let _ = exporter.send(&message(0, &[template(256, &FIXED), template(257, &VARIABLE)]));
            let mut sum = Sampled::default();
            for sequence in (0..COUNT).step_by(50) {
                sum += exporter.send(&data(sequence, 50, is_variable));
            }
            assert_eq!(sum.kept + sum.dropped, 20_000, "{policies}");
            let counts = exporter.sampler.counts();
            assert_eq!((counts.seen, counts.kept), (20_000, sum.kept as u64), "{policies}");
            let lost = &exporter.admitted.counters;
            assert_eq!((lost.lost_records, lost.late_messages), (0, 0));
            let all = exporter.records();
            assert_eq!(all.len(), sum.kept);
            assert!(all.is_sorted_by_key(octets), "{policies}");
            let mut estimate = 0.0;
            for kept in &all {
                let number = u32::try_from(octets(kept)).expect("a number of the test");
                let attributes = &kept["attributes"];
                assert_eq!(attributes["source.port"], 1_000 + number % 200);
                if is_variable {
                    let name = attributes["ipfix.interfaceName"].as_str().map_or(0, str::len);
                    assert_eq!(name, usize::try_from(number * 37 % 300).expect("small"));
                }
                assert!(attributes["sampling.threshold"].is_string());
                estimate += attributes["sampling.adjusted_count"].as_f64().expect("a weight");
            }
            let ratio = all.len() as f64 / estimate;
            let sigma = spread * (f64::from(COUNT) * (1.0 - ratio) / ratio).sqrt();
            assert!((estimate - f64::from(COUNT)).abs() < 4.0 * sigma + 20.0, "{policies}: {estimate}");
        }
    }
}

/// All records of a flow have one fate, in whatever layout and message they come.
#[test]
fn flows_are_kept_whole() {
    let mut exporter = Exporter::new(r#"{"key_hash": {"ratio": 0.25, "key": "flow"}}"#);
    let _ = exporter.send(&message(0, &[template(256, &FIXED), template(257, &VARIABLE)]));
    for sequence in (0..4_000).step_by(40) {
        let _ = exporter.send(&data(sequence, 40, sequence % 80 == 0));
    }
    let mut of_flow = std::collections::BTreeMap::<u64, usize>::new();
    exporter.records().iter().for_each(|record| *of_flow.entry(octets(record) % 200).or_default() += 1);
    assert!((20..80).contains(&of_flow.len()), "{of_flow:?}");
    assert!(of_flow.values().all(|records| *records == 20), "{of_flow:?}");
}

/// Where no record is wanted, templates in their messages are learned, options data is used and given out, and the kept
/// records of later messages know what it has told.
#[test]
fn templates_and_options_are_never_skipped() {
    let mut exporter = Exporter::new(r#"{"key_hash": {"ratio": 0, "key": "exporter"}}"#);
    // Options template 258: scope ingressInterface, then interfaceName.
    let options = set(3, &[1, 2, 0, 2, 0, 1, 0, 10, 0, 4, 0, 82, 0, 4]);
    let flows = [(10, 4), (1, 4)];
    let told = set(258, b"\0\0\0\x05eth5");
    let first = message(0, &[template(256, &flows), options, told, set(256, &[0, 0, 0, 5, 0, 0, 0, 1])]);
    assert_eq!(exporter.send(&first), Sampled { kept: 1, dropped: 1 });
    let kept = exporter.records();
    assert_eq!(kept[0]["attributes"]["flow.record_type"], "options");
    assert!(kept[0]["attributes"]["sampling.threshold"].is_null());

    exporter.sampler = sampler(r#"{"ratio": 1}"#);
    let second = message(2, &[set(256, &[0, 0, 0, 5, 0, 0, 0, 2])]);
    assert_eq!(exporter.send(&second), Sampled { kept: 1, dropped: 0 });
    assert_eq!(exporter.records()[0]["attributes"]["flow.in_if_name"], "eth5");
    assert_eq!(exporter.admitted.counters.lost_records, 0);
}

/// A dropped record allocates nothing, whichever policy drops it.
#[test]
fn dropped_records_allocate_nothing() {
    for policies in [
        r#"{"ratio": 0}"#,
        r#"{"key_hash": {"ratio": 0, "key": ["source", "exporter"]}}"#,
        r#"{"key_hash": {"ratio": 0, "key": "flow"}}"#,
        r#"{"always_keep": {"sources": ["198.51.100.0/24"]}}, {"ratio": 0.000001}"#,
    ] {
        let mut exporter = Exporter::new(policies);
        let _ = exporter.send(&message(0, &[template(256, &FIXED), template(257, &VARIABLE)]));
        let datagrams: Vec<_> = (0..100).map(|number| data(number * 20, 20, number % 2 == 1)).collect();
        let mut send = || {
            let sum =
                datagrams.iter().map(|datagram| exporter.send(datagram)).fold(Sampled::default(), |mut sum, more| {
                    sum += more;
                    sum
                });
            assert_eq!(sum, Sampled { kept: 0, dropped: 2_000 }, "{policies}");
        };
        // Room for what comes is made once.
        send();
        let (made, ()) = allocations(send);
        assert_eq!(made, 0, "{policies}");
    }
}

/// Deltas of kept records stand for those of the dropped ones, cumulative values and gauges for nothing but themselves.
#[test]
fn only_deltas_are_weighted() {
    for (kind, factor) in [(MetricKind::Delta, 4.0), (MetricKind::Cumulative, 1.0), (MetricKind::Gauge, 1.0)] {
        let rule = MetricRule {
            elements: vec![ElementRef::Name("octetDeltaCount".to_owned())],
            kind,
            name: None,
            keys: Vec::new(),
        };
        let rules = MetricRules::new(&[rule], U64Overflow::Saturate).expect("good rules");
        let mut exporter = Exporter::new(r#"{"ratio": 0.25}"#);
        let _ = exporter.send(&message(0, &[template(256, &FIXED)]));
        let mut kept: Vec<f64> = Vec::new();
        for sequence in (0..1_000).step_by(50) {
            let _ = exporter.send(&data(sequence, 50, false));
        }
        let batch = std::mem::take(&mut exporter.batch);
        let mut copy = Exporter::new(r#"{"ratio": 0.25}"#);
        let _ = copy.send(&message(0, &[template(256, &FIXED)]));
        (0..1_000).step_by(50).for_each(|sequence| {
            let _ = copy.send(&data(sequence, 50, false));
        });
        kept.extend(copy.records().iter().map(|record| octets(record) as f64));
        let mut values = Vec::new();
        for records in FlowMetricsJob::new(batch, rules.into()).run().expect("decoded") {
            json::objects(&records, |object| values.push(object["value"].as_f64().expect("a value")))
                .expect("readable");
        }
        assert!((200..300).contains(&kept.len()), "{}", kept.len());
        assert_eq!(values, kept.iter().map(|octets| octets * factor).collect::<Vec<_>>(), "{kind:?}");
    }
}
