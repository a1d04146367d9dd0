//! What our receivers make, encoded: upstream's readers see the same items in it as in the batches themselves.
#![allow(clippy::unwrap_used, reason = "fixtures shared with the bench stop where they fail")]

use catchment_columns::flow::FlowSchema;
use catchment_columns::{OtapArrowRecords, ParentIds};
use catchment_delivery::encode::otap::{OtapSettings, OtapStream};
use catchment_delivery::encode::otlp::OtlpEncoder;
use otel_arrow_dfe_pdata::Consumer;

mod common;
#[path = "../benches/fixtures/mod.rs"]
#[allow(dead_code, reason = "the bench uses all of it")]
mod fixtures;

use common::{meaning, received};
use fixtures::Counters;

/// OTLP against upstream's encoder, OTAP against upstream's consumer, for some batches of a stream.
fn both_protocols(batches: &[OtapArrowRecords]) {
    let mut stream = OtapStream::new(OtapSettings::default()).unwrap();
    let (mut encoder, mut consumer) = (OtlpEncoder::new(), Consumer::default());
    for records in batches {
        let expected = meaning::through_upstream(records);
        let body = encoder.encode(records).unwrap();
        meaning::of_request(records, &body).assert_same(&expected, "otlp");
        let message = stream.encode(0, &[records]).unwrap();
        let received = received(&mut consumer, &message, records);
        meaning::through_upstream(&received).assert_same(&expected, "otap");
    }
}

/// SONiC's counters, with both forms of parent ids.
#[test]
fn sonic() {
    for parent_ids in [ParentIds::Plain, ParentIds::Transport] {
        both_protocols(&fixtures::telemetry(3, parent_ids));
    }
}

/// Flow records, with both forms of parent ids.
#[test]
fn flows() {
    for parent_ids in [ParentIds::Plain, ParentIds::Transport] {
        both_protocols(&fixtures::flows(2, FlowSchema::Otel, parent_ids));
    }
}

/// Lines of syslog, with both forms of parent ids.
#[test]
fn lines() {
    for parent_ids in [ParentIds::Plain, ParentIds::Transport] {
        both_protocols(&fixtures::lines(2, parent_ids));
    }
}

/// Counters whose batches share their arrays, and such as do not.
#[test]
fn counters() {
    for shared in [true, false] {
        both_protocols(&fixtures::counters(3, Counters::Busy, shared));
    }
}

/// The same as upstream's receiver of OTLP has them, alone and two as one.
#[test]
fn counters_through_otlp() {
    let batches = fixtures::through_otlp(&fixtures::counters(2, Counters::Busy, true));
    both_protocols(&batches);
    let mut stream = OtapStream::new(OtapSettings::default()).unwrap();
    let message = stream.encode(0, &[&batches[0], &batches[1]]).unwrap();
    let received = received(&mut Consumer::default(), &message, &batches[0]);
    let expected = meaning::through_upstream(&batches[0]).and(meaning::through_upstream(&batches[1]));
    meaning::through_upstream(&received).assert_same(&expected, "merged");
}
