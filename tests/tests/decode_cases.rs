//! `catchment decode syslog` on every case of the syslog parser.

use std::process::Command;

use catchment_tests::{Case, Scene, cases, catchment, run_with_input};
use serde_json::{Map, Value, json};

/// A run of the program on one case.
struct Decoded {
    records: Vec<Value>,
    errors: usize,
    /// The stream could not be read to its end.
    closed: bool,
}

fn decode(case: &Case, more: &[&str]) -> Decoded {
    let mut command: Command = catchment();
    let _ = command.args(["decode", "syslog", "--framing", case.text("framing"), "--tz", case.text("timezone")]);
    let _ = command.args(["--now", case.text("received_at")]).args(more);
    if let Some(size) = case.keys["config"]["max_message_size"].as_u64() {
        let _ = command.args(["--max-message-size", &size.to_string()]);
    }
    let ended = run_with_input(&mut command, &case.input);
    assert!(matches!(ended.code, Some(0 | 1)), "{}: {}", case.text("id"), ended.stderr);
    let of_records = ["raw message is kept", "max-message-size"];
    let of_framing = |line: &&str| line.starts_with("offset ") && !of_records.iter().any(|part| line.contains(part));
    Decoded {
        records: ended.stdout.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect(),
        errors: ended.stderr.lines().filter(of_framing).count(),
        closed: ended.stderr.contains("the rest of the stream cannot be read")
            && !ended.stderr.contains("stream ends inside"),
    }
}

/// Names of the attributes of a schema.
struct Names {
    host: &'static [&'static str],
    app: &'static [&'static str],
    proc_id: &'static [&'static str],
    msg_id: &'static str,
    text: &'static [&'static str],
    raw: &'static str,
}

/// What holds in the record of the JSON pointers: the first that is there.
fn first(record: &Value, pointers: &[&str]) -> Value {
    pointers
        .iter()
        .filter_map(|pointer| record.pointer(pointer))
        .find(|value| !value.is_null())
        .cloned()
        .unwrap_or_default()
}

const UPSTREAM: Names = Names {
    host: &["/attributes/syslog.host_name"],
    app: &["/attributes/syslog.app_name"],
    proc_id: &["/attributes/syslog.process_id_str", "/attributes/syslog.process_id"],
    msg_id: "/attributes/syslog.msg_id",
    text: &["/attributes/syslog.message", "/attributes/syslog.content"],
    raw: "/body",
};

const OTEL: Names = Names {
    host: &["/resource/host.name"],
    app: &["/resource/service.name"],
    proc_id: &["/attributes/syslog.procid"],
    msg_id: "/attributes/syslog.msgid",
    text: &["/body"],
    raw: "/attributes/log.record.original",
};

/// The record in the words of the cases.
fn in_words_of_cases(record: &Value, names: &Names) -> Map<String, Value> {
    let number_as_text = |value: Value| if value.is_number() { json!(value.to_string()) } else { value };
    let attributes = record["attributes"].as_object().expect("attributes");
    let severity = match attributes.get("syslog.severity") {
        Some(severity) => severity.clone(),
        None => record["severity_number"].as_u64().map_or(Value::Null, |number| {
            json!([21, 19, 18, 17, 13, 10, 9, 5].iter().position(|known| *known == number))
        }),
    };
    let format = attributes["input.format"].as_str().expect("always there");
    let words = json!({
        "format": format,
        "facility": attributes.get("syslog.facility"),
        "severity": severity,
        "version": attributes.get("syslog.version"),
        "timestamp": record["time"],
        "hostname": first(record, names.host),
        "app_name": first(record, names.app),
        "proc_id": number_as_text(first(record, names.proc_id)),
        "msg_id": first(record, &[names.msg_id]),
        "structured_data": attributes.get("syslog.structured_data"),
        "message": first(record, names.text),
        "cef": if format.starts_with("cef") { cef(attributes) } else { Value::Null },
        "fully_parsed": record.pointer(names.raw).is_none_or(Value::is_null),
        "truncated": attributes.get("syslog.truncated").is_some(),
    });
    words.as_object().cloned().unwrap_or_default()
}

fn cef(attributes: &Map<String, Value>) -> Value {
    let own = ["input.", "syslog.", "cef.", "network.", "log.record."];
    let extensions: Map<String, Value> = attributes
        .iter()
        .filter_map(|(key, value)| match key.strip_prefix("cef.ext.") {
            Some(key) => Some((key.to_owned(), value.clone())),
            None => (!own.iter().any(|own| key.starts_with(own))).then(|| (key.clone(), value.clone())),
        })
        .collect();
    let mut cef = Map::from_iter([("extensions".to_owned(), Value::Object(extensions))]);
    for field in
        ["version", "device_vendor", "device_product", "device_version", "device_event_class_id", "name", "severity"]
    {
        let _ = cef.insert(field.to_owned(), attributes.get(&format!("cef.{field}")).cloned().unwrap_or_default());
    }
    Value::Object(cef)
}

/// What differs from one expected record.
fn differences(expect: &Map<String, Value>, found: &Map<String, Value>) -> Vec<String> {
    let instant = |value: &Value| value.as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    expect
        .iter()
        .filter(|(key, _)| *key != "timestamp_note")
        .filter(|(key, wanted)| match (key.as_str(), found.get(*key).unwrap_or(&Value::Null)) {
            ("timestamp", found) => instant(found) != instant(wanted),
            (_, found) => found != *wanted,
        })
        .map(|(key, wanted)| format!("{key}: expected {wanted}, found {:?}", found.get(key)))
        .collect()
}

/// What differs from one answer to a case.
fn differences_of_run(answer: &Map<String, Value>, run: &Decoded, names: &Names) -> Vec<String> {
    let found: Vec<_> = run.records.iter().map(|record| in_words_of_cases(record, names)).collect();
    let Some(records) = answer.get("records").and_then(Value::as_array) else {
        return match &found[..] {
            [one] => differences(answer, one),
            several => vec![format!("{} records of one message", several.len())],
        };
    };
    let mut all = Vec::new();
    if records.len() != found.len() {
        all.push(format!("expected {} records, found {found:?}", records.len()));
    }
    for (expect, found) in records.iter().zip(&found) {
        all.extend(differences(expect.as_object().expect("a record"), found));
    }
    if answer.get("errors").and_then(Value::as_u64).is_some_and(|errors| errors != run.errors as u64) {
        all.push(format!("errors: expected {}, found {}", answer["errors"], run.errors));
    }
    if answer.get("closed_by_receiver").and_then(Value::as_bool).is_some_and(|closed| closed != run.closed) {
        all.push(format!("closed: expected {}", answer["closed_by_receiver"]));
    }
    all
}

fn assert_all(cases: &[Case], more: &[&str], names: &Names) {
    let mut failures = Vec::new();
    for case in cases {
        let run = decode(case, more);
        let reasons: Vec<_> = case.answers().iter().map(|answer| differences_of_run(answer, &run, names)).collect();
        if !reasons.iter().any(Vec::is_empty) {
            failures.push(format!("{}: {}", case.text("id"), reasons[0].join("; ")));
        }
    }
    assert!(failures.is_empty(), "{} of {} fail:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

/// Every case, field by field, under the names of the engine's own receiver.
#[test]
fn all_cases() {
    let _scene = Scene::new();
    let cases = cases();
    assert!(cases.len() > 100, "only {}", cases.len());
    assert_all(&cases, &[], &UPSTREAM);
}

/// The same under the names of OpenTelemetry's data model, with structured data as a map to compare it.
#[test]
fn all_cases_in_the_otel_schema() {
    let _scene = Scene::new();
    assert_all(&cases(), &["--schema", "otel", "--structured-data", "map"], &OTEL);
}
