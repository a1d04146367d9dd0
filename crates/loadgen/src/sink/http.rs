//! OTLP over HTTP/1.1: binary protobuf, plain or compressed.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use prost::Message;
use tonic::Status;

use super::encoding::Encoding;
use super::services::Receiver;
use super::store::Store;
use super::{MAX_MESSAGE_BYTES, SinkError};
use crate::protobuf::{CONTENT_TYPE_PROTOBUF, METRICS_PATH, RpcStatus};

pub(super) const LOGS_PATH: &str = "/v1/logs";
pub(super) const TRACES_PATH: &str = "/v1/traces";

/// What is done with bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bodies {
    Decoded,
    Counted,
}

/// Ends only if serving fails.
pub(super) async fn serve(listener: Option<TcpListener>, store: &Arc<Store>, bodies: Bodies) -> Result<(), SinkError> {
    let Some(listener) = listener else {
        return std::future::pending().await;
    };
    let failed = |error: std::io::Error| SinkError::Serve(error.to_string());
    let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
    loop {
        let (stream, _) = listener.accept().await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let store = Arc::clone(store);
        drop(tokio::spawn(async move {
            let service = service_fn(|request| answer(request, &store, bodies));
            // A connection that breaks is the client's affair.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        }));
    }
}

/// Takes a request; what is wrong with it is in the answer.
async fn answer(
    request: Request<Incoming>,
    store: &Arc<Store>,
    bodies: Bodies,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (code, body) = match take(request, store, bodies).await {
        // A response without a partial success is empty.
        Ok(()) => (StatusCode::OK, Bytes::new()),
        Err((code, message)) => {
            store.add_decode_error();
            (code, RpcStatus { message, ..RpcStatus::default() }.encode_to_vec().into())
        }
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = code;
    let _ = response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE_PROTOBUF));
    Ok(response)
}

async fn take(request: Request<Incoming>, store: &Arc<Store>, bodies: Bodies) -> Result<(), (StatusCode, String)> {
    let path = request.uri().path().to_owned();
    if request.method() != Method::POST || ![LOGS_PATH, METRICS_PATH, TRACES_PATH].contains(&path.as_str()) {
        return Err((StatusCode::NOT_FOUND, format!("{} {path} is not of OTLP", request.method())));
    }
    let headers = request.headers();
    if headers.get(CONTENT_TYPE).is_none_or(|kind| kind != CONTENT_TYPE_PROTOBUF) {
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, format!("expected a body of {CONTENT_TYPE_PROTOBUF}")));
    }
    let encoding = headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes);
    let encoding = Encoding::from_name(encoding)
        .ok_or_else(|| (StatusCode::UNSUPPORTED_MEDIA_TYPE, "expected gzip, zstd or identity".to_owned()))?;
    let body = Limited::new(request.into_body(), MAX_MESSAGE_BYTES).collect().await;
    let body = body.map_err(|error| (StatusCode::PAYLOAD_TOO_LARGE, error.to_string()))?.to_bytes();
    store.add_wire_bytes(body.len());
    if bodies == Bodies::Counted {
        store.add_raw();
        return Ok(());
    }
    let body = encoding.decompress(body).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    let receiver = Receiver::new(Arc::clone(store));
    match path.as_str() {
        LOGS_PATH => receiver.logs(decoded(body)?).map_err(refused),
        METRICS_PATH => receiver.metrics(decoded(body)?).map_err(refused),
        _ => {
            receiver.traces(decoded(body)?);
            Ok(())
        }
    }
}

fn decoded<M: Message + Default>(body: Bytes) -> Result<M, (StatusCode, String)> {
    M::decode(body).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))
}

fn refused(status: Status) -> (StatusCode, String) {
    (StatusCode::BAD_REQUEST, status.message().to_owned())
}
