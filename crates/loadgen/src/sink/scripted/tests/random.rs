//! Random scripts against a client that holds on.

use std::collections::VecDeque;
use std::ops::Range;

use otel_arrow_dfe_pdata::Producer;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::{
    BatchArrowRecords, BatchStatus, arrow_logs_service_client::ArrowLogsServiceClient,
};
use prost::Message as _;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Streaming};

use super::*;
use crate::sink::script::{Protocol, SinkScript};
use crate::sink::tests::messages::logs_batch;

/// Far longer than any delay of a random script.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(2_500);

async fn channel(sink: &RunningSink) -> LogsServiceClient<Channel> {
    LogsServiceClient::new(connect(sink.addresses().otlp_grpc).await)
}

/// Sends everything in order, one request at a time, until it is taken or refused for good; gives what was given up.
async fn deliver(sink: &RunningSink, items: u64) -> u64 {
    let mut client = channel(sink).await;
    let mut waiting: VecDeque<Range<u64>> = (0..items).step_by(10).map(|from| from..from + 10).collect();
    let mut given_up = 0;
    while let Some(numbers) = waiting.pop_front() {
        let answer = timeout(ANSWER_TIMEOUT, client.export(request(numbers.clone()))).await;
        let status = match answer {
            Ok(Ok(answer)) => {
                let partial = answer.into_inner().partial_success;
                given_up += partial.map_or(0, |partial| u64::try_from(partial.rejected_log_records).unwrap());
                continue;
            }
            Ok(Err(status)) => status,
            Err(_) => {
                waiting.push_front(numbers);
                continue;
            }
        };
        let length = numbers.end - numbers.start;
        if is_too_large(&status) && length > 1 {
            let middle = numbers.start + length / 2;
            waiting.push_front(middle..numbers.end);
            waiting.push_front(numbers.start..middle);
        } else if status.message() == "scripted" && !is_retryable(status.code()) {
            given_up += length;
        } else if status.code() == Code::Internal && status.message().contains("decode") {
            // A success whose message cannot be read.
        } else {
            waiting.push_front(numbers);
            client = channel(sink).await;
        }
    }
    given_up
}

fn is_too_large(status: &Status) -> bool {
    status.message().contains("larger than max") || status.message().contains("message length too large")
}

fn is_retryable(code: Code) -> bool {
    crate::sink::script::Code(code.into()).is_retryable()
}

/// A stream of OTAP.
struct Stream {
    producer: Producer,
    send: mpsc::Sender<BatchArrowRecords>,
    statuses: Streaming<BatchStatus>,
}

/// What became of a batch.
enum Sent {
    Answered(i32),
    Ended(Status),
    Unanswered,
}

impl Stream {
    async fn open(sink: &RunningSink) -> Option<Self> {
        let (send, receive) = mpsc::channel(1);
        let mut client = ArrowLogsServiceClient::new(connect(sink.addresses().otap).await);
        let statuses = timeout(ANSWER_TIMEOUT, client.arrow_logs(ReceiverStream::new(receive))).await.ok()?.ok()?;
        Some(Self { producer: Producer::new(), send, statuses: statuses.into_inner() })
    }

    async fn send(&mut self, numbers: Range<u64>) -> Sent {
        let batch = self.producer.produce_bar(&mut logs_batch(numbers)).unwrap();
        let batch_id = batch.batch_id;
        // Fails if the stream has ended, of which the statuses tell more.
        let _ = self.send.send(batch).await;
        loop {
            match timeout(ANSWER_TIMEOUT, self.statuses.message()).await {
                Ok(Ok(Some(status))) if status.batch_id == batch_id => return Sent::Answered(status.status_code),
                // Of another batch, or of none.
                Ok(Ok(Some(_))) => {}
                Ok(Ok(None)) | Err(_) => return Sent::Unanswered,
                Ok(Err(status)) => return Sent::Ended(status),
            }
        }
    }
}

/// The same as `deliver`, over OTAP.
async fn deliver_batches(sink: &RunningSink, items: u64) -> u64 {
    let mut stream = None;
    let mut waiting: VecDeque<Range<u64>> = (0..items).step_by(10).map(|from| from..from + 10).collect();
    let mut given_up = 0;
    while let Some(numbers) = waiting.pop_front() {
        let Some(open) = &mut stream else {
            stream = Stream::open(sink).await;
            waiting.push_front(numbers);
            continue;
        };
        let length = numbers.end - numbers.start;
        match open.send(numbers.clone()).await {
            Sent::Answered(0) => {}
            Sent::Answered(code) if crate::sink::script::Code(code).is_retryable_batch_status() => {
                waiting.push_front(numbers);
            }
            Sent::Answered(_) => given_up += length,
            Sent::Ended(status) if is_too_large(&status) && length > 1 => {
                let middle = numbers.start + length / 2;
                waiting.push_front(middle..numbers.end);
                waiting.push_front(numbers.start..middle);
                stream = None;
            }
            Sent::Ended(_) | Sent::Unanswered => {
                waiting.push_front(numbers);
                stream = None;
            }
        }
    }
    given_up
}

/// The same as `deliver`, over HTTP.
fn deliver_posts(sink: &RunningSink, items: u64) -> u64 {
    let connect = || {
        let stream = http::open(sink);
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).unwrap();
        stream
    };
    let mut stream = connect();
    let mut waiting: VecDeque<Range<u64>> = (0..items).step_by(10).map(|from| from..from + 10).collect();
    let mut given_up = 0;
    while let Some(numbers) = waiting.pop_front() {
        let sent = http::send(&mut stream, numbers.clone());
        let Ok(answer) = sent.and_then(|()| http::read(&mut stream)) else {
            waiting.push_front(numbers);
            stream = connect();
            continue;
        };
        let length = numbers.end - numbers.start;
        let text = String::from_utf8_lossy(&answer.body);
        match answer.status {
            // A body that cannot be read is a success too.
            200 => {
                let partial = ExportLogsServiceResponse::decode(&answer.body[..]).unwrap_or_default().partial_success;
                given_up += partial.map_or(0, |partial| u64::try_from(partial.rejected_log_records).unwrap());
            }
            429 | 502 | 503 | 504 => waiting.push_front(numbers),
            413 if text.contains("too large") && length > 1 => {
                let middle = numbers.start + length / 2;
                waiting.push_front(middle..numbers.end);
                waiting.push_front(numbers.start..middle);
            }
            _ => given_up += length,
        }
    }
    given_up
}

/// Whatever the seed, a client that repeats delivers everything but what was refused for good, in order, and in bounded
/// time; duplicates are never more than what was ambiguous.
#[test]
fn a_client_that_holds_on() {
    std::thread::scope(|scope| {
        for protocol in [Protocol::OtlpGrpc, Protocol::OtlpHttp, Protocol::Otap] {
            for seed in 0..4 {
                let _ = scope.spawn(move || hold_on(protocol, seed));
            }
        }
    });
}

fn hold_on(protocol: Protocol, seed: u64) {
    let sink = start_script(SinkScript::random(seed, protocol, 0.3));
    let items = 400;
    let given_up = match protocol {
        Protocol::OtlpGrpc => client(deliver(&sink, items)),
        Protocol::OtlpHttp => deliver_posts(&sink, items),
        Protocol::Otap => client(deliver_batches(&sink, items)),
    };
    let report = sink.script_report().unwrap();
    let [key] = &report.keys[..] else { panic!("{seed}: {report:?}") };
    let totals = report.totals;
    assert_eq!((key.missing, key.out_of_order), (0, 0), "{protocol:?} {seed}: {key:?}");
    assert_eq!(totals.first_accepted + key.refused_for_good, items, "{protocol:?} {seed}: {totals:?}");
    assert!(key.refused_for_good <= given_up, "{protocol:?} {seed}: {given_up}, {totals:?}");
    let ambiguous = totals.ambiguous_items + totals.late_items;
    assert!(totals.duplicates <= ambiguous, "{protocol:?} {seed}: {totals:?}");
}
