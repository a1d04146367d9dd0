//! The rows of an attribute table in their order.

use super::values::{Sparse, ValueId};
use super::{AttributeTable, Column, Kind, LaidOut, NameId};

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

/// The rows in their final order. `values` are numbers among the values of the row's kind.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) parents: Vec<u16>,
    pub(super) names: Vec<NameId>,
    pub(super) kinds: Vec<u8>,
    pub(super) values: Vec<ValueId>,
    pub(super) encoding: ParentIds,
    /// Where the rows of each kind end, in the order of kinds.
    ends: Vec<(Kind, usize)>,
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
        // Stable: columns of one kind stay in the order in which they appeared.
        columns.sort_by_key(|column| column.kind);
        let length = columns.iter().map(|column| column.parents.len()).sum();
        let rows = Rows {
            parents: Vec::with_capacity(length),
            names: Vec::with_capacity(length),
            kinds: Vec::with_capacity(length),
            values: Vec::with_capacity(length),
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
                Some(column) => self.rows.append(&column, &mut self.groups),
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
    fn append(&mut self, column: &Column, groups: &mut Groups) {
        let start = self.parents.len();
        if self.encoding == ParentIds::Plain || column.kind == Kind::Map || column.kind == Kind::List {
            self.parents.extend_from_slice(&column.parents);
            self.values.extend_from_slice(&column.values);
        } else {
            if column.varies && column.tells_values_apart() {
                groups.append(column, self);
            } else {
                self.parents.extend_from_slice(&column.parents);
                self.values.extend_from_slice(&column.values);
            }
            differences(&mut self.parents[start..], &self.values[start..]);
        }
        self.names.resize(self.parents.len(), column.name);
        self.kinds.resize(self.parents.len(), column.kind as u8);
        self.ends.push((column.kind, self.parents.len()));
    }
}

impl Rows {
    /// The values of the rows of two kinds that share a column. Nothing if there are none.
    pub(super) fn only(&self, kinds: [Kind; 2]) -> Option<Sparse<'_>> {
        let end_of = |is_it: &dyn Fn(Kind) -> bool| {
            self.ends.iter().rev().find(|(kind, _)| is_it(*kind)).map_or(0, |(_, end)| *end)
        };
        let before = end_of(&|kind| kind < kinds[0]);
        let end = end_of(&|kind| kind <= kinds[1]);
        let values = self.values.get(before..end)?;
        (!values.is_empty()).then_some(Sparse { before, values, length: self.values.len() })
    }
}

/// Replaces the parent ids of rows that have the value of the row before by the difference to that row's.
fn differences(parents: &mut [u16], values: &[ValueId]) {
    let mut before = None;
    for (parent, value) in parents.iter_mut().zip(values) {
        let absolute = *parent;
        if let Some((last, last_value)) = before
            && last_value == *value
        {
            // The parents of one value ascend.
            *parent = absolute - last;
        }
        before = Some((absolute, *value));
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
    fn append(&mut self, column: &Column, rows: &mut Rows) {
        self.column += 1;
        self.places.clear();
        let largest = column.values.iter().max().map_or(0, |largest| usize::try_from(*largest).unwrap_or(0));
        if self.of_value.len() <= largest {
            self.of_value.resize(largest + 1, (0, 0));
        }
        for value in &column.values {
            let (group, column) = &mut self.of_value[usize::try_from(*value).unwrap_or(0)];
            if *column != self.column {
                (*group, *column) = (u32::try_from(self.places.len()).unwrap_or(u32::MAX), self.column);
                self.places.push(0);
            }
            self.places[usize::try_from(*group).unwrap_or(0)] += 1;
        }
        let start = rows.parents.len();
        let mut next = start;
        for place in &mut self.places {
            let count = *place;
            *place = next;
            next += count;
        }
        rows.parents.resize(next, 0);
        rows.values.resize(next, 0);
        for (parent, value) in column.parents.iter().zip(&column.values) {
            let (group, _) = self.of_value[usize::try_from(*value).unwrap_or(0)];
            let place = &mut self.places[usize::try_from(group).unwrap_or(0)];
            rows.parents[*place] = *parent;
            rows.values[*place] = *value;
            *place += 1;
        }
    }
}
