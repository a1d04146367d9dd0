//! Builders of capture files for the unit tests.

use std::io::Read;

use etherparse::PacketBuilder;

use crate::{CaptureError, Item, Options, Packet, Reader, SkipReason};

pub(crate) const ETHERNET: u16 = 1;
pub(crate) const RAW: u16 = 101;

/// An IPv4 UDP packet 192.0.2.1:5000 -> 192.0.2.2:2055, from its IP header on.
pub(crate) fn udp4(payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64).udp(5000, 2055);
    let mut bytes = Vec::new();
    builder.write(&mut bytes, payload).unwrap();
    bytes
}

/// An IPv6 UDP packet [2001:db8::1]:5000 -> [2001:db8::2]:2055, from its IP header on.
pub(crate) fn udp6(payload: &[u8]) -> Vec<u8> {
    let address = |last| [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    let builder = PacketBuilder::ipv6(address(1), address(2), 64).udp(5000, 2055);
    let mut bytes = Vec::new();
    builder.write(&mut bytes, payload).unwrap();
    bytes
}

/// Puts an Ethernet header before a payload.
pub(crate) fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    [&[2; 12], &ether_type.to_be_bytes()[..], payload].concat()
}

/// A number in the byte order of a file.
pub(crate) fn u32_bytes(big_endian: bool, value: u32) -> [u8; 4] {
    match big_endian {
        true => value.to_be_bytes(),
        false => value.to_le_bytes(),
    }
}

/// A libpcap file header: `magic` as a number in the file's byte order.
pub(crate) fn pcap_header(big_endian: bool, magic: u32, link_type: u16) -> Vec<u8> {
    let word = |value| u32_bytes(big_endian, value);
    let version = match big_endian {
        true => [0, 2, 0, 4],
        false => [2, 0, 4, 0],
    };
    let link_type = word(link_type.into());
    [word(magic), version, word(0), word(0), word(262_144), link_type].concat()
}

/// A libpcap record: time, data, and how much longer the packet was on the wire.
pub(crate) fn pcap_record(big_endian: bool, time: (u32, u32), data: &[u8], cut: u32) -> Vec<u8> {
    let word = |value| u32_bytes(big_endian, value);
    let length = data.len() as u32;
    let header = [word(time.0), word(time.1), word(length), word(length + cut)].concat();
    [&header[..], data].concat()
}

/// A little-endian microsecond libpcap file of the given packets, all whole.
pub(crate) fn pcap_file(link_type: u16, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = pcap_header(false, 0xa1b2_c3d4, link_type);
    for packet in packets {
        file.extend(pcap_record(false, (1, 2), packet, 0));
    }
    file
}

/// All that a file gives.
pub(crate) fn read(file: impl Read) -> Result<Vec<Item>, CaptureError> {
    Reader::new(file, "test", Options::default())?.collect()
}

/// The packets of a file, which must hold nothing else.
pub(crate) fn packets(file: impl Read) -> Vec<Packet> {
    let packet = |item| match item {
        Item::Packet(packet) => packet,
        Item::Skipped { offset, reason } => panic!("skipped at {offset}: {reason}"),
    };
    read(file).unwrap().into_iter().map(packet).collect()
}

/// The reasons of a file's skips, which must hold nothing else.
pub(crate) fn skips(file: impl Read) -> Vec<SkipReason> {
    let reason = |item| match item {
        Item::Skipped { reason, .. } => reason,
        Item::Packet(packet) => panic!("packet {packet:?}"),
    };
    read(file).unwrap().into_iter().map(reason).collect()
}
