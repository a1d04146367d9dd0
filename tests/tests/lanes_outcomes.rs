//! What the lanes exporter makes of full lanes, refusals, other protocols, sizes, and its own end.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use catchment_tests::otlp::{Signal, post, request};
use catchment_tests::{Engine, HEAD, Scene, ScriptedSink, wait_until};

const PROTOCOLS: [&str; 3] = ["otap", "otlp_grpc", "otlp_http"];

/// OTLP over HTTP into lanes; `waits`: the answer is the outcome of the request.
fn start(scene: &Scene, sink: &ScriptedSink, protocol: &str, waits: bool, lanes: &str) -> Engine {
    let yaml = format!(
        r#"{HEAD}groups:
  site:
    pipelines:
      main:
        nodes:
          otlp:
            type: receiver:otlp
            config: {{protocols: {{http: {{listening_addr: "127.0.0.1:@otlp@", wait_for_result: {waits}, timeout: 20s}}}}}}
          lanes:
            type: urn:catchment:exporter:lanes
            config: {{protocol: {protocol}, client: {{endpoint: "http://127.0.0.1:@sink@"}}, {lanes}}}
        connections: [{{from: otlp, to: lanes}}]
"#
    );
    let engine = Engine::start(scene, &yaml, &[("sink", sink.port(protocol))]);
    engine.wait_listening("otlp");
    engine
}

fn logs(address: SocketAddr, key: &str, numbers: std::ops::Range<u64>) -> u16 {
    post(address, Signal::Logs, "", &request(Signal::Logs, key, numbers))
}

fn metric(engine: &Engine, name: &str) -> u64 {
    engine.metric("exporter.lanes", name)
}

/// What came in is all that went out, and what is held.
fn assert_balanced(engine: &Engine) {
    let names = [
        "delivered",
        "rejected",
        "refused",
        "unencodable",
        "dropped",
        "expired",
        "queue_full",
        "shut_down",
        "unanswered",
        "failed",
        "held",
    ];
    wait_until("the items balance", || {
        names.iter().map(|name| metric(engine, &format!("items_{name}"))).sum::<u64>()
            == metric(engine, "items_received")
    });
}

/// A full lane gives back what comes, at once.
#[test]
fn full_lane_nacks() {
    let scene = Scene::new();
    let sink = ScriptedSink::start(&scene, "steps: [{answer: never}]");
    let lanes = "lanes: {key: single, max_queue_batches: 2, on_full: nack}";
    let engine = start(&scene, &sink, "otlp_grpc", false, lanes);
    for number in 0..10 {
        assert_eq!(logs(engine.address("otlp"), "a", number..number + 1), 200);
    }
    wait_until("those without room are given back", || metric(&engine, "items_queue_full") == 7);
    assert_eq!((metric(&engine, "batches_nacked"), metric(&engine, "items_held")), (7, 3));
    assert_balanced(&engine);
    engine.shut_down("main", 2);
    let stopped = engine.stop();
    let line = stopped.expect_clean().node("main/lanes").clone();
    assert_eq!((line.reason("queue full"), line.reason("shut down"), line.reason("unanswered")), (7, 2, 1), "{line:?}");
}

/// A full lane drops what has waited longest; what is in flight stays, and what is left comes in order.
#[test]
fn full_lane_drops_the_oldest() {
    let scene = Scene::new();
    let sink = ScriptedSink::start(&scene, "steps: [{when: {to: 1}, answer: never}]");
    let lanes = "lanes: {key: single, max_queue_batches: 2, on_full: drop_oldest}, request: {attempt_timeout: 3s}";
    let engine = start(&scene, &sink, "otlp_http", false, lanes);
    for number in 0..10 {
        assert_eq!(logs(engine.address("otlp"), "a", number..number + 1), 200);
    }
    wait_until("what is left is delivered", || metric(&engine, "items_delivered") == 3);
    assert_eq!((metric(&engine, "items_dropped"), metric(&engine, "batches_refused")), (7, 7));
    assert_balanced(&engine);
    let _ = engine.stop().expect_clean();
    let followed = sink.stop();
    followed.assert_all_in_order(3);
}

/// A full lane holds the inbox back, but neither the metrics nor the verdicts of other lanes; then all goes on.
#[test]
fn full_lane_blocks() {
    for protocol in PROTOCOLS {
        let scene = Scene::new();
        let sink = ScriptedSink::start(&scene, "steps: [{when: {to: 1}, answer: never}]");
        let lanes = "lanes: {count: 64, key: series, max_queue_batches: 2, on_full: block}, \
                     request: {attempt_timeout: 6s}, stream: {status_timeout: 6s}";
        let lanes = if protocol == "otap" { lanes } else { lanes.trim_end_matches(", stream: {status_timeout: 6s}") };
        let engine = start(&scene, &sink, protocol, false, lanes);
        let address = engine.address("otlp");
        assert_eq!(logs(address, "stuck", 0..1), 200);
        wait_until("it is in flight", || metric(&engine, "attempts") == 1);
        for number in 0..20 {
            assert_eq!(logs(address, "fine", number..number + 1), 200);
        }
        wait_until("other lanes go on", || metric(&engine, "items_delivered") == 20);
        for number in 1..6 {
            assert_eq!(logs(address, "stuck", number..number + 1), 200);
        }
        assert_eq!(logs(address, "fine", 20..21), 200);
        wait_until("metrics tell of the time", || metric(&engine, "blocked_time_milliseconds") > 100);
        assert_eq!(metric(&engine, "items_delivered"), 20, "the inbox is held back");
        assert_balanced(&engine);
        wait_until("all is delivered", || metric(&engine, "items_delivered") == 27);
        assert!(metric(&engine, "attempts_unanswered") == 1 && metric(&engine, "items_ambiguous") == 1);
        let _ = engine.stop().expect_clean();
        sink.stop().assert_all_in_order(27);
    }
}

/// The end comes by the deadline, whatever the server does: nothing is listened to, nothing is answered, or there is none.
#[test]
fn end_with_a_dead_server() {
    for (protocol, script) in [
        ("otap", "steps: [{answer: never}]"),
        ("otlp_grpc", "steps: [{answer: never}]"),
        ("otlp_http", "steps: [{answer: never}]"),
        ("otlp_http", "steps: [{stop_reading: {for: 60s, of: connection}}]"),
        ("otap", "steps: [{answer: {batch_status: {code: UNAVAILABLE}}}]"),
        ("otlp_grpc", "steps: [{answer: {grpc: {code: UNAVAILABLE, retry_info: 60s}}}]"),
    ] {
        let scene = Scene::new();
        let sink = ScriptedSink::start(&scene, script);
        // Two in each of two lanes or so, and more in front of them.
        let lanes = "lanes: {count: 2, key: series, max_queue_batches: 1}";
        let engine = start(&scene, &sink, protocol, false, lanes);
        for number in 0..12 {
            let key = ["a", "b", "c", "d"][number as usize % 4];
            assert_eq!(logs(engine.address("otlp"), key, number * 10..number * 10 + 10), 200);
        }
        wait_until("it tries", || metric(&engine, "attempts") > 0);
        let began = Instant::now();
        engine.shut_down("main", 4);
        let took = began.elapsed();
        assert!(took < Duration::from_secs(6), "{protocol}, {script}: {took:?}");
        let stopped = engine.stop();
        let line = stopped.expect_clean().node("main/lanes").clone();
        let (shut_down, unanswered) = (line.reason("shut down"), line.reason("unanswered"));
        assert_eq!((line.sent, shut_down + unanswered), (0, 120), "{protocol}, {script}: {line:?}");
        assert_eq!(line.note("batches nacked"), 12, "{line:?}");
        // A server that answers at once is asked again and again, perhaps also when the time is up.
        if !script.contains("batch_status") {
            assert_eq!(unanswered > 0, script.contains("never") || script.contains("stop"), "{line:?}");
        }
        drop(sink);
    }
}

/// What is held is delivered at the end, as far as there is time.
#[test]
fn end_with_a_slow_server() {
    for protocol in PROTOCOLS {
        let scene = Scene::new();
        let sink = ScriptedSink::start(&scene, "steps: [{delay: 150ms}]");
        let engine = start(&scene, &sink, protocol, false, "lanes: {key: single}, batch: {max_items: 10}");
        for number in 0..8 {
            assert_eq!(logs(engine.address("otlp"), "a", number * 10..number * 10 + 10), 200);
        }
        let stopped = engine.stop();
        let line = stopped.expect_clean().node("main/lanes").clone();
        assert_eq!((line.sent, line.dropped), (80, 0), "{line:?}");
        sink.stop().assert_all_in_order(80);
    }
}

/// So is what waits in front of a full lane, and what nobody is left to hear of.
#[test]
fn end_with_a_full_lane() {
    for protocol in PROTOCOLS {
        for batches in [4, 12] {
            let scene = Scene::new();
            let sink = ScriptedSink::start(&scene, "steps: [{delay: 300ms}]");
            let lanes = "lanes: {key: single, max_queue_batches: 1}, batch: {max_items: 10}";
            let engine = start(&scene, &sink, protocol, false, lanes);
            for number in 0..batches {
                assert_eq!(logs(engine.address("otlp"), "a", number * 10..number * 10 + 10), 200);
            }
            engine.shut_down("main", 20);
            let stopped = engine.stop();
            let line = stopped.expect_clean().node("main/lanes").clone();
            assert_eq!((line.sent, line.dropped), (batches * 10, 0), "{protocol}: {line:?}");
            sink.stop().assert_all_in_order(batches * 10);
        }
    }
}

/// A server without OTAP gets OTLP, from the first batch on.
#[test]
fn downgrade() {
    let scene = Scene::new();
    let sink = ScriptedSink::start(&scene, "steps: [{when: {on: open}, answer: {grpc: {code: UNIMPLEMENTED}}}]");
    let engine = start(&scene, &sink, "otap", true, "lanes: {key: single}");
    for number in 0..5 {
        assert_eq!(logs(engine.address("otlp"), "a", number * 10..number * 10 + 10), 200);
    }
    wait_until("it is told", || metric(&engine, "protocol_changes") == 1 && metric(&engine, "items_delivered") == 50);
    assert_balanced(&engine);
    let _ = engine.stop().expect_clean();
    sink.stop().assert_all_in_order(50);
    let scene = Scene::new();
    let sink = ScriptedSink::start(&scene, "steps: [{when: {on: open}, answer: {grpc: {code: UNIMPLEMENTED}}}]");
    let engine = start(&scene, &sink, "otap", true, "stream: {downgrade: never}");
    assert!(logs(engine.address("otlp"), "a", 0..10) >= 400, "refused for good");
    wait_until("it is told", || metric(&engine, "items_refused") == 10);
    let _ = engine.stop().expect_clean();
    assert_eq!(sink.stop().total("stored_items"), 0);
}

/// What a server rejects of a request is counted; the rest is acknowledged, and never sent again.
#[test]
fn partial_success() {
    for protocol in ["otlp_grpc", "otlp_http"] {
        let scene = Scene::new();
        let script = "steps: [{when: {to: 1}, answer: {partial_success: {rejected: 3, message: too old}}}, \
                      {when: {from: 2, to: 2}, answer: {partial_success: {rejected: 0, message: slow down}}}]";
        let sink = ScriptedSink::start(&scene, script);
        let engine = start(&scene, &sink, protocol, true, "lanes: {key: single}");
        for number in 0..3 {
            assert_eq!(logs(engine.address("otlp"), "a", number * 10..number * 10 + 10), 200);
        }
        wait_until("it is told", || metric(&engine, "items_delivered") == 27);
        assert_eq!((metric(&engine, "items_rejected"), metric(&engine, "warnings")), (3, 2));
        assert_eq!((metric(&engine, "batches_acked"), metric(&engine, "requests")), (3, 3));
        assert_balanced(&engine);
        let _ = engine.stop().expect_clean();
        assert_eq!(sink.stop().total("stored_items"), 27);
    }
}

/// Requests that are too large, by our own limit or the server's, are cut, and arrive whole and in order.
#[test]
fn too_large() {
    let script = |wording: &str| format!("steps: [{{answer: {{size_limit: {{bytes: 6000, wording: {wording}}}}}}}]");
    for protocol in PROTOCOLS {
        for (script, lanes) in [
            (script("go"), "lanes: {key: single}, compression: {codec: none}"),
            (script("tonic"), "lanes: {key: single}, compression: {codec: none}"),
            ("steps: []".to_owned(), "lanes: {key: single}, compression: {codec: none}, request: {max_bytes: 6000}"),
        ] {
            let scene = Scene::new();
            let sink = ScriptedSink::start(&scene, &script);
            let engine = start(&scene, &sink, protocol, true, lanes);
            for (at, signal) in Signal::ALL.into_iter().enumerate() {
                let body = request(signal, &format!("key{at}"), 0..400);
                assert_eq!(post(engine.address("otlp"), signal, "", &body), 200, "{protocol}, {script}");
            }
            wait_until("it is told", || metric(&engine, "items_delivered") == 1_200);
            assert!(metric(&engine, "requests_split") > 0);
            assert_balanced(&engine);
            let _ = engine.stop().expect_clean();
            sink.stop().assert_all_in_order(1_200);
        }
    }
}

/// Who waits for the outcome hears of it: taken after some attempts, refused for good, or not taken in time.
#[test]
fn outcomes_come_back() {
    for (protocol, passing, lasting) in [
        ("otap", "{batch_status: {code: UNAVAILABLE}}", "{batch_status: {code: INVALID_ARGUMENT}}"),
        ("otlp_grpc", "{grpc: {code: UNAVAILABLE}}", "{grpc: {code: INVALID_ARGUMENT}}"),
        ("otlp_http", "{http: {status: 503}}", "{http: {status: 400}}"),
    ] {
        let scene = Scene::new();
        let script = format!(
            "steps: [{{when: {{to: 2}}, answer: {passing}}}, {{when: {{from: 4, to: 4}}, answer: {lasting}}}, \
             {{when: {{from: 5}}, answer: {passing}}}]"
        );
        let sink = ScriptedSink::start(&scene, &script);
        let lanes = "lanes: {key: single}, retry: {initial: 10ms, max: 20ms, max_elapsed: 300ms}";
        let engine = start(&scene, &sink, protocol, true, lanes);
        let address = engine.address("otlp");
        assert_eq!(logs(address, "a", 0..10), 200, "taken at the third attempt");
        assert!((400..600).contains(&logs(address, "a", 10..20)), "refused for good");
        assert!((400..600).contains(&logs(address, "a", 20..30)), "given up");
        wait_until("it is told", || metric(&engine, "items_expired") == 10);
        assert_eq!((metric(&engine, "items_delivered"), metric(&engine, "items_refused")), (10, 10));
        let failed = metric(&engine, "attempts_unavailable") + metric(&engine, "attempts_unanswered");
        assert_eq!(failed, metric(&engine, "attempts") - 2);
        assert_balanced(&engine);
        let _ = engine.stop().expect_clean();
        sink.stop().assert_all_in_order(10);
    }
}
