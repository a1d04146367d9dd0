//! The messages, read back by a walker that knows nothing of how they are made.

mod decoded;

use std::collections::BTreeMap;

use super::*;
use crate::traffic::DEFAULT_START_UNIX_NANO;

/// What a message says, field values by element.
#[derive(Debug, Default)]
struct Walked {
    count_or_length: u16,
    seconds: u32,
    sequence: u32,
    domain: u32,
    /// Only v9 has it.
    uptime_ms: u64,
    templates: usize,
    records: Vec<BTreeMap<u16, u64>>,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Walks over one message of either version; `templates` outlive it.
fn walk(message: &[u8], templates: &mut BTreeMap<u16, Vec<(u16, usize)>>) -> Walked {
    let version = u16_at(message, 0);
    let (seconds_at, template_set) = match version {
        10 => (4, 2),
        9 => (8, 0),
        other => panic!("version {other}"),
    };
    let mut walked = Walked {
        count_or_length: u16_at(message, 2),
        seconds: u32_at(message, seconds_at),
        sequence: u32_at(message, seconds_at + 4),
        domain: u32_at(message, seconds_at + 8),
        uptime_ms: u32_at(message, 4).into(),
        ..Walked::default()
    };
    let mut at = seconds_at + 12;
    while at < message.len() {
        let (id, length) = (u16_at(message, at), usize::from(u16_at(message, at + 2)));
        let set = &message[at + 4..at + length];
        at += length;
        if id == template_set {
            let fields = (0..usize::from(u16_at(set, 2)))
                .map(|i| (u16_at(set, 4 + 4 * i), usize::from(u16_at(set, 6 + 4 * i))))
                .collect::<Vec<_>>();
            assert_eq!(set.len(), 4 + 4 * fields.len());
            templates.insert(u16_at(set, 0), fields);
            walked.templates += 1;
            continue;
        }
        let fields = &templates[&id];
        let record_bytes = fields.iter().map(|(_, bytes)| bytes).sum();
        let chunks = set.chunks_exact(record_bytes);
        let padding = chunks.remainder();
        assert!(padding.len() < 4 && padding.iter().all(|byte| *byte == 0));
        for mut record in chunks {
            let mut values = BTreeMap::new();
            for (element, bytes) in fields {
                let (value, rest) = record.split_at(*bytes);
                let number = value.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
                assert_eq!(values.insert(*element, number), None);
                record = rest;
            }
            walked.records.push(values);
        }
    }
    assert_eq!(at, message.len());
    walked
}

fn messages(options: FlowOptions, count: usize) -> Vec<(Vec<u8>, u64)> {
    let mut exporter = FlowExporter::new(options).unwrap();
    let mut message = || {
        let mut out = Vec::new();
        let records = exporter.append_next(&mut out).unwrap();
        (out, records)
    };
    (0..count).map(|_| message()).collect()
}

const KINDS: [(FlowProtocol, FlowFields, usize, usize); 6] = [
    (FlowProtocol::Ipfix, FlowFields::Basic, 11, 51),
    (FlowProtocol::NetflowV9, FlowFields::Basic, 11, 43),
    (FlowProtocol::Ipfix, FlowFields::Softflowd, 16, 50),
    (FlowProtocol::Ipfix, FlowFields::Router, 18, 67),
    (FlowProtocol::NetflowV9, FlowFields::Softflowd, 16, 42),
    (FlowProtocol::NetflowV9, FlowFields::Router, 18, 59),
];

/// Every message is well formed, fits a packet, and has the records, sequence number and domain that it should.
#[test]
fn walked_messages() {
    for (protocol, fields, field_count, record_bytes) in KINDS {
        let mut options = FlowOptions::new(protocol, fields, 77, 3);
        options.template_every = 5;
        let mut templates = BTreeMap::new();
        let mut records_before = 0;
        for (index, (message, records)) in messages(options, 23).iter().enumerate() {
            let walked = walk(message, &mut templates);
            assert!(message.len() <= 1_472, "{protocol:?} {}", message.len());
            assert!(message.len() > 1_472 - record_bytes - 4 * field_count - 16);
            assert_eq!(walked.templates, usize::from(index % 5 == 0));
            assert_eq!(walked.records.len() as u64, *records);
            assert_eq!(walked.domain, 77);
            let (sequence, count_or_length) = match protocol {
                FlowProtocol::Ipfix => (records_before, message.len()),
                _ => (index as u64, walked.records.len() + walked.templates),
            };
            assert_eq!(u64::from(walked.sequence), sequence);
            assert_eq!(usize::from(walked.count_or_length), count_or_length);
            records_before += records;
        }
        assert_eq!(templates[&256].len(), field_count);
        let bytes: usize = templates[&256].iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(bytes, record_bytes);
    }
}

/// softflowd's fields come in its order, as in the recording of it that is part of the repository.
#[test]
fn same_template_as_softflowd() {
    let options = FlowOptions::new(FlowProtocol::Ipfix, FlowFields::Softflowd, 0, 0);
    let made = messages(options, 1).remove(0).0;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/data/flows.pcap");
    let first = catchment_capture::Reader::open(path).unwrap().next();
    let Some(Ok(catchment_capture::Item::Packet(recorded))) = first else {
        panic!("{path}: {first:?}");
    };
    // Set header, template id and field count are 8 bytes after the message header, then 16 fields.
    let fields = 16 + 8..16 + 8 + 4 * 16;
    assert_eq!(made[fields.clone()], recorded.payload[fields]);
}

/// Values make sense together, and sizes have a long tail, so that their quantiles differ.
#[test]
fn plausible_values() {
    for (protocol, fields, _, _) in KINDS {
        let options = FlowOptions::new(protocol, fields, 0, 11);
        let (start, end) = match protocol {
            FlowProtocol::Ipfix => (152, 153),
            _ => (22, 21),
        };
        let mut templates = BTreeMap::new();
        let mut octets = Vec::new();
        for (message, _) in messages(options, 200) {
            let walked = walk(&message, &mut templates);
            assert!(u64::from(walked.seconds) >= DEFAULT_START_UNIX_NANO / 1_000_000_000);
            for record in walked.records {
                assert!(record[&start] <= record[&end]);
                assert!(record[&2] >= 1 && record[&1] >= 40 * record[&2]);
                assert!(record[&1] <= 1_500 * record[&2]);
                assert!([6, 17].contains(&record[&4]));
                if protocol == FlowProtocol::Ipfix {
                    let begin_ms = DEFAULT_START_UNIX_NANO / 1_000_000;
                    assert!(record[&end] > begin_ms && record[&end] < begin_ms + 10_000);
                } else {
                    assert!(record[&end] <= walked.uptime_ms);
                    assert!(record[&end] + 1_000 > walked.uptime_ms);
                }
                octets.push(record[&1]);
            }
        }
        octets.sort_unstable();
        let (half, high) = (octets[octets.len() / 2], octets[octets.len() * 99 / 100]);
        assert!(high > 20 * half, "p50 {half}, p99 {high}");
    }
}

/// The same options give the same bytes; another seed, others.
#[test]
fn deterministic() {
    for (protocol, fields, _, _) in KINDS {
        let with_seed = |seed| messages(FlowOptions::new(protocol, fields, 1, seed), 20);
        assert_eq!(with_seed(4), with_seed(4));
        assert_ne!(with_seed(4), with_seed(5));
    }
}

/// The number of records is bounded by what a datagram holds, and the bound itself works.
#[test]
fn records_per_message() {
    for (protocol, fields, _, _) in KINDS {
        let mut options = FlowOptions::new(protocol, fields, 1, 1);
        options.template_every = 0;
        options.records_per_message = Some(0);
        let error = FlowExporter::new(options.clone()).unwrap_err();
        let FlowOptionsError::RecordsPerMessage { found: 0, most } = error else {
            panic!("{error}");
        };
        options.records_per_message = Some(most as u16 + 1);
        assert!(FlowExporter::new(options.clone()).is_err());
        options.records_per_message = Some(most as u16);
        let mut templates = BTreeMap::new();
        for (index, (message, records)) in messages(options.clone(), 3).iter().enumerate() {
            assert!(message.len() <= 65_507);
            let walked = walk(message, &mut templates);
            assert_eq!(walked.templates, usize::from(index == 0));
            assert_eq!((walked.records.len(), *records), (most, most as u64));
        }
        options.records_per_message = Some(1);
        assert_eq!(messages(options, 1)[0].1, 1);
    }
}

/// Messages are appended: what is in the buffer already stays.
#[test]
fn appends() {
    let options = FlowOptions::new(FlowProtocol::Ipfix, FlowFields::Router, 1, 1);
    let mut exporter = FlowExporter::new(options).unwrap();
    let mut out = b"before".to_vec();
    exporter.append_next(&mut out);
    assert!(out.starts_with(b"before\x00\x0a"));
    assert_eq!(usize::from(u16_at(&out, 8)), out.len() - 6);
}
