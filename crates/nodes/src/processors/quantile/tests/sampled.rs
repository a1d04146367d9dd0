//! Messages through a syslog receiver that keeps a tenth of them: counts and quantiles are those of all.

use std::collections::HashMap;

use catchment_columns::json;
use catchment_columns::quantile::Fate;
use catchment_quantile::accumulator::{Accumulator as _, AccumulatorConfig};
use serde_json::{Value, json};

use super::super::config::Config;
use super::super::measure::{Input, Measure};
use super::{NOON, SECOND};
use crate::receivers::syslog::testing::receive;

const MESSAGES: i64 = 30_000;
/// Programs, each of which sends as many messages as any other.
const PROGRAMS: i64 = 3_000;
const QUANTILES: [f64; 5] = [0.05, 0.5, 0.9, 0.95, 0.99];

/// A mix of the bits of a number: the same in every run, without an order to it.
fn mixed(number: i64) -> u64 {
    let mut mixed = number.unsigned_abs().wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The duration that a message tells, in milliseconds: few long ones, all different.
fn duration(number: i64) -> f64 {
    let share = (mixed(number) >> 11) as f64 / (1_u64 << 53) as f64;
    (-(1.0 - share).ln() * 20_000.0).round() / 1_000.0 + number as f64 / 1e9
}

/// A message with its time: 500 a second, the programs in turns.
fn message(number: i64) -> (i64, String) {
    let (trace, span) = (u128::from(mixed(number)) << 64 | u128::from(mixed(-number)), mixed(number) | 1);
    let text = format!(
        "<14>1 2026-11-30T12:00:00Z web p{} - - [t@1 ms=\"{:.9}\" traceparent=\"00-{trace:032x}-{span:016x}-01\"] done",
        number % PROGRAMS,
        duration(number)
    );
    (NOON + number * SECOND / 500, text)
}

/// What came of one way to sample.
struct Outcome {
    count: f64,
    quantiles: Vec<f64>,
    /// The weight of each kept message.
    weights: Vec<f64>,
}

fn through(policies: Option<Value>) -> Outcome {
    let mut receiver = json!({"udp": {"listening_addr": "127.0.0.1:0"}});
    if let Some(policies) = policies {
        receiver["sampling"] = json!({"seed": 5, "policies": policies});
    }
    let (batches, books) = receive(&receiver, (0..MESSAGES).map(message));
    assert_eq!(books.received, MESSAGES.unsigned_abs());
    let config = Config::parse(&json!({
        "k": 2_000, "seed": 1, "window": {"tumbling": "1h", "clock": "observed_time"},
        "measures": [{
            "name": "m", "value_from": "attribute:syslog.structured_data/t@1/ms", "text": "number",
            "weight_from": "attribute:sampling.adjusted_count",
        }],
    }))
    .expect("valid");
    let accumulators = AccumulatorConfig::new(config.method, config.seed).expect("valid");
    let mut measure =
        Measure::new(0, config.measures[0].clone(), config.window, config.announce_empty, accumulators).expect("valid");
    let mut weights = Vec::new();
    for records in &batches {
        let offered = measure.offer(Input::Records(records), NOON + 300 * SECOND).expect("readable");
        assert!(offered.fates.iter().all(|fate| *fate == Fate::Observed));
        assert!(offered.closed.is_empty());
        let weight = |record: Value| record["attributes"]["sampling.adjusted_count"].as_f64().unwrap_or(1.0);
        json::objects(records, |record| weights.push(weight(record))).expect("readable");
    }
    let series: Vec<_> = measure.flush_all().into_iter().flat_map(|window| window.series).collect();
    let [(_, values)] = series.as_slice() else { panic!("one series") };
    let quantiles = values.quantiles(&QUANTILES).expect("there are values");
    Outcome { count: values.count() as f64, quantiles, weights }
}

/// For each policy the count is that of all messages within four standard deviations, and each quantile has a rank among all
/// durations that is off by no more than that and the error of the sketch.
#[test]
fn a_tenth_tells_of_all() {
    let mut sorted: Vec<f64> = (0..MESSAGES).map(duration).collect();
    sorted.sort_by(f64::total_cmp);
    let rank = |value: f64| sorted.partition_point(|known| *known <= value) as f64 / MESSAGES as f64;

    let whole = through(None);
    assert_eq!((whole.count, whole.weights.len() as i64), (MESSAGES as f64, MESSAGES));
    let policies = HashMap::from([
        ("ratio", (json!([{"ratio": 0.1}]), 1.0)),
        // Chance has only the start.
        ("systematic", (json!([{"ratio": {"ratio": 0.1, "draw": "systematic"}}]), 1.0)),
        // Ten messages have one fate.
        ("key_hash", (json!([{"key_hash": {"ratio": 0.1, "key": "app"}}]), 10.0)),
        ("trace_ratio", (json!([{"trace_ratio": 0.1}]), 1.0)),
        ("rate_limit", (json!([{"rate_limit": 50}]), 1.0)),
        // A part stands for itself.
        ("chain", (json!([{"always_keep": {"apps": ["p1", "p2", "p3"]}}, {"ratio": 0.1}]), 1.0)),
    ]);
    for (name, (policies, cluster)) in policies {
        let Outcome { count, quantiles, weights } = through(Some(policies));
        assert!((2_250..4_750).contains(&weights.len()), "{name}: {}", weights.len());
        // What Horvitz and Thompson estimate the variance as, and that of rounding fractions at random.
        let variance: f64 = weights.iter().map(|weight| cluster * weight * (weight - 1.0) + 0.25).sum();
        let bound = if name == "systematic" { 11.0 } else { 4.0 * variance.sqrt() };
        assert!((count - MESSAGES as f64).abs() <= bound, "{name}: {count} of {MESSAGES}, expected within {bound}");
        let (sum, squares) = weights.iter().fold((0.0, 0.0), |(sum, squares), w| (sum + w, squares + w * w));
        for (q, value) in QUANTILES.into_iter().zip(quantiles) {
            let sigma = (q * (1.0 - q) * squares).sqrt() / sum;
            let off = (rank(value) - q).abs();
            // A sketch of this size is right to 0.2 % of the ranks.
            assert!(off <= 4.0 * sigma + 0.002, "{name}: the {q} quantile has rank {}", rank(value));
        }
    }
}
