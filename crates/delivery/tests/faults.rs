//! Records that cannot be encoded, and such as are odd but can be.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray, StructArray, UInt8Array, UInt16Array, UInt32Array,
};
use arrow::datatypes::{Field, Fields, Schema};
use catchment_delivery::encode::EncodeError;
use catchment_delivery::encode::otap::{OtapSettings, OtapStream};
use catchment_delivery::encode::otlp::OtlpEncoder;
use otel_arrow_dfe_pdata::otap::{Logs, Metrics};
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::{FieldExt as _, consts};
use otel_arrow_dfe_pdata::{Consumer, OtapArrowRecords};

mod common;

use common::{meaning, received};

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<_> = columns
        .iter()
        .map(|(name, array)| {
            let field = Field::new(*name, array.data_type().clone(), true);
            if name.ends_with("id") { field.with_plain_encoding() } else { field }
        })
        .collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("a batch")
}

fn logs(ids: Vec<u16>) -> OtapArrowRecords {
    let mut records = OtapArrowRecords::Logs(Logs::default());
    let root = batch(vec![(consts::ID, Arc::new(UInt16Array::from(ids)))]);
    records.set(ArrowPayloadType::Logs, root).expect("logs");
    records
}

fn attributes(parents: Vec<u16>, kinds: Vec<u8>, serialized: Option<&[u8]>) -> RecordBatch {
    let keys = StringArray::from(vec!["key"; kinds.len()]);
    let values = BinaryArray::from(vec![serialized; kinds.len()]);
    batch(vec![
        (consts::PARENT_ID, Arc::new(UInt16Array::from(parents))),
        (consts::ATTRIBUTE_KEY, Arc::new(keys)),
        (consts::ATTRIBUTE_TYPE, Arc::new(UInt8Array::from(kinds))),
        (consts::ATTRIBUTE_SER, Arc::new(values)),
    ])
}

fn otlp_fault(records: &OtapArrowRecords) -> String {
    OtlpEncoder::new().encode(records).expect_err("refused").to_string()
}

/// A kind of metric, and a type of value, that there is not.
#[test]
fn unknown_kinds() {
    let mut records = OtapArrowRecords::Metrics(Metrics::default());
    let root = batch(vec![
        (consts::ID, Arc::new(UInt16Array::from(vec![0, 1]))),
        (consts::METRIC_TYPE, Arc::new(UInt8Array::from(vec![1, 9]))),
        (consts::NAME, Arc::new(StringArray::from(vec!["a", "b"]))),
    ]);
    records.set(ArrowPayloadType::UnivariateMetrics, root).expect("metrics");
    assert_eq!(otlp_fault(&records), "column metric_type of UnivariateMetrics has 9 in row 1, expected 0 to 5");
    let mut records = logs(vec![0]);
    records.set(ArrowPayloadType::LogAttrs, attributes(vec![0], vec![8], None)).expect("attributes");
    assert_eq!(otlp_fault(&records), "column type of LogAttrs has 8 in row 0, expected 0 to 7");
}

/// Maps and lists that are no CBOR, that nest without end, or that hold what OTLP has not.
#[test]
fn bad_cbor() {
    let nested = vec![0x81; 200];
    for cbor in [&[0x82, 1][..], &nested, &[0xa1, 1, 2], &[0xc1, 0], &[0x1b, 0xff, 0, 0, 0, 0, 0, 0, 0]] {
        let mut records = logs(vec![0]);
        records.set(ArrowPayloadType::LogAttrs, attributes(vec![0], vec![6], Some(cbor))).expect("attributes");
        assert!(otlp_fault(&records).starts_with("column ser of LogAttrs has "), "{cbor:?}");
    }
}

/// Ids that stand for two rows cannot be told apart on a stream; the stream goes on all the same.
#[test]
fn ids_twice() {
    let mut stream = OtapStream::new(OtapSettings::default()).expect("a stream");
    let mut consumer = Consumer::default();
    let good = logs(vec![0, 1, 2]);
    for _ in 0..2 {
        let message = stream.encode(0, &[&good]).expect("encoded");
        assert_eq!(received(&mut consumer, &message, &good).num_items(), 3);
        let fault = stream.encode(0, &[&logs(vec![0, 1, 0])]).expect_err("refused").to_string();
        assert_eq!(fault, "column id of Logs has id 0 again in row 2, expected each id once");
    }
}

/// 65,535 rows make a batch, also of several parts; one more does not.
#[test]
fn too_many_rows() {
    let mut stream = OtapStream::new(OtapSettings::default()).expect("a stream");
    let half = logs((0..32_768).collect());
    let less = logs((0..32_767).collect());
    let message = stream.encode(0, &[&half, &less]).expect("encoded");
    assert_eq!(received(&mut Consumer::default(), &message, &half).num_items(), 65_535);
    let fault = stream.encode(0, &[&half, &half]).expect_err("refused");
    assert_eq!(
        fault,
        EncodeError::TooMany { table: ArrowPayloadType::Logs, what: "rows", found: 65_536, bound: 65_535 }
    );
}

/// A stream is of one signal.
#[test]
fn signals() {
    let mut stream = OtapStream::new(OtapSettings::default()).expect("a stream");
    let _ = stream.encode(0, &[&logs(vec![0])]).expect("encoded");
    let metrics = OtapArrowRecords::Metrics(Metrics::default());
    let fault = stream.encode(1, &[&metrics]).expect_err("refused");
    assert_eq!(fault, EncodeError::Signal { found: "metrics", expected: "logs" });
    stream.reset();
    assert!(stream.encode(1, &[&metrics]).expect("nothing to send").is_empty());
}

/// Levels that zstd does not have are refused or taken for the nearest one, but never stop the program.
#[test]
fn odd_levels() {
    for level in [-200, 0, 22, 400] {
        if let Ok(mut stream) = OtapStream::new(OtapSettings { zstd_level: Some(level) }) {
            assert!(!stream.encode(0, &[&logs(vec![0])]).expect("encoded").is_empty());
        }
    }
}

/// Resources whose scopes share an id stay apart, rows that come back to a resource join it, and attributes of rows that are
/// not there are left out.
#[test]
fn groups() {
    let mut records = OtapArrowRecords::Logs(Logs::default());
    let structure = |ids: Vec<u16>| -> ArrayRef {
        let ids: ArrayRef = Arc::new(UInt16Array::from(ids));
        let field = Field::new(consts::ID, ids.data_type().clone(), true).with_plain_encoding();
        Arc::new(StructArray::new(Fields::from(vec![field]), vec![ids], None))
    };
    let root = batch(vec![
        (consts::ID, Arc::new(UInt16Array::from(vec![0, 1, 2, 3]))),
        (consts::RESOURCE, structure(vec![7, 8, 7, 8])),
        (consts::SCOPE, structure(vec![0, 0, 0, 0])),
        (consts::FLAGS, Arc::new(UInt32Array::from(vec![1, 2, 3, 4]))),
    ]);
    records.set(ArrowPayloadType::Logs, root).expect("logs");
    let of = |parents: Vec<u16>| {
        let values = Int64Array::from_iter_values(parents.iter().map(|parent| i64::from(*parent)));
        batch(vec![
            (consts::PARENT_ID, Arc::new(UInt16Array::from(parents.clone()))),
            (consts::ATTRIBUTE_KEY, Arc::new(StringArray::from(vec!["key"; parents.len()]))),
            (consts::ATTRIBUTE_TYPE, Arc::new(UInt8Array::from(vec![2; parents.len()]))),
            (consts::ATTRIBUTE_INT, Arc::new(values)),
        ])
    };
    records.set(ArrowPayloadType::ResourceAttrs, of(vec![8, 7, 300])).expect("attributes");
    records.set(ArrowPayloadType::ScopeAttrs, of(vec![0])).expect("attributes");
    records.set(ArrowPayloadType::LogAttrs, of(vec![3, 0, 9])).expect("attributes");
    let body = OtlpEncoder::new().encode(&records).expect("encoded");
    let items = meaning::of_request(&records, &body);
    let found: Vec<_> = items.0.iter().map(|(place, item)| (place.contains("IntValue(7)"), item.clone())).collect();
    assert_eq!(found.iter().map(|(of_seven, _)| *of_seven).collect::<Vec<_>>(), [true, true, false, false]);
    for (at, flags) in [(0, 1), (1, 3), (2, 2), (3, 4)] {
        assert!(found[at].1.contains(&format!("flags: {flags}")), "{found:?}");
    }
    let mut stream = OtapStream::new(OtapSettings::default()).expect("a stream");
    let message = stream.encode(0, &[&records]).expect("encoded");
    let received = received(&mut Consumer::default(), &message, &records);
    let body = OtlpEncoder::new().encode(&received).expect("encoded");
    meaning::of_request(&records, &body).assert_same(&items, "received");
    assert_eq!(received.get(ArrowPayloadType::LogAttrs).map(RecordBatch::num_rows), Some(2));
}
