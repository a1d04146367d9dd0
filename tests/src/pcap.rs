//! Classic pcap files, written by hand.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const LINK_ETHERNET: u32 = 1;
const HEADER_BYTES: usize = 24;

/// A capture of Ethernet packets in memory.
#[derive(Debug, Clone)]
pub struct Capture {
    bytes: Vec<u8>,
}

/// The two ends of a packet, both of one version of IP.
#[derive(Debug, Clone, Copy)]
pub struct Ends {
    /// Address and port of the sender.
    pub from: (IpAddr, u16),
    /// Address and port of the addressee.
    pub to: (IpAddr, u16),
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
        self.packet(seconds, ends, 17, &segment);
    }

    /// Adds an echo request of ICMP or ICMPv6, captured `seconds` after the epoch. Its ports are not used.
    pub fn ping(&mut self, seconds: u32, ends: Ends, payload: &[u8]) {
        let (protocol, kind) = if ends.from.0.is_ipv4() { (1, 8) } else { (58, 128) };
        // Kind, code, no checksum, identifier, number.
        let segment = [&[kind, 0, 0, 0, 0, 1, 0, 1], payload].concat();
        self.packet(seconds, ends, protocol, &segment);
    }

    /// Adds a TCP segment with an acknowledgement and `flags`, captured `seconds` after the epoch.
    pub fn tcp(&mut self, seconds: u32, ends: Ends, flags: u8, payload: &[u8]) {
        let mut segment = ports(ends);
        segment.extend(1u32.to_be_bytes());
        segment.extend(1u32.to_be_bytes());
        // Five words of header, flags, window, no checksum, nothing urgent.
        segment.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        segment.extend(payload);
        self.packet(seconds, ends, 6, &segment);
    }

    /// The file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn packet(&mut self, seconds: u32, ends: Ends, protocol: u8, segment: &[u8]) {
        let (ether_type, header) = match (ends.from.0, ends.to.0) {
            (IpAddr::V4(from), IpAddr::V4(to)) => ([0x08, 0x00], ipv4_header(from, to, protocol, segment.len())),
            (IpAddr::V6(from), IpAddr::V6(to)) => ([0x86, 0xdd], ipv6_header(from, to, protocol, segment.len())),
            ends => panic!("no packet goes from one version of IP to the other: {ends:?}"),
        };
        let packet_bytes = u32::try_from(14 + header.len() + segment.len()).expect("a packet is small");
        for word in [seconds, 0, packet_bytes, packet_bytes] {
            self.bytes.extend(word.to_le_bytes());
        }
        self.bytes.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
        self.bytes.extend(ether_type);
        self.bytes.extend(header);
        self.bytes.extend(segment);
    }
}

fn ipv4_header(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, content: usize) -> Vec<u8> {
    let mut header = vec![0x45, 0];
    header.extend(length(20 + content).to_be_bytes());
    // Identification, no fragment, 64 hops, protocol, checksum to come.
    header.extend([0, 1, 0, 0, 64, protocol, 0, 0]);
    header.extend(from.octets());
    header.extend(to.octets());
    let checksum = internet_checksum(&header).to_be_bytes();
    header[10..12].copy_from_slice(&checksum);
    header
}

fn ipv6_header(from: Ipv6Addr, to: Ipv6Addr, protocol: u8, content: usize) -> Vec<u8> {
    let mut header = vec![0x60, 0, 0, 0];
    header.extend(length(content).to_be_bytes());
    header.extend([protocol, 64]);
    header.extend(from.octets());
    header.extend(to.octets());
    header
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

/// The payloads of the UDP datagrams of a capture of Ethernet packets, in order.
///
/// # Panics
/// If it is another kind of file, or holds something else.
#[must_use]
pub fn udp_payloads(capture: &[u8]) -> Vec<Vec<u8>> {
    let word = |at: usize| u32::from_le_bytes(capture[at..at + 4].try_into().expect("four bytes"));
    assert_eq!((word(0), word(20)), (MAGIC_MICROSECONDS, LINK_ETHERNET), "a little-endian capture of Ethernet");
    let (mut payloads, mut at) = (Vec::new(), HEADER_BYTES);
    while at < capture.len() {
        let bytes = usize::try_from(word(at + 8)).expect("a length");
        let packet = &capture[at + 16..at + 16 + bytes];
        let (protocol, segment) = match packet[12..14] {
            [0x08, 0x00] => (packet[23], 14 + 4 * usize::from(packet[14] & 0x0f)),
            _ => (packet[20], 14 + 40),
        };
        assert_eq!(protocol, 17, "UDP");
        let length = usize::from(u16::from_be_bytes([packet[segment + 4], packet[segment + 5]]));
        payloads.push(packet[segment + 8..segment + length].to_vec());
        at += 16 + bytes;
    }
    payloads
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written is read, over both versions of IP.
    #[test]
    fn payloads() {
        let mut capture = Capture::default();
        for (from, to) in [("192.0.2.1", "192.0.2.2"), ("2001:db8::1", "2001:db8::2")] {
            let [from, to] = [from, to].map(|text| (text.parse().expect("an address"), 1));
            capture.udp(1, Ends { from, to }, from.0.to_string().as_bytes());
        }
        assert_eq!(udp_payloads(capture.bytes()), [&b"192.0.2.1"[..], b"2001:db8::1"]);
    }
}
