//! Target for SONiC's telemetry: session rows and payloads on their way to metrics.

use std::num::NonZeroUsize;
use std::sync::Arc;

use catchment_columns::sonic::{AttributesAt, SonicBatch, SonicJob, SonicMapping, SonicNames, U64Overflow};
use catchment_columns::{Budget, ParentIds};
use catchment_ipfix::sonic::{SessionRow, SonicLimits, SonicSessions};

use crate::jobs::{run, steps};

/// Tight limits.
const SETS: usize = 40;
const PAYLOAD_BYTES: usize = 3_000;
const LEARNED_FIELDS: usize = 60;

/// When payloads are received.
const NOON: i64 = 1_796_040_000_000_000_000;

/// Points of a batch.
const MAX_POINTS: [usize; 4] = [0, 7, 100, usize::MAX];

/// Applies session rows and admits payloads, then makes metrics of all records in several ways.
///
/// The first byte chooses the mapping (names, place of the attributes, overflow, parent ids, records of a batch, which
/// statistics are cumulative, and two bits for its points), two more the budget. Then come the items, each behind its
/// kind in one byte and its length in two: the configuration of a session, or a payload of a source (see `apply`).
///
/// Asserted: what is refused says why and gives no records; records hold no more than the payloads do; every counter of
/// every record is a point; steps of the budget give what one run gives, in a bounded number; and where the attributes
/// stand changes no value.
pub fn sonic_admit(input: &[u8]) {
    let Some((&[choice, records, bytes], rest)) = input.split_first_chunk() else {
        return;
    };
    let mapping = Arc::new(mapping(choice));
    let mut counted = batch(rest);
    let (count, points) = (counted.len(), counted.points());
    assert_eq!(counted.take().len(), count);
    assert!(counted.is_empty());

    let mut job = SonicJob::new(batch(rest), Arc::clone(&mapping));
    let whole = run(&mut job);
    assert_eq!((job.counts().records, job.counts().points), (count as u64, points as u64));
    assert_eq!((whole.objects.len(), job.counts().batches), (points, whole.batches as u64));

    let budget = Budget { records: usize::from(records), bytes: 16 * usize::from(bytes) };
    let mut job = SonicJob::new(batch(rest), Arc::clone(&mapping));
    // A step takes one column at least, which has a point at least.
    assert_eq!(steps(&mut job, budget, points), whole, "{mapping:?} {budget:?}");

    let attributes_at = match mapping.attributes_at {
        AttributesAt::Point => AttributesAt::Resource,
        AttributesAt::Resource => AttributesAt::Point,
    };
    let other = SonicMapping { attributes_at, ..mapping.as_ref().clone() };
    let other = run(&mut SonicJob::new(batch(rest), Arc::new(other)));
    assert_eq!(values(&other.objects), values(&whole.objects), "{mapping:?}");
}

/// What points say, without what it is about, in order.
fn values(objects: &[String]) -> Vec<String> {
    let mut values: Vec<String> = objects.iter().map(|object| without_attributes(object)).collect();
    values.sort_unstable();
    values
}

/// A point without `attributes` and `resource`.
fn without_attributes(object: &str) -> String {
    let mut object: serde_json::Value = serde_json::from_str(object).expect("what was just printed");
    if let Some(object) = object.as_object_mut() {
        object.retain(|key, _| key != "attributes" && key != "resource");
    }
    object.to_string()
}

fn mapping(choice: u8) -> SonicMapping {
    SonicMapping {
        names: if choice & 1 == 0 { SonicNames::Sai } else { SonicNames::Legacy },
        attributes_at: if choice & 2 == 0 { AttributesAt::Point } else { AttributesAt::Resource },
        u64_overflow: if choice & 4 == 0 { U64Overflow::Saturate } else { U64Overflow::Double },
        parent_ids: if choice & 8 == 0 { ParentIds::Plain } else { ParentIds::Transport },
        records_per_batch: NonZeroUsize::new(usize::from(choice >> 4 & 1)),
        cumulative: if choice & 32 == 0 { Vec::new() } else { vec!["*_IN_*".to_owned(), "SAI_QUEUE*".to_owned()] },
        max_points: MAX_POINTS[usize::from(choice >> 6)],
    }
}

fn batch(mut rest: &[u8]) -> SonicBatch {
    let mut sessions = SonicSessions::new(SonicLimits {
        max_payload_bytes: PAYLOAD_BYTES,
        max_sets: SETS,
        max_sessions: 3,
        max_learned_fields: LEARNED_FIELDS,
        max_sources: 2,
    });
    let mut batch = SonicBatch::default();
    while let Some((&[head, high, low], following)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([high, low])).min(following.len());
        let (bytes, following) = following.split_at(length);
        rest = following;
        apply(&mut sessions, &mut batch, head, bytes);
    }
    batch
}

/// One item. Two bits of `head` give the session or source, one says whether it is a row of the session table or a
/// payload. A row has 40 objects or none, is disabled by one bit and deleted by another; a source is forgotten before its
/// payload by a bit.
fn apply(sessions: &mut SonicSessions, batch: &mut SonicBatch, head: u8, bytes: &[u8]) {
    let who = head & 3;
    if head & 4 == 0 {
        let key = format!("profile|{who}");
        if head & 16 != 0 {
            let before = sessions.sessions();
            assert_eq!(sessions.remove(&key), sessions.sessions() < before);
        }
        let objects = if head & 32 == 0 { 40 } else { 0 };
        let list = |text: &str| (1..=objects).map(|label| format!("{text}{label}")).collect::<Vec<_>>().join(",");
        let row = SessionRow {
            stream_status: if head & 8 == 0 { "enabled" } else { "disabled" }.to_owned(),
            session_type: "ipfix".to_owned(),
            object_names: list("Ethernet"),
            object_ids: list(""),
            session_config: bytes.to_vec(),
        };
        if let Err(error) = sessions.apply(&key, &row) {
            assert!(!error.to_string().is_empty());
        }
        assert!(sessions.sessions() <= 3);
        return;
    }
    if head & 16 != 0 {
        sessions.forget_source(u64::from(who));
    }
    let before = *sessions.counters();
    let (records, points, length) = (batch.len(), batch.points(), batch.bytes());
    let admitted = sessions.admit(u64::from(who), bytes, NOON + i64::from(head), |set| {
        assert_eq!(set.bytes.len(), set.records * set.template.record_length());
        assert_eq!(set.time_unix_nano.is_some(), set.template.time() == catchment_ipfix::sonic::RecordTime::Nowhere);
        batch.push(u64::from(who), set);
    });
    let (records, points, length) = (batch.len() - records, batch.points() - points, batch.bytes() - length);
    assert!(points <= length && length <= bytes.len());
    let after = sessions.counters();
    assert_eq!((after.records - before.records, after.counters - before.counters), (records as u64, points as u64));
    if let Err(error) = admitted {
        assert!(!error.to_string().is_empty() && records == 0);
        let rejected =
            |counters: &catchment_ipfix::sonic::SonicCounters| counters.rejected_framing + counters.rejected_limit;
        assert_eq!(rejected(after) - rejected(&before), 1);
    }
}
