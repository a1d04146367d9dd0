//! Dictionaries at their bounds, and what is sent of them.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, DictionaryArray, RecordBatch, StringArray, UInt16Array};
use arrow::datatypes::{DataType, Field, Schema};
use catchment_delivery::encode::otap::{OtapSettings, OtapStream};
use otel_arrow_dfe_pdata::otap::Logs;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::{ArrowPayloadType, BatchArrowRecords};
use otel_arrow_dfe_pdata::schema::consts;
use otel_arrow_dfe_pdata::{Consumer, OtapArrowRecords};
use proptest::prelude::*;
use prost::Message as _;

mod common;

use common::{meaning, received};

/// Logs with these severity texts, with a dictionary or without.
fn texts(texts: impl Iterator<Item = String>, with_dictionary: bool) -> OtapArrowRecords {
    let texts = StringArray::from(texts.collect::<Vec<_>>());
    let array: ArrayRef = match with_dictionary {
        true => {
            let keys = UInt16Array::from_iter_values((0..texts.len()).map(|row| row as u16));
            Arc::new(DictionaryArray::new(keys, Arc::new(texts)))
        }
        false => Arc::new(texts),
    };
    let schema = Schema::new(vec![Field::new(consts::SEVERITY_TEXT, array.data_type().clone(), true)]);
    let mut records = OtapArrowRecords::Logs(Logs::default());
    let batch = RecordBatch::try_new(Arc::new(schema), vec![array]).expect("a batch");
    records.set(ArrowPayloadType::Logs, batch).expect("logs");
    records
}

/// A stream and its receiver.
struct Pair {
    stream: OtapStream,
    consumer: Consumer,
}

impl Pair {
    fn new() -> Self {
        let stream = OtapStream::new(OtapSettings { zstd_level: None }).expect("a stream");
        Self { stream, consumer: Consumer::default() }
    }

    /// Sends a batch. Gives the schema id, the type of the column at the receiver, and the bytes.
    fn send(&mut self, records: &OtapArrowRecords) -> (String, DataType, usize) {
        let message = self.stream.encode(0, &[records]).expect("encoded");
        let schema_id =
            BatchArrowRecords::decode(message.as_ref()).expect("a message").arrow_payloads[0].schema_id.clone();
        let received = received(&mut self.consumer, &message, records);
        meaning::through_upstream(&received).assert_same(&meaning::through_upstream(records), "received");
        let root = received.root_record_batch().expect("logs");
        let column = root.column_by_name(consts::SEVERITY_TEXT).expect("texts");
        (schema_id, column.data_type().clone(), message.len())
    }
}

fn dictionary_of(keys: DataType) -> DataType {
    DataType::Dictionary(Box::new(keys), Box::new(DataType::Utf8))
}

/// 256 values have keys of 8 bits; one more takes keys of 16, under another schema id.
#[test]
fn narrow_to_wide() {
    for with_dictionary in [true, false] {
        let mut pair = Pair::new();
        let texts_from = |from: u32, to: u32| texts((from..to).map(|text| format!("t{text}")), with_dictionary);
        let (first, narrow, _) = pair.send(&texts_from(0, 256));
        assert_eq!(narrow, dictionary_of(DataType::UInt8));
        let (second, narrow, _) = pair.send(&texts_from(100, 256));
        assert_eq!((&second, narrow), (&first, dictionary_of(DataType::UInt8)));
        let (third, wide, _) = pair.send(&texts_from(256, 257));
        assert_eq!(wide, dictionary_of(DataType::UInt16));
        assert_ne!(third, first);
    }
}

/// Each batch repeats half of what came before, up to 65,536 values; what comes then begins a dictionary of its own.
#[test]
fn wide_to_full() {
    let mut pair = Pair::new();
    // New texts are rare enough for the dictionary to stay.
    let batch =
        |from: u32, to: u32| texts((from..to).flat_map(|text| std::iter::repeat_n(format!("t{text}"), 7)), false);
    for number in 0..8 {
        let (_, wide, _) = pair.send(&batch(number * 8_192, (number + 1) * 8_192 - u32::from(number == 7)));
        assert_eq!(wide, dictionary_of(DataType::UInt16));
    }
    let (before, _, small) = pair.send(&batch(65_000, 65_100));
    let (full, wide, _) = pair.send(&batch(65_535, 65_536));
    assert_eq!((&full, wide), (&before, dictionary_of(DataType::UInt16)));
    let (after, wide, _) = pair.send(&batch(65_500, 65_600));
    assert_eq!((&after, wide), (&before, dictionary_of(DataType::UInt16)));
    let (_, _, again) = pair.send(&batch(65_500, 65_600));
    assert!(again <= small + 16, "{again} bytes, as {small} before");
}

/// What has been sent is not sent again, and a batch without new values has no dictionary at all.
#[test]
fn deltas() {
    let mut pair = Pair::new();
    let batch =
        |from: u32, to: u32| texts((from..to).map(|text| format!("a text of some length, number {text}")), true);
    let (_, _, first) = pair.send(&batch(0, 200));
    let (_, _, again) = pair.send(&batch(0, 200));
    let (_, _, delta) = pair.send(&batch(1, 201));
    assert!(again < 1_600 && first > again + 200 * 30, "{first}, {again}");
    assert!(delta < again + 400, "{delta}, {again}");
}

/// Values that do not come again are sent without a dictionary, and with one again when they do.
#[test]
fn cardinality() {
    let mut pair = Pair::new();
    let unique = |batch: u32| texts((0..1_000).map(move |row| format!("{batch} {row}")), false);
    let repeated = |batch: u32| texts((0..1_000).map(move |row| format!("{batch} {}", row % 10)), false);
    for batch in 0..5 {
        assert_eq!(pair.send(&unique(batch)).1, DataType::Utf8);
    }
    let forms: Vec<_> = (0..40).map(|batch| pair.send(&repeated(batch)).1).collect();
    assert_eq!(forms[0], DataType::Utf8);
    assert_eq!(forms[39], dictionary_of(DataType::UInt8));
    // It does not go to and fro.
    assert!(forms.is_sorted_by_key(|form| *form != DataType::Utf8), "{forms:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever comes after whatever arrives.
    #[test]
    fn any_order(batches in proptest::collection::vec((0_u32..400, 1_u32..600, 1_u32..4, any::<bool>()), 1..12)) {
        let mut pair = Pair::new();
        for (from, count, step, with_dictionary) in batches {
            let _ = pair.send(&texts((from..from + count).map(|text| format!("t{}", text / step)), with_dictionary));
        }
    }
}
