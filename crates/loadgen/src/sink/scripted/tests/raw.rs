//! A client of gRPC that sees frames.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::client::{self, ResponseFuture, SendRequest};
use h2::{PingPong, SendStream};
use hyper::{HeaderMap, Method, Request};
use prost::Message as _;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::super::grpc::framed;
use super::request;

/// What came back of a call.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) head: HeaderMap,
    pub(super) body: Vec<u8>,
    pub(super) trailers: Option<HeaderMap>,
}

/// A connection.
pub(super) struct Raw {
    pub(super) send: SendRequest<Bytes>,
    pub(super) pings: PingPong,
    /// Ends with the connection.
    pub(super) connection: JoinHandle<Result<(), h2::Error>>,
}

impl Raw {
    pub(super) async fn connect(address: Option<SocketAddr>) -> Self {
        let stream = TcpStream::connect(address.unwrap()).await.unwrap();
        let (send, mut connection) = client::handshake(stream).await.unwrap();
        let pings = connection.ping_pong().unwrap();
        Self { send, pings, connection: tokio::spawn(connection) }
    }

    /// Begins a call of the logs service.
    pub(super) async fn begin(&mut self) -> Result<(ResponseFuture, SendStream<Bytes>), h2::Error> {
        let uri = "http://sink/opentelemetry.proto.collector.logs.v1.LogsService/Export";
        let request = Request::builder().method(Method::POST).uri(uri).header("content-type", "application/grpc");
        let mut send = self.send.clone().ready().await?;
        send.send_request(request.header("te", "trailers").body(()).unwrap(), false)
    }

    /// Sends a whole request.
    pub(super) async fn send(&mut self, items: u64) -> Result<ResponseFuture, h2::Error> {
        let (response, mut stream) = self.begin().await?;
        stream.send_data(framed(&request(0..items).encode_to_vec()), true)?;
        Ok(response)
    }

    pub(super) async fn call(&mut self, items: u64) -> Result<Answered, h2::Error> {
        answered(self.send(items).await?).await
    }
}

pub(super) async fn answered(response: ResponseFuture) -> Result<Answered, h2::Error> {
    let (head, mut stream) = response.await?.into_parts();
    let mut body = Vec::new();
    while let Some(data) = stream.data().await.transpose()? {
        body.extend_from_slice(&data);
    }
    Ok(Answered { head: head.headers, body, trailers: stream.trailers().await? })
}
