//! Data sets waiting to be decoded: their bytes in one arena, and the templates that were valid when they came.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use catchment_ipfix::{Admitted, DataSet, MessageInfo, SubTemplates, Template};
use catchment_sampling::Threshold;

use super::facts::Facts;

/// What is known of a datagram at the moment it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowReceipt {
    /// Time of receipt, nanoseconds since the Unix epoch.
    pub time_unix_nano: i64,
    /// The exporter.
    pub exporter: Option<SocketAddr>,
}

/// Records of one template, message and threshold.
#[derive(Debug)]
pub(super) struct Set {
    pub(super) template: Arc<Template>,
    pub(super) sub_templates: SubTemplates,
    pub(super) facts: Facts,
    pub(super) records: usize,
    pub(super) bytes: Range<usize>,
    pub(super) message: MessageInfo,
    pub(super) receipt: FlowReceipt,
    /// What their sampler let them through by.
    pub(super) threshold: Threshold,
}

/// Encoded data sets with their context, in the order of their arrival. Grows by what is pushed; whoever fills it
/// bounds it.
#[derive(Debug, Default)]
pub struct FlowBatch {
    pub(super) arena: Vec<u8>,
    pub(super) sets: Vec<Set>,
    pub(super) records: usize,
}

impl FlowBatch {
    /// Adds the data sets of `datagram`, which gave `admitted`; takes them out of it. Returns the number of records.
    pub fn push(&mut self, datagram: &[u8], admitted: &mut Admitted, receipt: FlowReceipt) -> usize {
        let messages = &admitted.messages;
        let added = admitted.sets.drain(..).map(|data| match messages.get(data.message) {
            Some(message) => self.add(datagram, message, receipt, data, Threshold::KEEP_ALL),
            None => 0,
        });
        added.sum()
    }

    /// Adds a data set that waited for its template. `content` is what the ranges of `set` count from: what was given to
    /// [`catchment_ipfix::Session::admit_set`]. `message` and `receipt` are those that it came with. Returns the number of
    /// records.
    pub fn push_released(
        &mut self,
        content: &[u8],
        message: &MessageInfo,
        receipt: FlowReceipt,
        set: DataSet,
    ) -> usize {
        self.add(content, message, receipt, set, Threshold::KEEP_ALL)
    }

    pub(super) fn add(
        &mut self,
        content: &[u8],
        message: &MessageInfo,
        receipt: FlowReceipt,
        data: DataSet,
        threshold: Threshold,
    ) -> usize {
        let Some(bytes) = content.get(data.range.clone()) else { return 0 };
        let start = self.arena.len();
        self.arena.extend_from_slice(bytes);
        self.records += data.records;
        self.sets.push(Set {
            template: data.template,
            sub_templates: data.sub_templates,
            facts: Facts::new(data.knowledge),
            records: data.records,
            bytes: start..self.arena.len(),
            message: *message,
            receipt,
            threshold,
        });
        data.records
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
