//! From the rows of an attributes table to the parents that they belong to.

use std::ops::Range;

use arrow::array::{Array, DictionaryArray, RecordBatch, UInt8Array, UInt16Array, UInt32Array};
use arrow::datatypes::{UInt8Type, UInt16Type};
use otel_arrow_dfe_pdata::schema::consts;
use rustc_hash::FxHashMap;

use super::malformed;
use crate::ColumnsError;
use crate::quantile::observations::index;

/// No row: nobody's parent, or no attribute.
pub(super) const NO_ROW: u32 = u32::MAX;

/// From the id of a parent to its number, which is its row in the parent table unless ids are the numbers.
pub(super) enum Parents {
    /// Ids below this are their own numbers.
    Ids(usize),
    /// By id.
    Dense(Vec<u32>, usize),
    Sparse(FxHashMap<u32, u32>, usize),
}

impl Parents {
    /// Numbers the rows of a table whose ids are these; `None` is a row without children. Memory is bounded by the
    /// number of rows, whatever the ids are.
    pub(super) fn new(ids: impl ExactSizeIterator<Item = Option<u32>> + Clone) -> Self {
        let rows = ids.len();
        let mut in_order = true;
        let mut greatest = 0;
        for (row, id) in ids.clone().enumerate() {
            in_order &= id == Some(index(row));
            greatest = greatest.max(id.map_or(0, |id| id as usize));
        }
        let numbered = ids.enumerate().filter_map(|(row, id)| Some((id?, index(row))));
        if in_order {
            Self::Ids(rows)
        } else if greatest < 4 * rows + 1024 {
            let mut dense = vec![NO_ROW; greatest + 1];
            for (id, row) in numbered {
                dense[id as usize] = row;
            }
            Self::Dense(dense, rows)
        } else {
            Self::Sparse(numbered.collect(), rows)
        }
    }

    /// Puts rows into the slots of their parents, whose ids are given.
    pub(super) fn put(&self, rows: Range<usize>, ids: &[u32], of: &ParentIds<'_>, slots: &mut [u32]) {
        let mask = of.mask();
        for (row, id) in rows.zip(ids).filter(|(row, _)| of.at(*row).is_some()) {
            let id = id & mask;
            let parent = match self {
                Self::Ids(_) => id,
                Self::Dense(dense, _) => dense.get(id as usize).copied().unwrap_or(NO_ROW),
                Self::Sparse(sparse, _) => sparse.get(&id).copied().unwrap_or(NO_ROW),
            };
            if let Some(slot) = slots.get_mut(parent as usize) {
                *slot = index(row);
            }
        }
    }

    pub(super) const fn len(&self) -> usize {
        match self {
            Self::Ids(rows) | Self::Dense(_, rows) | Self::Sparse(_, rows) => *rows,
        }
    }
}

/// Parent ids, 16 or 32 bits wide, plain or by dictionary.
pub(super) enum ParentIds<'a> {
    Narrow(&'a UInt16Array),
    Wide(&'a UInt32Array),
    Byte(&'a UInt8Array, &'a UInt32Array),
    Short(&'a UInt16Array, &'a UInt32Array),
}

/// Puts the rows of stretches into the slots of their parents, of the attribute that each stretch is of.
pub(super) struct Join<'s, S> {
    pub(super) slots: &'s mut [Vec<u32>],
    pub(super) stretches: S,
}

impl<S: Iterator<Item = (usize, Range<usize>)>> Join<'_, S> {
    /// `parent` gives the number of the parent of a row, or anything that is none.
    #[inline]
    fn run(self, parent: impl Fn(usize) -> u32) {
        for (wanted, rows) in self.stretches {
            let slots = &mut self.slots[wanted];
            for row in rows {
                if let Some(slot) = slots.get_mut(parent(row) as usize) {
                    *slot = index(row);
                }
            }
        }
    }

    #[inline]
    fn by_id(self, parents: &Parents, id: impl Fn(usize) -> u32) {
        match parents {
            Parents::Ids(_) => self.run(id),
            Parents::Dense(dense, _) => self.run(|row| dense.get(id(row) as usize).copied().unwrap_or(NO_ROW)),
            Parents::Sparse(sparse, _) => self.run(|row| sparse.get(&id(row)).copied().unwrap_or(NO_ROW)),
        }
    }
}

impl<'a> ParentIds<'a> {
    pub(super) fn new(batch: &'a RecordBatch) -> Result<Self, ColumnsError> {
        let column = batch
            .column_by_name(consts::PARENT_ID)
            .ok_or_else(|| malformed("attributes", "column `parent_id` is missing"))?;
        let any = column.as_any();
        let ids = |values: &'a dyn Array| values.as_any().downcast_ref::<UInt32Array>();
        let found = if let Some(ids) = any.downcast_ref::<UInt16Array>() {
            Some(Self::Narrow(ids))
        } else if let Some(ids) = any.downcast_ref::<UInt32Array>() {
            Some(Self::Wide(ids))
        } else if let Some(column) = any.downcast_ref::<DictionaryArray<UInt8Type>>() {
            ids(column.values()).map(|values| Self::Byte(column.keys(), values))
        } else if let Some(column) = any.downcast_ref::<DictionaryArray<UInt16Type>>() {
            ids(column.values()).map(|values| Self::Short(column.keys(), values))
        } else {
            None
        };
        found.ok_or_else(|| malformed("attributes", format!("column `parent_id` of type {}", column.data_type())))
    }

    /// The id of a row as it stands there.
    #[inline]
    fn at(&self, row: usize) -> Option<u32> {
        let keyed = |keys: Option<usize>, ids: &UInt32Array| {
            keys.filter(|at| *at < ids.len() && ids.is_valid(*at)).map(|at| ids.value(at))
        };
        match self {
            Self::Narrow(ids) => ids.is_valid(row).then(|| ids.value(row).into()),
            Self::Wide(ids) => ids.is_valid(row).then(|| ids.value(row)),
            Self::Byte(keys, ids) => keyed(keys.is_valid(row).then(|| keys.value(row).into()), ids),
            Self::Short(keys, ids) => keyed(keys.is_valid(row).then(|| keys.value(row).into()), ids),
        }
    }

    /// The bits of an id.
    const fn mask(&self) -> u32 {
        if matches!(self, Self::Narrow(_)) { u16::MAX as u32 } else { u32::MAX }
    }

    /// The ids of rows as they stand there; 0 for null.
    pub(super) fn copy(&self, rows: Range<usize>, into: &mut Vec<u32>) {
        into.clear();
        match self {
            Self::Narrow(ids) => into.extend(ids.values()[rows].iter().map(|id| u32::from(*id))),
            Self::Wide(ids) => into.extend_from_slice(&ids.values()[rows]),
            _ => into.extend(rows.map(|row| self.at(row).unwrap_or(0))),
        }
    }

    /// Joins rows to their parents. A row whose parent is null has none.
    pub(super) fn dispatch<S: Iterator<Item = (usize, Range<usize>)>>(&self, parents: &Parents, join: Join<'_, S>) {
        let keyed = |values: &UInt32Array, at: usize| if at < values.len() { values.value(at) } else { NO_ROW };
        match self {
            Self::Narrow(ids) if ids.null_count() == 0 => join.by_id(parents, |row| u32::from(ids.value(row))),
            Self::Wide(ids) if ids.null_count() == 0 => join.by_id(parents, |row| ids.value(row)),
            Self::Byte(keys, ids) if keys.null_count() == 0 && ids.null_count() == 0 => {
                join.by_id(parents, |row| keyed(ids, usize::from(keys.value(row))));
            }
            Self::Short(keys, ids) if keys.null_count() == 0 && ids.null_count() == 0 => {
                join.by_id(parents, |row| keyed(ids, usize::from(keys.value(row))));
            }
            Self::Narrow(ids) => {
                join.by_id(parents, |row| if ids.is_valid(row) { u32::from(ids.value(row)) } else { NO_ROW })
            }
            Self::Wide(ids) => join.by_id(parents, |row| if ids.is_valid(row) { ids.value(row) } else { NO_ROW }),
            Self::Byte(keys, ids) => join.by_id(parents, |row| {
                let key = usize::from(keys.value(row));
                if keys.is_valid(row) && ids.is_valid(key) { keyed(ids, key) } else { NO_ROW }
            }),
            Self::Short(keys, ids) => join.by_id(parents, |row| {
                let key = usize::from(keys.value(row));
                if keys.is_valid(row) && ids.is_valid(key) { keyed(ids, key) } else { NO_ROW }
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids in order, with gaps, far apart, and absent.
    #[test]
    fn parents_are_numbered_by_row() {
        let number = |ids: &[Option<u32>], id: u32| {
            let parents = Parents::new(ids.iter().copied());
            let mut slots = vec![NO_ROW; parents.len()];
            let join = Join { slots: std::slice::from_mut(&mut slots), stretches: [(0, 0..1)].into_iter() };
            join.by_id(&parents, |_| id);
            slots.iter().position(|slot| *slot == 0)
        };
        assert_eq!(number(&[Some(0), Some(1), Some(2)], 2), Some(2));
        assert_eq!(number(&[Some(0), Some(1), Some(2)], 3), None);
        assert_eq!(number(&[Some(5), None, Some(3)], 3), Some(2));
        assert_eq!(number(&[Some(5), None, Some(3)], 4), None);
        assert_eq!(number(&[Some(4_000_000_000), Some(1)], 4_000_000_000), Some(0));
        assert_eq!(number(&[Some(4_000_000_000), Some(1)], 0), None);
    }
}
