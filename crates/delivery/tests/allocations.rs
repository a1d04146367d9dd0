//! Allocations of a batch in a stream that has settled: some, however many items there are.
#![allow(clippy::unwrap_used, reason = "fixtures shared with the bench stop where they fail")]

use catchment_columns::flow::FlowSchema;
use catchment_columns::{OtapArrowRecords, ParentIds};
use catchment_delivery::encode::otap::{OtapSettings, OtapStream};
use catchment_delivery::encode::otlp::OtlpEncoder;
use catchment_delivery::encode::split::split;

#[path = "../../columns/tests/common/counting.rs"]
mod counting;
#[path = "../benches/fixtures/mod.rs"]
#[allow(dead_code, reason = "the bench uses all of it")]
mod fixtures;

use counting::allocations;
use fixtures::Counters;

/// Allocations of the last of some batches, for OTLP and OTAP.
fn settled(batches: &[OtapArrowRecords]) -> [usize; 2] {
    let mut encoder = OtlpEncoder::new();
    let mut stream = OtapStream::new(OtapSettings::default()).unwrap();
    let mut last = [0; 2];
    for records in batches {
        let (otlp, _) = allocations(|| encoder.encode(records).unwrap());
        let (otap, _) = allocations(|| stream.encode(0, &[records]).unwrap());
        last = [otlp, otap];
    }
    last
}

/// The points of a batch, whole and a tenth of it.
#[test]
fn points() {
    let whole = fixtures::counters(4, Counters::Busy, true);
    let tenth: Vec<_> = whole.iter().map(|records| split(records, 1_000).unwrap().remove(0)).collect();
    let ([otlp, otap], [otlp_tenth, otap_tenth]) = (settled(&whole), settled(&tenth));
    assert!(otlp < 60 && otap < 400, "{otlp} and {otap} allocations");
    assert!(otlp <= otlp_tenth + 10 && otap <= otap_tenth + 40, "{otlp_tenth} and {otap_tenth} for a tenth");
}

/// Flow records, whose attributes are different in each batch.
#[test]
fn flows() {
    let whole = fixtures::flows(4, FlowSchema::Ipfix, ParentIds::Plain);
    let tenth: Vec<_> = whole.iter().map(|records| split(records, 800).unwrap().remove(0)).collect();
    let ([otlp, otap], [otlp_tenth, otap_tenth]) = (settled(&whole), settled(&tenth));
    assert!(otlp < 150 && otap < 600, "{otlp} and {otap} allocations");
    assert!(otlp <= otlp_tenth + 60 && otap <= otap_tenth + 80, "{otlp_tenth} and {otap_tenth} for a tenth");
}
