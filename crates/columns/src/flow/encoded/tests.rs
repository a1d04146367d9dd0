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
    other[1] = 2;
    assert_eq!(decode(&other).err(), Some(EncodedError::Version { offset: 1, found: 2 }));
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
