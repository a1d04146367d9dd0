//! TCP, with or without TLS: what receivers of streams share.
//!
//! A receiver is a [`Service`]: it finds the messages in the bytes of a connection ([`Messages`]) and tells events in its
//! own words. Here is the rest: [`accept`] lets connections in within [`Limits`], [`serve`] reads them, as fast as the
//! intake takes what they bring. `refill.rs` reads into the buffer that all connections of a core share, `buffered.rs`
//! bounds what they hold of incomplete messages, `tls.rs` is TLS.

mod buffered;
mod refill;
mod serve;
#[cfg(test)]
pub(crate) mod testing;
mod tls;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use otel_arrow_dfe_config::error::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::intake::{Intake, Pending};
use super::now::now;
use super::rates::Rates;
use super::seldom::Seldom;
use crate::config;
pub(crate) use buffered::Buffered;
pub(crate) use serve::serve;
#[cfg(test)]
pub(crate) use tls::TLS_KEYS;
pub(crate) use tls::{Tls, TlsConfig};

const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bounds of the connections of a core, as they are configured under `tcp`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Connections open at the same time.
    pub(crate) max_connections: usize,
    /// Of those, from one source address.
    pub(crate) max_connections_per_source: Option<usize>,
    /// A connection on which nothing comes for this long is closed.
    pub(crate) idle_timeout: Option<Duration>,
    /// Bytes that all connections together hold of incomplete messages, before they read on one at a time.
    pub(crate) max_buffered_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 1_024,
            max_connections_per_source: None,
            idle_timeout: None,
            max_buffered_bytes: 64 * 1024 * 1024,
        }
    }
}

impl Limits {
    /// # Errors
    /// Names the key of `tcp` at fault and its bounds.
    pub(crate) fn check(&self) -> Result<(), Error> {
        config::within("tcp.max_connections", self.max_connections, 1, 1_000_000)?;
        if let Some(most) = self.max_connections_per_source {
            config::within("tcp.max_connections_per_source", most, 1, 1_000_000)?;
        }
        if let Some(idle) = self.idle_timeout {
            config::within("tcp.idle_timeout (ms)", idle.as_millis(), 10, 366 * 24 * 3_600_000)?;
        }
        config::within("tcp.max_buffered_bytes", self.max_buffered_bytes, 1_024, 1 << 40)
    }
}

/// Sums over the life of a listener, and the connections open now.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConnectionCounters {
    pub(crate) accepted: u64,
    /// Closed at once because there were too many.
    pub(crate) refused: u64,
    /// Closed at once because there were too many of their source address.
    pub(crate) refused_of_source: u64,
    pub(crate) idle_closed: u64,
    pub(crate) open: u64,
    /// TLS handshakes that failed, and clients that spoke TLS to a port without.
    pub(crate) handshake_errors: u64,
    pub(crate) accept_errors: u64,
    pub(crate) read_errors: u64,
}

impl ConnectionCounters {
    /// Refused for whatever reason.
    pub(crate) fn all_refused(&self) -> u64 {
        self.refused + self.refused_of_source
    }
}

/// What befell a listener or a connection. All but [`Event::ReadFailed`] come at most once in a while.
pub(crate) enum Event<'a> {
    /// A limit of connections is reached.
    ConnectionRefused { peer: SocketAddr },
    /// The next try is after a pause.
    AcceptFailed { error: &'a io::Error },
    /// No TLS connection came about.
    HandshakeFailed { peer: SocketAddr, error: &'a io::Error },
    /// A client spoke TLS to a port without; the connection is closed.
    TlsUnexpected { peer: SocketAddr },
    /// A connection broke.
    ReadFailed { peer: SocketAddr, error: &'a io::Error },
}

/// A receiver of streams.
pub(crate) trait Service: 'static {
    type Pending: Pending;
    type Messages: Messages;

    fn connections(&self) -> &Connections;

    fn intake(&self) -> &Intake<Self::Pending>;

    /// How many messages a sender may send.
    fn rates(&self) -> &Rates;

    /// A connection has come about; `certificate` is the client's in DER, if it showed one.
    fn connected(self: &Rc<Self>, peer: SocketAddr, certificate: Option<&[u8]>) -> Self::Messages;

    fn tell(&self, event: Event<'_>);
}

/// Finds the messages of one connection and hands them on. Dropped when the connection has ended.
pub(crate) trait Messages {
    /// Looks at the front of `bytes`, all that has been read and not been done with. It is asked again until it says
    /// [`Next::NeedMore`] or [`Next::Failed`].
    fn next(&mut self, bytes: &[u8], now: Now) -> Next;
}

/// Where a stream stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// When the last bytes were read. All messages that got complete by them have it.
    pub(crate) time_unix_nano: i64,
    /// No more bytes will come.
    pub(crate) end: Option<End>,
    /// Nobody counts how many messages the sender sends: those that come to nothing may be taken several at once.
    pub(crate) unlimited: bool,
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// By its sender.
    Sender,
    /// It broke, or we left it: what is incomplete is truncated.
    Cut,
}

/// What is at the front of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// A message of so many bytes; it was handed on. Where nobody counts them, messages that were dropped may go before it.
    Message(usize),
    /// So many bytes that are no message.
    Skip(usize),
    /// Nothing that is complete.
    NeedMore,
    /// The stream cannot be read on, after so many bytes that are done with.
    Failed(usize),
}

/// The connections of a listener, and what they share.
pub(crate) struct Connections {
    limits: Limits,
    tls: Option<Tls>,
    pub(crate) counters: RefCell<ConnectionCounters>,
    pub(crate) buffered: Rc<Buffered>,
    /// All connections read into this one, so that an idle connection has no buffer.
    buffer: RefCell<Vec<u8>>,
    /// Open connections by source address.
    by_source: RefCell<HashMap<IpAddr, usize>>,
    handshake_told: Seldom,
    accept_told: Seldom,
    refusal_told: Seldom,
}

impl Connections {
    pub(crate) fn new(limits: Limits, tls: Option<Tls>) -> Self {
        Self {
            limits,
            tls,
            counters: RefCell::default(),
            buffered: Rc::new(Buffered::new(limits.max_buffered_bytes)),
            buffer: RefCell::new(vec![0; serve::SHARED_BYTES]),
            by_source: RefCell::default(),
            handshake_told: Seldom::default(),
            accept_told: Seldom::default(),
            refusal_told: Seldom::default(),
        }
    }

    /// Source addresses that have a connection open.
    #[cfg(test)]
    pub(crate) fn sources(&self) -> usize {
        self.by_source.borrow().len()
    }
}

/// Lets a connection in, or counts why not.
fn admit<S: Service>(service: &Rc<S>, peer: SocketAddr) -> Option<Open<S>> {
    let address = peer.ip().to_canonical();
    let connections = service.connections();
    let Limits { max_connections, max_connections_per_source, .. } = connections.limits;
    let mut by_source = connections.by_source.borrow_mut();
    let mut counters = connections.counters.borrow_mut();
    if counters.open >= max_connections as u64 {
        counters.refused += 1;
        return None;
    }
    let of_source = by_source.get(&address).copied().unwrap_or(0);
    if max_connections_per_source.is_some_and(|most| of_source >= most) {
        counters.refused_of_source += 1;
        return None;
    }
    let _ = by_source.insert(address, of_source + 1);
    counters.open += 1;
    counters.accepted += 1;
    Some(Open { service: Rc::clone(service), address })
}

/// Counts an open connection for as long as it lives.
struct Open<S: Service> {
    service: Rc<S>,
    address: IpAddr,
}

impl<S: Service> Drop for Open<S> {
    fn drop(&mut self) {
        let connections = self.service.connections();
        connections.counters.borrow_mut().open -= 1;
        let mut by_source = connections.by_source.borrow_mut();
        if let Some(of_source) = by_source.get_mut(&self.address) {
            *of_source -= 1;
            if *of_source == 0 {
                let _ = by_source.remove(&self.address);
            }
        }
    }
}

/// Where connections come from.
pub(crate) trait Listen {
    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)>;
}

impl Listen for TcpListener {
    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        Self::accept(self).await
    }
}

/// Accepts connections until the intake stops, then those that the kernel has accepted already, and waits for all to
/// finish.
pub(crate) async fn accept<S: Service>(listener: impl Listen, service: Rc<S>) {
    let mut open_connections = JoinSet::new();
    let (connections, stop) = (service.connections(), &service.intake().stop);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            ended = open_connections.join_next(), if !open_connections.is_empty() => {
                let failed = ended.is_some_and(|ended| ended.is_err());
                connections.counters.borrow_mut().read_errors += u64::from(failed);
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => match admit(&service, peer) {
                    Some(open) => {
                        let _ = open_connections.spawn_local(connection(stream, peer, open));
                    }
                    None if connections.refusal_told.now() => service.tell(Event::ConnectionRefused { peer }),
                    None => {}
                },
                // Out of descriptors, or the peer gave up: neither is a reason to end.
                Err(error) => {
                    connections.counters.borrow_mut().accept_errors += 1;
                    if connections.accept_told.now() {
                        service.tell(Event::AcceptFailed { error: &error });
                    }
                    tokio::select! {
                        biased;
                        () = stop.cancelled() => {}
                        () = tokio::time::sleep(ACCEPT_PAUSE) => {}
                    }
                }
            }
        }
    }
    // What the runtime knows of the listener may be old: it looks anew while we stand back.
    tokio::task::yield_now().await;
    while let Some(Ok((stream, peer))) = now(listener.accept()).await {
        if let Some(open) = admit(&service, peer) {
            let _ = open_connections.spawn_local(connection(stream, peer, open));
        }
    }
    drop(listener);
    while open_connections.join_next().await.is_some() {}
}

async fn connection<S: Service>(stream: TcpStream, peer: SocketAddr, open: Open<S>) {
    let service = &open.service;
    let connections = service.connections();
    let Some(tls) = &connections.tls else {
        let messages = service.connected(peer, None);
        serve(stream, peer, messages, &**service).await;
        return;
    };
    let handshake = tokio::select! {
        biased;
        // Nothing has been said yet that could get lost.
        () = service.intake().stop.cancelled() => return,
        handshake = tls.accept(stream) => handshake,
    };
    match handshake {
        Ok(stream) => {
            let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
            let messages = service.connected(peer, certificate.map(|certificate| certificate.as_ref()));
            serve(stream, peer, messages, &**service).await;
        }
        Err(error) => {
            connections.counters.borrow_mut().handshake_errors += 1;
            if connections.handshake_told.now() {
                service.tell(Event::HandshakeFailed { peer, error: &error });
            }
        }
    }
}
