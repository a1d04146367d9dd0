//! Message headers and framing.

use std::fmt;

use crate::context::DecodeContext;
use crate::problem::Fault;
use crate::sequence::SequenceCheck;
use crate::wire;

/// Bytes of an IPFIX message header (RFC 7011 section 3.1), and the smallest message.
pub const IPFIX_HEADER_BYTES: usize = 16;
/// Bytes of a NetFlow v9 packet header (RFC 3954 section 5.1).
pub const NETFLOW_V9_HEADER_BYTES: usize = 20;
/// Bytes of a NetFlow v5 packet header.
pub const NETFLOW_V5_HEADER_BYTES: usize = 24;
/// Bytes of a set header.
pub(crate) const SET_HEADER_BYTES: usize = 4;

/// Version number of IPFIX on the wire.
const IPFIX_VERSION: u16 = 10;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Protocol version of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// NetFlow v5.
    V5,
    /// NetFlow v9 (RFC 3954).
    V9,
    /// IPFIX (RFC 7011), version number 10.
    Ipfix,
}

impl Version {
    /// The version for a number on the wire.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        match number {
            5 => Some(Self::V5),
            9 => Some(Self::V9),
            IPFIX_VERSION => Some(Self::Ipfix),
            _ => None,
        }
    }

    /// Name for metrics and the like: `netflow_v5`, `netflow_v9`, `ipfix`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V5 => "netflow_v5",
            Self::V9 => "netflow_v9",
            Self::Ipfix => "ipfix",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The header of a message, and how admitting it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageInfo {
    /// Version of the protocol.
    pub version: Version,
    /// Where the message starts in the datagram.
    pub offset: usize,
    /// Bytes of the message, header included: what the header says (IPFIX), the rest of the datagram (v9), or the
    /// header and its records (v5).
    pub length: usize,
    /// When it was exported, in nanoseconds since 1970; whole seconds except in v5.
    pub export_time_unix_nano: i64,
    /// Milliseconds the exporter was up at that time; NetFlow only.
    pub uptime_ms: Option<u32>,
    /// Sequence number: data records sent before (IPFIX), packets sent before (v9), flows sent before (v5).
    pub sequence: u32,
    /// What the sequence number says about loss.
    pub sequence_check: SequenceCheck,
    /// Observation domain (IPFIX), source id (v9), or engine type and id in the two low bytes (v5).
    pub domain: u32,
    /// Number of records as the header gives it; NetFlow only, and often wrong.
    pub header_count: Option<u16>,
    /// Sampling of a v5 header: two bits of mode above 14 bits of interval.
    pub sampling: Option<u16>,
    /// Whether the whole message was well formed. When not, what came before the fault was kept.
    pub complete: bool,
}

impl MessageInfo {
    /// Sampling interval of a v5 header, "one packet in so many"; `None` when the header has none or says 0.
    #[must_use]
    pub fn sampling_interval(&self) -> Option<u16> {
        self.sampling.map(|sampling| sampling & 0x3fff).filter(|&interval| interval != 0)
    }

    /// The context to decode records of this message with.
    #[must_use]
    pub fn context(&self) -> DecodeContext {
        DecodeContext::new(self)
    }

    /// Where the sets, or the records of v5, begin in the datagram.
    pub(crate) fn body_offset(&self) -> usize {
        let header = match self.version {
            Version::V5 => NETFLOW_V5_HEADER_BYTES,
            Version::V9 => NETFLOW_V9_HEADER_BYTES,
            Version::Ipfix => IPFIX_HEADER_BYTES,
        };
        self.offset + header
    }
}

/// Tells where a message of a byte stream (TCP, or a file of messages) ends, from its first bytes.
///
/// Gives `None` while fewer than four bytes are there, unless those already are wrong. After an error the stream
/// cannot be read on: there is no way to find the next message.
///
/// # Errors
///
/// [`Fault::Version`] unless the version is 10, [`Fault::MessageLength`] for a length below 16.
pub fn stream_message_length(header: &[u8]) -> Result<Option<usize>, Fault> {
    let Some(version) = wire::u16_at(header, 0) else {
        return Ok(None);
    };
    if version != IPFIX_VERSION {
        return Err(Fault::Version { version });
    }
    match wire::u16_at(header, 2).map(usize::from) {
        Some(length) if length < IPFIX_HEADER_BYTES => Err(Fault::MessageLength { length, available: header.len() }),
        length => Ok(length),
    }
}

/// Checks the framing of a datagram of IPFIX messages back to back, without looking into the sets: every message and
/// every set must be whole, and nothing may follow. Gives the number of messages.
///
/// # Errors
///
/// The first fault, with its offset in the datagram.
pub fn check_framing(datagram: &[u8]) -> Result<usize, (usize, Fault)> {
    let (mut at, mut messages) = (0, 0);
    while at < datagram.len() {
        if let Some(version) = wire::u16_at(datagram, at).filter(|&version| version != IPFIX_VERSION) {
            return Err((at, Fault::Version { version }));
        }
        let message = parse_header(datagram, at).map_err(|fault| (at, fault))?;
        let end = message.offset + message.length;
        at = message.body_offset();
        while at < end {
            let (_, length) = set_header(datagram, at, end).map_err(|fault| (at, fault))?;
            at += length;
        }
        messages += 1;
    }
    Ok(messages)
}

/// Whether a whole IPFIX message seems to start at `at`.
pub(crate) fn starts_message(datagram: &[u8], at: usize) -> bool {
    wire::u16_at(datagram, at) == Some(IPFIX_VERSION)
        && wire::u16_at(datagram, at + 2)
            .is_some_and(|length| (IPFIX_HEADER_BYTES..=datagram.len() - at).contains(&usize::from(length)))
}

/// Reads the id and the length of a set that must end at or before `end`.
pub(crate) fn set_header(datagram: &[u8], at: usize, end: usize) -> Result<(u16, usize), Fault> {
    let available = end.saturating_sub(at);
    if available < SET_HEADER_BYTES {
        return Err(Fault::SetHeader { available });
    }
    let id = wire::u16_at(datagram, at).unwrap_or_default();
    let length = wire::u16_at(datagram, at + 2).map_or(0, usize::from);
    if !(SET_HEADER_BYTES..=available).contains(&length) {
        return Err(Fault::SetLength { id, length, available });
    }
    Ok((id, length))
}

/// Reads the header of the message at `at`.
pub(crate) fn parse_header(datagram: &[u8], at: usize) -> Result<MessageInfo, Fault> {
    let bytes = datagram.get(at..).unwrap_or_default();
    let available = bytes.len();
    let truncated = |needed| Fault::Truncated { available, needed };
    let version = wire::u16_at(bytes, 0).ok_or(truncated(IPFIX_HEADER_BYTES))?;
    let second = wire::u16_at(bytes, 2);
    let word = |offset, header_bytes| wire::u32_at(bytes, offset).ok_or(truncated(header_bytes));
    let unix_nano = |seconds: u32| i64::from(seconds) * NANOS_PER_SECOND;
    let Some(version) = Version::from_number(version) else {
        return Err(Fault::Version { version });
    };
    let info = MessageInfo {
        version,
        offset: at,
        length: available,
        export_time_unix_nano: 0,
        uptime_ms: None,
        sequence: 0,
        sequence_check: SequenceCheck::Unchecked,
        domain: 0,
        header_count: None,
        sampling: None,
        complete: true,
    };
    match version {
        Version::Ipfix => {
            let domain = word(12, IPFIX_HEADER_BYTES)?;
            let length = second.map_or(0, usize::from);
            if !(IPFIX_HEADER_BYTES..=available).contains(&length) {
                return Err(Fault::MessageLength { length, available });
            }
            Ok(MessageInfo {
                length,
                export_time_unix_nano: unix_nano(word(4, IPFIX_HEADER_BYTES)?),
                sequence: word(8, IPFIX_HEADER_BYTES)?,
                domain,
                ..info
            })
        }
        Version::V9 => Ok(MessageInfo {
            domain: word(16, NETFLOW_V9_HEADER_BYTES)?,
            uptime_ms: Some(word(4, NETFLOW_V9_HEADER_BYTES)?),
            export_time_unix_nano: unix_nano(word(8, NETFLOW_V9_HEADER_BYTES)?),
            sequence: word(12, NETFLOW_V9_HEADER_BYTES)?,
            header_count: second,
            ..info
        }),
        Version::V5 => {
            // Engine type, engine id and sampling share the last word.
            let last = word(20, NETFLOW_V5_HEADER_BYTES)?;
            let nanos = word(12, NETFLOW_V5_HEADER_BYTES)?;
            Ok(MessageInfo {
                uptime_ms: Some(word(4, NETFLOW_V5_HEADER_BYTES)?),
                export_time_unix_nano: unix_nano(word(8, NETFLOW_V5_HEADER_BYTES)?) + i64::from(nanos),
                sequence: word(16, NETFLOW_V5_HEADER_BYTES)?,
                domain: last >> 16,
                header_count: second,
                sampling: Some((last & 0xffff) as u16),
                ..info
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(length: u16) -> Vec<u8> {
        let mut bytes = vec![0, 10];
        bytes.extend(length.to_be_bytes());
        bytes.extend([0, 0, 0, 9, 0, 0, 0, 8, 0, 0, 0, 7]);
        bytes
    }

    /// The length of a stream message is known from four bytes on, and a wrong version from two.
    #[test]
    fn stream_framing() {
        let bytes = header(1_344);
        for end in 0..4 {
            assert_eq!(stream_message_length(&bytes[..end]), Ok(None));
        }
        assert_eq!(stream_message_length(&bytes[..4]), Ok(Some(1_344)));
        assert_eq!(stream_message_length(&[0, 9]), Err(Fault::Version { version: 9 }));
        assert!(matches!(stream_message_length(&header(15)), Err(Fault::MessageLength { length: 15, .. })));
        assert_eq!(stream_message_length(&header(16)), Ok(Some(16)));
    }

    /// Every header is refused while it is not whole.
    #[test]
    fn cut_headers() {
        let v5: Vec<u8> = [0, 5].into_iter().chain(2..24).collect();
        let v9: Vec<u8> = [0, 9].into_iter().chain(2..20).collect();
        for bytes in [header(16), v5, v9] {
            assert!(parse_header(&bytes, 0).is_ok());
            for end in 0..bytes.len() {
                assert!(
                    matches!(parse_header(&bytes[..end], 0), Err(Fault::Truncated { .. })),
                    "{bytes:?} cut at {end}"
                );
            }
        }
    }

    /// The fields of a v5 header, sampling apart from its mode.
    #[test]
    fn v5_header() {
        let mut bytes = vec![0, 5, 0, 2, 0, 0, 3, 232, 0, 0, 0, 10, 0, 0, 0, 5, 0, 0, 0, 77];
        bytes.extend([1, 2, 0x40, 0x64]);
        let info = parse_header(&bytes, 0).expect("a header");
        assert_eq!(info.export_time_unix_nano, 10_000_000_005);
        assert_eq!((info.uptime_ms, info.sequence, info.domain), (Some(1_000), 77, 0x0102));
        assert_eq!((info.header_count, info.sampling_interval()), (Some(2), Some(100)));
    }

    /// Framing is refused for anything that is not whole messages of whole sets.
    #[test]
    fn framing_of_datagrams() {
        let with_sets = |length, sets: &[u8]| [&header(length)[..], sets].concat();
        assert_eq!(check_framing(&with_sets(20, &[1, 0, 0, 4])), Ok(1));
        assert_eq!(check_framing(&[header(16), header(16)].concat()), Ok(2));
        assert!(matches!(check_framing(&with_sets(20, &[1, 0, 0, 3])), Err((16, Fault::SetLength { .. }))));
        assert!(matches!(check_framing(&with_sets(18, &[1, 0])), Err((16, Fault::SetHeader { .. }))));
        assert!(matches!(check_framing(&with_sets(16, &[0; 7])), Err((16, Fault::Version { version: 0 }))));
    }
}
