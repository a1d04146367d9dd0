//! OTLP over HTTP/1.1.

use std::convert::Infallible;
use std::time::SystemTime;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use prost::Message as _;
use tokio::time::sleep;

use super::exchange::Link;
use super::items;
use super::wire::Wire;
use crate::protobuf::{CONTENT_TYPE_PROTOBUF, METRICS_PATH, RpcStatus};
use crate::sink::MAX_MESSAGE_BYTES;
use crate::sink::encoding::Encoding;
use crate::sink::http::{LOGS_PATH, TRACES_PATH};
use crate::sink::ledger::{Entry, Outcome};
use crate::sink::script::{Answer, Event, HttpBody, Lie, Moment, Protocol, RetryAfter, Signal};

/// No message of protobuf begins like this.
pub(super) const RUBBISH: &[u8] = &[0xff; 7];

type Reply = Response<Full<Bytes>>;

pub(super) async fn serve(link: Link, wire: Wire) {
    let service = service_fn(|request| async { Ok::<_, Infallible>(answer(&link, request).await) });
    // A connection that breaks is the client's affair, or the script's.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(wire), service).await;
}

/// Takes a request; whoever waits for it in vain is let go by hyper when the connection ends.
async fn answer(link: &Link, request: Request<Incoming>) -> Reply {
    let signal = match (request.method(), request.uri().path()) {
        (&Method::POST, LOGS_PATH) => Signal::Logs,
        (&Method::POST, METRICS_PATH) => Signal::Metrics,
        (&Method::POST, TRACES_PATH) => Signal::Traces,
        (method, path) => {
            let message = format!("{method} {path} is not of OTLP");
            return refusal(StatusCode::NOT_FOUND, link.undecodable(message).0);
        }
    };
    let entry = link.enter(Protocol::OtlpHttp, signal, Event::Request);
    match take(link, request, entry, signal).await {
        Ok(reply) => reply,
        Err((status, message)) => refusal(status, message),
    }
}

/// What is wrong with a request on its own account is an error.
async fn take(
    link: &Link,
    request: Request<Incoming>,
    entry: Entry,
    signal: Signal,
) -> Result<Reply, (StatusCode, String)> {
    let mut entry = link.before_body(entry).await;
    let wrong = |status, reason: String| (status, link.undecodable(reason).0);
    if request.headers().get(CONTENT_TYPE).is_none_or(|kind| kind != CONTENT_TYPE_PROTOBUF) {
        entry.finish(Outcome::Refused);
        let reason = format!("expected a body of {CONTENT_TYPE_PROTOBUF}");
        return Err(wrong(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason));
    }
    let encoding = request.headers().get(CONTENT_ENCODING).map(HeaderValue::as_bytes);
    let Some(encoding) = Encoding::from_name(encoding) else {
        entry.finish(Outcome::Refused);
        return Err(wrong(StatusCode::UNSUPPORTED_MEDIA_TYPE, "expected gzip, zstd or identity".to_owned()));
    };
    let mut body = request.into_body();
    if let Answer::Close { at: Moment::DuringBody, reset } = entry.step().answer {
        // Whatever comes, or that nothing does.
        let _ = body.frame().await;
        match link.cut(entry, reset).await {}
    }
    let body = match Limited::new(body, MAX_MESSAGE_BYTES).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            entry.finish(Outcome::Refused);
            return Err(wrong(StatusCode::PAYLOAD_TOO_LARGE, error.to_string()));
        }
        // The client is gone; dropping the entry says so.
        Err(error) => return Err((StatusCode::BAD_REQUEST, error.to_string())),
    };
    link.shared.store.add_wire_bytes(body.len());
    let wire_bytes = body.len() as u64;
    let settled = match encoding.decompress(body) {
        Ok(message) => {
            entry.read(wire_bytes, message.len() as u64);
            link.settle(&mut entry, signal, message)
        }
        Err(error) => Err(link.undecodable(error.to_string())),
    };
    match settled {
        Ok(answer) => {
            sleep(entry.step().delay).await;
            Ok(give(link, entry, signal, answer).await)
        }
        Err(error) => {
            entry.finish(Outcome::Refused);
            Err((StatusCode::BAD_REQUEST, error.to_string()))
        }
    }
}

/// Gives the answer of the script. The answers of other protocols do not come here.
async fn give(link: &Link, entry: Entry, signal: Signal, answer: Answer) -> Reply {
    let outcome = if answer.is_success() { Outcome::Accepted } else { Outcome::Refused };
    let reply = match answer {
        // The entry is dropped with the connection.
        Answer::Never => std::future::pending().await,
        Answer::Close { reset, .. } => match link.cut(entry, reset).await {},
        Answer::Http { status, retry_after, body, message } => scripted(status, retry_after, body, message),
        Answer::PartialSuccess { rejected, message } => success(items::response(signal, Some((rejected, &message)))),
        Answer::Lie(Lie::UnreadableBody) => success(RUBBISH.to_vec()),
        Answer::Goaway { .. } => {
            let mut reply = success(items::response(signal, None));
            let _ = reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            reply
        }
        _ => success(items::response(signal, None)),
    };
    entry.finish(outcome);
    reply
}

fn success(body: Vec<u8>) -> Reply {
    protobuf(StatusCode::OK, body.into())
}

fn refusal(status: StatusCode, message: String) -> Reply {
    protobuf(status, RpcStatus { message, ..RpcStatus::default() }.encode_to_vec().into())
}

fn scripted(status: u16, retry_after: Option<RetryAfter>, body: HttpBody, message: String) -> Reply {
    // The script was checked.
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = match body {
        HttpBody::Status => RpcStatus { message, ..RpcStatus::default() }.encode_to_vec().into(),
        HttpBody::Rubbish => Bytes::from_static(RUBBISH),
        HttpBody::Empty => Bytes::new(),
    };
    let mut reply = protobuf(status, body);
    let retry_after = retry_after.map(|retry_after| match retry_after {
        RetryAfter::Seconds(seconds) => seconds.to_string(),
        RetryAfter::DateIn(time) => httpdate::fmt_http_date(SystemTime::now() + time),
        RetryAfter::Text(text) => text,
    });
    if let Some(value) = retry_after.and_then(|text| HeaderValue::from_str(&text).ok()) {
        let _ = reply.headers_mut().insert(RETRY_AFTER, value);
    }
    reply
}

fn protobuf(status: StatusCode, body: Bytes) -> Reply {
    let mut reply = Response::new(Full::new(body));
    *reply.status_mut() = status;
    let _ = reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE_PROTOBUF));
    reply
}
