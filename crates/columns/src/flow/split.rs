//! Parts of a batch that become one batch of logs each.

use std::net::IpAddr;
use std::sync::Arc;

use catchment_ipfix::Records;
use rustc_hash::FxHashMap;

use super::batch::{FlowBatch, Set};
use super::mapping::{Biflow, FlowMapping};
use crate::MAX_BATCH_RECORDS;

/// Bytes after which a part ends. What its records become stays below the bytes of a batch, also where
/// entries of lists become maps with names.
const PART_BYTES: usize = 4 * 1024 * 1024;

impl FlowBatch {
    /// The records in parts: a [`super::FlowJob`] with this mapping makes no more than one batch of each. Records stay in their
    /// order, or in that of their exporters if the mapping wants batches of one exporter each.
    #[must_use]
    pub fn split(mut self, mapping: &FlowMapping) -> Vec<Self> {
        let lanes = if mapping.per_exporter { self.sort_by_exporter() } else { 1 };
        if self.records == 0 {
            return Vec::new();
        }
        let rows: usize = self.sets.iter().map(|set| set.records * rows_each(set, mapping)).sum();
        if lanes == 1 && rows <= MAX_BATCH_RECORDS && self.arena.len() <= PART_BYTES {
            return vec![self];
        }
        let mut parts = Parts { full: Vec::new(), part: Self::default(), rows: 0, exporter: None };
        for set in &self.sets {
            let content = self.arena.get(set.bytes.clone()).unwrap_or_default();
            parts.add(set, content, mapping);
        }
        parts.flush();
        parts.full
    }

    /// Orders the sets by exporter, without changing the order among those of one. Gives how many exporters there are.
    fn sort_by_exporter(&mut self) -> usize {
        let mut exporters: FxHashMap<Exporter, usize> = FxHashMap::default();
        for set in &self.sets {
            let next = exporters.len();
            let _ = exporters.entry(exporter(set)).or_insert(next);
        }
        self.sets.sort_by_key(|set| exporters.get(&exporter(set)).copied());
        exporters.len()
    }
}

/// Exporter address and observation domain, as the job tells exporters apart.
type Exporter = (Option<IpAddr>, u32);

fn exporter(set: &Set) -> Exporter {
    (set.receipt.exporter.map(|exporter| exporter.ip().to_canonical()), set.message.domain)
}

/// Rows of a record of the set, at most.
fn rows_each(set: &Set, mapping: &FlowMapping) -> usize {
    let is_two = mapping.biflow == Biflow::Two && set.template.fields().iter().any(|field| field.reverse);
    if is_two { 2 } else { 1 }
}

/// Parts under construction.
struct Parts {
    full: Vec<FlowBatch>,
    part: FlowBatch,
    /// Rows that `part` will have, at most.
    rows: usize,
    /// Of whom the last records are.
    exporter: Option<Exporter>,
}

impl Parts {
    fn flush(&mut self) {
        self.rows = 0;
        let part = std::mem::take(&mut self.part);
        if !part.is_empty() {
            self.full.push(part);
        }
    }

    /// Adds the records of a set, cut between records where a part is full.
    fn add(&mut self, set: &Set, content: &[u8], mapping: &FlowMapping) {
        let own = exporter(set);
        if mapping.per_exporter && self.exporter.is_some_and(|last| last != own) {
            self.flush();
        }
        self.exporter = Some(own);
        let rows_each = rows_each(set, mapping);
        let (mut start, mut records) = (0, 0);
        let mut cursor = Records::new(&set.template, content);
        loop {
            let at = cursor.position();
            if cursor.next().is_none() {
                break;
            }
            if self.rows + rows_each > MAX_BATCH_RECORDS || self.part.arena.len() + (at - start) >= PART_BYTES {
                self.push(set, content.get(start..at), records);
                self.flush();
                (start, records) = (at, 0);
            }
            records += 1;
            self.rows += rows_each;
        }
        self.push(set, content.get(start..), records);
    }

    /// Adds so many records of a set.
    fn push(&mut self, set: &Set, bytes: Option<&[u8]>, records: usize) {
        let Some(bytes) = bytes.filter(|_| records > 0) else { return };
        let start = self.part.arena.len();
        self.part.arena.extend_from_slice(bytes);
        self.part.records += records;
        self.part.sets.push(Set {
            template: Arc::clone(&set.template),
            sub_templates: set.sub_templates.clone(),
            facts: set.facts.clone(),
            records,
            bytes: start..self.part.arena.len(),
            message: set.message,
            receipt: set.receipt,
            threshold: set.threshold,
        });
    }
}

#[cfg(test)]
mod tests;
