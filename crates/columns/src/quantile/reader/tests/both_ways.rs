//! The bytes of a request and the columns made from them give the same observations.

use otel_arrow_dfe_pdata::proto::opentelemetry::collector::logs::v1::ExportLogsServiceRequest;
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::metrics::v1::ExportMetricsServiceRequest;
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::any_value::Value;
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue as Attribute, KeyValueList,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::metric::Data;
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::number_data_point::Value as Number;
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::{
    Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::resource::v1::Resource;
use otel_arrow_dfe_pdata::{OtlpProtoBytes, TryIntoWithOptions};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::LazyJust;
use prost::Message;

use super::*;
use crate::quantile::OtlpError;

const NOW: i64 = 77;

fn of(value: Value) -> AnyValue {
    AnyValue { value: Some(value) }
}

pub(super) fn text(text: &str) -> AnyValue {
    of(Value::StringValue(text.to_owned()))
}

pub(super) fn int(value: i64) -> AnyValue {
    of(Value::IntValue(value))
}

/// A value of any kind; lists and maps up to two within each other.
fn value() -> impl Strategy<Value = AnyValue> {
    let leaf = prop_oneof![
        4 => "[a-c]{0,2}".prop_map(|text| of(Value::StringValue(text))),
        1 => "[0-9]{1,3}(ms|s)?".prop_map(|text| of(Value::StringValue(text))),
        3 => (-3i64..4).prop_map(|value| of(Value::IntValue(value))),
        2 => prop_oneof![Just(0.0), Just(-0.0), Just(1.5), Just(0.1), Just(f64::NAN), Just(f64::INFINITY)]
            .prop_map(|value| of(Value::DoubleValue(value))),
        1 => any::<bool>().prop_map(|value| of(Value::BoolValue(value))),
        1 => vec(0u8..3, 0..3).prop_map(|bytes| of(Value::BytesValue(bytes))),
        1 => LazyJust::new(|| AnyValue { value: None }),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(|values| of(Value::ArrayValue(ArrayValue { values }))),
            vec(("[xy]", inner), 0..3).prop_map(|entries| {
                let values = entries.into_iter().map(|(key, value)| attribute(&key, value)).collect();
                of(Value::KvlistValue(KeyValueList { values }))
            }),
        ]
    })
}

pub(super) fn attribute(key: &str, value: AnyValue) -> Attribute {
    Attribute { key: key.to_owned(), value: Some(value) }
}

/// Attributes with different keys of few.
fn attributes() -> impl Strategy<Value = Vec<Attribute>> {
    proptest::sample::subsequence(vec!["a", "b", "v", "w"], 0..=4).prop_flat_map(|keys| {
        let count = keys.len();
        vec(value(), count).prop_map(move |values| {
            keys.iter().zip(values).map(|(key, value)| attribute(key, value)).collect::<Vec<_>>()
        })
    })
}

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1u64..5]
}

fn resource() -> impl Strategy<Value = Option<Resource>> {
    proptest::option::of(attributes().prop_map(|attributes| Resource { attributes, ..Resource::default() }))
}

fn scope() -> impl Strategy<Value = Option<InstrumentationScope>> {
    proptest::option::of(attributes().prop_map(|attributes| InstrumentationScope {
        name: "s".into(),
        attributes,
        ..InstrumentationScope::default()
    }))
}

fn number_point() -> impl Strategy<Value = NumberDataPoint> {
    let number = prop_oneof![
        1 => Just(None),
        3 => (-3i64..4).prop_map(|value| Some(Number::AsInt(value))),
        6 => (0u8..9).prop_map(|value| Some(Number::AsDouble(f64::from(value) / 2.0))),
        1 => Just(Some(Number::AsDouble(f64::NAN))),
        1 => Just(Some(Number::AsDouble(f64::INFINITY))),
    ];
    (attributes(), number, time(), prop_oneof![9 => Just(0u32), 1 => Just(1u32)]).prop_map(
        |(attributes, value, time_unix_nano, flags)| NumberDataPoint {
            attributes,
            value,
            time_unix_nano,
            flags,
            start_time_unix_nano: 1,
            ..NumberDataPoint::default()
        },
    )
}

fn metric() -> impl Strategy<Value = Metric> {
    let data = prop_oneof![
        4 => vec(number_point(), 1..5).prop_map(|data_points| Data::Gauge(Gauge { data_points })),
        4 => (vec(number_point(), 1..5), 0i32..3).prop_map(|(data_points, aggregation_temporality)| {
            Data::Sum(Sum { data_points, aggregation_temporality, is_monotonic: true })
        }),
        1 => Just(Data::Histogram(Histogram {
            data_points: vec![HistogramDataPoint { count: 1, ..HistogramDataPoint::default() }],
            aggregation_temporality: 1,
        })),
    ];
    (prop_oneof![Just("cpu.a"), Just("cpu.b"), Just("mem")], data).prop_map(|(name, data)| Metric {
        name: name.into(),
        data: Some(data),
        ..Metric::default()
    })
}

pub(super) fn metrics() -> impl Strategy<Value = ExportMetricsServiceRequest> {
    let scopes = (scope(), vec(metric(), 1..4)).prop_map(|(scope, metrics)| ScopeMetrics {
        scope,
        metrics,
        ..ScopeMetrics::default()
    });
    let resources = (resource(), vec(scopes, 1..3)).prop_map(|(resource, scope_metrics)| ResourceMetrics {
        resource,
        scope_metrics,
        ..ResourceMetrics::default()
    });
    vec(resources, 1..3).prop_map(|resource_metrics| ExportMetricsServiceRequest { resource_metrics })
}

fn logs() -> impl Strategy<Value = ExportLogsServiceRequest> {
    let record = (attributes(), time(), time()).prop_map(|(attributes, time_unix_nano, observed_time_unix_nano)| {
        LogRecord { attributes, time_unix_nano, observed_time_unix_nano, ..LogRecord::default() }
    });
    let scopes = (scope(), vec(record, 1..6)).prop_map(|(scope, log_records)| ScopeLogs {
        scope,
        log_records,
        ..ScopeLogs::default()
    });
    let resources = (resource(), vec(scopes, 1..3)).prop_map(|(resource, scope_logs)| ResourceLogs {
        resource,
        scope_logs,
        ..ResourceLogs::default()
    });
    vec(resources, 1..3).prop_map(|resource_logs| ExportLogsServiceRequest { resource_logs })
}

pub(super) fn query(source: ValueSource) -> impl Strategy<Value = Query> {
    let paths = vec!["a", "b/x", "v/0", "resource:a", "scope:b/y", "v", "b/x/y", "scope:a"];
    let groups = proptest::sample::subsequence(paths, 0..=4);
    let time = prop_oneof![Just(TimeSource::Event), Just(TimeSource::Observed)];
    let non_finite = prop_oneof![Just(NonFinite::Drop), Just(NonFinite::Keep)];
    let weight = proptest::option::of(prop_oneof![Just("w"), Just("resource:w"), Just("w/x")]);
    (groups, time, non_finite, weight).prop_map(move |(groups, time, non_finite, weight)| Query {
        source: source.clone(),
        weight_from: weight.map(path),
        group_by: groups.into_iter().map(path).collect(),
        time,
        non_finite,
    })
}

fn log_source() -> impl Strategy<Value = ValueSource> {
    let text = prop_oneof![Just(TextNumbers::Refuse), Just(TextNumbers::Decimal), Just(TextNumbers::Duration)];
    (prop_oneof![Just("v"), Just("v/x"), Just("scope:v"), Just("resource:v/1")], text)
        .prop_map(|(attribute, text)| ValueSource::LogAttribute { attribute: path(attribute), text })
}

pub(super) fn metric_source() -> impl Strategy<Value = ValueSource> {
    prop_oneof![Just(vec!["cpu.*"]), Just(vec!["mem", "cpu.b"]), Just(vec!["*"])]
        .prop_map(|names| ValueSource::Metric { names: names.into_iter().map(str::to_owned).collect() })
}

pub(super) fn records(request: OtlpProtoBytes) -> OtapArrowRecords {
    request.try_into_with_options(Default::default()).expect("converts")
}

pub(super) fn observed(reader: &Reader, out: &Observations) -> String {
    let key = |group: &u32| reader.series(out.series[*group as usize]).to_vec();
    let keys: Vec<_> = out.groups.iter().map(key).collect();
    // As text, so that NaN equals itself.
    format!(
        "{:?}",
        (&out.values, &out.times, &out.weights, keys, &out.groups, &out.items, &out.fates, out.other_points)
    )
}

fn check(signal: OtlpSignal, request: Vec<u8>, query: Query) -> Result<(), TestCaseError> {
    let mut reader = Reader::new(query, 100);
    let (mut direct, mut columns) = (Observations::default(), Observations::default());
    reader.read_otlp(signal, &request, NOW, &mut direct).expect("valid");
    let (as_read, sorted_direct) = (observed(&reader, &direct), sorted(&reader, &direct));
    let mut records = records(match signal {
        OtlpSignal::Logs => OtlpProtoBytes::ExportLogsRequest(request.into()),
        OtlpSignal::Metrics => OtlpProtoBytes::ExportMetricsRequest(request.into()),
    });
    reader.read_records(&records, NOW, &mut columns).expect("valid");
    prop_assert_eq!(as_read, observed(&reader, &columns));
    // As they come over the wire: ids are encoded, and rows are in another order.
    records.encode_transport_optimized().expect("encodes");
    reader.read_records(&records, NOW, &mut columns).expect("valid");
    let encoded = observed(&reader, &columns);
    records.decode_transport_optimized_ids().expect("decodes");
    reader.read_records(&records, NOW, &mut columns).expect("valid");
    prop_assert_eq!(encoded, observed(&reader, &columns));
    prop_assert_eq!(sorted_direct, sorted(&reader, &columns));
    Ok(())
}

fn sorted(reader: &Reader, out: &Observations) -> (Vec<String>, Vec<Fate>) {
    let mut all: Vec<_> = (0..out.values.len())
        .map(|at| {
            let key = reader.series(out.series[out.groups[at] as usize]);
            // The weight 1.5 is 1 or 2 by the place of the item, which is another one now.
            let weight = out.weights.get(at).map(|weight| if *weight == 1 { 2 } else { *weight });
            format!("{:?}", (out.values[at], out.times[at], weight, &key[..]))
        })
        .collect();
    all.sort();
    let mut fates = out.fates.clone();
    fates.sort();
    (all, fates)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn metrics_read_the_same_both_ways(
        request in metrics(),
        query in metric_source().prop_flat_map(query),
    ) {
        check(OtlpSignal::Metrics, request.encode_to_vec(), query)?;
    }

    #[test]
    fn logs_read_the_same_both_ways(request in logs(), query in log_source().prop_flat_map(query)) {
        check(OtlpSignal::Logs, request.encode_to_vec(), query)?;
    }

    /// Cut or damaged anywhere: a typed error and no observation, or as many items as were there at most.
    #[test]
    fn damage_is_an_error_or_harmless(
        request in metrics(),
        query in metric_source().prop_flat_map(query),
        place in any::<proptest::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let mut request = request.encode_to_vec();
        let place = place.index(request.len());
        if cut { request.truncate(place) } else { request[place] = byte }
        let mut out = Observations::default();
        let read = Reader::new(query, 100).read_otlp(OtlpSignal::Metrics, &request, NOW, &mut out);
        if read.is_err() {
            prop_assert!(out.values.is_empty() && out.fates.is_empty());
        }
        let lengths = [out.times.len(), out.groups.len(), out.items.len()];
        prop_assert_eq!(lengths, [out.values.len(); 3]);
    }
}

/// Many points of few values each, so that there is much to encode: plain and encoded, of records, resources and scopes.
#[test]
fn many_points_read_the_same_both_ways() {
    let point = |at: i64| NumberDataPoint {
        attributes: vec![
            attribute("a", if at % 5 == 0 { int(at % 3) } else { text(["x", "y"][at as usize % 2]) }),
            attribute("b", of(Value::DoubleValue((at % 4) as f64 / 2.0))),
            attribute("v", of(Value::BoolValue(at % 7 == 0))),
        ],
        value: Some(Number::AsDouble(at as f64)),
        ..NumberDataPoint::default()
    };
    let metric = |at: i64| Metric {
        name: format!("cpu.{}", at % 3),
        data: Some(Data::Gauge(Gauge { data_points: (at * 40..at * 40 + 40).map(point).collect() })),
        ..Metric::default()
    };
    let resource = |at: i64| ResourceMetrics {
        resource: Some(Resource { attributes: vec![attribute("a", int(at % 2))], ..Resource::default() }),
        scope_metrics: vec![ScopeMetrics { metrics: (at * 9..at * 9 + 9).map(metric).collect(), ..Default::default() }],
        ..ResourceMetrics::default()
    };
    let request = ExportMetricsServiceRequest { resource_metrics: (0..4).map(resource).collect() }.encode_to_vec();
    for groups in [&["a"][..], &["b", "resource:a"], &["v", "a", "b"], &["resource:a"]] {
        let query = metric_query("cpu.*").grouped_by(groups.iter().map(|group| path(group)).collect());
        check(OtlpSignal::Metrics, request.clone(), query).expect("the same");
    }
}

pub(super) fn one_point(attribute: Attribute) -> Vec<u8> {
    let point = NumberDataPoint {
        attributes: vec![attribute],
        value: Some(Number::AsDouble(1.0)),
        ..NumberDataPoint::default()
    };
    let metric =
        Metric { name: "mem".into(), data: Some(Data::Gauge(Gauge { data_points: vec![point] })), ..Metric::default() };
    let scope_metrics = vec![ScopeMetrics { metrics: vec![metric], ..ScopeMetrics::default() }];
    let resource_metrics = vec![ResourceMetrics { scope_metrics, ..ResourceMetrics::default() }];
    ExportMetricsServiceRequest { resource_metrics }.encode_to_vec()
}

pub(super) fn read_otlp(request: &[u8], group: &str) -> Result<Seen, OtlpError> {
    let mut out = Observations::default();
    let query = metric_query("mem").grouped_by(vec![path(group)]);
    let mut reader = Reader::new(query, 100);
    reader.read_otlp(OtlpSignal::Metrics, request, NOW, &mut out)?;
    Ok(Seen::new(&reader, out))
}

/// A list within a list within a list: as deep as one likes to send, the answer is an error, not a full stack.
#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| {
        (0..depth).fold(of(Value::IntValue(1)), |inner, _| of(Value::ArrayValue(ArrayValue { values: vec![inner] })))
    };
    let seen = read_otlp(&one_point(attribute("a", nested(32))), "a").expect("within the bound");
    assert!(matches!(seen.keys[0][0], KeyValue::Bytes(_)));
    let error = read_otlp(&one_point(attribute("a", nested(33))), "a").expect_err("beyond it");
    assert!(matches!(error, OtlpError::Depth { max: 32, .. }), "{error}");
    assert!(read_otlp(&one_point(attribute("b", nested(90))), "a").is_ok(), "nobody asks for it");
}

/// Text that is not UTF-8 is refused where it is asked for, with its place.
#[test]
fn bad_text_is_refused() {
    let mut request = one_point(attribute("a", of(Value::StringValue("~~~".into()))));
    let at = request.windows(3).position(|window| window == b"~~~").expect("the text");
    request[at] = 0xff;
    assert_eq!(read_otlp(&request, "a").map(|_| ()), Err(OtlpError::Utf8 { offset: at }));
    assert!(read_otlp(&request, "b").is_ok());
}

/// Unknown fields of every wire type, anywhere, change nothing.
#[test]
fn unknown_fields_are_stepped_over() {
    let plain = one_point(attribute("a", of(Value::StringValue("x".into()))));
    let mut request = b"\xc0\x3e\x05\xc1\x3e12345678\xc2\x3e\x01x\xc5\x3e1234".to_vec();
    request.extend(&plain);
    let (a, b) = (read_otlp(&plain, "a").expect("valid"), read_otlp(&request, "a").expect("valid"));
    assert_eq!((&a.keys, &a.values, &a.times, &a.fates), (&b.keys, &b.values, &b.times, &b.fates));
}
