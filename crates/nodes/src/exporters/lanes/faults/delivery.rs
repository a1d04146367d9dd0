//! Order, duplicates, silent loss, and answers that do not come.

use std::time::Duration;

use catchment_loadgen::sink::script::Protocol;
use serde_json::json;

use super::rig::{End, Fate};
use super::{BOUNDS, PROTOCOLS, assert_delivered, job, run, run_steps, with};
use crate::exporters::lanes::faults::checks::Bounds;
use crate::exporters::lanes::faults::data::Batch;

/// A refusal that passes, in the words of each protocol.
fn unavailable(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::OtlpGrpc => "{ grpc: { code: UNAVAILABLE } }",
        Protocol::OtlpHttp => "{ http: { status: 503 } }",
        Protocol::Otap => "{ batch_status: { code: UNAVAILABLE } }",
    }
}

/// Requests that have to be repeated keep their place, also the parts of one that was split, and those that wait behind.
#[test]
fn order() {
    for protocol in PROTOCOLS {
        let away = unavailable(protocol);
        let steps = format!(
            "steps:
              - {{ when: {{ from: 3, to: 9 }}, answer: {away} }}
              - {{ when: {{ from: 12, every: 4, to: 40 }}, answer: {away} }}
              - {{ when: {{ from: 13, to: 14 }}, delay: 30ms }}
              - {{ when: {{ from: 22, to: 25 }}, answer: {{ size_limit: {{ bytes: 300 }} }} }}"
        );
        let job = job(protocol, &steps);
        let job = with(job, &json!({"lanes": {"count": 2, "key": "peer"}, "batch": {"max_items": 9}}));
        let run = run(&job, Bounds { lanes: 2, request_items: 9, ..BOUNDS });
        assert!(run.counted("retries") >= 7, "{run:#?}");
        if protocol != Protocol::Otap {
            // A message of Arrow with one item is larger than that, and refused for good.
            assert_delivered(&job, &run);
        }
    }
}

/// What is stored without the client knowing comes again, and only that.
#[test]
fn duplicates() {
    for protocol in PROTOCOLS {
        let own: &[&str] = match protocol {
            Protocol::OtlpGrpc => {
                &["{ grpc: { code: DEADLINE_EXCEEDED } }", "{ reset_stream: { code: 8 } }", "end_stream"]
            }
            Protocol::OtlpHttp => &["{ http: { status: 504 } }", "{ http: { status: 502, body: rubbish } }"],
            Protocol::Otap => &[
                "{ batch_status: { code: DEADLINE_EXCEEDED } }",
                "{ grpc: { code: UNAVAILABLE } }",
                "{ reset_stream: { code: 2 } }",
                "end_stream",
            ],
        };
        for answer in own.iter().chain(&["never", "{ close: { at: after_body } }", "{ close: { reset: true } }"]) {
            let steps = format!("steps: [{{ when: {{ from: 4, to: 4 }}, store: true, answer: {answer} }}]");
            let job = job(protocol, &steps);
            let run = run(&job, BOUNDS);
            assert_delivered(&job, &run);
            assert_eq!(run.report.totals.duplicates, 4, "{protocol:?} {answer}: {run:#?}");
            assert_eq!(run.counted("ambiguous"), 4, "{protocol:?} {answer}: {run:#?}");
        }
    }
}

/// An answer that comes too late, after the data was stored, is no answer; the data comes again.
#[test]
fn late_answers() {
    for protocol in PROTOCOLS {
        let job = job(protocol, "steps: [{ when: { from: 4, to: 4 }, delay: 400ms }]");
        let mut job = with(job, &json!({"request": {"attempt_timeout": "100ms"}}));
        if protocol == Protocol::Otap {
            job = with(job, &json!({"stream": {"status_timeout": "100ms"}}));
        }
        let run = run(&job, BOUNDS);
        assert_delivered(&job, &run);
        assert!(run.report.totals.duplicates >= 4, "{protocol:?}: {run:#?}");
    }
}

/// Connections and streams that end with nothing said, at every moment: nothing is lost, and nothing hangs.
#[test]
fn silent_loss() {
    for protocol in PROTOCOLS {
        let mut answers: Vec<String> = Vec::new();
        for at in ["before_body", "during_body", "after_body"] {
            for reset in [false, true] {
                answers.push(format!(
                    "when: {{ from: 2, every: 5, to: 30 }}, answer: {{ close: {{ at: {at}, reset: {reset} }} }}"
                ));
            }
        }
        if protocol != Protocol::OtlpHttp {
            answers.push("when: { from: 2, every: 5, to: 30 }, answer: end_stream".to_owned());
            answers.push("when: { from: 2, every: 5, to: 30 }, answer: { reset_stream: { code: 7 } }".to_owned());
        }
        if protocol == Protocol::Otap {
            answers.push("when: { on: open, to: 3 }, answer: { close: { at: before_body } }".to_owned());
            answers.push("when: { on: open, to: 3 }, answer: { reset_stream: { code: 2 } }".to_owned());
            answers.push("when: { on: open, to: 1 }, answer: never".to_owned());
            answers.push("when: { from: 2, every: 5, to: 30 }, answer: { grpc: { code: OK } }".to_owned());
        }
        for answer in answers {
            let job = job(protocol, &format!("steps: [{{ {answer} }}]"));
            let run = run(&job, BOUNDS);
            assert_delivered(&job, &run);
            assert_eq!(run.report.totals.duplicates, 0, "{protocol:?} {answer}: nothing was stored: {run:#?}");
        }
    }
}

/// A server that never answers, or is not there at all, neither holds the end up nor loses anything: everything is given
/// back by the deadline, in order, and what was out is told apart.
#[test]
fn hang_at_the_end() {
    for protocol in PROTOCOLS {
        let mut job = job(protocol, "steps: [{ answer: never }]");
        job.end = End::Within(20, Duration::from_millis(800));
        let answered = run(&job, BOUNDS);
        assert_eq!((answered.counted("unanswered"), answered.account.sent), (4, 0), "{answered:#?}");
        let away = with(job, &json!({"client": {"endpoint": "http://127.0.0.1:1"}}));
        let away = run(&away, BOUNDS);
        assert_eq!((away.counted("unanswered"), away.report.totals.requests), (0, 0), "{away:#?}");
        for run in [answered, away] {
            let given_back = |fate: &Fate| matches!(fate, Fate::Nacked { permanent: false, .. });
            assert!(run.fates.iter().all(|(_, fate)| given_back(fate)), "{run:#?}");
        }
    }
}

/// A request without an answer holds up its own lane only, and that for the time limit only.
#[test]
fn hang() {
    for protocol in PROTOCOLS {
        for step in [
            "answer: never",
            "stop_reading: { for: 1200ms, of: body }",
            "stop_reading: { for: 1200ms, of: connection }",
        ] {
            let job = job(protocol, &format!("steps: [{{ when: {{ to: 1 }}, {step} }}]"));
            let mut job = with(job, &json!({"lanes": {"count": 16, "key": "peer"}}));
            // More keys than one lane can have.
            job.batches = (0..24).map(|number: u8| Batch::logs(number % 8, u64::from(number / 8) * 4, 4)).collect();
            let run = run(&job, Bounds { lanes: 16, ..BOUNDS });
            assert_delivered(&job, &run);
            // Which lane had the first request is not known, but the last answer is of it.
            let key = |number: usize| job.batches[number].key;
            let held_up = run.fates.last().map(|(number, _)| key(*number));
            let first = run.fates.iter().position(|(number, _)| Some(key(*number)) == held_up);
            assert!(first >= Some(6), "{protocol:?} {step}: others waited for it: {:?}", run.fates);
        }
    }
}

/// While lanes are full, the node still takes control messages; that it goes on is checked with every run.
#[test]
fn full_lanes() {
    for protocol in PROTOCOLS {
        let steps = "steps: [{ when: { to: 20 }, delay: 20ms }]";
        let run = run_steps(protocol, steps);
        assert!(run.most_held >= 4 * 8, "the queue was full: {run:#?}");
    }
}
