//! gRPC's framing of messages, and its status.

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body;
use http_body_util::BodyExt;
use tonic::Code;

use super::compress::decompress;
use super::connection::BoxError;
use crate::outcome::delay::{self, Status};

/// Length of what stands before a message: flag and length.
pub const HEADER: usize = 5;

/// The five bytes before a message of `length` bytes; `None` if it is too long for them.
#[must_use]
pub fn header(compressed: bool, length: usize) -> Option<[u8; HEADER]> {
    let [a, b, c, d] = u32::try_from(length).ok()?.to_be_bytes();
    Some([u8::from(compressed), a, b, c, d])
}

/// A status as it was read from headers or trailers.
#[derive(Clone, Debug, PartialEq)]
pub struct GrpcStatus {
    /// The code; one that does not exist is UNKNOWN.
    pub code: Code,
    /// Its message, percent encoding undone.
    pub message: String,
    /// What `grpc-status-details-bin` says.
    pub details: Option<Status>,
}

/// Reads the status of headers (an answer of trailers only) or of trailers; `None` if there is none.
#[must_use]
pub fn status(headers: &HeaderMap) -> Option<GrpcStatus> {
    let code = Code::from_bytes(headers.get("grpc-status")?.as_bytes());
    let message = headers.get("grpc-message").map_or_else(String::new, |value| percent_decode(value.as_bytes()));
    let details = headers.get("grpc-status-details-bin").and_then(|value| delay::status_details(value.as_bytes()));
    Some(GrpcStatus { code, message, details })
}

fn percent_decode(bytes: &[u8]) -> String {
    let digit = |byte: Option<&u8>| byte.and_then(|&byte| char::from(byte).to_digit(16));
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte == b'%'
            && let (Some(high), Some(low)) = (digit(bytes.get(at + 1)), digit(bytes.get(at + 2)))
        {
            out.push((high * 16 + low) as u8);
            at += 3;
        } else {
            out.push(byte);
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A message, or why there is none.
#[derive(Debug, PartialEq, Eq)]
pub enum Message {
    /// Its bytes, decompressed.
    Read(Bytes),
    /// It is there, but its bytes are not: too large, or not to be decompressed. What follows can still be read.
    Unreadable(String),
}

/// Reads messages from a body, one after the other. Holds at most one message of up to the limit, and one frame.
pub struct MessageReader<B> {
    body: B,
    encoding: String,
    limit: usize,
    buffer: BytesMut,
    /// Bytes of a message that was too large, still to come.
    skip: usize,
    /// A message is reported as soon as it is skipped.
    skipped: Option<usize>,
    ended: bool,
    /// The trailers, once the body has ended.
    trailers: Option<HeaderMap>,
}

impl<B> MessageReader<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    /// Reads from the body of a response with these headers; messages over `limit` bytes are skipped.
    pub fn new(headers: &HeaderMap, body: B, limit: usize) -> Self {
        let encoding = headers.get("grpc-encoding").and_then(|value| value.to_str().ok()).unwrap_or("identity");
        Self {
            body,
            encoding: encoding.to_owned(),
            limit,
            buffer: BytesMut::new(),
            skip: 0,
            skipped: None,
            ended: false,
            trailers: None,
        }
    }

    /// The next message; `None` at the end, with [`MessageReader::trailers`]. May be dropped and called again.
    ///
    /// # Errors
    ///
    /// If the body breaks off, also in the middle of a message.
    pub async fn next(&mut self) -> Result<Option<Message>, BoxError> {
        loop {
            if let Some(message) = self.take() {
                return Ok(Some(message));
            }
            if self.ended {
                if self.skip > 0 || !self.buffer.is_empty() {
                    self.buffer.clear();
                    self.skip = 0;
                    return Err("body ends inside a message".into());
                }
                return Ok(None);
            }
            match self.body.frame().await {
                None => self.ended = true,
                Some(Err(error)) => {
                    self.ended = true;
                    return Err(error.into());
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(mut data) => {
                        let skip = self.skip.min(data.len());
                        data.advance(skip);
                        self.skip -= skip;
                        self.buffer.extend_from_slice(&data);
                    }
                    Err(frame) => {
                        if let Ok(trailers) = frame.into_trailers() {
                            self.trailers = Some(trailers);
                        }
                    }
                },
            }
        }
    }

    /// The trailers, if the body has ended with some.
    pub const fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_ref()
    }

    /// A message that is in the buffer.
    fn take(&mut self) -> Option<Message> {
        if self.skip == 0
            && let Some(length) = self.skipped.take()
        {
            return Some(Message::Unreadable(format!("message of {length} bytes is over {}", self.limit)));
        }
        let &[flag, a, b, c, d] = self.buffer.first_chunk::<HEADER>()?;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > self.limit {
            self.buffer.advance(HEADER);
            let here = length.min(self.buffer.len());
            self.buffer.advance(here);
            self.skip = length - here;
            self.skipped = Some(length);
            return if self.skip == 0 { self.take() } else { None };
        }
        if self.buffer.len() < HEADER + length {
            return None;
        }
        self.buffer.advance(HEADER);
        let data = self.buffer.split_to(length).freeze();
        Some(match flag {
            0 => Message::Read(data),
            _ => match decompress(&self.encoding, &data, self.limit) {
                Ok(data) => Message::Read(data.into()),
                Err(error) => Message::Unreadable(format!("message cannot be decompressed: {error}")),
            },
        })
    }
}
