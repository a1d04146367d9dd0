//! The vectors of `tests/data/sonic`: sessions, payloads, and the points that come of them.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use catchment_columns::sonic::{AttributesAt, SonicBatch, SonicJob, SonicMapping, SonicNames, session_rows};
use catchment_columns::{Job, OtapArrowRecords, json};
use catchment_ipfix::sonic::{SonicLimits, SonicSessions};
use serde_json::Value;

mod common;

use common::read::{self, Attributes, Kind, Number, Point, Series};

struct Vector {
    name: String,
    sessions: SonicSessions,
    payloads: Vec<Vec<u8>>,
    expected: Vec<Value>,
}

fn vectors() -> Vec<Vector> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sonic");
    let files: Vec<PathBuf> = fs::read_dir(&folder).expect("data").map(|file| file.expect("a file").path()).collect();
    let documents = files.iter().filter(|file| file.to_string_lossy().ends_with(".session.json"));
    let vectors = documents.map(|file| {
        let text = fs::read(file).expect("a document");
        let document: Value = serde_json::from_slice(&text).expect("json");
        let mut sessions = SonicSessions::new(SonicLimits::default());
        for (key, row) in session_rows(&text).expect("sessions") {
            let _ = sessions.apply(&key, &row).expect("a good session");
        }
        let names = document["datagram_files"].as_array().expect("files");
        let payload = |name: &Value| fs::read(folder.join(name.as_str().expect("a name"))).expect("a payload");
        Vector {
            name: document["case"].as_str().expect("a name").to_owned(),
            sessions,
            payloads: names.iter().map(payload).collect(),
            expected: document["expected_points_in_order"].as_array().expect("points").clone(),
        }
    });
    let vectors: Vec<Vector> = vectors.collect();
    assert_eq!(vectors.len(), 6);
    vectors
}

fn expected(point: &Value, mapping: &SonicMapping) -> Point {
    let text = |name: &str| match &point[name] {
        Value::String(text) => text.clone(),
        number => number.to_string(),
    };
    let (metric, names) = match mapping.names {
        SonicNames::Sai => (text("sai_stat"), ["sai_type", "sai_stat"]),
        SonicNames::Legacy => (
            format!("sai_counter_type_{}_stat_{}", text("sai_type_id"), text("sai_stat_id")),
            ["sai_type_id", "sai_stat_id"],
        ),
    };
    let pair = |name: &str, value: String| (name.to_owned(), value);
    let mut resource = Attributes::from([pair("service.name", "countersyncd".into())]);
    let mut attributes = Attributes::new();
    match mapping.attributes_at {
        AttributesAt::Point => {
            attributes.extend([pair("object_name", text("object_name"))]);
            attributes.extend(names.map(|name| pair(name, text(name))));
        }
        AttributesAt::Resource => {
            resource.extend([pair("object", text("object_name")), pair(names[0], text(names[0]))]);
        }
    }
    Point {
        series: Series { resource, metric, unit: String::new(), kind: Kind::Gauge, attributes },
        start: 0,
        time: text("time_unix_nano").parse().expect("a time"),
        value: Number::Int(text("value").parse().expect("a value")),
    }
}

/// Batches of each payload, one after the other, and the payloads that were rejected.
fn run(vector: &mut Vector, mapping: &Arc<SonicMapping>) -> (Vec<OtapArrowRecords>, usize) {
    let (mut batches, mut rejected) = (Vec::new(), 0);
    for payload in &vector.payloads {
        let mut batch = SonicBatch::default();
        if vector.sessions.admit(1, payload, 0, |set| batch.push(1, set)).is_err() {
            assert!(batch.is_empty(), "{}: a rejected payload gave records", vector.name);
            rejected += 1;
        }
        batches.extend(SonicJob::new(batch, Arc::clone(mapping)).run().expect("batches"));
    }
    (batches, rejected)
}

fn mappings(records_per_batch: Option<NonZeroUsize>) -> impl Iterator<Item = Arc<SonicMapping>> {
    let places = [AttributesAt::Point, AttributesAt::Resource];
    let all = places.into_iter().flat_map(|place| [SonicNames::Sai, SonicNames::Legacy].map(|names| (place, names)));
    all.map(move |(attributes_at, names)| {
        Arc::new(SonicMapping { attributes_at, names, records_per_batch, ..SonicMapping::default() })
    })
}

/// One record a batch: every point in the order of the wire, in both places of attributes and both styles of names.
#[test]
fn in_the_order_of_the_wire() {
    for mapping in mappings(NonZeroUsize::new(1)) {
        for mut vector in vectors() {
            let (batches, _) = run(&mut vector, &mapping);
            let points: Vec<Point> = batches.iter().flat_map(read::row_by_row).collect();
            let expected: Vec<Point> = vector.expected.iter().map(|point| expected(point, &mapping)).collect();
            assert_eq!(points, expected, "{}", vector.name);
        }
    }
}

/// What is printed has that order too, also where one series occurs several times in a record.
#[test]
fn printed_in_the_order_of_the_wire() {
    for mapping in mappings(NonZeroUsize::new(1)) {
        for mut vector in vectors() {
            let (batches, _) = run(&mut vector, &mapping);
            let mut printed = Vec::new();
            for batch in &batches {
                json::objects(batch, |point| printed.push(point)).expect("points");
            }
            let expected: Vec<Value> =
                vector.expected.iter().map(|point| expected(point, &mapping).printed("countersyncd")).collect();
            assert_eq!(printed, expected, "{}", vector.name);
        }
    }
}

/// As many records a batch as fit: each series in the order of the wire, through the view and through OTLP.
#[test]
fn series_by_series() {
    for mapping in mappings(None) {
        for mut vector in vectors() {
            let (batches, _) = run(&mut vector, &mapping);
            let expected: Vec<Point> = vector.expected.iter().map(|point| expected(point, &mapping)).collect();
            let expected = read::by_series(&expected);
            let view: Vec<Point> = batches.iter().flat_map(|batch| read::through_view(batch, "countersyncd")).collect();
            assert_eq!(read::by_series(&view), expected, "{}", vector.name);
            let otlp: Vec<Point> = batches.iter().flat_map(|batch| read::through_otlp(batch, "countersyncd")).collect();
            assert_eq!(read::by_series(&otlp), expected, "{}", vector.name);
        }
    }
}

/// Payloads with bad framing are dropped whole and counted; nothing else is.
#[test]
fn bad_framing() {
    for mut vector in vectors() {
        let (_, rejected) = run(&mut vector, &Arc::default());
        let bad = if vector.name == "sonic-bad-framing" { 7 } else { 0 };
        assert_eq!(rejected, bad, "{}", vector.name);
        assert_eq!(vector.sessions.counters().rejected_framing, bad as u64);
        assert_eq!(vector.sessions.counters().counters, vector.expected.len() as u64);
    }
}

/// Cut at every byte and changed at every byte: never a panic, and what comes out is what was counted.
#[test]
fn damaged_payloads() {
    let mapping = Arc::new(SonicMapping::default());
    for mut vector in vectors() {
        let mut damaged = Vec::new();
        for payload in &vector.payloads {
            damaged.extend((0..payload.len()).map(|end| payload[..end].to_vec()));
            damaged.extend((0..payload.len()).map(|place| {
                let mut payload = payload.clone();
                payload[place] ^= 0xff;
                payload
            }));
        }
        let mut points = 0;
        for payload in &damaged {
            let mut batch = SonicBatch::default();
            let _ = vector.sessions.admit(1, payload, 0, |set| batch.push(1, set));
            let mut job = SonicJob::new(batch, Arc::clone(&mapping));
            let batches = job.run().expect("batches");
            points += job.counts().points;
            assert_eq!(batches.len() as u64, job.counts().batches);
        }
        assert_eq!(points, vector.sessions.counters().counters, "{}", vector.name);
    }
}
