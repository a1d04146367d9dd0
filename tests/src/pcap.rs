//! Classic pcap files, written by hand.

use std::net::Ipv4Addr;

const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const LINK_ETHERNET: u32 = 1;
const HEADER_BYTES: usize = 24;

/// A capture of Ethernet packets in memory.
#[derive(Debug, Clone)]
pub struct Capture {
    bytes: Vec<u8>,
}

/// The two ends of a packet.
#[derive(Debug, Clone, Copy)]
pub struct Ends {
    /// Address and port of the sender.
    pub from: (Ipv4Addr, u16),
    /// Address and port of the addressee.
    pub to: (Ipv4Addr, u16),
}

impl Default for Capture {
    fn default() -> Self {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend(MAGIC_MICROSECONDS.to_le_bytes());
        bytes.extend(2u16.to_le_bytes());
        bytes.extend(4u16.to_le_bytes());
        // Zone, accuracy, longest packet, kind of link.
        for word in [0, 0, 65_535, LINK_ETHERNET] {
            bytes.extend(word.to_le_bytes());
        }
        Self { bytes }
    }
}

impl Capture {
    /// Adds a UDP datagram captured `seconds` after the epoch.
    pub fn udp(&mut self, seconds: u32, ends: Ends, payload: &[u8]) {
        let mut segment = ports(ends);
        segment.extend(length(8 + payload.len()).to_be_bytes());
        // No checksum.
        segment.extend([0, 0]);
        segment.extend(payload);
        self.ipv4(seconds, ends, 17, &segment);
    }

    /// Adds a TCP segment with an acknowledgement and `flags`, captured `seconds` after the epoch.
    pub fn tcp(&mut self, seconds: u32, ends: Ends, flags: u8, payload: &[u8]) {
        let mut segment = ports(ends);
        segment.extend(1u32.to_be_bytes());
        segment.extend(1u32.to_be_bytes());
        // Five words of header, flags, window, no checksum, nothing urgent.
        segment.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        segment.extend(payload);
        self.ipv4(seconds, ends, 6, &segment);
    }

    /// The file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn ipv4(&mut self, seconds: u32, ends: Ends, protocol: u8, segment: &[u8]) {
        let mut header = vec![0x45, 0];
        header.extend(length(20 + segment.len()).to_be_bytes());
        // Identification, no fragment, 64 hops, protocol, checksum to come.
        header.extend([0, 1, 0, 0, 64, protocol, 0, 0]);
        header.extend(ends.from.0.octets());
        header.extend(ends.to.0.octets());
        let checksum = internet_checksum(&header).to_be_bytes();
        header[10..12].copy_from_slice(&checksum);

        let packet_bytes = u32::try_from(14 + header.len() + segment.len()).expect("a packet is small");
        for word in [seconds, 0, packet_bytes, packet_bytes] {
            self.bytes.extend(word.to_le_bytes());
        }
        self.bytes.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00]);
        self.bytes.extend(header);
        self.bytes.extend(segment);
    }
}

fn ports(ends: Ends) -> Vec<u8> {
    [ends.from.1.to_be_bytes(), ends.to.1.to_be_bytes()].concat()
}

fn length(bytes: usize) -> u16 {
    u16::try_from(bytes).expect("a packet has at most 65535 bytes")
}

/// RFC 1071.
fn internet_checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !u16::try_from((folded & 0xffff) + (folded >> 16)).expect("two folds leave 16 bits")
}
