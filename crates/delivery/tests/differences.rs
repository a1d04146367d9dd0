//! Parent ids that come as differences: they go through as they came where they may, and stand for the same in any case.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, DictionaryArray, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray, UInt8Array, UInt16Array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{Field, Schema};
use catchment_delivery::encode::otap::{OtapSettings, OtapStream};
use otel_arrow_dfe_pdata::otap::{Logs, from_record_messages};
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::{ArrowPayloadType, BatchArrowRecords};
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::{AnyValue, KeyValue};
use otel_arrow_dfe_pdata::proto::opentelemetry::logs::v1::{LogRecord, LogsData, ResourceLogs, ScopeLogs};
use otel_arrow_dfe_pdata::schema::{FieldExt as _, consts, timestamp_nanosecond_type};
use otel_arrow_dfe_pdata::{Consumer, OtapArrowRecords};
use proptest::prelude::*;
use prost::Message as _;

mod common;

use common::{meaning, received};

/// An attribute: its record, the number of its key, and its value, a text if there is a number of one, else an integer.
#[derive(Debug, Clone, Copy)]
struct Row {
    record: u16,
    key: u8,
    text: Option<u16>,
    integer: i64,
}

fn same(a: &Row, b: &Row) -> bool {
    a.key == b.key && a.text == b.text && (a.text.is_some() || a.integer == b.integer)
}

/// Texts by number; some of them are the same.
fn text(number: u16) -> String {
    format!("text {}", number / 2 * 2)
}

fn batch(columns: Vec<(Field, ArrayRef)>) -> RecordBatch {
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("a batch")
}

fn column(name: &str, array: ArrayRef) -> (Field, ArrayRef) {
    (Field::new(name, array.data_type().clone(), true), array)
}

/// So many log records with these attributes in this order, their parents as differences or plain.
fn logs(records: u16, rows: &[Row], is_plain: bool) -> OtapArrowRecords {
    let ids: ArrayRef = Arc::new(UInt16Array::from_iter_values(0..records));
    let times = TimestampNanosecondArray::from_iter_values((0..records).map(|record| i64::from(record) + 1));
    let root = vec![
        (Field::new(consts::ID, ids.data_type().clone(), true).with_plain_encoding(), ids),
        column(consts::TIME_UNIX_NANO, Arc::new(times.with_data_type(timestamp_nanosecond_type()))),
    ];
    let parents = rows.iter().enumerate().map(|(at, row)| match at.checked_sub(1).map(|before| &rows[before]) {
        Some(before) if !is_plain && same(before, row) => row.record.wrapping_sub(before.record),
        _ => row.record,
    });
    let parents: ArrayRef = Arc::new(UInt16Array::from_iter_values(parents));
    let mut parent_id = Field::new(consts::PARENT_ID, parents.data_type().clone(), false);
    if is_plain {
        parent_id = parent_id.with_plain_encoding();
    }
    let names = StringArray::from_iter_values(["one", "two", "three"]);
    let keys = UInt8Array::from_iter_values(rows.iter().map(|row| row.key));
    let texts = StringArray::from_iter_values((0..8).map(text));
    let numbers: UInt16Array = rows.iter().map(|row| row.text).collect();
    let integers: Vec<i64> = rows.iter().map(|row| if row.text.is_none() { row.integer } else { 0 }).collect();
    let are_integers: Vec<bool> = rows.iter().map(|row| row.text.is_none()).collect();
    let table = vec![
        (parent_id, parents),
        column(consts::ATTRIBUTE_KEY, Arc::new(DictionaryArray::new(keys, Arc::new(names)))),
        column(
            consts::ATTRIBUTE_TYPE,
            Arc::new(UInt8Array::from_iter_values(rows.iter().map(|row| if row.text.is_some() { 1 } else { 2 }))),
        ),
        column(consts::ATTRIBUTE_STR, Arc::new(DictionaryArray::new(numbers, Arc::new(texts)))),
        column(consts::ATTRIBUTE_INT, Arc::new(Int64Array::new(integers.into(), Some(NullBuffer::from(are_integers))))),
    ];
    let mut out = OtapArrowRecords::Logs(Logs::default());
    out.set(ArrowPayloadType::Logs, batch(root)).expect("records");
    if !rows.is_empty() {
        out.set(ArrowPayloadType::LogAttrs, batch(table)).expect("attributes");
    }
    out
}

/// What they stand for. Attributes without a record are not there.
fn expected(records: u16, rows: &[Row]) -> meaning::Items {
    let attribute = |row: &Row| {
        let value = match row.text {
            Some(number) => AnyValue::new_string(text(number)),
            None => AnyValue::new_int(row.integer),
        };
        KeyValue::new(["one", "two", "three"][usize::from(row.key)], value)
    };
    let log_records = (0..records).map(|record| LogRecord {
        time_unix_nano: u64::from(record) + 1,
        attributes: rows.iter().filter(|row| row.record == record).map(attribute).collect(),
        ..LogRecord::default()
    });
    let scope = ScopeLogs { log_records: log_records.collect(), ..ScopeLogs::default() };
    meaning::of_logs(LogsData { resource_logs: vec![ResourceLogs { scope_logs: vec![scope], ..Default::default() }] })
}

fn rows(records: u16) -> impl Strategy<Value = Vec<Row>> {
    // Some belong to records that are not there.
    let row = (0..records + 2, 0..3_u8, prop_oneof![3 => (0..8_u16).prop_map(Some), 2 => Just(None)], 0..4_i64);
    let row = row.prop_map(|(record, key, text, integer)| Row {
        record,
        key,
        text,
        integer: if text.is_some() { 0 } else { integer },
    });
    proptest::collection::vec(row, 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Rows in any order, together by key, and together by value; one batch and two as one.
    #[test]
    fn any_table(rows in rows(40), order in 0..3, is_plain: bool) {
        let mut rows = rows;
        // No record has a key twice.
        let mut seen = std::collections::BTreeSet::new();
        rows.retain(|row| seen.insert((row.record, row.key)));
        match order {
            0 => {}
            1 => rows.sort_by_key(|row| (row.text.is_none(), row.key)),
            _ => rows.sort_by_key(|row| (row.text.is_none(), row.key, row.text, row.integer, row.record)),
        }
        // Differences are not negative.
        rows.chunk_by_mut(same).for_each(|run| run.sort_by_key(|row| row.record));
        let records = logs(40, &rows, is_plain);
        let mut stream = OtapStream::new(OtapSettings { zstd_level: None }).expect("a stream");
        let mut consumer = Consumer::default();
        for _ in 0..2 {
            let message = stream.encode(0, &[&records]).expect("encoded");
            let received = received(&mut consumer, &message, &records);
            meaning::through_upstream(&received).assert_same(&expected(40, &rows), "alone");
        }
        let message = stream.encode(0, &[&records, &records]).expect("encoded");
        let received = received(&mut consumer, &message, &records);
        let both = expected(40, &rows).and(expected(40, &rows));
        meaning::through_upstream(&received).assert_same(&both, "two as one");
    }
}

/// Differences that mean the same afterwards are sent as they came.
#[test]
fn sent_as_they_came() {
    let text = |record, number| Row { record, key: 0, text: Some(number), integer: 0 };
    let integer = |record| Row { record, key: 1, text: None, integer: 7 };
    // Texts 0 and 1 are the same, which only the encoder sees.
    let tables = [
        (vec![text(0, 0), text(2, 0), text(1, 2), integer(0), integer(1), integer(2)], vec![0, 2, 1, 0, 1, 1]),
        (vec![text(0, 0), text(2, 1), text(1, 2), integer(0), integer(1), integer(2)], vec![0, 2, 1, 0, 1, 1]),
    ];
    for (rows, sent) in tables {
        let records = logs(3, &rows, false);
        let mut stream = OtapStream::new(OtapSettings { zstd_level: None }).expect("a stream");
        let message = stream.encode(0, &[&records]).expect("encoded");
        let mut message = BatchArrowRecords::decode(message.as_ref()).expect("a message");
        let batches = Consumer::default().consume_bar(&mut message).expect("consumed");
        let received = OtapArrowRecords::Logs(from_record_messages::<Logs>(batches).expect("logs"));
        let table = received.get(ArrowPayloadType::LogAttrs).expect("attributes");
        let parents = table.column_by_name(consts::PARENT_ID).expect("parents");
        let parents = parents.as_any().downcast_ref::<UInt16Array>().expect("numbers");
        assert_eq!(parents.values(), &sent[..]);
    }
}

/// As many names as rows, which come up in two rounds so that rows have to be brought together: time and room grow with rows
/// only, or this does not end.
#[test]
fn as_many_names_as_rows() {
    const NAMES: u16 = 40_000;
    let keys = UInt16Array::from_iter_values((0..2).flat_map(|_| 0..NAMES));
    let names = StringArray::from_iter_values((0..NAMES).map(|name| format!("name {name}")));
    let rows = usize::from(NAMES) * 2;
    let parents: ArrayRef =
        Arc::new(UInt16Array::from_iter_values((0..2_u16).flat_map(|n| (0..NAMES).map(move |_| n))));
    let table = vec![
        (Field::new(consts::PARENT_ID, parents.data_type().clone(), false).with_plain_encoding(), parents),
        column(consts::ATTRIBUTE_KEY, Arc::new(DictionaryArray::new(keys, Arc::new(names)))),
        column(consts::ATTRIBUTE_TYPE, Arc::new(UInt8Array::from(vec![2; rows]))),
        column(consts::ATTRIBUTE_INT, Arc::new(Int64Array::from_iter_values((0..rows).map(|row| row as i64 % 9)))),
    ];
    let mut records = logs(2, &[], true);
    records.set(ArrowPayloadType::LogAttrs, batch(table)).expect("attributes");
    let mut stream = OtapStream::new(OtapSettings { zstd_level: None }).expect("a stream");
    let message = stream.encode(0, &[&records]).expect("encoded");
    let received = received(&mut Consumer::default(), &message, &records);
    meaning::through_upstream(&received).assert_same(&meaning::through_upstream(&records), "many names");
}
