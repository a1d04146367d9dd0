//! Sketches between stages: what counts, who hears of it when, and what is said of windows without anything.

use std::time::Instant;

use catchment_columns::quantile::KeyValue;
use catchment_columns::quantile::carrier::{self, MessageIdentity, SketchMessage, SketchType};
use catchment_quantile::SortedRun;
use otel_arrow_dfe_pdata_codec::OtapPayload;
use serde_json::{Value, json};

use super::super::merge::MergeConfig;
use super::harness::{Node, Outcome, Sent, set_clock};
use super::node::{config, logs, run};
use super::{NOON, SECOND};

/// What a start of a source has observed in a window of ten seconds from noon.
fn message(source: &str, instance: u128, window: i64, values: &[f64]) -> SketchMessage {
    SketchMessage {
        metric: "m".into(),
        unit: String::new(),
        series: vec![("g".into(), KeyValue::Text("x".into()))],
        start_unix_nano: NOON + window * 10 * SECOND,
        end_unix_nano: NOON + (window + 1) * 10 * SECOND,
        sketch: SketchType::Run,
        envelope: SortedRun::from_values(values).to_bytes(),
        count: values.len() as u64,
        min: values.iter().copied().min_by(f64::total_cmp),
        max: values.iter().copied().max_by(f64::total_cmp),
        sum: Some(values.iter().sum()),
        dropped: Vec::new(),
        sources: None,
        switched: false,
        identity: Some(MessageIdentity {
            source: source.into(),
            instance,
            part: 0,
            parts: 1,
            sequence: window.unsigned_abs() + 1,
        }),
    }
}

fn payload(message: &SketchMessage) -> OtapPayload {
    carrier::encode(std::slice::from_ref(message)).expect("fits").into()
}

/// A merge that knows the time.
fn merge(keys: &[(&str, Value)]) -> Node<super::super::merge::MergeProcessor> {
    let mut config = json!({"stage": "merge", "source": "m", "expected_sources": 2, "max_wait": "30s"});
    keys.iter().for_each(|(key, value)| config[*key] = value.clone());
    set_clock(NOON + 60 * SECOND);
    Node::merging(MergeConfig::parse(&config).expect("valid"))
}

/// The messages of an output.
fn messages(sent: &Sent) -> Vec<SketchMessage> {
    let records = sent.payload.otap_ref().expect("records");
    let messages = carrier::decode(records).expect("fits");
    messages.into_iter().map(|message| message.expect("a message")).collect()
}

/// Observations in all that was sent, and how many sources are in it if some are missing.
fn counts(node: &Node<super::super::merge::MergeProcessor>) -> Vec<(u64, Option<(u32, u32)>)> {
    let count = |sent| {
        let messages = messages(sent);
        (messages.iter().map(|message| message.count).sum(), messages[0].sources)
    };
    node.sent.values().map(count).collect()
}

/// Who sends again what has come already hears of it when the window is out and taken, or refused, like who sent it first;
/// and so does who comes too late. Afterwards, at once.
#[test]
fn repeats_wait_for_their_window() {
    run(async || {
        for outcome in [Outcome::Acknowledged, Outcome::RefusedForGood] {
            let mut node = merge(&[]);
            let [a, b] = ["a", "b"].map(|source| payload(&message(source, 1, 0, &[1.0, 2.0])));
            let late = payload(&message("c", 1, 0, &[3.0]));
            let mut inputs = vec![node.input(a.clone()).await, node.input(a.clone()).await];
            assert!(node.sent.is_empty(), "the other source is missing");
            for input in [&b, &a, &b, &late] {
                inputs.push(node.input(input.clone()).await);
            }
            assert_eq!((node.due.len(), node.outcomes.len()), (1, 0), "nobody knows before the output is taken");
            assert!(node.settle(outcome).await);
            for input in inputs {
                assert_eq!(node.outcomes[&input], [outcome]);
            }
            for again in [a, late] {
                let again = node.input(again).await;
                assert_eq!(node.outcomes[&again], [Outcome::Acknowledged]);
            }
            let totals = node.totals();
            assert_eq!((totals.exchange.duplicates, totals.exchange.late, totals.merged()), (4, 2, 2));
            assert_eq!((totals.received(), totals.inputs_held), (8, 0));
        }
    });
}

/// A repeat in an output that goes out in several requests waits for the last of them.
#[test]
fn repeats_wait_for_all_outputs() {
    run(async || {
        let mut node = merge(&[("expected_sources", json!(1))]);
        let many: Vec<_> = (0..2_000)
            .map(|part| {
                let mut message = message("a", 1, 0, &[f64::from(part)]);
                message.series = vec![("g".into(), KeyValue::Int(part.into()))];
                let identity = message.identity.as_mut().expect("ours");
                (identity.part, identity.parts, identity.sequence) = (part, 2_000, u64::from(part) + 1);
                message
            })
            .collect();
        let all: OtapPayload = carrier::encode(&many).expect("fits").into();
        let (first, repeat) = (node.input(all.clone()).await, node.input(all).await);
        assert_eq!(node.due.len(), 2, "two requests");
        assert!(node.settle(Outcome::Acknowledged).await);
        assert!(node.outcomes.is_empty());
        assert!(node.settle(Outcome::Acknowledged).await);
        for input in [first, repeat] {
            assert_eq!(node.outcomes[&input], [Outcome::Acknowledged]);
        }
        assert_eq!(node.totals().inputs_held, 0);
    });
}

/// What a restarted source delivers takes the place of what it had delivered, or is added; which, is counted.
#[test]
fn restarted_sources_replace_or_add() {
    run(async || {
        for (setting, count, replaced) in [("replace", 4, 1), ("add", 6, 0)] {
            let mut node = merge(&[("restarted_source", json!(setting))]);
            let old = node.input(payload(&message("a", 1, 0, &[1.0, 2.0]))).await;
            let new = node.input(payload(&message("a", 2, 0, &[1.0, 2.0, 3.0]))).await;
            let other = node.input(payload(&message("b", 1, 0, &[9.0]))).await;
            assert!(node.settle(Outcome::Acknowledged).await);
            let of_old = if replaced == 1 { Outcome::RefusedForGood } else { Outcome::Acknowledged };
            assert_eq!(
                [old, new, other].map(|input| node.outcomes[&input][0]),
                [of_old, Outcome::Acknowledged, Outcome::Acknowledged]
            );
            assert_eq!(counts(&node), [(count, None)]);
            let totals = node.totals();
            assert_eq!((totals.exchange.replaced, totals.merged(), totals.received()), (replaced, 3 - replaced, 3));
        }
    });
}

/// With `incomplete: emit` a window goes out without the sources that are missing after the wait, and says so.
#[test]
fn incomplete_windows_are_sent() {
    run(async || {
        let mut node = merge(&[]);
        let input = node.input(payload(&message("a", 1, 0, &[1.0, 2.0]))).await;
        set_clock(NOON + 89 * SECOND);
        node.tick(Instant::now()).await;
        assert!(node.sent.is_empty());
        set_clock(NOON + 90 * SECOND);
        node.tick(Instant::now()).await;
        assert_eq!(counts(&node), [(2, Some((1, 2)))]);
        assert!(node.outcomes.is_empty());
        assert!(node.settle(Outcome::Acknowledged).await);
        assert_eq!(node.outcomes[&input], [Outcome::Acknowledged]);
        let _ = node.input(payload(&message("b", 1, 0, &[3.0]))).await;
        let totals = node.totals();
        assert_eq!((totals.windows_incomplete, totals.merged(), totals.incomplete, totals.exchange.late), (1, 1, 0, 1));
    });
}

/// With `incomplete: drop` it is dropped and counted, and whoever sent a part of it is not asked to send again.
#[test]
fn incomplete_windows_are_dropped() {
    run(async || {
        let mut node = merge(&[("incomplete", json!("drop"))]);
        let input = node.input(payload(&message("a", 1, 0, &[1.0, 2.0]))).await;
        set_clock(NOON + 90 * SECOND);
        node.tick(Instant::now()).await;
        assert!(node.sent.is_empty());
        assert_eq!(node.outcomes[&input], [Outcome::Acknowledged]);
        for source in ["a", "b"] {
            let _ = node.input(payload(&message(source, 1, 1, &[3.0]))).await;
        }
        assert_eq!(counts(&node), [(2, None)], "the next window is complete");
        let totals = node.totals();
        assert_eq!((totals.windows_incomplete, totals.merged(), totals.incomplete), (1, 2, 1));
        assert_eq!(totals.received(), 3);
    });
}

/// When it ends, a window that sources are missing in goes back to its senders, and is sent if nobody would send it again.
#[test]
fn incomplete_windows_go_back_at_the_end() {
    run(async || {
        for (ack, sent, waiting) in [("on_emit", 0, 1), ("on_accept", 1, 0)] {
            let mut node = merge(&[("ack", json!(ack))]);
            let input = node.input(payload(&message("a", 1, 0, &[1.0, 2.0]))).await;
            node.shut_down().await;
            let outcome = if sent == 0 { Outcome::RefusedForNow } else { Outcome::Acknowledged };
            assert_eq!((node.sent.len(), &node.outcomes[&input]), (sent, &vec![outcome]));
            let totals = node.totals();
            assert_eq!((totals.exchange.waiting, totals.windows_incomplete), (waiting, sent as u64));
        }
    });
}

/// A window in which no source has anything is complete without a wait, and passed on as such.
#[test]
fn nothing_is_passed_on() {
    run(async || {
        let mut node = merge(&[]);
        for source in ["a", "b"] {
            let nothing = SketchMessage { series: Vec::new(), sum: None, ..message(source, 1, 0, &[]) };
            let _ = node.input(payload(&nothing)).await;
        }
        let sent = messages(node.sent.values().next().expect("an output"));
        assert_eq!((sent.len(), sent[0].count, sent[0].series.len()), (1, 0, 0));
        assert_eq!((sent[0].start_unix_nano, sent[0].end_unix_nano), (NOON, NOON + 10 * SECOND));
        let mut estimate = Node::merging(
            MergeConfig::parse(&json!({"stage": "estimate", "expected_sources": ["m/0"]})).expect("valid"),
        );
        let input = estimate.input(payload(&sent[0])).await;
        assert_eq!((estimate.outcomes[&input][0], estimate.sent.len()), (Outcome::Acknowledged, 0));
        assert_eq!(estimate.totals().windows_complete, 1);
    });
}

/// Windows that a branch has told of: second of the start, and observations.
fn told(node: &Node) -> Vec<(i64, u64)> {
    let messages = node.sent.values().flat_map(messages);
    let mut told: Vec<_> = messages.map(|message| ((message.start_unix_nano - NOON) / SECOND, message.count)).collect();
    told.sort_unstable();
    told
}

/// A branch tells of windows without observations: by later observations, also by the clock, or not at all.
#[test]
fn branches_tell_of_empty_windows() {
    run(async || {
        for (setting, by_observations, by_clock) in [
            ("none", vec![(0, 1)], vec![(0, 1), (30, 1)]),
            ("watermark", vec![(0, 1), (10, 0), (20, 0)], vec![(0, 1), (10, 0), (20, 0), (30, 1)]),
            ("clock", vec![(0, 1), (10, 0), (20, 0)], vec![(0, 1), (10, 0), (20, 0), (30, 1), (40, 0), (50, 0)]),
        ] {
            set_clock(NOON);
            let mut node = Node::new(
                config(&[
                    ("stage", json!("create")),
                    ("source", json!("a")),
                    ("method", json!("exact")),
                    ("window", json!({"tumbling": "10s"})),
                    ("announce_empty", json!(setting)),
                ]),
                false,
            );
            node.tick(Instant::now()).await;
            let _ = node.input(logs(&[(1, Some("5"), 0)], false)).await;
            for second in [10, 20, 31] {
                set_clock(NOON + second * SECOND);
                node.tick(Instant::now()).await;
            }
            let _ = node.input(logs(&[(31, Some("6"), 0)], false)).await;
            assert_eq!(told(&node), by_observations, "{setting}");
            // Idle for five seconds, and over.
            for second in [45, 55, 65] {
                set_clock(NOON + second * SECOND);
                node.tick(Instant::now()).await;
            }
            assert_eq!(told(&node), by_clock, "{setting}");
            node.shut_down().await;
            assert_eq!(told(&node), by_clock, "nothing is told twice");
        }
    });
}
