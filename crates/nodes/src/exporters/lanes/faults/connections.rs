//! Which connection a request goes over.

use catchment_loadgen::sink::script::{Event, Protocol};
use serde_json::json;

use super::{BOUNDS, PROTOCOLS, assert_delivered, job, run, with};

/// A connection that has failed, or that the server is about to close, is left: what comes next goes over another one.
#[test]
fn connection_pinning() {
    for protocol in PROTOCOLS {
        let mut answers = vec!["{ close: { at: before_body } }", "{ close: { at: after_body, reset: true } }", "never"];
        if protocol != Protocol::Otap {
            // A stream that is open may go on behind it.
            answers.push("{ goaway: {} }");
        }
        if protocol != Protocol::OtlpHttp {
            answers.extend(["{ goaway: { exclude: true } }", "{ goaway: { exclude: true, code: 11 } }"]);
        }
        for answer in answers {
            let job = job(protocol, &format!("steps: [{{ when: {{ from: 5, to: 5 }}, answer: {answer} }}]"));
            let run = run(&job, BOUNDS);
            assert_delivered(&job, &run);
            let rows: Vec<_> = run.report.requests.iter().filter(|row| row.event == Event::Request).collect();
            let faulty = rows[4].connection;
            let last = rows.iter().rposition(|row| row.connection == faulty);
            assert_eq!(last, Some(4), "{protocol:?} {answer}: {run:#?}");
        }
    }
}

/// A request that a server which goes away has not taken is sent again without a doubt.
#[test]
fn refused_streams_are_not_ambiguous() {
    for protocol in [Protocol::OtlpGrpc, Protocol::Otap] {
        for answer in ["{ goaway: { exclude: true } }", "{ reset_stream: { code: 7 } }"] {
            let when = if protocol == Protocol::Otap { "{ on: open, to: 1 }" } else { "{ from: 5, to: 5 }" };
            let job = job(protocol, &format!("steps: [{{ when: {when}, answer: {answer} }}]"));
            let run = run(&job, BOUNDS);
            assert_delivered(&job, &run);
            assert_eq!(run.counted("ambiguous"), 0, "{protocol:?} {answer}: {run:#?}");
        }
    }
}

/// Streams that end after so many batches are closed in an orderly way: nothing is doubtful, nothing waits.
#[test]
fn streams_of_few_batches() {
    let job = with(job(Protocol::Otap, "steps: []"), &json!({"stream": {"max_batches": 7}}));
    let run = run(&job, BOUNDS);
    assert_delivered(&job, &run);
    let totals = &run.report.totals;
    assert_eq!((totals.openings, totals.requests, run.counted("ambiguous")), (5, 30, 0), "{run:#?}");
    assert!(run.report.requests.iter().all(|row| row.connection == 1), "{run:#?}");
}
