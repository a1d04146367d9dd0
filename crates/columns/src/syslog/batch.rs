//! Messages waiting to be decoded: their bytes in one arena, and what was known when they were read.

use std::net::SocketAddr;
use std::sync::Arc;

use catchment_sampling::Threshold;
use catchment_syslog::Zone;

/// How a message came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A UDP datagram.
    Udp,
    /// A frame of a TCP stream, with or without TLS.
    Tcp,
    /// A line or datagram of a file.
    File,
}

impl Transport {
    /// Value of `network.transport`; a file has none.
    #[must_use]
    pub const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Udp => Some("udp"),
            Self::Tcp => Some("tcp"),
            Self::File => None,
        }
    }
}

/// Where messages come from: what all messages of a connection, or of a sender of datagrams, have in common. Made once
/// and shared by them.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    pub(super) peer: Option<SocketAddr>,
    /// The address of `peer` as text; an IPv4 address that came over an IPv6 socket is an IPv4 address.
    pub(super) address: Option<String>,
    pub(super) transport: Transport,
    pub(super) zone: Arc<Zone>,
    pub(super) tls_subject: Option<String>,
}

impl Source {
    /// A sender. `zone` is the zone of stamps that name none.
    #[must_use]
    pub fn new(peer: Option<SocketAddr>, transport: Transport, zone: Arc<Zone>) -> Self {
        let address = peer.map(|peer| peer.ip().to_canonical().to_string());
        Self { peer, address, transport, zone, tls_subject: None }
    }

    /// With the subject of the certificate that the sender has shown.
    #[must_use]
    pub fn with_tls_subject(mut self, subject: String) -> Self {
        self.tls_subject = Some(subject);
        self
    }

    /// Address and port.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Zone of stamps that name none.
    #[must_use]
    pub fn zone(&self) -> &Zone {
        &self.zone
    }
}

/// What is known of a message at the moment its bytes are read. Decoding later does not change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// Time of receipt, nanoseconds since the Unix epoch.
    pub time_unix_nano: i64,
    /// Only the beginning of the message was kept.
    pub truncated: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) end: usize,
    /// Index into the sources.
    pub(super) source: usize,
    pub(super) receipt: Receipt,
    /// What its sampler let it through by.
    pub(super) threshold: Threshold,
}

/// Encoded messages with their receipt context. Grows by what is pushed; whoever fills it bounds it.
#[derive(Debug, Default)]
pub struct SyslogBatch {
    pub(super) arena: Vec<u8>,
    pub(super) entries: Vec<Entry>,
    pub(super) sources: Vec<Arc<Source>>,
}

/// Sources looked at, from the latest back, before one is taken for new.
const SOURCES_COMPARED: usize = 16;

impl SyslogBatch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one message without its frame.
    pub fn push(&mut self, message: &[u8], source: &Arc<Source>, receipt: Receipt) {
        self.push_sampled(message, source, receipt, Threshold::KEEP_ALL);
    }

    /// Adds one message that a sampler has kept, with the threshold that it has passed. If that rejects anything, the
    /// record tells it (`sampled`).
    #[inline]
    pub fn push_sampled(&mut self, message: &[u8], source: &Arc<Source>, receipt: Receipt, threshold: Threshold) {
        self.arena.extend_from_slice(message);
        let source = self.source(source);
        self.entries.push(Entry { end: self.arena.len(), source, receipt, threshold });
    }

    /// A source that was used long ago may be listed twice; that costs a few bytes and nothing else.
    fn source(&mut self, source: &Arc<Source>) -> usize {
        let recent = self.sources.iter().enumerate().rev().take(SOURCES_COMPARED);
        if let Some((index, _)) = recent.into_iter().find(|(_, known)| Arc::ptr_eq(known, source)) {
            return index;
        }
        self.sources.push(Arc::clone(source));
        self.sources.len() - 1
    }

    /// Messages in the batch.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no message.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of the messages.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.arena.len()
    }

    /// Drops the first `count` messages.
    pub(super) fn remove_first(&mut self, count: usize) {
        let start = count.checked_sub(1).and_then(|last| self.entries.get(last)).map_or(0, |last| last.end);
        let _ = self.arena.drain(..start);
        let _ = self.entries.drain(..count);
        for entry in &mut self.entries {
            entry.end -= start;
        }
    }

    /// Takes the messages out; the next batch starts with the room that this one needed.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let next = Self {
            arena: Vec::with_capacity(self.arena.len()),
            entries: Vec::with_capacity(self.entries.len()),
            sources: Vec::new(),
        };
        std::mem::replace(self, next)
    }
}
