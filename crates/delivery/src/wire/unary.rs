//! What the two unary protocols share: a request is encoded once and its bytes are kept for all attempts.

use std::io;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tokio::time::Instant;
use tower_service::Service as _;

use super::compress::{Compression, Compressor};
use super::connection::{BoxError, Connect, Connection, RequestBody, lost};
use super::{Tally, Wire, message};
use crate::outcome::Outcome;
use crate::payload::{Encode, Payload};
use crate::signal::Signal;

/// What tells one unary protocol from another.
pub trait Dialect {
    /// The request around what has been encoded.
    fn request(&self, signal: Signal, ready: &Ready, deadline: Instant) -> Request<RequestBody>;

    /// Reads an answer to its end. Also gives whether the connection can be used again.
    fn read<B>(&self, response: Response<B>) -> impl Future<Output = (Outcome, bool)>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin;
}

/// The wire of a unary protocol: one call a request.
pub struct Unary<C: Connect, E, D> {
    connection: Connection<C>,
    maker: Maker<E>,
    dialect: D,
    tally: Tally,
    /// A request is out.
    sent: bool,
}

impl<C: Connect, E, D> Unary<C, E, D> {
    pub(super) fn with_maker(connection: Connection<C>, maker: Maker<E>, dialect: D) -> Self {
        Self { connection, maker, dialect, tally: Tally::default(), sent: false }
    }
}

impl<P, C, E, D> Wire<P> for Unary<C, E, D>
where
    P: Payload,
    C: Connect,
    E: Encode<P>,
    D: Dialect,
{
    type Kept = Ready;

    async fn attempt(&mut self, payloads: &[P], kept: &mut Option<Ready>, deadline: Instant) -> Outcome {
        let Some(signal) = payloads.first().map(Payload::signal) else { return Outcome::OK };
        let ready = match kept {
            Some(ready) => ready,
            None => match self.maker.make(payloads) {
                Ok(ready) => kept.insert(ready),
                Err(outcome) => return outcome,
            },
        };
        let service = match self.connection.ready().await {
            Ok(service) => service,
            Err(outcome) => return outcome,
        };
        let request = self.dialect.request(signal, ready, deadline);
        self.tally.raw_bytes += ready.raw as u64;
        self.tally.wire_bytes += ready.body.len() as u64;
        self.sent = true;
        let response = service.call(request).await.map_err(Into::<BoxError>::into);
        let (outcome, is_usable) = match response {
            Ok(response) => self.dialect.read(response).await,
            Err(error) => (lost(&*error), false),
        };
        if !is_usable {
            self.connection.leave();
        }
        self.sent = false;
        outcome
    }

    fn abandon(&mut self) -> bool {
        self.connection.leave();
        std::mem::take(&mut self.sent)
    }

    fn tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    async fn close(&mut self) {
        self.connection.leave();
    }
}

/// A request that is ready to be sent, as often as needed.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The body.
    pub(super) body: Bytes,
    /// Bytes before compression.
    pub(super) raw: usize,
}

/// Makes requests.
pub(super) struct Maker<E> {
    encoder: E,
    compressor: Option<Compressor>,
    scratch: Vec<u8>,
    limit: usize,
    /// Bytes to leave for gRPC's message header.
    prefix: usize,
}

impl<E> Maker<E> {
    pub(super) fn new(encoder: E, compression: Compression, limit: usize, framed: bool) -> io::Result<Self> {
        let compressor = Compressor::new(compression)?;
        let prefix = if framed { message::HEADER } else { 0 };
        Ok(Self { encoder, compressor, scratch: Vec::new(), limit, prefix })
    }

    /// Encodes and compresses; the limit is held before and behind compression.
    pub(super) fn make<P>(&mut self, payloads: &[P]) -> Result<Ready, Outcome>
    where
        E: Encode<P>,
    {
        let unencodable = |error: &dyn std::fmt::Display| Outcome::Unencodable { message: error.to_string() };
        let prefix = self.prefix;
        let (mut body, raw) = if let Some(compressor) = &mut self.compressor {
            self.scratch.clear();
            self.encoder.encode(payloads, &mut self.scratch).map_err(|error| unencodable(&error))?;
            check(self.scratch.len(), self.limit)?;
            let body = compressor.compress(&self.scratch, prefix).map_err(|error| unencodable(&error))?;
            check(body.len() - prefix, self.limit)?;
            let raw = self.scratch.len();
            self.scratch.clear();
            self.scratch.shrink_to(1 << 20);
            (body, raw)
        } else {
            let mut body = vec![0; prefix];
            self.encoder.encode(payloads, &mut body).map_err(|error| unencodable(&error))?;
            let raw = body.len() - prefix;
            check(raw, self.limit)?;
            (Bytes::from(body), raw)
        };
        if prefix > 0 {
            let header = message::header(self.compressor.is_some(), body.len() - prefix)
                .ok_or_else(|| too_large(body.len(), u32::MAX as usize))?;
            body = with_header(body, header);
        }
        Ok(Ready { body, raw })
    }
}

/// Writes the header over the prefix; the bytes are ours alone, so nothing is copied.
fn with_header(body: Bytes, header: [u8; message::HEADER]) -> Bytes {
    let mut bytes = bytes::BytesMut::from(body);
    if let Some(prefix) = bytes.first_chunk_mut() {
        *prefix = header;
    }
    bytes.freeze()
}

fn check(size: usize, limit: usize) -> Result<(), Outcome> {
    if size > limit { Err(too_large(size, limit)) } else { Ok(()) }
}

pub(super) fn too_large(size: usize, limit: usize) -> Outcome {
    Outcome::Oversize {
        sizes: Some((size as u64, limit as u64)),
        message: format!("request of {size} bytes is over max_request_bytes of {limit}"),
    }
}
