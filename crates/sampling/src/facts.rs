//! What policies may ask of a record. Only what a chain of policies asks for is ever looked at.

use std::net::IpAddr;

use crate::trace::{TraceParent, TraceState};

/// Facts of one record, taken lazily from where it lies. A record that cannot have a fact gives `None`, and the policies
/// that ask for it do not apply to it.
pub trait Facts {
    /// Syslog severity: 0 (emergency) to 7 (debug).
    fn severity(&self) -> Option<u8> {
        None
    }

    /// Address of the sender as the receiver saw it; of an exporter, for records of flows.
    fn source(&self) -> Option<IpAddr> {
        None
    }

    /// Host and program.
    fn names(&self) -> Names<'_> {
        Names::default()
    }

    /// Observation domain of IPFIX, source id of NetFlow v9, engine of v5.
    fn domain(&self) -> Option<u32> {
        None
    }

    /// The flow that the record is of.
    fn flow(&self) -> Option<Flow<'_>> {
        None
    }

    /// The trace that the record belongs to.
    fn trace_parent(&self) -> Option<TraceParent> {
        None
    }

    /// The trace, and how it was sampled.
    fn trace(&self) -> Option<(TraceParent, TraceState)> {
        self.trace_parent().map(|parent| (parent, TraceState::default()))
    }
}

/// Who wrote a message, as written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Names<'a> {
    /// Host name or address.
    pub host: Option<&'a [u8]>,
    /// Program; of CEF without one `vendor|product`.
    pub app: Option<&'a [u8]>,
}

/// The 5-tuple of a flow, each field as on the wire in network byte order; empty if the record does not have it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow<'a> {
    /// Source address: 4 or 16 bytes.
    pub source_address: &'a [u8],
    /// Destination address: 4 or 16 bytes.
    pub destination_address: &'a [u8],
    /// Source port. Zeros at the start do not count, so that reduced-size encoding (RFC 7011 section 6.2) changes nothing.
    pub source_port: &'a [u8],
    /// Destination port, as the source port.
    pub destination_port: &'a [u8],
    /// Protocol number, as the ports.
    pub protocol: &'a [u8],
}

/// Facts of a flow record that the receiver has at hand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowRecord<'a> {
    /// Address of the exporter.
    pub exporter: Option<IpAddr>,
    /// Observation domain.
    pub domain: u32,
    /// The flow; left empty where [`Sampler::varies_by_record`](crate::Sampler::varies_by_record) says that nobody asks.
    pub flow: Flow<'a>,
}

impl Facts for FlowRecord<'_> {
    #[inline]
    fn source(&self) -> Option<IpAddr> {
        self.exporter
    }

    #[inline]
    fn domain(&self) -> Option<u32> {
        Some(self.domain)
    }

    #[inline]
    fn flow(&self) -> Option<Flow<'_>> {
        Some(self.flow)
    }
}
