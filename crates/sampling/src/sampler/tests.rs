use std::collections::{BTreeSet, HashMap};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{Flow, FlowRecord, Input, SamplingConfig, SyslogMessage};

mod ahead;
mod bias;
mod chain;

fn sampler_of(config: serde_json::Value, input: Input, instance: u64) -> Sampler {
    let config: SamplingConfig = serde_json::from_value(config).expect("settings");
    config.compile(input, instance).expect("a sampler")
}

fn sampler(policies: serde_json::Value) -> Sampler {
    sampler_of(json!({"seed": 42, "policies": policies}), Input::Syslog, 0)
}

fn message(text: &str) -> SyslogMessage<'_> {
    SyslogMessage { message: text.as_bytes(), source: None }
}

/// Weight of a decision; 0 for a drop.
fn weight(sampler: &Sampler, decision: Decision) -> f64 {
    match decision {
        Decision::Keep { weight } => sampler.weight(weight).adjusted_count(),
        Decision::Drop { .. } => 0.0,
    }
}

/// Numbers that are like random ones, without a seed of the sampler in them.
fn scattered(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

fn traceparent(trace: u64, sampled: bool) -> String {
    let (high, low) = (scattered(trace), scattered(!trace));
    format!("traceparent=00-{high:016x}{low:016x}-00f067aa0ba902b7-0{}", u8::from(sampled))
}

/// Which of some keys are kept at a ratio.
fn kept_keys(ratio: f64, instance: u64, order: impl Iterator<Item = u64>) -> BTreeSet<u64> {
    let policies = json!([{"key_hash": {"ratio": ratio, "key": ["app", "host"]}}]);
    let mut sampler = sampler_of(json!({"seed": 42, "policies": policies}), Input::Syslog, instance);
    order
        .filter(|key| {
            let line = format!("<14>1 - host{} app{} - - - text", key / 7, key % 7);
            matches!(sampler.decide(&message(&line), 0), Decision::Keep { .. })
        })
        .collect()
}

/// What a key decides does not depend on order or instance, and lower ratios keep a part of what higher ones keep.
#[test]
fn keys_are_consistent_and_nested() {
    let all = kept_keys(1.0, 0, 0..5000);
    assert_eq!(all.len(), 5000);
    let mut larger = all;
    for ratio in [0.9, 0.5, 0.25, 0.1, 0.01, 0.0] {
        let kept = kept_keys(ratio, 0, 0..5000);
        assert_eq!(kept, kept_keys(ratio, 17, (0..5000).rev()));
        assert!(kept.is_subset(&larger) && kept.len() < larger.len(), "{ratio}");
        let deviation = (5000.0 * ratio * (1.0 - ratio)).sqrt();
        assert!((kept.len() as f64 - 5000.0 * ratio).abs() <= 4.0 * deviation, "{ratio}: {}", kept.len());
        larger = kept;
    }
}

/// The hash is a specified one, so that another program, version or machine gives the same answer: here the C library.
#[test]
fn key_hash_is_pinned() {
    let key = crate::key::Key::new(&[crate::config::KeyField::Host, crate::config::KeyField::App]);
    let host_app = key.hash(7, &message("<14>1 - web01 sshd - - - text")).expect("a key").get();
    assert_eq!(host_app, 0xd6_0977_ea90_96d7);
    // The same names in another format are the same key; a missing name is not an empty record.
    assert_eq!(key.hash(7, &message("<14>Nov 30 10:00:00 web01 sshd[1]: x")).map(|hash| hash.get()), Some(host_app));
    assert_eq!(key.hash(7, &message("<14>1 - - - - - - text")), None);
    let host = key.hash(7, &message("<14>1 - sshd - - - - text"));
    let app = key.hash(7, &message("<14>1 - - sshd - - - text"));
    assert!(host.is_some() && app.is_some() && host != app);
}

/// A key of a flow is that of its fields: in whatever size ports come, and in whatever form an address is mapped.
#[test]
fn keys_of_flows() {
    let key = crate::key::Key::new(&[crate::config::KeyField::Flow, crate::config::KeyField::Exporter]);
    let flow = Flow {
        source_address: &[192, 0, 2, 1],
        destination_address: &[192, 0, 2, 2],
        source_port: &[0, 80],
        destination_port: &[0xc3, 0x50],
        protocol: &[6],
    };
    let record = FlowRecord { exporter: "192.0.2.9".parse().ok(), domain: 3, flow };
    let hash = |record: FlowRecord<'_>| key.hash(0, &record).expect("a key");
    let same = [
        FlowRecord { exporter: "::ffff:192.0.2.9".parse().ok(), ..record },
        FlowRecord { flow: Flow { source_port: &[80], protocol: &[0, 6], ..flow }, ..record },
    ];
    assert!(same.into_iter().all(|same| hash(same) == hash(record)));
    assert_eq!(hash(record).get(), 0x91_2dd5_ed1e_26ba, "as the C library");
    let others = [
        FlowRecord { domain: 4, ..record },
        FlowRecord { exporter: None, ..record },
        FlowRecord {
            flow: Flow { source_address: &[192, 0, 2, 2], destination_address: &[192, 0, 2, 1], ..flow },
            ..record
        },
        FlowRecord { flow: Flow { source_port: &[0xc3, 0x50], destination_port: &[0, 80], ..flow }, ..record },
        FlowRecord { flow: Flow { protocol: &[17], ..flow }, ..record },
        FlowRecord { flow: Flow::default(), ..record },
    ];
    let hashes: BTreeSet<_> = others.into_iter().chain([record]).map(hash).collect();
    assert_eq!(hashes.len(), others.len() + 1);
    let nothing = FlowRecord { exporter: None, domain: 3, flow: Flow::default() };
    assert_eq!(key.hash(0, &nothing), None, "a domain alone is no key");
}

proptest! {
    /// Whatever the bytes are, every record is counted once, and a weight is never below 1.
    #[test]
    fn any_bytes_are_counted(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..40),
        prefix in "(<1[0-9]>1 - h a - - - |CEF:0\\|v\\|p\\||traceparent=00-[0-9a-f]{32}-[0-9a-f]{16}-0[0-3] tracestate=ot=th:)?",
    ) {
        let mut sampler = sampler(json!([
            {"always_keep": {"severity": "warning", "hosts": ["h"], "sources": ["192.0.2.0/24"]}},
            {"trace_flag": {"unsampled": "drop"}},
            {"trace_ratio": 0.5},
            {"key_hash": {"ratio": 0.5, "key": ["host", "app", "source"]}},
            {"rate_limit": {"per_second": 5, "hard_cap": 10}},
        ]));
        let mut kept = 0;
        for (number, rest) in messages.iter().enumerate() {
            let bytes = [prefix.as_bytes(), rest].concat();
            let facts = SyslogMessage { message: &bytes, source: "198.51.100.1".parse().ok().filter(|_| number % 2 == 0) };
            let decision = sampler.decide(&facts, number as u64 * 1_000_000);
            let weight = weight(&sampler, decision);
            prop_assert!(weight == 0.0 || weight >= 1.0);
            kept += u64::from(weight > 0.0);
        }
        let counts = sampler.counts();
        prop_assert_eq!(counts.seen, messages.len() as u64);
        prop_assert_eq!(counts.kept, kept);
        prop_assert_eq!(counts.seen, counts.kept + counts.dropped.iter().sum::<u64>());
    }
}
