//! What admitting datagrams gives: messages, data sets, problems, counts.

use std::ops::Range;
use std::sync::Arc;

use crate::knowledge::Knowledge;
use crate::list::SubTemplates;
use crate::message::MessageInfo;
use crate::problem::{Fault, Problem, ProblemKind};
use crate::records::Records;
use crate::template::{Kind, Template};

/// Result of [`Session::admit`](crate::Session::admit), to be used again for the next datagram.
#[derive(Debug, Default)]
pub struct Admitted {
    /// The messages, in the order of the wire.
    pub messages: Vec<MessageInfo>,
    /// The data sets that hold records, in the order of the wire.
    pub sets: Vec<DataSet>,
    /// The data sets whose template is not known, in the order of the wire.
    pub unknown_sets: Vec<UnknownSet>,
    /// What was wrong; no more than [`Limits::max_problems`](crate::Limits::max_problems) of a datagram, while
    /// [`Counters::problems`] counts all.
    pub problems: Vec<Problem>,
    /// Counts over everything admitted since the last [`Admitted::clear`].
    pub counters: Counters,
}

impl Admitted {
    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        self.messages.clear();
        self.sets.clear();
        self.unknown_sets.clear();
        self.problems.clear();
        self.counters = Counters::default();
    }

    /// Counts a problem, and keeps it while there are fewer than `limit`.
    pub(crate) fn report(&mut self, limit: usize, offset: usize, fault: Fault, discarded: bool) {
        let kind = fault.kind();
        if let Some(count) = self.counters.problems.get_mut(kind as usize) {
            *count += 1;
        }
        if self.problems.len() < limit {
            self.problems.push(Problem { offset, kind, fault, discarded });
        }
    }
}

/// A data set with at least one record.
#[derive(Debug, Clone)]
pub struct DataSet {
    /// Index of its message in [`Admitted::messages`].
    pub message: usize,
    /// The template that its records follow.
    pub template: Arc<Template>,
    /// The templates that lists in its records follow.
    pub sub_templates: SubTemplates,
    /// What options data of its exporter has told until then; `None` while that is nothing.
    pub knowledge: Option<Arc<Knowledge>>,
    /// Where its records are in the datagram: whole records only, without set header and padding.
    pub range: Range<usize>,
    /// Number of records.
    pub records: usize,
    /// Bytes of padding after the records.
    pub padding: usize,
}

impl DataSet {
    /// Whether the records are flows or options data.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.template.kind()
    }

    /// The records; `datagram` is the one that was admitted.
    #[must_use]
    pub fn records<'t, 'a>(&'t self, datagram: &'a [u8]) -> Records<'t, 'a> {
        Records::new(&self.template, datagram.get(self.range.clone()).unwrap_or_default())
    }
}

/// A data set whose template is not known (yet).
///
/// Keep its bytes and its message, and give both to [`Session::admit_set`](crate::Session::admit_set) when templates
/// have arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownSet {
    /// Index of its message in [`Admitted::messages`].
    pub message: usize,
    /// Id of the template that is missing.
    pub template_id: u16,
    /// Where its content is in the datagram, without the set header.
    pub range: Range<usize>,
}

/// Counts of a session's work.
///
/// Every byte is counted once: `bytes` is the sum of `header_bytes`, `template_bytes`, `record_bytes`,
/// `padding_bytes`, `skipped_bytes`, `discarded_bytes` and `trailing_bytes`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams, or messages of a stream, admitted.
    pub datagrams: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Headers of messages and of sets.
    pub header_bytes: u64,
    /// Template records and withdrawals, with their padding.
    pub template_bytes: u64,
    /// Records.
    pub record_bytes: u64,
    /// Padding after the records of data sets, and at the end of NetFlow v9 packets.
    pub padding_bytes: u64,
    /// Contents of sets without a known template, with a reserved id, or with a template whose records are empty.
    pub skipped_bytes: u64,
    /// Everything from a fault to the end of the message; the whole datagram when its header is at fault.
    pub discarded_bytes: u64,
    /// Bytes after the last message of a datagram.
    pub trailing_bytes: u64,
    /// Messages with a good header.
    pub messages: u64,
    /// Those of them that were given up at a fault.
    pub incomplete_messages: u64,
    /// Messages refused for their header.
    pub rejected_messages: u64,
    /// Data sets with a known template.
    pub data_sets: u64,
    /// Data sets without one.
    pub unknown_template_sets: u64,
    /// Data sets whose padding is not all zero.
    pub nonzero_padding_sets: u64,
    /// Records that are flows.
    pub flow_records: u64,
    /// Records that are options data.
    pub options_records: u64,
    /// Templates that were not known before.
    pub templates_new: u64,
    /// Templates sent again as they were.
    pub templates_refreshed: u64,
    /// Templates that took the place of another with their id.
    pub templates_replaced: u64,
    /// Templates forgotten because of a withdrawal.
    pub templates_withdrawn: u64,
    /// Templates forgotten because a new definition was malformed or over a limit.
    pub templates_invalidated: u64,
    /// Templates forgotten to make room.
    pub templates_evicted: u64,
    /// Templates forgotten because they were not refreshed for long.
    pub templates_expired: u64,
    /// Domains whose sequence was forgotten to make room.
    pub domains_evicted: u64,
    /// Data records that sequence numbers of IPFIX say are missing.
    pub lost_records: u64,
    /// Packets that sequence numbers of NetFlow v9 say are missing.
    pub lost_packets: u64,
    /// Flows that sequence numbers of NetFlow v5 say are missing.
    pub lost_flows: u64,
    /// Messages that came late, by their sequence number.
    pub late_messages: u64,
    /// Times an exporter began to count anew.
    pub sequence_restarts: u64,
    /// Problems by [`ProblemKind`] as an index.
    pub problems: [u64; ProblemKind::ALL.len()],
}

impl Counters {
    /// How many problems of a kind there were.
    #[must_use]
    pub fn problem(&self, kind: ProblemKind) -> u64 {
        self.problems.get(kind as usize).copied().unwrap_or_default()
    }

    /// Adds to a byte counter.
    pub(crate) fn add_bytes(counter: &mut u64, bytes: usize) {
        *counter = counter.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }
}
