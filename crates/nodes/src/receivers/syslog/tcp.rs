//! Messages from TCP connections, with or without TLS.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use catchment_syslog::FramerOptions;
use otel_arrow_dfe_otap::tls_utils::{accept_tls_connection, build_tls_acceptor};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::buffered::Buffered;
use super::config::{TcpConfig, TlsConfig};
use super::connection::{SHARED_BYTES, serve};
use super::senders::Senders;
use super::shared::{Seldom, Shared};
use super::subject::subject;
use crate::ingest::now;

const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Where the engine's settings name none.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Bounds of the connections of a core.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) connections: usize,
    pub(super) connections_per_source: usize,
    pub(super) idle_timeout: Option<Duration>,
}

/// TLS of a listener.
pub(super) struct Tls {
    acceptor: TlsAcceptor,
    handshake_timeout: Duration,
    /// Whether records get the subject of the client's certificate.
    client_subject: bool,
}

impl Tls {
    /// Loads the certificates.
    pub(super) async fn load(config: &TlsConfig, client_subject: bool) -> io::Result<Self> {
        let acceptor = build_tls_acceptor(Some(&config.0)).await?;
        let acceptor = acceptor.ok_or_else(|| io::Error::other("no acceptor for the configured certificates"))?;
        let handshake_timeout = config.0.handshake_timeout.unwrap_or(HANDSHAKE_TIMEOUT);
        Ok(Self { acceptor, handshake_timeout, client_subject })
    }
}

/// What the connections of a listener share.
pub(super) struct Tcp {
    pub(super) shared: Rc<Shared>,
    pub(super) options: FramerOptions,
    pub(super) limits: Limits,
    pub(super) tls: Option<Tls>,
    /// All connections read into this one, so that an idle connection has no buffer.
    pub(super) buffer: RefCell<Vec<u8>>,
    pub(super) buffered: Rc<Buffered>,
    pub(super) seldom_handshake: Seldom,
    senders: Senders,
    /// Open connections by source address.
    open: RefCell<HashMap<IpAddr, usize>>,
}

impl Tcp {
    pub(super) fn new(
        config: &TcpConfig,
        max_message_size: usize,
        tls: Option<Tls>,
        senders: Senders,
        shared: Rc<Shared>,
    ) -> Self {
        let buffered = Rc::new(Buffered::new(config.max_buffered_bytes));
        let _ = shared.buffered.set(Rc::clone(&buffered));
        Self {
            options: config.framer_options(max_message_size),
            limits: Limits {
                connections: config.max_connections,
                connections_per_source: config.max_connections_per_source.unwrap_or(usize::MAX),
                idle_timeout: config.idle_timeout,
            },
            tls,
            buffer: RefCell::new(vec![0; SHARED_BYTES]),
            buffered,
            seldom_handshake: Seldom::default(),
            senders,
            open: RefCell::default(),
            shared,
        }
    }

    /// Lets a connection in, or counts why not.
    fn admit(self: &Rc<Self>, peer: SocketAddr) -> Option<Open> {
        let address = peer.ip().to_canonical();
        let mut open = self.open.borrow_mut();
        let mut counters = self.shared.counters.borrow_mut();
        if counters.connections_open >= self.limits.connections as u64 {
            counters.connections_refused += 1;
            return None;
        }
        let of_source = open.entry(address).or_insert(0);
        if *of_source >= self.limits.connections_per_source {
            counters.connections_refused_of_source += 1;
            return None;
        }
        *of_source += 1;
        counters.connections_open += 1;
        counters.connections_accepted += 1;
        Some(Open { tcp: Rc::clone(self), address })
    }
}

/// Counts an open connection for as long as it lives.
struct Open {
    tcp: Rc<Tcp>,
    address: IpAddr,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.tcp.shared.counters.borrow_mut().connections_open -= 1;
        let mut open = self.tcp.open.borrow_mut();
        if let Some(of_source) = open.get_mut(&self.address) {
            *of_source -= 1;
            if *of_source == 0 {
                let _ = open.remove(&self.address);
            }
        }
    }
}

/// Where connections come from.
pub(super) trait Listen {
    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)>;
}

impl Listen for TcpListener {
    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        Self::accept(self).await
    }
}

/// Accepts connections until the intake stops, then those that the kernel has accepted already, and waits for all to
/// finish.
pub(super) async fn accept(listener: impl Listen, tcp: Rc<Tcp>) {
    let mut connections = JoinSet::new();
    let (shared, seldom, refused) = (&tcp.shared, Seldom::default(), Seldom::default());
    loop {
        tokio::select! {
            biased;
            () = shared.intake.stop.cancelled() => break,
            ended = connections.join_next(), if !connections.is_empty() => {
                let failed = ended.is_some_and(|ended| ended.is_err());
                shared.counters.borrow_mut().receive_errors += u64::from(failed);
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => match tcp.admit(peer) {
                    Some(open) => {
                        let _ = connections.spawn_local(connection(stream, peer, open));
                    }
                    None if refused.now() => {
                        otel_warn!(
                            "syslog_receiver.tcp.connection_refused",
                            peer = %peer,
                            message = "tcp.max_connections or tcp.max_connections_per_source is reached; the connection is closed"
                        );
                    }
                    None => {}
                },
                // Out of descriptors, or the peer gave up: neither is a reason to end.
                Err(error) => {
                    shared.counters.borrow_mut().accept_errors += 1;
                    if seldom.now() {
                        otel_warn!("syslog_receiver.tcp.accept_failed", error = %error);
                    }
                    tokio::select! {
                        biased;
                        () = shared.intake.stop.cancelled() => {}
                        () = tokio::time::sleep(ACCEPT_PAUSE) => {}
                    }
                }
            }
        }
    }
    // What the runtime knows of the listener may be old: it looks anew while we stand back.
    tokio::task::yield_now().await;
    while let Some(Ok((stream, peer))) = now(listener.accept()).await {
        if let Some(open) = tcp.admit(peer) {
            let _ = connections.spawn_local(connection(stream, peer, open));
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn connection(stream: TcpStream, peer: SocketAddr, open: Open) {
    let tcp = &*open.tcp;
    let source = tcp.senders.fresh(Some(peer));
    let Some(tls) = &tcp.tls else {
        serve(stream, peer, Arc::new(source), tcp).await;
        return;
    };
    let handshake = tokio::select! {
        biased;
        // Nothing has been said yet that could get lost.
        () = tcp.shared.intake.stop.cancelled() => return,
        handshake = accept_tls_connection(stream, &tls.acceptor, tls.handshake_timeout) => handshake,
    };
    match handshake {
        Ok(stream) => {
            let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
            let subject = certificate.filter(|_| tls.client_subject).and_then(|der| subject(der));
            let source = match subject {
                Some(subject) => source.with_tls_subject(subject),
                None => source,
            };
            serve(stream, peer, Arc::new(source), tcp).await;
        }
        Err(error) => {
            tcp.shared.counters.borrow_mut().handshake_errors += 1;
            if tcp.seldom_handshake.now() {
                otel_warn!(
                    "syslog_receiver.tls.handshake_failed",
                    peer = %peer,
                    error = %error,
                    message = "no TLS connection came about: a client that speaks plain text, does not trust the certificate, shows none that is trusted, or is too slow"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests;
