//! Recorded traffic read back as datagrams.
//!
//! A recording is one of four kinds of file, told apart by their first bytes ([`Format::detect`]):
//!
//! * pcap and pcapng captures: the payload of every whole UDP datagram, with its capture time and addresses;
//! * a stream of IPFIX messages (RFC 5655 files, bytes of a TCP session): one packet per message;
//! * text: one packet per line.
//!
//! [`Reader`] goes through the file once with bounded memory. What it cannot hand out as a datagram it hands out as
//! [`Item::Skipped`] with the reason, so that packets plus skips is always the number of records in the file.
//!
//! Not for live capture, and no reassembly: IP fragments and TCP segments are skipped and counted.
//!
//! ```
//! use catchment_capture::{Item, Options, Reader};
//!
//! let log = b"<13>first\r\n<14>second\n";
//! let reader = Reader::new(&log[..], "example.log", Options::default())?;
//! let mut payloads = Vec::new();
//! for item in reader {
//!     if let Item::Packet(packet) = item? {
//!         payloads.push(packet.payload);
//!     }
//! }
//! assert_eq!(payloads, [&b"<13>first"[..], &b"<14>second"[..]]);
//! # Ok::<(), catchment_capture::CaptureError>(())
//! ```

mod datagram;
mod error;
mod format;
mod item;
mod lines;
mod messages;
mod pcap;
mod pcapng;
mod reader;
mod source;
#[cfg(test)]
mod testing;

pub use error::CaptureError;
pub use format::Format;
pub use item::{Counts, Item, Packet, SkipReason, Transport};
pub use reader::{DEFAULT_MAX_LINE_BYTES, MAX_RECORD_BYTES, Options, Reader};
