//! Which policy decides, what it decides, and how it is counted.

use super::*;

const DROP: &str = "ratio";

/// The decision and its threshold: `drop <reason>` or `keep <th>`.
fn told(sampler: &mut Sampler, text: &str) -> String {
    match sampler.decide(&message(text), 0) {
        Decision::Keep { weight } => format!("keep {}", sampler.weight(weight).text()),
        Decision::Drop { reason } => format!("drop {}", reason.name()),
    }
}

/// Severity, names and sources that are always kept.
#[test]
fn always_keep() {
    let list = json!({"severity": "err", "hosts": ["db01"], "apps": ["sshd"], "sources": ["192.0.2.0/24", "::1"]});
    let mut sampler = sampler(json!([{"always_keep": list}, {DROP: 0}]));
    for (text, kept) in [
        ("<8>x", true),
        ("<11>x", true),
        ("<12>x", false),
        ("<191>x", false),
        ("<192>x", false),
        ("x", false),
        ("<14>Nov 30 10:00:00 db01 app: x", true),
        ("<14>Nov 30 10:00:00 db02 app: x", false),
        ("<14>1 - x sshd - - -", true),
    ] {
        assert_eq!(told(&mut sampler, text), if kept { "keep 0" } else { "drop ratio" }, "{text}");
    }
    for (source, kept) in [("192.0.2.77", true), ("::ffff:192.0.2.77", true), ("192.0.3.1", false), ("::1", true)] {
        let facts = SyslogMessage { message: b"<14>x", source: source.parse().ok() };
        assert_eq!(matches!(sampler.decide(&facts, 0), Decision::Keep { .. }), kept, "{source}");
    }
}

/// What the sampled flag does, and when its threshold is a weight.
#[test]
fn trace_flag() {
    let id = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
    let [sampled, unsampled] = ["01", "00"].map(|flags| format!("traceparent=00-{id}-{flags} tracestate=ot=th:c "));
    let malformed = format!("traceparent=00-{}-01", id.to_uppercase());
    for (mode, expected) in [
        ("drop", ["keep c", "drop trace_flag", "drop ratio"]),
        ("keep", ["keep 0", "keep 0", "drop ratio"]),
        ("pass", ["keep 0", "drop ratio", "drop ratio"]),
    ] {
        let mut sampler = sampler(json!([{"trace_flag": {"unsampled": mode}}, {DROP: 0}]));
        let found = [&sampled, &unsampled, &malformed].map(|text| told(&mut sampler, text));
        assert_eq!(found, expected, "{mode}");
    }
}

/// The rule of OpenTelemetry on given numbers: ratio, randomness, threshold that came, and the outcome.
#[test]
fn trace_ratio_follows_the_rule() {
    for (ratio, trace_end, state, incoming, expected) in [
        (1.0, "00000000000000", "", "equalize", "keep 0"),
        (0.5, "7fffffffffffff", "", "equalize", "drop trace_ratio"),
        (0.5, "80000000000000", "", "equalize", "keep 8"),
        (0.25, "bfffffffffffff", "", "equalize", "drop trace_ratio"),
        (0.25, "c0000000000000", "", "equalize", "keep c"),
        (0.1, "e6666666666665", "", "equalize", "drop trace_ratio"),
        (0.1, "e6666666666666", "", "equalize", "keep e6666666666666"),
        // Explicit randomness goes before the trace id.
        (0.5, "00000000000000", "rv:9b8233f7e3a151", "equalize", "keep 8"),
        (0.5, "ffffffffffffff", "rv:1b8233f7e3a151", "equalize", "drop trace_ratio"),
        // The higher threshold counts.
        (0.5, "d0000000000000", "th:c", "equalize", "keep c"),
        (0.5, "d0000000000000", "th:c", "ignore", "keep 8"),
        (0.25, "d0000000000000", "th:8", "equalize", "keep c"),
        (0.25, "b0000000000000", "th:8", "equalize", "drop trace_ratio"),
        (0.5, "d0000000000000", "th:8", "equalize", "keep 8"),
        // A threshold that the trace does not pass says nothing.
        (0.5, "a0000000000000", "th:c", "equalize", "keep 8"),
        (0.0, "ffffffffffffff", "", "equalize", "drop trace_ratio"),
    ] {
        let mut sampler = sampler(json!([{"trace_ratio": {"ratio": ratio, "incoming": incoming}}]));
        let text = format!("traceparent=00-0123456789abcdef55{trace_end}-00f067aa0ba902b7-01 tracestate=ot={state} x");
        assert_eq!(told(&mut sampler, &text), expected, "{ratio} {text}");
    }
}

/// The first policy that applies decides; who decided is counted, and nothing else is.
#[test]
fn first_match_wins() {
    let mut sampler = sampler(json!([
        {"always_keep": {"severity": "err"}},
        {"trace_flag": {"unsampled": "pass"}},
        {"trace_ratio": 0},
        {"key_hash": {"ratio": 0, "key": "host"}},
    ]));
    let unsampled = traceparent(1, false);
    for (text, expected) in [
        (format!("<11>1 - host - - - - {unsampled}"), "keep 0"),
        (format!("<14>1 - host - - - - {}", traceparent(1, true)), "keep 0"),
        (format!("<14>1 - host - - - - {unsampled}"), "drop trace_ratio"),
        ("<14>1 - host - - - - text".to_owned(), "drop key_hash"),
        ("<14>text".to_owned(), "keep 0"),
    ] {
        assert_eq!(told(&mut sampler, &text), expected, "{text}");
    }
    let counts = |kept, dropped| PolicyCounts { kept, dropped, capped: 0 };
    let expected = [
        ("always_keep", counts(1, 0)),
        ("trace_flag", counts(1, 0)),
        ("trace_ratio", counts(0, 1)),
        ("key_hash", counts(0, 1)),
    ];
    assert_eq!(sampler.policies().collect::<Vec<_>>(), expected);
    assert_eq!(sampler.undecided(), 1);
    assert_eq!(sampler.counts(), Counts { seen: 5, kept: 3, dropped: [0, 0, 1, 1, 0, 0], ..Counts::default() });
}

/// Many records at once are decided on as one by one, whatever the sizes of the batches.
#[test]
fn runs_equal_single_decisions() {
    let record = FlowRecord { exporter: "192.0.2.9".parse().ok(), domain: 1, flow: Flow::default() };
    for policies in [
        json!([{"ratio": 0}]),
        json!([{"ratio": 1}]),
        json!([{"ratio": 0.07}]),
        json!([{"ratio": {"ratio": 0.3, "draw": "systematic"}}]),
        json!([{"always_keep": {"sources": ["192.0.2.9"]}}, {"ratio": 0.1}]),
        json!([{"always_keep": {"sources": ["192.0.2.1"]}}, {"ratio": 0.1}]),
        json!([{"key_hash": {"ratio": 0.5, "key": "exporter"}}]),
        json!([{"rate_limit": {"per_second": 300, "hard_cap": 400}}]),
    ] {
        let config = json!({"seed": 3, "policies": policies});
        let mut single = sampler_of(config.clone(), Input::Flows, 5);
        let mut batched = sampler_of(config, Input::Flows, 5);
        assert!(!single.varies_by_record());
        let mut left_over = 0;
        for batch in 0..3000u64 {
            let (size, now) = (1 + scattered(batch) % 60, batch * 7_000_000);
            let expected: Vec<f64> = (0..size)
                .map(|_| {
                    let decision = single.decide(&record, now);
                    weight(&single, decision)
                })
                .collect();
            let mut found = Vec::new();
            while found.len() < expected.len() {
                let most = size - found.len() as u64;
                let run = batched.run(&record, most, now);
                assert!(0 < run.records && run.records <= most);
                found.extend((0..run.records).map(|_| weight(&batched, run.decision)));
            }
            assert_eq!(found, expected, "{policies}, batch {batch}");
            left_over += found.len() as u64;
        }
        assert_eq!(single.counts(), batched.counts());
        assert_eq!(batched.counts().seen, left_over);
        assert_eq!(batched.run(&record, 0, 0).records, 1);
    }
    // At ratio 0 everything goes in one step.
    let mut none = sampler_of(json!({"policies": [{"ratio": 0}]}), Input::Flows, 0);
    let dropped = Decision::Drop { reason: DropReason::Ratio };
    assert_eq!(none.run(&record, u64::MAX, 0), Run { records: u64::MAX, decision: dropped });
}

/// Facts that nobody asks for are not looked at, and a trace that is not there is looked for once.
#[test]
fn facts_are_lazy() {
    use std::cell::Cell;

    #[derive(Default)]
    struct Watched {
        names: Cell<u32>,
        traces: Cell<u32>,
    }

    impl Facts for Watched {
        fn severity(&self) -> Option<u8> {
            Some(6)
        }

        fn names(&self) -> crate::Names<'_> {
            self.names.set(self.names.get() + 1);
            crate::Names::default()
        }

        fn trace_parent(&self) -> Option<crate::TraceParent> {
            self.traces.set(self.traces.get() + 1);
            None
        }
    }

    let traced = json!([{"trace_flag": {"unsampled": "pass"}}, {"trace_ratio": 0.5}]);
    let named = json!([{"always_keep": {"hosts": ["a"]}}, {"key_hash": {"ratio": 0.5, "key": "app"}}]);
    for (policies, names, traces) in [
        (json!([{"always_keep": {"severity": "info", "hosts": ["a"]}}, {"trace_ratio": 0.5}]), 0, 0),
        (json!([{"ratio": 0.5}]), 0, 0),
        (traced, 0, 1),
        (named, 2, 0),
    ] {
        let watched = Watched::default();
        let _decision = sampler(policies.clone()).decide(&watched, 0);
        assert_eq!((watched.names.get(), watched.traces.get()), (names, traces), "{policies}");
    }
}

/// Which samplers look at each record of a datagram.
#[test]
fn varying_facts() {
    let varies = |policies| sampler_of(json!({"policies": policies}), Input::Flows, 0).varies_by_record();
    assert!(varies(json!([{"key_hash": {"ratio": 0.5, "key": "flow"}}])));
    assert!(varies(json!([{"key_hash": {"ratio": 0.5, "key": ["exporter", "flow"]}}, {"ratio": 0.1}])));
    assert!(!varies(json!([{"key_hash": {"ratio": 0.5, "key": ["exporter", "source"]}}, {"ratio": 0.1}])));
    assert!(sampler(json!([{"always_keep": {"severity": "err"}}])).varies_by_record());
}
