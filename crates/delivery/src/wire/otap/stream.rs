//! A stream, and what its end means.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, StatusCode};
use http_body::{Body, Frame};
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::BatchStatus;
use prost::Message as _;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tonic::Code;
use tower_service::Service;

use crate::outcome::{Outcome, ResourceExhausted, grpc};
use crate::wire::connection::{BoxError, Connect, RequestBody, lost};
use crate::wire::message::{self, GrpcStatus, Message, MessageReader};

/// Largest status that is read, in bytes.
const STATUS_LIMIT: usize = 1 << 20;

type Call<C> = <<C as Connect>::Service as Service<Request<RequestBody>>>::Future;

/// A stream of one signal.
pub(super) struct Stream<C: Connect> {
    pub(super) up: mpsc::Sender<Bytes>,
    pub(super) down: Down<C>,
    pub(super) next_id: i64,
    pub(super) batches: u64,
    pub(super) end: Option<Instant>,
    /// A status has come: the server knows the method.
    pub(super) proven: bool,
}

/// The server's side of a stream.
pub(super) enum Down<C: Connect> {
    /// There are no headers yet.
    Opening(Pin<Box<Call<C>>>),
    Open(MessageReader<C::Body>),
    Ended,
}

/// Why a stream has ended.
pub(super) enum End {
    /// By a status, of headers or trailers.
    Status(GrpcStatus),
    /// Without one.
    Lost(Outcome),
}

impl<C: Connect> Down<C> {
    /// The next status. May be dropped and called again.
    pub(super) async fn next(&mut self) -> Result<BatchStatus, End> {
        if let Self::Opening(call) = self {
            match call.as_mut().await.map_err(Into::<BoxError>::into) {
                Err(error) => {
                    *self = Self::Ended;
                    return Err(End::Lost(lost(&*error)));
                }
                Ok(response) => {
                    let (head, body) = response.into_parts();
                    if let Some(status) = refused(head.status, &head.headers) {
                        *self = Self::Ended;
                        return Err(End::Status(status));
                    }
                    *self = Self::Open(MessageReader::new(&head.headers, body, STATUS_LIMIT));
                }
            }
        }
        let Self::Open(reader) = self else { return Err(End::Lost(Outcome::unanswered("stream has ended"))) };
        let end = match reader.next().await {
            Ok(Some(Message::Read(bytes))) => match BatchStatus::decode(bytes) {
                Ok(status) => return Ok(status),
                Err(error) => End::Lost(Outcome::unanswered(format!("status cannot be read: {error}"))),
            },
            Ok(Some(Message::Unreadable(why))) => End::Lost(Outcome::unanswered(why)),
            Ok(None) => match reader.trailers().and_then(message::status) {
                Some(status) => End::Status(status),
                None => End::Lost(Outcome::unanswered("stream ends without grpc-status")),
            },
            Err(error) => End::Lost(lost(&*error)),
        };
        *self = Self::Ended;
        Err(end)
    }
}

/// The status of headers that do not open a stream.
fn refused(status: StatusCode, headers: &HeaderMap) -> Option<GrpcStatus> {
    if let Some(status) = message::status(headers) {
        return Some(status);
    }
    let grpc = headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
    (status != StatusCode::OK || !grpc).then(|| GrpcStatus {
        code: grpc::code_of_http(status),
        message: format!("answer is HTTP {} and not gRPC", status.as_u16()),
        details: None,
    })
}

/// What the end of a stream means for the batch that is out.
pub(super) fn ended(end: End, proven: bool) -> Outcome {
    let status = match end {
        End::Lost(outcome) => return outcome,
        End::Status(status) => status,
    };
    let delay = status.details.as_ref().and_then(crate::outcome::delay::Status::retry_delay);
    let outcome = grpc::classify(status.code, &status.message, delay, ResourceExhausted::Retry);
    match (status.code, outcome) {
        (Code::Unimplemented, Outcome::Permanent { message }) if !proven => Outcome::Downgrade { message },
        (Code::Ok, _) => Outcome::unanswered("server has ended the stream"),
        // These say that the stream broke, not that the batch is bad.
        (Code::Internal | Code::Unknown, _) => {
            Outcome::unanswered(format!("stream ends with {:?}: {}", status.code, status.message))
        }
        // A stream says nothing about a batch that it has no status for.
        (_, Outcome::Retry { delay, message, .. }) => Outcome::Retry { delay, ambiguous: true, message },
        (_, outcome) => outcome,
    }
}

/// The body of a stream: one message after the other; ends when the sender is dropped.
pub(super) struct Up(pub(super) mpsc::Receiver<Bytes>);

impl Body for Up {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

impl<C: Connect> Stream<C> {
    /// Whether the server has ended the stream already, as far as can be known without waiting.
    pub(super) async fn has_ended(&mut self) -> bool {
        if matches!(self.down, Down::Ended) {
            return true;
        }
        let mut next = pin!(self.down.next());
        poll_fn(|context| {
            let polled = next.as_mut().poll(context);
            // A status here is of nothing that is out.
            Poll::Ready(matches!(polled, Poll::Ready(Err(_))))
        })
        .await
    }

    /// Sends a batch and waits for its status.
    pub(super) async fn exchange(&mut self, id: i64, message: Bytes) -> Result<BatchStatus, End> {
        // If the server has ended the stream, why is on the other side.
        _ = self.up.send(message).await;
        loop {
            let status = self.down.next().await?;
            self.proven = true;
            if status.batch_id == id {
                return Ok(status);
            }
        }
    }
}
