//! Lengths in Arrow IPC streams, checked before Arrow believes them.
//!
//! Arrow's reader reserves the memory that a stream says it needs. A wrong length asks for terabytes, and a failed
//! allocation ends the process, which nobody can catch.

use otel_arrow_dfe_pdata::arrow::ipc::{Message, RecordBatch, root_as_message};

/// Marks the beginning of a message; streams of the oldest format do without.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// A length that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum IpcError {
    /// Something is longer than what is left of the stream.
    #[error("arrow stream, offset {offset}: the {part} has {length} bytes, but {left} are left")]
    TooLong { offset: usize, part: &'static str, length: i64, left: usize },
    /// The head of a message is not what it should be.
    #[error("arrow stream, offset {offset}: {reason}")]
    Head { offset: usize, reason: String },
    /// The buffers of a message grow too much when they are decompressed.
    #[error("arrow stream, offset {offset}: more than {most} bytes after decompression")]
    TooLarge { offset: usize, most: usize },
}

/// Walks through the messages of `stream`, whose buffers may have `most` bytes altogether after decompression.
///
/// # Errors
///
/// [`IpcError`] at the first length that does not fit. What else may be wrong is left to Arrow.
pub(super) fn check(stream: &[u8], most: usize) -> Result<(), IpcError> {
    let mut rest = Rest { bytes: stream, offset: 0 };
    let mut left = most;
    while !rest.bytes.is_empty() {
        let offset = rest.offset;
        let mut length = rest.array("length of the head")?;
        if length == CONTINUATION {
            length = rest.array("length of the head")?;
        }
        let length = i32::from_le_bytes(length);
        if length == 0 {
            // The end of the stream.
            return Ok(());
        }
        let head = rest.take("head", length.into())?;
        let message = root_as_message(head).map_err(|error| IpcError::Head { offset, reason: error.to_string() })?;
        let body = rest.take("body", message.bodyLength())?;
        if let Some(batch) = record_batch(message)
            && batch.compression().is_some()
        {
            let size = decompressed_bytes(batch, body);
            left = left.checked_sub(size).ok_or(IpcError::TooLarge { offset, most })?;
        }
    }
    Ok(())
}

fn record_batch(message: Message<'_>) -> Option<RecordBatch<'_>> {
    match message.header_as_dictionary_batch() {
        Some(dictionary) => dictionary.data(),
        None => message.header_as_record_batch(),
    }
}

/// What the buffers of a batch say that they have when decompressed; those that do not lie in the body, which Arrow
/// refuses, count as nothing.
fn decompressed_bytes(batch: RecordBatch<'_>, body: &[u8]) -> usize {
    let sizes = batch.buffers().into_iter().flatten().filter_map(|buffer| {
        let start = usize::try_from(buffer.offset()).ok()?;
        let size = i64::from_le_bytes(*body.get(start..)?.first_chunk()?);
        // Negative: not compressed.
        usize::try_from(size).ok()
    });
    sizes.fold(0, usize::saturating_add)
}

/// The part of a stream that is still to be read.
struct Rest<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Rest<'a> {
    fn take(&mut self, part: &'static str, length: i64) -> Result<&'a [u8], IpcError> {
        let too_long = IpcError::TooLong { offset: self.offset, part, length, left: self.bytes.len() };
        let length = usize::try_from(length).map_err(|_| too_long.clone())?;
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(too_long)?;
        self.bytes = rest;
        self.offset += length;
        Ok(taken)
    }

    fn array(&mut self, part: &'static str) -> Result<[u8; 4], IpcError> {
        let taken = self.take(part, 4)?;
        // `take` gave 4 bytes.
        Ok(taken.first_chunk().copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use otel_arrow_dfe_pdata::Producer;

    use super::super::tests::messages::logs_batch;
    use super::*;

    const MOST: usize = 1 << 20;

    /// The largest table of a batch, whose buffers are compressed.
    fn stream() -> Vec<u8> {
        let batch = Producer::new().produce_bar(&mut logs_batch(0..400)).unwrap();
        batch.arrow_payloads.into_iter().map(|payload| payload.record).max_by_key(Vec::len).unwrap()
    }

    /// What a producer makes passes, with the end mark of a stream or without.
    #[test]
    fn whole() {
        let mut stream = stream();
        check(&stream, MOST).unwrap();
        stream.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
        check(&stream, MOST).unwrap();
        check(&[], MOST).unwrap();
    }

    /// Every cut but those between messages is noticed.
    #[test]
    fn cut() {
        let stream = stream();
        let passed = (1..stream.len()).filter(|&length| check(&stream[..length], MOST).is_ok()).count();
        assert!(passed < 10, "{passed} messages");
        assert!(matches!(check(&stream[..stream.len() - 1], MOST), Err(IpcError::TooLong { part: "body", .. })));
    }

    /// Lengths beyond the stream, and below zero, are named.
    #[test]
    fn wrong_lengths() {
        let long = [&CONTINUATION[..], &[8, 0, 0, 0], &[1, 2, 3]].concat();
        assert_eq!(check(&long, MOST), Err(IpcError::TooLong { offset: 8, part: "head", length: 8, left: 3 }));
        let negative = [&CONTINUATION[..], &[0xfe, 0xff, 0xff, 0xff]].concat();
        assert_eq!(check(&negative, MOST), Err(IpcError::TooLong { offset: 8, part: "head", length: -2, left: 0 }));
        let garbage = [&CONTINUATION[..], &[4, 0, 0, 0], &[9, 9, 9, 9]].concat();
        assert!(matches!(check(&garbage, MOST), Err(IpcError::Head { offset: 0, .. })));
    }

    /// The bound is on all messages together.
    #[test]
    fn decompressed_size() {
        let stream = stream();
        assert!(matches!(check(&stream, 8), Err(IpcError::TooLarge { most: 8, .. })));
        let enough = (0..MOST).step_by(8).find(|&most| check(&stream, most).is_ok()).unwrap();
        assert!(enough > stream.len() / 2, "{enough}");
        assert!(check(&[stream.clone(), stream].concat(), enough).is_err());
    }
}
