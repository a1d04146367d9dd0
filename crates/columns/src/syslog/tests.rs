//! Messages through the job and back out as JSON.

use std::sync::Arc;

use catchment_syslog::Zone;
use serde_json::{Value, json};

use super::*;
use crate::{Budget, Job, Step, json as records_json};

/// 2026-11-30T12:00:00Z.
const NOON: i64 = 1_796_040_000_000_000_000;

fn batch(lines: &[&[u8]]) -> SyslogBatch {
    let peer = Some("192.0.2.7:40000".parse().expect("address"));
    let source = Arc::new(Source::new(peer, Transport::Udp, Arc::new(Zone::Utc)));
    let mut batch = SyslogBatch::new();
    for line in lines {
        batch.push(line, &source, Receipt { time_unix_nano: NOON, truncated: false });
    }
    batch
}

fn objects(batch: SyslogBatch, options: RowOptions) -> Vec<Value> {
    let mut out = Vec::new();
    for records in SyslogJob::new(batch, options).run().expect("decoded") {
        records_json::objects(&records, |object| out.push(object)).expect("readable");
    }
    out
}

fn one(line: &[u8], options: RowOptions) -> Value {
    let mut all = objects(batch(&[line]), options);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Every column of an RFC 5424 line, structured data as map of maps with repeated parameters as list.
#[test]
fn rfc5424_fills_every_column() {
    let line = br#"<165>1 2026-11-30T10:31:00.456Z host app 1234 ID1 [a@1 x="1" x="2" y="q\"q"][b@1] hello"#;
    let object = one(line, RowOptions::default());
    assert_eq!(object["time"], "2026-11-30T10:31:00.456000000Z");
    assert_eq!(object["observed_time"], "2026-11-30T12:00:00.000000000Z");
    assert_eq!(object["severity_number"], 10);
    assert_eq!(object["body"], Value::Null);
    assert_eq!(
        object["attributes"],
        json!({
            "input.format": "rfc5424", "syslog.facility": 20, "syslog.severity": 5, "syslog.version": 1,
            "syslog.host_name": "host", "syslog.app_name": "app", "syslog.process_id": 1234,
            "syslog.process_id_str": "1234", "syslog.msg_id": "ID1",
            "syslog.structured_data": {"a@1": {"x": ["1", "2"], "y": "q\"q"}, "b@1": {}},
            "syslog.message": "hello", "network.peer.address": "192.0.2.7", "network.peer.port": 40000,
            "network.transport": "udp",
        })
    );
}

/// The two other forms of structured data.
#[test]
fn structured_data_as_text_and_flat() {
    let line = br#"<14>1 - - - - - [a@1 x="1"][a@1 x="2" y="3"] m"#;
    let form = |structured_data| one(line, RowOptions { structured_data, ..RowOptions::default() });
    assert_eq!(
        form(StructuredDataForm::Text)["attributes"]["syslog.structured_data"],
        r#"[a@1 x="1"][a@1 x="2" y="3"]"#
    );
    let flat = form(StructuredDataForm::Flat);
    assert_eq!(flat["attributes"]["syslog.structured_data.a@1.x"], json!(["1", "2"]));
    assert_eq!(flat["attributes"]["syslog.structured_data.a@1.y"], "3");
}

/// Many parameters or elements, repeated or not, give the same map as few do.
#[test]
fn large_structured_data_keeps_every_value() {
    let params: String = (0..40).map(|i| format!(r#" p{}="{i}""#, i % 30)).collect();
    let elements: String = (0..20).map(|i| format!("[e{i}@1 n=\"{i}\"]")).collect();
    let line = format!("<14>1 - - - - - [a@1{params}]{elements} m");
    let data = &one(line.as_bytes(), RowOptions::default())["attributes"]["syslog.structured_data"];
    assert_eq!(data["a@1"]["p3"], json!(["3", "33"]));
    assert_eq!(data["a@1"]["p29"], "29");
    assert_eq!(data["e19@1"]["n"], "19");
    assert_eq!(data.as_object().map(serde_json::Map::len), Some(21));
}

/// Of many CEF pairs, as of few, the last of each key is kept, in order.
#[test]
fn many_cef_pairs_keep_the_last_of_each_key() {
    let pairs: String = (0..50).map(|i| format!("k{}={i} ", i % 40)).collect();
    let attributes = &one(format!("CEF:0|v|p|1|id|n|5|{pairs}").as_bytes(), RowOptions::default())["attributes"];
    assert_eq!((&attributes["k3"], &attributes["k39"]), (&json!("43"), &json!("39")));
}

/// Names that would come out the same share one attribute, and an empty element leaves a trace.
#[test]
fn flat_names_are_unique() {
    let options = RowOptions { structured_data: StructuredDataForm::Flat, ..RowOptions::default() };
    let object = one(br#"<14>1 - - - - - [a.b c="1"][a b.c="2"][e] m"#, options);
    assert_eq!(object["attributes"]["syslog.structured_data.a.b.c"], json!(["1", "2"]));
    assert_eq!(object["attributes"]["syslog.structured_data.e"], "");
}

/// A key of a device never passes for one of the receiver, and the last of two equal keys wins.
#[test]
fn cef_keys_cannot_overwrite_the_receivers_own() {
    let line = b"CEF:0|v|p|1|id|n|5|src=192.0.2.1 input.format=x syslog.tag=y src=192.0.2.9";
    let attributes = &one(line, RowOptions::default())["attributes"];
    assert_eq!(attributes["input.format"], "cef");
    assert_eq!(attributes["cef.ext.input.format"], "x");
    assert_eq!(attributes["cef.ext.syslog.tag"], "y");
    assert_eq!(attributes["src"], "192.0.2.9");
    let prefixed = one(line, RowOptions { cef_extension_prefix: "e.".into(), ..RowOptions::default() });
    assert_eq!(prefixed["attributes"]["e.src"], "192.0.2.9");
    let line = b"CEF:0|v|p|1|id|n|5|name=evil";
    let clash = one(line, RowOptions { cef_extension_prefix: "cef.".into(), ..RowOptions::default() });
    assert_eq!(clash["attributes"]["cef.name"], "n");
    assert_eq!(clash["attributes"]["cef.ext.cef.name"], "evil");
}

/// What cannot be taken apart stays whole in the body, with bad bytes replaced and the neighbours untouched.
#[test]
fn unparsed_input_is_kept_in_the_body() {
    let all = objects(batch(&[b"free text \xff", b"<13>Nov 30 10:00:00 h app[x]: m"]), RowOptions::default());
    assert_eq!(all[0]["body"], "free text \u{fffd}");
    assert_eq!(all[0]["time"], Value::Null);
    assert_eq!(all[1]["body"], Value::Null);
    assert_eq!(all[1]["attributes"]["syslog.process_id_str"], "x");
    assert_eq!(all[1]["attributes"]["syslog.tag"], "app[x]");
}

/// Whatever the budget, the same records come out, in order, and each step does some work.
#[test]
fn the_budget_changes_nothing_but_the_steps() {
    let lines: Vec<Vec<u8>> = (0..700).map(|i| format!("<13>Nov 30 10:00:00 h a: {i}").into_bytes()).collect();
    let lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
    let whole = objects(batch(&lines), RowOptions::default());
    for budget in [Budget { records: 1, bytes: usize::MAX }, Budget { records: 256, bytes: 1 }, Budget::default()] {
        let mut job = SyslogJob::new(batch(&lines), RowOptions::default());
        let (mut out, mut steps) = (Vec::new(), 0);
        loop {
            steps += 1;
            match job.step(budget).expect("decoded") {
                Step::More => assert!(job.remaining() < lines.len()),
                Step::Batch(records) => records_json::objects(&records, |o| out.push(o)).expect("readable"),
                Step::End => break,
            }
        }
        assert_eq!(out, whole);
        assert!(steps > 2);
    }
}

/// More messages than a batch may hold come out as several batches.
#[test]
fn large_input_is_split_into_full_batches() {
    let lines = vec![&b"<13>x"[..]; crate::MAX_BATCH_RECORDS + 3];
    let sizes: Vec<usize> = SyslogJob::new(batch(&lines), RowOptions::default())
        .run()
        .expect("decoded")
        .iter()
        .map(|r| r.num_items())
        .collect();
    assert_eq!(sizes, [crate::MAX_BATCH_RECORDS, 3]);
}
