//! Text files: one packet per line.

use std::io::Read;

use crate::error::CaptureError;
use crate::item::{Item, Packet, SkipReason, Transport};
use crate::source::Source;

/// Reads lines ended by LF or CR LF; the last one may lack its end.
#[derive(Debug)]
pub(crate) struct Lines {
    max_line_bytes: usize,
}

impl Lines {
    pub(crate) fn new(max_line_bytes: usize) -> Self {
        Self { max_line_bytes }
    }

    pub(crate) fn next<R: Read>(&mut self, source: &mut Source<R>) -> Result<Option<Item>, CaptureError> {
        if source.at_end()? {
            return Ok(None);
        }
        let offset = source.offset();
        // One byte more than the limit is kept, so that a CR after a line of exactly the limit does not count.
        let keep_bytes = self.max_line_bytes.saturating_add(1);
        let mut line = Vec::new();
        let mut length: usize = 0;
        loop {
            let available = source.buffered()?;
            let end = available.iter().position(|&byte| byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            line.extend_from_slice(&part[..part.len().min(keep_bytes - line.len())]);
            length = length.saturating_add(part.len());
            let taken = part.len() + usize::from(end.is_some());
            source.consume(taken);
            if end.is_some() || taken == 0 {
                break;
            }
        }
        if length <= keep_bytes && line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
            length -= 1;
        }
        if length == 0 {
            let reason = SkipReason::EmptyLine;
            return Ok(Some(Item::Skipped { offset, reason }));
        }
        let truncated = length > self.max_line_bytes;
        line.truncate(self.max_line_bytes);
        Ok(Some(Item::Packet(Packet {
            time_unix_nano: None,
            source: None,
            destination: None,
            payload: line,
            transport: Transport::File,
            offset,
            truncated,
        })))
    }
}
