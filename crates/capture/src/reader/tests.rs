//! Whole files: formats, counts, offsets, errors, and the recorded captures where they are at hand.

use std::collections::BTreeMap;
use std::io;

use super::*;
use crate::item::SkipReason;
use crate::testing::{ETHERNET, RAW, ethernet, pcap_file, pcap_header, pcap_record};
use crate::testing::{packets, read, udp4, udp6};

fn lines(text: &[u8], max_line_bytes: usize) -> Vec<(Vec<u8>, u64, bool)> {
    let options = Options { format: Some(Format::Lines), max_line_bytes };
    Reader::new(text, "test", options)
        .unwrap()
        .filter_map(|item| match item.unwrap() {
            Item::Packet(packet) => Some((packet.payload, packet.offset, packet.truncated)),
            Item::Skipped { .. } => None,
        })
        .collect()
}

/// Byte order and resolution of libpcap files, and the offset of each record.
#[test]
fn pcap_variants() {
    for big_endian in [false, true] {
        for (magic, nanos) in [(0xa1b2_c3d4, 2_000), (0xa1b2_3c4d, 2)] {
            let mut file = pcap_header(big_endian, magic, RAW);
            file.extend(pcap_record(big_endian, (1, 2), &udp4(b"one"), 0));
            let second = file.len() as u64;
            let late = (u32::MAX, 0);
            file.extend(pcap_record(big_endian, late, &udp6(b"two"), 0));
            let found = packets(&file[..]);
            assert_eq!(found.len(), 2);
            assert_eq!(found[0].time_unix_nano, Some(1_000_000_000 + nanos));
            assert_eq!(found[1].time_unix_nano, Some(4_294_967_295_000_000_000));
            assert_eq!((found[0].offset, found[1].offset), (24, second));
        }
    }
    let mut modified = pcap_header(false, 0xa1b2_cd34, RAW);
    let record = pcap_record(false, (1, 2), &udp4(b"long header"), 0);
    modified.extend([&record[..16], &[0; 8], &record[16..]].concat());
    assert_eq!(packets(&modified[..])[0].payload, b"long header");
}

/// The upper bits of the link type hold the length of the frame check sequence.
#[test]
fn pcap_with_check_sequence_length() {
    let mut file = pcap_file(ETHERNET, &[ethernet(0x0800, &udp4(b"x"))]);
    file[23] = 0x24;
    assert_eq!(packets(&file[..]).len(), 1);
}

/// Packets and skips add up to the records, by reason.
#[test]
fn counts_add_up() {
    let mut fragment = udp4(b"x");
    fragment[6] = 0x20;
    let records = [udp4(b"one"), fragment.clone(), udp6(b"three"), fragment];
    let file = pcap_file(RAW, &records);
    let mut reader = Reader::new(&file[..], "test", Options::default()).unwrap();
    assert_eq!(reader.by_ref().filter(Result::is_ok).count(), 4);
    let counts = Counts { packets: 2, payload_bytes: 8, skipped: BTreeMap::from([(SkipReason::Fragment, 2)]) };
    assert_eq!(reader.counts(), &counts);
    assert_eq!(reader.counts().skipped_total(), 2);
    assert_eq!(reader.format(), Format::Pcap);
}

/// LF, CR LF, a last line without end, and empty lines, which are counted.
#[test]
fn line_ends() {
    let text = b"<13>one\r\n\n<14>two\n\r\n<15>three";
    let found = lines(text, 100);
    assert_eq!(
        found,
        [(b"<13>one".to_vec(), 0, false), (b"<14>two".to_vec(), 10, false), (b"<15>three".to_vec(), 20, false),]
    );
    let mut reader = Reader::new(&text[..], "test", Options::default()).unwrap();
    assert_eq!(reader.by_ref().count(), 5);
    assert_eq!(reader.counts().skipped[&SkipReason::EmptyLine], 2);
    // A CR that ends nothing belongs to the line.
    assert_eq!(lines(b"a\rb\n", 9)[0].0, b"a\rb");
}

/// A line of exactly the limit is whole, with either end; one more byte is cut and flagged, and the next line is not
/// touched by it.
#[test]
fn line_limit() {
    for end in ["\n", "\r\n"] {
        let text = format!("12345{end}123456{end}{}{end}ab{end}", "x".repeat(200_000));
        let found: Vec<_> =
            lines(text.as_bytes(), 5).into_iter().map(|(line, _, truncated)| (line, truncated)).collect();
        assert_eq!(
            found,
            [(b"12345".to_vec(), false), (b"12345".to_vec(), true), (b"xxxxx".to_vec(), true), (b"ab".to_vec(), false),]
        );
    }
    // The byte after the limit is a CR, but the line goes on after it.
    assert_eq!(lines(b"12345\r6\n", 5), [(b"12345".to_vec(), 0, true)]);
    assert_eq!(lines(b"abc", usize::MAX), [(b"abc".to_vec(), 0, false)]);
}

fn message(length: u16) -> Vec<u8> {
    let mut bytes = vec![0; usize::from(length)];
    bytes[1] = 10;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// Each message of a stream is one packet; whatever follows must be a message again.
#[test]
fn ipfix_stream() {
    let stream = [message(16), message(u16::MAX), message(20)].concat();
    let found = packets(&stream[..]);
    let seen: Vec<_> = found.iter().map(|p| (p.payload.len(), p.offset)).collect();
    assert_eq!(seen, [(16, 0), (65_535, 16), (20, 65_551)]);
    assert!(found.iter().all(|p| p.source.is_none() && !p.truncated));

    let mut short = message(16);
    short.extend([0, 10, 0, 15, 0, 0]);
    let error = read(&short[..]).unwrap_err().to_string();
    assert_eq!(error, "test: ipfix message length at byte 16 is 15 (0xf), expected at least 16");
    let mut version = message(16);
    version.extend(b"GET / HTTP");
    let error = read(&version[..]).unwrap_err();
    assert!(matches!(error, CaptureError::Malformed { offset: 16, .. }));
}

/// Files that are not there, not files, empty or of another kind are named for what they are.
#[test]
fn files_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.pcap");
    let error = Reader::open(&missing).unwrap_err();
    assert!(error.to_string().contains("missing.pcap: cannot open"));
    let CaptureError::Open { source, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(source.kind(), io::ErrorKind::NotFound);

    let error = Reader::open(folder.path()).unwrap_err();
    assert!(matches!(error, CaptureError::Directory { .. }), "{error}");

    let path = folder.path().join("empty");
    fs::write(&path, b"").unwrap();
    let error = Reader::open(&path).unwrap_err();
    assert!(matches!(error, CaptureError::Empty { .. }), "{error}");
    let as_lines = Options { format: Some(Format::Lines), ..Options::default() };
    assert_eq!(Reader::open_with(&path, as_lines).unwrap().count(), 0);

    fs::write(&path, [0x1f, 0x8b, 8, 0]).unwrap();
    let error = Reader::open(&path).unwrap_err().to_string();
    assert!(error.ends_with("is a gzip file, expected the decompressed file"));

    fs::write(&path, pcap_file(RAW, &[udp4(b"x")])).unwrap();
    assert_eq!(Reader::open(&path).unwrap().count(), 1);
}

/// A format that is given is held to.
#[test]
fn given_format_that_is_wrong() {
    for (format, field) in [
        (Format::Pcap, "pcap magic number"),
        (Format::PcapNg, "first block type"),
        (Format::IpfixStream, "ipfix message version"),
    ] {
        let options = Options { format: Some(format), ..Options::default() };
        let text = b"<13>a line of text that is long enough";
        let error =
            Reader::new(&text[..], "test", options).and_then(Iterator::collect::<Result<Vec<_>, _>>).unwrap_err();
        assert!(error.to_string().contains(field), "{error}");
    }
}

/// A garbage record length is an error that says where, after the packets before it, and the reader stays ended.
#[test]
fn garbage_after_packets() {
    let mut file = pcap_file(RAW, &[udp4(b"one")]);
    let offset = file.len() as u64;
    file.extend([0xff; 40]);
    let mut reader = Reader::new(&file[..], "test", Options::default()).unwrap();
    assert!(matches!(reader.next(), Some(Ok(Item::Packet(_)))));
    let Some(Err(error)) = reader.next() else {
        panic!("expected an error");
    };
    assert_eq!(
        error.to_string(),
        format!(
            "test: captured length of the pcap record at byte {offset} is 4294967295 (0xffffffff), expected at most 1 MiB"
        )
    );
    assert!(reader.next().is_none());
    assert!(reader.next().is_none());
}

/// A file cut anywhere gives the whole records before the cut, then one error unless it was cut between records.
#[test]
fn cut_at_every_byte() {
    let pcap = pcap_file(RAW, &[udp4(b"one"), udp6(b"two"), udp4(b"three")]);
    let stream = [message(16), message(40), message(20)].concat();
    for (file, least) in [(pcap, 4), (stream, 4)] {
        let whole = packets(&file[..]);
        for cut in least..file.len() {
            let mut ends: Vec<u64> = whole.iter().skip(1).map(|p| p.offset).collect();
            ends.push(file.len() as u64);
            let expected = ends.iter().filter(|end| **end <= cut as u64).count();
            let between = ends.contains(&(cut as u64)) || cut as u64 == whole[0].offset;
            match Reader::new(&file[..cut], "test", Options::default()) {
                Ok(mut reader) => {
                    let errors = reader.by_ref().filter(Result::is_err).count();
                    assert_eq!(errors, usize::from(!between), "cut at {cut}");
                    assert_eq!(reader.counts().packets, expected as u64);
                }
                Err(CaptureError::EndsInside { missing, .. }) => {
                    assert_eq!(missing, 24 - cut as u64);
                }
                Err(error) => panic!("cut at {cut}: {error}"),
            }
        }
    }
}

/// Gives one byte a read, and fails at the end.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match (self.0.split_first(), buffer.first_mut()) {
            (Some((byte, rest)), Some(place)) => {
                *place = *byte;
                self.0 = rest;
                Ok(1)
            }
            _ => Err(io::Error::other("disk on fire")),
        }
    }
}

/// Reads of any size do, and a failing read is an error with its offset.
#[test]
fn failing_input() {
    let file = pcap_file(RAW, &[udp4(b"one")]);
    let mut reader = Reader::new(Failing(&file), "test", Options::default()).unwrap();
    assert!(matches!(reader.next(), Some(Ok(Item::Packet(_)))));
    let error = reader.next().unwrap().unwrap_err().to_string();
    let expected = format!("reading failed at byte {}: disk on fire", file.len());
    assert!(error.ends_with(&expected), "{error}");
}

/// The recordings that are part of the repository are read to their end, and both forms of the log agree.
#[test]
fn bundled_recordings() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/data");
    let payloads = |name: &str, port: Option<u16>| -> Vec<Vec<u8>> {
        let packet = |item| match item {
            Ok(Item::Packet(packet)) => packet,
            other => panic!("{name}: {other:?}"),
        };
        let reader = Reader::open(folder.join(name)).unwrap();
        let found: Vec<_> = reader.map(packet).collect();
        assert!(found.iter().all(|p| p.destination.map(|address| address.port()) == port));
        found.into_iter().map(|packet| packet.payload).collect()
    };
    let flows = payloads("flows.pcap", Some(2055));
    assert!(flows.len() > 50);
    assert!(flows.iter().all(|message| message.starts_with(&[0, 10])));

    let lines = payloads("syslog.log", None);
    let mut datagrams = payloads("haproxy.pcap", Some(5514));
    for datagram in &mut datagrams {
        let length = datagram.trim_ascii_end().len();
        datagram.truncate(length);
    }
    assert_eq!(lines, datagrams);
    let by_proxy = payloads("haproxy.log", None);
    assert!(by_proxy.len() > 500 && by_proxy.len() < lines.len());
}

/// The datagrams of every recorded capture, counted as its index says. Needs the folder of captures.
#[test]
fn recorded_captures() {
    let Ok(folder) = std::env::var("CATCHMENT_IPFIX_CAPTURES") else {
        println!("skipped: set CATCHMENT_IPFIX_CAPTURES to the folder of captures");
        return;
    };
    let folder = Path::new(&folder);
    let index = fs::read_to_string(folder.join("INDEX.md")).unwrap();
    let mut cases = 0;
    for row in index.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let Some(expected) = cells.get(6).and_then(|cell| cell.split('/').next()) else {
            continue;
        };
        let Ok(expected) = expected.parse::<u64>() else {
            continue;
        };
        let name = cells[1];
        let mut reader = Reader::open(folder.join(format!("{name}.pcap"))).unwrap();
        assert!(reader.by_ref().all(|item| item.is_ok()), "{name}");
        assert_eq!(reader.counts().packets, expected, "{name}");
        assert_eq!(reader.counts().skipped_total(), 0, "{name}");
        cases += 1;
    }
    assert!(cases > 0, "no cases in INDEX.md");

    let payloads = |path: &Path| -> Result<Vec<u8>, CaptureError> {
        let mut bytes = Vec::new();
        for item in Reader::open(path)? {
            if let Item::Packet(packet) = item? {
                bytes.extend(packet.payload);
            }
        }
        Ok(bytes)
    };
    let mut streams = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "ipfix") {
            let captured = payloads(&path.with_extension("pcap")).unwrap();
            match payloads(&path) {
                Ok(messages) => assert_eq!(messages, captured, "{path:?}"),
                Err(CaptureError::EndsInside { .. }) => {
                    assert!(path.ends_with("ixc-bad-set-length.ipfix"), "{path:?}");
                }
                Err(error) => panic!("{error}"),
            }
            streams += 1;
        }
    }
    println!("{cases} captures and {streams} streams read");
}
