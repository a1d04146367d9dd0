//! Messages through the job and back out as JSON.

use std::sync::Arc;

use catchment_sampling::Threshold;
use catchment_syslog::Zone;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use proptest::prelude::*;
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
    let form =
        |structured_data| one(line, RowOptions { structured_data: Some(structured_data), ..RowOptions::default() });
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
    let options = RowOptions { structured_data: Some(StructuredDataForm::Flat), ..RowOptions::default() };
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

/// Under the other schema host, application and its version are of the resource, the text is the body, and structured data
/// has an attribute a parameter.
#[test]
fn the_otel_schema() {
    let line =
        br#"<165>1 2026-11-30T10:31:00Z host app p1 ID1 [a@1 x="1" x="2"][origin ip="192.0.2.1" swVersion="3"] hello"#;
    let options = || RowOptions { schema: Schema::Otel, ..RowOptions::default() };
    let object = one(line, options());
    assert_eq!(object["resource"], json!({"host.name": "host", "service.name": "app", "service.version": "3"}));
    assert_eq!((&object["body"], &object["severity_text"]), (&json!("hello"), &json!("notice")));
    assert_eq!(
        object["attributes"],
        json!({
            "input.format": "rfc5424", "syslog.facility": 20, "syslog.version": 1, "syslog.procid": "p1",
            "syslog.msgid": "ID1", "syslog.a@1.x": ["1", "2"], "client.address": "192.0.2.1",
            "network.peer.address": "192.0.2.7", "network.peer.port": 40000, "network.transport": "udp",
        })
    );
    let cef = one(b"<13>Nov 30 10:00:00 h CEF:0|v|p|1|2|n|3|src=1 cef.name=x", options());
    assert_eq!(cef["attributes"]["cef.ext.src"], "1");
    assert_eq!(cef["attributes"]["cef.ext.cef.name"], "x");
    assert_eq!(cef["body"], Value::Null);
    let unparsed = one(b"<13>Nov 30 10:00:00 CESTX? h a: x", options());
    assert_eq!(unparsed["resource"].get("service.name"), None);
}

/// An element without parameters cannot take the name of one of the receiver's own attributes.
#[test]
fn empty_elements_do_not_pass_for_others() {
    let line = br#"<14>1 - - - p1 m1 [msgid][procid][structured_data msgid="x"][other]"#;
    let options = RowOptions { schema: Schema::Otel, ..RowOptions::default() };
    let records = SyslogJob::new(batch(&[line]), options.clone()).run().expect("decoded").remove(0);
    let attributes = records.get(ArrowPayloadType::LogAttrs).expect("attributes").num_rows();
    let object = one(line, options);
    let named = object["attributes"].as_object().expect("attributes");
    assert_eq!(named.len(), attributes, "a name was written twice");
    assert_eq!((&named["syslog.msgid"], &named["syslog.procid"]), (&json!("m1"), &json!("p1")));
    assert_eq!(named["syslog.structured_data.msgid"], json!(["", "x"]));
    assert_eq!(named["syslog.other"], "");
}

/// Records of one host and application share a resource, whatever stands between them.
#[test]
fn resources_are_shared() {
    let lines: Vec<Vec<u8>> =
        (0..60).map(|n| format!("<13>Nov 30 10:00:00 h{} a{}: {n}", n % 3, n % 2).into_bytes()).collect();
    let lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
    let options = RowOptions { schema: Schema::Otel, ..RowOptions::default() };
    let records = SyslogJob::new(batch(&lines), options).run().expect("decoded").remove(0);
    let table = records.get(ArrowPayloadType::ResourceAttrs).expect("resources");
    assert_eq!(table.num_rows(), 6 * 2);
    let mut seen = Vec::new();
    records_json::objects(&records, |object| {
        let number: usize = object["body"].as_str().and_then(|body| body.parse().ok()).expect("number");
        assert_eq!(object["resource"]["host.name"], format!("h{}", number % 3));
        assert_eq!(object["resource"]["service.name"], format!("a{}", number % 2));
        seen.push(number);
    })
    .expect("readable");
    seen.sort_unstable();
    assert_eq!(seen, (0..60).collect::<Vec<_>>());
}

/// A trace context fills the columns of the record, and only where there is one.
#[test]
fn trace_contexts() {
    let with = br#"<14>1 - - - - - [x@1 traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"] m"#;
    let all = objects(batch(&[&with[..], b"<14>1 - - - - - - m"]), RowOptions::default());
    assert_eq!(all[0]["trace_id"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!((&all[0]["span_id"], &all[0]["flags"]), (&json!("b7ad6b7169203331"), &json!(1)));
    assert_eq!((&all[1]["trace_id"], &all[1]["flags"]), (&Value::Null, &Value::Null));
}

/// What a sampler has kept says what it stands for, one record after the other, here and after a journey as a payload; what
/// stands for itself says nothing, and no device can say it.
#[test]
fn kept_messages_say_what_they_stand_for() {
    let source = Arc::new(Source::new(None, Transport::Udp, Arc::new(Zone::Utc)));
    let mut batch = SyslogBatch::new();
    for probability in [0.25, 1.0, 0.25, 0.1] {
        let receipt = Receipt { time_unix_nano: NOON, truncated: false };
        let line = b"CEF:0|v|p|1|2|n|3|sampling.adjusted_count=9 sampling.threshold=8";
        batch.push_sampled(line, &source, receipt, threshold(probability));
    }
    let payload = encoded::encode(&batch, &RowOptions::default());
    let (decoded, options) = encoded::decode(&payload).expect("payload");
    assert_eq!(encoded::count(&payload), Some(4));
    for batch in [batch, decoded] {
        let all = objects(batch, options.clone());
        let said: Vec<_> = all.iter().map(|record| &record["attributes"]).collect();
        let thresholds: Vec<_> = said.iter().map(|said| said["sampling.threshold"].as_str()).collect();
        assert_eq!(thresholds, [Some("c"), None, Some("c"), Some("e6666666666666")]);
        let counts: Vec<_> = said.iter().map(|said| said["sampling.adjusted_count"].as_f64()).collect();
        assert_eq!((counts[0], counts[1], counts[2]), (Some(4.0), None, Some(4.0)));
        assert!(counts[3].is_some_and(|count| (count - 10.0).abs() < 1e-9), "{counts:?}");
        for said in said {
            let by_device = [&said["cef.ext.sampling.adjusted_count"], &said["cef.ext.sampling.threshold"]];
            assert_eq!(by_device, ["9", "8"]);
        }
    }
}

/// Thresholds that are none, or not one for each message, are refused with their place.
#[test]
fn bad_thresholds_are_refused() {
    let source = Arc::new(Source::new(None, Transport::Udp, Arc::new(Zone::Utc)));
    let mut batch = SyslogBatch::new();
    batch.push_sampled(b"x", &source, Receipt { time_unix_nano: NOON, truncated: false }, threshold(0.5));
    let mut payload = encoded::encode(&batch, &RowOptions::default());
    let last = payload.len() - 1;
    payload[last] = 1;
    let error = encoded::decode(&payload).expect_err("2^56 and more");
    assert!(error.to_string().starts_with(&format!("offset {}: 108", last - 7)), "{error}");
    // One byte less, in the length of the string too.
    let _ = payload.pop();
    payload[last - 8] -= 1;
    let error = encoded::decode(&payload).expect_err("too short").to_string();
    assert!(error.contains("7 bytes for 1 entries"), "{error}");
    payload[0] -= 1;
    assert!(encoded::decode(&payload).is_err());
}

/// Text that is not UTF-8 as bytes, on request; other values and other records are text.
#[test]
fn bytes_on_request() {
    let options = RowOptions { non_utf8: NonUtf8::Bytes, ..RowOptions::default() };
    let all = objects(batch(&[b"<13>Nov 30 10:00:00 h a: caf\xe9", b"<13>Nov 30 10:00:00 h a: caf"]), options);
    assert_eq!(all[0]["attributes"]["syslog.content"], json!({"base16": "636166e9"}));
    assert_eq!(all[0]["attributes"]["syslog.host_name"], "h");
    assert_eq!(all[1]["attributes"]["syslog.content"], "caf");
}

/// What the messages were read as, whole or not.
#[test]
fn formats_are_counted() {
    let mut job = SyslogJob::new(batch(&[b"<13>1 - - - - - -", b"x", b"CEF:0|v|p|1|2|n|3|a=b"]), RowOptions::default());
    let _ = job.run().expect("decoded");
    let counts: Vec<_> = job.parsed().iter().map(|(format, whole, partly)| (format.as_str(), whole, partly)).collect();
    let expected = [("rfc3164", 0, 1), ("rfc5424", 1, 0), ("cef", 1, 0), ("cef_rfc3164", 0, 0), ("cef_rfc5424", 0, 0)];
    assert_eq!(counts, expected);
}

/// Lines of all formats, whole and broken, short and long.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let text =
        |template: &'static str| "[a-z =|\\\\]{0,20}".prop_map(move |text| template.replace('$', &text).into_bytes());
    prop_oneof![
        text("<13>Nov 30 10:00:00 host app[12]: $"),
        text("<165>1 2026-11-30T10:31:00Z host app - ID [a@1 x=\"1\" $=\"2\"] $"),
        text("<13>Nov 30 10:00:00 h CEF:0|v|p|1|$|n|3|src=1 $ dst=2"),
        text("$"),
        proptest::collection::vec(any::<u8>(), 1..40),
        (1_usize..2_000).prop_map(|length| vec![b'x'; length]),
    ]
}

/// Messages from one of three senders each.
fn messages() -> impl Strategy<Value = Vec<(Vec<u8>, usize)>> {
    proptest::collection::vec((line(), 0_usize..3), 1..60)
}

fn threshold(probability: f64) -> Threshold {
    Threshold::from_probability(probability).expect("a probability")
}

fn from_senders(messages: &[(Vec<u8>, usize)]) -> SyslogBatch {
    let sources = [None, Some("192.0.2.1:1"), Some("[2001:db8::1]:2")].map(|peer| {
        let peer = peer.map(|peer| peer.parse().expect("address"));
        Arc::new(Source::new(peer, Transport::Tcp, Arc::new(Zone::Fixed(3_600))))
    });
    let mut batch = SyslogBatch::new();
    for (number, (message, sender)) in messages.iter().enumerate() {
        let receipt = Receipt { time_unix_nano: NOON + number as i64, truncated: number % 7 == 0 };
        let threshold =
            if message.len() % 2 == 0 { Threshold::KEEP_ALL } else { threshold(0.25 * (1 + sender) as f64) };
        batch.push_sampled(message, &sources[*sender], receipt, threshold);
    }
    batch
}

fn options() -> impl Strategy<Value = RowOptions> {
    let schema = prop_oneof![Just(Schema::Upstream), Just(Schema::Otel)];
    let form = prop_oneof![Just(None), Just(Some(StructuredDataForm::Text)), Just(Some(StructuredDataForm::Flat))];
    let non_utf8 = prop_oneof![Just(NonUtf8::Replace), Just(NonUtf8::Bytes)];
    (schema, form, non_utf8).prop_map(|(schema, structured_data, non_utf8)| RowOptions {
        schema,
        structured_data,
        non_utf8,
        cef_extension_prefix: String::new(),
        parent_ids: crate::ParentIds::Plain,
    })
}

/// The arrays of a large batch are made in several steps, those of a small one in the step that read its last message.
#[test]
fn finishing_is_divided() {
    let steps = |messages: usize| {
        let lines = vec![&b"<13>Nov 30 10:00:00 h a: x"[..]; messages];
        let mut job = SyslogJob::new(batch(&lines), RowOptions::default());
        let mut steps = 0;
        loop {
            match job.step(job.budget()).expect("decoded") {
                Step::More => steps += 1,
                Step::Batch(_) => return steps,
                Step::End => unreachable!("there are messages"),
            }
        }
    };
    assert_eq!(steps(crate::SMALL_RECORDS), 0);
    let reading = 8_192_usize.div_ceil(Budget::default().records);
    assert!(steps(8_192) >= reading + 2, "{} steps", steps(8_192));
}

/// A prefix that would make every key long is refused.
#[test]
fn long_prefixes_are_refused() {
    let options = |bytes| RowOptions { cef_extension_prefix: "x".repeat(bytes), ..RowOptions::default() };
    let decoded = |bytes| encoded::decode(&encoded::encode(&batch(&[b"x"]), &options(bytes)));
    assert!(decoded(MAX_PREFIX_BYTES).is_ok());
    assert!(decoded(MAX_PREFIX_BYTES + 1).expect_err("refused").to_string().contains("256"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever the budget, the same records come out, in order.
    #[test]
    fn steps_change_nothing(messages in messages(), options in options(), records in 1_usize..20, bytes in 1_usize..4_000) {
        let whole = objects(from_senders(&messages), options.clone());
        prop_assert_eq!(whole.len(), messages.len());
        let mut job = SyslogJob::new(from_senders(&messages), options);
        let (mut out, mut steps) = (Vec::new(), 0);
        loop {
            steps += 1;
            match job.step(Budget { records, bytes }).expect("decoded") {
                Step::More => {}
                Step::Batch(batch) => records_json::objects(&batch, |object| out.push(object)).expect("readable"),
                Step::End => break,
            }
        }
        prop_assert!(steps > messages.len().div_ceil(records));
        prop_assert_eq!(out, whole);
        prop_assert_eq!(job.remaining(), 0);
    }

    /// A job that is given up after any number of steps gives the messages back as they were, and decoding them again
    /// gives the same records.
    #[test]
    fn cancelled_jobs_lose_nothing(messages in messages(), steps in 0_usize..40, records in 1_usize..8) {
        let whole = objects(from_senders(&messages), RowOptions::default());
        let mut job = SyslogJob::new(from_senders(&messages), RowOptions::default());
        let mut out = Vec::new();
        for _ in 0..steps {
            if let Step::Batch(batch) = job.step(Budget { records, bytes: usize::MAX }).expect("decoded") {
                records_json::objects(&batch, |object| out.push(object)).expect("readable");
            }
        }
        let left = job.remaining();
        let batch = job.cancel();
        prop_assert_eq!(batch.len(), left);
        prop_assert_eq!(batch.len() + out.len(), messages.len());
        out.extend(objects(batch, RowOptions::default()));
        prop_assert_eq!(out, whole);
    }

    /// A payload stands for itself: decoded elsewhere it gives the same records.
    #[test]
    fn payloads_come_back(messages in messages(), options in options()) {
        let payload = encoded::encode(&from_senders(&messages), &options);
        prop_assert_eq!(encoded::count(&payload), Some(messages.len()));
        let (batch, decoded) = encoded::decode(&payload).expect("payload");
        prop_assert_eq!(&decoded, &options);
        prop_assert_eq!(objects(batch, decoded), objects(from_senders(&messages), options));
    }

    /// Damaged payloads are refused or give records, and never more messages than bytes.
    #[test]
    fn damaged_payloads_are_refused(messages in messages(), at in any::<prop::sample::Index>(), value in any::<u8>(), cut in any::<bool>()) {
        let mut payload = encoded::encode(&from_senders(&messages), &RowOptions::default());
        let at = at.index(payload.len());
        if cut { payload.truncate(at) } else { payload[at] = value }
        if let Ok((batch, options)) = encoded::decode(&payload) {
            prop_assert!(batch.len() <= payload.len());
            prop_assert_eq!(objects(batch, options).len(), encoded::count(&payload).expect("counted"));
        }
    }
}
