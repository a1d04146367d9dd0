//! OTLP over HTTP: one POST a request, protobuf only.
//!
//! Redirects are not followed: a request with telemetry and credentials goes where it was configured to go, and a
//! redirect is a refusal that says so.

use std::io;
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use tokio::time::Instant;

use super::compress::{Compression, decompress};
use super::connection::{BoxError, Connect, Connection, RequestBody};
use super::otlp_grpc::AGENT;
use super::unary::{Dialect, Maker, Ready, Unary};
use crate::outcome::{Outcome, http as classes, partial};
use crate::signal::Signal;

/// Most bytes of the body of a failure that are read.
const FAILURE_LIMIT: usize = 64 << 10;

/// Settings of OTLP over HTTP.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// The address to post a signal to, by [`Signal::index`]. See [`HttpSettings::endpoint`].
    pub targets: [Uri; 3],
    /// Further headers of every request.
    pub headers: HeaderMap,
    /// How bodies are compressed. Default: not.
    pub compression: Compression,
    /// Largest body before and behind compression, in bytes. Default 4 MiB.
    pub max_request_bytes: usize,
    /// Largest body of an answer, in bytes, also decompressed. Default 4 MiB.
    pub max_response_bytes: usize,
}

impl HttpSettings {
    /// The defaults, with the paths of the specification (`/v1/logs` and its kin) behind the address of a server.
    ///
    /// # Errors
    ///
    /// If the address has no scheme or no host.
    pub fn endpoint(base: &Uri) -> io::Result<Self> {
        let invalid =
            || io::Error::new(io::ErrorKind::InvalidInput, format!("{base}: right would be https://host:port"));
        if base.scheme().is_none() || base.host().is_none() {
            return Err(invalid());
        }
        let target = |signal: Signal| {
            let path = format!("{}{}", base.path().trim_end_matches('/'), signal.otlp_http_path());
            let mut parts = base.clone().into_parts();
            parts.path_and_query = Some(path.parse().map_err(|_| invalid())?);
            Uri::from_parts(parts).map_err(|_| invalid())
        };
        Ok(Self {
            targets: [target(Signal::Logs)?, target(Signal::Metrics)?, target(Signal::Traces)?],
            headers: HeaderMap::new(),
            compression: Compression::None,
            max_request_bytes: 4 << 20,
            max_response_bytes: 4 << 20,
        })
    }
}

/// The wire.
pub type OtlpHttp<C, E> = Unary<C, E, HttpSettings>;

impl<C: Connect, E> Unary<C, E, HttpSettings> {
    /// A wire over connections of its own, which must be HTTP/1.1.
    ///
    /// # Errors
    ///
    /// If there is no such compression level.
    pub fn new(connection: Connection<C>, encoder: E, settings: HttpSettings) -> io::Result<Self> {
        let maker = Maker::new(encoder, settings.compression, settings.max_request_bytes, false)?;
        Ok(Self::with_maker(connection, maker, settings))
    }
}

impl Dialect for HttpSettings {
    fn request(&self, signal: Signal, ready: &Ready, _deadline: Instant) -> Request<RequestBody> {
        let target = &self.targets[signal.index()];
        let mut request = Request::new(RequestBody::new(Full::new(ready.body.clone())));
        *request.method_mut() = Method::POST;
        // HTTP/1.1 names the path only, and the host in a header.
        *request.uri_mut() = Uri::from(target.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/")));
        *request.headers_mut() = self.headers.clone();
        let headers = request.headers_mut();
        if let Some(host) = target.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok()) {
            headers.insert(HOST, host);
        }
        headers.entry(USER_AGENT).or_insert(AGENT);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(ready.body.len()));
        if let Some(name) = self.compression.name() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(name));
        }
        request
    }

    async fn read<B>(&self, response: Response<B>) -> (Outcome, bool)
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        let (head, body) = response.into_parts();
        let success = head.status.is_success();
        let limit = self.max_response_bytes;
        let (body, whole) = collect(body, if success { limit } else { limit.min(FAILURE_LIMIT) }).await;
        // What is left of a body is in the way of the next answer.
        let is_usable = whole.is_ok();
        let encoding = head.headers.get(CONTENT_ENCODING).map_or(Ok("identity"), HeaderValue::to_str);
        let plain = match (&whole, encoding) {
            (Ok(()), Ok(name)) => decompress(name, &body, limit).map_err(|error| error.to_string()),
            (Ok(()), Err(_)) => Err("content-encoding is not text".to_owned()),
            (Err(why), _) => Err(why.clone()),
        };
        if !success {
            let said = plain.unwrap_or(body);
            return (classes::classify(head.status, &head.headers, &said, SystemTime::now()), is_usable);
        }
        let outcome = match plain {
            Err(why) => Outcome::unreadable(format!("answer cannot be read: {why}")),
            Ok(body) if body.is_empty() => Outcome::OK,
            Ok(body) => match head.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes) {
                Some(kind) if !kind.starts_with(b"application/x-protobuf") => {
                    Outcome::unreadable(format!("answer is {}, not protobuf", String::from_utf8_lossy(kind)))
                }
                _ => partial::read(&body),
            },
        };
        (outcome, is_usable)
    }
}

/// As much of a body as `limit` allows, and whether that was all.
async fn collect<B>(mut body: B, limit: usize) -> (Vec<u8>, Result<(), String>)
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => {
                let Ok(data) = frame.into_data() else { continue };
                let room = limit - bytes.len();
                bytes.extend_from_slice(&data[..data.len().min(room)]);
                if data.len() > room {
                    return (bytes, Err(format!("body is over {limit} bytes")));
                }
            }
            Err(error) => return (bytes, Err(error.into().to_string())),
        }
    }
    (bytes, Ok(()))
}
