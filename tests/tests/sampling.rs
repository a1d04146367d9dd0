//! Head sampling in whole processes: what is dropped, what is kept, what is told of both, and what can be told of the whole.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use catchment_tests::message::{message, send, socket_on, template};
use catchment_tests::{Engine, Flows, HEAD, PATIENCE, Scene, Sender, Sink, free_port, local, wait_until};
use serde_json::Value;

/// A syslog receiver on `@in@` with these policies, then `nodes`, then the sink.
fn syslog(policies: &str, nodes: &str, connections: &str) -> String {
    format!(
        r#"{HEAD}groups:
  site:
    pipelines:
      edge:
        nodes:
          in:
            type: urn:catchment:receiver:syslog
            config:
              udp: {{listening_addr: "127.0.0.1:@in@"}}
              tcp: {{listening_addr: "127.0.0.1:@in@"}}
              sampling: {{seed: 3, policies: {policies}}}
{nodes}
          otap:
            type: exporter:otap
            config: {{grpc_endpoint: "http://127.0.0.1:@sink@", compression_method: zstd}}
        connections: [{connections}]
"#
    )
}

/// A frontend that answers by itself and logs each request with its number and its trace.
fn haproxy_config(http: u16, log: u16) -> String {
    format!(
        "global\n    log 127.0.0.1:{log} len 4096 format rfc5424 local2\n    log-tag balancer\n\
         defaults\n    timeout client 10s\n    timeout connect 10s\n    timeout server 10s\n\
         frontend web\n    mode http\n    bind 127.0.0.1:{http}\n    log global\n    http-request set-var(txn.trace) \
         req.hdr(traceparent)\n    http-request set-var(txn.number) req.hdr(number)\n    log-format \
         \"request %[var(txn.number)] %ST\"\n    log-format-sd \"[http@32473 number=\\\"%[var(txn.number)]\\\" \
         traceparent=\\\"%[var(txn.trace)]\\\"]\"\n    http-request return status 200\n"
    )
}

fn trace(number: usize) -> (String, String) {
    (format!("{:032x}", 0xabcd_0000 + number), format!("{:016x}", 0x1_0000 + number))
}

/// HAProxy logs requests of which half belong to traces that are not sampled: exactly the other half arrives, each with its
/// trace, and every message is counted.
#[test]
fn haproxy_logs_of_sampled_traces_only() {
    const REQUESTS: usize = 60;
    let Some(haproxy) = Sender::find("haproxy") else { return };
    let scene = Scene::new();
    let sink = Sink::start(&scene);
    let yaml = syslog("[{trace_flag: {unsampled: drop}}]", "", "{from: in, to: otap}");
    let engine = Engine::start(&scene, &yaml, &[("sink", sink.otap())]);
    let http = free_port();
    let config = scene.write("haproxy.cfg", haproxy_config(http, engine.port("in")));
    let mut process = haproxy.start(&["-db", "-f", config.to_str().expect("a path of text")]);
    wait_until("haproxy listens", || {
        assert!(process.is_running(), "{}", process.stderr());
        TcpStream::connect(local(http)).is_ok()
    });
    for number in 0..REQUESTS {
        let (trace, span) = trace(number);
        let mut stream = TcpStream::connect(local(http)).expect("it listens");
        write!(stream, "GET / HTTP/1.0\r\ntraceparent: 00-{trace}-{span}-0{}\r\nnumber: {number}\r\n\r\n", number % 2)
            .expect("open");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.contains(" 200"), "{answer}");
    }
    let half = REQUESTS as u64 / 2;
    wait_until("all requests are decided on", || {
        engine.metric("receiver.sampling", "records_dropped_trace_flag") == half
            && engine.metric("receiver.sampling", "records_kept") >= half
    });
    let _ = process.terminate(PATIENCE);
    let stopped = engine.stop();
    let caught = sink.stop();
    // HAProxy tells of itself as well, such as that it goes.
    let kept = caught.logs;
    let line = stopped.expect_clean().node("edge/in").clone();
    assert_eq!((line.received, line.sent, line.dropped), (Some(kept + half), kept, half), "{line:?}");
    assert_eq!((line.reason("sampled out by trace_flag"), line.note("acknowledged")), (half, kept), "{line:?}");
    let mut numbers = Vec::new();
    for record in &caught.records {
        assert!(record["attributes"]["sampling.adjusted_count"].is_null(), "kept ones stand for themselves: {record}");
        let Some(number) = record["attributes"]["syslog.structured_data"]["http@32473"]["number"].as_str() else {
            continue;
        };
        let Ok(number) = number.parse::<usize>() else { continue };
        let (trace, span) = trace(number);
        assert_eq!((record["trace_id"].as_str(), record["span_id"].as_str()), (Some(&*trace), Some(&*span)));
        assert_eq!(record["flags"], 1, "{record}");
        numbers.push(number);
    }
    numbers.sort_unstable();
    assert!(numbers.iter().copied().eq((0..REQUESTS).filter(|number| number % 2 == 1)), "{numbers:?}");
}

/// A tenth of the lines of a program, by TCP: the count and the quantiles that leave the process are those of all lines.
#[test]
fn quantiles_of_a_tenth() {
    const LINES: u32 = 20_000;
    let scene = Scene::new();
    let mut sink = Sink::start(&scene);
    let quantile = r#"          quantile:
            type: urn:catchment:processor:quantile
            config:
              k: 1000
              quantiles: [0.5, 0.9]
              window: {tumbling: 1h, clock: observed_time}
              measures:
                - name: took
                  value_from: attribute:syslog.structured_data/x@1/ms
                  text: number
                  weight_from: attribute:sampling.adjusted_count"#;
    let yaml = syslog("[{ratio: 0.1}]", quantile, "{from: in, to: quantile}, {from: quantile, to: otap}");
    let engine = Engine::start(&scene, &yaml, &[("sink", sink.otap())]);
    engine.wait_listening("in");
    let mut stream = TcpStream::connect(engine.address("in")).expect("it listens");
    for number in 0..LINES {
        // Each duration from 0 to 19,999 once, in no order.
        let ms = number * 7_919 % LINES;
        writeln!(stream, "<14>1 2026-11-30T10:00:00Z h a - - [x@1 ms=\"{ms}\"] done").expect("open");
    }
    drop(stream);
    wait_until("all lines are decided on", || engine.metric("receiver.sampling", "records_seen") == u64::from(LINES));
    let stopped = engine.stop();
    sink.wait_for(3);
    let caught = sink.stop();
    let report = stopped.expect_clean();
    let line = report.node("edge/in");
    assert_eq!(line.received, Some(u64::from(LINES)), "{line:?}");
    assert_eq!(line.dropped, line.reason("sampled out by ratio"), "{line:?}");
    assert_eq!(report.node("edge/quantile").received, Some(line.sent));
    // The window may have been cut in two by the hour.
    let points = |name: &str| caught.records.iter().filter(move |point| point["name"] == name).collect::<Vec<_>>();
    let value = |point: &Value| point["value"].as_f64().expect("a number");
    let count: f64 = points("took.count").into_iter().map(value).sum();
    let all = f64::from(LINES);
    assert!((count - all).abs() <= 4.0 * (all * 9.0).sqrt(), "{count} of {LINES}");
    for q in [0.5_f64, 0.9] {
        // Four standard deviations of 2,000 values, and the error of the sketch.
        let bound = 4.0 * (q * (1.0 - q) / 2_000.0).sqrt() + 0.005;
        let key = q.to_string();
        let found = caught.records.iter().filter(|point| point["attributes"]["quantile"] == key.as_str());
        let ranks: Vec<f64> = found.map(|point| value(point) / all).collect();
        assert!(!ranks.is_empty() && ranks.iter().all(|rank| (rank - q).abs() <= bound), "{q}: {ranks:?}");
    }
}

/// Flow records, decoded in the receiver or behind it: templates in messages whose records are dropped are learned, sequence
/// numbers are followed, each record is counted once, and the weights add up to the whole.
#[test]
fn flow_records() {
    const MESSAGES: u32 = 400;
    const EACH: u32 = 20;
    let all = u64::from(MESSAGES * EACH);
    for emit in ["records", "encoded"] {
        let scene = Scene::new();
        let sampling = "sampling: {seed: 3, policies: [{ratio: 0.25}]}, packet_sampling: apply";
        let flows = Flows::start(&scene, &format!("{}, emit: {emit}, {sampling}", Flows::UDP));
        let exporter = socket_on(1);
        for number in 0..MESSAGES {
            let content = (0..EACH).flat_map(|record| {
                let octets = number * EACH + record;
                [&[10, 0, 0, 1][..], &octets.to_be_bytes(), &100u32.to_be_bytes()].concat()
            });
            let data = (256, content.collect());
            // Address, octets, and the exporter's own sampling: one packet in 100.
            let sets = if number == 0 { vec![template(256, &[(8, 4), (1, 4), (34, 4)]), data] } else { vec![data] };
            send(&exporter, flows.address(), &message(number * EACH, 9, &sets));
        }
        wait_until("all is read", || flows.metric("datagrams_received") == u64::from(MESSAGES));
        wait_until("all is decided on", || flows.engine.metric("receiver.sampling", "records_seen") == all);
        assert_eq!((flows.metric("records_received"), flows.metric("lost_records")), (all, 0));
        let of_exporter = |field: &str| {
            let values = flows.engine.measurements("receiver.ipfix.exporter", field);
            let of_it = values.iter().filter(|(attributes, _)| attributes["exporter"] == "127.0.0.1");
            of_it.map(|(_, value)| value).sum::<u64>()
        };
        wait_until("all are counted by exporter", || of_exporter("records") == all);
        let dropped = flows.engine.metric("receiver.sampling", "records_dropped_ratio");
        wait_until("dropped ones too", || of_exporter("records_sampled_out") == dropped);
        let Flows { engine, mut sink } = flows;
        let kept = all - engine.metric("receiver.sampling", "records_dropped_ratio");
        sink.wait_for(usize::try_from(kept).expect("a count"));
        let stopped = engine.stop();
        let caught = sink.stop();
        let line = stopped.expect_clean().node("edge/flows").clone();
        assert_eq!((line.received, line.sent, line.note("acknowledged")), (Some(all), kept, kept), "{line:?}");
        assert_eq!(line.reason("sampled out by ratio"), all - kept, "{line:?}");
        assert_eq!(caught.logs, kept);
        let mut sum = 0.0;
        for record in &caught.records {
            let attributes = &record["attributes"];
            assert_eq!(attributes["sampling.threshold"], "c", "{record}");
            // Both samplings are told, and only that of packets is applied.
            assert_eq!(attributes["flow.sampling_rate"], 100, "{record}");
            assert_eq!(attributes["flow.io.bytes"].as_u64().map(|octets| octets % 100), Some(0), "{record}");
            sum += attributes["sampling.adjusted_count"].as_f64().expect("a weight");
        }
        let sigma = (all as f64 * 3.0).sqrt();
        assert!((sum - all as f64).abs() <= 4.0 * sigma, "{emit}: {sum} of {all}");
    }
}
