//! Writing messages to files: framed one after the other, or as datagrams of a capture.

use std::io::{self, Write};

use etherparse::PacketBuilder;

use super::send::FrameWriter;
use super::{DEFAULT_START_UNIX_NANO, Framing, Sent, Source};

/// Magic number of a pcap file with microseconds, version 2.4, snapshot length, Ethernet.
const PCAP_MAGIC: u32 = 0xa1b2_c3d4;
const PCAP_VERSION: [u16; 2] = [2, 4];
const PCAP_SNAPSHOT_BYTES: u32 = 262_144;
const PCAP_ETHERNET: u32 = 1;

/// Addresses for documentation (RFC 5737), and locally administered ones below them.
const EXPORTER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const COLLECTOR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const EXPORTER: [u8; 4] = [192, 0, 2, 1];
const COLLECTOR: [u8; 4] = [192, 0, 2, 2];
const EXPORTER_PORT: u16 = 50_000;
const COLLECTOR_PORT: u16 = 4_739;
const HOP_LIMIT: u8 = 64;
/// Time between packets.
const STEP_MICROS: u64 = 1_000;

/// Writes at most `count` messages, framed as in a TCP stream: with [`Framing::None`] IPFIX messages become a file as RFC
/// 5655 wants it.
///
/// # Errors
///
/// Those of the writer.
pub fn write_stream(out: impl Write, source: &mut impl Source, framing: Framing, count: u64) -> io::Result<Sent> {
    let mut out = io::BufWriter::new(out);
    let mut writer = FrameWriter::new(framing);
    let mut sent = Sent::default();
    for _ in 0..count {
        if !writer.append(source) {
            break;
        }
        writer.flush(&mut out, &mut sent)?;
    }
    out.flush()?;
    Ok(sent)
}

/// Writes at most `count` messages as UDP datagrams of a pcap file, 1 ms apart. `exporters` take turns: message *i* comes
/// from port 50000 + *i* modulo `exporters`, which is at least 1.
///
/// # Errors
///
/// Those of the writer, and `InvalidInput` for a message that is too long for a datagram.
pub fn write_pcap(out: impl Write, source: &mut impl Source, exporters: u16, count: u64) -> io::Result<Sent> {
    let mut out = io::BufWriter::new(out);
    out.write_all(&PCAP_MAGIC.to_be_bytes())?;
    out.write_all(&PCAP_VERSION.map(u16::to_be_bytes).concat())?;
    // Time zone and accuracy, which nobody sets.
    out.write_all(&[0; 8])?;
    out.write_all(&PCAP_SNAPSHOT_BYTES.to_be_bytes())?;
    out.write_all(&PCAP_ETHERNET.to_be_bytes())?;
    let mut sent = Sent::default();
    let (mut message, mut packet) = (Vec::new(), Vec::new());
    for index in 0..count {
        message.clear();
        packet.clear();
        let Some(records) = source.append_next(&mut message) else { break };
        let port = EXPORTER_PORT.saturating_add((index % u64::from(exporters.max(1))) as u16);
        PacketBuilder::ethernet2(EXPORTER_MAC, COLLECTOR_MAC)
            .ipv4(EXPORTER, COLLECTOR, HOP_LIMIT)
            .udp(port, COLLECTOR_PORT)
            .write(&mut packet, &message)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let micros = DEFAULT_START_UNIX_NANO / 1_000 + index * STEP_MICROS;
        let length = packet.len() as u32;
        let header = [(micros / 1_000_000) as u32, (micros % 1_000_000) as u32, length, length];
        out.write_all(&header.map(u32::to_be_bytes).concat())?;
        out.write_all(&packet)?;
        sent.add(1, records, message.len());
    }
    out.flush()?;
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use catchment_capture::{Item, Options, Packet, Reader};

    use super::*;
    use crate::traffic::{FlowExporter, FlowFields, FlowOptions, FlowProtocol, Payloads};

    fn exporter(domain: u32) -> FlowExporter {
        FlowExporter::new(FlowOptions::new(FlowProtocol::Ipfix, FlowFields::Router, domain, 3)).unwrap()
    }

    fn read(file: &[u8]) -> Vec<Packet> {
        let reader = Reader::new(file, "test", Options::default()).unwrap();
        let packet = |item| match item {
            Ok(Item::Packet(packet)) => packet,
            other => panic!("{other:?}"),
        };
        reader.map(packet).collect()
    }

    /// Both kinds of file are read back as the messages that a socket would get.
    #[test]
    fn read_back() {
        let (mut stream, mut capture) = (Vec::new(), Vec::new());
        let sent = write_stream(&mut stream, &mut exporter(1), Framing::None, 5).unwrap();
        assert_eq!(sent, write_pcap(&mut capture, &mut exporter(1), 2, 5).unwrap());
        let mut same = exporter(1);
        for (index, (message, packet)) in read(&stream).iter().zip(read(&capture)).enumerate() {
            let mut expected = Vec::new();
            let _ = same.append_next(&mut expected);
            assert_eq!(message.payload, expected);
            assert_eq!(packet.payload, expected);
            assert_eq!(packet.source.unwrap().port(), 50_000 + index as u16 % 2);
            assert_eq!(packet.destination.unwrap().port(), 4_739);
            let time = DEFAULT_START_UNIX_NANO + index as u64 * 1_000_000;
            assert_eq!(packet.time_unix_nano.map(|time| time as u64), Some(time));
        }
        assert_eq!((sent.messages, sent.bytes), (5, stream.len() as u64));
    }

    /// Lines get their ends; a source that ends before the count is no error, a message that no datagram holds is.
    #[test]
    fn ends_and_lengths() {
        let mut file = Vec::new();
        let sent = write_stream(&mut file, &mut Payloads(["one", "two"].iter()), Framing::Newline, 9).unwrap();
        assert_eq!((file.as_slice(), sent.messages, sent.bytes), (&b"one\ntwo\n"[..], 2, 6));
        let mut long = Payloads([vec![0; 65_507], vec![0; 65_508]].into_iter());
        let error = write_pcap(&mut file, &mut long, 1, 9).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
