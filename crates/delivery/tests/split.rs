//! Records and requests in parts.

use bytes::Bytes;
use catchment_delivery::encode::otlp::OtlpEncoder;
use catchment_delivery::encode::otlp::bytes::{count, merge, split};
use catchment_delivery::signal::Signal;
use otel_arrow_dfe_pdata::OtapArrowRecords;
use proptest::prelude::*;
use prost::Message as _;

mod common;

use common::meaning::{self, Items};
use common::{Random, logs, metrics, otap_logs, otap_metrics, otap_traces, traces};

fn signal(records: &OtapArrowRecords) -> Signal {
    match records {
        OtapArrowRecords::Logs(_) => Signal::Logs,
        OtapArrowRecords::Metrics(_) => Signal::Metrics,
        OtapArrowRecords::Traces(_) => Signal::Traces,
    }
}

/// Parts that are full but the last one, with all items in their order.
fn in_parts(records: &OtapArrowRecords, most: usize) {
    let whole = OtlpEncoder::new().encode(records).expect("encoded");
    let items = meaning::of_request(records, &whole);
    let parts = catchment_delivery::encode::split::split(records, most).expect("split");
    for (number, part) in parts.iter().enumerate() {
        let is_last = number + 1 == parts.len();
        assert!(part.num_items() == most || (is_last && part.num_items() <= most));
    }
    let of_part =
        |part: &OtapArrowRecords| meaning::of_request(part, &OtlpEncoder::new().encode(part).expect("encoded"));
    let together = parts.iter().map(of_part).reduce(Items::and).expect("a part");
    together.assert_same(&items, "parts");
}

/// The same for a request, whose parts make one again.
fn bytes_in_parts(records: &OtapArrowRecords, request: &Bytes, most: usize) {
    let items = meaning::of_request(records, request);
    assert_eq!(count(request, signal(records)).expect("counted"), items.len());
    let parts = split(request, signal(records), most).expect("split");
    for (number, part) in parts.iter().enumerate() {
        let items = count(part, signal(records)).expect("counted");
        assert!(items == most || (number + 1 == parts.len() && items <= most));
    }
    meaning::of_request(records, &merge(&parts)).assert_same(&items, "merged");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Log records, plain and in the transport encoding.
    #[test]
    fn logs_in_parts(seed in any::<u64>(), most in 1_usize..9) {
        let data = logs(&mut Random(seed));
        let mut records = otap_logs(&data);
        in_parts(&records, most);
        bytes_in_parts(&records, &data.encode_to_vec().into(), most);
        records.encode_transport_optimized().expect("encoded");
        in_parts(&records, most);
    }

    /// Points, plain and in the transport encoding.
    #[test]
    fn metrics_in_parts(seed in any::<u64>(), most in 1_usize..9) {
        let data = metrics(&mut Random(seed));
        let mut records = otap_metrics(&data);
        in_parts(&records, most);
        bytes_in_parts(&records, &data.encode_to_vec().into(), most);
        records.encode_transport_optimized().expect("encoded");
        in_parts(&records, most);
    }

    /// Spans, plain and in the transport encoding.
    #[test]
    fn traces_in_parts(seed in any::<u64>(), most in 1_usize..9) {
        let data = traces(&mut Random(seed));
        let mut records = otap_traces(&data);
        in_parts(&records, most);
        bytes_in_parts(&records, &data.encode_to_vec().into(), most);
        records.encode_transport_optimized().expect("encoded");
        in_parts(&records, most);
    }

    /// Bytes of any kind give an error or parts, and never more items than bytes.
    #[test]
    fn damaged_bytes(seed in any::<u64>(), cut in 0_usize..400, at in 0_usize..400, with in any::<u8>()) {
        let mut request = metrics(&mut Random(seed)).encode_to_vec();
        if let Some(byte) = request.get_mut(at) {
            *byte = with;
        }
        request.truncate(request.len().saturating_sub(cut));
        let request = Bytes::from(request);
        if let Ok(items) = count(&request, Signal::Metrics) {
            prop_assert!(items <= request.len());
        }
        let _ = split(&request, Signal::Metrics, 2);
    }
}

/// Faults name the place.
#[test]
fn faults() {
    let fault = |bytes: &'static [u8]| count(bytes, Signal::Logs).expect_err("refused").to_string();
    assert_eq!(fault(&[0x0a, 5, 1]), "offset 2: a field is longer than its message; expected an OTLP request");
    assert_eq!(fault(&[0x0a]), "offset 1: a number is cut off; expected an OTLP request");
    assert_eq!(fault(&[0x0b]), "offset 1: a wire type that is not in use; expected an OTLP request");
}
