//! Target for recorded traffic.

use std::io::Read;

use catchment_capture::{Counts, Format, Item, Options, Reader, SkipReason, Transport};

use crate::pieces::Dribble;

/// Longest line kept in one of the runs; short, so that lines are cut.
const SHORT_LINE_BYTES: usize = 16;

/// Reads `input` as a file of the format that its first bytes speak for, and of every format.
///
/// Asserted: records come in the order of the file and are no more than its bytes allow, counts are those of what was
/// handed out, payloads are no longer than the file, an error or the end is final, lines are those of a plain split,
/// and nothing depends on how many bytes a read gives.
pub fn capture_reader(input: &[u8]) {
    let formats = [Format::Pcap, Format::PcapNg, Format::IpfixStream, Format::Lines];
    for format in formats.into_iter().map(Some).chain([None]) {
        let options = Options { format, ..Options::default() };
        let whole = read(input, input.len(), options.clone());
        for at_most in [1, 7] {
            let dribbled = read(Dribble { bytes: input, at_most }, input.len(), options.clone());
            assert_eq!(dribbled, whole, "{format:?}, {at_most} bytes at a time");
        }
    }
    check_lines(input);
}

/// What a file holds, and the message of the error that ended it.
#[derive(Debug, Default, PartialEq)]
struct Recording {
    format: Option<Format>,
    items: Vec<Item>,
    error: Option<String>,
}

fn read(input: impl Read, length: usize, options: Options) -> Recording {
    let mut recording = Recording::default();
    let mut reader = match Reader::new(input, "input", options) {
        Ok(reader) => reader,
        Err(error) => {
            recording.error = Some(error.to_string());
            return recording;
        }
    };
    recording.format = Some(reader.format());
    let mut counts = Counts::default();
    let mut next_offset = 0;
    for item in reader.by_ref() {
        let item = match item {
            Ok(item) => item,
            Err(error) => {
                assert!(recording.error.is_none());
                recording.error = Some(error.to_string());
                continue;
            }
        };
        assert!(recording.error.is_none());
        let offset = match &item {
            Item::Packet(packet) => {
                counts.packets += 1;
                counts.payload_bytes += packet.payload.len() as u64;
                assert_eq!(packet.source.is_some(), packet.transport == Transport::Udp);
                assert_eq!(packet.destination.is_some(), packet.source.is_some());
                packet.offset
            }
            Item::Skipped { offset, reason } => {
                *counts.skipped.entry(*reason).or_default() += 1;
                assert!(!reason.to_string().is_empty());
                *offset
            }
        };
        assert!((next_offset..length as u64).contains(&offset));
        next_offset = offset + 1;
        recording.items.push(item);
    }
    assert!(reader.next().is_none());
    assert_eq!(*reader.counts(), counts);
    assert!(counts.payload_bytes <= length as u64);
    assert_eq!(counts.packets + counts.skipped_total(), recording.items.len() as u64);
    recording
}

/// Compares the lines with those of a plain split.
fn check_lines(input: &[u8]) {
    let options = Options { format: Some(Format::Lines), max_line_bytes: SHORT_LINE_BYTES };
    let recording = read(input, input.len(), options);
    assert_eq!(recording.error, None);
    let lines: Vec<&[u8]> = input.split_inclusive(|&byte| byte == b'\n').collect();
    assert_eq!(recording.items.len(), lines.len());
    for (item, line) in recording.items.iter().zip(lines) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match item {
            Item::Packet(packet) => {
                assert_eq!(packet.payload, line[..line.len().min(SHORT_LINE_BYTES)]);
                assert_eq!(packet.truncated, line.len() > SHORT_LINE_BYTES);
            }
            Item::Skipped { reason, .. } => assert_eq!((*reason, line), (SkipReason::EmptyLine, &[][..])),
        }
    }
}
