//! pcapng files (IETF draft-ietf-opsawg-pcapng).
//!
//! Blocks are framed here rather than by the parser's own reader: a block that holds no packet can be of any size and is
//! passed over without being kept, and a packet with damaged options is still a packet.

use std::io::Read;

use pcap_parser::{OptionCode, PcapNGOption, parse_sectionheaderblock};
use pcap_parser::{parse_interfacedescriptionblock_be, parse_interfacedescriptionblock_le};

use crate::datagram::{self, Frame};
use crate::error::CaptureError;
use crate::format::SECTION_HEADER;
use crate::item::{Item, SkipReason};
use crate::reader::MAX_RECORD_BYTES;
use crate::source::Source;

/// Block types that are read (section 11.3.1 of the draft).
mod block_type {
    pub(super) const INTERFACE_DESCRIPTION: u32 = 1;
    pub(super) const OBSOLETE_PACKET: u32 = 2;
    pub(super) const SIMPLE_PACKET: u32 = 3;
    pub(super) const ENHANCED_PACKET: u32 = 6;
}

/// Bytes of type and length before a block's body and of the length repeated after it.
const BLOCK_HEAD_BYTES: usize = 8;
const BLOCK_TAIL_BYTES: usize = 4;
/// Interfaces kept per section, far above what a capture has; a bound on what a hostile file can make us keep.
const MAX_INTERFACES: usize = 4_096;

/// Byte order, version and section length, before the options of a section header.
const SECTION_BODY_BYTES: usize = 16;

const BLOCK: &str = "pcapng block";

/// A capture interface of the section at hand.
#[derive(Debug)]
struct Interface {
    link_type: u16,
    /// Largest number of bytes kept of a packet; 0 means no limit.
    snap_bytes: u32,
    /// Time units in a second.
    units_per_second: Option<u128>,
    /// Seconds to add to every time stamp.
    offset_seconds: i64,
}

/// State of reading a pcapng file: byte order and interfaces of the section, and a buffer for the block at hand.
#[derive(Debug)]
pub(crate) struct PcapNg {
    big_endian: bool,
    interfaces: Vec<Interface>,
    block: Vec<u8>,
}

impl PcapNg {
    /// Reads the first section header.
    pub(crate) fn open<R: Read>(source: &mut Source<R>) -> Result<Self, CaptureError> {
        let mut pcapng = Self { big_endian: false, interfaces: Vec::new(), block: Vec::new() };
        let head: [u8; BLOCK_HEAD_BYTES] = source.read_array("pcapng section header", 0)?;
        if !head.starts_with(&SECTION_HEADER) {
            let found = be_u32(&head, 0);
            let expected = "the type of a pcapng section header";
            return Err(source.malformed("first block type", 0, found.into(), expected));
        }
        pcapng.section(source, head, 0)?;
        Ok(pcapng)
    }

    pub(crate) fn next<R: Read>(&mut self, source: &mut Source<R>) -> Result<Option<Item>, CaptureError> {
        while !source.at_end()? {
            let offset = source.offset();
            let head: [u8; BLOCK_HEAD_BYTES] = source.read_array(BLOCK, offset)?;
            if head.starts_with(&SECTION_HEADER) {
                self.section(source, head, offset)?;
                continue;
            }
            let kind = self.u32(&head, 0);
            let length = self.u32(&head, 4);
            match kind {
                block_type::INTERFACE_DESCRIPTION => {
                    self.read_block(source, head, length, offset)?;
                    self.interface(source, offset)?;
                }
                block_type::ENHANCED_PACKET | block_type::SIMPLE_PACKET | block_type::OBSOLETE_PACKET => {
                    self.read_block(source, head, length, offset)?;
                    return Ok(Some(self.packet(kind, offset)));
                }
                _ => self.pass_over(source, length, offset)?,
            }
        }
        Ok(None)
    }

    /// Begins a section, which may have another byte order and has its own interfaces.
    fn section<R: Read>(
        &mut self,
        source: &mut Source<R>,
        head: [u8; BLOCK_HEAD_BYTES],
        offset: u64,
    ) -> Result<(), CaptureError> {
        // The byte order is known only from the word after the length.
        let order: [u8; 4] = source.read_array("pcapng section header", offset)?;
        self.big_endian = match order {
            [0x1a, 0x2b, 0x3c, 0x4d] => true,
            [0x4d, 0x3c, 0x2b, 0x1a] => false,
            _ => {
                let field = "byte order of the pcapng section";
                let found = u32::from_be_bytes(order);
                return Err(source.malformed(field, offset, found.into(), "0x1a2b3c4d"));
            }
        };
        self.interfaces.clear();
        let length = self.u32(&head, 4);
        let body = kept_body(source, length, offset, SECTION_BODY_BYTES)?;
        self.block.clear();
        self.block.extend_from_slice(&head);
        self.block.extend_from_slice(&order);
        source.read_into(&mut self.block, body - order.len(), BLOCK, offset)?;
        self.read_tail(source, length, offset)?;
        match parse_sectionheaderblock(&self.block) {
            Ok((_, header)) if header.major_version == 1 => Ok(()),
            Ok((_, header)) => {
                let found = header.major_version.into();
                Err(source.malformed("pcapng major version", offset, found, "1"))
            }
            Err(_) => Err(options_malformed(source, length, offset)),
        }
    }

    fn interface<R: Read>(&mut self, source: &Source<R>, offset: u64) -> Result<(), CaptureError> {
        if self.interfaces.len() == MAX_INTERFACES {
            let found = self.interfaces.len() as u64 + 1;
            let field = "number of pcapng interfaces";
            return Err(source.malformed(field, offset, found, "at most 4096 in a section"));
        }
        let parse =
            if self.big_endian { parse_interfacedescriptionblock_be } else { parse_interfacedescriptionblock_le };
        let Ok((_, description)) = parse(&self.block) else {
            return Err(options_malformed(source, self.u32(&self.block, 4), offset));
        };
        let resolution = option(&description.options, OptionCode::IfTsresol).and_then(|value| value.first().copied());
        let offset_seconds = option(&description.options, OptionCode::IfTsoffset)
            .and_then(|value| value.first_chunk::<8>())
            .map_or(0, |bytes| match self.big_endian {
                true => i64::from_be_bytes(*bytes),
                false => i64::from_le_bytes(*bytes),
            });
        self.interfaces.push(Interface {
            link_type: (description.linktype.0 & 0xffff) as u16,
            snap_bytes: description.snaplen,
            units_per_second: units_per_second(resolution.unwrap_or(6)),
            offset_seconds,
        });
        Ok(())
    }

    /// The packet in the block at hand, which is whole.
    fn packet(&self, kind: u32, offset: u64) -> Item {
        let skipped = |reason| Item::Skipped { offset, reason };
        let body = &self.block[BLOCK_HEAD_BYTES..self.block.len() - BLOCK_TAIL_BYTES];
        let header_bytes = match kind {
            block_type::SIMPLE_PACKET => 4,
            _ => 20,
        };
        let Some((header, data)) = body.split_at_checked(header_bytes) else {
            return skipped(SkipReason::Malformed);
        };
        let interface = match kind {
            block_type::SIMPLE_PACKET => 0,
            block_type::OBSOLETE_PACKET => usize::from(self.u16(header, 0)),
            _ => self.u32(header, 0) as usize,
        };
        let Some(interface) = self.interfaces.get(interface) else {
            return skipped(SkipReason::UnknownInterface);
        };
        let (time_unix_nano, captured_bytes, original_bytes) = if kind == block_type::SIMPLE_PACKET {
            let original_bytes = self.u32(header, 0);
            let limit = match interface.snap_bytes {
                0 => u32::MAX,
                limit => limit,
            };
            // Padding cannot be told from data here, so that the smaller of the two lengths counts.
            let at_most = u32::try_from(data.len()).unwrap_or(u32::MAX);
            (None, original_bytes.min(limit).min(at_most), original_bytes)
        } else {
            let units = u64::from(self.u32(header, 4)) << 32 | u64::from(self.u32(header, 8));
            (interface.time_unix_nano(units), self.u32(header, 12), self.u32(header, 16))
        };
        let Some(bytes) = data.get(..captured_bytes as usize) else {
            return skipped(SkipReason::Malformed);
        };
        datagram::item(&Frame { offset, time_unix_nano, link_type: interface.link_type, bytes, original_bytes })
    }

    /// Reads a whole block, head and tail included.
    fn read_block<R: Read>(
        &mut self,
        source: &mut Source<R>,
        head: [u8; BLOCK_HEAD_BYTES],
        length: u32,
        offset: u64,
    ) -> Result<(), CaptureError> {
        let body = kept_body(source, length, offset, 0)?;
        self.block.clear();
        self.block.extend_from_slice(&head);
        source.read_into(&mut self.block, body, BLOCK, offset)?;
        self.read_tail(source, length, offset)
    }

    /// Passes over the body of a block that holds no packet, of whatever size.
    fn pass_over<R: Read>(&mut self, source: &mut Source<R>, length: u32, offset: u64) -> Result<(), CaptureError> {
        let body = checked_body(source, length, offset, 0)?;
        source.discard(body as u64, BLOCK, offset)?;
        self.block.clear();
        self.read_tail(source, length, offset)
    }

    /// Reads the length after the body, which must be the one before it.
    fn read_tail<R: Read>(&mut self, source: &mut Source<R>, length: u32, offset: u64) -> Result<(), CaptureError> {
        let tail: [u8; BLOCK_TAIL_BYTES] = source.read_array(BLOCK, offset)?;
        let repeated = self.u32(&tail, 0);
        if repeated != length {
            let field = "trailing length of the pcapng block";
            let expected = "the same as its leading length";
            return Err(source.malformed(field, offset, repeated.into(), expected));
        }
        self.block.extend_from_slice(&tail);
        Ok(())
    }

    fn u32(&self, bytes: &[u8], at: usize) -> u32 {
        let value = be_u32(bytes, at);
        if self.big_endian { value } else { value.swap_bytes() }
    }

    fn u16(&self, bytes: &[u8], at: usize) -> u16 {
        let pair = [bytes[at], bytes[at + 1]];
        if self.big_endian { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
    }
}

impl Interface {
    fn time_unix_nano(&self, units: u64) -> Option<i64> {
        let per_second = self.units_per_second?;
        let units = u128::from(units);
        let seconds = i128::try_from(units / per_second).ok()?;
        // Less than one second in units of at most 10^19 parts: no overflow.
        let nanos = i128::try_from(units % per_second * 1_000_000_000 / per_second).ok()?;
        let seconds = seconds + i128::from(self.offset_seconds);
        i64::try_from(seconds * 1_000_000_000 + nanos).ok()
    }
}

/// Units in a second for the `if_tsresol` option: a power of ten, or of two where the highest bit is set. `None` for a
/// resolution beyond any clock.
fn units_per_second(resolution: u8) -> Option<u128> {
    let exponent = u32::from(resolution & 0x7f);
    if resolution & 0x80 == 0 {
        10_u64.checked_pow(exponent).map(u128::from)
    } else {
        1_u64.checked_shl(exponent).map(u128::from)
    }
}

/// Bytes between head and tail of a block of `length` bytes; `least` is the smallest that its type can have.
fn checked_body<R: Read>(source: &Source<R>, length: u32, offset: u64, least: usize) -> Result<usize, CaptureError> {
    (length as usize)
        .checked_sub(BLOCK_HEAD_BYTES + BLOCK_TAIL_BYTES)
        .filter(|body| *body >= least && length.is_multiple_of(4))
        .ok_or_else(|| {
            let expected = "a multiple of 4 not below the block's fixed part";
            source.malformed("length of the pcapng block", offset, length.into(), expected)
        })
}

/// As [`checked_body`], for a block that is kept in memory.
fn kept_body<R: Read>(source: &Source<R>, length: u32, offset: u64, least: usize) -> Result<usize, CaptureError> {
    let body = checked_body(source, length, offset, least)?;
    if body > MAX_RECORD_BYTES {
        let field = "length of the pcapng section, interface or packet block";
        return Err(source.malformed(field, offset, length.into(), "at most 1 MiB"));
    }
    Ok(body)
}

/// A section or interface block whose options run out of it.
fn options_malformed<R: Read>(source: &Source<R>, length: u32, offset: u64) -> CaptureError {
    let expected = "enough for its fixed part and options";
    source.malformed("length of the pcapng header block", offset, length.into(), expected)
}

/// Value of the first option with `code`.
fn option<'a>(options: &'a [PcapNGOption<'_>], code: OptionCode) -> Option<&'a [u8]> {
    options.iter().find(|option| option.code == code).map(PcapNGOption::value)
}

fn be_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests;
