//! Memory of the way from OTLP requests to windows of many series, as the quantile processor goes it: alone in its file, since
//! tests of one file share a process.

use std::fs;

use catchment_columns::quantile::{Observations, OtlpSignal, Query, Reader, SeriesKey, ValueSource};
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

const SERIES: usize = 100_000;
const KEYS: [&str; 3] = ["service.name", "http.route", "host.name"];

/// Resident bytes of this process, where the kernel tells.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// A point for each of a thousand series.
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
    let data_points = (batch * 1000..batch * 1000 + 1000).map(point).collect();
    let metric = Metric { name: "m".into(), data: Some(Data::Gauge(Gauge { data_points })), ..Metric::default() };
    let scope_metrics = vec![ScopeMetrics { metrics: vec![metric], ..ScopeMetrics::default() }];
    let resource_metrics = vec![ResourceMetrics { scope_metrics, ..ResourceMetrics::default() }];
    ExportMetricsServiceRequest { resource_metrics }.encode_to_vec()
}

/// A hundred thousand series of five values, with all that the reader and the windows remember of them and of their keys of
/// three texts, take less than 40 MB.
#[test]
fn many_short_series_take_little_memory() {
    let spec = WindowSpec::Tumbling { size_ns: 10, allowed_lateness_ns: 0, max_future_ns: u64::MAX };
    let config = WindowConfig { spec, max_series: SERIES, idle_ns: 1 };
    let factory = AccumulatorConfig::new(Method::Kll { k: 200 }, 1).expect("method");
    let mut windows = Windows::<SeriesKey, _>::new(config, factory).expect("windows");
    let group_by = KEYS.iter().map(|key| key.parse().expect("a path")).collect();
    let query = Query::new(ValueSource::Metric { names: vec!["m".into()] }).grouped_by(group_by);
    let mut reader = Reader::new(query, 2 * SERIES + 1024);
    let (mut table, mut slots, mut rows) = (SlotTable::default(), Vec::new(), Vec::new());
    let mut out = Observations::default();
    let mut put = |batch: usize| {
        reader.read_otlp(OtlpSignal::Metrics, &request(batch), 1, &mut out).expect("valid");
        table.resolve(&mut windows, reader.generation(), &out.series, |number| reader.series(number), &mut slots);
        rows.clear();
        rows.extend(out.groups.iter().map(|group| slots[*group as usize]));
        windows.observe_rows(&rows, &out.times, &out.values, 1, |_, _| {}).expect("fresh slots");
    };
    // What the process needs in any case.
    put(0);
    let Some(before) = resident() else {
        println!("skipped: no VmRSS in /proc/self/status");
        return;
    };
    for round in 0..5 {
        (usize::from(round == 0)..SERIES / 1000).for_each(&mut put);
    }
    let after = resident().expect("as before").saturating_sub(before);
    println!("{after} bytes resident, {} in accumulators", windows.retained_bytes());
    assert_eq!((windows.open_series(), windows.counters().used), (SERIES, 5 * SERIES as u64));
    assert!(after < 40_000_000, "{after} bytes");
}
