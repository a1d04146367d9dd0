//! The decode job: a [`FlowBatch`] in, log batches out.

use catchment_ipfix::Records;

use super::batch::FlowBatch;
use super::plan::Plans;
use super::row::RowWriter;
use crate::logs::{LogsTable, NO_LEVELS};
use crate::{Budget, ColumnsError, Job, MAX_BATCH_RECORDS, Step};

/// Instrumentation scope of the records.
pub const SCOPE: &str = "catchment.receiver.ipfix";

/// Decodes the records of a batch, set by set. Every record gives exactly one log record.
pub struct FlowJob {
    batch: FlowBatch,
    set: usize,
    position: usize,
    table: LogsTable,
    row: RowWriter,
    plans: Plans,
}

impl FlowJob {
    /// A job that has not begun.
    #[must_use]
    pub fn new(batch: FlowBatch) -> Self {
        Self { batch, set: 0, position: 0, table: new_table(), row: RowWriter::default(), plans: Plans::default() }
    }
}

impl Job for FlowJob {
    fn step(&mut self, budget: Budget) -> Result<Step, ColumnsError> {
        let (mut records, mut bytes) = (0, 0);
        while let Some(set) = self.batch.sets.get(self.set) {
            let plan = self.plans.of(&set.data.template);
            let content = &self.batch.arena[set.bytes.clone()];
            let mut cursor = Records::resume(&set.data.template, content, self.position);
            loop {
                if self.table.rows() == MAX_BATCH_RECORDS {
                    return std::mem::replace(&mut self.table, new_table()).finish_at_once().map(Step::Batch);
                }
                if records > 0 && (records >= budget.records || bytes >= budget.bytes) {
                    return Ok(Step::More);
                }
                let Some(record) = cursor.next() else { break };
                self.row.write(&mut self.table, &record, &plan, set);
                records += 1;
                bytes += record.bytes().len();
                self.position = cursor.position();
            }
            self.set += 1;
            self.position = 0;
        }
        if self.table.rows() == 0 {
            return Ok(Step::End);
        }
        // Building the arrays cannot be divided: give others a turn before it, unless this step did little.
        if records > budget.records / 2 {
            return Ok(Step::More);
        }
        std::mem::replace(&mut self.table, new_table()).finish_at_once().map(Step::Batch)
    }
}

impl std::fmt::Debug for FlowJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowJob").field("set", &self.set).field("of", &self.batch.sets.len()).finish_non_exhaustive()
    }
}

fn new_table() -> LogsTable {
    LogsTable::new(SCOPE, &NO_LEVELS, &[])
}
