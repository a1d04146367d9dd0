//! Messages survive both formats, and the way between them.

use otel_arrow_dfe_pdata::{OtapArrowRecords, OtlpProtoBytes, TryIntoWithOptions};
use proptest::prelude::*;

use super::*;

fn to_otlp(records: OtapArrowRecords) -> Vec<u8> {
    let request: OtlpProtoBytes = records.try_into_with_options(Default::default()).expect("converts");
    match request {
        OtlpProtoBytes::ExportMetricsRequest(request) => request.to_vec(),
        _ => panic!("metrics"),
    }
}

fn to_otap(request: Vec<u8>) -> OtapArrowRecords {
    OtlpProtoBytes::ExportMetricsRequest(request.into()).try_into_with_options(Default::default()).expect("converts")
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(-0.0), Just(f64::INFINITY), any::<f64>().prop_filter("comparable", |v| !v.is_nan())]
}

fn message() -> impl Strategy<Value = SketchMessage> {
    let sketch = prop_oneof![Just(SketchType::KllDataSketches), Just(SketchType::KllAsap), Just(SketchType::Run)];
    let value = prop_oneof![
        "[a-z]{1,3}".prop_map(|text| KeyValue::Text(text.into())),
        (1i64..9).prop_map(KeyValue::Int),
        Just(KeyValue::Bool(true)),
    ];
    let series = prop::collection::vec(value, 0..3)
        .prop_map(|values| (0..).zip(values).map(|(at, value)| (format!("k{at}"), value)).collect::<Vec<_>>());
    let identity = prop::option::of((any::<u128>(), 0u32..3, any::<u64>())).prop_map(|identity| {
        identity.map(|(instance, part, sequence)| MessageIdentity {
            source: "edge/0".into(),
            instance,
            part,
            parts: 3,
            sequence,
        })
    });
    let statistics = (prop::option::of(number()), prop::option::of(number()), prop::option::of(number()));
    (sketch, series, identity, prop::collection::vec(any::<u8>(), 1..40), statistics, 0u64..5, 0i64..3).prop_map(
        |(sketch, series, identity, envelope, (min, max, sum), count, window)| SketchMessage {
            metric: "latency".into(),
            unit: "ms".into(),
            series,
            start_unix_nano: 1_000_000_000 * (window + 1),
            end_unix_nano: 1_000_000_000 * (window + 2) + 1,
            sketch,
            envelope,
            count,
            min,
            max,
            sum,
            dropped: if count > 2 { vec![("future".into(), 1), ("late".into(), count)] } else { Vec::new() },
            sources: (count > 2).then_some((1, 2)),
            switched: count > 3,
            identity,
        },
    )
}

/// In the order of writing: by type, then as given.
fn in_order(mut messages: Vec<SketchMessage>) -> Vec<SketchMessage> {
    messages.sort_by_key(|message| SketchType::ALL.iter().position(|sketch| *sketch == message.sketch));
    messages
}

fn all(decoded: Vec<Result<SketchMessage, CarrierError>>) -> Vec<String> {
    // As text: -0.0 is not 0.0 here.
    decoded.into_iter().map(|message| format!("{:?}", message.expect("a message"))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// OTAP as written, as an exporter encodes it, as OTLP, and as OTAP again.
    #[test]
    fn messages_survive_every_way(messages in prop::collection::vec(message(), 1..6)) {
        let expected: Vec<_> = in_order(messages.clone()).iter().map(|message| format!("{message:?}")).collect();
        let records = encode(&messages).expect("encodes");
        prop_assert_eq!(&all(decode(&records).expect("fits")), &expected);
        let mut sent = records.clone();
        sent.encode_transport_optimized().expect("encodes");
        let mut received = sent;
        received.decode_transport_optimized_ids().expect("decodes");
        let mut arrived = all(decode(&received).expect("fits"));
        arrived.sort();
        let mut sorted = expected.clone();
        sorted.sort();
        prop_assert_eq!(arrived, sorted);
        let request = to_otlp(records);
        prop_assert_eq!(&all(decode_otlp(&request)), &expected);
        prop_assert_eq!(&all(decode(&to_otap(request)).expect("fits")), &expected);
    }

    /// Damage anywhere: errors or messages, and an end.
    #[test]
    fn damaged_requests_are_errors(
        message in message(), place in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
    ) {
        let mut request = to_otlp(encode(&[message]).expect("encodes"));
        let place = place.index(request.len());
        if cut { request.truncate(place) } else { request[place] = byte }
        prop_assert!(decode_otlp(&request).len() <= 2);
    }
}

/// Too few or too many for one batch.
#[test]
fn a_batch_has_a_size() {
    assert!(encode(&[]).is_err());
}
