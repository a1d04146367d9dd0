//! Facts of a syslog message, from a look at its bytes.

mod header;
mod stamp;

use std::net::IpAddr;

use crate::facts::{Facts, Names};
use crate::trace::{self, TraceParent, TraceState};

pub use header::HEADER_LOOK;

/// One syslog message without its frame. Nothing is looked at before a policy asks for it: PRI is in the first five
/// bytes, host and program in the first [`HEADER_LOOK`], a trace in the first [`TRACE_LOOK`](crate::TRACE_LOOK).
#[derive(Debug, Clone, Copy)]
pub struct SyslogMessage<'a> {
    /// The message, from PRI on.
    pub message: &'a [u8],
    /// Address of the peer that it came from, if it came over a network.
    pub source: Option<IpAddr>,
}

impl Facts for SyslogMessage<'_> {
    /// The severity in PRI (RFC 5424 section 6.2.1); `None` if there is none, or not a valid one.
    #[inline]
    fn severity(&self) -> Option<u8> {
        header::pri(self.message).map(|(value, _)| value & 7)
    }

    #[inline]
    fn source(&self) -> Option<IpAddr> {
        self.source
    }

    /// HOSTNAME and APP-NAME of RFC 5424; host and tag of RFC 3164 and the header forms of its relatives, by the rules of
    /// `catchment-syslog` for all but odd ones; vendor and product of CEF, as sent, where nothing else names a program.
    #[inline]
    fn names(&self) -> Names<'_> {
        header::names(self.message)
    }

    #[inline]
    fn trace_parent(&self) -> Option<TraceParent> {
        TraceParent::find(self.message)
    }

    #[inline]
    fn trace(&self) -> Option<(TraceParent, TraceState)> {
        trace::find(self.message)
    }
}

#[cfg(test)]
mod tests;
