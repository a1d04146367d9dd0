//! What goes into a collector besides datagrams, and what it tells of itself.

use std::net::SocketAddr;

/// Which transport session a datagram or message belongs to (RFC 7011 section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionKey {
    /// Datagrams from one source address and port to one of our sockets.
    Udp {
        /// Where they come from. An IPv4 address mapped into IPv6 is the same as the IPv4 address.
        peer: SocketAddr,
        /// Number of the socket, chosen by the caller.
        listener: u32,
    },
    /// A TCP or TLS connection, or a file of messages.
    Stream {
        /// Number of the connection, chosen by the caller and used once.
        connection: u64,
        /// The other end of the connection, if it is one.
        peer: Option<SocketAddr>,
    },
}

impl SessionKey {
    /// The other end; `None` for a file.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        match self {
            Self::Udp { peer, .. } => Some(*peer),
            Self::Stream { peer, .. } => *peer,
        }
    }
}

/// Why a datagram was not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// It would begin a session, and there are as many as there may be.
    Sessions,
    /// It would begin a session, and its source address has as many as it may have.
    SessionsOfAddress,
    /// Its sender is shut out for a while because nothing that it sent could be read.
    ShutOut,
}

/// What became of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Admission {
    /// It was admitted to its session.
    Accepted,
    /// It was counted and nothing else.
    Refused(Refusal),
}

/// Counts over the life of a collector.
///
/// Of the sets that wait for their template: `pending_held_sets` is the sum of `pending_released_sets`, the three
/// `pending_dropped_*` and the sets that wait still ([`Gauges::pending_sets`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CollectorCounters {
    /// Sessions begun.
    pub sessions_opened: u64,
    /// Sessions that became established.
    pub sessions_established: u64,
    /// Sessions ended by [`Collector::close`](crate::Collector::close).
    pub sessions_closed: u64,
    /// Newcomers that were silent and gave way to others.
    pub newcomers_evicted: u64,
    /// Newcomers that gave way because established sessions needed the room for their templates or facts.
    pub newcomers_evicted_for_room: u64,
    /// Established sessions that were silent for long and gave way to others.
    pub idle_evicted: u64,
    /// Datagrams refused because there are too many sessions.
    pub refused_sessions: u64,
    /// Datagrams refused because their address has too many sessions.
    pub refused_sessions_of_address: u64,
    /// Datagrams skipped because their sender is shut out.
    pub refused_shut_out: u64,
    /// Times a sender was shut out.
    pub shut_outs: u64,
    /// Data sets held until their template arrives.
    pub pending_held_sets: u64,
    /// Data sets without template that were not held, because of their size or because there is no room.
    pub pending_refused_sets: u64,
    /// Held data sets whose template arrived.
    pub pending_released_sets: u64,
    /// Records in them.
    pub pending_released_records: u64,
    /// Held data sets dropped because they waited too long.
    pub pending_dropped_age: u64,
    /// Held data sets dropped to make room for later ones of their session.
    pub pending_dropped_limit: u64,
    /// Held data sets dropped with their session.
    pub pending_dropped_closed: u64,
}

/// What a collector keeps now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Sessions of all kinds.
    pub sessions: usize,
    /// Those that are established, streams among them.
    pub established_sessions: usize,
    /// Templates of all sessions.
    pub templates: usize,
    /// Fields of them, each template counting as eight more.
    pub template_fields: usize,
    /// Templates from before a restart, used or not.
    pub provisional_templates: usize,
    /// Facts from options data received.
    pub facts: usize,
    /// Data sets that wait for their template.
    pub pending_sets: usize,
    /// What they take, in bytes.
    pub pending_bytes: usize,
}
