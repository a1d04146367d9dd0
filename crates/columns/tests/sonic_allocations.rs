//! What the way from payloads to metrics allocates: something for each batch, nothing for each record.

use std::num::NonZeroUsize;
use std::sync::Arc;

use catchment_columns::Job;
use catchment_columns::sonic::{SonicBatch, SonicJob, SonicMapping};
use counting::allocations;

mod common;
#[path = "common/counting.rs"]
mod counting;

/// Once the tables of a template are there: admitting allocates nothing, and a batch costs the same whether it has 2 points
/// or 8,192, in sets of one record or of many.
#[test]
fn allocations_are_for_batches() {
    let mut of_a_batch = Vec::new();
    for (counters, records, messages, most) in
        [(2, 2_048, 2, None), (2, 1, 4_096, None), (2, 64, 64, NonZeroUsize::new(1)), (500, 16, 1, None)]
    {
        let mapping = Arc::new(SonicMapping { records_per_batch: most, ..SonicMapping::default() });
        let mut sessions = common::sessions(counters);
        let payload: Vec<u8> = (0..messages).flat_map(|index| common::data(counters, records, index as u64)).collect();
        let mut batch = SonicBatch::default();
        let mut round = || {
            let admit = || sessions.admit(1, &payload, 0, |set| batch.push(1, set)).expect("admitted");
            let (admitting, ()) = allocations(admit);
            let mut job = SonicJob::new(batch.take(), Arc::clone(&mapping));
            let mut room = Vec::with_capacity(messages * records);
            let (working, ()) = allocations(|| {
                loop {
                    match job.step(catchment_columns::Budget::UNLIMITED).expect("a step") {
                        catchment_columns::Step::Batch(records) => room.push(records),
                        catchment_columns::Step::More => {}
                        catchment_columns::Step::End => break,
                    }
                }
            });
            assert_eq!(job.counts().points as usize, counters * records * messages);
            (admitting, working, room.len())
        };
        let _ = round();
        let (admitting, working, batches) = round();
        assert_eq!(admitting, 0);
        of_a_batch.push(working.div_ceil(batches));
    }
    assert!(of_a_batch.iter().all(|count| (1..60).contains(count)), "{of_a_batch:?}");
    let (least, most) = (of_a_batch.iter().min(), of_a_batch.iter().max());
    assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 8), "{of_a_batch:?}");
}
