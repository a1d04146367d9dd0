//! The lanes exporter through outages: servers that go and come back, and an engine that is killed.

use std::time::{Duration, Instant};

use catchment_tests::otlp::{Signal, post, request};
use catchment_tests::{Engine, Followed, HEAD, Scene, ScriptedSink, free_port, wait_until};

const PROTOCOLS: [&str; 3] = ["otap", "otlp_grpc", "otlp_http"];
const KEYS: [&str; 3] = ["a", "b", "c"];
/// Items of a request.
const ITEMS: u64 = 10;

/// OTLP over HTTP into lanes with one lane, over a buffer on disk if it has a folder.
fn config(protocol: &str, buffer: Option<&Scene>, lanes: &str) -> String {
    let (node, connections) = match buffer {
        Some(scene) => (
            format!(
                "          buffer:
            type: processor:durable_buffer
            config: {{path: {:?}, retention_size_cap: 256 MiB, max_segment_open_duration: 100ms, poll_interval: 20ms}}
",
                scene.path("buffer")
            ),
            "[{from: otlp, to: buffer}, {from: buffer, to: lanes}]",
        ),
        None => (String::new(), "[{from: otlp, to: lanes}]"),
    };
    format!(
        r#"{HEAD}groups:
  site:
    pipelines:
      main:
        nodes:
          otlp:
            type: receiver:otlp
            config: {{protocols: {{http: {{listening_addr: "127.0.0.1:@otlp@", wait_for_result: WAITS, timeout: 20s}}}}}}
{node}          lanes:
            type: urn:catchment:exporter:lanes
            config:
              protocol: {protocol}
              client: {{endpoint: "http://127.0.0.1:@sink@"}}
              retry: {{initial: 50ms, max: 1s, max_elapsed: none}}
              {lanes}
        connections: {connections}
"#
    )
    .replace("WAITS", if buffer.is_some() { "true" } else { "false" })
}

const ONE_LANE: &str = "lanes: {key: single}";

fn start(scene: &Scene, yaml: &str, sink: u16) -> Engine {
    let engine = Engine::start(scene, yaml, &[("sink", sink)]);
    engine.wait_listening("otlp");
    engine
}

/// Sends requests of all keys in turn; `rounds` are numbers of requests within a key.
fn send(engine: &Engine, rounds: std::ops::Range<u64>) {
    for round in rounds {
        for key in KEYS {
            let body = request(Signal::Logs, key, round * ITEMS..(round + 1) * ITEMS);
            assert_eq!(post(engine.address("otlp"), Signal::Logs, "", &body), 200);
        }
    }
}

fn metric(engine: &Engine, name: &str) -> u64 {
    engine.metric("exporter.lanes", name)
}

/// Attempts that came to nothing.
fn failures(engine: &Engine) -> u64 {
    metric(engine, "attempts_unavailable") + metric(engine, "attempts_unanswered")
}

/// Fails unless all items of `rounds` requests a key came, in order.
fn assert_whole(followed: &Followed, rounds: u64) {
    assert_eq!(followed.keys().len(), KEYS.len(), "{followed:?}");
    for key in followed.keys() {
        let of = |name: &str| key[name].as_u64().unwrap_or(u64::MAX);
        assert_eq!((of("highest"), of("missing"), of("out_of_order")), (rounds * ITEMS - 1, 0, 0), "{followed:?}");
    }
}

/// Behind a buffer on disk: the server stores a request and says nothing, then takes none for some seconds; meanwhile the
/// engine is killed, starts again, and takes more. Everything arrives in order, and nothing comes twice but what was stored
/// unsaid, or by the engine that was killed.
#[test]
fn outage_and_kill() {
    for protocol in PROTOCOLS {
        let scene = Scene::new();
        let script = "steps:
          - { when: { from: 2, to: 2 }, store: true, answer: { close: { at: after_body } } }
          - { when: { from: 5, before: 8s }, answer: { close: { at: before_body } } }";
        let sink = ScriptedSink::start(&scene, script);
        let yaml = config(protocol, Some(&scene), ONE_LANE);
        let engine = start(&scene, &yaml, sink.port(protocol));
        send(&engine, 0..10);
        wait_until("attempts fail", || failures(&engine) > 3);
        let delivered = metric(&engine, "items_delivered");
        // By SIGKILL.
        drop(engine);
        let engine = start(&scene, &yaml, sink.port(protocol));
        send(&engine, 10..15);
        // The buffer may not have noted yet what the first engine delivered.
        let least = 15 * 3 * ITEMS - delivered;
        wait_until("all is delivered", || {
            metric(&engine, "items_delivered") >= least && metric(&engine, "items_held") == 0
        });
        let stopped = engine.stop();
        let line = stopped.expect_clean().node("main/lanes").clone();
        assert_eq!((Some(line.sent), line.dropped), (line.received, 0), "{line:?}");
        let followed = sink.stop();
        assert_whole(&followed, 15);
        let excused = followed.total("ambiguous_items") + delivered;
        assert!(followed.total("duplicates") <= excused, "{protocol}: {excused}, {followed:?}");
    }
}

/// SIGTERM while nobody listens: the engine ends in time, and what is in the buffer is delivered by the next one.
#[test]
fn end_without_a_server() {
    for protocol in PROTOCOLS {
        let scene = Scene::new();
        let port = free_port();
        let yaml = config(protocol, Some(&scene), ONE_LANE);
        let engine = start(&scene, &yaml, port);
        send(&engine, 0..4);
        wait_until("attempts fail", || failures(&engine) > 1);
        let began = Instant::now();
        engine.shut_down("main", 3);
        assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
        let stopped = engine.stop();
        let line = stopped.expect_clean().node("main/lanes").clone();
        assert_eq!((line.sent, line.reason("unanswered")), (0, 0), "nothing was ever sent: {line:?}");
        let sink = ScriptedSink::start_on(&scene, "steps: []", protocol, port);
        let engine = start(&scene, &yaml, port);
        wait_until("all is delivered", || metric(&engine, "items_delivered") == 4 * 3 * ITEMS);
        let _ = engine.stop().expect_clean();
        let followed = sink.stop();
        followed.assert_all_in_order(4 * 3 * ITEMS);
    }
}

/// A server that comes back gets the first request within one step of back-off, and everything from where it was.
#[test]
fn recovery() {
    for protocol in PROTOCOLS {
        let scene = Scene::new();
        let first = ScriptedSink::start(&scene, "steps: []");
        let port = first.port(protocol);
        let engine = start(&scene, &config(protocol, None, ONE_LANE), port);
        send(&engine, 0..2);
        wait_until("all is delivered", || metric(&engine, "items_delivered") == 2 * 3 * ITEMS);
        let before = first.stop();
        send(&engine, 2..4);
        // By then waits are as long as they become.
        wait_until("attempts fail", || failures(&engine) >= 8);
        let second = ScriptedSink::start_on(&scene, "steps: []", protocol, port);
        send(&engine, 4..5);
        wait_until("all is delivered", || metric(&engine, "items_delivered") == 5 * 3 * ITEMS);
        let stopped = engine.stop();
        let line = stopped.expect_clean().node("main/lanes").clone();
        assert_eq!((line.sent, line.dropped, line.note("ambiguous")), (5 * 3 * ITEMS, 0, 0), "{line:?}");
        before.assert_all_in_order(2 * 3 * ITEMS);
        let after = second.stop();
        after.assert_all_in_order(3 * 3 * ITEMS);
        let at = after.requests[0]["at_seconds"].as_f64().expect("a time");
        assert!(at < 1.0 + 1.0, "{protocol}: {at} s, of which one step of back-off and some for the machine");
    }
}

/// Upstream's receivers take everything that lanes send, also when their engine is killed and comes back.
#[test]
fn upstream_is_killed() {
    for (protocol, receiver) in [
        ("otlp_grpc", r#"{type: "receiver:otlp", config: {protocols: {grpc: {LISTEN}}}}"#),
        ("otlp_http", r#"{type: "receiver:otlp", config: {protocols: {http: {LISTEN}}}}"#),
        ("otap", r#"{type: "receiver:otap", config: {LISTEN, response_stream_channel_size: 8}}"#),
    ] {
        let scene = Scene::new();
        let sink = ScriptedSink::start(&scene, "steps: [{delay: 20ms}]");
        let receiver = receiver.replace("LISTEN", r#"listening_addr: "127.0.0.1:@in@", wait_for_result: true"#);
        let back = format!(
            r#"{HEAD}groups:
  site:
    pipelines:
      back:
        nodes:
          input: {receiver}
          lanes:
            type: urn:catchment:exporter:lanes
            config: {{protocol: otlp_grpc, client: {{endpoint: "http://127.0.0.1:@sink@"}}, lanes: {{key: series}}}}
        connections: [{{from: input, to: lanes}}]
"#
        );
        let port = free_port();
        let ports = [("sink", sink.port("otlp_grpc")), ("in", port)];
        let upstream = Engine::start(&scene, &back, &ports);
        upstream.wait_listening("in");
        let engine = start(&scene, &config(protocol, None, "lanes: {key: series, count: 2}"), port);
        send(&engine, 0..8);
        wait_until("some is delivered", || metric(&engine, "items_delivered") > 0);
        drop(upstream);
        send(&engine, 8..10);
        wait_until("attempts fail", || failures(&engine) > 2);
        let upstream = Engine::start(&scene, &back, &ports);
        wait_until("all is delivered", || metric(&engine, "items_delivered") == 10 * 3 * ITEMS);
        let stopped = engine.stop();
        let line = stopped.expect_clean().node("main/lanes").clone();
        assert_eq!((line.sent, line.dropped), (10 * 3 * ITEMS, 0), "{line:?}");
        let _ = upstream.stop().expect_clean();
        let followed = sink.stop();
        assert_whole(&followed, 10);
        // What the engine that was killed passed on without saying so, comes again.
        assert!(followed.total("duplicates") <= line.note("ambiguous"), "{line:?} {followed:?}");
    }
}
