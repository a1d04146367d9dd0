//! Telemetry read back by the decoder that receivers use, with the session that goes with it.

use std::collections::BTreeMap;

use catchment_ipfix::{Admitted, Limits, Session, Transport, check_framing};

use super::*;

/// A point: time, label, type, statistic, value.
type Point = (u64, u16, u16, u16, u64);

fn options(object: SonicObject, objects: u16, statistics: u16) -> SonicOptions {
    SonicOptions { object, objects, statistics, seed: 4, ..SonicOptions::default() }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

/// All points of so many payloads, in the order of the wire, and how many records they were in.
fn points(options: SonicOptions, payloads: usize) -> (Vec<Point>, u64) {
    let mut telemetry = SonicTelemetry::new(options.clone()).unwrap();
    let mut session = Session::new(Transport::Udp, Limits::default());
    let mut admitted = Admitted::default();
    let config = telemetry.session().fields.session_config;
    session.admit(&config, &mut admitted);
    assert_eq!(admitted.counters.templates_new, telemetry.templates() as u64);
    let (mut points, mut records) = (Vec::new(), 0);
    for _ in 0..payloads {
        admitted.clear();
        let mut payload = Vec::new();
        records += telemetry.append_next(&mut payload).unwrap();
        assert!(payload.len() <= options.max_payload_bytes);
        assert!(check_framing(&payload).is_ok());
        session.admit(&payload, &mut admitted);
        assert_eq!((&admitted.problems, admitted.counters.unknown_template_sets), (&Vec::new(), 0));
        for set in &admitted.sets {
            for record in set.records(&payload) {
                let mut time = 0;
                for (field, bytes) in record.fields() {
                    match (field.enterprise, field.id) {
                        (0, 322) => time = number(bytes) * 1_000_000_000,
                        (0, 325) => time += number(bytes),
                        // A place holder.
                        (0, 0) => assert_eq!(number(bytes), PLACE_HOLDER),
                        (enterprise, label) => {
                            let halves = ((enterprise >> 16) as u16, enterprise as u16);
                            points.push((time, label, halves.0, halves.1, number(bytes)));
                        }
                    }
                }
            }
        }
    }
    assert_eq!(telemetry.counters_made(), points.len() as u64);
    (points, records)
}

/// Each snapshot has every statistic of every object once, in order, with its own time; counters never fall.
#[test]
fn snapshots() {
    for object in SonicObject::ALL {
        for time in [SonicTime::Nanoseconds, SonicTime::SecondsAndNanoseconds] {
            let mut options = options(object, 9, object.statistics());
            (options.time, options.records_per_message, options.place_holders) = (time, 3, 5);
            let (points, records) = points(options, 4);
            let each = 9 * usize::from(object.statistics());
            assert_eq!((records, points.len()), (12, 12 * each));
            let mut last: BTreeMap<(u16, u16), u64> = BTreeMap::new();
            for (index, (time, label, type_id, statistic, value)) in points.into_iter().enumerate() {
                let (snapshot, counter) = (index / each, index % each);
                assert_eq!(time, DEFAULT_START_UNIX_NANO + snapshot as u64 * 10_000_000);
                let expected =
                    (counter / usize::from(object.statistics()) + 1, counter % usize::from(object.statistics()));
                assert_eq!((usize::from(label), usize::from(statistic)), expected);
                assert_eq!(type_id, object.type_id());
                let before = last.insert((label, statistic), value);
                assert!(object.is_level(statistic) || before.is_none_or(|before| before <= value));
            }
        }
    }
}

/// More counters than a template holds are split over several, each with a time of its own.
#[test]
fn several_templates() {
    for (max_payload_bytes, first) in [(65_507, 8_184), (1 << 20, 8_188)] {
        let mut options = options(SonicObject::Port, 200, 90);
        (options.max_payload_bytes, options.messages_per_payload) = (max_payload_bytes, 3);
        let telemetry = SonicTelemetry::new(options.clone()).unwrap();
        assert_eq!(telemetry.templates(), 3);
        let payloads = if max_payload_bytes == 65_507 { 3 } else { 1 };
        let (points, records) = points(options, payloads);
        assert_eq!((records, points.len()), (3, 18_000));
        let times: Vec<u64> = points.iter().map(|point| point.0 - DEFAULT_START_UNIX_NANO).collect();
        assert_eq!((times[first - 1], times[first], times[17_999]), (0, 1_000, 2_000));
        let keys: std::collections::BTreeSet<_> = points.iter().map(|point| (point.1, point.3)).collect();
        assert_eq!(keys.len(), 18_000);
    }
}

/// The sizes on the wire are those of the rules: 28 + 8 N for templates, 28 + 8 N for a message with one record.
#[test]
fn sizes() {
    for counters in [1_u16, 2, 50] {
        let mut telemetry = SonicTelemetry::new(options(SonicObject::Port, 1, counters)).unwrap();
        let expected = 28 + 8 * usize::from(counters);
        assert_eq!(telemetry.session().fields.session_config.len(), expected);
        let mut payload = Vec::new();
        let _ = telemetry.append_next(&mut payload);
        assert_eq!(payload.len(), expected);
    }
}

/// Names are sorted and their labels count up; the row is what a switch writes.
#[test]
fn sessions() {
    let row = |object| SonicTelemetry::new(options(object, 10, 1)).unwrap().session();
    let port = row(SonicObject::Port);
    assert_eq!(port.key, "HIGH_FREQUENCY_TELEMETRY_SESSION_TABLE|hft0|PORT");
    assert!(port.fields.object_names.starts_with("Ethernet0,Ethernet12,Ethernet16,"), "{}", port.fields.object_names);
    assert_eq!(port.fields.object_ids, "1,2,3,4,5,6,7,8,9,10");
    assert_eq!((port.db, port.fields.stream_status.as_str()), (6, "enabled"));
    let queue = row(SonicObject::Queue);
    assert!(queue.fields.object_names.starts_with("Ethernet0|0,Ethernet0|1,"));
    assert!(row(SonicObject::BufferPool).fields.object_names.contains("ingress_lossless_pool"));
    assert!(row(SonicObject::PriorityGroup).key.ends_with("|INGRESS_PRIORITY_GROUP"));
    let json = serde_json::to_value(&queue).unwrap();
    assert!(json["fields"]["session_config_hex"].as_str().unwrap().starts_with("000a006c"));
}

/// The same options give the same bytes, and the seed is one of them.
#[test]
fn deterministic() {
    let made = |seed| points(SonicOptions { seed, ..SonicOptions::default() }, 5);
    assert_eq!(made(1), made(1));
    assert_ne!(made(1), made(2));
}

/// Options that cannot be followed.
#[test]
fn refused() {
    let error = |change: fn(&mut SonicOptions)| {
        let mut options = options(SonicObject::PriorityGroup, 2, 2);
        change(&mut options);
        SonicTelemetry::new(options).unwrap_err()
    };
    assert_eq!(error(|o| o.objects = 0x8000), SonicOptionsError::Objects { found: 0x8000 });
    assert_eq!(error(|o| o.statistics = 16), SonicOptionsError::Statistics { found: 16, most: 15 });
    assert_eq!(error(|o| o.messages_per_payload = 0), SonicOptionsError::MessagesPerPayload);
    let records = |found| SonicOptionsError::RecordsPerMessage { found, most: 1_637 };
    assert_eq!(error(|o| o.records_per_message = 0), records(0));
    assert_eq!(error(|o| o.records_per_message = 1_638), records(1_638));
    let payload = SonicOptionsError::Payload { found: 40, place_holders: 2 };
    assert_eq!(
        error(|o| {
            o.max_payload_bytes = 40;
            o.place_holders = 2;
        }),
        payload
    );
}
