//! What the processor sends its neighbours, and when it tells them the outcome.

use std::time::{Duration, Instant};

use catchment_columns::quantile::{Observations, Query, Reader, ValueSource};
use catchment_columns::{OtapArrowRecords, OtlpProtoBytes};
use otel_arrow_dfe_pdata::TryIntoWithOptions;
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::logs::v1::ExportLogsServiceRequest;
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::metrics::v1::ExportMetricsServiceRequest;
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::any_value::Value as Any;
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::{AnyValue, KeyValue as Attribute};
use otel_arrow_dfe_pdata::proto::opentelemetry::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::metric::Data;
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::number_data_point::Value as Number;
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::{
    Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};
use otel_arrow_dfe_pdata_codec::OtapPayload;
use prost::Message as _;
use serde_json::{Value, json};

use super::super::config::Config;
use super::super::merge::MergeConfig;
use super::conservation::{check, items_of};
use super::harness::{Node, Outcome, set_clock};
use super::{NOON, SECOND};

/// A log record: second, value (text is no number), series.
pub(super) type Item = (i64, Option<&'static str>, u8);

fn attribute(key: &str, value: &str) -> Attribute {
    let value = Some(AnyValue { value: Some(Any::StringValue(value.to_owned())) });
    Attribute { key: key.to_owned(), value }
}

pub(super) fn logs(items: &[Item], as_records: bool) -> OtapPayload {
    let record = |(second, value, series): &Item| {
        let mut attributes = vec![attribute("g", &series.to_string())];
        attributes.extend(value.map(|value| attribute("v", value)));
        LogRecord { time_unix_nano: (NOON + second * SECOND).unsigned_abs(), attributes, ..LogRecord::default() }
    };
    let log_records = items.iter().map(record).collect();
    let scope_logs = vec![ScopeLogs { log_records, ..ScopeLogs::default() }];
    let request =
        ExportLogsServiceRequest { resource_logs: vec![ResourceLogs { scope_logs, ..ResourceLogs::default() }] };
    payload(OtlpProtoBytes::ExportLogsRequest(request.encode_to_vec().into()), as_records)
}

fn payload(request: OtlpProtoBytes, as_records: bool) -> OtapPayload {
    if as_records {
        let records: OtapArrowRecords = request.try_into_with_options(Default::default()).expect("converts");
        records.into()
    } else {
        request.into()
    }
}

pub(super) fn config(keys: &[(&str, Value)]) -> Config {
    let mut config = json!({
        "window": {"tumbling": "10s", "allowed_lateness": "5s", "max_future": "60s"},
        "measures": [{"name": "m", "value_from": "attribute:v", "text": "number", "group_by": ["g"]}],
    });
    keys.iter().for_each(|(key, value)| config[*key] = value.clone());
    Config::parse(&config).expect("valid")
}

pub(super) fn run(test: impl AsyncFnOnce()) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, test());
}

/// An output that is refused for now is sent again unchanged until it is taken; its input waits for that.
#[test]
fn what_is_refused_for_now_is_sent_again() {
    run(async || {
        set_clock(NOON + 60 * SECOND);
        let mut node = Node::new(config(&[]), false);
        let input = node.input(logs(&[(1, Some("1"), 0), (30, Some("2"), 0)], false)).await;
        assert_eq!((node.sent.len(), node.outcomes.len()), (1, 0));
        let now = Instant::now();
        for (attempt, wait) in [1, 2, 4].into_iter().enumerate() {
            assert!(node.settle(Outcome::RefusedForNow).await);
            node.tick(now + Duration::from_millis(wait * 500)).await;
            assert!(node.due.is_empty(), "too early");
            node.tick(now + Duration::from_secs(wait + 1)).await;
            assert_eq!((node.due.len(), node.totals().retried), (1, attempt as u64 + 1));
        }
        assert!(node.settle(Outcome::Acknowledged).await);
        // The second window is still open.
        assert!(node.outcomes.is_empty());
        node.shut_down().await;
        assert_eq!(node.outcomes[&input], [Outcome::RefusedForNow], "nobody knows what became of the second");
        assert_eq!(node.totals().points_refused, 0);
    });
}

/// Without retries, or for good, a refusal ends the input; so does the time given to retries.
#[test]
fn what_is_refused_for_good_is_not_sent_again() {
    let never = ("retry", json!({"initial_interval": "0s"}));
    let short = ("retry", json!({"initial_interval": "10s", "max_interval": "10s", "max_elapsed": "10s"}));
    for (keys, attempts) in [(vec![never], 0), (vec![short], 0), (vec![], 0)] {
        let outcome = if keys.is_empty() { Outcome::RefusedForGood } else { Outcome::RefusedForNow };
        run(async || {
            set_clock(NOON + 60 * SECOND);
            let mut node = Node::new(config(&keys), false);
            let input = node.input(logs(&[(1, Some("1"), 0)], true)).await;
            let other = node.input(logs(&[(30, Some("1"), 0)], true)).await;
            assert!(node.settle(outcome).await);
            assert_eq!(node.outcomes.get(&input), Some(&vec![Outcome::RefusedForGood]));
            assert_eq!((node.outcomes.get(&other), node.totals().retried), (None, attempts));
            assert_eq!(node.totals().points_refused, 5, "four quantiles and a count");
        });
    }
}

/// An input that would overfill a series is refused as a whole: nothing of it is used, and others go on.
#[test]
fn inputs_without_room_are_refused() {
    let keys = [("method", json!("exact")), ("max_values_per_window", json!(2)), ("when_full", json!("fail"))];
    run(async || {
        set_clock(NOON + 60 * SECOND);
        let mut node = Node::new(config(&keys), false);
        let first = node.input(logs(&[(1, Some("1"), 0), (2, Some("2"), 0)], false)).await;
        let full = node.input(logs(&[(3, Some("3"), 1), (3, Some("3"), 0)], false)).await;
        let other = node.input(logs(&[(3, Some("3"), 1), (13, Some("3"), 0)], true)).await;
        assert_eq!(node.outcomes.get(&full), Some(&vec![Outcome::RefusedForGood]));
        assert!(!node.outcomes.contains_key(&first) && !node.outcomes.contains_key(&other));
        assert_eq!((node.totals().no_room, node.totals().used, node.totals().received), (2, 4, 6));
        node.shut_down().await;
        check(&node, 6, 3, false, false);
    });
}

/// A window that went on as a sketch says so, on the points of the series that did, and only there.
#[test]
fn windows_that_switched_say_so() {
    let keys = [("method", json!("exact")), ("max_values_per_window", json!(2))];
    run(async || {
        set_clock(NOON + 60 * SECOND);
        let mut node = Node::new(config(&keys), false);
        let items: Vec<Item> = (0..5).map(|at| (at, Some("1"), u8::from(at < 3))).collect();
        node.input(logs(&items, false)).await;
        node.shut_down().await;
        let sent = node.sent.values().next().expect("an output");
        let query = Query::new(ValueSource::Metric { names: vec!["m.quantile".to_owned()] });
        let group_by = ["g", "quantile.exact"].map(|key| key.parse().expect("a path"));
        let (mut reader, mut out) = (Reader::new(query.grouped_by(group_by.to_vec()), 100), Observations::default());
        reader.read_records(sent.payload.otap_ref().expect("records"), 0, &mut out).expect("readable");
        let mut series: Vec<String> = out.series.iter().map(|number| format!("{:?}", reader.series(*number))).collect();
        series.sort();
        assert_eq!(series.len(), 2);
        assert!(series[0].contains("Absent") && series[0].contains("\"0\""), "{series:?}");
        assert!(series[1].contains("Bool(false)") && series[1].contains("\"1\""), "{series:?}");
    });
}

/// A histogram for each window and series reads back through OTLP with the values of the window.
#[test]
fn windows_become_exponential_histograms() {
    for method in ["kll", "exact"] {
        let keys = [("method", json!(method)), ("output", json!("exponential_histogram")), ("max_buckets", json!(4))];
        run(async || {
            set_clock(NOON + 60 * SECOND);
            let mut node = Node::new(config(&keys), false);
            let values = ["1", "2", "4", "4", "-8", "0", "3"];
            let items: Vec<Item> = values.iter().map(|value| (1, Some(*value), 0)).collect();
            node.input(logs(&items, false)).await;
            node.shut_down().await;
            let payload = node.sent.values().next().expect("an output").payload.clone();
            let records = payload.otap_ref().expect("records").clone();
            let request: OtlpProtoBytes = records.try_into_with_options(Default::default()).expect("converts");
            let OtlpProtoBytes::ExportMetricsRequest(bytes) = request else { panic!("metrics") };
            let request = ExportMetricsServiceRequest::decode(bytes).expect("valid");
            let metric = &request.resource_metrics[0].scope_metrics[0].metrics[0];
            let Some(Data::ExponentialHistogram(data)) = &metric.data else { panic!("{metric:?}") };
            assert_eq!((metric.name.as_str(), data.aggregation_temporality, data.data_points.len()), ("m", 1, 1));
            let point = &data.data_points[0];
            let times = (point.start_time_unix_nano, point.time_unix_nano);
            assert_eq!(times, (NOON.unsigned_abs(), (NOON + 10 * SECOND).unsigned_abs()));
            assert_eq!((point.count, point.sum, point.min, point.max), (7, Some(6.0), Some(-8.0), Some(4.0)));
            assert_eq!((point.scale, point.zero_count), (0, 1));
            let positive = point.positive.as_ref().expect("buckets");
            assert_eq!((positive.offset, positive.bucket_counts.as_slice()), (-1, &[1, 1, 3][..]));
            let negative = point.negative.as_ref().expect("buckets");
            assert_eq!((negative.offset, negative.bucket_counts.as_slice()), (2, &[1][..]));
        });
    }
}

fn metrics() -> ExportMetricsServiceRequest {
    let point = |value: f64| NumberDataPoint {
        value: Some(Number::AsDouble(value)),
        time_unix_nano: (NOON + SECOND).unsigned_abs(),
        start_time_unix_nano: NOON.unsigned_abs(),
        ..NumberDataPoint::default()
    };
    let gauge = |values: &[f64]| Data::Gauge(Gauge { data_points: values.iter().map(|value| point(*value)).collect() });
    let sum = Sum { data_points: vec![point(5.0)], aggregation_temporality: 2, is_monotonic: true };
    let histogram = Histogram {
        data_points: vec![HistogramDataPoint {
            count: 1,
            time_unix_nano: NOON.unsigned_abs(),
            start_time_unix_nano: NOON.unsigned_abs(),
            ..HistogramDataPoint::default()
        }],
        aggregation_temporality: 1,
    };
    let metric = |name: &str, data| Metric { name: name.into(), data: Some(data), ..Metric::default() };
    let metrics = vec![
        metric("cpu.user", gauge(&[1.0, f64::NAN, 3.0])),
        metric("mem", gauge(&[4.0])),
        metric("cpu.total", Data::Sum(sum)),
        metric("cpu.time", Data::Histogram(histogram)),
    ];
    let scope_metrics = vec![ScopeMetrics { metrics, ..ScopeMetrics::default() }];
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics { scope_metrics, ..ResourceMetrics::default() }],
    }
}

/// Cumulative sums, histograms, other metrics and points without a number are dropped and counted, or go on; what is
/// observed goes on with `all` only.
#[test]
fn what_is_no_observation_goes_on_or_is_counted() {
    let bytes = metrics().encode_to_vec();
    for (forward, as_records) in
        ["none", "rest", "all"].into_iter().flat_map(|forward| [(forward, false), (forward, true)])
    {
        let keys = [("forward", json!(forward)), ("measures", json!([{"name": "m", "metrics": ["cpu.*"]}]))];
        run(async || {
            set_clock(NOON + 60 * SECOND);
            let mut node = Node::new(config(&keys), false);
            let request = OtlpProtoBytes::ExportMetricsRequest(bytes.clone().into());
            let input = node.input(payload(request, as_records)).await;
            let totals = node.totals().clone();
            assert_eq!((totals.received, totals.used), (6, 2));
            let reasons = [totals.no_value, totals.not_a_number, totals.cumulative, totals.other_points];
            let (expected, on, copied) = match forward {
                "none" => ([1, 1, 1, 1], 0, 0),
                "rest" => ([0; 4], 4, 0),
                _ => ([0; 4], 4, 2),
            };
            assert_eq!((reasons, totals.forwarded, totals.copied), (expected, on, copied));
            let sent: u64 = node.sent.values().map(|sent| items_of(&sent.payload)).sum();
            assert_eq!(sent, on + copied);
            if forward == "all" && !as_records {
                let sent = &node.sent.values().next().expect("an output").payload;
                assert_eq!(sent.encoded_bytes().expect("bytes").as_ref(), bytes, "unchanged");
            }
            if forward != "none" {
                assert!(node.settle(Outcome::Acknowledged).await);
                assert!(node.outcomes.is_empty(), "the window is open");
            }
            node.shut_down().await;
            assert_eq!(node.outcomes[&input].len(), 1);
        });
    }
}

/// The input ends when the forwarded part, the late part and its windows have, whichever is last; a refused part refuses
/// it once.
#[test]
fn an_input_waits_for_what_went_on() {
    let keys = [("forward", json!("rest")), ("late", json!("side_output"))];
    for outcome in [Outcome::Acknowledged, Outcome::RefusedForGood] {
        run(async || {
            set_clock(NOON + 60 * SECOND);
            let mut node = Node::new(config(&keys), true);
            let first = node.input(logs(&[(30, Some("1"), 0)], false)).await;
            let second = node.input(logs(&[(1, Some("2"), 0), (2, None, 0)], false)).await;
            assert_eq!(node.sent.values().map(|sent| sent.late).collect::<Vec<_>>(), [false, true]);
            assert!(node.settle(Outcome::Acknowledged).await);
            assert!(!node.outcomes.contains_key(&second), "the late part is under way");
            assert!(node.settle(outcome).await);
            assert_eq!(node.outcomes[&second], [outcome]);
            assert!(!node.outcomes.contains_key(&first));
            let refused = u64::from(outcome == Outcome::RefusedForGood);
            assert_eq!((node.totals().late, node.totals().forwarded_refused), (1, refused));
        });
    }
}

/// A late output that is asked for must be connected: the pipeline ends with a word about it.
#[test]
fn the_late_port_must_be_connected() {
    run(async || {
        let mut node = Node::with_ports(config(&[("late", json!("side_output"))]), true, false);
        let failure = node.failure(logs(&[(1, Some("1"), 0)], false)).await.expect("fails");
        assert!(failure.contains("output `late` is not connected"), "{failure}");
    });
}

/// With as many inputs under way as may be, no more are taken until some end.
#[test]
fn inputs_are_bounded() {
    run(async || {
        set_clock(NOON + 60 * SECOND);
        let mut node = Node::new(config(&[("max_held_inputs", json!(2))]), false);
        node.input(logs(&[(1, Some("1"), 0)], false)).await;
        assert!(node.accepts());
        node.input(logs(&[(30, Some("1"), 0)], false)).await;
        assert!(!node.accepts());
        assert!(node.settle(Outcome::Acknowledged).await);
        assert!(node.accepts());
    });
}

/// The stages that take sketches send again too, and answer with histograms.
#[test]
fn an_estimate_is_sent_again() {
    run(async || {
        set_clock(NOON + 60 * SECOND);
        let sketches = config(&[("stage", json!("create")), ("method", json!("exact"))]);
        let mut branch = Node::new(sketches, false);
        branch.input(logs(&[(1, Some("1"), 0), (2, Some("4"), 0), (3, Some("0"), 0)], false)).await;
        branch.shut_down().await;
        let sketch = branch.sent.values().next().expect("a sketch").payload.clone();
        let estimate = json!({"stage": "estimate", "expected_sources": 1, "output": "exponential_histogram"});
        let mut node = Node::merging(MergeConfig::parse(&estimate).expect("valid"));
        let input = node.input(sketch).await;
        assert!(node.settle(Outcome::RefusedForNow).await && node.due.is_empty());
        node.tick(Instant::now() + Duration::from_secs(2)).await;
        let sent = node.sent.values().next().expect("an output");
        let records = sent.payload.otap_ref().expect("records").clone();
        assert_eq!((sent.times, node.outcomes.len()), (2, 0));
        assert!(node.settle(Outcome::Acknowledged).await);
        assert_eq!(node.outcomes[&input], [Outcome::Acknowledged]);
        let request: OtlpProtoBytes = records.try_into_with_options(Default::default()).expect("converts");
        let OtlpProtoBytes::ExportMetricsRequest(bytes) = request else { panic!("metrics") };
        let request = ExportMetricsServiceRequest::decode(bytes).expect("valid");
        let metric = &request.resource_metrics[0].scope_metrics[0].metrics[0];
        let Some(Data::ExponentialHistogram(data)) = &metric.data else { panic!("{metric:?}") };
        let point = &data.data_points[0];
        assert_eq!((point.count, point.zero_count, point.sum, point.max), (3, 1, Some(5.0), Some(4.0)));
    });
}
