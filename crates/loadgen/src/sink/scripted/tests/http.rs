//! OTLP over HTTP/1.1, on bare sockets.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use otel_arrow_dfe_pdata::proto::opentelemetry::collector::logs::v1::ExportLogsServiceResponse;
use prost::Message as _;

use super::*;
use crate::protobuf::RpcStatus;

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
    pub(super) body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

pub(super) fn open(sink: &RunningSink) -> TcpStream {
    let stream = TcpStream::connect(sink.addresses().otlp_http.unwrap()).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

fn head(length: usize, encoding: &str) -> String {
    let kind = "content-type: application/x-protobuf";
    format!("POST /v1/logs HTTP/1.1\r\nhost: x\r\n{kind}\r\n{encoding}content-length: {length}\r\n\r\n")
}

pub(super) fn send(stream: &mut TcpStream, numbers: std::ops::Range<u64>) -> io::Result<()> {
    let body = request(numbers).encode_to_vec();
    stream.write_all(&[head(body.len(), "").as_bytes(), &body].concat())
}

/// Reads one answer, which has a length.
pub(super) fn read(stream: &mut TcpStream) -> io::Result<Answer> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        bytes.push(byte[0]);
    }
    let head = String::from_utf8(bytes).unwrap();
    let status = head[9..12].parse().unwrap();
    let mut answer = Answer { status, head, body: Vec::new() };
    answer.body = vec![0; answer.header("content-length").unwrap().parse().unwrap()];
    stream.read_exact(&mut answer.body)?;
    Ok(answer)
}

fn post(stream: &mut TcpStream, items: u64) -> Answer {
    send(stream, 0..items).unwrap();
    read(stream).unwrap()
}

/// Statuses with Retry-After in each form, and each kind of body.
#[test]
fn statuses() {
    let sink = start(
        "
        steps:
          - { when: { to: 1 }, answer: { http: { status: 429, retry_after: { seconds: 2 }, message: later } } }
          - { when: { from: 2, to: 2 }, answer: { http: { status: 503, retry_after: { date_in: 1h }, body: rubbish } } }
          - { when: { from: 3, to: 3 }, answer: { http: { status: 502, retry_after: { text: soon }, body: empty } } }
          - { when: { from: 4, to: 4 }, answer: { http: { status: 400, message: never } } }
          - { when: { from: 5, to: 5 }, store: true, answer: { http: { status: 504 } } }
          - { when: { from: 6, to: 6 }, answer: { lie: unreadable_body } }
          - { when: { from: 7, to: 7 }, answer: { partial_success: { rejected: 1, message: old } } }
        ",
    );
    let mut stream = open(&sink);
    let answer = post(&mut stream, 2);
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("2")));
    assert_eq!(answer.header("content-type"), Some("application/x-protobuf"));
    assert_eq!(RpcStatus::decode(&answer.body[..]).unwrap().message, "later");
    let answer = post(&mut stream, 2);
    assert_eq!((answer.status, &answer.body[..]), (503, &[255; 7][..]));
    let until = httpdate::parse_http_date(answer.header("retry-after").unwrap()).unwrap();
    let left = until.duration_since(std::time::SystemTime::now()).unwrap();
    assert!(left > Duration::from_secs(1_800) && left <= Duration::from_secs(3_600), "{left:?}");
    let answer = post(&mut stream, 2);
    assert_eq!((answer.status, answer.header("retry-after"), answer.body.len()), (502, Some("soon"), 0));
    assert_eq!(post(&mut stream, 2).status, 400);
    assert_eq!(post(&mut stream, 2).status, 504);
    let answer = post(&mut stream, 2);
    assert_eq!((answer.status, &answer.body[..]), (200, &[255; 7][..]));
    let answer = post(&mut stream, 2);
    let partial = ExportLogsServiceResponse::decode(&answer.body[..]).unwrap().partial_success.unwrap();
    assert_eq!((answer.status, partial.rejected_log_records, partial.error_message.as_str()), (200, 1, "old"));
    assert_eq!(post(&mut stream, 2).body.len(), 0);
    let report = sink.script_report().unwrap();
    assert_eq!((report.totals.stored_items, report.totals.ambiguous_items), (2 + 2 + 1 + 2, 2));
    assert_eq!(report.totals.refused_for_good, 2 + 1);
    assert!(report.requests.iter().all(|row| row.connection == 1));
}

/// Connections end with FIN or RST, before, within and after the body.
#[test]
fn closed() {
    for at in ["before_body", "during_body", "after_body"] {
        for reset in [false, true] {
            let step = format!("{{ when: {{ to: 1 }}, answer: {{ close: {{ at: {at}, reset: {reset} }} }} }}");
            let sink = start(&format!("steps: [{step}]"));
            let mut stream = open(&sink);
            let body = request(0..2).encode_to_vec();
            stream.write_all(head(body.len(), "").as_bytes()).unwrap();
            if at != "before_body" {
                let sent = if at == "after_body" { body.len() } else { 4 };
                stream.write_all(&body[..sent]).unwrap();
            }
            match (read(&mut stream).map_err(|error| error.kind()), reset) {
                (Err(io::ErrorKind::UnexpectedEof), false) | (Err(io::ErrorKind::ConnectionReset), true) => {}
                (other, _) => panic!("{at}, {reset}: {other:?}"),
            }
            assert_eq!(outcomes(&sink), [Outcome::Cut], "{at}");
            assert_eq!(post(&mut open(&sink), 2).status, 200);
        }
    }
}

/// Stored, then the connection is gone; late; never.
#[test]
fn ambiguous() {
    let sink = start(
        "
        steps:
          - { when: { to: 1 }, store: true, answer: { close: { reset: true } } }
          - { when: { from: 2, to: 2 }, delay: 30ms }
          - { when: { from: 3, to: 3 }, store: true, answer: never }
          - { when: { from: 4, to: 4 }, stop_reading: { for: 30ms, of: connection } }
        ",
    );
    let mut stream = open(&sink);
    send(&mut stream, 0..1).unwrap();
    assert!(read(&mut stream).is_err());
    let began = Instant::now();
    assert_eq!(post(&mut open(&sink), 2).status, 200);
    assert!(began.elapsed() >= Duration::from_millis(30));
    let mut stream = open(&sink);
    send(&mut stream, 0..4).unwrap();
    let _ = wait(&sink, |totals| totals.stored_items == 7);
    drop(stream);
    let totals = wait(&sink, |totals| totals.ambiguous_items == 1 + 4);
    assert_eq!(totals.late_items, 2);
    let began = Instant::now();
    assert_eq!(post(&mut open(&sink), 1).status, 200);
    assert!(began.elapsed() >= Duration::from_millis(30));
    use Outcome::{Accepted, ClientLeft, Cut};
    assert_eq!(outcomes(&sink), [Cut, Accepted, ClientLeft, Accepted]);
}

/// An orderly end says so in the answer; what is too large is 413; compressed bodies are understood.
#[test]
fn the_rest() {
    let sink = start(
        "
        steps:
          - { when: { to: 1 }, answer: { goaway: {} } }
          - { when: { from: 2, to: 2 }, answer: { size_limit: { bytes: 500 } } }
        ",
    );
    let mut stream = open(&sink);
    let answer = post(&mut stream, 1);
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    let mut stream = open(&sink);
    assert_eq!(post(&mut stream, 40).status, 413);

    let plain = request(0..40).encode_to_vec();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    let zstd = zstd::encode_all(&plain[..], 1).unwrap();
    for (encoding, body) in [("gzip", gzip.finish().unwrap()), ("zstd", zstd), ("identity", plain.clone())] {
        let head = head(body.len(), &format!("content-encoding: {encoding}\r\n"));
        stream.write_all(&[head.as_bytes(), &body].concat()).unwrap();
        assert_eq!(read(&mut stream).unwrap().status, 200, "{encoding}");
    }
    assert_eq!(sink.counts().logs, 1 + 3 * 40);
    for (encoding, status) in [("gzip", 400), ("br", 415)] {
        let head = head(plain.len(), &format!("content-encoding: {encoding}\r\n"));
        stream.write_all(&[head.as_bytes(), &plain].concat()).unwrap();
        assert_eq!(read(&mut stream).unwrap().status, status, "{encoding}");
        // A body that was not read ends the connection.
        stream = open(&sink);
    }
    assert_eq!(sink.counts().decode_errors, 2);
}
