//! The reader of all formats.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::CaptureError;
use crate::format::{self, Format};
use crate::item::{Counts, Item};
use crate::lines::Lines;
use crate::messages::Messages;
use crate::pcap::Pcap;
use crate::pcapng::PcapNg;
use crate::source::Source;

/// Largest captured frame or pcapng packet block that is read, in bytes. A UDP datagram needs less than 64 KiB; a
/// larger number in a length field is taken for a damaged file.
pub const MAX_RECORD_BYTES: usize = 1024 * 1024;

/// Longest line kept whole unless [`Options::max_line_bytes`] says otherwise: what fits in the largest UDP datagram.
pub const DEFAULT_MAX_LINE_BYTES: usize = 65_535;

/// How to read a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Format of the file; `None` to tell it by [`Format::detect`].
    pub format: Option<Format>,
    /// Longest line that is kept whole, in bytes without its end; the rest of a longer one is dropped and the packet
    /// flagged.
    pub max_line_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { format: None, max_line_bytes: DEFAULT_MAX_LINE_BYTES }
    }
}

/// Goes through a recording once: an iterator over its packets and skips.
///
/// After an error, and after the end, it gives `None` for good.
#[derive(Debug)]
pub struct Reader<R> {
    source: Source<R>,
    records: Records,
    format: Format,
    counts: Counts,
    finished: bool,
}

/// The state of reading one format.
#[derive(Debug)]
enum Records {
    Pcap(Pcap),
    PcapNg(PcapNg),
    Messages(Messages),
    Lines(Lines),
}

impl Reader<File> {
    /// Opens a file whose format is told by its first bytes.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Open`], [`CaptureError::Directory`], [`CaptureError::Empty`], and what [`Reader::new`] finds
    /// wrong with the file header.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CaptureError> {
        Self::open_with(path, Options::default())
    }

    /// Opens a file as `options` say.
    ///
    /// # Errors
    ///
    /// As [`Reader::open`].
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self, CaptureError> {
        let path = path.as_ref().to_path_buf();
        // Asked before opening: opening a directory works, and only reading from it fails.
        if fs::metadata(&path).is_ok_and(|metadata| metadata.is_dir()) {
            return Err(CaptureError::Directory { path });
        }
        match File::open(&path) {
            Ok(file) => Self::new(file, path, options),
            Err(source) => Err(CaptureError::Open { path, source }),
        }
    }
}

impl<R: Read> Reader<R> {
    /// Reads from `input`, such as standard input or bytes in memory, which errors call `path`. Buffers on its own.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Empty`] for an input without bytes, unless it is said to be lines;
    /// [`CaptureError::Unsupported`] for compressed and foreign files, unless the format is given;
    /// [`CaptureError::EndsInside`] and [`CaptureError::Malformed`] for a wrong file header;
    /// [`CaptureError::Read`] when reading fails.
    pub fn new(input: R, path: impl Into<PathBuf>, options: Options) -> Result<Self, CaptureError> {
        let path = path.into();
        let (prefix, mut source) = Source::with_prefix(input, path.clone(), format::DETECT_BYTES)?;
        if prefix.is_empty() && options.format != Some(Format::Lines) {
            return Err(CaptureError::Empty { path });
        }
        let format = match options.format {
            Some(format) => format,
            None => match format::foreign(&prefix) {
                Some((kind, expected)) => {
                    return Err(CaptureError::Unsupported { path, kind, expected });
                }
                None => Format::detect(&prefix),
            },
        };
        let records = match format {
            Format::Pcap => Records::Pcap(Pcap::open(&mut source)?),
            Format::PcapNg => Records::PcapNg(PcapNg::open(&mut source)?),
            Format::IpfixStream => Records::Messages(Messages),
            Format::Lines => Records::Lines(Lines::new(options.max_line_bytes)),
        };
        Ok(Self { source, records, format, counts: Counts::default(), finished: false })
    }

    /// The format being read.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// What was handed out so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    fn read_item(&mut self) -> Result<Option<Item>, CaptureError> {
        match &mut self.records {
            Records::Pcap(pcap) => pcap.next(&mut self.source),
            Records::PcapNg(pcapng) => pcapng.next(&mut self.source),
            Records::Messages(messages) => messages.next(&mut self.source),
            Records::Lines(lines) => lines.next(&mut self.source),
        }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Item, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let result = self.read_item().transpose();
        match &result {
            Some(Ok(item)) => self.counts.add(item),
            Some(Err(_)) | None => self.finished = true,
        }
        result
    }
}

impl<R: Read> std::iter::FusedIterator for Reader<R> {}

#[cfg(test)]
mod tests;
