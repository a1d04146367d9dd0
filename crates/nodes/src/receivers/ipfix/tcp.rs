//! IPFIX messages from TCP connections, with or without TLS (RFC 7011 section 10.4).

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use otel_arrow_dfe_config::error::Error;
use serde::Deserialize;

use super::connection::{Connection, Frames, MessageSink};
use crate::config;
use crate::ingest::tcp::{Connections, Event, Limits, Service, Tls, TlsConfig};
use crate::ingest::{Intake, Rates, Seldom};

/// TCP: messages back to back, with or without TLS. Each connection is a session of its own.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TcpConfig {
    #[serde(deserialize_with = "config::address::deserialize")]
    pub(super) listening_addr: SocketAddr,
    /// With a certificate authority of clients in it, only those with a certificate of it get in.
    pub(super) tls: Option<TlsConfig>,
    #[serde(default = "max_connections")]
    max_connections: usize,
    max_connections_per_source: Option<usize>,
    #[serde(default, with = "humantime_serde")]
    idle_timeout: Option<Duration>,
    #[serde(default = "max_buffered_bytes", deserialize_with = "config::bytes::deserialize")]
    max_buffered_bytes: usize,
}

fn max_connections() -> usize {
    Limits::default().max_connections
}

fn max_buffered_bytes() -> usize {
    Limits::default().max_buffered_bytes
}

impl TcpConfig {
    /// # Errors
    /// Names the key at fault and what would be right.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.limits().check()?;
        self.tls.as_ref().map_or(Ok(()), TlsConfig::check)
    }

    /// Bounds of the connections of a core.
    fn limits(&self) -> Limits {
        Limits {
            max_connections: self.max_connections,
            max_connections_per_source: self.max_connections_per_source,
            idle_timeout: self.idle_timeout,
            max_buffered_bytes: self.max_buffered_bytes,
        }
    }
}

/// Sums over the life of a listener, beside those of its connections.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StreamCounters {
    /// Connections closed because what came was no header of an IPFIX message.
    pub(super) framing_errors: u64,
    /// Messages lost because their connection ended inside of them.
    pub(super) incomplete_messages: u64,
}

/// What the connections of a listener share.
pub(super) struct Tcp<S> {
    pub(super) sink: Rc<S>,
    pub(super) connections: Rc<Connections>,
    pub(super) counters: Rc<RefCell<StreamCounters>>,
    pub(super) framing_told: Seldom,
    /// Connections so far.
    number: Cell<u64>,
}

impl<S: MessageSink> Tcp<S> {
    /// A listener's state; the messages of its connections go to `sink`.
    pub(super) fn new(
        config: &TcpConfig,
        tls: Option<Tls>,
        sink: Rc<S>,
        counters: Rc<RefCell<StreamCounters>>,
    ) -> Self {
        Self {
            sink,
            connections: Rc::new(Connections::new(config.limits(), tls)),
            counters,
            framing_told: Seldom::default(),
            number: Cell::new(0),
        }
    }
}

impl<S: MessageSink> Service for Tcp<S> {
    type Pending = S::Pending;
    type Messages = Frames<S>;

    fn connections(&self) -> &Connections {
        &self.connections
    }

    fn intake(&self) -> &Intake<S::Pending> {
        self.sink.intake()
    }

    fn rates(&self) -> &Rates {
        self.sink.rates()
    }

    fn connected(self: &Rc<Self>, peer: SocketAddr, _certificate: Option<&[u8]>) -> Frames<S> {
        self.number.set(self.number.get() + 1);
        Frames::new(Connection { number: self.number.get(), peer }, Rc::clone(self))
    }

    fn tell(&self, event: Event<'_>) {
        match event {
            Event::ConnectionRefused { peer } => otel_warn!(
                "ipfix_receiver.tcp.connection_refused",
                peer = %peer,
                message = "tcp.max_connections or tcp.max_connections_per_source is reached; the connection is closed"
            ),
            Event::AcceptFailed { error } => otel_warn!("ipfix_receiver.tcp.accept_failed", error = %error),
            Event::HandshakeFailed { peer, error } => otel_warn!(
                "ipfix_receiver.tls.handshake_failed",
                peer = %peer,
                error = %error,
                message = "no TLS connection came about: an exporter that speaks plain TCP, does not trust the certificate, shows none that is trusted, or is too slow"
            ),
            Event::TlsUnexpected { peer } => otel_warn!(
                "ipfix_receiver.tcp.tls_unexpected",
                peer = %peer,
                message = "an exporter speaks TLS to a port without; the connection is closed. Configure tcp.tls, or have the exporter use plain TCP"
            ),
            Event::ReadFailed { peer, error } => {
                otel_debug!("ipfix_receiver.tcp.read_failed", peer = %peer, error = %error);
            }
        }
    }
}

#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
