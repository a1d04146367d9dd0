//! Loads of both kinds, split, and written together.

use bytes::Bytes;
use otel_arrow_dfe_pdata::encode::encode_logs_otap_batch;
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::logs::v1::ExportLogsServiceRequest;
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::{AnyValue, KeyValue, any_value};
use otel_arrow_dfe_pdata::proto::opentelemetry::logs::v1::{LogRecord, LogsData, ResourceLogs, ScopeLogs};
use otel_arrow_dfe_pdata::proto::opentelemetry::resource::v1::Resource;
use prost::Message as _;

use super::*;
use crate::encode::otap::OtapSettings;
use crate::payload::{Encode as _, EncodeStream as _};

fn attribute(key: &str, value: &str) -> KeyValue {
    let value = AnyValue { value: Some(any_value::Value::StringValue(value.to_owned())) };
    KeyValue { key: key.to_owned(), value: Some(value) }
}

/// Records with these times, of a resource with these attributes each.
fn logs(resources: &[&[(&str, &str)]], times: std::ops::Range<u64>) -> LogsData {
    let of = |attributes: &[(&str, &str)]| ResourceLogs {
        resource: Some(Resource {
            attributes: attributes.iter().map(|(key, value)| attribute(key, value)).collect(),
            ..Resource::default()
        }),
        scope_logs: vec![ScopeLogs {
            log_records: times.clone().map(|time| LogRecord { time_unix_nano: time, ..LogRecord::default() }).collect(),
            ..ScopeLogs::default()
        }],
        ..ResourceLogs::default()
    };
    LogsData { resource_logs: resources.iter().map(|attributes| of(attributes)).collect() }
}

fn records(data: &LogsData) -> Load {
    Load::records(encode_logs_otap_batch(data).expect("encoded"))
}

fn request(data: &LogsData) -> Load {
    Load::otlp(Signal::Logs, data.encode_to_vec().into()).expect("a request")
}

fn times(body: &[u8]) -> Vec<u64> {
    let request = ExportLogsServiceRequest::decode(body).expect("a request");
    let scopes = request.resource_logs.iter().flat_map(|resource| &resource.scope_logs);
    scopes.flat_map(|scope| &scope.log_records).map(|record| record.time_unix_nano).collect()
}

const HOST: &[(&str, &str)] = &[("host", "a"), ("zone", "b")];

/// Items of both kinds stand in a request in the order in which they came.
#[test]
fn both_kinds_in_one_request() {
    let loads = [records(&logs(&[HOST], 1..4)), request(&logs(&[HOST], 4..6)), records(&logs(&[HOST], 6..7))];
    assert_eq!(loads.iter().map(Payload::items).collect::<Vec<_>>(), [3, 2, 1]);
    let mut body = Vec::new();
    OtlpWriter::default().encode(&loads, &mut body).expect("encoded");
    assert_eq!(times(&body), [1, 2, 3, 4, 5, 6]);
}

/// Either kind comes apart at any place, and its bytes are shared out.
#[test]
fn split_anywhere() {
    let data = logs(&[HOST], 1..8);
    for load in [records(&data), request(&data)] {
        for at in 1..7 {
            let (head, tail) = load.split(at).expect("split");
            assert_eq!((head.items(), tail.items()), (at, 7 - at));
            assert_eq!(head.bytes() + tail.bytes(), load.bytes());
            let (mut first, mut second) = (Vec::new(), Vec::new());
            OtlpWriter::default().encode(&[head], &mut first).expect("encoded");
            OtlpWriter::default().encode(&[tail], &mut second).expect("encoded");
            assert_eq!([times(&first), times(&second)].concat(), (1..8).collect::<Vec<_>>());
            assert_eq!(times(&first).len(), at);
        }
    }
}

/// The order of attributes does not matter to a resource's hash, their values do; several resources have none.
#[test]
fn series_are_resources() {
    let of = |resources: &[&[(&str, &str)]]| records(&logs(resources, 1..3)).series();
    let same = of(&[HOST]);
    assert!(same.is_some());
    assert_eq!(of(&[&[("zone", "b"), ("host", "a")]]), same);
    assert_ne!(of(&[&[("host", "ab"), ("zone", "")]]), same);
    assert_ne!(of(&[&[("host", "a")]]), same);
    assert_eq!(of(&[HOST, &[("host", "c")]]), None);
    let of = |resources: &[&[(&str, &str)]]| request(&logs(resources, 1..3)).series();
    assert!(of(&[HOST]).is_some());
    assert_ne!(of(&[HOST]), of(&[&[("host", "c")]]));
    assert_eq!(of(&[HOST, HOST]), of(&[HOST]));
    assert_eq!(of(&[HOST, &[("host", "c")]]), None);
}

/// Bytes that are no request are refused when they come in, and have no place on an OTAP stream.
#[test]
fn wrong_places() {
    assert!(Load::otlp(Signal::Logs, Bytes::from_static(&[0x0a, 9, 1])).is_err());
    let mut writer = OtapWriter::new(OtapSettings::default()).expect("streams");
    let mut out = vec![7];
    writer.encode(1, &[records(&logs(&[HOST], 1..3))], &mut out).expect("encoded");
    assert!(out.len() > 1 && out[0] == 7, "what is there is left");
    let error = writer.encode(2, &[request(&logs(&[HOST], 1..3))], &mut out).expect_err("refused");
    assert!(error.to_string().contains("expected record batches"));
}
