//! IPFIX messages one after the other, as in RFC 5655 files and TCP sessions.

use std::io::Read;

use crate::error::CaptureError;
use crate::item::{Item, Packet, Transport};
use crate::source::Source;

/// Bytes of a message header (RFC 7011 section 3.1).
const HEADER_BYTES: usize = 16;

/// Reads one message at a time. Has no state: the length in each header leads to the next.
#[derive(Debug)]
pub(crate) struct Messages;

impl Messages {
    pub(crate) fn next<R: Read>(&mut self, source: &mut Source<R>) -> Result<Option<Item>, CaptureError> {
        if source.at_end()? {
            return Ok(None);
        }
        let offset = source.offset();
        let header: [u8; 4] = source.read_array("ipfix message header", offset)?;
        let version = u16::from_be_bytes([header[0], header[1]]);
        if version != 10 {
            let field = "ipfix message version";
            return Err(source.malformed(field, offset, version.into(), "10"));
        }
        let length = u16::from_be_bytes([header[2], header[3]]);
        let Some(rest) = usize::from(length).checked_sub(header.len()).filter(|_| usize::from(length) >= HEADER_BYTES)
        else {
            let field = "ipfix message length";
            return Err(source.malformed(field, offset, length.into(), "at least 16"));
        };
        let mut payload = header.to_vec();
        source.read_into(&mut payload, rest, "ipfix message", offset)?;
        Ok(Some(Item::Packet(Packet {
            time_unix_nano: None,
            source: None,
            destination: None,
            payload,
            transport: Transport::File,
            offset,
            truncated: false,
        })))
    }
}
