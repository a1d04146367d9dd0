//! Data sets that wait for their template.

use std::collections::VecDeque;
use std::time::Duration;

use crate::admitted::{Admitted, Released};
use crate::collector::CollectorCounters;
use crate::collector::limits::PendingLimits;
use crate::counters::Counters;
use crate::message::MessageInfo;
use crate::session::{Session, TemplateKey};

/// What a set takes besides its content, in bytes.
const SET_WEIGHT: usize = 128;

/// A set that waits.
#[derive(Debug)]
struct Waiting {
    content: Vec<u8>,
    message: MessageInfo,
    template_id: u16,
    received_unix_nano: i64,
    since: Duration,
}

impl Waiting {
    fn weight(&self) -> usize {
        self.content.len() + SET_WEIGHT
    }
}

/// The sets of one session that wait, in the order received.
#[derive(Debug, Default)]
pub(super) struct Pending {
    sets: VecDeque<Waiting>,
    bytes: usize,
}

/// A datagram with sets that may be held.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival<'d> {
    pub(super) datagram: &'d [u8],
    /// Index of its first unknown set.
    pub(super) first: usize,
    pub(super) received_unix_nano: i64,
    pub(super) clock: Duration,
    /// Bytes that there is room for in all sessions.
    pub(super) room: usize,
}

impl Pending {
    /// What all sets take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.sets.len()
    }

    /// Holds the unknown sets of a datagram while there is room for them.
    pub(super) fn hold(
        &mut self,
        arrival: &Arrival<'_>,
        out: &mut Admitted,
        limits: &PendingLimits,
        counters: &mut CollectorCounters,
    ) {
        let mut room = arrival.room;
        for unknown in out.unknown_sets.iter_mut().skip(arrival.first) {
            let Some(message) = out.messages.get(unknown.message) else {
                continue;
            };
            let content = arrival.datagram.get(unknown.range.clone()).unwrap_or_default();
            let weight = content.len() + SET_WEIGHT;
            if weight > limits.bytes_per_session {
                counters.pending_refused_sets += 1;
                continue;
            }
            while self.bytes + weight > limits.bytes_per_session
                && let Some(oldest) = self.sets.pop_front()
            {
                self.bytes -= oldest.weight();
                room += oldest.weight();
                counters.pending_dropped_limit += 1;
            }
            if weight > room {
                counters.pending_refused_sets += 1;
                continue;
            }
            room -= weight;
            self.bytes += weight;
            counters.pending_held_sets += 1;
            unknown.held = true;
            self.sets.push_back(Waiting {
                content: content.to_vec(),
                message: *message,
                template_id: unknown.template_id,
                received_unix_nano: arrival.received_unix_nano,
                since: arrival.clock,
            });
        }
    }

    /// Lets go of the sets whose templates are known now.
    pub(super) fn release(
        &mut self,
        session: &mut Session,
        out: &mut Admitted,
        scratch: &mut Admitted,
        counters: &mut CollectorCounters,
    ) {
        let key = |set: &Waiting| TemplateKey {
            version: set.message.version,
            domain: set.message.domain,
            id: set.template_id,
        };
        if !self.sets.iter().any(|set| session.knows(&key(set))) {
            return;
        }
        for waiting in std::mem::take(&mut self.sets) {
            scratch.clear();
            let known = session.knows(&key(&waiting));
            if !known || !session.admit_set(&waiting.message, waiting.template_id, &waiting.content, scratch) {
                self.sets.push_back(waiting);
                continue;
            }
            self.bytes -= waiting.weight();
            counters.pending_released_sets += 1;
            counters.pending_released_records += scratch.counters.flow_records + scratch.counters.options_records;
            merge(&mut out.counters, &scratch.counters);
            let message = scratch.messages.first().copied().unwrap_or(waiting.message);
            // The content of one set makes one data set, or none if it holds no whole record.
            if let Some(mut set) = scratch.sets.pop() {
                set.message = 0;
                let (content, received_unix_nano) = (waiting.content, waiting.received_unix_nano);
                out.released.push(Released { content, message, received_unix_nano, set });
            }
        }
    }

    /// Drops what has waited too long.
    pub(super) fn expire(&mut self, now: Duration, max_age: Duration, counters: &mut CollectorCounters) {
        while let Some(oldest) = self.sets.front()
            && now.saturating_sub(oldest.since) > max_age
        {
            self.bytes -= oldest.weight();
            let _: Option<Waiting> = self.sets.pop_front();
            counters.pending_dropped_age += 1;
        }
    }
}

/// Adds the counts of records that were released. Their bytes were counted as skipped when they came.
fn merge(total: &mut Counters, released: &Counters) {
    total.flow_records += released.flow_records;
    total.options_records += released.options_records;
    total.data_sets += released.data_sets;
    total.nonzero_padding_sets += released.nonzero_padding_sets;
    total.facts_refused += released.facts_refused;
    for (sum, count) in total.problems.iter_mut().zip(released.problems) {
        *sum += count;
    }
}
