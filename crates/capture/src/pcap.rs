//! Classic libpcap files (IETF draft-ietf-opsawg-pcap).

use std::io::Read;

use pcap_parser::parse_pcap_header;

use crate::datagram::{self, Frame};
use crate::error::CaptureError;
use crate::item::Item;
use crate::reader::MAX_RECORD_BYTES;
use crate::source::Source;

/// Bytes of the file header.
const FILE_HEADER_BYTES: usize = 24;

/// State of reading a libpcap file: what its header says, and a buffer for the record at hand.
#[derive(Debug)]
pub(crate) struct Pcap {
    big_endian: bool,
    /// Nanoseconds in one unit of the second half of a time stamp.
    nanos_per_unit: u32,
    /// Patched kernels of long ago wrote 8 bytes more after each record header.
    extra_header_bytes: u64,
    link_type: u16,
    frame: Vec<u8>,
}

impl Pcap {
    /// Reads the file header.
    pub(crate) fn open<R: Read>(source: &mut Source<R>) -> Result<Self, CaptureError> {
        let bytes: [u8; FILE_HEADER_BYTES] = source.read_array("pcap file header", 0)?;
        let Ok((_, header)) = parse_pcap_header(&bytes) else {
            let [b0, b1, b2, b3, ..] = bytes;
            let magic = u32::from_be_bytes([b0, b1, b2, b3]);
            let expected = "the magic number of a libpcap file";
            return Err(source.malformed("pcap magic number", 0, magic.into(), expected));
        };
        if header.version_major != 2 {
            let field = "pcap major version";
            return Err(source.malformed(field, 4, header.version_major.into(), "2"));
        }
        // The upper half of the field holds the length of the frame check sequence.
        let link_type = (header.network.0 & 0xffff) as u16;
        Ok(Self {
            big_endian: header.is_bigendian(),
            nanos_per_unit: if header.is_nanosecond_precision() { 1 } else { 1_000 },
            extra_header_bytes: if header.is_modified_format() { 8 } else { 0 },
            link_type,
            frame: Vec::new(),
        })
    }

    pub(crate) fn next<R: Read>(&mut self, source: &mut Source<R>) -> Result<Option<Item>, CaptureError> {
        if source.at_end()? {
            return Ok(None);
        }
        let offset = source.offset();
        const RECORD: &str = "pcap record";
        let mut word = || {
            let bytes: [u8; 4] = source.read_array(RECORD, offset)?;
            Ok(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
        };
        let (seconds, fraction, captured_bytes, original_bytes) = (word()?, word()?, word()?, word()?);
        let length = captured_bytes as usize;
        if length > MAX_RECORD_BYTES {
            let field = "captured length of the pcap record";
            return Err(source.malformed(field, offset, captured_bytes.into(), "at most 1 MiB"));
        }
        source.discard(self.extra_header_bytes, RECORD, offset)?;
        self.frame.clear();
        source.read_into(&mut self.frame, length, RECORD, offset)?;
        let nanos = i64::from(fraction) * i64::from(self.nanos_per_unit);
        Ok(Some(datagram::item(&Frame {
            offset,
            time_unix_nano: Some(i64::from(seconds) * 1_000_000_000 + nanos),
            link_type: self.link_type,
            bytes: &self.frame,
            original_bytes,
        })))
    }
}
