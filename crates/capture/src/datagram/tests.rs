//! Link layers, IP versions, and every reason to skip.

use etherparse::PacketBuilder;

use super::*;
use crate::testing::{ETHERNET, RAW, ethernet, pcap_file, pcap_header, pcap_record};
use crate::testing::{packets, skips, udp4, udp6};

const PAYLOAD: &[u8] = b"datagram";

/// What `bytes` captured whole on a link give.
fn item_of(link_type: u16, bytes: &[u8]) -> Item {
    item(&Frame { offset: 7, time_unix_nano: Some(9), link_type, bytes, original_bytes: bytes.len() as u32 })
}

fn reason_of(link_type: u16, bytes: &[u8]) -> SkipReason {
    match item_of(link_type, bytes) {
        Item::Skipped { offset: 7, reason } => reason,
        other => panic!("expected a skip: {other:?}"),
    }
}

/// Every link layer that is read gives the same datagram, for both IP versions.
#[test]
fn every_link_layer() {
    for (version, ether_type, ip) in [(4, 0x0800, udp4(PAYLOAD)), (6, 0x86dd, udp6(PAYLOAD))] {
        let vlan = [&[0, 5][..], &u16::to_be_bytes(ether_type), &ip].concat();
        let double_vlan = [&[0, 6, 0x81, 0x00][..], &vlan].concat();
        let family = if version == 4 { 2 } else { 30 };
        let sll = [&[0; 14][..], &u16::to_be_bytes(ether_type), &ip].concat();
        let sll2 = [&u16::to_be_bytes(ether_type)[..], &[0; 18], &ip].concat();
        let with_padding = [ethernet(ether_type, &ip), vec![0xee; 20]].concat();
        let frames = [
            (ETHERNET, ethernet(ether_type, &ip)),
            (ETHERNET, with_padding),
            (ETHERNET, ethernet(0x8100, &vlan)),
            (ETHERNET, ethernet(0x88a8, &double_vlan)),
            (link_type::NULL, [&[family, 0, 0, 0], &ip[..]].concat()),
            (link_type::LOOP, [&[0, 0, 0, family], &ip[..]].concat()),
            (link_type::LINUX_SLL, sll),
            (link_type::LINUX_SLL2, sll2),
            (RAW, ip.clone()),
            (link_type::RAW_BSD, ip.clone()),
            (link_type::RAW_OPENBSD, ip),
        ];
        for (link, bytes) in frames {
            let Item::Packet(packet) = item_of(link, &bytes) else {
                panic!("IPv{version} on link type {link} was skipped");
            };
            let (source, destination) = match version {
                4 => ("192.0.2.1:5000", "192.0.2.2:2055"),
                _ => ("[2001:db8::1]:5000", "[2001:db8::2]:2055"),
            };
            assert_eq!(packet.payload, PAYLOAD, "link type {link}");
            assert_eq!(packet.source, Some(source.parse().unwrap()));
            assert_eq!(packet.destination, Some(destination.parse().unwrap()));
            assert_eq!(packet.transport, Transport::Udp);
            assert_eq!((packet.offset, packet.time_unix_nano), (7, Some(9)));
        }
    }
}

/// A datagram without payload is a packet: it was sent.
#[test]
fn empty_datagram() {
    let file = pcap_file(RAW, &[udp4(b"")]);
    assert_eq!(packets(&file[..])[0].payload, b"");
}

/// What is not UDP says what it is.
#[test]
fn other_protocols() {
    let builder = || PacketBuilder::ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64);
    let mut tcp = Vec::new();
    builder().tcp(1, 2, 3, 4).write(&mut tcp, b"x").unwrap();
    let mut ping = Vec::new();
    let echo = builder().icmpv4_echo_request(1, 2);
    echo.write(&mut ping, b"x").unwrap();
    assert_eq!(reason_of(RAW, &tcp), SkipReason::Tcp);
    assert_eq!(reason_of(RAW, &ping), SkipReason::OtherProtocol(1));
    assert_eq!(reason_of(ETHERNET, &ethernet(0x0806, &[0; 28])), SkipReason::NotIp);
    assert_eq!(reason_of(ETHERNET, &ethernet(0x88cc, &[0; 40])), SkipReason::NotIp);
    assert_eq!(reason_of(RAW, &[0x10; 40]), SkipReason::NotIp);
    assert_eq!(reason_of(9_999, &udp4(PAYLOAD)), SkipReason::LinkType(9_999));
}

/// First, middle and last fragments are skipped; an IPv6 fragment header on a whole packet is no fragment.
#[test]
fn fragments() {
    let mut first = udp4(PAYLOAD);
    first[6] = 0x20;
    let mut last = udp4(PAYLOAD);
    last[7] = 0x03;
    assert_eq!(reason_of(RAW, &first), SkipReason::Fragment);
    assert_eq!(reason_of(RAW, &last), SkipReason::Fragment);

    let whole = udp6(PAYLOAD);
    let with_header = |offset_and_flag: [u8; 2]| {
        let mut bytes = whole[..40].to_vec();
        bytes[5] += 8;
        bytes[6] = 44;
        bytes.extend([17, 0, offset_and_flag[0], offset_and_flag[1], 0, 0, 0, 1]);
        bytes.extend(&whole[40..]);
        bytes
    };
    assert_eq!(reason_of(RAW, &with_header([0, 1])), SkipReason::Fragment);
    assert_eq!(reason_of(RAW, &with_header([0, 8])), SkipReason::Fragment);
    let Item::Packet(atomic) = item_of(RAW, &with_header([0, 0])) else {
        panic!("atomic fragment was skipped");
    };
    assert_eq!(atomic.payload, PAYLOAD);
}

/// Lengths that contradict the packet are malformed, never a wrong payload.
#[test]
fn contradicting_lengths() {
    let mut short_udp = udp4(PAYLOAD);
    short_udp[25] = 7;
    let mut long_udp = udp4(PAYLOAD);
    long_udp[25] += 1;
    let mut bad_header_length = udp4(PAYLOAD);
    bad_header_length[0] = 0x41;
    for bytes in [short_udp, long_udp, bad_header_length] {
        assert_eq!(reason_of(RAW, &bytes), SkipReason::Malformed);
    }
    assert_eq!(reason_of(RAW, b""), SkipReason::Malformed);
}

/// A packet cut by the snap length is skipped as such wherever the cut is, and kept when only padding is missing.
#[test]
fn snap_length() {
    for ip in [udp4(PAYLOAD), udp6(PAYLOAD)] {
        let ether_type = if ip[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
        let whole = ethernet(ether_type, &ip);
        for kept in 0..whole.len() {
            let mut file = pcap_header(false, 0xa1b2_c3d4, ETHERNET);
            let missing = (whole.len() - kept) as u32;
            file.extend(pcap_record(false, (0, 0), &whole[..kept], missing));
            assert_eq!(skips(&file[..]), [SkipReason::Truncated], "kept {kept}");
        }
        let mut file = pcap_header(false, 0xa1b2_c3d4, ETHERNET);
        file.extend(pcap_record(false, (0, 0), &whole, 6));
        assert_eq!(packets(&file[..])[0].payload, PAYLOAD);
    }
}

/// Any one changed byte, and any cut, gives a packet or a skip.
#[test]
fn damaged_frames() {
    for (link, frame) in [
        (ETHERNET, ethernet(0x0800, &udp4(PAYLOAD))),
        (ETHERNET, ethernet(0x86dd, &udp6(PAYLOAD))),
        (link_type::NULL, [&[2, 0, 0, 0], &udp4(PAYLOAD)[..]].concat()),
    ] {
        for at in 0..frame.len() {
            for flip in [0x01, 0x0f, 0x80, 0xff] {
                let mut damaged = frame.clone();
                damaged[at] ^= flip;
                if let Item::Packet(packet) = item_of(link, &damaged) {
                    assert!(packet.payload.len() <= PAYLOAD.len());
                }
            }
        }
    }
}
