//! Messages of several sources through the collector and out again: once each, whatever comes again, exact where runs are.

use catchment_columns::quantile::KeyValue;
use catchment_columns::quantile::carrier::{self, MessageIdentity, SketchMessage, SketchType};
use catchment_quantile::exchange::{Collector, Emission, Restarted, Verdict};
use catchment_quantile::{KllSketch, SortedRun};
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use serde_json::{Value, json};

use super::super::output::{Batch, Sender};
use super::config::{Incomplete, MergeConfig};
use super::content::{Content, ContentError, identity};
use super::node::joined;
use super::output::Window;
use crate::accounts::NodeName;

fn config(stage: &str, key: &str, value: Value) -> Result<MergeConfig, String> {
    let mut config = json!({"stage": stage, "expected_sources": 2});
    config[key] = value;
    assert!(MergeConfig::is_meant(&config));
    MergeConfig::parse(&config).map_err(|error| error.to_string())
}

/// A part, from 0, of those that a source sends of one window.
fn message(source: &str, (part, parts): (u32, u32), series: &str, values: &[f64], kll: bool) -> SketchMessage {
    let (sketch, envelope) = if kll {
        let mut sketch = KllSketch::new(200, 7).expect("valid");
        sketch.update_slice(values);
        (SketchType::KllDataSketches, sketch.to_bytes())
    } else {
        (SketchType::Run, SortedRun::from_values(values).to_bytes())
    };
    SketchMessage {
        metric: "m".into(),
        unit: "ms".into(),
        series: vec![("g".into(), KeyValue::Text(series.into()))],
        start_unix_nano: 10,
        end_unix_nano: 20,
        sketch,
        envelope,
        count: values.len() as u64,
        min: values.iter().copied().min_by(f64::total_cmp),
        max: values.iter().copied().max_by(f64::total_cmp),
        sum: Some(values.iter().sum()),
        dropped: Vec::new(),
        sources: None,
        switched: false,
        identity: Some(MessageIdentity {
            source: source.into(),
            instance: 1,
            part,
            parts,
            sequence: u64::from(part) + 1,
        }),
    }
}

fn offer(collector: &mut Collector<Content>, message: &SketchMessage) -> Verdict<ContentError> {
    let id = identity(message).expect("has one");
    collector.offer(&id, 0, Content::default, |content| content.merge(message, 200, 1))
}

fn ascending(from: u32, to: u32) -> Vec<f64> {
    (from..to).map(f64::from).collect()
}

/// All contents of a window together.
fn together(emission: &mut Emission<Content>) -> Content {
    let contents = std::mem::take(&mut emission.contents);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(joined(contents, &mut std::time::Instant::now())).expect("few")
}

/// What a window is sent as.
fn sent(config: &MergeConfig, mut emission: Emission<Content>) -> catchment_columns::OtapArrowRecords {
    let joined = together(&mut emission);
    sent_of(config, &emission, &joined)
}

fn sent_of(
    config: &MergeConfig,
    emission: &Emission<Content>,
    joined: &Content,
) -> catchment_columns::OtapArrowRecords {
    let name = NodeName { group: "a".into(), pipeline: "b".into(), node: "c".into(), core: 0 };
    let (mut sender, mut batch) = (Sender::new(&name, config.source.as_deref()), Batch::new(config.output));
    let mut window = Window::of(emission, joined);
    for series in &joined.series {
        assert!(window.add(config, &mut sender, &mut batch, series));
    }
    batch.finish().expect("built").expect("not empty")
}

fn messages(records: &catchment_columns::OtapArrowRecords) -> Vec<SketchMessage> {
    let messages = carrier::decode(records).expect("fits");
    messages.into_iter().map(|message| message.expect("a message")).collect()
}

/// Two sources by two parts each, some twice: each counts once, and what is merged twice on its way is exact to the end.
#[test]
fn runs_of_two_sources_are_exact() {
    let merge = config("merge", "source", json!("middle")).expect("valid");
    let mut collector = Collector::new(merge.collector.clone()).expect("valid");
    let parts = [
        message("a", (0, 2), "x", &ascending(0, 500), false),
        message("a", (1, 2), "y", &[7.0], false),
        message("b", (0, 1), "x", &ascending(500, 1_000), false),
    ];
    assert!(matches!(offer(&mut collector, &parts[0]), Verdict::Merged));
    assert!(matches!(offer(&mut collector, &parts[0]), Verdict::Duplicate));
    assert!(matches!(offer(&mut collector, &parts[2]), Verdict::Merged));
    assert!(collector.take_complete(0).is_empty(), "the second part of a is missing");
    assert!(matches!(offer(&mut collector, &parts[1]), Verdict::Merged));
    let merged = sent(&merge, collector.take_complete(0).remove(0));
    assert!(matches!(offer(&mut collector, &parts[1]), Verdict::Duplicate), "after the window was sent");
    let passed_on = messages(&merged);
    assert_eq!(passed_on.len(), 3, "runs are not merged");
    assert!(
        passed_on
            .iter()
            .all(|message| message.identity.as_ref().is_some_and(|id| id.source == "middle/0" && id.parts == 3))
    );

    let estimate = config("estimate", "expected_sources", json!(["middle/0"])).expect("valid");
    let mut collector = Collector::new(estimate.collector.clone()).expect("valid");
    passed_on.iter().for_each(|message| assert!(matches!(offer(&mut collector, message), Verdict::Merged)));
    assert!(matches!(offer(&mut collector, &parts[0]), Verdict::Refused(_)), "nobody it knows");
    let mut emission = collector.take_complete(0).remove(0);
    let joined = together(&mut emission);
    assert_eq!(joined.shortfall(emission.sources, emission.expected_sources), None);
    let x = &joined.series[&parts[0].series];
    assert_eq!(x.quantiles(&[0.0, 0.5, 0.999, 1.0]), Ok(vec![0.0, 499.0, 998.0, 999.0]));
    assert_eq!(x.of_all(), (1_000, Some(499_500.0), Some(0.0), Some(999.0)));
    assert_eq!(sent_of(&estimate, &emission, &joined).num_items(), 10, "four quantiles and a count for each series");
}

/// A source that has switched to a sketch meets one with a run: count, sum and extremes stay exact.
#[test]
fn sketches_take_runs_over() {
    let estimate = config("estimate", "statistics", json!(["count"])).expect("valid");
    let mut collector = Collector::new(estimate.collector.clone()).expect("valid");
    for part in [
        message("a", (0, 1), "x", &ascending(0, 10_000), true),
        message("b", (0, 1), "x", &ascending(10_000, 20_000), false),
    ] {
        assert!(matches!(offer(&mut collector, &part), Verdict::Merged));
    }
    let joined = together(&mut collector.take_complete(0).remove(0));
    let merged = joined.series.values().next().expect("one");
    assert!(merged.switched, "exact values went into a sketch");
    assert_eq!(merged.of_all(), (20_000, Some(199_990_000.0), Some(0.0), Some(19_999.0)));
    let median = merged.quantiles(&[0.5]).expect("not empty")[0];
    assert!((median - 10_000.0).abs() < 20_000.0 * 0.02, "{median}");
}

/// A source that never comes is told of on every point, also through a merge in between.
#[test]
fn missing_sources_are_told() {
    let merge = config("merge", "expected_sources", json!(3)).expect("valid");
    let mut collector = Collector::new(merge.collector.clone()).expect("valid");
    let part = message("a", (0, 1), "x", &[1.0], true);
    assert!(matches!(offer(&mut collector, &part), Verdict::Merged));
    assert!(collector.expire(0).is_empty());
    let emission = collector.expire(30_000_000_000).remove(0);
    let mut passed_on = messages(&sent(&merge, emission));
    assert_eq!(passed_on[0].sources, Some((1, 3)));

    let estimate = config("estimate", "expected_sources", json!(1)).expect("valid");
    let mut collector = Collector::new(estimate.collector.clone()).expect("valid");
    assert!(matches!(offer(&mut collector, &passed_on.remove(0)), Verdict::Merged));
    let mut emission = collector.take_complete(0).remove(0);
    assert!(emission.is_complete());
    let joined = together(&mut emission);
    assert_eq!(joined.shortfall(1, 1), Some((1, 3)));
    let records = sent_of(&estimate, &emission, &joined);
    let attributes = records.get(ArrowPayloadType::NumberDpAttrs).expect("attributes");
    // Group and sources on five points, the quantile on four.
    assert_eq!(attributes.num_rows(), 14);
}

/// What does not hold what it says changes nothing and may be sent again, right.
#[test]
fn bad_content_is_refused_and_not_counted() {
    let estimate = config("estimate", "expected_sources", json!(1)).expect("valid");
    let mut collector = Collector::new(estimate.collector).expect("valid");
    let good = message("a", (0, 1), "x", &[1.0, 2.0], false);
    let wrong_count = SketchMessage { count: 3, ..good.clone() };
    let cut = SketchMessage { envelope: good.envelope[..21].to_vec(), ..good.clone() };
    for bad in [&wrong_count, &cut] {
        assert!(matches!(offer(&mut collector, bad), Verdict::Refused(_)));
    }
    assert!(identity(&SketchMessage { identity: None, ..good.clone() }).is_none());
    assert!(matches!(offer(&mut collector, &good), Verdict::Merged));
    assert_eq!((collector.counters().refused, collector.counters().waiting), (2, 1));
}

/// Keys of other stages and values out of bounds are refused by name.
#[test]
fn keys_belong_to_stages() {
    for (stage, key, value, told) in [
        ("merge", "quantiles", json!([0.5]), "estimate"),
        ("merge", "window", json!({"tumbling": "1s"}), "window"),
        ("merge", "source", json!(""), "source"),
        ("merge", "expected_sources", json!(0), "expected_sources"),
        ("merge", "expected_sources", json!([]), "expected_sources"),
        ("estimate", "output", json!("sketch"), "output"),
        ("estimate", "source", json!("x"), "source"),
        ("estimate", "max_wait", json!("0s"), "max_wait"),
        ("estimate", "quantiles", json!([2]), "quantiles"),
        ("merge", "restarted_source", json!("both"), "restarted_source"),
    ] {
        let error = config(stage, key, value).expect_err(key);
        assert!(error.contains(told), "{error}");
    }
    let drops = config("estimate", "incomplete", json!("drop")).expect("valid");
    assert_eq!((drops.incomplete, drops.collector.max_wait_ns), (Incomplete::Drop, 30_000_000_000));
    assert_eq!(drops.collector.restarted, Restarted::Replace);
    let adds = config("merge", "restarted_source", json!("add")).expect("valid");
    assert_eq!((adds.incomplete, adds.collector.restarted), (Incomplete::Emit, Restarted::Add));
}
