//! OTLP over gRPC: one unary call a request.
//!
//! The gRPC frame is made here, with a size that is known beforehand, a compression level, and no copy behind the
//! encoder; so the status is read here too, from headers or trailers.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, TE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body::Body;
use http_body_util::Full;
use tokio::time::Instant;
use tonic::Code;

use super::compress::Compression;
use super::connection::{BoxError, Connect, Connection, RequestBody, lost};
use super::message::{self, GrpcStatus, Message, MessageReader};
use super::unary::{Dialect, Maker, Ready, Unary};
use crate::outcome::{Outcome, ResourceExhausted, grpc, partial};
use crate::signal::Signal;

/// Settings of OTLP over gRPC.
#[derive(Clone, Debug)]
pub struct GrpcSettings {
    /// Scheme and authority of requests, such as `https://collector:4317`. A tonic channel puts its own in their place.
    pub origin: Uri,
    /// Further headers of every request.
    pub headers: HeaderMap,
    /// How messages are compressed. Default: not.
    pub compression: Compression,
    /// Largest message before and behind compression, in bytes. Default 4 MiB, which is what servers take by default.
    pub max_request_bytes: usize,
    /// Largest message of an answer, in bytes, also decompressed. Default 4 MiB.
    pub max_response_bytes: usize,
    /// How RESOURCE_EXHAUSTED without a delay is read.
    pub resource_exhausted: ResourceExhausted,
}

impl Default for GrpcSettings {
    fn default() -> Self {
        Self {
            origin: Uri::from_static("http://localhost:4317"),
            headers: HeaderMap::new(),
            compression: Compression::None,
            max_request_bytes: 4 << 20,
            max_response_bytes: 4 << 20,
            resource_exhausted: ResourceExhausted::default(),
        }
    }
}

/// The name under which requests are sent.
pub(super) const AGENT: HeaderValue = HeaderValue::from_static(concat!("catchment/", env!("CARGO_PKG_VERSION")));

/// The wire.
pub type OtlpGrpc<C, E> = Unary<C, E, GrpcSettings>;

impl<C: Connect, E> Unary<C, E, GrpcSettings> {
    /// A wire over connections of its own.
    ///
    /// # Errors
    ///
    /// If there is no such compression level.
    pub fn new(connection: Connection<C>, encoder: E, settings: GrpcSettings) -> io::Result<Self> {
        let maker = Maker::new(encoder, settings.compression, settings.max_request_bytes, true)?;
        Ok(Self::with_maker(connection, maker, settings))
    }
}

impl Dialect for GrpcSettings {
    fn request(&self, signal: Signal, ready: &Ready, deadline: Instant) -> Request<RequestBody> {
        let body = RequestBody::new(Full::new(ready.body.clone()));
        let mut request = request(&self.origin, signal.otlp_grpc_path(), &self.headers, self.compression, body);
        let left = deadline.saturating_duration_since(Instant::now());
        request.headers_mut().insert("grpc-timeout", timeout_header(left));
        request
    }

    async fn read<B>(&self, response: Response<B>) -> (Outcome, bool)
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        let (head, body) = response.into_parts();
        if let Some(status) = message::status(&head.headers) {
            return (self.judge(&status, None), true);
        }
        let grpc = head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
        if head.status != StatusCode::OK || !grpc {
            let code = grpc::code_of_http(head.status);
            let message = format!("answer is HTTP {} and not gRPC", head.status.as_u16());
            return (self.judge(&GrpcStatus { code, message, details: None }, None), true);
        }
        let mut reader = MessageReader::new(&head.headers, body, self.max_response_bytes);
        let mut answer = None;
        loop {
            match reader.next().await {
                Ok(Some(message)) => answer = answer.or(Some(message)),
                Ok(None) => break,
                Err(error) => return (lost(&*error), false),
            }
        }
        match reader.trailers().and_then(message::status) {
            Some(status) => (self.judge(&status, answer), true),
            None => (Outcome::unanswered("answer ends without grpc-status"), false),
        }
    }
}

impl GrpcSettings {
    fn judge(&self, status: &GrpcStatus, answer: Option<Message>) -> Outcome {
        if status.code != Code::Ok {
            let delay = status.details.as_ref().and_then(crate::outcome::delay::Status::retry_delay);
            return grpc::classify(status.code, &status.message, delay, self.resource_exhausted);
        }
        match answer {
            Some(Message::Read(body)) => partial::read(&body),
            Some(Message::Unreadable(why)) => Outcome::unreadable(why),
            None => Outcome::unreadable("status OK without an answer"),
        }
    }
}

/// `grpc-timeout`, with at most eight digits.
fn timeout_header(left: Duration) -> HeaderValue {
    let text = match left.as_millis() {
        millis @ 0..100_000_000 => format!("{millis}m"),
        _ => format!("{}S", left.as_secs().min(99_999_999)),
    };
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("99999999S"))
}

/// A gRPC request with its headers.
pub(super) fn request(
    origin: &Uri,
    path: &'static str,
    headers: &HeaderMap,
    compression: Compression,
    body: RequestBody,
) -> Request<RequestBody> {
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    *request.version_mut() = http::Version::HTTP_2;
    let mut parts = origin.clone().into_parts();
    // A base path stays in front, as behind a proxy that tells services apart by it.
    let base = origin.path().trim_end_matches('/');
    parts.path_and_query = format!("{base}{path}").parse().ok();
    *request.uri_mut() = Uri::from_parts(parts).unwrap_or(Uri::from_static(path));
    *request.headers_mut() = headers.clone();
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(TE, HeaderValue::from_static("trailers"));
    headers.entry(USER_AGENT).or_insert(AGENT);
    headers.insert("grpc-accept-encoding", HeaderValue::from_static("identity,gzip,zstd"));
    if let Some(name) = compression.name() {
        headers.insert("grpc-encoding", HeaderValue::from_static(name));
    }
    request
}
