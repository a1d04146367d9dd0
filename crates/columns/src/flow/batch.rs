//! Data sets waiting to be decoded: datagrams in one arena, and the templates that were valid when they came.

use std::net::SocketAddr;
use std::ops::Range;

use catchment_ipfix::{Admitted, DataSet, MessageInfo};

/// What is known of a datagram at the moment it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowReceipt {
    /// Time of receipt, nanoseconds since the Unix epoch.
    pub time_unix_nano: i64,
    /// The exporter.
    pub exporter: Option<SocketAddr>,
}

#[derive(Debug)]
pub(super) struct Set {
    pub(super) data: DataSet,
    pub(super) bytes: Range<usize>,
    pub(super) message: MessageInfo,
    pub(super) receipt: FlowReceipt,
}

/// Encoded data sets with their context. Grows by what is pushed; whoever fills it bounds it.
#[derive(Debug, Default)]
pub struct FlowBatch {
    pub(super) arena: Vec<u8>,
    pub(super) sets: Vec<Set>,
    records: usize,
}

impl FlowBatch {
    /// Adds the data sets of `datagram`, which gave `admitted`; takes them out of it. Returns the number of records.
    pub fn push(&mut self, datagram: &[u8], admitted: &mut Admitted, receipt: FlowReceipt) -> usize {
        let mut added = 0;
        for data in admitted.sets.drain(..) {
            let (Some(message), Some(bytes)) = (admitted.messages.get(data.message), datagram.get(data.range.clone()))
            else {
                continue;
            };
            let start = self.arena.len();
            self.arena.extend_from_slice(bytes);
            added += data.records;
            self.sets.push(Set { data, bytes: start..self.arena.len(), message: *message, receipt });
        }
        self.records += added;
        added
    }

    /// Records in the batch.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records
    }

    /// Whether there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Bytes of the records.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.arena.len()
    }

    /// Takes the data sets out; the next batch starts with the room that this one needed.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let next =
            Self { arena: Vec::with_capacity(self.arena.len()), sets: Vec::with_capacity(self.sets.len()), records: 0 };
        std::mem::replace(self, next)
    }
}
