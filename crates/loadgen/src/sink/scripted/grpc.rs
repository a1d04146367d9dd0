//! gRPC over frames of HTTP/2: connections, and the calls of OTLP.

use std::future::poll_fn;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Request, Response};
use prost::Message as _;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tonic::Status;

use super::exchange::{Link, Undecodable};
use super::message::{Messages, RawMessage, ReadError};
use super::wire::{Wire, goaway};
use super::{http, items, otap};
use crate::protobuf::{Any, RpcStatus};
use crate::sink::encoding::Encoding;
use crate::sink::ledger::{Entry, Outcome};
use crate::sink::script::{Answer, Code, Event, Lie, Moment, Protocol, Signal};

/// The least window of a connection (RFC 9113, section 6.9.2).
const LEAST_CONNECTION_WINDOW: u32 = 65_535;
/// How long a connection lasts after a GOAWAY that excludes requests, for those that it does not exclude.
const GOAWAY_GRACE: Duration = Duration::from_secs(1);

pub(super) const CONTENT_TYPE_GRPC: &str = "application/grpc";

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Delay>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Delay {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

/// Serves a connection until it ends.
pub(super) async fn serve(link: Link, wire: Wire) {
    let window = link.shared.ledger.script().window_bytes;
    let mut builder = server::Builder::new();
    let _ = builder.initial_window_size(window).initial_connection_window_size(window.max(LEAST_CONNECTION_WINDOW));
    let Ok(mut connection) = builder.handshake::<_, Bytes>(wire).await else {
        return;
    };
    let mut calls = JoinSet::new();
    loop {
        tokio::select! {
            accepted = connection.accept() => match accepted {
                Some(Ok((request, respond))) => drop(calls.spawn(call(link.clone(), request, respond))),
                Some(Err(_)) | None => return,
            },
            () = link.line.is_drained() => connection.graceful_shutdown(),
            Some(_) = calls.join_next() => {}
        }
    }
}

async fn call(link: Link, request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
    if link.line.excludes(respond.stream_id().as_u32()) {
        wait_for_reset(&mut respond).await;
        return;
    }
    let encoding = request.headers().get("grpc-encoding").map(HeaderValue::as_bytes);
    let encoding = Encoding::from_name(encoding);
    let route = route(request.uri().path());
    let (Some((protocol, signal)), Some(encoding)) = (route, encoding) else {
        let reason = if route.is_none() { "there is no such method" } else { "unknown grpc-encoding" };
        let reason = link.undecodable(reason.to_owned());
        // Fails if the client is gone.
        let _ = refuse(&mut respond, Code::UNIMPLEMENTED, &reason.to_string(), None);
        return;
    };
    let messages = Messages::new(request.into_body());
    match protocol {
        Protocol::Otap => otap::serve(link, signal, encoding, messages, respond).await,
        _ => unary(link, signal, encoding, messages, respond).await,
    }
}

/// The methods of both protocols.
fn route(path: &str) -> Option<(Protocol, Signal)> {
    Some(match path {
        "/opentelemetry.proto.collector.logs.v1.LogsService/Export" => (Protocol::OtlpGrpc, Signal::Logs),
        "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export" => (Protocol::OtlpGrpc, Signal::Metrics),
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export" => (Protocol::OtlpGrpc, Signal::Traces),
        "/opentelemetry.proto.experimental.arrow.v1.ArrowLogsService/ArrowLogs" => (Protocol::Otap, Signal::Logs),
        "/opentelemetry.proto.experimental.arrow.v1.ArrowMetricsService/ArrowMetrics" => {
            (Protocol::Otap, Signal::Metrics)
        }
        "/opentelemetry.proto.experimental.arrow.v1.ArrowTracesService/ArrowTraces" => (Protocol::Otap, Signal::Traces),
        _ => return None,
    })
}

async fn unary(
    link: Link,
    signal: Signal,
    encoding: Encoding,
    mut messages: Messages,
    mut respond: SendResponse<Bytes>,
) {
    let entry = link.enter(Protocol::OtlpGrpc, signal, Event::Request);
    let mut entry = link.before_body(entry).await;
    match entry.step().answer {
        Answer::Close { at: Moment::DuringBody, reset } => {
            // Whatever comes, or that nothing does.
            let _ = messages.part().await;
            match link.cut(entry, reset).await {}
        }
        Answer::Goaway { exclude: true, code } => {
            exclude(&link, entry, respond.stream_id().as_u32(), code).await;
            return;
        }
        _ => {}
    }
    let message = match messages.read().await {
        Ok(Some(message)) => unpack(&link, &mut entry, encoding, message),
        Ok(None) => Err(link.undecodable("a call without a message".to_owned())),
        Err(ReadError::Message(reason)) => Err(link.undecodable(reason)),
        // Dropping the entry notes that the client left.
        Err(ReadError::Gone(_)) => return,
    };
    match message.and_then(|message| link.settle(&mut entry, signal, message)) {
        Ok(answer) => {
            let delay = entry.step().delay;
            let left = !delay.is_zero()
                && tokio::select! {
                    () = sleep(delay) => false,
                    () = wait_for_reset(&mut respond) => true,
                };
            if !left {
                give(&link, entry, signal, answer, respond).await;
            }
        }
        Err(reason) => {
            if refuse(&mut respond, Code::INVALID_ARGUMENT, &reason.to_string(), None).is_ok() {
                entry.finish(Outcome::Refused);
            }
        }
    }
}

/// Decompresses a message, and notes its sizes.
pub(super) fn unpack(
    link: &Link,
    entry: &mut Entry,
    encoding: Encoding,
    message: RawMessage,
) -> Result<Bytes, Undecodable> {
    let RawMessage { compressed, bytes } = message;
    let wire_bytes = bytes.len();
    link.shared.store.add_wire_bytes(wire_bytes + 5);
    let encoding = if compressed { encoding } else { Encoding::Identity };
    let bytes = encoding.decompress(bytes).map_err(|error| link.undecodable(error.to_string()))?;
    entry.read(wire_bytes as u64, bytes.len() as u64);
    Ok(bytes)
}

/// Gives the answer of the script. A client that does not hear it is noted as gone when the entry is dropped.
async fn give(link: &Link, entry: Entry, signal: Signal, answer: Answer, mut respond: SendResponse<Bytes>) {
    let (sent, outcome) = match answer {
        Answer::Never => {
            wait_for_reset(&mut respond).await;
            return;
        }
        Answer::Close { reset, .. } => match link.cut(entry, reset).await {},
        Answer::ResetStream { code } => {
            respond.send_reset(Reason::from(code));
            (Ok(()), Outcome::Cut)
        }
        Answer::EndStream => {
            let sent = begin(&mut respond).and_then(|mut stream| stream.send_data(Bytes::new(), true));
            (sent, Outcome::Cut)
        }
        Answer::Grpc { code, message, retry_info, trailers_only } => {
            let sent = if trailers_only {
                refuse(&mut respond, code, &message, retry_info)
            } else {
                begin(&mut respond).and_then(|mut stream| stream.send_trailers(status(code, &message, retry_info)))
            };
            (sent, Outcome::Refused)
        }
        answer => {
            if matches!(answer, Answer::Goaway { .. }) {
                link.line.drain();
            }
            let message = match answer {
                Answer::PartialSuccess { rejected, message } => items::response(signal, Some((rejected, &message))),
                Answer::Lie(Lie::UnreadableBody) => http::RUBBISH.to_vec(),
                _ => items::response(signal, None),
            };
            let sent = begin(&mut respond).and_then(|mut stream| {
                stream.send_data(framed(&message), false)?;
                stream.send_trailers(status(Code::OK, "", None))
            });
            let heard = !link.line.excludes(respond.stream_id().as_u32());
            (sent, if heard { Outcome::Accepted } else { Outcome::Cut })
        }
    };
    if sent.is_ok() {
        entry.finish(outcome);
    }
}

/// Tells the client that this stream and all younger ones are not served, and ends the connection a little later.
pub(super) async fn exclude(link: &Link, entry: Entry, stream: u32, code: u32) {
    link.line.exclude_from(stream);
    // Streams of clients are odd.
    link.line.insert(&goaway(stream.saturating_sub(2), code));
    entry.finish(Outcome::Cut);
    // Answers that have not left yet are ignored.
    link.shared.ledger.cut(link.id);
    sleep(GOAWAY_GRACE).await;
    link.shared.ledger.cut(link.id);
    link.line.cut(false);
}

/// Waits until the client gives the call up, or the connection ends.
pub(super) async fn wait_for_reset(respond: &mut SendResponse<Bytes>) {
    // Both a reset and an error are the end.
    let _ = poll_fn(|context| respond.poll_reset(context)).await;
}

/// Sends the head of an answer.
pub(super) fn begin(respond: &mut SendResponse<Bytes>) -> Result<SendStream<Bytes>, h2::Error> {
    let mut head = Response::new(());
    let _ = head.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE_GRPC));
    respond.send_response(head, false)
}

/// Sends a status as the only header block.
pub(super) fn refuse(
    respond: &mut SendResponse<Bytes>,
    code: Code,
    message: &str,
    retry_info: Option<Duration>,
) -> Result<(), h2::Error> {
    let mut head = Response::new(());
    *head.headers_mut() = status(code, message, retry_info);
    let _ = head.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE_GRPC));
    respond.send_response(head, true).map(drop)
}

/// A status of gRPC as headers, the number as it is.
pub(super) fn status(code: Code, message: &str, retry_info: Option<Duration>) -> HeaderMap {
    let details = retry_info.map(|delay| {
        let seconds = i64::try_from(delay.as_secs()).unwrap_or(i64::MAX);
        // Below a thousand million.
        let nanos = i32::try_from(delay.subsec_nanos()).unwrap_or_default();
        let info = RetryInfo { retry_delay: Some(Delay { seconds, nanos }) };
        let type_url = "type.googleapis.com/google.rpc.RetryInfo".to_owned();
        let details = vec![Any { type_url, value: info.encode_to_vec() }];
        RpcStatus { code: code.0, message: message.to_owned(), details }.encode_to_vec()
    });
    let known = tonic::Code::from_i32(code.0);
    let status = Status::with_details(known, message, details.unwrap_or_default().into());
    let mut headers = HeaderMap::new();
    // Messages are escaped, so that they fit.
    let _ = status.add_header(&mut headers);
    let _ = headers.insert("grpc-status", HeaderValue::from(code.0));
    headers
}

/// A message with its prefix, not compressed.
pub(super) fn framed(message: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(5 + message.len());
    framed.put_u8(0);
    // Responses are small.
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.extend_from_slice(message);
    framed.freeze()
}
