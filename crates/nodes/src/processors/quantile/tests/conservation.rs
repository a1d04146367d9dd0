//! Whatever comes: every item has one fate, every window comes once, every input ends once.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use catchment_columns::OtapArrowRecords;
use catchment_columns::quantile::{Observations, Query, Reader, ValueSource};
use otel_arrow_dfe_config::SignalType;
use otel_arrow_dfe_pdata_codec::OtapPayload;
use proptest::prelude::*;
use serde_json::json;

use super::harness::{Node, Outcome, set_clock};
use super::node::{Item, config, logs, run};
use super::{NOON, SECOND};

/// Counts of windows: end of the window and count, with the series.
fn counts(payload: &OtapPayload) -> Vec<(i64, u64, String)> {
    let Some(records) = payload.otap_ref() else { return Vec::new() };
    if !matches!(records, OtapArrowRecords::Metrics(_)) {
        return Vec::new();
    }
    let query = Query::new(ValueSource::Metric { names: vec!["m.count".to_owned()] });
    let query = query.grouped_by(vec!["g".parse().expect("a path")]);
    let (mut reader, mut out) = (Reader::new(query, 100), Observations::default());
    reader.read_records(records, 0, &mut out).expect("readable");
    let series = |at: usize| format!("{:?}", reader.series(out.series[out.groups[at] as usize]));
    (0..out.values.len()).map(|at| (out.times[at], out.values[at] as u64, series(at))).collect()
}

pub(super) fn items_of(payload: &OtapPayload) -> u64 {
    payload.clone().num_items() as u64
}

#[derive(Debug, Clone)]
enum Step {
    Input(Vec<Item>, bool),
    Settle(Outcome),
    /// Seconds that the clock goes on, or back.
    Clock(i64),
    Tick,
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop_oneof![
        6 => prop::sample::select(vec!["1", "2.5", "-7", "0"]).prop_map(Some),
        1 => Just(Some("many")),
        1 => Just(None),
    ];
    // Late, in time, and beyond what is allowed.
    let second = prop_oneof![8 => 0i64..60, 1 => -300i64..0, 1 => 500i64..1_000];
    let items = prop::collection::vec((second, value, 0u8..4), 1..30);
    let outcome = prop_oneof![
        4 => Just(Outcome::Acknowledged),
        2 => Just(Outcome::RefusedForNow),
        1 => Just(Outcome::RefusedForGood),
    ];
    prop_oneof![
        4 => (items, any::<bool>()).prop_map(|(items, as_records)| Step::Input(items, as_records)),
        4 => outcome.prop_map(Step::Settle),
        1 => (-120i64..120).prop_map(Step::Clock),
        1 => Just(Step::Tick),
    ]
}

/// What must hold at the end of any run, `received` items and `inputs` later.
pub(super) fn check(node: &Node, received: u64, inputs: u64, late_port: bool, by_count: bool) {
    let totals = node.totals().clone();
    assert_eq!(totals.received, received);
    let dropped = totals.no_value + totals.not_a_number + totals.cumulative + totals.other_points;
    let refused = totals.late + totals.future + totals.full + totals.no_room + totals.malformed;
    assert_eq!(totals.received, totals.used + totals.forwarded + dropped + refused, "{totals:?}");
    let (mut windows, mut counted, mut forwarded, mut late, mut points) = (HashMap::new(), 0, 0, 0, 0);
    for sent in node.sent.values() {
        match (sent.late, sent.payload.signal_type()) {
            (true, _) => late += items_of(&sent.payload),
            (false, SignalType::Logs) => forwarded += items_of(&sent.payload),
            (false, _) => points += items_of(&sent.payload),
        }
        for (end, count, series) in counts(&sent.payload) {
            counted += count;
            let earlier = windows.insert((end, series.clone()), count);
            // Windows of a number of items may end at the same time.
            assert!(earlier.is_none() || by_count, "{series} at {end} came twice");
        }
    }
    assert_eq!(counted, totals.used, "what is used is in the windows, once");
    assert_eq!(points, totals.points);
    assert_eq!(forwarded, totals.forwarded + totals.copied);
    assert_eq!(late, totals.late_sent);
    assert_eq!(totals.late_sent, if late_port { totals.late } else { 0 });
    for input in 1..=inputs {
        let outcomes = node.outcomes.get(&input).map_or(0, Vec::len);
        assert_eq!(outcomes, 1, "input {input}: {:?}", node.outcomes.get(&input));
    }
    let again: usize = node.sent.values().map(|sent| sent.times - 1).sum();
    assert_eq!(again as u64, totals.retried);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whatever comes and however the neighbours and the clock behave, and whenever the node is shut down.
    #[test]
    fn nothing_is_lost_or_told_twice(
        steps in prop::collection::vec(step(), 1..30),
        forward in prop::sample::select(vec!["none", "rest", "all"]),
        late_port in any::<bool>(),
        by_count in any::<bool>(),
        exact in prop::option::of(prop::sample::select(vec!["switch_to_kll", "drop_new", "fail"])),
        on_accept in any::<bool>(),
    ) {
        let late_port = late_port && !by_count;
        let mut keys = vec![
            ("forward", json!(forward)),
            ("late", json!(if late_port { "side_output" } else { "drop" })),
            ("ack", json!(if on_accept { "on_accept" } else { "on_emit" })),
            ("max_series", json!(3)),
        ];
        if by_count {
            keys.push(("window", json!({"count": 5})));
        }
        if let Some(when_full) = exact {
            keys.extend([
                ("method", json!("exact")), ("max_values_per_window", json!(6)), ("when_full", json!(when_full)),
            ]);
        }
        let config = config(&keys);
        run(async || {
            let mut now = NOON + 60 * SECOND;
            let mut later = Instant::now();
            set_clock(now);
            let mut node = Node::new(config, late_port);
            let (mut received, mut inputs) = (0, 0);
            for step in steps {
                match step {
                    Step::Input(items, as_records) => {
                        received += items.len() as u64;
                        inputs = node.input(logs(&items, as_records)).await;
                    }
                    Step::Settle(outcome) => {
                        let _ = node.settle(outcome).await;
                    }
                    Step::Clock(seconds) => {
                        now += seconds * SECOND;
                        set_clock(now);
                    }
                    Step::Tick => {
                        later += Duration::from_secs(100);
                        node.tick(later).await;
                    }
                }
            }
            node.shut_down().await;
            check(&node, received, inputs, late_port, by_count);
        });
    }
}
