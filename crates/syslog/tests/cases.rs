//! Runs every case of `tests/data/cases.ndjson` through framing and parser.
#![allow(clippy::unwrap_used, reason = "test code; clippy exempts only the test functions themselves")]

use std::str::FromStr;

use catchment_syslog::{
    Cef, Framer, FramerOptions, Framing, FramingError, Receipt, Record, Step, StructuredData, Zone, framing, parse,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
struct Case {
    id: String,
    level: String,
    input: Option<String>,
    input_b64: Option<String>,
    framing: String,
    #[serde(default)]
    chunk_sizes: Vec<usize>,
    received_at: String,
    timezone: String,
    #[serde(default)]
    config: Config,
    expect: Map<String, Value>,
    #[serde(default)]
    accept: Vec<Map<String, Value>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Config {
    max_message_size: Option<usize>,
}

/// Every case passes, whatever its level, and for streams however the stream is cut.
#[test]
fn all_cases_pass() {
    let mut failures = Vec::new();
    let mut count = 0;
    for line in include_str!("data/cases.ndjson").lines() {
        let case: Case = serde_json::from_str(line).unwrap();
        count += 1;
        if let Err(reason) = run(&case) {
            failures.push(format!("{} ({}): {reason}", case.id, case.level));
        }
    }
    assert!(count > 100, "only {count} cases");
    assert!(failures.is_empty(), "{} of {count} fail:\n{}", failures.len(), failures.join("\n"));
}

fn run(case: &Case) -> Result<(), String> {
    let input = match (&case.input, &case.input_b64) {
        (Some(text), None) => text.clone().into_bytes(),
        (None, Some(text)) => base64(text),
        _ => return Err("needs exactly one of input and input_b64".to_owned()),
    };
    let zone = Zone::from_str(&case.timezone).map_err(|error| error.to_string())?;
    let time_unix_nano = unix_nano(&case.received_at);
    let receipt = Receipt { time_unix_nano, zone: &zone };

    let mut results = Vec::new();
    if case.framing == "datagram" {
        results.push(to_json(&parse(framing::datagram(&input), &receipt), false));
    } else {
        for chunk_sizes in [&case.chunk_sizes[..], &[1], &[usize::MAX], &[7, 3]] {
            results.push(stream(case, &input, chunk_sizes, &receipt));
        }
    }
    for actual in results {
        let mut alternatives = vec![case.expect.clone()];
        for replaced in &case.accept {
            let mut alternative = case.expect.clone();
            alternative.extend(replaced.clone());
            alternatives.push(alternative);
        }
        let reasons: Vec<_> = alternatives.iter().map(|expect| compare(expect, &actual)).collect();
        if !reasons.iter().any(Vec::is_empty) {
            return Err(reasons[0].join("; "));
        }
    }
    Ok(())
}

/// What a whole connection gives, arriving in chunks.
fn stream(case: &Case, input: &[u8], chunk_sizes: &[usize], receipt: &Receipt<'_>) -> Value {
    let framing = match case.framing.as_str() {
        "auto" => Framing::Auto,
        "newline" => Framing::Newline,
        "octet_counting" => Framing::OctetCounting,
        "nul" => Framing::Nul,
        other => panic!("unknown framing {other}"),
    };
    let defaults = FramerOptions::default();
    let max_message_size = case.config.max_message_size.unwrap_or(defaults.max_message_size);
    let mut framer = Framer::new(FramerOptions { framing, max_message_size, ..defaults });
    let mut sizes =
        chunk_sizes.iter().copied().chain(std::iter::repeat(chunk_sizes.last().copied().unwrap_or(usize::MAX)));
    let (mut records, mut errors, mut closed) = (Vec::new(), 0, false);
    let (mut buffer, mut rest) = (Vec::new(), input);
    loop {
        match framer.next(&buffer, rest.is_empty()) {
            Step::Frame { message, consumed, truncated } => {
                records.push(to_json(&parse(message, receipt), truncated));
                buffer.drain(..consumed);
            }
            Step::Skip { consumed, error } => {
                assert!(consumed > 0, "a skip must move on");
                errors += usize::from(error.is_some());
                buffer.drain(..consumed);
            }
            Step::Error { error, .. } => {
                errors += 1;
                closed = !matches!(error, FramingError::UnexpectedEnd { .. });
                break;
            }
            Step::NeedMore if rest.is_empty() => break,
            Step::NeedMore => {
                let (chunk, later) = rest.split_at(sizes.next().unwrap().min(rest.len()));
                buffer.extend_from_slice(chunk);
                rest = later;
            }
        }
    }
    json!({ "records": records, "closed_by_receiver": closed, "errors": errors })
}

fn compare(expect: &Map<String, Value>, actual: &Value) -> Vec<String> {
    let mut reasons = Vec::new();
    for (key, wanted) in expect {
        let got = &actual[key];
        match (key.as_str(), wanted) {
            ("timestamp_note", _) | ("closed_by_receiver", Value::Null) => {}
            ("timestamp", Value::String(text)) if *got == json!(unix_nano(text)) => {}
            ("timestamp", Value::String(text)) => reasons.push(format!("timestamp: wanted {text}, got {got}")),
            ("records", Value::Array(wanted)) => {
                let got = got.as_array().unwrap();
                if got.len() != wanted.len() {
                    reasons.push(format!("wanted {} records, got {got:?}", wanted.len()));
                }
                for (wanted, got) in wanted.iter().zip(got) {
                    reasons.extend(compare(wanted.as_object().unwrap(), got));
                }
            }
            _ if got != wanted => reasons.push(format!("{key}: wanted {wanted}, got {got}")),
            _ => {}
        }
    }
    reasons
}

fn to_json(record: &Record<'_>, truncated: bool) -> Value {
    json!({
        "format": record.format.as_str(),
        "facility": record.facility,
        "severity": record.severity,
        "version": record.version,
        "timestamp": record.time_unix_nano,
        "hostname": record.hostname.map(text),
        "app_name": record.app_name.map(text),
        "proc_id": record.proc_id.map(text),
        "msg_id": record.msg_id.map(text),
        "structured_data": record.structured_data.map(|data| structured_data_json(&data)),
        "message": record.message.map(text),
        "cef": record.cef.map(|cef| cef_json(&cef)),
        "fully_parsed": record.fully_parsed,
        "truncated": truncated,
    })
}

fn structured_data_json(data: &StructuredData<'_>) -> Value {
    let mut elements = Map::new();
    for element in data.elements() {
        let params = elements.entry(text(element.id())).or_insert_with(|| json!({}));
        let params = params.as_object_mut().unwrap();
        for (name, value) in element.params() {
            let value = json!(text(&value));
            match params.get_mut(&text(name)) {
                None => drop(params.insert(text(name), value)),
                Some(Value::Array(list)) => list.push(value),
                Some(first) => *first = json!([first.clone(), value]),
            }
        }
    }
    Value::Object(elements)
}

fn cef_json(cef: &Cef<'_>) -> Value {
    let extensions: Map<_, _> = cef.extensions().map(|(key, value)| (text(key), json!(text(&value)))).collect();
    json!({
        "version": cef.version(),
        "device_vendor": text(&cef.device_vendor()),
        "device_product": text(&cef.device_product()),
        "device_version": text(&cef.device_version()),
        "device_event_class_id": text(&cef.device_event_class_id()),
        "name": text(&cef.name()),
        "severity": text(&cef.severity()),
        "extensions": extensions,
    })
}

fn unix_nano(text: &str) -> i64 {
    let instant: jiff::Timestamp = text.parse().unwrap();
    i64::try_from(instant.as_nanosecond()).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Decodes standard Base64.
fn base64(text: &str) -> Vec<u8> {
    let (mut out, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => panic!("not Base64: {text}"),
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}
