//! Syslog framing and parsing: RFC 3164, RFC 5424, CEF. Bytes in, borrowed fields out.
//!
//! The crate knows nothing of sockets, runtimes or Arrow. A receiver uses it in two steps:
//!
//! 1. [`framing`] cuts the byte stream of a connection into messages ([`Framer`]), or trims one
//!    datagram ([`framing::datagram`]). Memory is bounded by the message limit.
//! 2. [`parse`] reads one message into a [`Record`] whose fields borrow from the message. Usual
//!    lines need no allocation, and any input takes time in proportion to its length.
//!    [`Record::trace_context`] finds the trace that the message belongs to.
//!
//! Every byte sequence gives a record. Text that no rule can place stays in
//! [`Record::message`], or [`Record::fully_parsed`] is false and the caller keeps the raw input.
//!
//! ```
//! use catchment_syslog::{Receipt, Zone, parse};
//!
//! let zone = Zone::Utc;
//! let receipt = Receipt { time_unix_nano: 1_796_040_000_000_000_000, zone: &zone };
//! let record = parse(b"<34>Nov 30 10:00:00 web01 sshd[4321]: session opened", &receipt);
//! assert_eq!(record.severity, Some(2));
//! assert_eq!(record.hostname, Some(&b"web01"[..]));
//! assert_eq!(record.proc_id, Some(&b"4321"[..]));
//! assert_eq!(record.message, Some(&b"session opened"[..]));
//! ```

mod bytes;
mod cef;
mod civil;
mod escape;
pub mod framing;
mod record;
mod rfc3164;
mod rfc5424;
pub mod severity;
mod stamp;
mod structured_data;
pub mod time;
pub mod trace;

pub use cef::{Cef, Extensions};
pub use framing::{Framer, FramerOptions, Framing, FramingError, Step};
pub use record::{Format, Record, parse, parse_into};
pub use structured_data::{Element, Elements, Params, StructuredData};
pub use time::{Receipt, Zone, ZoneError};
pub use trace::TraceContext;
