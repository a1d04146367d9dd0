//! The state of OTAP streams: dictionaries, schemas, ids, and servers that do not know OTAP.

use catchment_loadgen::sink::script::{Event, Protocol};
use serde_json::json;

use super::data::{Batch, Signal};
use super::{BOUNDS, assert_delivered, job, run, with};
use crate::exporters::lanes::faults::checks::Bounds;

const BREAKS: [&str; 4] = [
    "steps: []",
    "steps: [{ when: { from: 2, every: 3, to: 12 }, answer: { close: { at: during_body } } }]",
    "steps: [{ when: { from: 3, every: 2, to: 12 }, answer: { batch_status: { code: UNAVAILABLE } } }]",
    "steps: [{ when: { from: 2, every: 4, to: 12 }, store: true, answer: { reset_stream: { code: 2 } } }]",
];

/// Dictionaries grow over their bounds, on one stream and over its end: exactly 256 values, one more, and so on.
#[test]
fn dictionary_bounds() {
    for steps in BREAKS {
        let mut job = with(job(Protocol::Otap, steps), &json!({"batch": {"max_items": 1_000}}));
        let mut first = 0;
        job.batches = [255, 1, 1, 255, 256, 257, 1, 40]
            .into_iter()
            .map(|items| {
                // Flavour 1 is text that is different in each item.
                let batch = Batch { flavour: 1, ..Batch::logs(1, first, items) };
                first += items as u64;
                batch
            })
            .collect();
        let run = run(&job, Bounds { request_items: 1_000, ..BOUNDS });
        assert_delivered(&job, &run);
    }
}

/// The same at 65,536 values.
#[test]
fn dictionary_bound_of_u16() {
    let steps = "steps: [{ when: { from: 4, to: 4 }, answer: { close: {} } }]";
    let mut job = with(
        job(Protocol::Otap, steps),
        &json!({"batch": {"max_items": 32_768}, "request": {"attempt_timeout": "60s"}}),
    );
    job = with(job, &json!({"stream": {"status_timeout": "60s"}, "request": {"max_bytes": "64MiB"}}));
    let mut first = 0;
    job.batches = [32_768, 32_767, 1, 1, 3]
        .into_iter()
        .map(|items| {
            let batch = Batch { flavour: 1, ..Batch::logs(1, first, items) };
            first += items as u64;
            batch
        })
        .collect();
    let run = run(&job, Bounds { request_items: 32_768, ..BOUNDS });
    assert_delivered(&job, &run);
}

/// Columns in another order, other columns, other types, other signals: all of it goes over the streams that are open.
#[test]
fn schemas_change() {
    for steps in BREAKS {
        let mut job = job(Protocol::Otap, steps);
        for (number, batch) in job.batches.iter_mut().enumerate() {
            batch.flavour = (number % 4) as u8;
            batch.reversed = number % 3 == 1;
            batch.signal = [Signal::Logs, Signal::Logs, Signal::Metrics, Signal::Traces][number / 2 % 4];
            batch.otlp = number % 5 == 4;
        }
        let run = run(&job, BOUNDS);
        assert_delivered(&job, &run);
        if steps == BREAKS[0] {
            assert_eq!(run.report.totals.openings, 3, "one for each signal: {run:#?}");
        }
    }
}

/// A server without OTAP gets OTLP for a time; then OTAP is tried again, and kept if the server has learned it.
#[test]
fn downgrade_and_probe() {
    let steps = "steps:
      - { when: { on: open, to: 2 }, answer: { grpc: { code: UNIMPLEMENTED } } }
      - { when: { protocol: otlp_grpc }, delay: 100ms }";
    let job = job(Protocol::Otap, steps);
    let run = run(&job, BOUNDS);
    assert_delivered(&job, &run);
    let rows: Vec<_> = run.report.requests.iter().filter(|row| row.event == Event::Request).collect();
    let change = rows.iter().position(|row| row.protocol == Protocol::Otap).expect("OTAP in the end");
    assert!(change >= 10, "OTLP for two times a second: {run:#?}");
    assert!(rows[..change].iter().all(|row| row.protocol == Protocol::OtlpGrpc), "{run:#?}");
    assert!(rows[change..].iter().all(|row| row.protocol == Protocol::Otap), "{run:#?}");
    assert_eq!((run.report.totals.openings, run.report.totals.duplicates), (3, 0), "{run:#?}");
}

/// Nothing but UNIMPLEMENTED is a reason for OTLP, and that not behind a status either.
#[test]
fn no_downgrade() {
    for answer in [
        "when: { on: open, to: 2 }, answer: { grpc: { code: UNAVAILABLE } }",
        "when: { on: open, to: 2 }, answer: { grpc: { code: INTERNAL } }",
        "when: { on: open, to: 2 }, answer: { close: { at: before_body } }",
        "when: { from: 5, to: 5 }, answer: { batch_status: { code: UNAVAILABLE } }",
    ] {
        let job = job(Protocol::Otap, &format!("steps: [{{ {answer} }}]"));
        let run = run(&job, BOUNDS);
        assert_delivered(&job, &run);
        assert!(run.report.requests.iter().all(|row| row.protocol == Protocol::Otap), "{answer}: {run:#?}");
    }
}
