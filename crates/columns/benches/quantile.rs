//! Observations out of OTAP columns and OTLP bytes, alone and with the windows they go into: nanoseconds a point.
//!
//! `cargo bench -p catchment-columns --bench quantile`, with `-- <text>` for the shapes and ways whose names have it. Best
//! and median of several rounds.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints, and may stop")]

use std::hint::black_box;
use std::time::Instant;

use catchment_columns::OtapArrowRecords;
use catchment_columns::quantile::{
    AttributePath, Grouped, Observations, OtlpSignal, Place, Query, Reader, SeriesKey, TextNumbers, ValueSource,
};
use catchment_quantile::accumulator::{AccumulatorConfig, Method, WhenFull};
use catchment_quantile::window::{SeriesSlot, SlotTable, WindowConfig, WindowSpec, Windows};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::logs::v1::ExportLogsServiceRequest;
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::metrics::v1::ExportMetricsServiceRequest;
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::any_value::Value;
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::{AnyValue, KeyValue};
use otel_arrow_dfe_pdata::proto::opentelemetry::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::metric::Data;
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::number_data_point::Value as Number;
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::{
    Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics,
};
use otel_arrow_dfe_pdata::{OtlpProtoBytes, TryIntoWithOptions};
use prost::Message;

const ROUNDS: usize = 21;
/// Points of a round, over all batches.
const POINTS: usize = 262_144;
const SECOND: i64 = 1_000_000_000;
const NOW: i64 = 1_796_040_000 * SECOND;

/// What requests look like.
#[derive(Clone, Copy)]
struct Shape {
    points: usize,
    /// Each point in a metric of its own, or all in one.
    own_metric: bool,
    /// Values of each of three attributes; 0 for no attributes.
    values: u64,
    /// Further attributes, which nobody asks for.
    others: usize,
    /// Whether one of these is different each time.
    unique: bool,
}

impl Shape {
    const fn new(points: usize, own_metric: bool, values: u64) -> Self {
        Self { points, own_metric, values, others: 0, unique: false }
    }
}

fn requests(shape: Shape) -> Vec<Vec<u8>> {
    let mut state = 7_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let text = |key: &str, value: String| KeyValue {
        key: key.into(),
        value: Some(AnyValue { value: Some(Value::StringValue(value)) }),
    };
    let metric = |data_points| Metric {
        name: "http.server.request.duration".into(),
        unit: "s".into(),
        data: Some(Data::Gauge(Gauge { data_points })),
        ..Metric::default()
    };
    let count = POINTS / shape.points;
    (0..count)
        .map(|_| {
            let points: Vec<_> = (0..shape.points)
                .map(|_| {
                    let mut attributes = Vec::new();
                    if shape.values > 0 {
                        attributes.push(text("http.route", format!("/api/v1/item/{}", random() % shape.values)));
                        attributes.push(text("server.address", format!("node-{}.example", random() % shape.values)));
                        attributes.push(text("status", format!("{}", 200 + random() % shape.values)));
                    }
                    for other in 0..shape.others {
                        let value = if shape.unique && other == 0 { random() } else { 17 };
                        attributes.push(text(&format!("k8s.label.{other}"), format!("value-{value}")));
                    }
                    NumberDataPoint {
                        attributes,
                        start_time_unix_nano: NOW.unsigned_abs(),
                        time_unix_nano: NOW.unsigned_abs() + random(),
                        value: Some(Number::AsDouble(random() as f64 / 1e6)),
                        ..NumberDataPoint::default()
                    }
                })
                .collect();
            let metrics = match shape.own_metric {
                true => points.into_iter().map(|point| metric(vec![point])).collect(),
                false => vec![metric(points)],
            };
            let scope_metrics = vec![ScopeMetrics { metrics, ..ScopeMetrics::default() }];
            let resource_metrics = vec![ResourceMetrics { scope_metrics, ..ResourceMetrics::default() }];
            ExportMetricsServiceRequest { resource_metrics }.encode_to_vec()
        })
        .collect()
}

fn records(request: &[u8]) -> OtapArrowRecords {
    OtlpProtoBytes::ExportMetricsRequest(request.to_vec().into()).try_into_with_options(Default::default()).unwrap()
}

/// Log records with twenty attributes, of which every third is a number.
fn logs() -> Vec<OtapArrowRecords> {
    let value = |record: usize, number: usize| match number % 3 {
        1 => Value::IntValue(record as i64 * number as i64 % 977),
        _ => Value::StringValue(format!("value {}", record * (number + 1) % 40)),
    };
    let record = |record: usize| LogRecord {
        time_unix_nano: NOW.unsigned_abs(),
        attributes: (0..20)
            .map(|number| KeyValue {
                key: format!("attribute.{number}"),
                value: Some(AnyValue { value: Some(value(record, number)) }),
            })
            .collect(),
        ..LogRecord::default()
    };
    (0..POINTS / 4_096)
        .map(|batch| {
            let log_records = (batch * 4_096..(batch + 1) * 4_096).map(record).collect();
            let scope_logs = vec![ScopeLogs { log_records, ..ScopeLogs::default() }];
            let resource_logs = vec![ResourceLogs { scope_logs, ..ResourceLogs::default() }];
            let request = ExportLogsServiceRequest { resource_logs }.encode_to_vec();
            OtlpProtoBytes::ExportLogsRequest(request.into()).try_into_with_options(Default::default()).unwrap()
        })
        .collect()
}

/// Batches as they come from another process, with encoded ids: read as they are, and decoded first.
fn as_sent(name: &str, batches: &[OtapArrowRecords], query: Query) {
    let mut reader = Reader::new(query, 50_000);
    let mut out = Observations::default();
    let mut encoded = batches.to_vec();
    encoded.iter_mut().for_each(|batch| batch.encode_transport_optimized().unwrap());
    let mut read = |decode: bool| {
        time(|| {
            for batch in &encoded {
                let mut batch = batch.clone();
                if decode {
                    batch.decode_transport_optimized_ids().unwrap();
                }
                reader.read_records(&batch, NOW, &mut out).unwrap();
                let _ = black_box(&out);
            }
        })
    };
    let (as_is, decoded) = (read(false), read(true));
    println!(
        "{name:40} as sent    otap {:6.1} / {:6.1}   decoded first {:6.1} / {:6.1}",
        as_is.0, as_is.1, decoded.0, decoded.1
    );
}

type OpenWindows = Windows<SeriesKey, AccumulatorConfig>;

fn windows(method: Method) -> Way {
    let spec = WindowSpec::Tumbling {
        size_ns: 10 * SECOND.unsigned_abs(),
        allowed_lateness_ns: 0,
        max_future_ns: 100 * SECOND.unsigned_abs(),
    };
    let config = WindowConfig { spec, max_series: 20_000, idle_ns: SECOND.unsigned_abs() };
    Way {
        windows: Windows::new(config, AccumulatorConfig::new(method, 1).unwrap()).unwrap(),
        grouped: Grouped::default(),
        table: SlotTable::default(),
        slots: Vec::new(),
        rows: Vec::new(),
    }
}

/// Best and median nanoseconds a point of `round`, which works all requests off.
fn time(mut round: impl FnMut()) -> (f64, f64) {
    round();
    let mut all: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            round();
            start.elapsed().as_nanos() as f64 / POINTS as f64
        })
        .collect();
    all.sort_by(f64::total_cmp);
    (all[0], all[ROUNDS / 2])
}

/// Windows and what batches need on their way into them.
struct Way {
    windows: OpenWindows,
    grouped: Grouped,
    table: SlotTable,
    slots: Vec<SeriesSlot>,
    rows: Vec<SeriesSlot>,
}

/// As the processor does it: by row where series have few observations each, else series by series.
fn put(way: &mut Option<Way>, reader: &Reader, out: &Observations) {
    let Some(Way { windows, grouped, table, slots, rows }) = way else { return };
    table.resolve(windows, reader.generation(), &out.series, |number| reader.series(number), slots);
    if by_row(out) {
        rows.clear();
        rows.extend(out.groups.iter().map(|group| slots[*group as usize]));
        let tally = windows.observe_rows(rows, &out.times, &out.values, NOW, |_, _| {}).unwrap();
        assert_eq!(tally.used, out.values.len() as u64);
    } else {
        for run in grouped.runs(out) {
            let tally = windows.observe_slice(slots[run.group], run.times, run.values, NOW, |_, _| {}).unwrap();
            assert_eq!(tally.used, run.values.len() as u64);
        }
    }
}

fn by_row(out: &Observations) -> bool {
    out.values.len() < out.series.len() * 16
}

fn main() {
    let k = 400;
    let exact = Method::Exact { max_values: u64::from(u32::MAX), when_full: WhenFull::Refuse };
    let sinks = [("read only", None), ("kll k=400", Some(Method::Kll { k })), ("exact", Some(exact))];
    let seven = Shape { others: 4, ..Shape::new(1_024, true, 10) };
    let shapes = [
        ("one metric, no attributes", Shape::new(8_192, false, 0)),
        ("one metric, 3 keys, 1000 series", Shape::new(8_192, false, 10)),
        ("one metric of 1024, 3 keys, 1000 series", Shape::new(1_024, false, 10)),
        ("1024 metrics, 3 keys, 1000 series", Shape::new(1_024, true, 10)),
        ("1024 metrics, 3 of 7 keys, 1000 series", seven),
        ("same, a key different each time", Shape { unique: true, ..seven }),
    ];
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_wanted = |name: &str, what: &str| {
        let line = format!("{name} {what}");
        wanted.iter().all(|part| line.contains(part))
    };
    println!("best / median of {ROUNDS} rounds of {POINTS} points, nanoseconds a point");
    for (name, shape) in shapes {
        let requests = requests(shape);
        let batches: Vec<_> = requests.iter().map(|request| records(request)).collect();
        let keys: &[&str] = if shape.values == 0 { &[] } else { &["http.route", "server.address", "status"] };
        let query = || {
            let group_by = keys.iter().map(|key| key.parse().unwrap()).collect();
            Query::new(ValueSource::Metric { names: vec!["http.*".into()] }).grouped_by(group_by)
        };
        for (sink, method) in sinks.into_iter().filter(|(sink, _)| is_wanted(name, sink)) {
            let mut out = Observations::default();
            let mut reader = Reader::new(query(), 50_000);
            let otap = time(|| {
                let mut windows = method.map(windows);
                for batch in &batches {
                    reader.read_records(batch, NOW, &mut out).unwrap();
                    put(&mut windows, &reader, black_box(&out));
                }
            });
            let otlp = time(|| {
                let mut windows = method.map(windows);
                for request in &requests {
                    reader.read_otlp(OtlpSignal::Metrics, request, NOW, &mut out).unwrap();
                    put(&mut windows, &reader, black_box(&out));
                }
            });
            println!("{name:40} {sink:10} otap {:6.1} / {:6.1}   otlp {:6.1} / {:6.1}", otap.0, otap.1, otlp.0, otlp.1);
        }
        if is_wanted(name, "as sent") {
            as_sent(name, &batches, query());
        }
        if !is_wanted(name, "converted") {
            continue;
        }
        let (mut out, mut reader) = (Observations::default(), Reader::new(query(), 50_000));
        let converted = time(|| {
            for request in &requests {
                reader.read_records(&records(request), NOW, &mut out).unwrap();
                let _ = black_box(&out);
            }
        });
        println!("{name:40} read only, otlp converted to otap first {:6.1} / {:6.1}", converted.0, converted.1);
    }
    if is_wanted("logs of 20 attributes", "as sent") {
        let attribute = AttributePath { place: Place::Record, key: "attribute.7".into(), steps: Vec::new() };
        let group_by = ["attribute.0", "attribute.1"].map(|key| key.parse().unwrap()).into();
        let query = Query::new(ValueSource::LogAttribute { attribute, text: TextNumbers::Refuse }).grouped_by(group_by);
        as_sent("logs of 20 attributes", &logs(), query);
    }
}
