//! What is refused, and what it is told to be. Whole payloads are compared with direct decoding in the tests of random sets.

use super::*;
use crate::flow::{Biflow, FlowBatch, FlowMapping, FlowSchema};

fn payload() -> Vec<u8> {
    encode(&FlowBatch::default(), &FlowMapping::default())
}

/// Settings travel with the records.
#[test]
fn settings_come_back() {
    let mapping = FlowMapping { schema: FlowSchema::Ipfix, biflow: Biflow::Two, ..FlowMapping::default() };
    let (batch, read) = decode(&encode(&FlowBatch::default(), &mapping)).expect("a payload");
    assert!(batch.is_empty());
    assert_eq!(read, mapping);
}

/// Another version, and content of another kind, are told from damage, and counted as nothing.
#[test]
fn other_versions_and_kinds() {
    let mut other = payload();
    other[1] = 3;
    assert_eq!(decode(&other).err(), Some(EncodedError::Version { offset: 1, found: 3 }));
    assert_eq!(count(&other), None);
    let mut other = payload();
    other[2] = 2;
    assert_eq!(decode(&other).err(), Some(EncodedError::Kind { offset: 2, found: 2 }));
    assert_eq!(count(&other), None);
    assert_eq!(count(&payload()), Some(0));
}

/// Numbers that mean nothing, bytes that belong to nothing, and records that are not there.
#[test]
fn places_of_faults() {
    let mut other = payload();
    // The records, the head of the settings, then the schema.
    other[5] = 9;
    let found = decode(&other).err();
    assert_eq!(found, Some(EncodedError::Value { offset: 5, field: "schema", found: "9".to_owned() }));
    let longer = [payload(), vec![0]].concat();
    assert!(matches!(decode(&longer).err(), Some(EncodedError::Unused { unused: 1, .. })));
    let mut other = payload();
    other[3] = 1;
    assert!(matches!(decode(&other).err(), Some(EncodedError::Value { offset: 3, .. })));
    assert!(matches!(decode(b"").err(), Some(EncodedError::Item { offset: 0, .. })));
}

/// The thresholds of sets come back; those that are none, or not one for each set, are refused.
#[test]
fn thresholds() {
    let mut datagram =
        vec![0, 10, 0, 32, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 8, 1, 0, 0, 1, 0, 4, 0, 1, 1, 0, 0, 6, 6, 17];
    (datagram[3], datagram[19]) = (34, 12);
    let mut session = catchment_ipfix::Session::new(catchment_ipfix::Transport::Udp, Default::default());
    let mut admitted = catchment_ipfix::Admitted::default();
    session.admit(&datagram, &mut admitted);
    let config: catchment_sampling::SamplingConfig =
        serde_json::from_str(r#"{"policies": [{"key_hash": {"ratio": 0.5, "key": "exporter"}}]}"#).expect("a config");
    let mut sampler = config.compile(catchment_sampling::Input::Flows, 0).expect("valid");
    let mut batch = FlowBatch::default();
    for last in 0..=255 {
        let exporter = Some(std::net::SocketAddr::from(([192, 0, 2, last], 1)));
        let receipt = crate::flow::FlowReceipt { time_unix_nano: 1, exporter };
        admitted.begin_next();
        session.admit(&datagram, &mut admitted);
        let _ = batch.push_sampled(&datagram, &mut admitted, receipt, &mut sampler, 0);
    }
    let sets = batch.sets.len();
    assert!((64..192).contains(&sets) && batch.len() == 2 * sets, "{sets}");
    let whole = encode(&batch, &FlowMapping::default());
    assert_eq!(count(&whole), Some(batch.len()));
    let (read, _) = decode(&whole).expect("a payload");
    assert!(read.sets.iter().all(|set| set.threshold.adjusted_count() == 2.0));

    let mut other = whole.clone();
    *other.last_mut().expect("bytes") = 1;
    let offset = whole.len() - 8;
    assert!(matches!(decode(&other).err(), Some(EncodedError::Value { offset: at, .. }) if at == offset));
    let mut other = whole;
    let start = other.len() - 8 * sets;
    // Its length has two bytes, or one if that is small.
    let length = u16::try_from(8 * sets).expect("few");
    assert_eq!(other[start - 3..start], [0x59, length.to_be_bytes()[0], length.to_be_bytes()[1]]);
    let _ = other.splice(start - 2..start, (length - 8).to_be_bytes());
    other.truncate(other.len() - 8);
    assert!(matches!(decode(&other).err(), Some(EncodedError::Value { offset: at, .. }) if at == start));
}

/// An array that announces more than there is costs no memory.
#[test]
fn announced_lengths_are_not_believed() {
    let mut hostile = payload();
    let templates = 3 + 1 + 1 + 12;
    assert_eq!(hostile[templates], 0x80, "an empty array");
    let _ = hostile.splice(templates..=templates, [0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    assert!(matches!(decode(&hostile).err(), Some(EncodedError::Item { .. } | EncodedError::Value { .. })));
}

/// Fields without bytes cost work for each record: a template has no more of them than a session takes.
#[test]
fn fields_without_bytes_are_few() {
    let with = |empty: usize| {
        let mut template = vec![0x81, 0x83, 0x19, 1, 0, 0, 0x59];
        template.extend(u16::try_from(9 * (1 + empty)).expect("short").to_be_bytes());
        template.extend([0, 4, 0, 0, 0, 0, 0, 1, 0]);
        template.extend([0, 5, 0, 0, 0, 0, 0, 0, 0].repeat(empty));
        let mut payload = payload();
        let _ = payload.splice(3 + 1 + 1 + 12..=3 + 1 + 1 + 12, template);
        decode(&payload).map(|(batch, _)| batch.len())
    };
    assert_eq!(with(64), Ok(0));
    assert!(with(65).is_err_and(|error| error.to_string().contains("65 fields of length 0, 64 at most")));
}

/// An entry comes back from its bytes.
#[test]
fn entries_come_back() {
    let entry = SetEntry {
        template: 1,
        group: 2,
        facts: NONE,
        exporter: 4,
        records: 5,
        bytes: 6,
        received_unix_nano: -7,
        exported_unix_nano: 8,
        sequence: 9,
        domain: 10,
        uptime_ms: Some(11),
        sampling: None,
        version: 9,
    };
    let mut bytes = Vec::new();
    entry.append_to(&mut bytes);
    assert_eq!(bytes.len(), SetEntry::BYTES);
    assert_eq!(SetEntry::from_bytes(&bytes), entry);
}
