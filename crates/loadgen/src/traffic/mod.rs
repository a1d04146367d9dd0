//! Traffic to throw at a receiver: generators that are a function of their seed, and senders that keep a pace.
//!
//! A generator is a [`Source`] of messages: [`SyslogLines`] makes log lines, [`FlowExporter`] IPFIX or NetFlow messages
//! with flows, [`SonicTelemetry`] the counters of a switch, [`Payloads`] wraps whatever else there is, such as the packets
//! of a recording. [`Interleaved`] and [`Faulty`] mix sources and lose messages. [`send_udp`], [`send_tcp`],
//! [`write_stream`] and [`write_pcap`] send or write a bounded number of messages and say exactly how many they, and the
//! records in them, were, so that a test can compare with what arrived.
//!
//! Nothing here reads the clock but the senders: the same options give the same bytes, times included.
//!
//! ```
//! use catchment_loadgen::traffic::{Source, SyslogFormat, SyslogLines};
//!
//! let mut lines = SyslogLines::new(SyslogFormat::Rfc5424, 7);
//! let mut line = Vec::new();
//! assert_eq!(lines.append_next(&mut line), Some(1));
//! assert!(line.starts_with(b"<1") && line.len() > 200);
//! ```

mod calendar;
mod corpus;
mod faults;
mod file;
mod ipfix;
mod pace;
pub(crate) mod random;
mod send;
mod sonic;
mod syslog;

pub use faults::{Faults, Faulty, Interleaved, Lost};
pub use file::{write_pcap, write_stream};
pub use ipfix::{
    FlowExporter, FlowFields, FlowOptions, FlowOptionsError, FlowProtocol, FlowTemplates, FlowTemplatesError,
};
pub use pace::{Clock, Pace, SystemClock};
pub use send::{Framing, SendError, SendOptions, Sent, send_tcp, send_udp, send_udp_in_turns};
pub use sonic::{
    SonicObject, SonicOptions, SonicOptionsError, SonicSession, SonicSessionFields, SonicTelemetry, SonicTime,
};
pub use syslog::{SyslogFormat, SyslogLines, SyslogOptions};

/// 2026-01-01T00:00:00Z, the time at which generators begin unless told otherwise, in nanoseconds since the Unix epoch.
pub const DEFAULT_START_UNIX_NANO: u64 = 1_767_225_600_000_000_000;

/// Gives messages one after the other.
pub trait Source {
    /// Appends the next message to `out`, without any framing, and gives the number of records in it: 1 for a log line,
    /// the data records for a flow message (0 is possible). `None`, with `out` as it was, when there are no more.
    fn append_next(&mut self, out: &mut Vec<u8>) -> Option<u64>;
}

impl<S: Source + ?Sized> Source for &mut S {
    fn append_next(&mut self, out: &mut Vec<u8>) -> Option<u64> {
        (**self).append_next(out)
    }
}

/// A source of messages that are there already, one record each.
#[derive(Debug, Clone)]
pub struct Payloads<I>(pub I);

impl<I> Source for Payloads<I>
where
    I: Iterator,
    I::Item: AsRef<[u8]>,
{
    fn append_next(&mut self, out: &mut Vec<u8>) -> Option<u64> {
        out.extend_from_slice(self.0.next()?.as_ref());
        Some(1)
    }
}
