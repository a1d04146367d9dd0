//! The same messages in every form that batches leave the syslog receiver in, through every node that may stand behind
//! it: always the same records, which are those that `catchment decode` prints.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpStream;

use catchment_tests::{Behind, Corpus, Engine, Scene, Sink, carried, comparable, wait_until};
use serde_json::{Value, json};

/// All of it comes through `behind` as it is decoded.
fn assert_carried(settings: &str, behind: &Behind, decode: &[&str]) {
    let corpus = Corpus::new();
    let expected = corpus.decoded(decode);
    let (found, _) = carried(&corpus, settings, behind, expected.len());
    assert_same(&found, &expected);
}

fn assert_same(found: &[Value], expected: &[Value]) {
    let differs = found.iter().zip(expected).find(|(found, expected)| found != expected);
    assert!(differs.is_none(), "found and expected: {differs:#?}");
    assert_eq!(found.len(), expected.len());
}

/// The part of `expected` that a condition on the severity lets pass.
fn above(expected: Vec<Value>, least: u64) -> Vec<Value> {
    expected
        .into_iter()
        .filter(|record| record["severity_number"].as_u64().is_some_and(|number| number >= least))
        .collect()
}

/// Decoded by the receiver, ids as plain numbers.
#[test]
fn plain_ids() {
    assert_carried(", parent_ids: plain", &Behind::new().otap(), &[]);
}

/// Merged and cut by the batch processor, which does not understand ids in transport encoding.
#[test]
fn batch() {
    assert_carried("", &Behind::new().batch().otap(), &[]);
}

/// Ids in transport encoding, which the program chooses for this node and those of the tests below.
#[test]
fn otap_alone() {
    assert_carried("", &Behind::new().otap(), &[]);
    assert_carried(", parent_ids: transport", &Behind::new().otap(), &[]);
}

/// Merged and not cut: without a largest size the batch processor decodes ids before anything else.
#[test]
fn batch_that_only_merges() {
    let behind = |config: &str| Behind::new().node("batch", "processor:batch", config).otap();
    for config in [
        "config: {format: otap, otap: {min_size: 250, sizer: items}, max_batch_duration: 100ms}",
        "config: {otap: {min_size: 1, sizer: items}, max_batch_duration: 100ms}",
        "config: {max_batch_duration: 100ms}",
    ] {
        assert_carried("", &behind(config), &[]);
        assert_carried(", parent_ids: transport", &behind(config), &[]);
        assert_carried(", parent_ids: transport, schema: otel", &behind(config), &["--schema", "otel"]);
    }
}

/// The batch processor that gives OTLP.
#[test]
fn batch_of_otlp() {
    let config =
        "config: {format: otlp, otlp: {min_size: 60000, max_size: 80000, sizer: bytes}, max_batch_duration: 100ms}";
    assert_carried("", &Behind::new().node("batch", "processor:batch", config).otlp(), &[]);
}

/// A batch processor that passes on what comes.
#[test]
fn batch_of_any_format() {
    let config =
        "config: {format: preserve, otap: {min_size: 250, max_size: 333, sizer: items}, max_batch_duration: 100ms}";
    assert_carried("", &Behind::new().node("batch", "processor:batch", config).otap(), &[]);
}

/// It has to undo the transport encoding, so the program does not choose it for this node alone, but it does beside others.
#[test]
fn otlp_grpc() {
    assert_carried("", &Behind::new().otlp(), &[]);
    assert_carried(", parent_ids: transport", &Behind::new().otlp(), &[]);
}

/// Over OTLP/HTTP to the engine's own receiver, and from there to the sink.
#[test]
fn otlp_http() {
    let backend = r#"      backend:
        nodes:
          http:
            type: receiver:otlp
            config: {protocols: {http: {listening_addr: "127.0.0.1:@http@", wait_for_result: true}}}
          otlp:
            type: exporter:otlp_grpc
            config: {grpc_endpoint: "http://127.0.0.1:@otlp@"}
        connections: [{from: http, to: otlp}]
"#;
    let config = "config: {endpoint: \"http://127.0.0.1:@http@\", client_pool_size: 1, http: {}}";
    let retry = "config: {initial_interval: 100ms, max_interval: 1s, max_elapsed_time: 30s}";
    let behind = Behind::new().node("retry", "processor:retry", retry).node("http", "exporter:otlp_http", config);
    let behind = behind.pipeline(backend);
    assert_carried("", &behind, &[]);
    assert_carried(", parent_ids: transport", &behind, &[]);
}

/// The filter that lets everything pass, and one that takes records out of the middle of batches.
#[test]
fn filter() {
    let corpus = Corpus::new();
    let expected = corpus.decoded(&[]);
    let all = Behind::new().node("filter", "processor:filter", "config: {logs: {}}").otap();
    assert_same(&carried(&corpus, "", &all, expected.len()).0, &expected);
    let some = "config: {logs: {include: {match_type: strict, severity_number: {min: 10, match_undefined: false}}}}";
    let expected_some = above(expected.clone(), 10);
    assert!((100..expected.len() - 100).contains(&expected_some.len()), "{}", expected_some.len());
    let behind = Behind::new().node("filter", "processor:filter", some).otap();
    assert_same(&carried(&corpus, "", &behind, expected_some.len()).0, &expected_some);
    // With a batch processor behind, what is left of batches is merged.
    let behind = Behind::new().node("filter", "processor:filter", some).batch().otap();
    assert_same(&carried(&corpus, "", &behind, expected_some.len()).0, &expected_some);
}

/// A filter on attributes: it has to know whose they are.
#[test]
fn filter_by_attribute() {
    let corpus = Corpus::new();
    let of_format = |record: &Value| record["attributes"]["input.format"] == "rfc5424";
    let expected: Vec<_> = corpus.decoded(&[]).into_iter().filter(of_format).collect();
    let some =
        "config: {logs: {include: {match_type: strict, record_attributes: [{key: input.format, value: rfc5424}]}}}";
    let behind = Behind::new().node("filter", "processor:filter", some).otap();
    assert_same(&carried(&corpus, "", &behind, expected.len()).0, &expected);
}

/// All of it, and every third record: those that come are whole.
#[test]
fn log_sampling() {
    let all = "config: {policy: {ratio: {emit: 1, out_of: 1}}}";
    assert_carried("", &Behind::new().node("sampling", "processor:log_sampling", all).otap(), &[]);
    let corpus = Corpus::new();
    let mut expected = corpus.decoded(&[]).into_iter();
    let third = "config: {policy: {ratio: {emit: 1, out_of: 3}}}";
    let behind = Behind::new().node("sampling", "processor:log_sampling", third).otap();
    let (found, _) = carried(&corpus, "", &behind, corpus.count().div_ceil(3));
    // Both are sorted.
    for record in &found {
        assert!(expected.any(|expected| expected == *record), "no such record: {record}");
    }
}

#[test]
fn retry() {
    let config = "config: {initial_interval: 100ms, max_interval: 1s, max_elapsed_time: 30s}";
    assert_carried("", &Behind::new().node("retry", "processor:retry", config).otap(), &[]);
}

/// Everything to two exporters: each record comes twice.
#[test]
fn fanout() {
    let corpus = Corpus::new();
    let expected: Vec<_> = corpus.decoded(&[]).into_iter().flat_map(|record| [record.clone(), record]).collect();
    let config = "outputs: [a, b], config: {mode: parallel, await_ack: all, destinations: [{port: a, primary: true}, {port: b}]}";
    let behind = Behind::new()
        .node("fanout", "processor:fanout", config)
        .branch("fanout[\"a\"]", "otlp", "exporter:otlp_grpc", "config: {grpc_endpoint: \"http://127.0.0.1:@otlp@\"}")
        .branch("fanout[\"b\"]", "otap", "exporter:otap", "config: {grpc_endpoint: \"http://127.0.0.1:@otap@\"}");
    assert_same(&carried(&corpus, "", &behind, expected.len()).0, &expected);
}

#[test]
fn type_router() {
    let behind = Behind::new().node("router", "processor:type_router", "outputs: [logs], config: {}").branch(
        "router[\"logs\"]",
        "otap",
        "exporter:otap",
        "config: {grpc_endpoint: \"http://127.0.0.1:@otap@\"}",
    );
    assert_carried("", &behind, &[]);
}

/// Counts of the quantile processor by an attribute: each record is in the series of its own.
#[test]
fn quantile() {
    let corpus = Corpus::new();
    let config = "config: {window: {count: 1000000}, measures: [{name: f, value_from: \"attribute:syslog.facility\", group_by: [input.format]}]}";
    let behind = Behind::new().node("quantile", "urn:catchment:processor:quantile", config).otap();
    let mut expected = BTreeMap::<String, f64>::new();
    for record in corpus.decoded(&[]) {
        if record["attributes"]["syslog.facility"].is_number() {
            let format = record["attributes"]["input.format"].as_str().expect("always there");
            *expected.entry(format.to_owned()).or_default() += 1.0;
        }
    }
    let found: BTreeMap<_, _> = points(&corpus, &behind)
        .into_iter()
        .filter(|point| point["name"] == "f.count")
        .map(|point| {
            let format = point["attributes"]["input.format"].as_str().expect("the series").to_owned();
            (format, point["value"].as_f64().expect("a number"))
        })
        .collect();
    assert_eq!(found, expected);
}

/// The points that the corpus gives; the window closes when the engine stops.
fn points(corpus: &Corpus, behind: &Behind) -> Vec<Value> {
    let scene = Scene::new();
    let sink = Sink::start(&scene);
    let engine = Engine::start(&scene, &behind.yaml(""), &[("otap", sink.otap())]);
    let mut stream = TcpStream::connect(engine.address("syslog")).expect("a connection");
    stream.write_all(&corpus.stream()).expect("it is read");
    let all = corpus.count() as u64;
    wait_until("all is sent", || engine.metric("receiver.syslog", "messages_sent") == all);
    let stopped = engine.stop();
    let line = stopped.expect_clean().node("edge/syslog");
    assert_eq!((line.received, line.note("acknowledged")), (Some(all), all), "{line:?}");
    sink.stop().records
}

/// The engine's console, which reads ids as plain numbers, gets them so.
#[test]
fn console() {
    let corpus = Corpus::new();
    let expected = corpus.decoded(&[]);
    let console = "config: {format: record_json, record_json: {resource: true}}";
    let behind = Behind::new().node("console", "exporter:console", console);
    let (_, stopped) = carried(&corpus, "", &behind, 0);
    let mut found: Vec<Value> = Vec::new();
    for line in stopped.ended.stdout.lines() {
        let record: Value = serde_json::from_str(line).expect("each line is JSON");
        found.push(json!({"attributes": record["attributes"], "body": record["body"], "trace_id": record["trace_id"]}));
    }
    let expected = expected.iter().map(
        |record| json!({"attributes": record["attributes"], "body": record["body"], "trace_id": record["trace_id"]}),
    );
    assert_same(&comparable(found), &comparable(expected.collect()));
}

/// Batches of encoded messages are decoded by whoever needs it: the same records.
#[test]
fn encoded_through_batch() {
    assert_carried(", emit: encoded", &Behind::new().batch().otap(), &[]);
}

#[test]
fn encoded_to_otlp_grpc() {
    assert_carried(", emit: encoded", &Behind::new().otlp(), &[]);
}

#[test]
fn encoded_to_otap() {
    assert_carried(", emit: encoded", &Behind::new().otap(), &[]);
}

/// The names of OpenTelemetry's data model, with resources, in each form.
#[test]
fn schema_otel() {
    let decode = ["--schema", "otel"];
    assert_carried(", schema: otel", &Behind::new().batch().otap(), &decode);
    assert_carried(", schema: otel, emit: encoded", &Behind::new().batch().otap(), &decode);
    assert_carried(", schema: otel", &Behind::new().otlp(), &decode);
}

/// Settings of the columns hold for encoded batches as well.
#[test]
fn encoded_with_other_columns() {
    let settings = ", emit: encoded, structured_data: flat, cef_extension_prefix: \"x.\", non_utf8: bytes";
    let decode = ["--structured-data", "flat", "--cef-extension-prefix", "x.", "--non-utf8", "bytes"];
    assert_carried(settings, &Behind::new().batch().otap(), &decode);
    assert_carried(&settings.replace(", emit: encoded", ""), &Behind::new().batch().otap(), &decode);
}
