//! Requests of OTLP, written from records and read by the generated types.

use catchment_delivery::encode::otlp::OtlpEncoder;
use otel_arrow_dfe_pdata::OtapArrowRecords;
use proptest::prelude::*;

mod common;

use common::meaning::{self, Items};
use common::{Random, logs, metrics, otap_logs, otap_metrics, otap_traces, traces};

/// What a fresh encoder writes, and one that has written the same before.
fn written(records: &OtapArrowRecords) -> Items {
    let mut encoder = OtlpEncoder::new();
    let body = encoder.encode(records).expect("encoded");
    assert_eq!(encoder.encode(records).expect("encoded"), body);
    meaning::of_request(records, &body)
}

/// As written plain, and in the transport encoding, whose ids upstream's decoder knows.
fn both_forms(records: &OtapArrowRecords, expected: &Items) {
    written(records).assert_same(expected, "plain");
    let mut sorted = records.clone();
    sorted.encode_transport_optimized().expect("encoded");
    let mut decoded = sorted.clone();
    decoded.decode_transport_optimized_ids().expect("decoded");
    written(&sorted).assert_same(&written(&decoded), "transport");
    if matches!(records, OtapArrowRecords::Logs(_)) {
        // Upstream's own encoder loses attributes of exemplars, and counts of links, in batches of the other signals.
        let upstream = meaning::through_upstream(&sorted).unordered();
        written(&sorted).unordered().assert_same(&upstream, "upstream");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Log records come back with every field.
    #[test]
    fn logs_come_back(seed in any::<u64>()) {
        let data = logs(&mut Random(seed));
        both_forms(&otap_logs(&data), &meaning::of_logs(data));
    }

    /// Points of all kinds come back with every field.
    #[test]
    fn metrics_come_back(seed in any::<u64>()) {
        let data = metrics(&mut Random(seed));
        both_forms(&otap_metrics(&data), &meaning::of_metrics(data));
    }

    /// Spans come back with every field.
    #[test]
    fn traces_come_back(seed in any::<u64>()) {
        let data = traces(&mut Random(seed));
        both_forms(&otap_traces(&data), &meaning::of_traces(data));
    }
}
