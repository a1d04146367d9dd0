//! SIGTERM in the middle of everything: what the receiver took in is acknowledged, or told to be lost.

use std::net::TcpListener;
use std::time::Duration;

use catchment_tests::{
    Caught, Engine, HEAD, Report, Scene, Sink, free_port, loadgen, local, start_loadgen, wait_until,
};

/// Lines into windows of ten seconds, one every window and severity.
const EDGE: &str = r#"
      edge:
        nodes:
          syslog:
            type: urn:catchment:receiver:syslog
            config: {tcp: {listening_addr: "127.0.0.1:@syslog@"}}
          quantile:
            type: urn:catchment:processor:quantile
            config:
              window: {tumbling: 10s, clock: observed_time}
              measures:
                - {name: facility, value_from: "attribute:syslog.facility", group_by: [syslog.severity]}
          batch:
            type: processor:batch
            config: {format: otap, otap: {min_size: 1000, max_size: 8000, sizer: items}, max_batch_duration: 200ms}
          retry:
            type: processor:retry
            config: {initial_interval: 100ms, max_interval: 1s, max_elapsed_time: 30s}
          otap:
            type: exporter:otap
            config: {grpc_endpoint: "http://127.0.0.1:@backend@", compression_method: zstd}
        connections:
          - {from: syslog, to: quantile}
          - {from: quantile, to: batch}
          - {from: batch, to: retry}
          - {from: retry, to: otap}
"#;

const BACKEND: &str = r#"
      backend:
        nodes:
          otap:
            type: receiver:otap
            config: {listening_addr: "127.0.0.1:@backend@", response_stream_channel_size: 64, wait_for_result: true}
          otlp:
            type: exporter:otlp_grpc
            config: {grpc_endpoint: "http://127.0.0.1:@sink@"}
        connections: [{from: otap, to: otlp}]
"#;

/// Lines to an OTLP backend, with retries.
const DIRECT: &str = r#"
      edge:
        nodes:
          syslog:
            type: urn:catchment:receiver:syslog
            config: {tcp: {listening_addr: "127.0.0.1:@syslog@"}}
          retry:
            type: processor:retry
            config: {initial_interval: 100ms, max_interval: 500ms, max_elapsed_time: 120s}
          otlp:
            type: exporter:otlp_grpc
            config: {grpc_endpoint: "http://127.0.0.1:@sink@"}
        connections: [{from: syslog, to: retry}, {from: retry, to: otlp}]
"#;

/// Lines that have to be in the open window when the signal comes.
const ENOUGH: u64 = 20_000;
/// More lines than can be sent before the signal.
const ENDLESS: &str = "1000000000";

fn config(pipelines: &[&str]) -> String {
    format!("{HEAD}groups:\n  site:\n    pipelines:{}", pipelines.concat())
}

/// Sends without pause until the engine, which has an open window then, has been stopped; gives its report.
fn stop_while_sending(engine: Engine) -> Report {
    let sender = start_loadgen("syslog", &engine.tcp("syslog"), &["--format", "rfc5424", "--count", ENDLESS]);
    wait_until("the receiver has lines", || engine.metric("receiver.syslog", "messages_received") >= ENOUGH);
    let stopped = engine.stop();
    drop(sender);
    stopped.expect_clean().clone()
}

/// Everything the receiver took in has been acknowledged and is in the counts that the sink got.
fn assert_nothing_lost(report: &Report, caught: &Caught) {
    let receiver = report.node("edge/syslog");
    let received = receiver.received.unwrap_or_default();
    assert!(received >= ENOUGH, "{receiver:?}");
    assert_eq!((receiver.sent, receiver.note("acknowledged")), (received, received), "{receiver:?}");
    let quantile = report.node("edge/quantile");
    // The line that the end cuts may be so short that it has no facility.
    assert!(quantile.dropped <= receiver.note("truncated"), "{receiver:?} {quantile:?}");
    let measured = received - quantile.dropped;
    assert_eq!((quantile.received, quantile.sent), (Some(received), measured));
    let counted: f64 = caught
        .records
        .iter()
        .filter(|point| point["name"] == "facility.count")
        .map(|point| point["value"].as_f64().expect("a number"))
        .sum();
    assert_eq!(counted, measured as f64, "each line is in exactly one window");
    assert_eq!(quantile.note("points sent"), caught.points);
}

/// Both pipelines in one process: the edge is drained into the backend before that ends.
#[test]
fn edge_and_backend_in_one_process() {
    let scene = Scene::new();
    let sink = Sink::start(&scene);
    let engine = Engine::start(&scene, &config(&[EDGE, BACKEND]), &[("sink", sink.otlp())]);
    let report = stop_while_sending(engine);
    let caught = sink.stop();
    assert_nothing_lost(&report, &caught);
}

/// The edge alone is stopped; the backend follows.
#[test]
fn edge_and_backend_in_two_processes() {
    let scene = Scene::new();
    let sink = Sink::start(&scene);
    let backend = Engine::start(&scene, &config(&[BACKEND]), &[("sink", sink.otlp())]);
    backend.wait_listening("backend");
    let edge = Engine::start(&scene, &config(&[EDGE]), &[("backend", backend.port("backend"))]);
    let report = stop_while_sending(edge);
    let backend = backend.stop();
    let caught = sink.stop();
    backend.expect_clean();
    assert_nothing_lost(&report, &caught);
}

/// The lines of upstream's nodes come from the engine's metrics. They count everything, however short the life of the
/// engine: each of some runs ends right after its last record.
#[test]
fn the_report_counts_everything_of_upstream_nodes() {
    const COUNT: u64 = 300;
    let scene = Scene::new();
    for _ in 0..20 {
        let mut sink = Sink::start(&scene);
        let engine = Engine::start(&scene, &config(&[DIRECT]), &[("sink", sink.otlp())]);
        let arguments = ["--format", "rfc5424", "--count", &COUNT.to_string()];
        let _ = loadgen("syslog", &engine.tcp("syslog"), &arguments);
        sink.wait_for(300);
        let stopped = engine.stop();
        let report = stopped.expect_clean();
        let (retry, otlp) = (report.node("edge/retry"), report.node("edge/otlp"));
        assert_eq!((retry.received, retry.sent, retry.dropped), (Some(COUNT), COUNT, 0));
        assert_eq!((otlp.received, otlp.sent, otlp.dropped), (Some(COUNT), COUNT, 0));
    }
}

/// Lines that came while the backend was down are there when it is up.
#[test]
fn a_backend_that_comes_later() {
    const COUNT: usize = 2_000;
    let scene = Scene::new();
    let port = free_port();
    let engine = Engine::start(&scene, &config(&[DIRECT]), &[("sink", port)]);
    let count = COUNT.to_string();
    let arguments = ["--format", "rfc5424", "--fresh-time", "--count", &count];
    let sent = loadgen("syslog", &engine.tcp("syslog"), &arguments);
    wait_until("the lines are taken in", || engine.metric("receiver.syslog", "messages_received") == sent.messages);
    assert_eq!(engine.metric("receiver.syslog", "messages_acknowledged"), 0, "nobody is there to take them");
    let mut sink = Sink::start_on(&scene, port);
    sink.wait_for(COUNT);
    let stopped = engine.stop();
    let caught = sink.stop();
    let report = stopped.expect_clean();
    let receiver = report.node("edge/syslog");
    assert_eq!((receiver.received, receiver.note("acknowledged")), (Some(sent.messages), sent.messages));
    // Nobody answered before the sink was there, so nothing can have come twice.
    assert_eq!(caught.logs, sent.messages);
}

/// A backend that takes the connection and says nothing: the drain ends in time, and the report tells the loss.
#[test]
fn a_backend_that_never_answers() {
    let scene = Scene::new();
    let silent = TcpListener::bind(local(0)).expect("a free port");
    let port = silent.local_addr().expect("an address").port();
    let engine = Engine::start(&scene, &config(&[DIRECT]), &[("sink", port)]);
    let sent = loadgen("syslog", &engine.tcp("syslog"), &["--format", "rfc5424", "--count", "500"]);
    wait_until("the lines are taken in", || engine.metric("receiver.syslog", "messages_received") == sent.messages);
    let stopped = engine.stop_within(Duration::from_secs(75));
    let receiver = stopped.report.node("edge/syslog");
    stopped.report.assert_balanced();
    assert_eq!((receiver.received, receiver.note("acknowledged")), (Some(sent.messages), 0), "{receiver:?}");
    let told = receiver.note("refused downstream") + receiver.note("outcome unknown");
    assert_eq!(told, sent.messages, "{receiver:?}");
}
