//! The decode job: a [`SonicBatch`] in, metrics out.

use std::sync::{Arc, OnceLock};

use arrow::array::{ArrayRef, Float64Array, Int64Array};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};

use super::batch::{Lane, SonicBatch};
use super::mapping::{SonicMapping, U64Overflow};
use super::order::Order;
use super::points::PointTables;
use super::skeleton::Skeleton;
use super::values;
use crate::{Budget, ColumnsError, Job, Step};

/// Bytes of values in one step: some 100 microseconds.
const STEP_BYTES: usize = 64 * 1024;

/// What a job has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SonicCounts {
    /// Batches given out.
    pub batches: u64,
    /// Records in them.
    pub records: u64,
    /// Points in them.
    pub points: u64,
    /// Points whose value was above the range of OTLP's integers.
    pub overflowed: u64,
}

/// Turns the records of a batch into metrics, lane by lane. Each batch is of one lane: one source, one template.
#[derive(Debug)]
pub struct SonicJob {
    lanes: std::vec::IntoIter<Lane>,
    mapping: Arc<SonicMapping>,
    key: u64,
    preparing: Option<Preparing>,
    current: Option<Current>,
    counts: SonicCounts,
}

/// The lane that is being worked off.
#[derive(Debug)]
struct Current {
    lane: Lane,
    skeleton: Arc<Skeleton>,
    /// Records of a full batch.
    full: usize,
    /// The first record that has not been given out.
    next: usize,
    building: Option<Building>,
}

/// A batch under construction.
#[derive(Debug)]
struct Building {
    tables: Arc<PointTables>,
    records: usize,
    values: Vec<i64>,
    /// Columns that are done.
    columns: usize,
    /// All values or-ed.
    all: u64,
}

/// A skeleton, once it has been made.
type Slot = OnceLock<Arc<Skeleton>>;

/// A lane whose template has no skeleton yet.
#[derive(Debug)]
struct Preparing {
    lane: Lane,
    slot: Arc<Slot>,
    order: Order,
}

impl SonicJob {
    /// A job that has not begun.
    #[must_use]
    pub fn new(batch: SonicBatch, mapping: Arc<SonicMapping>) -> Self {
        let key = mapping.key();
        Self {
            lanes: batch.lanes.into_iter(),
            mapping,
            key,
            preparing: None,
            current: None,
            counts: SonicCounts::default(),
        }
    }

    /// What has been done so far.
    #[must_use]
    pub fn counts(&self) -> SonicCounts {
        self.counts
    }

    /// Takes up the next lane that has records, or goes on to prepare it. Gives whether there is one.
    fn next_lane(&mut self) -> Result<bool, ColumnsError> {
        if let Some(Preparing { lane, slot, order }) = self.preparing.take() {
            let skeleton = Skeleton::new(&lane.template, &self.mapping, order)?;
            // Another job may have been first.
            let skeleton = Arc::clone(slot.get_or_init(|| Arc::new(skeleton)));
            self.begin_lane(lane, skeleton);
            return Ok(true);
        }
        let Some(lane) = self.lanes.by_ref().find(|lane| lane.records > 0) else { return Ok(false) };
        let slot = lane.template.attached(self.key, |_| Slot::new());
        match slot.get().cloned() {
            Some(skeleton) => self.begin_lane(lane, skeleton),
            None => {
                let order = Order::new(&lane.template, &self.mapping);
                self.preparing = Some(Preparing { lane, slot, order });
            }
        }
        Ok(true)
    }

    fn begin_lane(&mut self, lane: Lane, skeleton: Arc<Skeleton>) {
        let full = if skeleton.repeats { 1 } else { self.mapping.records(skeleton.columns()) };
        self.current = Some(Current { lane, skeleton, full, next: 0, building: None });
    }
}

impl Current {
    /// Begins a batch; gives whether its tables had to be made.
    fn begin(&mut self) -> Result<bool, ColumnsError> {
        let records = self.full.min(self.lane.records - self.next);
        let (tables, is_new) = self.skeleton.tables(records).inspect_err(|_| self.next += records)?;
        let values = Vec::with_capacity(records * self.skeleton.columns());
        self.building = Some(Building { tables, records, values, columns: 0, all: 0 });
        Ok(is_new)
    }

    /// Writes some more columns; gives whether that were all.
    fn fill(&mut self, bytes: usize) -> bool {
        let Some(building) = &mut self.building else { return true };
        let columns = (bytes / (building.records * size_of::<i64>())).max(1);
        let end = building.columns.saturating_add(columns).min(self.skeleton.columns());
        let stride = self.lane.template.record_length();
        let input = self.lane.bytes.get(self.next * stride..(self.next + building.records) * stride);
        let columns = building.columns..end;
        building.all |= self.skeleton.layout.transpose(input.unwrap_or_default(), &columns, &mut building.values);
        building.columns = end;
        end == self.skeleton.columns()
    }

    /// When each of the next records was taken.
    fn times(&self, records: usize) -> Vec<i64> {
        let records = self.next..self.next + records;
        if let Some(times) = self.lane.times.get(records.clone()) {
            return times.to_vec();
        }
        let (stride, time) = (self.lane.template.record_length(), self.lane.template.time());
        let bytes = self.lane.bytes.get(records.start * stride..records.end * stride).unwrap_or_default();
        bytes.chunks_exact(stride).map(|record| time.read(record).unwrap_or_default()).collect()
    }
}

impl Job for SonicJob {
    fn budget(&self) -> Budget {
        Budget { records: usize::MAX, bytes: STEP_BYTES }
    }

    fn step(&mut self, budget: Budget) -> Result<Step, ColumnsError> {
        let Some(current) = &mut self.current else {
            return match self.next_lane()? {
                true if budget == Budget::UNLIMITED => self.step(budget),
                true => Ok(Step::More),
                false => Ok(Step::End),
            };
        };
        if current.next == current.lane.records {
            self.current = None;
            return self.step(budget);
        }
        if current.building.is_none() && current.begin()? && budget != Budget::UNLIMITED {
            return Ok(Step::More);
        }
        let bytes = budget.bytes.min(budget.records.saturating_mul(current.lane.template.record_length()));
        if !current.fill(bytes) {
            return Ok(Step::More);
        }
        let Some(mut building) = current.building.take() else { return Ok(Step::More) };
        let times = current.times(building.records);
        let times = values::repeated(&times, current.skeleton.columns());
        current.next += building.records;
        let (points, overflow) = (building.values.len(), building.all > i64::MAX.cast_unsigned());
        let mut overflowed = 0;
        let (nulls, doubles) = match (overflow, self.mapping.u64_overflow) {
            (false, _) => (None, None),
            (true, U64Overflow::Saturate) => {
                overflowed = saturate(&mut building.values);
                (None, None)
            }
            (true, U64Overflow::Double) => {
                let (nulls, doubles) = doubles(&building.values);
                overflowed = nulls.null_count() as u64;
                (Some(nulls), Some(Arc::new(doubles) as ArrayRef))
            }
        };
        let values = Int64Array::try_new(ScalarBuffer::from(building.values), nulls);
        let values = values.map_err(ColumnsError::arrow("number data points"))?;
        let batch = building.tables.batch(times, values, doubles)?;
        self.counts.batches += 1;
        self.counts.records += building.records as u64;
        self.counts.points += points as u64;
        self.counts.overflowed += overflowed;
        Ok(Step::Batch(batch))
    }
}

/// Holds values above the range of `i64`, which are negative here, at its end. Gives their number.
fn saturate(values: &mut [i64]) -> u64 {
    let above = values.iter_mut().filter(|value| **value < 0);
    above.map(|value| *value = i64::MAX).count() as u64
}

/// Values above the range of `i64`, which are negative here, as floating-point numbers; and which of `values` are left,
/// as the rows of the numbers that are not null.
fn doubles(values: &[i64]) -> (NullBuffer, Float64Array) {
    #[allow(clippy::cast_precision_loss, reason = "the nearest is asked for")]
    let doubles: Vec<f64> = values.iter().map(|value| value.cast_unsigned() as f64).collect();
    let above = BooleanBuffer::collect_bool(values.len(), |row| values[row] < 0);
    let integers = NullBuffer::new(!&above);
    (integers, Float64Array::new(ScalarBuffer::from(doubles), Some(NullBuffer::new(above))))
}
