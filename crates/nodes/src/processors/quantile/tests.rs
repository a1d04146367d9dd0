//! Records through a measure: every item has one fate, every observation is in one window, and exact means exact.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use catchment_columns::quantile::{Fate, KeyValue, TimeSource};
use catchment_columns::syslog::{Receipt, RowOptions, Source, SyslogBatch, SyslogJob, Transport};
use catchment_columns::{Job, OtapArrowRecords};
use catchment_quantile::accumulator::{Accumulator, AccumulatorConfig};
use catchment_quantile::window::SeriesKey;
use proptest::prelude::*;
use serde_json::json;

use super::config::Config;
use super::measure::{Closed, Measure};

const SECOND: i64 = 1_000_000_000;
/// 2026-11-30T12:00:00Z.
const NOON: i64 = 1_796_040_000 * SECOND;

fn measure(method: &str, window: &serde_json::Value) -> Measure {
    let config = Config::parse(&json!({
        "method": method, "window": window,
        "measures": [{"name": "m", "value_from": "attribute:v", "text": "number", "group_by": ["g"]}],
    }))
    .expect("valid");
    let accumulators = AccumulatorConfig::new(config.method, 1).expect("valid");
    Measure::new(0, config.measures[0].clone(), config.window, accumulators).expect("valid")
}

/// CEF records received at the given second with an extension each.
fn records(items: &[(i64, String)]) -> OtapArrowRecords {
    let source = Arc::new(Source::new(None, Transport::File, Arc::new(catchment_syslog::Zone::Utc)));
    let mut batch = SyslogBatch::new();
    for (second, extension) in items {
        let line = format!("CEF:0|v|p|1|1|n|1|{extension}");
        let time_unix_nano = NOON + second * SECOND;
        batch.push(line.as_bytes(), &source, Receipt { time_unix_nano, truncated: false });
    }
    SyslogJob::new(batch, RowOptions::default()).run().expect("decoded").remove(0)
}

fn offer(measure: &mut Measure, items: &[(i64, String)]) -> (Vec<Fate>, Vec<Closed>) {
    let offered = measure.offer(&records(items), TimeSource::Observed, NOON + 100 * SECOND).expect("readable");
    (offered.fates, offered.closed)
}

fn counted(windows: &[Closed]) -> u64 {
    windows.iter().flat_map(|window| &window.series).map(|(_, values)| values.count()).sum()
}

fn item() -> impl Strategy<Value = (i64, String)> {
    let value = prop_oneof![
        6 => (-50i32..50).prop_map(|value| format!("v={value} ")),
        1 => Just("v=many ".to_owned()),
        1 => Just("w=1 ".to_owned()),
        1 => Just("v=nan ".to_owned()),
    ];
    (0i64..40, value, 0u8..4).prop_map(|(second, value, group)| (second, format!("{value}g={group}")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever comes, late or early: one fate for each item, and what was observed is what the windows hold.
    #[test]
    fn nothing_is_lost_unseen(
        batches in prop::collection::vec(prop::collection::vec(item(), 1..40), 1..8),
        by_count in any::<bool>(),
        exact in any::<bool>(),
    ) {
        let window = if by_count { json!({"count": 7}) } else { json!({"tumbling": "5s", "allowed_lateness": "3s"}) };
        let mut measure = measure(if exact { "exact" } else { "kll" }, &window);
        let (mut fates, mut windows) = (Vec::new(), Vec::new());
        for batch in &batches {
            let (batch_fates, closed) = offer(&mut measure, batch);
            prop_assert_eq!(batch_fates.len(), batch.len());
            fates.extend(batch_fates);
            windows.extend(closed);
        }
        windows.extend(measure.flush_all());
        let observed = fates.iter().filter(|fate| **fate == Fate::Observed).count() as u64;
        prop_assert_eq!(counted(&windows), observed);
        let items: Vec<_> = batches.iter().flatten().collect();
        for (item, fate) in items.iter().zip(&fates) {
            let without = item.1.starts_with('w');
            prop_assert_eq!(without, *fate == Fate::NoValue);
            let unreadable = item.1.starts_with("v=many") || item.1.starts_with("v=nan");
            prop_assert_eq!(unreadable, *fate == Fate::NotANumber);
            prop_assert!(!by_count || *fate != Fate::Late);
        }
        if !by_count {
            let starts: HashSet<_> = windows.iter().map(|window| window.start_ns).collect();
            prop_assert_eq!(starts.len(), windows.len(), "a window is emitted once");
        }
    }

    /// In-order observations: each window's quantiles are those of its values, by nearest rank.
    #[test]
    fn exact_quantiles_are_exact(items in prop::collection::vec((0i64..20, -1000i32..1000, 0u8..2), 1..120)) {
        let mut items = items;
        items.sort_by_key(|(second, ..)| *second);
        let mut expected: HashMap<(i64, u8), Vec<f64>> = HashMap::new();
        for (second, value, group) in &items {
            expected.entry((second / 5, *group)).or_default().push(f64::from(*value));
        }
        let lines: Vec<_> = items.iter().map(|(second, value, group)| (*second, format!("v={value} g={group}"))).collect();
        let mut measure = measure("exact", &json!({"tumbling": "5s"}));
        let mut windows = Vec::new();
        for chunk in lines.chunks(17) {
            windows.extend(offer(&mut measure, chunk).1);
        }
        windows.extend(measure.flush_all());
        let mut seen = 0;
        for window in &windows {
            for (series, values) in &window.series {
                let SeriesKey::Series(key) = series else { panic!("no overflow here") };
                let KeyValue::Text(group) = &key[0] else { panic!("text group") };
                let start = (window.start_ns - NOON) / (5 * SECOND);
                let mut sorted = expected[&(start, group.parse().expect("number"))].clone();
                sorted.sort_by(f64::total_cmp);
                for quantile in [0.5, 0.9, 0.99] {
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small counts")]
                    let rank = (quantile * sorted.len() as f64).ceil() as usize;
                    let found = values.quantiles(&[quantile]).expect("not empty")[0];
                    prop_assert_eq!(found, sorted[rank - 1]);
                }
                seen += 1;
            }
        }
        prop_assert_eq!(seen, expected.len());
    }
}

/// What the overflow series refuses is booked to the overflow series, so that its inputs are released with its window.
#[test]
fn refused_observations_of_the_overflow_series_are_booked_to_it() {
    let config = Config::parse(&json!({
        "method": "exact", "max_values_per_window": 1, "when_full": "drop_new", "max_series": 1,
        "window": {"count": 3},
        "measures": [{"name": "m", "value_from": "v", "text": "number", "group_by": ["g"]}],
    }))
    .expect("valid");
    let accumulators = AccumulatorConfig::new(config.method, 1).expect("valid");
    let mut measure = Measure::new(0, config.measures[0].clone(), config.window, accumulators).expect("valid");
    let items = ["v=1 g=a", "v=1 g=b"].map(|text| (1, text.to_owned()));
    let _ = offer(&mut measure, &items);
    let offered = measure.offer(&records(&[(2, "v=2 g=b".to_owned())]), TimeSource::Observed, NOON).expect("readable");
    assert_eq!(offered.fates, [Fate::Full]);
    assert_eq!(offered.counted, [(SeriesKey::Overflow, 1)]);
}

/// The windows that an input is held for are those its observations went into, and no others.
#[test]
fn touched_windows_are_those_of_used_observations() {
    let mut measure = measure("kll", &json!({"tumbling": "5s"}));
    let at = |second: i64, extension: &str| (second, extension.to_owned());
    let _ = offer(&mut measure, &[at(20, "v=1")]);
    let now = NOON + 100 * SECOND;
    let batch = records(&[at(3, "v=1"), at(21, "v=2"), at(26, "v=3"), at(27, "w=1")]);
    let offered = measure.offer(&batch, TimeSource::Observed, now).expect("readable");
    // The windows before the watermark of 20 s have closed: what comes for them is late and is held for nothing.
    assert_eq!(offered.fates, [Fate::Late, Fate::Observed, Fate::Observed, Fate::NoValue]);
    let starts: Vec<_> = offered.starts.iter().map(|start| (start - NOON) / SECOND).collect();
    assert_eq!(starts, [20, 25]);
}
