//! What comes again, in the same bytes or in others, is read as if it came for the first time.

use otel_arrow_dfe_pdata::OtlpProtoBytes;
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::metrics::v1::ExportMetricsServiceRequest;
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::KeyValue as Attribute;
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::NumberDataPoint;
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::metric::Data;
use proptest::prelude::*;
use prost::Message;

use super::both_ways::{attribute, int, metric_source, metrics, observed, one_point, query, read_otlp, records, text};
use super::*;

/// All points of a request.
fn points(request: &mut ExportMetricsServiceRequest) -> impl Iterator<Item = &mut NumberDataPoint> {
    let scopes = request.resource_metrics.iter_mut().flat_map(|resource| &mut resource.scope_metrics);
    scopes.flat_map(|scope| &mut scope.metrics).flat_map(|metric| match &mut metric.data {
        Some(Data::Gauge(gauge)) => gauge.data_points.iter_mut(),
        Some(Data::Sum(sum)) => sum.data_points.iter_mut(),
        _ => [].iter_mut(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// One reader of many requests sees in each what a new one sees, whatever it remembers or has forgotten.
    #[test]
    fn a_reader_of_many_requests_is_as_a_new_one(
        requests in proptest::collection::vec(metrics(), 1..4),
        query in metric_source().prop_flat_map(query),
        capacity in prop_oneof![Just(0_usize), Just(3), Just(1_000)],
    ) {
        let mut reader = Reader::new(query.clone(), capacity);
        for request in requests.iter().cycle().take(requests.len() * 3) {
            let request = request.encode_to_vec();
            let (mut again, mut first) = (Observations::default(), Observations::default());
            reader.read_otlp(OtlpSignal::Metrics, &request, 77, &mut again).expect("valid");
            let mut new = Reader::new(query.clone(), 1_000);
            new.read_otlp(OtlpSignal::Metrics, &request, 77, &mut first).expect("valid");
            prop_assert_eq!(observed(&reader, &again), observed(&new, &first));
        }
    }

    /// The order of attributes is nothing.
    #[test]
    fn the_order_of_attributes_is_nothing(
        mut request in metrics(),
        query in metric_source().prop_flat_map(query),
        turn in 1_usize..4,
    ) {
        let mut reader = Reader::new(query, 100);
        let mut out = Observations::default();
        reader.read_otlp(OtlpSignal::Metrics, &request.encode_to_vec(), 77, &mut out).expect("valid");
        let before = observed(&reader, &out);
        for point in points(&mut request) {
            let count = point.attributes.len().max(1);
            point.attributes.rotate_left(turn % count);
        }
        reader.read_otlp(OtlpSignal::Metrics, &request.encode_to_vec(), 77, &mut out).expect("valid");
        prop_assert_eq!(before, observed(&reader, &out));
    }
}

/// The point of a request of one point with an attribute `a`, and the request around it.
fn with_point(change: impl FnOnce(&mut Vec<Attribute>)) -> Vec<u8> {
    let mut request =
        ExportMetricsServiceRequest::decode(&one_point(attribute("a", text("first")))[..]).expect("just encoded");
    change(&mut points(&mut request).next().expect("one point").attributes);
    request.encode_to_vec()
}

/// Of an attribute that is there twice the last one counts, both ways.
#[test]
fn the_last_of_equal_keys_counts() {
    let request = with_point(|attributes| attributes.push(attribute("a", int(5))));
    assert_eq!(*read_otlp(&request, "a").expect("valid").keys[0], [KeyValue::Int(5)]);
    let records = records(OtlpProtoBytes::ExportMetricsRequest(request.into()));
    assert_eq!(*read(&records, metric_query("mem").grouped_by(vec![path("a")])).keys[0], [KeyValue::Int(5)]);
}

fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).expect("short");
    [&[number << 3 | 2, length], content].concat()
}

/// Messages in parts are one message: points of two parts of a gauge, a name behind them, a value of an attribute of which one
/// part is empty. A choice that is made again is a new one.
#[test]
fn parts_are_one_message() {
    let value = |number: f64| [&[0x21][..], &number.to_le_bytes()].concat();
    let point = |number, attribute: &[u8]| field(1, &[&value(number)[..], attribute].concat());
    let split = [field(1, b"a"), field(2, &field(1, b"x")), field(2, b"")].concat();
    let whole = [field(2, &field(1, b"x")), field(1, b"a")].concat();
    let first = field(5, &point(1.0, &field(7, &split)));
    let second = field(5, &point(2.0, &field(7, &whole)));
    let sum = field(7, &point(9.0, b""));
    let name = field(1, b"mem");
    let read = |metric: &[&[u8]]| {
        let request = field(1, &field(2, &field(2, &metric.concat())));
        read_otlp(&request, "a").expect("valid")
    };
    let seen = read(&[&first, &second, &name]);
    assert_eq!(seen.values, [1.0, 2.0]);
    assert_eq!((seen.keys.len(), &seen.keys[0][..]), (1, &[KeyValue::Text("x".into())][..]));
    assert_eq!(read(&[&first, &sum, &name, &second]).values, [2.0]);
    assert_eq!(read(&[&sum, &name, &first, &second]).values, [1.0, 2.0]);
    // Attributes with something else in between.
    let apart = [&field(7, &field(1, b"b"))[..], &value(3.0), &field(7, &whole)].concat();
    let seen = read(&[&name, &field(5, &field(1, &apart))]);
    assert_eq!((&seen.values[..], &seen.keys[0][..]), (&[3.0][..], &[KeyValue::Text("x".into())][..]));
}
