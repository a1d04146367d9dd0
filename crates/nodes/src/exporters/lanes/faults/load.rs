//! Bounds under load, and how often a server in trouble is asked.

use std::time::Duration;

use serde_json::json;

use super::rig::End;
use super::{BOUNDS, PROTOCOLS, assert_delivered, job, run, with};
use crate::exporters::lanes::faults::checks::Bounds;

/// Queues are bounded by bytes, also where the number of batches would allow more.
#[test]
fn memory() {
    for protocol in PROTOCOLS {
        let job = job(protocol, "steps: [{ answer: never }]");
        let mut job = with(job, &json!({"lanes": {"max_queue_batches": 1_000, "max_queue_bytes": "64KiB"}}));
        job.batches.iter_mut().for_each(|batch| batch.padding = 20_000);
        job.end = End::Within(30, Duration::from_millis(500));
        // A batch has more than 80 kB.
        let run = run(&job, Bounds { queue_batches: 1, ..BOUNDS });
        assert!(run.sent < 30, "{run:#?}");
    }
}

/// A server that refuses everything for a time is not asked in a loop, and by a budget even less.
#[test]
fn overload() {
    for protocol in PROTOCOLS {
        let steps = "steps:
          - { when: { protocol: otlp_grpc, before: 400ms }, answer: { grpc: { code: RESOURCE_EXHAUSTED } } }
          - { when: { protocol: otlp_http, before: 400ms }, answer: { http: { status: 429 } } }
          - { when: { protocol: otap, before: 400ms }, answer: { batch_status: { code: RESOURCE_EXHAUSTED } } }";
        let lanes = json!({"lanes": {"count": 4, "key": "peer"}, "retry": {"initial": "20ms", "max": "80ms"}});
        let bounds = Bounds { lanes: 4, ..BOUNDS };
        let free = with(job(protocol, steps), &lanes);
        let run_free = run(&free, bounds);
        assert_delivered(&free, &run_free);
        // Three keys have three lanes at most, and waits have a mean of some 40 ms at most; the bound is far from that.
        let refused = run_free.counted("retries");
        assert!((3..=120).contains(&refused), "{refused} retries: {run_free:#?}");
        let held = with(free, &json!({"retry": {"budget": {"per_second": 20.0, "burst": 2}}}));
        let run_held = run(&held, bounds);
        assert_delivered(&held, &run_held);
        let most = 2.0 + 20.0 * run_held.took.as_secs_f64() + 4.0;
        assert!((run_held.counted("retries") as f64) < most, "{most}: {run_held:#?}");
    }
}
