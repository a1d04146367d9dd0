//! New ids for the rows of a batch that may be put together of several: they ascend from 0 on, row by row.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt16Array, UInt32Array};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use hashbrown::HashMap;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::consts;

use crate::encode::error::EncodeError;
use crate::encode::ids::Ids;

/// New ids by old ones, for one part.
#[derive(Debug, Clone)]
pub(super) enum IdMap {
    /// `count` ids from 0 on, which become those from `start` on.
    Shifted {
        /// The first new id.
        start: u32,
        /// How many there are.
        count: u32,
    },
    /// Each on its own.
    Each(HashMap<u32, u32>),
    /// Groups, of which one that was taken apart has several.
    Groups(HashMap<u32, Vec<u32>>),
}

impl IdMap {
    /// No ids at all.
    pub(super) fn none() -> Self {
        Self::Shifted { start: 0, count: 0 }
    }

    /// How many ids there are, if all stay as they are.
    pub(super) fn identity(&self) -> Option<u32> {
        match self {
            Self::Shifted { start: 0, count } => Some(*count),
            _ => None,
        }
    }

    /// Calls `each` for the new ids of an old one.
    #[inline]
    pub(super) fn for_each(&self, old: u32, mut each: impl FnMut(u32)) {
        match self {
            Self::Shifted { start, count } if old < *count => each(start + old),
            Self::Shifted { .. } => {}
            Self::Each(map) => map.get(&old).into_iter().for_each(|new| each(*new)),
            Self::Groups(map) => map.get(&old).into_iter().flatten().for_each(|new| each(*new)),
        }
    }
}

/// New ids in the order of rows.
#[derive(Debug, Default)]
pub(super) struct NewIds {
    /// Differences to the row before.
    differences: Vec<u32>,
    valid: Vec<bool>,
    next: u32,
    has_nulls: bool,
}

impl NewIds {
    /// Numbers the rows of a part that are in `order`, or all. Rows without an id get none.
    pub(super) fn number(
        &mut self,
        table: ArrowPayloadType,
        ids: Option<&Ids<'_>>,
        order: Option<&[u32]>,
        rows: usize,
    ) -> Result<IdMap, EncodeError> {
        let Some(ids) = ids else {
            self.differences.resize(self.differences.len() + rows, 0);
            self.valid.resize(self.valid.len() + rows, false);
            self.has_nulls |= rows > 0;
            return Ok(IdMap::none());
        };
        let start = self.next;
        let row_at = |place: usize| order.map_or(place, |order| order[place] as usize);
        let mut is_sequence = true;
        for place in 0..rows {
            let id = ids.get(row_at(place));
            self.differences.push(u32::from(id.is_some() && self.next > 0));
            self.valid.push(id.is_some());
            self.has_nulls |= id.is_none();
            if let Some(id) = id {
                is_sequence &= id == self.next - start;
                self.next += 1;
            }
        }
        if is_sequence {
            return Ok(IdMap::Shifted { start, count: self.next - start });
        }
        let mut map = HashMap::default();
        let numbered = (0..rows).filter_map(|place| Some((row_at(place), ids.get(row_at(place))?)));
        for (new, (row, old)) in (start..).zip(numbered) {
            if map.insert(old, new).is_some() {
                return Err(EncodeError::Value {
                    table,
                    column: consts::ID,
                    row,
                    found: format!("id {old} again"),
                    expected: "each id once",
                });
            }
        }
        Ok(IdMap::Each(map))
    }

    /// The column, in 16 or 32 bits.
    pub(super) fn column(self, is_narrow: bool) -> ArrayRef {
        let nulls = self.has_nulls.then(|| NullBuffer::from(self.valid));
        column(self.differences, nulls, is_narrow)
    }
}

/// A column of ids in 16 or 32 bits.
pub(super) fn column(values: Vec<u32>, nulls: Option<NullBuffer>, is_narrow: bool) -> ArrayRef {
    if is_narrow {
        let narrow: Vec<u16> = values.iter().map(|value| *value as u16).collect();
        return Arc::new(UInt16Array::new(ScalarBuffer::from(narrow), nulls));
    }
    Arc::new(UInt32Array::new(ScalarBuffer::from(values), nulls))
}

/// Turns ids into differences to the row before where `is_difference`. They have to ascend there.
pub(super) fn differences(ids: &mut [u32], is_difference: impl Fn(usize) -> bool) {
    for row in (1..ids.len()).rev() {
        if is_difference(row) {
            ids[row] = ids[row].wrapping_sub(ids[row - 1]);
        }
    }
}
