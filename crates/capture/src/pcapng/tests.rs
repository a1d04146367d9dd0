//! Sections, interfaces, time resolutions and damaged blocks.

use super::*;
use crate::item::Packet;
use crate::testing::{ETHERNET, RAW, packets, read, skips, u32_bytes, udp4, udp6};

/// Writes blocks in one byte order.
#[derive(Clone, Copy)]
struct Writer {
    big_endian: bool,
}

const LITTLE: Writer = Writer { big_endian: false };
const BIG: Writer = Writer { big_endian: true };

impl Writer {
    fn word(self, value: u32) -> [u8; 4] {
        u32_bytes(self.big_endian, value)
    }

    fn half(self, value: u16) -> [u8; 2] {
        match self.big_endian {
            true => value.to_be_bytes(),
            false => value.to_le_bytes(),
        }
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let body = [body, &vec![0; body.len().next_multiple_of(4) - body.len()]].concat();
        let length = self.word(body.len() as u32 + 12);
        [&self.word(kind), &length, &body[..], &length].concat()
    }

    fn section(self) -> Vec<u8> {
        let version = [self.half(1), self.half(0)].concat();
        let body = [&self.word(0x1a2b_3c4d)[..], &version, &[0xff; 8]].concat();
        self.block(0x0a0d_0d0a, &body)
    }

    fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let padding = vec![0; value.len().next_multiple_of(4) - value.len()];
        let length = self.half(value.len() as u16);
        [&self.half(code)[..], &length, value, &padding].concat()
    }

    fn interface(self, link_type: u16, snap_bytes: u32, options: &[u8]) -> Vec<u8> {
        let body = [&self.half(link_type)[..], &[0, 0], &self.word(snap_bytes), options];
        self.block(1, &body.concat())
    }

    fn enhanced(self, interface: u32, units: u64, data: &[u8]) -> Vec<u8> {
        let words = [interface, (units >> 32) as u32, units as u32, data.len() as u32, data.len() as u32];
        let header: Vec<u8> = words.into_iter().flat_map(|word| self.word(word)).collect();
        self.block(6, &[&header[..], data].concat())
    }
}

/// Both byte orders, two interfaces of their own link types, blocks of other kinds in between, and a second section of
/// the other byte order with its own interfaces.
#[test]
fn sections_and_interfaces() {
    for (first, second) in [(LITTLE, BIG), (BIG, LITTLE)] {
        let sll2 = [&[8, 0][..], &[0; 18], &udp4(b"three")].concat();
        let file = [
            first.section(),
            first.interface(RAW, 0, &[]),
            first.block(4, b"names of hosts"),
            first.interface(276, 0, &[]),
            first.enhanced(0, 1_000_001, &udp6(b"one")),
            first.block(0x0bad, &[7; 200_000]),
            first.enhanced(1, 2_000_002, &sll2),
            second.section(),
            second.interface(RAW, 0, &[]),
            second.enhanced(0, 3_000_003, &udp4(b"two")),
        ];
        let offsets: Vec<u64> = file
            .iter()
            .scan(0, |end, block| {
                let begin = *end;
                *end += block.len() as u64;
                Some(begin)
            })
            .collect();
        let found = packets(&file.concat()[..]);
        let seen: Vec<_> = found.iter().map(|p| (&p.payload[..], p.time_unix_nano, p.offset)).collect();
        assert_eq!(
            seen,
            [
                (&b"one"[..], Some(1_000_001_000), offsets[4]),
                (&b"three"[..], Some(2_000_002_000), offsets[6]),
                (&b"two"[..], Some(3_000_003_000), offsets[9]),
            ]
        );
    }
}

fn time_of(writer: Writer, options: &[u8], units: u64) -> Option<i64> {
    let file = [writer.section(), writer.interface(RAW, 0, options), writer.enhanced(0, units, &udp4(b"x"))];
    packets(&file.concat()[..])[0].time_unix_nano
}

/// Decimal and binary resolutions, offsets in both byte orders, and times that no clock shows.
#[test]
fn time_resolution_and_offset() {
    for writer in [LITTLE, BIG] {
        let resolution = |value: u8| writer.option(9, &[value]);
        assert_eq!(time_of(writer, &resolution(9), 5), Some(5));
        assert_eq!(time_of(writer, &resolution(3), 5), Some(5_000_000));
        assert_eq!(time_of(writer, &resolution(0), 5), Some(5_000_000_000));
        assert_eq!(time_of(writer, &resolution(0x81), 3), Some(1_500_000_000));
        assert_eq!(time_of(writer, &resolution(12), 1_234), Some(1));
        assert_eq!(time_of(writer, &resolution(0), u64::MAX), None);
        assert_eq!(time_of(writer, &resolution(100), 1), None);
        assert_eq!(time_of(writer, &resolution(0xff), 1), None);
        let offset = match writer.big_endian {
            true => (-2_i64).to_be_bytes(),
            false => (-2_i64).to_le_bytes(),
        };
        let options = [resolution(9), writer.option(14, &offset)].concat();
        assert_eq!(time_of(writer, &options, 1), Some(-1_999_999_999));
    }
}

/// Simple packets have no time, belong to the first interface and may be cut by its snap length; obsolete packet
/// blocks are read too.
#[test]
fn other_packet_blocks() {
    let data = udp4(b"simple");
    let length = data.len() as u32;
    let simple = [&LITTLE.word(length)[..], &data].concat();
    let obsolete = [
        &LITTLE.half(0)[..],
        &LITTLE.half(3),
        &LITTLE.word(0),
        &LITTLE.word(9),
        &LITTLE.word(length),
        &LITTLE.word(length),
        &data,
    ];
    let file = |snap_bytes| {
        let interface = LITTLE.interface(RAW, snap_bytes, &[]);
        let blocks = [LITTLE.block(3, &simple), LITTLE.block(2, &obsolete.concat())];
        [LITTLE.section(), interface, blocks.concat()].concat()
    };
    let found = packets(&file(0)[..]);
    let times: Vec<_> = found.iter().map(|p: &Packet| p.time_unix_nano).collect();
    assert_eq!(times, [None, Some(9_000)]);
    assert!(found.iter().all(|p| p.payload == b"simple"));

    let items = read(&file(length - 1)[..]).unwrap();
    assert!(matches!(items[0], Item::Skipped { reason: SkipReason::Truncated, .. }));
    assert!(matches!(items[1], Item::Packet(_)));
}

/// Damaged options do not cost the packet; a packet of no interface, or longer than its block, is skipped.
#[test]
fn damaged_packet_blocks() {
    let whole = LITTLE.enhanced(0, 1, &udp4(b"kept"));
    let body = &whole[8..whole.len() - 4];
    let bad_option = [body, &[1, 0, 0xff, 0xff]].concat();
    let begin = [LITTLE.section(), LITTLE.interface(RAW, 0, &[])].concat();
    let file = [&begin[..], &LITTLE.block(6, &bad_option)].concat();
    assert_eq!(packets(&file[..])[0].payload, b"kept");

    let mut too_long = body.to_vec();
    too_long[12] += 16;
    let file = [
        begin,
        LITTLE.enhanced(1, 1, &udp4(b"x")),
        LITTLE.block(6, &too_long),
        LITTLE.block(6, &[0; 16]),
        LITTLE.enhanced(0, 1, &[]),
    ];
    assert_eq!(
        skips(&file.concat()[..]),
        [SkipReason::UnknownInterface, SkipReason::Malformed, SkipReason::Malformed, SkipReason::Malformed,]
    );
}

fn error_of(file: &[u8]) -> String {
    read(file).unwrap_err().to_string()
}

/// Every number that leads to the next block is checked, and the error says where.
#[test]
fn damaged_framing() {
    let section = LITTLE.section();
    let mut order = section.clone();
    order[8] = 0;
    assert_eq!(
        error_of(&order),
        "test: byte order of the pcapng section at byte 0 is 3943194 (0x3c2b1a), expected 0x1a2b3c4d"
    );
    let mut version = section.clone();
    version[12] = 2;
    assert!(error_of(&version).contains("major version at byte 0 is 2 (0x2), expected 1"));
    for (length, what) in [(8, "is 8 "), (13, "is 13 "), (0, "is 0 ")] {
        let mut block = LITTLE.block(4, b"text");
        block[4] = length;
        let message = error_of(&[&section[..], &block].concat());
        assert!(message.contains("pcapng block at byte 28"), "{message}");
        assert!(message.contains(what), "{message}");
    }
    let mut tail = LITTLE.block(4, b"text");
    tail[12] = 99;
    assert!(error_of(&[&section[..], &tail].concat()).contains("trailing length"));

    let mut huge = LITTLE.enhanced(0, 0, b"");
    huge[4..8].copy_from_slice(&0x7fff_fff0_u32.to_le_bytes());
    let message = error_of(&[&section[..], &huge].concat());
    assert!(message.contains("expected at most 1 MiB"), "{message}");
    let mut huge = LITTLE.block(4, b"");
    huge[4..8].copy_from_slice(&0x7fff_fff0_u32.to_le_bytes());
    let message = error_of(&[&section[..], &huge].concat());
    assert!(message.contains("ends inside the pcapng block at byte 28"));

    let interface = LITTLE.interface(ETHERNET, 0, &[9, 0, 0xff, 0xff]);
    let short = LITTLE.block(1, &[0; 4]);
    assert!(read(&[&section[..], &interface].concat()[..]).is_ok());
    assert!(error_of(&[&section[..], &short].concat()).contains("header block"));
}

/// A file of interfaces alone cannot make us keep them all.
#[test]
fn too_many_interfaces() {
    let mut file = LITTLE.section();
    for _ in 0..=MAX_INTERFACES {
        file.extend(LITTLE.interface(RAW, 0, &[]));
    }
    assert!(error_of(&file).contains("is 4097 (0x1001), expected at most 4096"));
}
