//! Small servers on loopback that do what they are told, and payloads for them.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::{ArrowPayload, BatchArrowRecords};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::logs::v1::ExportLogsServiceRequest;
use otel_arrow_dfe_pdata::proto::opentelemetry::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use prost::Message;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint};

use super::Wire;
use super::connect::ChannelConnect;
use super::connection::{BoxError, Connect, Connection, ConnectionSettings};
use crate::outcome::Outcome;
use crate::payload::{Encode, EncodeError, EncodeStream, Payload};
use crate::signal::Signal;

mod bytes_of_messages;
mod connections;
mod grpc;
mod http1;
mod lanes;
mod streams;
mod switching;

/// Log records with numbers.
#[derive(Clone, Debug, PartialEq)]
struct Records(Vec<u64>);

impl Payload for Records {
    fn signal(&self) -> Signal {
        Signal::Logs
    }

    fn items(&self) -> usize {
        self.0.len()
    }

    fn bytes(&self) -> usize {
        self.0.len() * 20
    }

    fn split(&self, at: usize) -> Result<(Self, Self), EncodeError> {
        let (head, tail) = self.0.split_at(at);
        Ok((Self(head.to_vec()), Self(tail.to_vec())))
    }
}

/// Writes records as OTLP, and as OTAP in name only: dictionaries are played by a mark of the first message of a stream.
#[derive(Clone, Default)]
struct Writer {
    encoded: Arc<AtomicUsize>,
    fresh: bool,
}

impl Encode<Records> for Writer {
    fn encode(&mut self, payloads: &[Records], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.encoded.fetch_add(1, Ordering::Relaxed);
        let log = |number: &u64| LogRecord { time_unix_nano: *number, ..LogRecord::default() };
        let log_records = payloads.iter().flat_map(|records| records.0.iter().map(log)).collect();
        let scope_logs = vec![ScopeLogs { log_records, ..ScopeLogs::default() }];
        let request =
            ExportLogsServiceRequest { resource_logs: vec![ResourceLogs { scope_logs, ..ResourceLogs::default() }] };
        request.encode(out).map_err(|error| EncodeError::new(error.to_string()))
    }
}

impl EncodeStream<Records> for Writer {
    fn reset(&mut self, _: Signal) {
        self.fresh = true;
    }

    fn encode(&mut self, batch_id: i64, payloads: &[Records], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.encoded.fetch_add(1, Ordering::Relaxed);
        let record = payloads.iter().flat_map(|records| records.0.iter().flat_map(|item| item.to_be_bytes())).collect();
        let schema_id = if std::mem::take(&mut self.fresh) { "first" } else { "next" }.to_owned();
        let arrow_payloads = vec![ArrowPayload { schema_id, r#type: 0, record }];
        let batch = BatchArrowRecords { batch_id, arrow_payloads, headers: Vec::new() };
        batch.encode(out).map_err(|error| EncodeError::new(error.to_string()))
    }
}

fn numbers_of(request: &ExportLogsServiceRequest) -> Vec<u64> {
    let scopes = request.resource_logs.iter().flat_map(|resource| &resource.scope_logs);
    scopes.flat_map(|scope| scope.log_records.iter().map(|log| log.time_unix_nano)).collect()
}

/// A request on a server of ours.
struct Exchange {
    /// Number of its connection, from 0.
    connection: usize,
    head: http::request::Parts,
    body: RecvStream,
    respond: SendResponse<Bytes>,
    /// Closes the connection.
    kill: Arc<Notify>,
}

type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Exchange {
    /// The whole body.
    async fn read(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(Ok(data)) = self.body.data().await {
            _ = self.body.flow_control().release_capacity(data.len());
            all.extend_from_slice(&data);
        }
        all
    }

    /// The next message of a stream.
    async fn batch(&mut self, buffer: &mut Vec<u8>) -> Option<BatchArrowRecords> {
        loop {
            if let Some(head) = buffer.first_chunk::<5>() {
                let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
                if buffer.len() >= 5 + length {
                    let message = BatchArrowRecords::decode(&buffer[5..5 + length]).expect("a batch");
                    buffer.drain(..5 + length);
                    return Some(message);
                }
            }
            let data = self.body.data().await?.ok()?;
            _ = self.body.flow_control().release_capacity(data.len());
            buffer.extend_from_slice(&data);
        }
    }

    /// Headers, data, trailers; without trailers and data, headers only.
    fn answer(&mut self, status: u16, headers: &[(&str, &str)], data: &[u8], trailers: Option<&[(&str, &str)]>) {
        let mut response = Response::new(());
        *response.status_mut() = http::StatusCode::from_u16(status).expect("a status");
        *response.headers_mut() = map(headers);
        let only = data.is_empty() && trailers.is_none();
        let Ok(mut stream) = self.respond.send_response(response, only) else { return };
        if !data.is_empty() {
            _ = stream.send_data(Bytes::copy_from_slice(data), trailers.is_none());
        }
        if let Some(trailers) = trailers {
            _ = stream.send_trailers(map(trailers));
        }
    }

    /// A gRPC answer with one message and a status.
    fn grpc(&mut self, message: &[u8], status: &[(&str, &str)]) {
        self.answer(200, &[("content-type", "application/grpc")], &framed(0, message), Some(status));
    }

    fn ok(&mut self) {
        self.grpc(&[], &[("grpc-status", "0")]);
    }

    fn reset(&mut self, reason: Reason) {
        self.respond.send_reset(reason);
    }
}

fn map(pairs: &[(&str, &str)]) -> HeaderMap {
    let name = |text: &str| HeaderName::try_from(text.to_owned()).expect("a name");
    pairs.iter().map(|(key, value)| (name(key), HeaderValue::from_str(value).expect("a value"))).collect()
}

fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
    let mut all = vec![flag];
    all.extend_from_slice(&(message.len() as u32).to_be_bytes());
    all.extend_from_slice(message);
    all
}

/// An HTTP/2 server; the handler sees the requests of all connections.
async fn serve<F>(handler: impl Fn(Exchange) -> F + Send + Sync + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let handler: Arc<dyn Fn(Exchange) -> BoxFuture + Send + Sync> =
        Arc::new(move |exchange| Box::pin(handler(exchange)));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let mut count = 0;
        while let Ok((stream, _)) = listener.accept().await {
            drop(tokio::spawn(connection(stream, count, handler.clone())));
            count += 1;
        }
    });
    address
}

async fn connection(stream: TcpStream, number: usize, handler: Arc<dyn Fn(Exchange) -> BoxFuture + Send + Sync>) {
    let kill = Arc::new(Notify::new());
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    loop {
        let accepted = tokio::select! {
            accepted = connection.accept() => accepted,
            () = kill.notified() => return,
        };
        let Some(Ok((request, respond))) = accepted else { return };
        let (head, body) = request.into_parts();
        let exchange = Exchange { connection: number, head, body, respond, kill: kill.clone() };
        drop(tokio::spawn(handler(exchange)));
    }
}

/// Connects to any of a list of addresses, in the way of the real thing.
struct Listed {
    addresses: Vec<SocketAddr>,
    channels: ChannelConnect,
    tried: Arc<Mutex<Vec<SocketAddr>>>,
}

impl Listed {
    fn new(addresses: Vec<SocketAddr>) -> Self {
        let endpoint = Endpoint::from_static("http://localhost:1");
        let channels = ChannelConnect::new(endpoint).expect("a host");
        Self { addresses, channels, tried: Arc::default() }
    }
}

impl Connect for Listed {
    type Body = tonic::body::Body;
    type Service = Channel;

    async fn resolve(&mut self) -> io::Result<Vec<SocketAddr>> {
        Ok(self.addresses.clone())
    }

    async fn connect(&mut self, address: SocketAddr) -> Result<Channel, BoxError> {
        self.tried.lock().expect("a list").push(address);
        self.channels.connect(address).await
    }
}

fn to(address: SocketAddr) -> Connection<Listed> {
    Connection::new(Listed::new(vec![address]), ConnectionSettings::default())
}

/// One attempt with fresh bytes.
async fn attempt<W: Wire<Records>>(wire: &mut W, items: std::ops::Range<u64>) -> Outcome {
    again(wire, items, &mut None).await
}

/// One attempt with what was kept of the last.
async fn again<W: Wire<Records>>(wire: &mut W, items: std::ops::Range<u64>, kept: &mut Option<W::Kept>) -> Outcome {
    let deadline = Instant::now() + Duration::from_secs(20);
    wire.attempt(&[Records(items.collect())], kept, deadline).await
}

/// As in the tables: R again, A again and may double, P never, O too large, + accepted, W with a warning.
fn class(outcome: &Outcome) -> char {
    match outcome {
        Outcome::Retry { ambiguous: true, .. } => 'A',
        Outcome::Retry { .. } => 'R',
        Outcome::Permanent { .. } => 'P',
        Outcome::Oversize { .. } => 'O',
        Outcome::Accepted { warning: None, .. } => '+',
        Outcome::Accepted { .. } => 'W',
        Outcome::Downgrade { .. } => 'D',
        _ => '?',
    }
}
