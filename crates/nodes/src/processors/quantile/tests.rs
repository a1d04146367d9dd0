//! Records through a measure: every item has one fate, every observation is in one window, and exact means exact.

mod conservation;
mod harness;
mod node;
mod sampled;
mod stages;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use catchment_columns::quantile::carrier::{self, SketchType};
use catchment_columns::quantile::{Fate, KeyValue, OtlpSignal};
use catchment_columns::syslog::{Receipt, RowOptions, Source, SyslogBatch, SyslogJob, Transport};
use catchment_columns::{Job, OtapArrowRecords};
use catchment_quantile::accumulator::{Accumulator, AccumulatorConfig};
use catchment_quantile::window::SeriesKey;
use catchment_quantile::{KllSketch, SortedRun};
use otel_arrow_dfe_pdata::{OtlpProtoBytes, TryIntoWithOptions};
use proptest::prelude::*;
use serde_json::json;

use super::config::Config;
use super::measure::{Closed, Input, Measure};
use super::output::{Batch, Parts, Sender};
use crate::accounts::NodeName;

const SECOND: i64 = 1_000_000_000;
/// 2026-11-30T12:00:00Z.
const NOON: i64 = 1_796_040_000 * SECOND;

fn measure(method: &str, shape: &serde_json::Value) -> Measure {
    let config = Config::parse(&json!({
        "method": method, "window": window(shape),
        "measures": [{"name": "m", "value_from": "attribute:v", "text": "number", "group_by": ["g"]}],
    }))
    .expect("valid");
    let accumulators = AccumulatorConfig::new(config.method, 1).expect("valid");
    Measure::new(0, config.measures[0].clone(), config.window, config.announce_empty, accumulators).expect("valid")
}

/// By the time of receipt.
fn window(window: &serde_json::Value) -> serde_json::Value {
    let mut window = window.clone();
    window["clock"] = "observed_time".into();
    window
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
    let offered = measure.offer(Input::Records(&records(items)), NOON + 100 * SECOND).expect("readable");
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

/// A value with a weight counts so many times, in sketches and in exact windows, by columns and by bytes; a bad weight drops
/// its item.
#[test]
fn weights_count_observations() {
    let items: Vec<_> = ["v=1 g=a n=90", "v=5 g=a n=9", "v=7 g=a", "v=8 g=a n=0", "v=2 g=b n=1000"]
        .map(|text| (1, text.to_owned()))
        .into();
    let records = records(&items);
    let request = otlp(records.clone());
    for (method, window) in
        [("kll", json!({"tumbling": "5s"})), ("exact", json!({"tumbling": "5s"})), ("exact", json!({"count": 3}))]
    {
        let config = Config::parse(&json!({
            "method": method, "window": self::window(&window),
            "measures": [{"name": "m", "value_from": "v", "text": "number", "weight_from": "n", "group_by": ["g"]}],
        }))
        .expect("valid");
        for input in [Input::Records(&records), Input::Otlp(OtlpSignal::Logs, &request)] {
            let accumulators = AccumulatorConfig::new(config.method, 1).expect("valid");
            let mut measure =
                Measure::new(0, config.measures[0].clone(), config.window, config.announce_empty, accumulators)
                    .expect("valid");
            let offered = measure.offer(input, NOON).expect("readable");
            assert_eq!(offered.fates[3], Fate::BadWeight);
            assert_eq!(offered.fates.iter().filter(|fate| **fate == Fate::Observed).count(), 4);
            let by_count = !offered.counted.is_empty();
            assert_eq!(by_count, window["count"] == 3);
            let closed = offered.closed.into_iter().chain(measure.flush_all());
            let series: Vec<_> = closed.flat_map(|window| window.series).map(|(_, values)| values).collect();
            assert_eq!((series[0].count(), series[0].sum()), (100, Some(142.0)), "90 + 45 + 7");
            assert_eq!(series[0].quantiles(&[0.9, 0.91, 0.99, 1.0]), Ok(vec![1.0, 5.0, 5.0, 7.0]));
            assert_eq!((series[1].count(), series[1].min(), series[1].max()), (1_000, Some(2.0), Some(2.0)));
        }
    }
}

/// What the overflow series refuses is booked to the overflow series, so that its inputs are released with its window.
#[test]
fn refused_observations_of_the_overflow_series_are_booked_to_it() {
    let config = Config::parse(&json!({
        "method": "exact", "max_values_per_window": 1, "when_full": "drop_new", "max_series": 1,
        "window": {"count": 3, "clock": "observed_time"},
        "measures": [{"name": "m", "value_from": "v", "text": "number", "group_by": ["g"]}],
    }))
    .expect("valid");
    let accumulators = AccumulatorConfig::new(config.method, 1).expect("valid");
    let mut measure =
        Measure::new(0, config.measures[0].clone(), config.window, config.announce_empty, accumulators).expect("valid");
    let items = ["v=1 g=a", "v=1 g=b"].map(|text| (1, text.to_owned()));
    let _ = offer(&mut measure, &items);
    let offered = measure.offer(Input::Records(&records(&[(2, "v=2 g=b".to_owned())])), NOON).expect("readable");
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
    let offered = measure.offer(Input::Records(&batch), now).expect("readable");
    // The windows before the watermark of 20 s have closed: what comes for them is late and is held for nothing.
    assert_eq!(offered.fates, [Fate::Late, Fate::Observed, Fate::Observed, Fate::NoValue]);
    let starts: Vec<_> = offered.starts.iter().map(|start| (start - NOON) / SECOND).collect();
    assert_eq!(starts, [20, 25]);
}

/// The same records as columns and as OTLP bytes fill the same windows.
#[test]
fn otlp_is_read_as_it_is() {
    let items: Vec<_> = (0..50).map(|at| (at, format!("v={} g={}", at % 7, at % 3))).collect();
    let records = records(&items);
    let request = otlp(records.clone());
    let fill = |input: Input<'_>| {
        let mut measure = measure("exact", &json!({"tumbling": "5s"}));
        let offered = measure.offer(input, NOON + 100 * SECOND).expect("readable");
        assert_eq!(offered.fates, [Fate::Observed; 50]);
        let mut closed = offered.closed;
        closed.extend(measure.flush_all());
        let of_series = |window: &Closed| {
            let medians = window.series.iter().map(|(key, values)| (key.clone(), values.quantiles(&[0.5])));
            (window.start_ns, medians.collect::<Vec<_>>())
        };
        closed.iter().map(of_series).collect::<Vec<_>>()
    };
    let as_bytes = fill(Input::Otlp(OtlpSignal::Logs, &request));
    assert_eq!(as_bytes.len(), 10);
    assert_eq!(as_bytes, fill(Input::Records(&records)));
    let error = measure("kll", &json!({"count": 5})).offer(Input::Otlp(OtlpSignal::Logs, &request.slice(..90)), NOON);
    assert!(error.expect_err("cut short").contains("cut short"));
}

fn otlp(records: OtapArrowRecords) -> bytes::Bytes {
    let request: OtlpProtoBytes = records.try_into_with_options(Default::default()).expect("converts");
    match request {
        OtlpProtoBytes::ExportLogsRequest(request) => request,
        _ => panic!("logs"),
    }
}

/// Sketches and runs carry all observations of their series, in numbered parts.
#[test]
fn sketches_carry_the_windows() {
    for method in ["kll", "exact"] {
        let config = Config::parse(&json!({
            "method": method, "output": "sketch", "window": {"tumbling": "1h", "clock": "observed_time"},
            "measures": [{"name": "m", "unit": "s", "value_from": "v", "text": "number", "group_by": ["g"]}],
        }))
        .expect("valid");
        let accumulators = AccumulatorConfig::new(config.method, 1).expect("valid");
        let mut measure =
            Measure::new(0, config.measures[0].clone(), config.window, config.announce_empty, accumulators)
                .expect("valid");
        let items: Vec<_> = (0..60).map(|at| (at, format!("v={at} g={}", at % 2))).collect();
        let _ = offer(&mut measure, &items);
        let name = NodeName { group: "a".into(), pipeline: "b".into(), node: "c".into(), core: 3 };
        let (mut sender, mut batch) = (Sender::new(&name, Some("site-a")), Batch::new(config.output));
        for window in measure.flush_all() {
            let mut parts = Parts::default();
            window.series.iter().for_each(|(_, values)| parts.count(values));
            for series in &window.series {
                assert!(batch.add(&config, &mut sender, &measure, &window, &mut parts, series));
            }
        }
        let records = batch.finish().expect("built").expect("not empty");
        let messages: Vec<_> =
            carrier::decode(&records).expect("fits").into_iter().map(|message| message.expect("a message")).collect();
        assert_eq!(messages.len(), 2);
        for (at, message) in messages.iter().enumerate() {
            let identity = message.identity.as_ref().expect("ours");
            assert_eq!((identity.source.as_str(), identity.part as usize, identity.parts), ("site-a/3", at, 2));
            assert_eq!(identity.sequence as usize, at + 1);
            assert_eq!((message.count, message.min, message.max), (30, Some(at as f64), Some((58 + at) as f64)));
            assert_eq!(message.series, [("g".to_owned(), KeyValue::Text(at.to_string().into()))]);
            let count = match message.sketch {
                SketchType::Run => SortedRun::from_bytes(&message.envelope).expect("a run").len() as u64,
                _ => KllSketch::from_bytes(&message.envelope, 1).expect("a sketch").n(),
            };
            assert_eq!(count, 30);
        }
    }
}

/// One series of many runs is sent in several outputs, none of which is too large for a receiver with a limit of 4 MiB.
#[test]
fn many_runs_are_several_outputs() {
    let config = Config::parse(&json!({
        "method": "exact", "output": "sketch", "window": {"tumbling": "1h", "clock": "observed_time"},
        "measures": [{"name": "m", "value_from": "v", "text": "number"}],
    }))
    .expect("valid");
    let accumulators = AccumulatorConfig::new(config.method, 1).expect("valid");
    let mut measure =
        Measure::new(0, config.measures[0].clone(), config.window, config.announce_empty, accumulators).expect("valid");
    let items: Vec<_> = (0..500_000).map(|at| (1, format!("v={at}"))).collect();
    for items in items.chunks(8_000) {
        let _ = offer(&mut measure, items);
    }
    let name = NodeName { group: String::new(), pipeline: String::new(), node: String::new(), core: 0 };
    let (mut sender, mut batch) = (Sender::new(&name, Some("site-a")), Batch::new(config.output));
    let window = measure.flush_all().remove(0);
    let mut parts = Parts::default();
    window.series.iter().for_each(|(_, values)| parts.count(values));
    assert!(batch.add(&config, &mut sender, &measure, &window, &mut parts, &window.series[0]));
    let mut outputs = batch.take_full();
    outputs.push(batch);
    let counts: Vec<u64> = outputs
        .into_iter()
        .map(|output| {
            let records = output.finish().expect("built").expect("not empty");
            let messages = carrier::decode(&records).expect("fits");
            let messages: Vec<_> = messages.into_iter().map(|message| message.expect("a message")).collect();
            assert!(messages.iter().map(|message| message.envelope.len()).sum::<usize>() <= 2 * 1024 * 1024);
            messages.iter().map(|message| message.count).sum()
        })
        .collect();
    assert_eq!((counts.len(), counts.iter().sum::<u64>()), (3, 500_000), "{counts:?}");
}

/// Negative values come out as gauges where summaries were asked for.
#[test]
fn summaries_fall_back_to_gauges() {
    let config = Config::parse(&json!({
        "output": "summary", "quantiles": [0.5, 1], "window": {"tumbling": "1h", "clock": "observed_time"},
        "measures": [{"name": "m", "value_from": "v", "text": "number", "group_by": ["g"]}],
    }))
    .expect("valid");
    let accumulators = AccumulatorConfig::new(config.method, 1).expect("valid");
    let mut measure =
        Measure::new(0, config.measures[0].clone(), config.window, config.announce_empty, accumulators).expect("valid");
    let _ = offer(&mut measure, &["v=1 g=a", "v=-1 g=b", "v=3 g=a"].map(|text| (1, text.to_owned())));
    let name = NodeName { group: String::new(), pipeline: String::new(), node: String::new(), core: 0 };
    let (mut sender, mut batch) = (Sender::new(&name, Some("site-a")), Batch::new(config.output));
    let window = measure.flush_all().remove(0);
    let mut parts = Parts::default();
    window.series.iter().for_each(|(_, values)| parts.count(values));
    let summaries: Vec<_> = window
        .series
        .iter()
        .map(|series| batch.add(&config, &mut sender, &measure, &window, &mut parts, series))
        .collect();
    assert_eq!(summaries, [true, false]);
    assert_eq!(batch.finish().expect("built").expect("not empty").num_items(), 3, "a summary and two gauges");
}
