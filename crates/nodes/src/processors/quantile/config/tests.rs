//! What the configuration says, and what is refused.

use catchment_quantile::window::WindowSpec;
use serde_json::json;

use super::*;

fn with(key: &str, value: Value) -> Value {
    let mut config = json!({
        "window": {"tumbling": "10s"},
        "measures": [{"name": "bytes", "value_from": "attribute:flow.io.bytes"}],
    });
    config[key] = value;
    config
}

fn refused(key: &str, value: Value) -> String {
    Config::parse(&with(key, value)).expect_err("refused").to_string()
}

#[test]
fn defaults_are_those_of_the_docs() {
    let config = Config::parse(&with("seed", json!(1))).expect("valid");
    assert_eq!(config.method, Method::Kll { k: 200 });
    assert_eq!(config.quantiles, [0.5, 0.9, 0.95, 0.99]);
    assert_eq!(config.window.max_series, 2_000);
    assert_eq!(config.ack, Ack::OnEmit);
    let WindowSpec::Tumbling { size_ns, allowed_lateness_ns, .. } = config.window.spec else { panic!("tumbling") };
    assert_eq!((size_ns, allowed_lateness_ns), (10_000_000_000, 0));
}

/// Durations, paths and infinite values reach the reader.
#[test]
fn measures_say_how_to_read() {
    let measures = json!([{
        "name": "x", "value_from": "attribute:m/haproxy@32473/ta", "text": "duration", "non_finite": "keep",
        "group_by": ["app.io//name", "resource:host.name"],
    }]);
    let config = Config::parse(&with("measures", measures)).expect("valid");
    let query = &config.measures[0].query;
    let ValueSource::LogAttribute { attribute, text } = &query.source else { panic!("of logs") };
    assert_eq!((attribute.key.as_str(), attribute.steps.len(), *text), ("m", 2, TextNumbers::Duration));
    assert_eq!((query.non_finite, query.group_by[0].key.as_str()), (NonFinite::Keep, "app.io/name"));
    assert_eq!((config.output, config.statistics.len()), (Output::Gauge, 1));
    let summary = Config::parse(&with("output", json!("summary"))).expect("valid");
    assert!(summary.statistics.is_empty());
}

/// Each message names the key and what would be right.
#[test]
fn wrong_settings_are_explained() {
    assert!(refused("quantiles", json!([1.5])).contains("config.quantiles: 1.5 is out of range"));
    assert!(refused("k", json!(4)).contains("config.k"));
    assert!(refused("window", json!({})).contains("either `count"));
    assert!(refused("window", json!({"count": 5, "tumbling": "1s"})).contains("either `count"));
    assert!(refused("window", json!({"count": 5, "max_future": "1s"})).contains("found with `count`"));
    assert!(refused("measures", json!([])).contains("config.measures: empty"));
    assert!(refused("measures", json!([{"name": "x"}])).contains("config.measures[0]: expected either"));
    let twice = json!([{"name": "x", "metrics": ["a"]}, {"name": "x", "metrics": ["b"]}]);
    assert!(refused("measures", twice).contains("used twice"));
    assert!(refused("methd", json!("kll")).contains("unknown field `methd`"));
    assert!(refused("method", json!("tdigest")).contains("config.method"));
    assert!(refused("when_full", json!("drop_new")).contains("belong to `method: exact`"));
    let grouped = json!([{"name": "x", "value_from": "a", "group_by": ["b", "resource:b"]}]);
    assert!(refused("measures", grouped).contains("config.measures[0].group_by"));
    let path = json!([{"name": "x", "value_from": "a", "group_by": ["b/c", "b.c"]}]);
    assert!(refused("measures", path).contains("a second attribute `b.c`"));
    assert!(refused("measures", json!([{"name": "x", "value_from": "a/"}])).contains("config.measures[0].value_from"));
    assert!(refused("output", json!("histogram")).contains("config.output"));
    let sketch = json!([{"name": "x", "value_from": "a"}]);
    let config = json!({"window": {"count": 5}, "output": "sketch", "quantiles": [0.5], "measures": sketch});
    assert!(Config::parse(&config).expect_err("refused").to_string().contains("found with `output: sketch`"));
    let text = json!([{"name": "x", "metrics": ["a"], "text": "number"}]);
    assert!(refused("measures", text).contains("config.measures[0].text"));
}

/// The settings of what goes on, of retries and of histograms, with their defaults.
#[test]
fn forwarding_and_retries_are_off_and_on_by_default() {
    let config = Config::parse(&with("seed", json!(1))).expect("valid");
    assert_eq!((config.forward, config.late, config.max_buckets), (Forward::None, Late::Drop, 160));
    let seconds = Duration::from_secs;
    let retry = Retry { initial_interval: seconds(1), max_interval: seconds(30), max_elapsed: seconds(300) };
    assert_eq!(config.retry, Some(retry));
    let never = Config::parse(&with("retry", json!({"initial_interval": "0s"}))).expect("valid");
    assert_eq!(never.retry, None);
    let histogram = Config::parse(&with("output", json!("exponential_histogram"))).expect("valid");
    assert_eq!((histogram.output, histogram.statistics.len()), (Output::ExponentialHistogram, 0));
}

/// Settings that exclude each other name both.
#[test]
fn settings_that_exclude_each_other_are_refused() {
    let all = |keys: &[(&str, Value)]| {
        let mut config = with("seed", json!(1));
        keys.iter().for_each(|(key, value)| config[*key] = value.clone());
        Config::parse(&config).expect_err("refused").to_string()
    };
    let histogram = || ("output", json!("exponential_histogram"));
    assert!(all(&[histogram(), ("quantiles", json!([0.5]))]).contains("config.quantiles"));
    assert!(all(&[histogram(), ("max_buckets", json!(1))]).contains("config.max_buckets"));
    assert!(all(&[("max_buckets", json!(10))]).contains("config.max_buckets: belongs to"));
    let kept = json!([{"name": "x", "metrics": ["a"], "non_finite": "keep"}]);
    assert!(all(&[histogram(), ("measures", kept)]).contains("config.measures[0].non_finite"));
    let count = || ("window", json!({"count": 5}));
    assert!(all(&[count(), ("late", json!("side_output"))]).contains("config.late"));
    let exact = || ("method", json!("exact"));
    let few = ("max_values_per_window", json!(4));
    assert!(all(&[count(), exact(), few, ("when_full", json!("fail"))]).contains("config.window.count"));
    assert!(all(&[("when_full", json!("fail"))]).contains("belong to `method: exact`"));
    assert!(all(&[("retry", json!({"max_interval": "1ms"}))]).contains("config.retry.max_interval"));
    assert!(all(&[("retry", json!({"max_elapsed": "1ms"}))]).contains("config.retry.max_elapsed"));
    assert!(all(&[("forward", json!("some"))]).contains("config.forward"));
}

/// A branch sends sketches of windows by time, under its name.
#[test]
fn branches_send_sketches() {
    let create = |key: &str, value: Value| {
        let mut config = with("stage", json!("create"));
        config[key] = value;
        Config::parse(&config).map_err(|error| error.to_string())
    };
    let config = create("source", json!("site-a")).expect("valid");
    assert_eq!((config.output, config.source.as_deref()), (Output::Sketch, Some("site-a")));
    for (key, value) in [
        ("output", json!("gauge")),
        ("quantiles", json!([0.5])),
        ("window", json!({"count": 5})),
        ("source", json!("")),
        ("announce_empty", json!("always")),
        ("expected_sources", json!(2)),
    ] {
        let error = create(key, value).expect_err(key);
        assert!(error.contains(key), "{error}");
    }
    assert!(refused("source", json!("a")).contains("create"));
    assert!(refused("announce_empty", json!("clock")).contains("create"));
    // Times of receipt do not lag behind the clock.
    let observed = json!({"tumbling": "1s", "clock": "observed_time"});
    for (key, value, announced) in [
        ("seed", json!(1), AnnounceEmpty::Watermark),
        ("window", observed, AnnounceEmpty::Clock),
        ("announce_empty", json!("none"), AnnounceEmpty::None),
    ] {
        assert_eq!(create(key, value).expect("valid").announce_empty, announced);
    }
    assert_eq!(Config::parse(&with("seed", json!(1))).expect("valid").announce_empty, AnnounceEmpty::None);
}

/// The weight is an attribute like any other.
#[test]
fn weights_are_attributes() {
    let measures = json!([{"name": "x", "metrics": ["y"], "weight_from": "resource:rate"}]);
    let config = Config::parse(&with("measures", measures)).expect("valid");
    assert_eq!(config.measures[0].query.weight_from.as_ref().map(|path| path.key.as_str()), Some("rate"));
    let error = refused("measures", json!([{"name": "x", "metrics": ["y"], "weight_from": "resource:"}]));
    assert!(error.contains("weight_from"), "{error}");
}
