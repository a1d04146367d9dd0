//! What is kept with a template.

use std::sync::Arc;

use catchment_ipfix::sonic::{SessionRow, SonicRecords, SonicSession, SonicTemplate};

use super::order::Order;
use super::skeleton::{KEPT_BYTES, Skeleton};
use super::*;
use crate::{Budget, Job, ParentIds, Step};

/// A template of `counters` counters of one port, without a time.
fn template(counters: u16) -> Arc<SonicTemplate> {
    let mut fields = vec![1, 0];
    fields.extend(counters.to_be_bytes());
    for statistic in 0..counters {
        fields.extend([0x80, 1, 0, 8, 0, 1]);
        fields.extend(statistic.to_be_bytes());
    }
    let length = u16::try_from(20 + fields.len()).expect("short");
    let mut config = vec![0, 10];
    config.extend(length.to_be_bytes());
    config.extend([0; 12]);
    config.extend([0, 2]);
    config.extend((length - 16).to_be_bytes());
    config.extend(fields);
    let row = SessionRow {
        session_type: "ipfix".into(),
        object_names: "Ethernet0".into(),
        object_ids: "1".into(),
        session_config: config,
        ..SessionRow::default()
    };
    Arc::clone(&SonicSession::from_row(&row).expect("a session").templates()[0])
}

fn job(template: &Arc<SonicTemplate>, records: usize, mapping: &Arc<SonicMapping>) -> SonicJob {
    let mut batch = SonicBatch::default();
    let bytes = vec![1; records * template.record_length()];
    batch.push(0, SonicRecords { template, bytes: &bytes, records, time_unix_nano: Some(5) });
    SonicJob::new(batch, Arc::clone(mapping))
}

/// Lanes stand in the order in which their records came, also where an id changes its meaning and back; the next batch has
/// room for those that still hold.
#[test]
fn lanes_keep_the_order() {
    let (one, other) = (template(1), template(2));
    let mut batch = SonicBatch::default();
    let push = |batch: &mut SonicBatch, source, template: &Arc<SonicTemplate>, time| {
        let bytes = vec![0; template.record_length()];
        let set = SonicRecords { template, bytes: &bytes, records: 1, time_unix_nano: Some(time) };
        batch.push(source, set);
    };
    for (source, template, time) in
        [(1, &one, 1), (2, &one, 2), (1, &one, 3), (1, &other, 4), (1, &one, 5), (2, &one, 6)]
    {
        push(&mut batch, source, template, time);
    }
    let lanes =
        |batch: &SonicBatch| batch.lanes.iter().map(|lane| (lane.source, lane.times.clone())).collect::<Vec<_>>();
    assert_eq!(lanes(&batch), [(1, vec![1, 3]), (2, vec![2, 6]), (1, vec![4]), (1, vec![5])]);
    assert_eq!((batch.len(), batch.points(), batch.bytes()), (6, 7, 56));
    let taken = batch.take();
    assert_eq!((taken.lanes.len(), batch.len()), (4, 0));
    assert_eq!(lanes(&batch), [(2, vec![]), (1, vec![])]);
    push(&mut batch, 1, &one, 7);
    assert_eq!(lanes(&batch), [(2, vec![]), (1, vec![7])]);
}

/// Tables of a number of records are made once; those used long ago go when there are too many.
#[test]
fn tables_are_kept_within_bounds() {
    let (template, mapping) = (template(100), SonicMapping::default());
    let skeleton = Skeleton::new(&template, &mapping, Order::new(&template, &mapping)).expect("a skeleton");
    let (first, is_new) = skeleton.tables(7).expect("tables");
    assert!(is_new);
    assert!(!skeleton.tables(7).expect("tables").1);
    let mut largest = 0;
    for records in 60..90 {
        largest = largest.max(skeleton.tables(records).expect("tables").0.bytes);
    }
    assert!(skeleton.kept_bytes() <= KEPT_BYTES);
    assert!(skeleton.kept_bytes() > KEPT_BYTES - 2 * largest);
    let (again, is_new) = skeleton.tables(7).expect("tables");
    assert!(is_new && !Arc::ptr_eq(&first, &again));
}

/// Batches of a template share everything but values and times; another mapping has its own.
#[test]
fn batches_share_what_does_not_change() {
    use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
    let template = template(10);
    let mapping = Arc::new(SonicMapping { max_points: 40, ..SonicMapping::default() });
    let batches = job(&template, 12, &mapping).run().expect("batches");
    assert_eq!(batches.len(), 3);
    let column = |batch: usize, table, name: &str| {
        let table = batches[batch].get(table).expect("a table");
        Arc::clone(table.column_by_name(name).expect("a column"))
    };
    for (table, name) in [
        (ArrowPayloadType::UnivariateMetrics, "name"),
        (ArrowPayloadType::NumberDataPoints, "parent_id"),
        (ArrowPayloadType::NumberDpAttrs, "str"),
        (ArrowPayloadType::ResourceAttrs, "str"),
    ] {
        assert!(Arc::ptr_eq(&column(0, table, name), &column(2, table, name)), "{name}");
    }
    let other = Arc::new(SonicMapping { names: SonicNames::Legacy, max_points: 40, ..SonicMapping::default() });
    let legacy = job(&template, 4, &other).run().expect("batches");
    assert_ne!(legacy[0], batches[0]);
    assert_eq!(job(&template, 4, &mapping).run().expect("batches")[0], batches[0]);
}

/// A step does no more than it may, whatever the size of a batch, and the batch is the same.
#[test]
fn steps_are_bounded() {
    let template = template(100);
    let mapping =
        Arc::new(SonicMapping { max_points: 50_000, parent_ids: ParentIds::Transport, ..SonicMapping::default() });
    let whole = job(&template, 500, &mapping).run().expect("batches");
    for (budget, least) in [
        (Budget { records: 50, bytes: usize::MAX }, 10),
        (Budget { records: usize::MAX, bytes: 4_000 }, 100),
        (Budget { records: 1, bytes: 1 }, 100),
        (job(&template, 500, &mapping).budget(), 6),
    ] {
        let mut job = job(&template, 500, &mapping);
        let (mut steps, mut batches) = (0, Vec::new());
        loop {
            match job.step(budget).expect("a step") {
                Step::More => steps += 1,
                Step::Batch(records) => batches.push(records),
                Step::End => break,
            }
        }
        assert!(steps >= least, "{steps} steps for {budget:?}");
        assert_eq!(batches, whole);
    }
}
