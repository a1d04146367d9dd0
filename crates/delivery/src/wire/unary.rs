//! What the two unary protocols share: a request is encoded once and its bytes are kept for all attempts.

use std::io;

use bytes::Bytes;

use super::compress::{Compression, Compressor};
use super::message;
use crate::outcome::Outcome;
use crate::payload::Encode;

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
