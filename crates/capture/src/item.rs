//! What a reader hands out: packets, skips, and the counts of both.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

/// How the bytes of a packet travelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A UDP datagram of a capture.
    Udp,
    /// A message or line that lay in a file, without network headers.
    File,
}

/// One datagram, message or line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Capture time in nanoseconds since the Unix epoch; `None` where the file has none (IPFIX streams, lines, simple
    /// packet blocks) or it is out of range.
    pub time_unix_nano: Option<i64>,
    /// Sender, for captured datagrams.
    pub source: Option<SocketAddr>,
    /// Receiver, for captured datagrams.
    pub destination: Option<SocketAddr>,
    /// The UDP payload, the IPFIX message, or the line without its end.
    pub payload: Vec<u8>,
    /// How the payload travelled.
    pub transport: Transport,
    /// Where the record, block, message or line begins, in bytes from the start of the file.
    pub offset: u64,
    /// The line was longer than [`crate::Options::max_line_bytes`]; the payload is its beginning. Never set for
    /// datagrams and messages, which are whole or skipped.
    pub truncated: bool,
}

/// Why a record of the file is not a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkipReason {
    /// A TCP segment.
    Tcp,
    /// Part of a fragmented IP packet.
    Fragment,
    /// An IP protocol other than UDP and TCP, by its number.
    OtherProtocol(u8),
    /// Not IPv4 or IPv6: ARP, LLDP and the like.
    NotIp,
    /// The capture kept only the beginning of the packet (snap length).
    Truncated,
    /// Headers that contradict themselves or the length of the packet.
    Malformed,
    /// A link layer that is not read here, by its LINKTYPE number.
    LinkType(u16),
    /// The packet names a capture interface that the file does not describe.
    UnknownInterface,
    /// A line without bytes.
    EmptyLine,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp => f.write_str("tcp"),
            Self::Fragment => f.write_str("ip fragment"),
            Self::OtherProtocol(number) => write!(f, "ip protocol {number}"),
            Self::NotIp => f.write_str("not ip"),
            Self::Truncated => f.write_str("truncated by the capture"),
            Self::Malformed => f.write_str("malformed headers"),
            Self::LinkType(number) => write!(f, "link type {number}"),
            Self::UnknownInterface => f.write_str("unknown capture interface"),
            Self::EmptyLine => f.write_str("empty line"),
        }
    }
}

/// One step through a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A packet to use.
    Packet(Packet),
    /// A record that is there but holds no packet for us.
    Skipped {
        /// Where the record begins, in bytes from the start of the file.
        offset: u64,
        /// Why it is skipped.
        reason: SkipReason,
    },
}

/// What a reader has handed out so far: `packets` plus all of `skipped` is the number of records read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets.
    pub packets: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Skipped records by reason; reasons that did not occur are absent.
    pub skipped: BTreeMap<SkipReason, u64>,
}

impl Counts {
    /// Skipped records, whatever the reason.
    #[must_use]
    pub fn skipped_total(&self) -> u64 {
        self.skipped.values().sum()
    }

    pub(crate) fn add(&mut self, item: &Item) {
        match item {
            Item::Packet(packet) => {
                self.packets += 1;
                self.payload_bytes += packet.payload.len() as u64;
            }
            Item::Skipped { reason, .. } => *self.skipped.entry(*reason).or_default() += 1,
        }
    }
}
