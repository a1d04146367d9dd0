//! OTLP and OTAP over gRPC, with messages that are encoded already.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::{BufMut as _, Bytes};
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::{BatchStatus, StatusCode};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::metrics::v1::ExportMetricsServiceResponse;
use tokio::sync::mpsc;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder, Streaming};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use super::{Failure, Queue, Run, check};

const EXPORT_PATH: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
const STREAM_PATH: &str = "/opentelemetry.proto.experimental.arrow.v1.ArrowMetricsService/ArrowMetrics";

pub(super) async fn connect(target: SocketAddr) -> Result<Grpc<Channel>, Failure> {
    let endpoint = Endpoint::from_shared(format!("http://{target}")).map_err(Failure::connection)?;
    Ok(Grpc::new(endpoint.tcp_nodelay(true).connect().await.map_err(Failure::connection)?))
}

/// Sends one request after the other until there are none.
pub(super) async fn send(
    mut client: Grpc<Channel>,
    run: Rc<Run>,
    queue: Queue,
    connections: u64,
) -> Result<(), Failure> {
    while let Some((turn, request)) = run.next_in_turn(&queue, connections).await {
        client.ready().await.map_err(Failure::connection)?;
        let path = PathAndQuery::from_static(EXPORT_PATH);
        let codec = Encoded::<ExportMetricsServiceResponse>::default();
        let answer = client.unary(Request::new(request.body.clone()), path, codec).await;
        check(answer.map_err(refused)?.into_inner())?;
        run.accept_turn(turn, &request);
    }
    Ok(())
}

/// Sends a stream of OTAP, at most `in_flight` batches ahead of the answers.
pub(super) async fn stream(
    mut client: Grpc<Channel>,
    in_flight: usize,
    run: Rc<Run>,
    queue: Queue,
) -> Result<(), Failure> {
    client.ready().await.map_err(Failure::connection)?;
    let (batches, receiver) = mpsc::channel(in_flight);
    // A server may answer the head only when the first batch is there.
    let mut waiting: VecDeque<super::Request> = VecDeque::with_capacity(in_flight);
    let mut answers: Option<Streaming<BatchStatus>> = None;
    let mut stream = Some(ReceiverStream::new(receiver));
    loop {
        while waiting.len() < in_flight {
            let Some(request) = run.next(&queue).await else { break };
            batches.send(request.body.clone()).await.map_err(Failure::connection)?;
            waiting.push_back(request);
        }
        if waiting.is_empty() {
            return Ok(());
        }
        if let Some(stream) = stream.take() {
            let path = PathAndQuery::from_static(STREAM_PATH);
            let opened = client.streaming(Request::new(stream), path, Encoded::default()).await;
            answers = Some(opened.map_err(refused)?.into_inner());
        }
        let answer = match &mut answers {
            Some(answers) => answers.message().await.map_err(refused)?,
            None => None,
        };
        let Some(BatchStatus { batch_id, status_code, status_message }) = answer else {
            return Err(Failure::Refused("the server ended the stream".to_owned()));
        };
        if status_code != i32::from(StatusCode::Ok) {
            return Err(Failure::Refused(format!("status {status_code} of batch {batch_id}: {status_message}")));
        }
        // Answers may come in another order. That changes no count in the end, when every batch has had one.
        if let Some(request) = waiting.pop_front() {
            run.accept(&request);
        }
    }
}

fn refused(status: Status) -> Failure {
    Failure::Refused(format!("{:?}: {}", status.code(), status.message()))
}

/// Messages go out as they are; answers are decoded.
#[derive(Debug)]
struct Encoded<A>(std::marker::PhantomData<A>);

impl<A> Default for Encoded<A> {
    fn default() -> Self {
        Self(std::marker::PhantomData)
    }
}

impl<A: prost::Message + Default + 'static> Codec for Encoded<A> {
    type Encode = Bytes;
    type Decode = A;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self::default()
    }

    fn decoder(&mut self) -> Self {
        Self::default()
    }
}

impl<A> Encoder for Encoded<A> {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(message);
        Ok(())
    }
}

impl<A: prost::Message + Default> Decoder for Encoded<A> {
    type Item = A;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<A>, Status> {
        A::decode(buffer).map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}
