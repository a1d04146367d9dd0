//! What is written comes back, whoever reads it: with the ids as they stand, decoded, and after a journey in OTAP.

use std::collections::BTreeMap;

use otel_arrow_dfe_pdata::schema::is_parent_id_plain_encoded;
use otel_arrow_dfe_pdata::{Consumer, Producer};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// An attribute value that can be written and compared.
#[derive(Debug, Clone)]
enum Any {
    Text(String),
    Int(i64),
    Double(f64),
    Bool(bool),
    Map(u8),
    List(u8),
    Bytes(Vec<u8>),
}

type Attributes = BTreeMap<String, Any>;

fn write(records: &[Attributes], known: &[&'static str], parent_ids: ParentIds) -> OtapArrowRecords {
    let mut table = LogsTable::new("test", &NO_LEVELS, known).with_parent_ids(parent_ids);
    for (number, attributes) in records.iter().enumerate() {
        let fields = LogFields { observed_time_unix_nano: number as i64, ..LogFields::default() };
        let mut writer = table.record(fields);
        for (name, value) in attributes {
            let name = name.as_str();
            match value {
                Any::Text(text) => writer.text(name, text.as_bytes()),
                Any::Int(number) => writer.int(name, *number),
                Any::Double(number) => writer.double(name, *number),
                Any::Bool(truth) => writer.bool(name, *truth),
                Any::Map(number) => {
                    writer.map(name, &minicbor::to_vec(BTreeMap::from([("k", *number)])).expect("cbor"))
                }
                Any::List(number) => writer.list(name, &minicbor::to_vec([*number]).expect("cbor")),
                Any::Bytes(bytes) => writer.bytes(name, bytes),
            }
        }
    }
    table.finish_at_once().expect("batch")
}

fn expected(records: &[Attributes]) -> Vec<Value> {
    let value = |any: &Any| match any {
        Any::Text(text) => json!(text),
        Any::Int(number) => json!(number),
        Any::Double(number) => json!(number),
        Any::Bool(truth) => json!(truth),
        Any::Map(number) => json!({"k": number}),
        Any::List(number) => json!([number]),
        Any::Bytes(bytes) => {
            json!({"base16": bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()})
        }
    };
    records
        .iter()
        .map(|record| record.iter().map(|(name, any)| (name.clone(), value(any))).collect::<serde_json::Map<_, _>>())
        .map(Value::Object)
        .collect()
}

fn read(records: &OtapArrowRecords) -> Vec<Value> {
    let mut all = Vec::new();
    crate::json::objects(records, |object| all.push(object["attributes"].clone())).expect("readable");
    all
}

fn sent(records: &OtapArrowRecords) -> OtapArrowRecords {
    let mut message = Producer::new().produce_bar(&mut records.clone()).expect("sent");
    let received = Consumer::default().consume_bar(&mut message).expect("received");
    let logs = otel_arrow_dfe_pdata::otap::from_record_messages::<Logs>(received).expect("logs");
    let mut records = OtapArrowRecords::Logs(logs);
    records.decode_transport_optimized_ids().expect("decoded");
    records
}

fn decoded(records: &OtapArrowRecords) -> OtapArrowRecords {
    let mut records = records.clone();
    records.decode_transport_optimized_ids().expect("decoded");
    records
}

fn assert_all_readers_agree(records: &[Attributes], known: &[&'static str]) {
    let expected = expected(records);
    let plain = write(records, known, ParentIds::Plain);
    assert_eq!(read(&plain), expected, "ids as they stand");
    for written in [&plain, &write(records, known, ParentIds::Transport)] {
        assert_eq!(read(&decoded(written)), expected, "decoded");
        assert_eq!(read(&sent(written)), expected, "sent and received");
    }
}

fn any_value() -> impl Strategy<Value = Any> {
    prop_oneof![
        4 => "[ab]{0,2}".prop_map(Any::Text),
        3 => (-1_i64..2).prop_map(Any::Int),
        1 => prop_oneof![Just(0.0), Just(-0.0), Just(1.5)].prop_map(Any::Double),
        1 => any::<bool>().prop_map(Any::Bool),
        1 => (0_u8..2).prop_map(Any::Map),
        1 => (0_u8..2).prop_map(Any::List),
        1 => proptest::collection::vec(0_u8..2, 0..2).prop_map(Any::Bytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Few names and few values, so that equal neighbours of all kinds occur, in records of none to five attributes.
    #[test]
    fn readers_agree(records in proptest::collection::vec(proptest::collection::btree_map("[a-e]", any_value(), 0..6), 1..24)) {
        assert_all_readers_agree(&records, &["b", "c"]);
    }
}

fn texts(pairs: &[(&str, &str)]) -> Attributes {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), Any::Text((*text).to_owned()))).collect()
}

fn is_plain(records: &OtapArrowRecords) -> bool {
    is_parent_id_plain_encoded(records.get(ArrowPayloadType::LogAttrs).expect("attributes"))
}

/// A table for transport is left as it is by the exporter's encoder, to the bit; a plain one is not.
#[test]
fn a_table_for_transport_needs_no_sorting() {
    let records: Vec<_> = (0..10).map(|n| texts(&[("a", ["x", "y"][n % 2]), ("b", &format!("text {n}"))])).collect();
    for (parent_ids, is_left) in [(ParentIds::Plain, false), (ParentIds::Transport, true)] {
        let written = write(&records, &["a"], parent_ids);
        assert_eq!(is_plain(&written), !is_left);
        let mut encoded = written.clone();
        encoded.encode_transport_optimized().expect("encoded");
        let attributes = |records: &OtapArrowRecords| records.get(ArrowPayloadType::LogAttrs).cloned();
        assert_eq!(attributes(&encoded) == attributes(&written), is_left);
    }
}

fn parents(records: &OtapArrowRecords) -> Vec<u16> {
    let table = records.get(ArrowPayloadType::LogAttrs).expect("attributes");
    let parents = table.column_by_name(consts::PARENT_ID).expect("parents");
    parents.as_any().downcast_ref::<UInt16Array>().expect("numbers").values().to_vec()
}

/// Rows are grouped by name and value, with differences within a group.
#[test]
fn rows_are_grouped() {
    let records: Vec<_> = (0..5).map(|n| texts(&[("a", ["x", "y"][n % 2]), ("b", "z")])).collect();
    let records = write(&records, &["b", "a"], ParentIds::Transport);
    assert_eq!(parents(&records), [0, 2, 2, 1, 2, 0, 1, 1, 1, 1]);
}

/// Values that do not go together with those of another name stay in the order of records beside others that do, unless they
/// come in runs. Those that go together are grouped, which gives both names the same parent ids.
#[test]
fn values_that_go_together() {
    let value = |record: usize, run: usize| (record / run * 7 % 30).to_string();
    let beside = |run: usize, other: &dyn Fn(usize) -> String| -> Vec<u16> {
        let records: Vec<_> = (0..900).map(|n| texts(&[("a", &value(n, run)), ("b", &other(n))])).collect();
        assert_all_readers_agree(&records, &["a", "b"]);
        parents(&write(&records, &["a", "b"], ParentIds::Transport))
    };
    let unique = |record: usize| format!("token {record}");
    let in_order: Vec<u16> = (0..900).chain(0..900).collect();
    assert_eq!(beside(1, &unique), in_order);
    assert_eq!(beside(3, &unique)[..4], [0, 1, 1, 88]);
    // Nobody shares its order.
    assert_eq!(beside(1, &|_| "one".to_owned())[..3], [0, 30, 30]);
    let together = beside(1, &|record| format!("process {}", value(record, 1)));
    assert_eq!(together[..3], [0, 30, 30]);
    assert_eq!(together[..900], together[900..]);
}

/// Integers that are mostly different come first, the largest of them before others; what repeats stays in its order.
#[test]
fn integers_that_differ_come_first() {
    let record = |n: i64| -> Attributes {
        let times = [("start", 10_000 + n - i64::from(n % 5 == 0)), ("end", 10_001 + n)];
        let all = [("few", n / 9), ("port", n * 7 % 1_009), times[0], times[1], ("one", 1)];
        all.into_iter().map(|(name, value)| (name.to_owned(), Any::Int(value))).collect()
    };
    let records: Vec<_> = (0..1_000).map(record).collect();
    let written = write(&records, &["few", "port", "start", "end", "one"], ParentIds::Transport);
    let table = written.get(ArrowPayloadType::LogAttrs).expect("attributes");
    let keys = table.column_by_name(consts::ATTRIBUTE_KEY).expect("keys");
    let keys = arrow::compute::cast(keys, &DataType::Utf8).expect("texts");
    let keys = keys.as_any().downcast_ref::<StringArray>().expect("texts");
    let mut order: Vec<_> = keys.iter().flatten().collect();
    order.dedup();
    assert_eq!(order, ["end", "start", "port", "few", "one"]);
    assert_all_readers_agree(&records, &["few", "port", "start", "end", "one"]);
}

/// Readers may differ on whether such numbers are equal, so their parent ids stay plain.
#[test]
fn doubles_that_are_equal_to_some() {
    for pair in [[0.0, -0.0], [f64::NAN, f64::NAN]] {
        let records: Vec<_> =
            pair.iter().map(|number| Attributes::from([("d".to_owned(), Any::Double(*number))])).collect();
        assert!(is_plain(&write(&records, &[], ParentIds::Transport)));
    }
}

/// More names than 8 bits tell apart, more texts and integers than 16 bits do: the columns widen, and nothing changes.
#[test]
fn dictionaries_grow() {
    let many_names: Vec<_> = (0..300).map(|n| texts(&[(&format!("name {n}"), "x"), ("a", "y")])).collect();
    assert_all_readers_agree(&many_names, &["a"]);
    let wide = |record: usize| -> Attributes {
        (0..10)
            .flat_map(|n| {
                let number = record * 10 + n;
                [
                    (format!("t{n}"), Any::Text(format!("{number}"))),
                    (format!("i{n}"), Any::Int(i64::try_from(number).expect("small"))),
                ]
            })
            .collect()
    };
    let many_values: Vec<_> = (0..7_000).map(wide).collect();
    let records = write(&many_values, &[], ParentIds::Plain);
    let table = records.get(ArrowPayloadType::LogAttrs).expect("attributes");
    for (column, plain) in [(consts::ATTRIBUTE_STR, DataType::Utf8), (consts::ATTRIBUTE_INT, DataType::Int64)] {
        assert_eq!(table.column_by_name(column).expect("column").data_type(), &plain);
    }
    assert_eq!(read(&records), expected(&many_values));
    assert_eq!(read(&decoded(&write(&many_values, &[], ParentIds::Transport))), expected(&many_values));
}

/// Text that never repeats is not looked for any more, text that does still is.
#[test]
fn unique_text_is_not_looked_up_for_ever() {
    let records: Vec<_> =
        (0..2_000).map(|n| texts(&[("host", &format!("h{}", n % 5)), ("text", &format!("t{}", n / 2 * 2))])).collect();
    assert_all_readers_agree(&records, &[]);
}

/// Bytes that are no UTF-8, which a caller has called UTF-8, cost no other record.
#[test]
fn a_wrong_promise_is_repaired() {
    let mut table = LogsTable::new("test", &NO_LEVELS, &[]);
    for text in [&b"good"[..], b"b\xffd", b"fine"] {
        table.record(LogFields { is_utf8: true, ..LogFields::default() }).text("t", text);
    }
    let records = table.finish_at_once().expect("batch");
    assert_eq!(read(&records), [json!({"t": "good"}), json!({"t": "b\u{fffd}d"}), json!({"t": "fine"})]);
}

/// A record without attributes, and a batch of them.
#[test]
fn records_without_attributes() {
    assert_all_readers_agree(&[Attributes::new(), Attributes::new()], &["a"]);
    assert!(write(&[Attributes::new()], &[], ParentIds::Plain).get(ArrowPayloadType::LogAttrs).is_none());
}

/// Of several values of a name the last one stays, wherever the table is arranged.
#[test]
fn the_last_text_of_a_name_wins() {
    let mut table = LogsTable::new("test", &NO_LEVELS, &[]).with_parent_ids(ParentIds::Transport);
    for values in [&["x", "y"][..], &["y"], &["z", "y", "y"], &["w"]] {
        let mut writer = table.record(LogFields::default());
        for value in values {
            writer.last_text("t", value.as_bytes());
        }
    }
    let records = table.finish_at_once().expect("batch");
    for records in [&decoded(&records), &sent(&records)] {
        assert_eq!(read(records), [json!({"t": "y"}), json!({"t": "y"}), json!({"t": "y"}), json!({"t": "w"})]);
    }
}

/// Bodies of all kinds, severities and trace contexts, absent in some records.
#[test]
fn the_other_columns() {
    let mut levels = NO_LEVELS;
    levels[3] = (17, "ERROR");
    let levels: &'static Levels = Box::leak(Box::new(levels));
    let mut table = LogsTable::new("test", levels, &[]);
    let trace = Trace { trace_id: [1; 16], span_id: [2; 8], flags: 1 };
    let _ = table.record(LogFields { body: Body::Text(b"t\xff"), severity: Some(3), ..LogFields::default() });
    let _ = table.record(LogFields { trace: Some(trace), time_unix_nano: Some(-1), ..LogFields::default() });
    let _ = table.record(LogFields { body: Body::Bytes(b"\xff"), ..LogFields::default() });
    let records = table.finish_at_once().expect("batch");
    let mut all = Vec::new();
    crate::json::objects(&records, |object| all.push(object)).expect("readable");
    let of = |key: &str| all.iter().map(|object| object[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("body"), [json!("t\u{fffd}"), Value::Null, json!({"base16": "ff"})]);
    assert_eq!(of("severity_number"), [json!(17), Value::Null, Value::Null]);
    assert_eq!(of("severity_text"), [json!("ERROR"), Value::Null, Value::Null]);
    assert_eq!(of("trace_id"), [Value::Null, json!("01".repeat(16)), Value::Null]);
    assert_eq!(of("span_id"), [Value::Null, json!("02".repeat(8)), Value::Null]);
    assert_eq!(of("flags"), [Value::Null, json!(1), Value::Null]);
    assert_eq!(of("time")[1], json!("1969-12-31T23:59:59.999999999Z"));
}

/// The column of bodies is there without any, and each resource has a scope of its own: the engine's batch processor and
/// its OTLP encoder rely on that.
#[test]
fn columns_that_the_engine_relies_on() {
    let mut table = LogsTable::new("test", &NO_LEVELS, &[]);
    for resource in [0, 1, 0] {
        let _ = table.record(LogFields { resource, ..LogFields::default() });
    }
    let records = table.finish_at_once().expect("batch");
    let logs = records.get(ArrowPayloadType::Logs).expect("the records");
    let child = |column: &str, name: &str| {
        let column = logs.column_by_name(column).and_then(|column| column.as_any().downcast_ref::<StructArray>());
        Arc::clone(column.and_then(|column| column.column_by_name(name)).expect("a part of the column"))
    };
    assert_eq!(child(consts::BODY, consts::ATTRIBUTE_TYPE).null_count(), 0);
    assert_eq!(&child(consts::SCOPE, consts::ID), &child(consts::RESOURCE, consts::ID));
}
