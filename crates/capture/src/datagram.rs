//! From a captured frame to the UDP datagram in it.

use std::net::{IpAddr, SocketAddr};

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, ip_number};

use crate::item::{Item, Packet, SkipReason, Transport};

/// LINKTYPE numbers (the registry at tcpdump.org) that are read.
mod link_type {
    pub(super) const NULL: u16 = 0;
    pub(super) const ETHERNET: u16 = 1;
    /// Raw IP under the numbers that some systems use in files for their own DLT_RAW.
    pub(super) const RAW_BSD: u16 = 12;
    pub(super) const RAW_OPENBSD: u16 = 14;
    pub(super) const RAW: u16 = 101;
    pub(super) const LOOP: u16 = 108;
    pub(super) const LINUX_SLL: u16 = 113;
    pub(super) const IPV4: u16 = 228;
    pub(super) const IPV6: u16 = 229;
    pub(super) const LINUX_SLL2: u16 = 276;
}

/// Bytes of the header before the payload of each link layer.
const LOOPBACK_HEADER_BYTES: usize = 4;
const SLL_HEADER_BYTES: usize = 16;
const SLL2_HEADER_BYTES: usize = 20;
const UDP_HEADER_BYTES: usize = 8;

/// A captured frame with what the file says about it.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) offset: u64,
    pub(crate) time_unix_nano: Option<i64>,
    pub(crate) link_type: u16,
    pub(crate) bytes: &'a [u8],
    /// Length of the frame on the wire.
    pub(crate) original_bytes: u32,
}

/// A whole datagram.
struct Datagram<'a> {
    source: SocketAddr,
    destination: SocketAddr,
    payload: &'a [u8],
}

/// The packet of a frame, or the reason why there is none.
pub(crate) fn item(frame: &Frame<'_>) -> Item {
    let offset = frame.offset;
    match udp(frame) {
        Ok(datagram) => Item::Packet(Packet {
            time_unix_nano: frame.time_unix_nano,
            source: Some(datagram.source),
            destination: Some(datagram.destination),
            payload: datagram.payload.to_vec(),
            transport: Transport::Udp,
            offset,
            truncated: false,
        }),
        Err(reason) => Item::Skipped { offset, reason },
    }
}

fn udp<'a>(frame: &Frame<'a>) -> Result<Datagram<'a>, SkipReason> {
    // What is missing was either cut off by the capture or never there.
    let incomplete = if (frame.bytes.len() as u64) < u64::from(frame.original_bytes) {
        SkipReason::Truncated
    } else {
        SkipReason::Malformed
    };
    let packet = network(frame, incomplete)?;
    let (source, destination) = match &packet.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            (IpAddr::from(ip.header().source_addr()), IpAddr::from(ip.header().destination_addr()))
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            (IpAddr::from(ip.header().source_addr()), IpAddr::from(ip.header().destination_addr()))
        }
        // Whatever could not be parsed below IP may have been IP.
        Some(LaxNetSlice::Arp(_)) => return Err(SkipReason::NotIp),
        None if packet.stop_err.is_some() => return Err(incomplete),
        None => return Err(SkipReason::NotIp),
    };
    let ip_payload = packet.ip_payload().ok_or(SkipReason::NotIp)?;
    if ip_payload.fragmented {
        return Err(SkipReason::Fragment);
    }
    match ip_payload.ip_number {
        ip_number::UDP => {}
        ip_number::TCP => return Err(SkipReason::Tcp),
        // The headers end before the one that names the protocol.
        _ if packet.stop_err.is_some() && is_ipv6_extension(ip_payload.ip_number.0) => {
            return Err(incomplete);
        }
        other => return Err(SkipReason::OtherProtocol(other.0)),
    }
    let bytes = ip_payload.payload;
    let [sp0, sp1, dp0, dp1, len0, len1, _, _] = *bytes.first_chunk::<UDP_HEADER_BYTES>().ok_or(incomplete)?;
    let length = usize::from(u16::from_be_bytes([len0, len1]));
    if length < UDP_HEADER_BYTES {
        return Err(SkipReason::Malformed);
    }
    let payload = bytes.get(UDP_HEADER_BYTES..length).ok_or(incomplete)?;
    Ok(Datagram {
        source: SocketAddr::new(source, u16::from_be_bytes([sp0, sp1])),
        destination: SocketAddr::new(destination, u16::from_be_bytes([dp0, dp1])),
        payload,
    })
}

/// Takes the link layer off and parses what is above it.
fn network<'a>(frame: &Frame<'a>, incomplete: SkipReason) -> Result<LaxSlicedPacket<'a>, SkipReason> {
    let bytes = frame.bytes;
    match frame.link_type {
        link_type::ETHERNET => LaxSlicedPacket::from_ethernet(bytes).map_err(|_| incomplete),
        link_type::LINUX_SLL => {
            let payload = bytes.get(SLL_HEADER_BYTES..).ok_or(incomplete)?;
            Ok(by_ether_type([bytes[14], bytes[15]], payload))
        }
        link_type::LINUX_SLL2 => {
            let payload = bytes.get(SLL2_HEADER_BYTES..).ok_or(incomplete)?;
            Ok(by_ether_type([bytes[0], bytes[1]], payload))
        }
        // The address family before it differs from system to system; the IP version says the same.
        link_type::NULL | link_type::LOOP => {
            let payload = bytes.get(LOOPBACK_HEADER_BYTES..).ok_or(incomplete)?;
            by_ip_version(payload, incomplete)
        }
        link_type::RAW | link_type::RAW_BSD | link_type::RAW_OPENBSD | link_type::IPV4 | link_type::IPV6 => {
            by_ip_version(bytes, incomplete)
        }
        other => Err(SkipReason::LinkType(other)),
    }
}

fn by_ether_type(ether_type: [u8; 2], payload: &[u8]) -> LaxSlicedPacket<'_> {
    LaxSlicedPacket::from_ether_type(EtherType(u16::from_be_bytes(ether_type)), payload)
}

fn by_ip_version(payload: &[u8], incomplete: SkipReason) -> Result<LaxSlicedPacket<'_>, SkipReason> {
    match payload.first().map(|byte| byte >> 4) {
        Some(4 | 6) => LaxSlicedPacket::from_ip(payload).map_err(|_| incomplete),
        Some(_) => Err(SkipReason::NotIp),
        None => Err(incomplete),
    }
}

/// Whether a "next header" number names an extension header that the parser walks over.
fn is_ipv6_extension(number: u8) -> bool {
    matches!(number, 0 | 43 | 44 | 51 | 60 | 135 | 139 | 140)
}

#[cfg(test)]
mod tests;
