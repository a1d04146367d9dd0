//! Counts of what was admitted.

use std::ops::AddAssign;

use crate::problem::ProblemKind;

/// Counts of a session's work.
///
/// Every byte is counted once: `bytes` is the sum of `header_bytes`, `template_bytes`, `record_bytes`,
/// `padding_bytes`, `skipped_bytes`, `discarded_bytes` and `trailing_bytes`. Records of a data set that was held until its
/// template arrived are counted when it is released, its bytes as skipped when it comes.
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
    /// Templates that were not taken because there is no room among those of all exporters.
    pub templates_refused: u64,
    /// Templates from before a restart that came into use.
    pub templates_provisional: u64,
    /// Templates forgotten because they were not refreshed for long.
    pub templates_expired: u64,
    /// Fields of new templates, and of those that replaced others, whose element is in no table.
    pub unknown_elements: u64,
    /// Facts of options data (names, rates, descriptions) that were not kept because there is no room.
    pub facts_refused: u64,
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

impl AddAssign<&Self> for Counters {
    fn add_assign(&mut self, more: &Self) {
        let Self {
            datagrams,
            bytes,
            header_bytes,
            template_bytes,
            record_bytes,
            padding_bytes,
            skipped_bytes,
            discarded_bytes,
            trailing_bytes,
            messages,
            incomplete_messages,
            rejected_messages,
            data_sets,
            unknown_template_sets,
            nonzero_padding_sets,
            flow_records,
            options_records,
            templates_new,
            templates_refreshed,
            templates_replaced,
            templates_withdrawn,
            templates_invalidated,
            templates_evicted,
            templates_refused,
            templates_provisional,
            templates_expired,
            unknown_elements,
            facts_refused,
            domains_evicted,
            lost_records,
            lost_packets,
            lost_flows,
            late_messages,
            sequence_restarts,
            problems,
        } = more;
        self.datagrams += datagrams;
        self.bytes += bytes;
        self.header_bytes += header_bytes;
        self.template_bytes += template_bytes;
        self.record_bytes += record_bytes;
        self.padding_bytes += padding_bytes;
        self.skipped_bytes += skipped_bytes;
        self.discarded_bytes += discarded_bytes;
        self.trailing_bytes += trailing_bytes;
        self.messages += messages;
        self.incomplete_messages += incomplete_messages;
        self.rejected_messages += rejected_messages;
        self.data_sets += data_sets;
        self.unknown_template_sets += unknown_template_sets;
        self.nonzero_padding_sets += nonzero_padding_sets;
        self.flow_records += flow_records;
        self.options_records += options_records;
        self.templates_new += templates_new;
        self.templates_refreshed += templates_refreshed;
        self.templates_replaced += templates_replaced;
        self.templates_withdrawn += templates_withdrawn;
        self.templates_invalidated += templates_invalidated;
        self.templates_evicted += templates_evicted;
        self.templates_refused += templates_refused;
        self.templates_provisional += templates_provisional;
        self.templates_expired += templates_expired;
        self.unknown_elements += unknown_elements;
        self.facts_refused += facts_refused;
        self.domains_evicted += domains_evicted;
        self.lost_records += lost_records;
        self.lost_packets += lost_packets;
        self.lost_flows += lost_flows;
        self.late_messages += late_messages;
        self.sequence_restarts += sequence_restarts;
        for (sum, count) in self.problems.iter_mut().zip(problems) {
            *sum += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums are those of each count.
    #[test]
    fn sums() {
        let mut one = Counters { datagrams: 1, lost_records: 3, ..Counters::default() };
        one.problems[0] = 7;
        let mut total = one.clone();
        total += &one;
        assert_eq!((total.datagrams, total.lost_records, total.problems[0], total.bytes), (2, 6, 14, 0));
    }
}
