//! Messages of gRPC as they come, before anything else looks at them.

use bytes::{Buf as _, Bytes, BytesMut};
use h2::RecvStream;

use crate::sink::MAX_MESSAGE_BYTES;

/// Length of the prefix of a message: a flag and the length.
const PREFIX_BYTES: usize = 5;

/// A message could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    /// The client or the connection went away.
    #[error("the request ended early: {0}")]
    Gone(#[from] h2::Error),
    /// What came is no message.
    #[error("{0}")]
    Message(String),
}

/// The body of a request, message by message.
#[derive(Debug)]
pub(super) struct Messages {
    stream: RecvStream,
    buffer: BytesMut,
}

/// A message as it came.
#[derive(Debug)]
pub(super) struct RawMessage {
    pub(super) compressed: bool,
    pub(super) bytes: Bytes,
}

impl Messages {
    pub(super) fn new(stream: RecvStream) -> Self {
        Self { stream, buffer: BytesMut::new() }
    }

    /// Waits until a message begins; false at the end. May be called again when it was given up.
    pub(super) async fn begins(&mut self) -> Result<bool, ReadError> {
        while self.buffer.len() < PREFIX_BYTES {
            if !self.fill().await? {
                let left = self.buffer.len();
                let cut = || ReadError::Message(format!("{left} bytes of a prefix, expected {PREFIX_BYTES}"));
                return if left == 0 { Ok(false) } else { Err(cut()) };
            }
        }
        Ok(true)
    }

    /// Waits until a part of the message is there.
    pub(super) async fn part(&mut self) -> Result<(), ReadError> {
        while self.buffer.len() <= PREFIX_BYTES && self.fill().await? {}
        Ok(())
    }

    /// Reads the message that has begun; none if there is none.
    pub(super) async fn read(&mut self) -> Result<Option<RawMessage>, ReadError> {
        if !self.begins().await? {
            return Ok(None);
        }
        let mut prefix = [0; PREFIX_BYTES];
        self.buffer.copy_to_slice(&mut prefix);
        let [flag, length @ ..] = prefix;
        let length = u32::from_be_bytes(length) as usize;
        if flag > 1 {
            return Err(ReadError::Message(format!("compression flag {flag}, expected 0 or 1")));
        }
        if length > MAX_MESSAGE_BYTES {
            return Err(ReadError::Message(format!("message of {length} bytes, expected at most {MAX_MESSAGE_BYTES}")));
        }
        while self.buffer.len() < length {
            if !self.fill().await? {
                let left = self.buffer.len();
                return Err(ReadError::Message(format!("message of {left} bytes, expected {length}")));
            }
        }
        Ok(Some(RawMessage { compressed: flag == 1, bytes: self.buffer.split_to(length).freeze() }))
    }

    /// Reads what comes next, and opens the window again; false at the end.
    async fn fill(&mut self) -> Result<bool, ReadError> {
        let Some(data) = self.stream.data().await.transpose()? else {
            return Ok(false);
        };
        self.stream.flow_control().release_capacity(data.len())?;
        self.buffer.extend_from_slice(&data);
        Ok(true)
    }
}
