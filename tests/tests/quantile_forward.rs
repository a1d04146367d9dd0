//! What goes on beside the quantiles: records without the value, and late ones on a connection of their own.

use std::io::Write as _;
use std::net::TcpStream;

use catchment_tests::{Engine, HEAD, Scene, Sink, wait_until};
use serde_json::Value;

const PIPELINE: &str = r#"groups:
  site:
    pipelines:
      edge:
        nodes:
          syslog:
            type: urn:catchment:receiver:syslog
            config: {tcp: {listening_addr: "127.0.0.1:@syslog@"}, structured_data: flat}
          quantile:
            type: urn:catchment:processor:quantile
            config:
              window: {tumbling: 10s}
              idle_flush: 1h
              forward: rest
              late: side_output
              quantiles: [0.5]
              statistics: []
              measures:
                - {name: size, value_from: attribute:syslog.structured_data.m@1.v, text: number}
          otap:
            type: exporter:otap
            config: {grpc_endpoint: "http://127.0.0.1:@sink@"}
          late:
            type: exporter:otap
            config: {grpc_endpoint: "http://127.0.0.1:@late@"}
        connections:
          - {from: syslog, to: quantile}
          - {from: quantile, to: otap}
          - {from: 'quantile["late"]', to: late}
"#;

fn line(second: u32, value: &str, text: &str) -> String {
    format!("<13>1 2026-11-30T12:00:{second:02}Z host app - - [m@1 {value}] {text}\n")
}

/// Messages of the log records.
fn messages(records: &[Value]) -> Vec<&str> {
    records.iter().filter_map(|record| record["attributes"]["syslog.message"].as_str()).collect()
}

/// Each record is used, goes on or is late, and is acknowledged once what became of it has arrived.
#[test]
fn the_rest_and_the_late_go_their_ways() {
    let scene = Scene::new();
    let (mut sink, mut late) = (Sink::start(&scene), Sink::start(&scene));
    let yaml = format!("{HEAD}{PIPELINE}");
    let engine = Engine::start(&scene, &yaml, &[("sink", sink.otap()), ("late", late.otap())]);
    let mut stream = TcpStream::connect(engine.address("syslog")).expect("a connection");
    let first = [line(1, "v=\"3\"", "used"), line(2, "w=\"3\"", "no value"), line(31, "v=\"5\"", "used")].concat();
    stream.write_all(first.as_bytes()).expect("the lines are taken");
    wait_until("the first window is out", || engine.metric("processor.quantile", "windows_closed") == 1);
    let second = [line(3, "v=\"7\"", "too late"), line(32, "v=\"many\"", "no number")].concat();
    stream.write_all(second.as_bytes()).expect("the lines are taken");
    drop(stream);
    sink.wait_for(3);
    late.wait_for(1);
    let stopped = engine.stop();
    let (caught, late) = (sink.stop(), late.stop());
    let report = stopped.expect_clean();
    assert_eq!(messages(&caught.records), ["no value", "no number"]);
    assert_eq!(caught.points, 2, "a median for each window");
    assert_eq!((messages(&late.records), late.points), (vec!["too late"], 0));
    let quantile = report.node("edge/quantile");
    assert_eq!((quantile.received, quantile.note("forwarded"), quantile.reason("late")), (Some(5), 2, 1));
    assert_eq!((quantile.note("late sent"), quantile.note("points sent")), (1, 2));
    assert_eq!(report.node("edge/syslog").note("acknowledged"), 5);
}
