//! Messages from TCP connections, with or without TLS.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use catchment_syslog::FramerOptions;

use super::config::TcpConfig;
use super::connection::Frames;
use super::senders::Senders;
use super::shared::{Shared, SyslogPending};
use super::subject::subject;
use crate::ingest::tcp::{Connections, Event, Service, Tls};
use crate::ingest::{Intake, Rates};

/// What the connections of a listener share.
pub(super) struct Tcp {
    pub(super) shared: Rc<Shared>,
    pub(super) options: FramerOptions,
    pub(super) connections: Rc<Connections>,
    senders: Senders,
    /// Whether records get the subject of the client's certificate.
    client_subject: bool,
}

impl Tcp {
    pub(super) fn new(
        config: &TcpConfig,
        max_message_size: usize,
        tls: Option<Tls>,
        senders: Senders,
        shared: Rc<Shared>,
    ) -> Self {
        let connections = Rc::new(Connections::new(config.limits(), tls));
        let _ = shared.connections.set(Rc::clone(&connections));
        Self {
            options: config.framer_options(max_message_size),
            connections,
            senders,
            client_subject: config.tls_client_subject,
            shared,
        }
    }
}

impl Service for Tcp {
    type Pending = SyslogPending;
    type Messages = Frames;

    fn connections(&self) -> &Connections {
        &self.connections
    }

    fn intake(&self) -> &Intake<SyslogPending> {
        &self.shared.intake
    }

    fn rates(&self) -> &Rates {
        &self.shared.rates
    }

    fn connected(self: &Rc<Self>, peer: SocketAddr, certificate: Option<&[u8]>) -> Frames {
        let source = self.senders.fresh(Some(peer));
        let source = match certificate.filter(|_| self.client_subject).and_then(subject) {
            Some(subject) => source.with_tls_subject(subject),
            None => source,
        };
        Frames::new(peer, Arc::new(source), Rc::clone(&self.shared), self.options)
    }

    fn tell(&self, event: Event<'_>) {
        match event {
            Event::ConnectionRefused { peer } => otel_warn!(
                "syslog_receiver.tcp.connection_refused",
                peer = %peer,
                message = "tcp.max_connections or tcp.max_connections_per_source is reached; the connection is closed"
            ),
            Event::AcceptFailed { error } => otel_warn!("syslog_receiver.tcp.accept_failed", error = %error),
            Event::HandshakeFailed { peer, error } => otel_warn!(
                "syslog_receiver.tls.handshake_failed",
                peer = %peer,
                error = %error,
                message = "no TLS connection came about: a client that speaks plain text, does not trust the certificate, shows none that is trusted, or is too slow"
            ),
            Event::TlsUnexpected { peer } => otel_warn!(
                "syslog_receiver.tcp.tls_unexpected",
                peer = %peer,
                message = "a client speaks TLS to a port without; the connection is closed. Configure tcp.tls, or have the client send plain text"
            ),
            Event::ReadFailed { peer, error } => {
                otel_debug!("syslog_receiver.tcp.read_failed", peer = %peer, error = %error);
            }
        }
    }
}

#[cfg(test)]
mod tests;
