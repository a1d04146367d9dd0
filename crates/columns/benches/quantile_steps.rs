//! The longest steps on the way of a hundred thousand series through reader and windows: milliseconds.
//!
//! `cargo bench -p catchment-columns --bench quantile_steps`. An engine runs many nodes in one thread: what is done in one
//! go delays all. Each step is timed in every round, and the best time of each counts, so that a busy machine does not
//! show; told is the longest of these.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints, and may stop")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use catchment_columns::quantile::KeyValue as SeriesValue;
use catchment_columns::quantile::{
    Observations, OtlpSignal, Query, Reader, Results, SeriesKey, ValueSource, WindowResult,
};
use catchment_quantile::accumulator::{AccumulatorConfig, Method};
use catchment_quantile::window::{SlotTable, WindowConfig, WindowSpec, Windows};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::metrics::v1::ExportMetricsServiceRequest;
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::any_value::Value;
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::{AnyValue, KeyValue};
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::metric::Data;
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::number_data_point::Value as Number;
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::{
    Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics,
};
use prost::Message;

const ROUNDS: usize = 5;
const SERIES: usize = 100_000;
const BATCH: usize = 1_000;
const KEYS: [&str; 3] = ["service.name", "http.route", "host.name"];

/// A point for each of the series of a batch.
fn request(batch: usize) -> Vec<u8> {
    let text = |(key, value): (&str, String)| KeyValue {
        key: key.into(),
        value: Some(AnyValue { value: Some(Value::StringValue(value)) }),
    };
    let point = |series: usize| NumberDataPoint {
        attributes: KEYS
            .into_iter()
            .zip([
                format!("service-{}", series % 10),
                format!("/api/v1/{}", series / 10 % 100),
                format!("host-{}", series / 1000),
            ])
            .map(text)
            .collect(),
        time_unix_nano: 1,
        value: Some(Number::AsDouble(series as f64)),
        ..NumberDataPoint::default()
    };
    let data_points = (batch * BATCH..(batch + 1) * BATCH).map(point).collect();
    let metric = Metric { name: "m".into(), data: Some(Data::Gauge(Gauge { data_points })), ..Metric::default() };
    let scope_metrics = vec![ScopeMetrics { metrics: vec![metric], ..ScopeMetrics::default() }];
    let resource_metrics = vec![ResourceMetrics { scope_metrics, ..ResourceMetrics::default() }];
    ExportMetricsServiceRequest { resource_metrics }.encode_to_vec()
}

/// Best times of steps, by what is done and by how often it was done before.
#[derive(Default)]
struct Steps {
    best: BTreeMap<&'static str, Vec<Duration>>,
    at: BTreeMap<&'static str, usize>,
}

impl Steps {
    fn time<T>(&mut self, what: &'static str, step: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = step();
        let took = begin.elapsed();
        let at = self.at.entry(what).or_default();
        let best = self.best.entry(what).or_default();
        match best.get_mut(*at) {
            Some(best) => *best = took.min(*best),
            None => best.push(took),
        }
        *at += 1;
        result
    }

    fn tell(&self, title: &str) {
        println!("{title}");
        for (what, best) in &self.best {
            let mut sorted = best.clone();
            sorted.sort_unstable();
            let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
            let (longest, median) = (milliseconds(sorted[sorted.len() - 1]), milliseconds(sorted[sorted.len() / 2]));
            println!("  {what:<28} longest {longest:7.3}   median {median:7.3}   of {}", sorted.len());
        }
    }
}

fn run(title: &str, spec: WindowSpec, batches: &[Vec<u8>], window_every: usize) {
    let mut steps = Steps::default();
    for _ in 0..ROUNDS {
        steps.at.clear();
        let config = WindowConfig { spec, max_series: SERIES, idle_ns: 1_000 };
        let factory = AccumulatorConfig::new(Method::Kll { k: 200 }, 1).unwrap();
        let mut windows = Windows::<SeriesKey, _>::new(config, factory).unwrap();
        let group_by = KEYS.iter().map(|key| key.parse().unwrap()).collect();
        let query = Query::new(ValueSource::Metric { names: vec!["m".into()] }).grouped_by(group_by);
        let mut reader = Reader::new(query, 2 * SERIES + 1024);
        let (mut table, mut slots, mut rows) = (SlotTable::default(), Vec::new(), Vec::new());
        let mut out = Observations::default();
        for (batch, request) in batches.iter().enumerate() {
            steps.time("read", || reader.read_otlp(OtlpSignal::Metrics, request, 1, &mut out)).unwrap();
            let key = |number| reader.series(number);
            steps.time("find slots", || table.resolve(&mut windows, reader.generation(), &out.series, key, &mut slots));
            rows.clear();
            rows.extend(out.groups.iter().map(|group| slots[*group as usize]));
            let start = (batch / window_every * 10) as i64;
            let times = vec![start; out.values.len()];
            steps.time("observe", || windows.observe_rows(&rows, &times, &out.values, 1, |_, _| {})).unwrap();
            let closed = steps.time("close complete", || windows.poll_closed());
            steps.time("nothing idle", || windows.flush_idle(2));
            drop(closed);
        }
        loop {
            drop(steps.time("close idle", || windows.flush_idle(10_000)));
            if !windows.is_flushing() {
                break;
            }
        }
        while windows.open_series() > 0 {
            drop(steps.time("close all", || windows.flush_all()));
        }
        steps.time("drop reader", || drop(reader));
    }
    steps.tell(title);
}

/// Results of as many series as the processor puts into one output.
fn write_results() {
    let mut steps = Steps::default();
    let group_by: Vec<_> = KEYS.iter().map(|key| key.parse().unwrap()).collect();
    let text = |value: String| SeriesValue::Text(value.into());
    for _ in 0..ROUNDS {
        steps.at.clear();
        let mut results = Results::default();
        for series in 0..1_024 {
            let key = [text(format!("service-{}", series % 10)), text(format!("/{series}")), text("host".into())];
            let result = WindowResult {
                name: "m",
                unit: "s",
                group_by: &group_by,
                key: Some(&key),
                start_unix_nano: 1,
                end_unix_nano: 2,
                quantiles: &[(0.5, 1.0), (0.9, 2.0), (0.95, 3.0), (0.99, 4.0)],
                statistics: &[("count", 5.0)],
                exact: true,
            };
            steps.time("add a series", || results.push(&result));
        }
        let _ = steps.time("finish", || results.finish()).unwrap();
    }
    steps.tell("results of 1024 series");
}

fn main() {
    write_results();
    let tumbling = WindowSpec::Tumbling { size_ns: 10, allowed_lateness_ns: 0, max_future_ns: u64::MAX };
    let batches: Vec<_> = (0..SERIES / BATCH).map(request).collect();
    println!("milliseconds, best of {ROUNDS} rounds, batches of {BATCH} points, each of another series");
    run("100000 series, one window", tumbling, &batches, usize::MAX);
    run("100000 series, count windows", WindowSpec::Count(10), &batches, usize::MAX);
    let batches: Vec<_> = (0..6 * SERIES / BATCH).map(request).collect();
    run("600000 series, a window for each 50000", tumbling, &batches, 50);
}
