//! Services that read requests and say yes: nothing of them is decoded but the number of an OTAP batch, which its status
//! has to name.
//!
//! What arrives costs a reader as little as can be, so that it is the sender that is measured. Bodies of OTLP are not
//! even decompressed; batches of OTAP are where gRPC compresses messages, since their number is inside.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body_util::{BodyExt as _, Full};
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::{BatchStatus, StatusCode};
use prost::Message as _;
use tonic::body::Body;
use tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::tokio_stream::StreamExt as _;
use tonic::codegen::{BoxFuture, BoxStream, Service, http};
use tonic::metadata::GRPC_CONTENT_TYPE;
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Request, Response, Status, Streaming};

use super::MAX_MESSAGE_BYTES;
use super::measured::is_undecodable;
use super::store::Store;

/// An answer of OTLP without a partial success: an empty message behind its prefix.
const EMPTY_ANSWER: &[u8] = &[0; 5];

/// What the one method of a service is.
#[derive(Debug, Clone, Copy)]
enum Method {
    /// A request of OTLP.
    Unary,
    /// A stream of OTAP.
    Stream,
}

/// Serves in place of `S`, under its name.
pub(super) struct Raw<S> {
    method: Method,
    store: Arc<Store>,
    service: PhantomData<fn() -> S>,
}

impl<S> Raw<S> {
    /// A service of OTLP.
    pub(super) fn otlp(store: Arc<Store>) -> Self {
        Self { method: Method::Unary, store, service: PhantomData }
    }

    /// A service of OTAP.
    pub(super) fn otap(store: Arc<Store>) -> Self {
        Self { method: Method::Stream, store, service: PhantomData }
    }
}

impl<S> Clone for Raw<S> {
    fn clone(&self) -> Self {
        Self { method: self.method, store: Arc::clone(&self.store), service: PhantomData }
    }
}

impl<S: NamedService> NamedService for Raw<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for Raw<S> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let store = Arc::clone(&self.store);
        match self.method {
            Method::Unary => Box::pin(async move { Ok(take(request.into_body(), &store).await) }),
            Method::Stream => Box::pin(async move {
                let mut grpc = Grpc::new(NumberCodec)
                    .accept_compressed(CompressionEncoding::Zstd)
                    .accept_compressed(CompressionEncoding::Gzip)
                    .max_decoding_message_size(MAX_MESSAGE_BYTES);
                Ok(grpc.streaming(Batches(store), request).await)
            }),
        }
    }
}

/// Reads a body to its end. One that breaks off was no request.
async fn take(mut body: Body, store: &Store) -> http::Response<Body> {
    while let Some(frame) = body.frame().await {
        if let Err(status) = frame {
            return status.into_http();
        }
    }
    store.add_raw();
    let trailers = async {
        let mut trailers = http::HeaderMap::new();
        let _ = trailers.insert(Status::GRPC_STATUS, http::HeaderValue::from_static("0"));
        Some(Ok(trailers))
    };
    let mut response = http::Response::new(Body::new(Full::from(EMPTY_ANSWER).with_trailers(trailers)));
    let _ = response.headers_mut().insert(http::header::CONTENT_TYPE, GRPC_CONTENT_TYPE);
    response
}

/// Answers each batch of a stream as it is read.
struct Batches(Arc<Store>);

impl StreamingService<BatchNumber> for Batches {
    type Response = BatchStatus;
    type ResponseStream = BoxStream<BatchStatus>;
    type Future = Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<BatchNumber>>) -> Self::Future {
        let store = Arc::clone(&self.0);
        let answers = request.into_inner().map(move |batch| match batch {
            Ok(BatchNumber { batch_id }) => {
                store.add_raw();
                Ok(BatchStatus { batch_id, status_code: StatusCode::Ok.into(), ..BatchStatus::default() })
            }
            Err(status) => {
                if is_undecodable(&status) {
                    store.add_decode_error();
                }
                Err(status)
            }
        });
        ready(Ok(Response::new(Box::pin(answers))))
    }
}

/// All that is read of a batch of OTAP: protobuf passes over fields that it does not know without copying them.
#[derive(Clone, PartialEq, Eq, prost::Message)]
struct BatchNumber {
    #[prost(int64, tag = "1")]
    batch_id: i64,
}

/// Numbers in, statuses out.
#[derive(Debug, Clone, Copy)]
struct NumberCodec;

impl Codec for NumberCodec {
    type Encode = BatchStatus;
    type Decode = BatchNumber;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for NumberCodec {
    type Item = BatchStatus;
    type Error = Status;

    fn encode(&mut self, status: BatchStatus, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        status.encode(to).map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for NumberCodec {
    type Item = BatchNumber;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<BatchNumber>, Status> {
        BatchNumber::decode(from).map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}

#[cfg(test)]
mod tests;
