//! What is refused, and what it is told to be. Whole payloads are compared with direct decoding in the tests of random records.

use catchment_ipfix::sonic::SonicRecords;
use proptest::prelude::*;

use super::*;
use crate::Job;
use crate::sonic::SonicJob;

/// Offsets in [`payload`]: of the settings behind their head, of the patterns, and of the templates.
const SETTINGS_AT: usize = 6;
const CUMULATIVE_AT: usize = SETTINGS_AT + 8;
const TEMPLATES_AT: usize = CUMULATIVE_AT + 1;

/// Template 256 with a place holder of a byte and a counter of one byte, of label 7.
const DEFINITION: [u8; 20] = [1, 0, 0, 2, 0x80, 0, 0, 1, 0, 0, 0, 0, 0x80, 7, 0, 1, 0, 1, 0, 4];

fn template(name: &str) -> Arc<SonicTemplate> {
    let names = [(7, name.into()), (8, "another".into())];
    Arc::new(SonicTemplate::from_definition(3, &DEFINITION, names).expect("a template"))
}

fn batch(template: &Arc<SonicTemplate>) -> SonicBatch {
    let mut batch = SonicBatch::default();
    batch.push(9, SonicRecords { template, bytes: &[0, 1, 0, 2], records: 2, time_unix_nano: Some(5) });
    batch
}

fn payload() -> Vec<u8> {
    encode(&batch(&template("Ethernet0")), &SonicMapping::default())
}

/// Settings, names and times travel with the records.
#[test]
fn everything_comes_back() {
    let mapping = SonicMapping {
        names: SonicNames::Legacy,
        attributes_at: AttributesAt::Resource,
        u64_overflow: U64Overflow::Double,
        cumulative: vec!["SAI_*".to_owned(), "x".to_owned()],
        max_points: 7,
        records_per_batch: NonZeroUsize::new(3),
        parent_ids: ParentIds::Transport,
    };
    // Names may have what separates them in the database.
    for name in ["Ethernet0", "", "a,b", " Ethernet0 "] {
        let payload = encode(&batch(&template(name)), &mapping);
        assert_eq!(count(&payload), Some(2));
        let (read, read_mapping) = decode(&payload).expect("a payload");
        assert_eq!(read_mapping, mapping);
        assert_eq!((read.len(), read.points(), read.bytes()), (2, 2, 4));
        let lane = &read.lanes[0];
        assert_eq!((lane.source, &lane.times, &lane.bytes), (9, &vec![5, 5], &vec![0, 1, 0, 2]));
        assert_eq!((lane.template.domain(), lane.template.definition()), (3, &DEFINITION[..]));
        assert_eq!((lane.template.object_name(7), lane.template.object_name(8)), (Some(name), None));
        assert_eq!(encode(&read, &mapping), payload);
    }
}

/// A batch without records is a payload too.
#[test]
fn nothing_comes_back_as_nothing() {
    let payload = encode(&SonicBatch::default(), &SonicMapping::default());
    assert_eq!(count(&payload), Some(0));
    assert!(decode(&payload).expect("a payload").0.is_empty());
}

/// Another version, and flows, are told from damage, and counted as nothing; so are these payloads by readers of flows.
#[test]
fn other_versions_and_kinds() {
    use crate::flow::encoded as flows;
    let mut other = payload();
    other[1] = 2;
    assert_eq!(decode(&other).err(), Some(EncodedError::Version { offset: 1, found: 2 }));
    assert_eq!(count(&other), None);
    let other = flows::encode(&crate::flow::FlowBatch::default(), &crate::flow::FlowMapping::default());
    assert_eq!(decode(&other).err(), Some(EncodedError::Kind { offset: 2, found: 1 }));
    assert_eq!(count(&other), None);
    assert_eq!(flows::decode(&payload()).err(), Some(flows::EncodedError::Kind { offset: 2, found: 2 }));
    assert_eq!(flows::count(&payload()), None);
}

/// What is wrong is told with its place.
#[test]
fn places_of_faults() {
    let fault = |place: usize, byte: u8| {
        let mut other = payload();
        other[place] = byte;
        decode(&other).err()
    };
    let value = |offset, field, found: &str| Some(EncodedError::Value { offset, field, found: found.to_owned() });
    assert_eq!(fault(3, 9), value(3, "number of the points that follow", "9"));
    assert_eq!(fault(4, 9), value(4, "number of the records that follow", "9"));
    assert_eq!(fault(SETTINGS_AT, 2), value(SETTINGS_AT, "style of names", "2"));
    assert_eq!(fault(TEMPLATES_AT, 0x9f), value(TEMPLATES_AT, "array or map with a length", "one without"));
    // The head of a template, its domain, and the head of its record.
    let definition = TEMPLATES_AT + 4;
    let reserved =
        Some(EncodedError::Template { offset: definition, source: SonicTemplateError::ReservedId { id: 0 } });
    assert_eq!(fault(definition, 0), reserved);
    assert_eq!(
        fault(definition + 3, 1).map(|error| error.to_string()),
        Some(format!("offset {definition}: template 256 has no counter, it needs one"))
    );
    // Back from the end: records, times and lanes, each with its head.
    let lane = payload().len() - 5 - 17 - 17;
    let of_lane = |field, found, bound| Some(EncodedError::Lane { offset: lane, lane: 0, field, found, bound });
    assert_eq!(fault(lane, 1), of_lane("template", 1, 1));
    assert_eq!(fault(lane + 4, 3), of_lane("bytes", 6, 4));
    assert_eq!(fault(lane + 4, 1), Some(EncodedError::Unused { offset: payload().len() - 2, unused: 10 }));
    assert_eq!(fault(lane + 16, 0), Some(EncodedError::Unused { offset: payload().len(), unused: 16 }));
    let longer = [payload(), vec![0]].concat();
    assert_eq!(decode(&longer).err(), Some(EncodedError::Unused { offset: longer.len() - 1, unused: 1 }));
    assert!(matches!(decode(b"").err(), Some(EncodedError::Item { offset: 0, .. })));
}

/// Bytes behind the template record belong to nothing.
#[test]
fn definitions_are_whole() {
    let mut payload = payload();
    let definition = TEMPLATES_AT + 4;
    assert_eq!(payload[definition - 1], 0x40 + 20);
    payload[definition - 1] += 1;
    payload.insert(definition + 20, 0);
    let expected = EncodedError::Unused { offset: definition + 20, unused: 1 };
    assert_eq!(decode(&payload).err(), Some(expected));
}

/// An array that announces more than there is costs no memory, and patterns have a bound.
#[test]
fn announced_lengths_are_not_believed() {
    for place in [CUMULATIVE_AT, TEMPLATES_AT] {
        let mut hostile = payload();
        let _ = hostile.splice(place..=place, [0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert!(matches!(decode(&hostile).err(), Some(EncodedError::Item { .. } | EncodedError::Value { .. })));
    }
    for (patterns, bytes, is_taken) in
        [(2, MAX_PATTERN_BYTES / 2, true), (1, MAX_PATTERN_BYTES + 1, false), (MAX_PATTERN_BYTES + 1, 0, false)]
    {
        let mapping = SonicMapping { cumulative: vec!["x".repeat(bytes); patterns], ..SonicMapping::default() };
        let read = decode(&encode(&SonicBatch::default(), &mapping));
        assert_eq!(read.is_ok(), is_taken, "{patterns} patterns of {bytes} bytes");
    }
}

/// Decoded and run as far as it goes.
fn run(payload: &[u8]) -> Option<usize> {
    let counted = count(payload);
    match decode(payload) {
        Ok((batch, mapping)) => {
            assert_eq!(counted, Some(batch.points()));
            assert!(batch.points() <= payload.len());
            let points = batch.points();
            let mut job = SonicJob::new(batch, Arc::new(mapping));
            let _ = job.run().expect("batches");
            assert_eq!(size(job.counts().points), points);
            Some(points)
        }
        Err(error) => {
            assert!(error.to_string().starts_with("offset "), "{error}");
            None
        }
    }
}

/// Cut at every byte it is refused.
#[test]
fn cut_payloads() {
    let payload = payload();
    assert_eq!(run(&payload), Some(2));
    for end in 0..payload.len() {
        assert_eq!(run(&payload[..end]), None, "{end}");
    }
}

proptest! {
    /// Changed anywhere it is refused or decoded, and never a panic.
    #[test]
    fn damaged_payloads(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut payload = payload();
        for (place, byte) in changes {
            let place = place.index(payload.len());
            payload[place] = byte;
        }
        let _ = run(&payload);
    }
}
