//! What tonic's services do not show: the bytes as they arrive, and requests that fail before they reach a service.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http_body::{Frame, SizeHint};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Bytes, Service, http};
use tonic::server::NamedService;
use tonic::{Code, Status};

use super::store::Store;

/// Names the compression of a gRPC message.
const ENCODING: &str = "grpc-encoding";

/// A gRPC service whose request bodies and undecodable requests are counted.
#[derive(Debug, Clone)]
pub(super) struct Measured<S> {
    inner: S,
    store: Arc<Store>,
}

impl<S> Measured<S> {
    pub(super) fn new(inner: S, store: Arc<Store>) -> Self {
        Self { inner, store }
    }
}

impl<S: NamedService> NamedService for Measured<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for Measured<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let (mut head, inner) = request.into_parts();
        // The Go exporter names its zstd encoders one by one: zstdarrow1 to zstdarrow10.
        if head.headers.get(ENCODING).is_some_and(|name| name.as_bytes().starts_with(b"zstdarrow")) {
            let _ = head.headers.insert(ENCODING, http::HeaderValue::from_static("zstd"));
        }
        let body = Body::new(MeasuredBody { inner, store: Arc::clone(&self.store) });
        let answer = self.inner.call(http::Request::from_parts(head, body));
        let store = Arc::clone(&self.store);
        Box::pin(async move {
            let response = answer.await?;
            // Our services refuse only what they cannot decode, as tonic does before them: with a status in the head.
            if Status::from_header_map(response.headers()).is_some_and(|status| is_undecodable(&status)) {
                store.add_decode_error();
            }
            Ok(response)
        })
    }
}

/// Whether a failure to read a message is the message's fault, and not that of a connection that went away.
pub(super) fn is_undecodable(status: &Status) -> bool {
    use std::error::Error as _;
    // tonic keeps the error of the connection as the source; for what it finds out itself there is none.
    let of_the_message = matches!(
        status.code(),
        Code::InvalidArgument | Code::OutOfRange | Code::ResourceExhausted | Code::Internal | Code::Unimplemented
    );
    of_the_message && status.source().is_none()
}

/// Counts the bytes of a body as they are read: gRPC messages with their prefixes.
struct MeasuredBody {
    inner: Body,
    store: Arc<Store>,
}

impl http_body::Body for MeasuredBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.store.add_wire_bytes(data.len());
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
