//! Telling the file formats apart by their first bytes.

/// The kinds of file a [`crate::Reader`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Classic libpcap file with micro- or nanosecond times, in either byte order.
    Pcap,
    /// pcapng file (IETF draft-ietf-opsawg-pcapng).
    PcapNg,
    /// IPFIX messages (RFC 7011 section 3.1) one after the other.
    IpfixStream,
    /// Text lines ended by LF or CR LF.
    Lines,
}

/// First bytes by which [`Format::detect`] decides at best; fewer are enough where the file is shorter.
pub(crate) const DETECT_BYTES: usize = 8;

/// Type of a pcapng section header block; reads the same in both byte orders.
pub(crate) const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Magic numbers of libpcap files as they stand in the file.
const PCAP_MAGICS: [[u8; 4]; 6] = [
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xcd, 0x34],
    [0x34, 0xcd, 0xb2, 0xa1],
];

impl Format {
    /// The format that `first_bytes` of a file speak for. Whatever has no magic number is text.
    ///
    /// ```
    /// use catchment_capture::Format;
    /// assert_eq!(Format::detect(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0]), Format::Pcap);
    /// assert_eq!(Format::detect(&[0, 10, 1, 0]), Format::IpfixStream);
    /// assert_eq!(Format::detect(b"<13>hello"), Format::Lines);
    /// ```
    #[must_use]
    pub fn detect(first_bytes: &[u8]) -> Self {
        if let Some(magic) = first_bytes.first_chunk::<4>() {
            if PCAP_MAGICS.contains(magic) {
                return Self::Pcap;
            }
            if *magic == SECTION_HEADER {
                return Self::PcapNg;
            }
            let [version_high, version_low, length_high, length_low] = *magic;
            let length = u16::from_be_bytes([length_high, length_low]);
            if [version_high, version_low] == [0, 10] && length >= 16 {
                return Self::IpfixStream;
            }
        }
        Self::Lines
    }
}

/// Name of a format that would otherwise pass for text, and what to give instead.
pub(crate) fn foreign(first_bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    const PLAIN: &str = "the decompressed file";
    const CAPTURE: &str = "a pcap or pcapng file";
    let kinds: [(&[u8], &str, &str); 5] = [
        (&[0x1f, 0x8b], "gzip", PLAIN),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", PLAIN),
        (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz", PLAIN),
        (b"snoop\0", "snoop capture", CAPTURE),
        (b"GMBU", "NetMon capture", CAPTURE),
    ];
    kinds.into_iter().find(|(magic, _, _)| first_bytes.starts_with(magic)).map(|(_, kind, expected)| (kind, expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every magic number is known, and a version 10 with an impossible length is not IPFIX.
    #[test]
    fn detects_by_magic() {
        for magic in PCAP_MAGICS {
            assert_eq!(Format::detect(&magic), Format::Pcap);
        }
        assert_eq!(Format::detect(b"\x0a\x0d\x0d\x0a...."), Format::PcapNg);
        assert_eq!(Format::detect(&[0, 10, 0, 16]), Format::IpfixStream);
        assert_eq!(Format::detect(&[0, 10, 0, 15]), Format::Lines);
        assert_eq!(Format::detect(&[0, 9, 0, 16]), Format::Lines);
        assert_eq!(Format::detect(&[0xa1, 0xb2, 0xc3]), Format::Lines);
        assert_eq!(Format::detect(b""), Format::Lines);
    }

    /// Compressed and foreign captures are named instead of being read as text.
    #[test]
    fn names_foreign_formats() {
        assert_eq!(foreign(&[0x1f, 0x8b, 8]).map(|f| f.0), Some("gzip"));
        assert_eq!(foreign(b"snoop\0\0\0").map(|f| f.0), Some("snoop capture"));
        assert_eq!(foreign(b"<13>BZh"), None);
    }
}
