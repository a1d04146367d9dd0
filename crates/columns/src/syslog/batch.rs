//! Messages waiting to be decoded: their bytes in one arena, and what was known when they were read.

use std::net::SocketAddr;
use std::sync::Arc;

use catchment_syslog::Zone;

/// How a message came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A UDP datagram.
    Udp,
    /// A frame of a TCP stream.
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

/// What is known of a message at the moment its bytes are read. Decoding later does not change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// Time of receipt, nanoseconds since the Unix epoch.
    pub time_unix_nano: i64,
    /// The sender.
    pub peer: Option<SocketAddr>,
    /// How it came.
    pub transport: Transport,
    /// Only the beginning of the message was kept.
    pub truncated: bool,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) end: usize,
    pub(super) receipt: Receipt,
}

/// Encoded messages with their receipt context. Grows by what is pushed; whoever fills it bounds it.
#[derive(Debug)]
pub struct SyslogBatch {
    pub(super) arena: Vec<u8>,
    pub(super) entries: Vec<Entry>,
    pub(super) zone: Arc<Zone>,
}

impl SyslogBatch {
    /// An empty batch. `zone` is the zone of stamps that name none.
    #[must_use]
    pub fn new(zone: Arc<Zone>) -> Self {
        Self { arena: Vec::new(), entries: Vec::new(), zone }
    }

    /// Adds one message without its frame.
    pub fn push(&mut self, message: &[u8], receipt: Receipt) {
        self.arena.extend_from_slice(message);
        self.entries.push(Entry { end: self.arena.len(), receipt });
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

    /// Takes the messages out; the next batch starts with the room that this one needed.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let next = Self {
            arena: Vec::with_capacity(self.arena.len()),
            entries: Vec::with_capacity(self.entries.len()),
            zone: Arc::clone(&self.zone),
        };
        std::mem::replace(self, next)
    }
}
