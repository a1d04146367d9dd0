//! The rows of an attribute table in their order.

use super::values::{Integers, Sparse, Strings, ValueId, are_diverse, different, looked_at};
use super::{AttributeTable, Column, Kind, LaidOut, NameId};
use crate::text::same;

/// How parent ids are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum ParentIds {
    /// As they are.
    #[default]
    Plain,
    /// OTAP's transport encoding of attributes, "quasi-delta": rows are grouped by type, name and value, and where a row has
    /// all three of the row before, its parent id is the difference to that row's.
    ///
    /// An OTAP exporter has nothing left to do with such a table, where it has to sort a plain one, which is the dearest
    /// part of its work. Nodes that read parent ids without a look at their encoding read wrong ones.
    Transport,
}

/// The rows in their final order.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) parents: Vec<u16>,
    pub(super) names: Keys,
    pub(super) kinds: Vec<u8>,
    /// Numbers among the values of the row's kind; none of integers that are written as they are.
    values: Vec<ValueId>,
    pub(super) integers: IntegerForm,
    pub(super) encoding: ParentIds,
    /// Where the rows and the values of each kind end, in the order of kinds.
    ends: Vec<(Kind, usize, usize)>,
}

/// Names by their numbers, in the narrowest form that suffices.
#[derive(Debug)]
pub(super) enum Keys {
    Byte(Vec<u8>),
    Short(Vec<u16>),
    Wide(Vec<NameId>),
}

#[allow(clippy::cast_possible_truncation, reason = "numbers are below the number of names")]
impl Keys {
    fn new(names: usize, rows: usize) -> Self {
        match names {
            ..=0x100 => Self::Byte(Vec::with_capacity(rows)),
            0x101..=0x1_0000 => Self::Short(Vec::with_capacity(rows)),
            _ => Self::Wide(Vec::with_capacity(rows)),
        }
    }

    fn fill(&mut self, rows: usize, name: NameId) {
        match self {
            Self::Byte(keys) => keys.resize(rows, name as u8),
            Self::Short(keys) => keys.resize(rows, name as u16),
            Self::Wide(keys) => keys.resize(rows, name),
        }
    }
}

/// How the integers of a table are written: as a dictionary, unless a good part of them are all different.
#[derive(Debug)]
pub(super) enum IntegerForm {
    Dictionary(Integers),
    /// All rows up to the last integer, 0 where there is none.
    Plain(Vec<i64>),
}

/// Integers looked at, at most, to find their form.
const SAMPLED_COLUMNS: usize = 64;

impl IntegerForm {
    /// Plain if more than a quarter of the integers are in columns of mostly different values.
    fn of(columns: &[Column]) -> Self {
        let integers = columns.iter().filter(|column| column.kind == Kind::Integer);
        let (mut all, mut diverse) = (0, 0);
        for column in integers.take(SAMPLED_COLUMNS) {
            all += column.integers.len();
            if column.is_diverse {
                diverse += column.integers.len();
            }
        }
        if diverse * 4 > all { Self::Plain(Vec::new()) } else { Self::Dictionary(Integers::default()) }
    }
}

/// Where a column of integers stands among the others, for the sake of compressors that look at a few places only. Integers
/// that are mostly different come first, since after what repeats such compressors stay at short distances for long. Among
/// them the largest are first, so that columns with the same values are neighbours, and starts of flows follow ends.
fn place_of_integers(column: &Column) -> (bool, std::cmp::Reverse<i128>) {
    let is_first = column.is_diverse;
    let sum = if is_first { column.integers.iter().map(|value| i128::from(*value)).sum() } else { 0 };
    (!is_first, std::cmp::Reverse(sum))
}

/// Fewer rows than this are grouped whatever their values are.
const FEW: usize = 64;

/// Finds the columns that stay in the order of their records, as far as samples tell.
///
/// Columns that do so have the same parent ids if the same records have them, which cost nothing from the second column on.
/// Grouped by value instead, the parent ids of a column take as much as its values would. That pays if its values go together
/// with those of another one, as those of a program and its process: then both have the same groups.
fn find_order(columns: &mut [Column]) {
    let mut counts: Vec<(usize, usize)> = Vec::new();
    for (place, column) in columns.iter_mut().enumerate() {
        column.keeps_order = column.is_diverse || !column.tells_values_apart();
        if column.parents.len() >= FEW && column.varies && !column.keeps_order && !comes_in_runs(column) {
            let different = different(column.numbers());
            // With few rows for each value a sample shows no more, and groups of few rows are hardly like others.
            column.keeps_order = different * 2 > looked_at(column.parents.len());
            if !column.keeps_order {
                counts.push((different, place));
            }
        }
    }
    counts.sort_unstable();
    let go_together = |one: usize, other: usize| {
        let (Some((one, a)), Some((other, b))) = (counts.get(one), counts.get(other)) else { return false };
        let (a, b, most) = (&columns[*a], &columns[*b], one.max(other) * 33 / 32);
        let pairs = a.numbers().zip(b.numbers()).map(|(a, b)| a.rotate_left(32) ^ b);
        one.min(other) * 17 / 16 >= *one.max(other) && a.parents.len() == b.parents.len() && different(pairs) <= most
    };
    // What goes together has as many values, so that it is next to each other.
    let with_next: Vec<bool> = (0..counts.len()).map(|at| go_together(at, at + 1)).collect();
    let mut with_last = false;
    for ((_, place), with_next) in counts.iter().zip(with_next) {
        columns[*place].keeps_order = !with_next && !with_last;
        with_last = with_next;
    }
    let records =
        |column: &Column| (column.parents.len(), column.parents.first().copied(), column.parents.last().copied());
    let mut of_order: Vec<_> = columns.iter().filter(|column| column.keeps_order).map(records).collect();
    of_order.sort_unstable();
    for column in columns.iter_mut().filter(|column| column.keeps_order) {
        let (records, first) = (records(column), of_order.partition_point(|other| *other < records(column)));
        // One that differs everywhere has nothing to be grouped by.
        column.keeps_order = column.is_diverse || of_order.get(first + 1) == Some(&records);
    }
}

/// Rows for each pair of equal neighbours from which on a column may stay in the order of its records: each pair interrupts
/// the sequence of parent ids that such columns have in common, for the second one is a difference.
const ROWS_A_PAIR: usize = 20;

/// Whether it happens more than now and then that a value is that of the record before.
fn comes_in_runs(column: &Column) -> bool {
    fn pairs<T: PartialEq>(values: &[T]) -> usize {
        values.windows(2).filter(|pair| pair[0] == pair[1]).count()
    }
    (pairs(&column.values) + pairs(&column.integers)) * ROWS_A_PAIR > column.parents.len()
}

/// Rows after which a step of bringing them into order ends.
const STEP_ROWS: usize = 8 * 1024;

/// Rows that are being brought into their order, column by column.
#[derive(Debug)]
pub(crate) struct Ordering {
    table: AttributeTable,
    columns: std::vec::IntoIter<Column>,
    groups: Groups,
    rows: Rows,
}

impl Ordering {
    pub(super) fn new(mut table: AttributeTable, wanted: ParentIds) -> Self {
        let mut columns = std::mem::take(&mut table.columns);
        for column in &mut columns {
            column.is_diverse = column.kind == Kind::Integer && column.varies && are_diverse(&column.integers);
        }
        // Stable: columns of one kind stay in the order in which they appeared, but for integers.
        columns.sort_by_cached_key(|column| (column.kind, place_of_integers(column)));
        find_order(&mut columns);
        let length: usize = columns.iter().map(|column| column.parents.len()).sum();
        let numbered: usize = columns.iter().map(|column| column.values.len()).sum();
        let rows = Rows {
            parents: Vec::with_capacity(length),
            names: Keys::new(table.names.len(), length),
            kinds: Vec::with_capacity(length),
            values: Vec::with_capacity(numbered),
            integers: match IntegerForm::of(&columns) {
                IntegerForm::Plain(_) => IntegerForm::Plain(Vec::with_capacity(length)),
                dictionary => dictionary,
            },
            // Differences need an agreement on which rows are equal.
            encoding: if table.ambiguous { ParentIds::Plain } else { wanted },
            ends: Vec::new(),
        };
        Self { table, columns: columns.into_iter(), groups: Groups::default(), rows }
    }

    /// Puts some more rows in order; true when that was all.
    pub(crate) fn step(&mut self) -> bool {
        let start = self.rows.parents.len();
        while self.rows.parents.len() < start + STEP_ROWS {
            match self.columns.next() {
                Some(column) => self.rows.append(column, &self.table, &mut self.groups),
                None => return true,
            }
        }
        false
    }

    /// The table with its rows in order, once [`Ordering::step`] has said so.
    pub(crate) fn laid_out(self) -> LaidOut {
        LaidOut { table: self.table, rows: self.rows }
    }
}

impl Rows {
    fn append(&mut self, mut column: Column, table: &AttributeTable, groups: &mut Groups) {
        if column.kind == Kind::Integer {
            self.integers(&mut column, groups);
        } else {
            self.numbered(&column, table, groups);
        }
        self.names.fill(self.parents.len(), column.name);
        self.kinds.resize(self.parents.len(), column.kind as u8);
        self.ends.push((column.kind, self.parents.len(), self.values.len()));
    }

    fn numbered(&mut self, column: &Column, table: &AttributeTable, groups: &mut Groups) {
        let (start, start_values) = (self.parents.len(), self.values.len());
        let stays = self.encoding == ParentIds::Plain || column.kind == Kind::Map || column.kind == Kind::List;
        if stays || !column.varies || !column.tells_values_apart() || column.keeps_order {
            self.parents.extend_from_slice(&column.parents);
            self.values.extend_from_slice(&column.values);
        } else {
            groups.append(&column.parents, &column.values, &mut self.parents, &mut self.values);
        }
        if stays {
            return;
        }
        let values = self.values.get(start_values..).unwrap_or_default();
        // Numbers may differ where values do not.
        let contents = match column.kind {
            _ if column.tells_values_apart() => None,
            Kind::Text => Some(&table.texts),
            Kind::Bytes => Some(&table.blobs),
            _ => None,
        };
        let equal_contents =
            |a: ValueId, b: ValueId| contents.is_some_and(|contents: &Strings| same(contents.get(a), contents.get(b)));
        differences(&mut self.parents[start..], values, |a, b| a == b || equal_contents(*a, *b));
    }

    fn integers(&mut self, column: &mut Column, groups: &mut Groups) {
        let start = self.parents.len();
        let is_plain = self.encoding == ParentIds::Plain;
        match &mut self.integers {
            IntegerForm::Dictionary(known) => {
                column.values = known.intern_all(&column.integers);
                let start_values = self.values.len();
                if is_plain || !column.varies || column.keeps_order {
                    self.parents.extend_from_slice(&column.parents);
                    self.values.append(&mut column.values);
                } else {
                    groups.append(&column.parents, &column.values, &mut self.parents, &mut self.values);
                }
                if !is_plain {
                    differences(&mut self.parents[start..], &self.values[start_values..], |a, b| a == b);
                }
            }
            IntegerForm::Plain(integers) => {
                integers.resize(start, 0);
                if is_plain || !column.varies || column.keeps_order {
                    self.parents.extend_from_slice(&column.parents);
                    integers.extend_from_slice(&column.integers);
                } else {
                    let mut known = Integers::default();
                    let ids = known.intern_all(&column.integers);
                    let mut grouped = Vec::with_capacity(ids.len());
                    groups.append(&column.parents, &ids, &mut self.parents, &mut grouped);
                    integers.extend(grouped.iter().map(|id| known.get(*id)));
                }
                if !is_plain {
                    differences(&mut self.parents[start..], &integers[start..], |a, b| a == b);
                }
            }
        }
    }

    /// Rows before those of `kind`.
    pub(super) fn before(&self, kind: Kind) -> usize {
        self.end_of(|other| other < kind).0
    }

    fn end_of(&self, is_it: impl Fn(Kind) -> bool) -> (usize, usize) {
        let end = self.ends.iter().rev().find(|(kind, ..)| is_it(*kind));
        end.map_or((0, 0), |(_, rows, values)| (*rows, *values))
    }

    /// The values of the rows of two kinds that share a column. Nothing if there are none.
    pub(super) fn only(&self, kinds: [Kind; 2]) -> Option<Sparse<'_>> {
        let (before, start) = self.end_of(|kind| kind < kinds[0]);
        let (_, end) = self.end_of(|kind| kind <= kinds[1]);
        let values = self.values.get(start..end)?;
        (!values.is_empty()).then_some(Sparse { before, values, length: self.parents.len() })
    }
}

/// Replaces the parent ids of rows that have the value of the row before by the difference to that row's.
fn differences<T>(parents: &mut [u16], values: &[T], are_equal: impl Fn(&T, &T) -> bool) {
    let mut before: Option<(u16, &T)> = None;
    for (parent, value) in parents.iter_mut().zip(values) {
        let absolute = *parent;
        if let Some((last, last_value)) = before
            && are_equal(last_value, value)
        {
            // The parents of one value ascend.
            *parent = absolute - last;
        }
        before = Some((absolute, value));
    }
}

/// Brings the rows of a column together by value, in time proportional to their number.
#[derive(Debug, Default)]
struct Groups {
    /// For each value its group in the column that was looked at last, and which column that was.
    of_value: Vec<(u32, u32)>,
    column: u32,
    /// Rows of each group; later where its next row goes.
    places: Vec<usize>,
}

impl Groups {
    fn append(
        &mut self,
        parents: &[u16],
        values: &[ValueId],
        all_parents: &mut Vec<u16>,
        all_values: &mut Vec<ValueId>,
    ) {
        self.column += 1;
        self.places.clear();
        let largest = values.iter().max().map_or(0, |largest| usize::try_from(*largest).unwrap_or(0));
        if self.of_value.len() <= largest {
            self.of_value.resize(largest + 1, (0, 0));
        }
        for value in values {
            let (group, column) = &mut self.of_value[usize::try_from(*value).unwrap_or(0)];
            if *column != self.column {
                (*group, *column) = (u32::try_from(self.places.len()).unwrap_or(u32::MAX), self.column);
                self.places.push(0);
            }
            self.places[usize::try_from(*group).unwrap_or(0)] += 1;
        }
        let mut next = 0;
        for place in &mut self.places {
            let count = *place;
            *place = next;
            next += count;
        }
        let (start, start_values) = (all_parents.len(), all_values.len());
        all_parents.resize(start + next, 0);
        all_values.resize(start_values + next, 0);
        let (out_parents, out_values) = (&mut all_parents[start..], &mut all_values[start_values..]);
        for (parent, value) in parents.iter().zip(values) {
            let (group, _) = self.of_value[usize::try_from(*value).unwrap_or(0)];
            let place = &mut self.places[usize::try_from(group).unwrap_or(0)];
            out_parents[*place] = *parent;
            out_values[*place] = *value;
            *place += 1;
        }
    }
}
