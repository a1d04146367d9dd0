//! Scripts in action: what plain clients see, and what the report says.

mod grpc;
mod http;
mod otap;
mod random;
mod raw;

use std::net::SocketAddr;
use std::time::Duration;

use otel_arrow_dfe_pdata::proto::opentelemetry::collector::logs::v1::{
    ExportLogsServiceRequest, ExportLogsServiceResponse, logs_service_client::LogsServiceClient,
};
use tonic::Status;

use crate::sink::script::SinkScript;
use crate::sink::tests::messages::logs;
use crate::sink::tests::{TIMEOUT, client, connect};
use crate::sink::{OrderOptions, Outcome, RequestReport, RunningSink, Sink, SinkOptions, Totals};

/// A sink with the steps of a script, or a whole script, on all protocols.
fn start(yaml: &str) -> RunningSink {
    start_script(SinkScript::from_yaml(yaml).unwrap())
}

fn start_script(script: SinkScript) -> RunningSink {
    let any = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let order = OrderOptions { key_attribute: "host".into(), sequence_attribute: "number".into(), first: 0 };
    let script = Some(script);
    Sink::start(SinkOptions { otap: any, otlp_grpc: any, otlp_http: any, script, order, ..SinkOptions::default() })
        .unwrap()
}

fn request(numbers: std::ops::Range<u64>) -> ExportLogsServiceRequest {
    ExportLogsServiceRequest { resource_logs: logs(numbers) }
}

/// Sends one request on a connection of its own.
async fn export(sink: &RunningSink, numbers: std::ops::Range<u64>) -> Result<ExportLogsServiceResponse, Status> {
    let mut client = LogsServiceClient::new(connect(sink.addresses().otlp_grpc).await);
    client.export(request(numbers)).await.map(tonic::Response::into_inner)
}

fn wait(sink: &RunningSink, enough: impl Fn(&Totals) -> bool) -> Totals {
    let (totals, met) = sink.wait_for_totals(enough, TIMEOUT);
    assert!(met, "{totals:?}");
    totals
}

fn rows(sink: &RunningSink) -> Vec<RequestReport> {
    sink.script_report().unwrap().requests
}

fn outcomes(sink: &RunningSink) -> Vec<Outcome> {
    rows(sink).iter().map(|row| row.outcome).collect()
}

/// Without steps all is stored and answered; the report has order, gaps and duplicates of each key, and every request.
#[test]
fn order_and_report() {
    let sink = start("");
    client(async {
        let mut client = LogsServiceClient::new(connect(sink.addresses().otlp_grpc).await);
        for numbers in [0..3, 5..7, 3..4, 1..2] {
            let _ = client.export(request(numbers)).await.unwrap();
        }
    });
    assert_eq!(sink.counts().logs, 7);
    let report = sink.script_report().unwrap();
    let [key] = &report.keys[..] else { panic!("{report:?}") };
    assert_eq!((key.key.as_str(), key.items, key.duplicates, key.out_of_order), ("edge-1", 7, 1, 1));
    assert_eq!((key.highest, key.missing, &key.first_missing[..]), (Some(6), 1, &[4][..]));
    let expected =
        Totals { requests: 4, stored_items: 7, first_accepted: 6, duplicates: 1, out_of_order: 1, ..Totals::default() };
    assert_eq!(report.totals, expected);
    let row = &report.requests[1];
    assert_eq!((row.ordinal, row.items, row.connection, row.step), (2, 2, 1, None));
    assert_eq!((row.action.as_str(), row.stored, row.outcome), ("ok", true, Outcome::Accepted));
    assert!(row.wire_bytes > 0 && row.wire_bytes == row.decoded_bytes);
    assert!(report.requests.windows(2).all(|two| two[0].at <= two[1].at));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["requests"][1]["protocol"], "otlp_grpc");
    assert!(json["requests"][1]["at_seconds"].is_f64());
    let (counts, report) = sink.stop_with_report().unwrap();
    assert_eq!((counts.logs, report.unwrap().totals), (7, expected));
}

/// The longest wait is bounded, and a sink without a script has nothing to tell.
#[test]
fn waiting() {
    let sink = start("");
    assert!(!sink.wait_for_totals(|totals| totals.requests > 0, Duration::ZERO).1);
    let any = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let plain = Sink::start(SinkOptions { otap: any, ..SinkOptions::default() }).unwrap();
    assert!(plain.script_report().is_none() && plain.script_totals().is_none());
    assert!(plain.wait_for_totals(|totals| totals.requests == 0, TIMEOUT).1);
    let mut wrong = SinkScript::from_yaml("steps: [{}]").unwrap();
    wrong.steps[0].when.every = 0;
    let error = Sink::start(SinkOptions { otap: any, script: Some(wrong), ..SinkOptions::default() }).unwrap_err();
    assert!(error.to_string().starts_with("steps[0].when.every"), "{error}");
}
