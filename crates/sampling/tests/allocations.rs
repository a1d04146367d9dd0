//! Decisions take no memory.

#[path = "../../columns/tests/common/counting.rs"]
mod counting;

use catchment_sampling::{Decision, FlowRecord, Input, Sampler, SamplingConfig, SyslogMessage};
use serde_json::json;

use counting::allocations;

fn sampler(policies: serde_json::Value, input: Input) -> Sampler {
    let config: SamplingConfig = serde_json::from_value(json!({"policies": policies})).expect("settings");
    config.compile(input, 0).expect("a sampler")
}

/// A decision of any policy, to keep or to drop, allocates nothing once its weight is known.
#[test]
fn decisions_do_not_allocate() {
    let parent = |flags: &str| format!("traceparent=\"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}\"");
    let state = "tracestate=\"ot=th:8;rv:9b8233f7e3a151\"";
    let messages: Vec<String> = (0..5)
        .flat_map(|number| {
            [
                format!("<14>1 2026-11-30T10:00:00Z host{number} app - - [t@1 {} {state}] text", parent("01")),
                format!("<14>1 2026-11-30T10:00:00Z host{number} app - - [t@1 {}] text", parent("00")),
                format!("<11>Nov 30 10:00:00 host{number} app[{number}]: text"),
                format!("CEF:0|vendor{number}|product|1|2|3|4|act=drop {}", parent("00")),
            ]
        })
        .collect();
    for policies in [
        json!([{"always_keep": {"severity": "err", "apps": ["x"]}}, {"ratio": {"ratio": 0.1, "draw": "systematic"}}]),
        json!([{"trace_flag": {"unsampled": "drop"}}, {"key_hash": {"ratio": 0.1, "key": ["host", "app"]}}]),
        json!([{"trace_ratio": 0.6}, {"ratio": 0.5}]),
        json!([{"rate_limit": 1000}]),
    ] {
        let mut sampler = sampler(policies.clone(), Input::Syslog);
        let mut kept = 0;
        for round in 0..5000 {
            // The rate is constant, so that weights repeat.
            let now = round * 4_000_000;
            let (made, ()) = allocations(|| {
                for message in &messages {
                    let facts = SyslogMessage { message: message.as_bytes(), source: None };
                    kept += u64::from(matches!(sampler.decide(&facts, now), Decision::Keep { .. }));
                }
            });
            assert!(round < 4000 || made == 0, "{policies}, round {round}");
        }
        let counts = sampler.counts();
        assert_eq!((counts.seen, counts.kept), (5000 * 20, kept));
        assert!(0 < kept && kept < counts.seen, "{policies}: {kept}");
    }
}

/// Nor does a run over many records of flows.
#[test]
fn runs_do_not_allocate() {
    let mut sampler = sampler(json!([{"always_keep": {"sources": ["192.0.2.1"]}}, {"ratio": 0.01}]), Input::Flows);
    let facts = FlowRecord { exporter: "192.0.2.2".parse().ok(), ..FlowRecord::default() };
    let (made, ()) = allocations(|| {
        let mut left = 1_000_000;
        while left > 0 {
            left -= sampler.run(&facts, left, 0).records;
        }
    });
    assert_eq!(made, 0);
    assert_eq!(sampler.counts().seen, 1_000_000);
}
