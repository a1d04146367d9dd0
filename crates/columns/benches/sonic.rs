//! SONiC's counters to points, beside a plain copy of the same bytes: rates, longest steps, and what is left to an
//! exporter.
//!
//! `cargo bench -p catchment-columns --bench sonic`. The best of several rounds counts.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints, and may stop")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use catchment_columns::sonic::{AttributesAt, SonicBatch, SonicJob, SonicMapping};
use catchment_columns::{Job, ParentIds, Step};
use catchment_ipfix::sonic::SonicSessions;

#[path = "../tests/common/mod.rs"]
mod common;

/// Bytes of payloads in a batch.
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// Rounds, of which the best counts: other work on the machine only makes them slower.
const ROUNDS: usize = 15;

fn best(mut round: impl FnMut() -> Duration) -> Duration {
    (0..ROUNDS).map(|_| round()).min().unwrap_or_default()
}

fn admit(sessions: &mut SonicSessions, payloads: &[Vec<u8>], batch: &mut SonicBatch) {
    for payload in payloads {
        sessions.admit(1, payload, 0, |set| batch.push(1, set)).expect("admitted");
    }
}

/// Works off a job in the steps that a shared thread makes. Gives the number of points.
fn run(mut job: SonicJob) -> u64 {
    let budget = job.budget();
    loop {
        match job.step(budget).expect("a step") {
            Step::More => {}
            Step::Batch(records) => drop(black_box(records)),
            Step::End => return job.counts().points,
        }
    }
}

/// What a run is about.
#[derive(Clone, Copy)]
struct Case {
    counters: usize,
    /// Records of a message, and messages of a payload.
    shape: (usize, usize),
    mapping: (AttributesAt, ParentIds),
    /// Bytes of different payloads, each of which is looked at once.
    pool: usize,
}

/// What came of a run, as a line of text.
fn measure(case: Case) -> String {
    let Case { counters, shape: (records, messages), mapping: (attributes_at, parent_ids), pool } = case;
    let payload: Vec<u8> = (0..messages).flat_map(|index| common::data(counters, records, index as u64)).collect();
    let pool = vec![payload.clone(); (pool / payload.len()).max(1)];
    let batches = || pool.chunks(BATCH_BYTES / payload.len());
    let bytes: usize = pool.len() * payload.len();
    let mapping = Arc::new(SonicMapping { attributes_at, parent_ids, ..SonicMapping::default() });
    let mut sessions = common::sessions(counters);
    let mut batch = SonicBatch::default();
    let mut copy = vec![1_u8; bytes];
    let copied = best(|| {
        let start = Instant::now();
        for (to, payload) in copy.chunks_exact_mut(payload.len()).zip(&pool) {
            to.copy_from_slice(payload);
        }
        let _ = black_box(&mut copy);
        start.elapsed()
    });
    let mut points = 0;
    let mut job = Duration::MAX;
    let whole = best(|| {
        points = 0;
        let mut in_jobs = Duration::ZERO;
        let start = Instant::now();
        for payloads in batches() {
            admit(&mut sessions, payloads, &mut batch);
            let begin = Instant::now();
            points += run(SonicJob::new(batch.take(), Arc::clone(&mapping)));
            in_jobs += begin.elapsed();
        }
        let whole = start.elapsed();
        job = job.min(in_jobs);
        whole
    });
    let millions = |time: Duration| points as f64 / time.as_secs_f64() / 1e6;
    format!(
        "{counters:>5} counters, {records:>4} records x {messages:>2}, {:>3} MiB, {attributes_at:?} {parent_ids:?}: \
         whole {:>6.1} M/s ({:.2} of copy), job {:>6.1} M/s ({:.2}), copy {:.1} GB/s",
        bytes >> 20,
        millions(whole),
        copied.as_secs_f64() / whole.as_secs_f64(),
        millions(job),
        copied.as_secs_f64() / job.as_secs_f64(),
        bytes as f64 / copied.as_secs_f64() / 1e9,
    )
}

/// 2, 500 and 8,000 counters a record, both places of attributes, in the cache and out of it.
fn speed() {
    let shapes = [(2, (2_700, 1)), (2, (1, 64)), (500, (16, 1)), (500, (1, 1)), (4_000, (2, 1)), (8_000, (1, 1))];
    for pool in [BATCH_BYTES, 32 * BATCH_BYTES] {
        for at in [AttributesAt::Resource, AttributesAt::Point] {
            for (counters, shape) in shapes {
                println!("{}", measure(Case { counters, shape, mapping: (at, ParentIds::Plain), pool }));
            }
        }
    }
    let mapping = (AttributesAt::Point, ParentIds::Transport);
    println!("{}", measure(Case { counters: 8_000, shape: (1, 1), mapping, pool: BATCH_BYTES }));
}

/// The longest step of the first batches of a template, when everything has to be made, and of later ones.
fn longest_step() {
    for counters in [2, 500, 8_000] {
        for attributes_at in [AttributesAt::Resource, AttributesAt::Point] {
            let mapping = Arc::new(SonicMapping { attributes_at, ..SonicMapping::default() });
            let payload = common::data(counters, (8_000 / counters).min(2_700), 7);
            let (mut first, mut later) = (Duration::MAX, Duration::MAX);
            for _ in 0..ROUNDS {
                let mut sessions = common::sessions(counters);
                for slot in [&mut first, &mut later] {
                    let mut batch = SonicBatch::default();
                    admit(&mut sessions, std::slice::from_ref(&payload), &mut batch);
                    let mut job = SonicJob::new(batch, Arc::clone(&mapping));
                    let (budget, mut longest) = (job.budget(), Duration::ZERO);
                    loop {
                        let start = Instant::now();
                        let step = job.step(budget).expect("a step");
                        longest = longest.max(start.elapsed());
                        if matches!(step, Step::End) {
                            break;
                        }
                    }
                    *slot = longest.min(*slot);
                }
            }
            println!("{counters:>5} counters, {attributes_at:?}: longest step {first:?} at first, {later:?} later");
        }
    }
}

/// What an OTAP exporter has to do with a batch before it can send it, for both forms of ids.
fn before_sending() {
    for attributes_at in [AttributesAt::Resource, AttributesAt::Point] {
        for parent_ids in [ParentIds::Plain, ParentIds::Transport] {
            let mapping = Arc::new(SonicMapping { attributes_at, parent_ids, ..SonicMapping::default() });
            let mut sessions = common::sessions(8_000);
            let mut batch = SonicBatch::default();
            admit(&mut sessions, &[common::data(8_000, 1, 7)], &mut batch);
            let records = SonicJob::new(batch, mapping).run().expect("batches").remove(0);
            let time = best(|| {
                let mut records = records.clone();
                let start = Instant::now();
                records.encode_transport_optimized().expect("encoded");
                start.elapsed()
            });
            println!("8000 points, {attributes_at:?} {parent_ids:?}: {time:?}");
        }
    }
}

fn main() {
    speed();
    longest_step();
    before_sending();
}
