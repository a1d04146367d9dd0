//! From records to columns: the inner loops.

use std::ops::Range;

use catchment_ipfix::sonic::Counter;

/// Columns that are turned around together: a cache line of values of 8 bytes.
const TILE: usize = 8;

/// Columns that a run has at least, on average, for runs to pay.
const RUN_WORTH: usize = 8;

/// Where the values of all columns stand in a record.
#[derive(Debug)]
pub(super) struct Layout {
    stride: usize,
    columns: Columns,
}

#[derive(Debug)]
enum Columns {
    /// Values of 8 bytes, mostly at even distances: no loop looks at a table for each value.
    Runs(Vec<Run>),
    /// Values of 8 bytes, by where they start.
    Listed(Box<[u32]>),
    /// Values by where they start, with their bytes.
    Mixed(Box<[(u32, u8)]>),
}

/// Columns at even distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    /// The first column.
    column: usize,
    columns: usize,
    /// Where the value of the first column starts in a record.
    offset: usize,
    /// From the start of a value to that of the next column's.
    step: usize,
}

impl Run {
    /// Whether a further column continues the run, which it does at any distance if it is the second.
    fn accepts(&self, counter: &Counter) -> bool {
        match self.columns {
            1 => counter.offset > self.offset,
            columns => counter.offset == self.offset + columns * self.step,
        }
    }

    /// The part of the run in `columns`.
    fn part(self, columns: &Range<usize>) -> Self {
        let start = columns.start.max(self.column);
        let end = columns.end.min(self.column + self.columns);
        let offset = self.offset + (start - self.column) * self.step;
        Self { column: start, columns: end.saturating_sub(start), offset, ..self }
    }
}

fn runs(counters: &[Counter]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (column, counter) in counters.iter().enumerate() {
        match runs.last_mut().filter(|run| run.accepts(counter)) {
            Some(run) => {
                if run.columns == 1 {
                    run.step = counter.offset - run.offset;
                }
                run.columns += 1;
            }
            None => runs.push(Run { column, columns: 1, offset: counter.offset, step: size_of::<u64>() }),
        }
    }
    runs
}

impl Layout {
    /// The layout of records of `stride` bytes; these are shorter than a message, so all places fit 32 bits.
    pub(super) fn new(stride: usize, counters: &[Counter]) -> Self {
        let place = |counter: &Counter| u32::try_from(counter.offset).unwrap_or(u32::MAX);
        let columns = if counters.iter().all(|counter| counter.width == size_of::<u64>()) {
            let runs = runs(counters);
            match counters.len() / runs.len().max(1) {
                RUN_WORTH.. => Columns::Runs(runs),
                _ => Columns::Listed(counters.iter().map(place).collect()),
            }
        } else {
            let width = |counter: &Counter| u8::try_from(counter.width).unwrap_or_default();
            Columns::Mixed(counters.iter().map(|counter| (place(counter), width(counter))).collect())
        };
        Self { stride, columns }
    }

    /// Appends the values of some columns to `out`: all those of the first column, in the order of the records, then those
    /// of the second. Gives all values or-ed, so that the highest bit tells whether any is above the range of `i64`.
    pub(super) fn transpose(&self, records: &[u8], columns: &Range<usize>, out: &mut Vec<i64>) -> u64 {
        let before = out.len();
        match &self.columns {
            Columns::Runs(runs) => {
                let first = runs.partition_point(|run| run.column + run.columns <= columns.start);
                let runs = runs.get(first..).unwrap_or_default().iter().take_while(|run| run.column < columns.end);
                for run in runs.map(|run| run.part(columns)) {
                    if records.len() > self.stride {
                        self.tiles(records, &run, run.columns, out);
                    } else {
                        row(records, run, out);
                    }
                }
            }
            Columns::Listed(offsets) => {
                let offsets = offsets.get(columns.clone()).unwrap_or_default();
                if records.len() > self.stride {
                    self.tiles(records, &Listed(offsets), offsets.len(), out);
                } else {
                    out.extend(offsets.iter().map(|offset| wide_at(records, *offset as usize)));
                }
            }
            Columns::Mixed(places) => {
                for (offset, width) in places.get(columns.clone()).unwrap_or_default() {
                    let records = records.chunks_exact(self.stride);
                    out.extend(records.map(|record| narrow_at(record, *offset as usize, usize::from(*width))));
                }
            }
        }
        out.get(before..).unwrap_or_default().iter().fold(0, |all, value| all | value.cast_unsigned())
    }

    /// The values of several records, some columns at a time: each record is looked at once for all of these.
    fn tiles(&self, records: &[u8], places: &impl Places, columns: usize, out: &mut Vec<i64>) {
        let (start, count) = (out.len(), records.len() / self.stride);
        out.resize(start + columns * count, 0);
        let out = out.get_mut(start..).unwrap_or_default();
        for (tile, out) in out.chunks_mut(count * TILE).enumerate() {
            let first = tile * TILE;
            if out.len() == count * TILE {
                let mut slots = out.chunks_exact_mut(count);
                let mut slots: [_; TILE] = std::array::from_fn(|_| slots.next().unwrap_or_default().iter_mut());
                for record in records.chunks_exact(self.stride) {
                    for (slot, value) in slots.iter_mut().zip(places.tile(record, first)) {
                        if let Some(slot) = slot.next() {
                            *slot = value;
                        }
                    }
                }
            } else {
                for (column, out) in out.chunks_exact_mut(count).enumerate() {
                    let mut rest = records;
                    for out in out {
                        *out = places.value(rest, first + column);
                        rest = rest.get(self.stride..).unwrap_or_default();
                    }
                }
            }
        }
    }
}

/// Where the values of some columns are in a record.
trait Places {
    /// The value of a column.
    fn value(&self, record: &[u8], column: usize) -> i64;

    /// The values of columns that follow each other.
    #[inline]
    fn tile(&self, record: &[u8], first: usize) -> [i64; TILE] {
        std::array::from_fn(|column| self.value(record, first + column))
    }
}

impl Places for Run {
    #[inline]
    fn value(&self, record: &[u8], column: usize) -> i64 {
        wide_at(record, self.offset + column * self.step)
    }

    #[inline]
    fn tile(&self, record: &[u8], first: usize) -> [i64; TILE] {
        let start = self.offset + first * self.step;
        match record.get(start..).and_then(<[u8]>::first_chunk::<{ TILE * 8 }>).filter(|_| self.step == 8) {
            Some(values) => {
                let (values, _) = values.as_chunks::<8>();
                std::array::from_fn(|column| values.get(column).map_or(0, |value| i64::from_be_bytes(*value)))
            }
            None => std::array::from_fn(|column| self.value(record, first + column)),
        }
    }
}

/// Columns by where their values start.
struct Listed<'a>(&'a [u32]);

impl Places for Listed<'_> {
    #[inline]
    fn value(&self, record: &[u8], column: usize) -> i64 {
        self.0.get(column).map_or(0, |offset| wide_at(record, *offset as usize))
    }

    #[inline]
    fn tile(&self, record: &[u8], first: usize) -> [i64; TILE] {
        match self.0.get(first..).and_then(<[u32]>::first_chunk::<TILE>) {
            Some(offsets) => offsets.map(|offset| wide_at(record, offset as usize)),
            None => [0; TILE],
        }
    }
}

/// The values of a run in a single record.
fn row(record: &[u8], run: Run, out: &mut Vec<i64>) {
    let values = record.get(run.offset..).unwrap_or_default();
    if run.step == 8 {
        let (values, _) = values.as_chunks::<8>();
        out.extend(values.get(..run.columns).unwrap_or_default().iter().map(|value| i64::from_be_bytes(*value)));
    } else {
        out.extend(values.chunks(run.step).take(run.columns).map(|value| wide_at(value, 0)));
    }
}

/// The number in the eight bytes at `offset`; negative if it is above the range.
#[inline]
fn wide_at(record: &[u8], offset: usize) -> i64 {
    let bytes = record.get(offset..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

/// The number in the one to eight bytes at `offset`.
#[inline]
fn narrow_at(record: &[u8], offset: usize, width: usize) -> i64 {
    let bytes = record.get(offset..).and_then(|bytes| bytes.get(..width)).unwrap_or_default();
    bytes.iter().fold(0, |value, byte| (value << 8) | i64::from(*byte))
}

/// `pattern` again and again, `times` times.
pub(super) fn repeated(pattern: &[i64], times: usize) -> Vec<i64> {
    if let [single] = pattern {
        return vec![*single; times];
    }
    let length = pattern.len() * times;
    let mut all = Vec::with_capacity(length);
    all.extend_from_slice(pattern);
    while all.len() < length && !all.is_empty() {
        all.extend_from_within(..all.len().min(length - all.len()));
    }
    all
}
