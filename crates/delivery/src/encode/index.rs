//! The rows of a table by the ids of their parents.

use super::ids::Ids;

/// Numbers ids from 0 on.
#[derive(Debug)]
pub(crate) enum Slots {
    /// Ids are their own numbers.
    Dense(usize),
    /// Ids that are used, ascending: they lie too far apart to have a place each.
    Sparse(Vec<u32>),
}

impl Slots {
    /// For the ids of `count` rows.
    pub(crate) fn new(ids: impl Iterator<Item = u32> + Clone, count: usize) -> Self {
        let bound = ids.clone().max().map_or(0, |max| max as usize + 1);
        if bound <= count.saturating_mul(4) + 1_024 {
            return Self::Dense(bound);
        }
        let mut used: Vec<u32> = ids.collect();
        used.sort_unstable();
        used.dedup();
        Self::Sparse(used)
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Dense(bound) => *bound,
            Self::Sparse(used) => used.len(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<usize> {
        match self {
            Self::Dense(bound) => Some(id as usize).filter(|id| id < bound),
            Self::Sparse(used) => used.binary_search(&id).ok(),
        }
    }
}

/// Rows by parent, each parent's in their order.
#[derive(Debug)]
pub(crate) struct Children {
    slots: Slots,
    /// Where the rows of a slot begin; one more at the end.
    starts: Vec<u32>,
    /// Rows by slot; nothing if they stand in that order in the table.
    rows: Option<Vec<u32>>,
}

impl Children {
    /// Groups rows by their parents. Rows without a parent are left out.
    pub(crate) fn new(parents: &Ids<'_>) -> Self {
        let nulls = parents.nulls.as_ref();
        let valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
        let ids = parents.values.iter().enumerate().filter(|(row, _)| valid(*row)).map(|(_, id)| *id);
        let slots = Slots::new(ids.clone(), parents.values.len());
        let mut starts = vec![0_u32; slots.len() + 1];
        for slot in ids.clone().filter_map(|id| slots.get(id)) {
            starts[slot + 1] += 1;
        }
        let mut end = 0;
        for start in &mut starts {
            end += *start;
            *start = end;
        }
        if nulls.is_none() && parents.values.is_sorted() {
            return Self { slots, starts, rows: None };
        }
        let mut next = starts.clone();
        let mut rows = vec![0_u32; end as usize];
        for (row, id) in parents.values.iter().enumerate().filter(|(row, _)| valid(*row)) {
            if let Some(slot) = slots.get(*id) {
                rows[next[slot] as usize] = row as u32;
                next[slot] += 1;
            }
        }
        Self { slots, starts, rows: Some(rows) }
    }

    /// The rows of a parent, in their order.
    #[inline]
    pub(crate) fn of(&self, parent: u32) -> impl Iterator<Item = usize> + '_ {
        let range = match self.slots.get(parent) {
            Some(slot) => self.starts[slot] as usize..self.starts[slot + 1] as usize,
            None => 0..0,
        };
        self.by_place(range)
    }

    /// Number of slots that rows have been grouped into.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The rows of a slot.
    #[inline]
    pub(crate) fn slot(&self, slot: usize) -> impl Iterator<Item = usize> + '_ {
        self.by_place(self.starts[slot] as usize..self.starts[slot + 1] as usize)
    }

    #[inline]
    fn by_place(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = usize> + '_ {
        range.map(move |place| match &self.rows {
            Some(rows) => rows[place] as usize,
            None => place,
        })
    }

    /// The numbering of the parents, without the rows.
    pub(crate) fn into_slots(self) -> Slots {
        self.slots
    }
}
