//! The decode job: a [`SyslogBatch`] in, log batches out.

use std::ops::Range;

use catchment_sampling::Threshold;

use super::batch::SyslogBatch;
use super::names::Key;
use super::row::{Parsed, RowOptions, RowWriter, write_source};
use crate::logs::{LogsTable, Unfinished};
use crate::sampled;
use crate::table::NameId;
use crate::{Budget, ColumnsError, Job, MAX_BATCH_BYTES, MAX_BATCH_RECORDS, SMALL_BYTES, SMALL_RECORDS, Step};

/// Instrumentation scope of the records.
pub const SCOPE: &str = "catchment.receiver.syslog";

/// Decodes the messages of a batch. Every message gives exactly one record: parsing knows no failure, so there is
/// nothing to reject.
///
/// The job owns all it works on. It can be dropped between any two steps, and [`SyslogJob::cancel`] gives the messages
/// back that have not come out yet.
pub struct SyslogJob {
    batch: SyslogBatch,
    next: usize,
    /// First message of the batch under construction.
    first: usize,
    options: RowOptions,
    table: LogsTable,
    row: RowWriter,
    /// Source of the last records, and where they begin.
    run: Option<(usize, u16)>,
    /// Threshold of the last records, and where they begin.
    sampled: (Threshold, u16),
    unfinished: Option<Unfinished>,
}

impl SyslogJob {
    /// A job that has not begun.
    #[must_use]
    pub fn new(batch: SyslogBatch, options: RowOptions) -> Self {
        let mut table = new_table(&options);
        table.reserve(batch.entries.len().min(MAX_BATCH_RECORDS), batch.arena.len().min(MAX_BATCH_BYTES));
        let row = RowWriter::new(options.clone());
        Self { batch, next: 0, first: 0, options, table, row, run: None, sampled: NOT_SAMPLED, unfinished: None }
    }

    /// Messages that have not come out in a batch yet.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.batch.entries.len() - self.first
    }

    /// What the messages decoded so far were read as.
    #[must_use]
    pub fn parsed(&self) -> Parsed {
        self.row.parsed
    }

    /// Gives back the messages that have not come out in a batch, as they were put in.
    #[must_use]
    pub fn cancel(self) -> SyslogBatch {
        let mut batch = self.batch;
        batch.remove_first(self.first);
        batch
    }

    fn message(&self, index: usize) -> Range<usize> {
        let start = index.checked_sub(1).and_then(|previous| self.batch.entries.get(previous));
        start.map_or(0, |previous| previous.end)..self.batch.entries.get(index).map_or(0, |entry| entry.end)
    }

    /// Parses the next message and appends its record. Both ways to run a job come here; they differ in when they pause.
    fn append(&mut self) {
        let Some(entry) = self.batch.entries.get(self.next).copied() else { return };
        if self.run.is_none_or(|(known, _)| known != entry.source) {
            self.end_run();
            self.run = Some((entry.source, row_number(&self.table)));
        }
        if self.sampled.0 != entry.threshold {
            self.end_sampled();
            self.sampled = (entry.threshold, row_number(&self.table));
        }
        let range = self.message(self.next);
        if let (Some(message), Some(source)) = (self.batch.arena.get(range), self.batch.sources.get(entry.source)) {
            self.row.write(&mut self.table, message, source, entry.receipt);
        }
        self.next += 1;
    }

    /// Writes what the records of one source have in common, for all of them at once.
    fn end_run(&mut self) {
        if let Some((index, start)) = self.run.take()
            && let Some(source) = self.batch.sources.get(index)
        {
            let end = row_number(&self.table);
            write_source(&mut self.table, start..end, source);
        }
    }

    /// Writes what the records of one threshold stand for.
    fn end_sampled(&mut self) {
        let (threshold, start) = std::mem::replace(&mut self.sampled, NOT_SAMPLED);
        let rows = start..row_number(&self.table);
        sampled::write_all(self.table.attributes(), rows, SAMPLED_NAMES, threshold);
    }

    fn is_full(&self) -> bool {
        self.table.rows() == MAX_BATCH_RECORDS || self.table.bytes() >= MAX_BATCH_BYTES
    }

    /// Ends the batch under construction.
    fn finish(&mut self) {
        self.end_run();
        self.end_sampled();
        self.row.next_batch();
        let mut next = new_table(&self.options);
        next.reserve((self.batch.entries.len() - self.next).min(MAX_BATCH_RECORDS), 0);
        self.unfinished = Some(std::mem::replace(&mut self.table, next).finish());
    }
}

/// In place of the threshold of records: they stand for themselves.
const NOT_SAMPLED: (Threshold, u16) = (Threshold::KEEP_ALL, 0);

const SAMPLED_NAMES: sampled::Names = sampled::Names {
    threshold: Key::SamplingThreshold as NameId,
    adjusted_count: Key::SamplingAdjustedCount as NameId,
};

fn new_table(options: &RowOptions) -> LogsTable {
    LogsTable::new(SCOPE, options.levels(), &options.schema.names()).with_parent_ids(options.parent_ids)
}

fn row_number(table: &LogsTable) -> u16 {
    u16::try_from(table.rows()).unwrap_or(u16::MAX)
}

impl Job for SyslogJob {
    fn budget(&self) -> Budget {
        let is_small = self.batch.len() <= SMALL_RECORDS && self.batch.bytes() <= SMALL_BYTES;
        if is_small { Budget::UNLIMITED } else { Budget::default() }
    }

    fn step(&mut self, budget: Budget) -> Result<Step, ColumnsError> {
        let (mut records, mut bytes) = (0, 0);
        let is_undivided = budget == Budget::UNLIMITED;
        loop {
            if let Some(unfinished) = &mut self.unfinished {
                // Making the arrays of a small batch is little work; that of a large one is divided.
                match unfinished.step() {
                    Ok(Some(batch)) => {
                        self.unfinished = None;
                        self.first = self.next;
                        return Ok(Step::Batch(batch));
                    }
                    Ok(None) if self.next - self.first <= budget.records.min(SMALL_RECORDS) || is_undivided => continue,
                    Ok(None) => return Ok(Step::More),
                    Err(error) => {
                        self.unfinished = None;
                        self.first = self.next;
                        return Err(error);
                    }
                }
            }
            if self.next == self.batch.entries.len() {
                if self.table.rows() == 0 {
                    return Ok(Step::End);
                }
                self.finish();
                continue;
            }
            if records > 0 && (records >= budget.records || bytes >= budget.bytes) {
                return Ok(Step::More);
            }
            bytes += self.message(self.next).len();
            records += 1;
            self.append();
            if self.is_full() {
                self.finish();
            }
        }
    }
}
