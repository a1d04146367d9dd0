//! What can be wrong with a recording as a whole.

use std::io;
use std::path::PathBuf;

/// Why a recording cannot be opened or read on. Every variant names the file; offsets count bytes from its start.
///
/// A single packet that cannot be used is not an error but a [`crate::Item::Skipped`].
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file does not exist or may not be opened.
    #[error("{}: cannot open: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The path names a directory.
    #[error("{}: is a directory, expected a capture, IPFIX or text file", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// The file has no bytes, so that its format cannot be told.
    #[error("{}: file is empty, expected a capture, IPFIX or text file", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is of a known kind that is not read here.
    #[error("{}: is a {kind} file, expected {expected}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What the file is.
        kind: &'static str,
        /// What would be right.
        expected: &'static str,
    },
    /// Reading failed.
    #[error("{}: reading failed at byte {offset}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Bytes read before the failure.
        offset: u64,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The file ends inside a header, block, record or message.
    #[error("{}: file ends inside the {part} at byte {offset}: {missing} bytes missing", path.display())]
    EndsInside {
        /// The file.
        path: PathBuf,
        /// Where the unfinished part begins.
        offset: u64,
        /// What is unfinished.
        part: &'static str,
        /// Bytes of the part that are not there.
        missing: u64,
    },
    /// A number of the file format that makes it impossible to find the next record.
    #[error("{}: {field} at byte {offset} is {found} ({found:#x}), expected {expected}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where the faulty part begins.
        offset: u64,
        /// What is at fault.
        field: &'static str,
        /// The value found.
        found: u64,
        /// What would be right.
        expected: &'static str,
    },
}

impl CaptureError {
    /// Where in the file it is wrong, in bytes from its start; 0 if it is wrong as a whole.
    #[must_use]
    pub fn offset(&self) -> u64 {
        match self {
            Self::Open { .. } | Self::Directory { .. } | Self::Empty { .. } | Self::Unsupported { .. } => 0,
            Self::Read { offset, .. } | Self::EndsInside { offset, .. } | Self::Malformed { offset, .. } => *offset,
        }
    }
}
