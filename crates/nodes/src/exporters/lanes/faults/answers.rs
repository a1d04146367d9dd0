//! What answers mean for a batch: poison, classes, sizes.

use catchment_loadgen::sink::script::{Event, Protocol};
use serde_json::{Value, json};

use super::rig::{self, Fate, Run};
use super::{BOUNDS, PROTOCOLS, assert_delivered, job, run, with};
use crate::exporters::lanes::faults::checks::Bounds;

/// What an answer to the third request means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Means {
    /// Its data is there; it is not sent again.
    Taken,
    /// It is sent again, and taken then.
    Again,
    /// The same in smaller requests.
    Split,
    /// So many of its items are lost, the others taken.
    Rejected(u64),
    /// The third batch is refused for good.
    Refused,
}

fn check(protocol: Protocol, step: &str, means: Means, config: &Value) {
    let steps = format!("steps: [{{ when: {{ from: 3, to: 3 }}, {step} }}]");
    let job = with(job(protocol, &steps), config);
    let run = run(&job, BOUNDS);
    let totals = &run.report.totals;
    let told = |fates: &[(usize, Fate)]| {
        fates.iter().filter(|(_, fate)| *fate != Fate::Acked).map(|(number, _)| *number).collect::<Vec<_>>()
    };
    let (requests, lost, refused) = match means {
        Means::Taken => (30, 0, vec![]),
        Means::Again => (31, 0, vec![]),
        Means::Split => (totals.requests.max(32), 0, vec![]),
        Means::Rejected(items) => (30, items, vec![]),
        Means::Refused => (30, 4, vec![2]),
    };
    let found = (totals.requests, 120 - totals.first_accepted, told(&run.fates));
    assert_eq!(found, (requests, lost, refused), "{protocol:?} {step} {config}: {run:#?}");
    if means == Means::Refused {
        assert!(matches!(run.fates[2].1, Fate::Nacked { permanent: true, .. }), "{run:#?}");
    }
    assert_eq!(run.counted("rejected") + run.counted("refused"), lost, "{run:#?}");
}

/// Every class of answer over gRPC: what is sent again, what is not, and what is a success.
#[test]
fn wrong_class_otlp_grpc() {
    let none = json!({});
    let strict = json!({"retry": {"resource_exhausted": "strict"}});
    for code in ["CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"] {
        check(Protocol::OtlpGrpc, &format!("answer: {{ grpc: {{ code: {code} }} }}"), Means::Again, &none);
    }
    for code in ["2", "3", "5", "6", "7", "9", "12", "13", "16", "99"] {
        for trailers_only in [true, false] {
            let step = format!("answer: {{ grpc: {{ code: {code}, trailers_only: {trailers_only} }} }}");
            check(Protocol::OtlpGrpc, &step, Means::Refused, &none);
        }
    }
    for (step, means, config) in [
        ("answer: { grpc: { code: RESOURCE_EXHAUSTED } }", Means::Again, &none),
        ("answer: { grpc: { code: RESOURCE_EXHAUSTED, retry_info: 10ms } }", Means::Again, &none),
        (
            "answer: { grpc: { code: RESOURCE_EXHAUSTED, retry_info: 10ms, trailers_only: false } }",
            Means::Again,
            &strict,
        ),
        ("refuses_for_good: true, answer: { grpc: { code: RESOURCE_EXHAUSTED } }", Means::Refused, &strict),
        ("answer: { grpc: { code: UNAVAILABLE, retry_info: 1h } }", Means::Again, &none),
        ("answer: { partial_success: { rejected: 3, message: too old } }", Means::Rejected(3), &none),
        ("answer: { partial_success: { rejected: 4 } }", Means::Rejected(4), &none),
        ("answer: { partial_success: { rejected: 0, message: slow down } }", Means::Taken, &none),
        ("answer: { lie: unreadable_body }", Means::Taken, &none),
        ("answer: end_stream", Means::Again, &none),
        ("answer: { size_limit: { bytes: 200, wording: go } }", Means::Split, &none),
        ("answer: { size_limit: { bytes: 200, wording: tonic } }", Means::Split, &none),
    ] {
        check(Protocol::OtlpGrpc, step, means, config);
    }
}

/// The same over HTTP.
#[test]
fn wrong_class_otlp_http() {
    let none = json!({});
    for status in [429, 502, 503, 504] {
        for body in ["status", "rubbish", "empty"] {
            let step = format!("answer: {{ http: {{ status: {status}, body: {body} }} }}");
            check(Protocol::OtlpHttp, &step, Means::Again, &none);
        }
    }
    for status in [300, 301, 307, 400, 401, 403, 404, 408, 415, 422, 500, 501, 505] {
        check(Protocol::OtlpHttp, &format!("answer: {{ http: {{ status: {status} }} }}"), Means::Refused, &none);
    }
    for (step, means) in [
        ("answer: { http: { status: 429, retry_after: { seconds: 0 } } }", Means::Again),
        ("answer: { http: { status: 503, retry_after: { seconds: 3600 } } }", Means::Again),
        ("answer: { http: { status: 503, retry_after: { date_in: 1h } } }", Means::Again),
        ("answer: { http: { status: 429, retry_after: { text: soon } } }", Means::Again),
        ("answer: { partial_success: { rejected: 1, message: too old } }", Means::Rejected(1)),
        ("answer: { partial_success: { rejected: 0, message: slow down } }", Means::Taken),
        ("answer: { lie: unreadable_body }", Means::Taken),
        ("answer: { http: { status: 200, body: rubbish } }", Means::Taken),
        ("answer: { http: { status: 202, body: empty } }", Means::Taken),
        ("answer: { size_limit: { bytes: 200 } }", Means::Split),
    ] {
        check(Protocol::OtlpHttp, step, means, &none);
    }
}

/// The same over OTAP.
#[test]
fn wrong_class_otap() {
    let none = json!({});
    for code in [1, 4, 8, 10, 14] {
        check(Protocol::Otap, &format!("answer: {{ batch_status: {{ code: {code} }} }}"), Means::Again, &none);
    }
    for code in [3, 7, 13, 16, 99] {
        check(Protocol::Otap, &format!("answer: {{ batch_status: {{ code: {code} }} }}"), Means::Refused, &none);
    }
    for code in [0, 1, 2, 4, 8, 10, 13, 14, 15] {
        let step = format!("answer: {{ grpc: {{ code: {code}, message: stream }} }}");
        check(Protocol::Otap, &step, Means::Again, &none);
    }
    for (step, means) in [
        ("answer: { lie: unknown_batch }", Means::Taken),
        ("answer: { lie: duplicate_status }", Means::Taken),
        ("answer: { lie: out_of_order }", Means::Taken),
        ("answer: { batch_status: { code: OK, message: slow down } }", Means::Taken),
        ("answer: end_stream", Means::Again),
    ] {
        check(Protocol::Otap, step, means, &none);
    }
}

/// A delay that the server asks for is a floor, in whichever form it comes, up to the longest that is respected.
#[test]
fn delays_of_the_server() {
    for (protocol, answer, floor) in [
        (Protocol::OtlpGrpc, "{ grpc: { code: UNAVAILABLE, retry_info: 300ms } }", 300),
        (Protocol::OtlpGrpc, "{ grpc: { code: RESOURCE_EXHAUSTED, retry_info: 10m } }", 1_200),
        (Protocol::OtlpHttp, "{ http: { status: 429, retry_after: { seconds: 1 } } }", 1_000),
        // In whole seconds, so that up to one of them is missing.
        (Protocol::OtlpHttp, "{ http: { status: 503, retry_after: { date_in: 2s } } }", 900),
        (Protocol::OtlpHttp, "{ http: { status: 503, retry_after: { seconds: 600 } } }", 1_200),
        (Protocol::Otap, "{ grpc: { code: UNAVAILABLE, retry_info: 300ms } }", 300),
    ] {
        let steps = format!("steps: [{{ when: {{ from: 3, to: 3 }}, answer: {answer} }}]");
        let job = with(job(protocol, &steps), &json!({"retry": {"max_server_delay": "1200ms"}}));
        let run = run(&job, BOUNDS);
        assert_delivered(&job, &run);
        let rows: Vec<_> = run.report.requests.iter().filter(|row| row.event == Event::Request).collect();
        let waited = rows[3].at.saturating_sub(rows[2].answered_at.unwrap()).as_millis();
        assert!((floor..floor + 3_000).contains(&waited), "{protocol:?} {answer}: {waited} ms");
    }
}

/// A batch that cannot be read is refused at once, alone.
#[test]
fn unreadable_batches() {
    for protocol in PROTOCOLS {
        let mut job = job(protocol, "steps: []");
        for number in [0, 7, 29] {
            job.batches[number].broken = true;
        }
        let run = rig::run(&job);
        let refused: Vec<_> = run.fates.iter().filter(|(_, fate)| *fate != Fate::Acked).collect();
        let numbers: Vec<_> = refused.iter().map(|(number, _)| *number).collect();
        assert_eq!((numbers, run.fates.len(), run.failure.clone()), (vec![0, 7, 29], 30, None), "{run:#?}");
        assert!(refused.iter().all(|(_, fate)| matches!(fate, Fate::Nacked { permanent: true, .. })), "{run:#?}");
        assert_eq!((run.report.totals.first_accepted, run.report.totals.out_of_order), (27 * 4, 0), "{run:#?}");
        assert!(run.account.is_balanced() && run.account.in_flight == 0, "{run:#?}");
    }
}

/// An item that is too large for the server, and a batch that it refuses, are lost alone: what is behind them arrives.
#[test]
fn poison_item() {
    for protocol in PROTOCOLS {
        for wording in ["go", "tonic"] {
            let steps = format!("steps: [{{ answer: {{ size_limit: {{ bytes: 16384, wording: {wording} }} }} }}]");
            let mut job = job(protocol, &steps);
            job.batches[7].items = 1;
            job.batches[7].padding = 40_000;
            for batch in job.batches.iter_mut().skip(8).filter(|batch| batch.key == 1) {
                // The number of items in front of it.
                batch.first -= 3;
            }
            let run = run(&job, BOUNDS);
            assert_eq!(run.counted("rejected"), 1, "{run:#?}");
            assert!(run.fates.iter().all(|(_, fate)| *fate == Fate::Acked), "{run:#?}");
        }
    }
}

/// A request that is too large goes out again in parts, in order, whatever words the server has for it and on whichever
/// side of compression it looks; so does one over our own limit, which is not sent at all.
#[test]
fn oversize_is_split() {
    for protocol in PROTOCOLS {
        for compression in ["none", "zstd", "gzip"] {
            let steps = "steps:
              - { when: { every: 2 }, answer: { size_limit: { bytes: 12000, wording: go } } }
              - { answer: { size_limit: { bytes: 12000, wording: tonic } } }";
            let layer = json!({"compression": {"codec": compression, "layer": "message"}, "batch": {"max_items": 40}});
            let mut server = with(job(protocol, steps), &layer);
            let mut own = with(job(protocol, "steps: []"), &layer);
            own = with(own, &json!({"request": {"max_bytes": "12000"}}));
            for job in [&mut server, &mut own] {
                job.batches.iter_mut().for_each(|batch| batch.padding = 1_500);
            }
            for job in [&server, &own] {
                let run = run(job, Bounds { request_items: 40, ..BOUNDS });
                assert_delivered(job, &run);
                assert!(run.report.requests.iter().filter(|row| row.stored).all(|row| row.decoded_bytes <= 12_000));
            }
        }
    }
}

/// Requests are compressed once, in the layer that was asked for, and the server knows the name of it.
#[test]
fn compression() {
    for protocol in PROTOCOLS {
        let bytes = |config: Value| -> Run {
            let mut job = with(
                job(protocol, "steps: [{ when: { from: 4, every: 3 }, times: 3, answer: { close: {} } }]"),
                &config,
            );
            job.batches.iter_mut().for_each(|batch| batch.padding = 2_000);
            let run = run(&job, BOUNDS);
            assert_delivered(&job, &run);
            run
        };
        let sum = |run: &Run| -> (u64, u64) {
            let rows = &run.report.requests;
            (rows.iter().map(|row| row.wire_bytes).sum(), rows.iter().map(|row| row.decoded_bytes).sum())
        };
        let (wire, plain) = sum(&bytes(json!({"compression": {"codec": "none"}})));
        assert_eq!(wire, plain, "{protocol:?}");
        for codec in ["zstd", "gzip"] {
            let (wire, decoded) = sum(&bytes(json!({"compression": {"codec": codec, "layer": "message"}})));
            assert!(wire < decoded && decoded > plain / 2, "{protocol:?} {codec}: {wire} of {decoded}");
        }
        if protocol == Protocol::Otap {
            let (wire, decoded) = sum(&bytes(json!({"compression": {"codec": "zstd", "layer": "ipc"}})));
            assert!(wire == decoded && wire < plain, "{wire} of {plain}");
        }
    }
}
