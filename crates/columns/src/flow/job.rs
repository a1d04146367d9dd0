//! The decode job: a [`FlowBatch`] in, log batches out.

use std::net::IpAddr;

use catchment_ipfix::{Kind, Records};
use rustc_hash::FxHashMap;

use super::batch::{FlowBatch, Set};
use super::bound::Plans;
use super::columns::{self, Texts};
use super::layout::{Even, Index, Layout as _};
use super::mapping::{Biflow, ExporterAt, FlowMapping, OptionsData};
use super::names::OWN;
use super::row::{self, SetContext};
use super::value::{FlowCounts, ValueWriter};
use crate::logs::{LogsTable, NO_LEVELS, Unfinished};
use crate::table::{AttributeTable, AttributeWriter, ParentIds};
use crate::{Budget, ColumnsError, Job, MAX_BATCH_BYTES, MAX_BATCH_RECORDS, SMALL_BYTES, SMALL_RECORDS, Step};

/// Instrumentation scope of the records.
pub const SCOPE: &str = "catchment.receiver.ipfix";

/// Records are taken column by column, so a step of the usual length has more of them: some 50 microseconds.
const STEP: Budget = Budget { records: 512, bytes: 64 * 1024 };

/// Exporter address and observation domain.
type Lane = (Option<IpAddr>, u32);

/// Decodes the records of a batch, set by set, in the order of their arrival. Every record gives one log record, or two if
/// the settings say so of records of both directions; options data may be left out.
pub struct FlowJob {
    batch: FlowBatch,
    mapping: FlowMapping,
    set: usize,
    position: usize,
    table: LogsTable,
    /// Lane of the records in the table.
    lane: Option<Lane>,
    values: ValueWriter,
    plans: Plans,
    texts: Texts,
    index: Index,
    exporters: Exporters,
    unfinished: Option<Unfinished>,
    /// Rows of the batch whose arrays are being made.
    unfinished_rows: usize,
    /// Input records in the batch under construction, and in the one that is or was made last.
    items: (u64, u64),
    /// Takes every set record by record.
    #[cfg(test)]
    pub(super) by_record: bool,
}

/// Exporters by address.
#[derive(Debug, Default)]
struct Exporters {
    /// The last one with its address as text.
    last: Option<(Option<IpAddr>, String)>,
    resources: FxHashMap<Option<IpAddr>, u16>,
}

impl FlowJob {
    /// A job that has not begun, with the settings that are the default.
    #[must_use]
    pub fn new(batch: FlowBatch) -> Self {
        Self::with_mapping(batch, &FlowMapping::default())
    }

    /// A job that has not begun.
    #[must_use]
    pub fn with_mapping(mut batch: FlowBatch, mapping: &FlowMapping) -> Self {
        if mapping.per_exporter {
            let mut lanes: FxHashMap<Lane, usize> = FxHashMap::default();
            for set in &batch.sets {
                let next = lanes.len();
                let _ = lanes.entry(lane(set)).or_insert(next);
            }
            // Stable: within a lane the order stays.
            batch.sets.sort_by_key(|set| lanes.get(&lane(set)).copied());
        }
        let mut job = Self {
            table: new_table(mapping, 0),
            batch,
            mapping: *mapping,
            set: 0,
            position: 0,
            lane: None,
            values: ValueWriter::default(),
            plans: Plans::default(),
            texts: Texts::default(),
            index: Index::default(),
            exporters: Exporters::default(),
            unfinished: None,
            unfinished_rows: 0,
            items: (0, 0),
            #[cfg(test)]
            by_record: false,
        };
        job.table = new_table(mapping, job.batch.records);
        job
    }

    /// The same with parent ids written as `parent_ids` says.
    #[must_use]
    pub fn with_parent_ids(mut self, parent_ids: ParentIds) -> Self {
        self.mapping.parent_ids = parent_ids;
        self.table = new_table(&self.mapping, self.batch.records);
        self
    }

    /// What the records decoded so far had in them.
    #[must_use]
    pub fn counts(&self) -> FlowCounts {
        self.values.counts
    }

    fn is_by_record(&self) -> bool {
        #[cfg(test)]
        return self.by_record;
        #[cfg(not(test))]
        false
    }

    /// Whether the records of the set are left out.
    fn is_left_out(&self, set: &Set) -> bool {
        self.mapping.options == OptionsData::Use && set.template.kind() == Kind::Options
    }

    /// Whether the records of the set go into another batch than those before.
    fn begins_batch(&self, set: &Set) -> bool {
        self.mapping.per_exporter && self.table.rows() > 0 && self.lane != Some(lane(set))
    }

    /// Decodes at most so many records and bytes of the current set, but one record at least. Gives how many of each, and
    /// whether the set has come to its end.
    fn append(&mut self, records: usize, bytes: usize) -> (usize, usize, bool) {
        let is_by_record = self.is_by_record();
        let Some(set) = self.batch.sets.get(self.set) else { return (0, 0, true) };
        let content = self.batch.arena.get(set.bytes.clone()).unwrap_or_default();
        let resource = match self.mapping.exporter_at {
            ExporterAt::Record => 0,
            ExporterAt::Resource => self.exporters.resource(set, &mut self.table.resource_attributes),
        };
        let exporter = self.exporters.text(set);
        let context = SetContext::new(set, &self.mapping, resource, exporter);
        let bound = self.plans.of(set, &self.mapping, self.table.attributes());
        self.lane = Some(lane(set));
        let rows_each = if bound.directions.is_some() { 2 } else { 1 };
        let room = (MAX_BATCH_RECORDS - self.table.rows().min(MAX_BATCH_RECORDS)) / rows_each;
        if rows_each == 1 && !is_by_record {
            let rest = content.get(self.position..).unwrap_or_default();
            let (read, taken, is_end) = match set.template.fixed_record_length() {
                Some(length) => {
                    let whole = rest.len().checked_div(length).unwrap_or(0);
                    let wanted = records.min(bytes.checked_div(length).unwrap_or(0)).max(1);
                    let taken = whole.min(room).min(wanted);
                    let (run, layout) =
                        (rest.get(..taken * length).unwrap_or_default(), Even { records: taken, length });
                    if taken > 0 {
                        columns::write(
                            &mut self.values,
                            &mut self.texts,
                            &mut self.table,
                            &context,
                            bound,
                            run,
                            layout,
                        );
                    }
                    (run.len(), taken, taken == whole)
                }
                None => {
                    let (read, is_end) = self.index.fill(rest, &bound.plan.runs, records.max(1).min(room), bytes);
                    let (run, layout) = (rest.get(..read).unwrap_or_default(), &self.index);
                    let taken = layout.records();
                    if taken > 0 {
                        columns::write(
                            &mut self.values,
                            &mut self.texts,
                            &mut self.table,
                            &context,
                            bound,
                            run,
                            layout,
                        );
                    }
                    (read, taken, is_end)
                }
            };
            self.position += read;
            return (taken, read, is_end);
        }
        let mut cursor = Records::resume(&set.template, content, self.position);
        let (mut taken, mut read) = (0, 0);
        while taken < room && (taken == 0 || (taken < records && read < bytes)) {
            let Some(record) = cursor.next() else { return (taken, read, true) };
            row::write(&mut self.values, &mut self.table, &context, bound, &record);
            taken += 1;
            read += record.bytes().len();
            self.position = cursor.position();
        }
        (taken, read, false)
    }

    fn is_full(&self) -> bool {
        self.table.rows() + self.next_rows() > MAX_BATCH_RECORDS || self.table.bytes() >= MAX_BATCH_BYTES
    }

    /// Rows of the next record, at most.
    fn next_rows(&self) -> usize {
        let is_two = self.mapping.biflow == Biflow::Two;
        let has_reverse = |set: &Set| set.template.fields().iter().any(|field| field.reverse);
        if is_two && self.batch.sets.get(self.set).is_some_and(has_reverse) { 2 } else { 1 }
    }

    /// Ends the batch under construction.
    fn finish(&mut self) {
        self.plans.clear();
        self.texts.clear();
        self.exporters.resources.clear();
        self.lane = None;
        self.unfinished_rows = self.table.rows();
        self.items = (0, self.items.0);
        let next = new_table(&self.mapping, 0);
        self.unfinished = Some(std::mem::replace(&mut self.table, next).finish());
    }
}

impl Exporters {
    /// The address of the exporter of a set as text; an IPv4 address that came over an IPv6 socket is an IPv4 address.
    fn text(&mut self, set: &Set) -> Option<&str> {
        let address = set.receipt.exporter.map(|exporter| exporter.ip().to_canonical())?;
        if self.last.as_ref().is_none_or(|(known, _)| *known != Some(address)) {
            self.last = Some((Some(address), address.to_string()));
        }
        self.last.as_ref().map(|(_, text)| text.as_str())
    }

    /// The resource of a set, whose attributes are written when it is new. There are at most as many as records.
    fn resource(&mut self, set: &Set, attributes: &mut AttributeTable) -> u16 {
        let address = lane(set).0;
        if let Some(number) = self.resources.get(&address) {
            return *number;
        }
        let number = u16::try_from(self.resources.len()).unwrap_or(u16::MAX);
        let _ = self.resources.insert(address, number);
        if let Some(text) = self.text(set) {
            AttributeWriter::new(attributes, number, true).text(super::names::SAMPLER_ADDRESS, text.as_bytes());
        }
        number
    }
}

fn lane(set: &Set) -> Lane {
    (set.receipt.exporter.map(|exporter| exporter.ip().to_canonical()), set.message.domain)
}

fn new_table(mapping: &FlowMapping, records: usize) -> LogsTable {
    let mut table = LogsTable::new(SCOPE, &NO_LEVELS, OWN).with_parent_ids(mapping.parent_ids);
    table.reserve(records.min(MAX_BATCH_RECORDS), 0);
    table
}

impl Job for FlowJob {
    fn budget(&self) -> Budget {
        let is_small = self.batch.len() <= SMALL_RECORDS && self.batch.bytes() <= SMALL_BYTES;
        if is_small { Budget::UNLIMITED } else { STEP }
    }

    fn items_in_batch(&self) -> Option<u64> {
        Some(self.items.1)
    }

    fn unused_items(&self) -> u64 {
        self.values.counts.options_left_out
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
                        return Ok(Step::Batch(batch));
                    }
                    Ok(None) if self.unfinished_rows <= budget.records.min(SMALL_RECORDS) || is_undivided => continue,
                    Ok(None) => return Ok(Step::More),
                    Err(error) => {
                        self.unfinished = None;
                        return Err(error);
                    }
                }
            }
            let Some(set) = self.batch.sets.get(self.set) else {
                if self.table.rows() == 0 {
                    return Ok(Step::End);
                }
                self.finish();
                continue;
            };
            if self.is_left_out(set) {
                self.values.counts.options_left_out += set.records as u64;
                self.set += 1;
                continue;
            }
            if self.begins_batch(set) || self.is_full() {
                self.finish();
                continue;
            }
            if records > 0 && (records >= budget.records || bytes >= budget.bytes) {
                return Ok(Step::More);
            }
            let (taken, read, is_end) = self.append(budget.records - records, budget.bytes.saturating_sub(bytes));
            records += taken;
            bytes += read;
            self.items.0 += taken as u64;
            if is_end {
                self.set += 1;
                self.position = 0;
            }
        }
    }
}

impl std::fmt::Debug for FlowJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowJob").field("set", &self.set).field("of", &self.batch.sets.len()).finish_non_exhaustive()
    }
}
