//! The decode job: a [`SyslogBatch`] in, log batches out.

use super::batch::SyslogBatch;
use super::row::{RowOptions, RowWriter};
use crate::logs::LogsTable;
use crate::{Budget, ColumnsError, Job, MAX_BATCH_RECORDS, Step};

/// Instrumentation scope of the records.
pub const SCOPE: &str = "catchment.receiver.syslog";

/// Decodes the messages of a batch. Every message gives exactly one record.
pub struct SyslogJob {
    batch: SyslogBatch,
    next: usize,
    table: LogsTable,
    row: RowWriter,
}

impl SyslogJob {
    /// A job that has not begun.
    #[must_use]
    pub fn new(batch: SyslogBatch, options: RowOptions) -> Self {
        Self { batch, next: 0, table: LogsTable::new(SCOPE), row: RowWriter::new(options) }
    }

    /// Messages that have not been decoded yet.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.batch.entries.len() - self.next
    }
}

impl Job for SyslogJob {
    fn step(&mut self, budget: Budget) -> Result<Step, ColumnsError> {
        let mut records = 0;
        let mut bytes = 0;
        while let Some(entry) = self.batch.entries.get(self.next) {
            if self.table.rows() == MAX_BATCH_RECORDS {
                return self.table.finish().map(Step::Batch);
            }
            if records > 0 && (records >= budget.records || bytes >= budget.bytes) {
                return Ok(Step::More);
            }
            let start = self.next.checked_sub(1).map_or(0, |previous| self.batch.entries[previous].end);
            let message = &self.batch.arena[start..entry.end];
            self.row.write(&mut self.table, message, &self.batch.sources[entry.source], entry.receipt);
            self.next += 1;
            records += 1;
            bytes += message.len();
        }
        if self.table.rows() == 0 {
            return Ok(Step::End);
        }
        // Building the arrays cannot be divided: give others a turn before it, unless this step did little.
        if records > budget.records / 2 {
            return Ok(Step::More);
        }
        self.table.finish().map(Step::Batch)
    }
}
