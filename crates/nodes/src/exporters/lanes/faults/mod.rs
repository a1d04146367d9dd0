//! The lanes exporter against a server that does everything that servers do wrong.
//!
//! Every test runs the node itself, as the engine would, and a scripted sink in the same process. After each run seven
//! things are checked ([`checks`]): each batch is acknowledged or given back exactly once; items of a key are taken in the
//! order in which they came; nothing is lost but what the server refused for good, and that is counted; nothing arrives
//! twice but what may have been lost on the way; the node ends by its deadline; it holds no more than its bounds; and its
//! account adds up.
//!
//! `random.rs` runs scripts from seeds; the files beside it have a script for each kind of fault. To run more seeds, or
//! one again:
//!
//! ```sh
//! CATCHMENT_FAULT_SEEDS=0..1000 cargo test -p catchment-nodes --lib lanes::faults::random -- --nocapture
//! CATCHMENT_FAULT_SEEDS=17..18 cargo test -p catchment-nodes --lib lanes::faults::random::otap
//! ```

mod answers;
mod arrow;
mod checks;
mod connections;
mod data;
mod delivery;
mod load;
mod random;
mod rig;

use catchment_loadgen::sink::script::{Protocol, SinkScript};
use serde_json::{Value, json};

use checks::Bounds;
use data::Batch;
use rig::{End, Fate, Job, OnFull, Run};

const PROTOCOLS: [Protocol; 3] = [Protocol::OtlpGrpc, Protocol::OtlpHttp, Protocol::Otap];
const KEYS: u8 = 3;

/// A job for one lane that makes one request of each batch: 30 batches of four logs, of three keys in turn.
fn job(protocol: Protocol, steps: &str) -> Job {
    let script = SinkScript::from_yaml(steps).unwrap_or_else(|error| panic!("{error}:\n{steps}"));
    let batches = (0..30).map(|number: u8| Batch::logs(number % KEYS, u64::from(number / KEYS) * 4, 4)).collect();
    let config = json!({"lanes": {"count": 1, "key": "single"}, "batch": {"max_items": 4}});
    Job { protocol, config, script, batches, end: End::Answered, on_full: OnFull::Block }
}

/// The bounds that [`job`] sets, or that are the defaults.
const BOUNDS: Bounds = Bounds { lanes: 1, queue_batches: 8, request_items: 4 };

/// Runs a job; everything that has to hold after any run holds.
fn run(job: &Job, bounds: Bounds) -> Run {
    let run = rig::run(job);
    let faults = checks::faults(job, &run, bounds);
    assert!(faults.is_empty(), "{:?}: {faults:#?}\n{:#?}\n{run:#?}", job.protocol, job.script);
    run
}

/// Runs the steps against [`job`].
fn run_steps(protocol: Protocol, steps: &str) -> Run {
    run(&job(protocol, steps), BOUNDS)
}

/// All batches were taken, and all items arrived.
fn assert_delivered(job: &Job, run: &Run) {
    assert!(run.fates.iter().all(|(_, fate)| *fate == Fate::Acked), "{run:#?}");
    assert_eq!(run.report.totals.first_accepted, job.batches.iter().map(|batch| batch.items as u64).sum::<u64>());
}

/// Adds settings.
fn with(mut job: Job, config: &Value) -> Job {
    rig::merge(&mut job.config, config);
    job
}
