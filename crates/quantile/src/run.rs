//! Sorted runs: exact values on their way from one process to another.
//!
//! Each sender sorts what it has; the receiver finds any rank across all runs by bisection, in time
//! that grows with the logarithm of their length. Runs are never merged: that would touch every
//! value again.
//!
//! | bytes | content, little endian |
//! | --- | --- |
//! | 0..4 | `CQRN` |
//! | 4 | version, 1 |
//! | 5 | type of the values, 1: double |
//! | 6 | 0, or 1 if there are weights |
//! | 7 | 0 |
//! | 8..16 | number of values |
//! | 16..20 | CRC32C of bytes 0..16 and of all that follows |
//! | 20.. | values, 8 bytes each, ascending in the IEEE total order |
//! | then | weights, if any, 8 bytes each, at least 1 |
//!
//! A long run travels as several, see [`SortedRun::parts`]: each is complete in itself, and the
//! receiver need not put them together again.

mod select;

use crate::exact::ExactQuantiles;
use crate::exchange::Part;
use crate::key::{to_key, to_value};
use crate::kll::MAX_N;
use crate::rank::{self, Criterion, QuantileError};

const MAGIC: [u8; 4] = *b"CQRN";
const VERSION: u8 = 1;
const TYPE_DOUBLE: u8 = 1;
const CHECKED_HEADER: usize = 16;
const HEADER: usize = CHECKED_HEADER + size_of::<u32>();
const VALUE: usize = size_of::<f64>();
/// Flag of a run with weights.
const WEIGHTED: u8 = 1;
/// Values of a part: two mebibytes without weights, below the limits that transports have.
pub const MAX_PART_VALUES: usize = 256 * 1024;

/// Bytes that are not a sorted run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// Too short for the header, or not as long as the number of values asks for.
    #[error("sorted run must be {expected} bytes long, got {actual}")]
    Length {
        /// Length that the header asks for; that of the header if it is cut.
        expected: u64,
        /// Length of the bytes.
        actual: usize,
    },
    /// A field of the header has another value than the only one known.
    #[error("byte {offset}: {field} must be {expected:#x}, got {actual:#x}")]
    Field {
        /// Where the field begins.
        offset: usize,
        /// Name of the field.
        field: &'static str,
        /// The value known.
        expected: u32,
        /// What is there.
        actual: u32,
    },
    /// The bytes are not those that were written.
    #[error("byte 16: checksum must be {expected:#010x}, got {actual:#010x}")]
    Checksum {
        /// CRC32C of the bytes.
        expected: u32,
        /// What is there.
        actual: u32,
    },
    /// A weight is 0, or the weights add up to more than can be counted.
    #[error("byte {offset}: weight must be at least 1, and all together at most {MAX_N}")]
    Weight {
        /// Where the weight begins.
        offset: usize,
    },
    /// A value is NaN or less than the one before.
    #[error("byte {offset}: value must be a number that is not less than the one before")]
    Order {
        /// Where the value begins.
        offset: usize,
    },
}

/// Values in ascending order, NaN excluded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SortedRun {
    keys: Vec<i64>,
    /// Sums of the weights up to and including each value; empty if every weight is 1.
    cumulative: Vec<u64>,
}

impl SortedRun {
    /// Sorts values; NaN are left out.
    #[must_use]
    pub fn from_values(values: &[f64]) -> Self {
        let numbers = values.iter().filter(|value| !value.is_nan());
        let mut keys: Vec<i64> = numbers.map(|&value| to_key(value)).collect();
        keys.sort_unstable();
        Self { keys, cumulative: Vec::new() }
    }

    /// Sorts all values of a collection, with their weights if they have any.
    #[must_use]
    pub fn from_exact(exact: &ExactQuantiles) -> Self {
        let mut keys: Vec<i64> = exact.chunks().flatten().map(|&value| to_key(value)).collect();
        if exact.num_kept() == keys.len() as u64 {
            keys.sort_unstable();
            return Self { keys, cumulative: Vec::new() };
        }
        let ones = keys.into_iter().map(|key| (key, 1));
        let mut items: Vec<(i64, u64)> =
            ones.chain(exact.weighted().map(|(value, weight)| (to_key(value), weight))).collect();
        items.sort_unstable();
        let (keys, weights): (Vec<i64>, Vec<u64>) = items.into_iter().unzip();
        Self { keys, cumulative: sums(weights) }
    }

    /// Number of observations: the sum of the weights.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.weight_before(self.len())
    }

    /// The weights of the values before the one at `index`.
    fn weight_before(&self, index: usize) -> u64 {
        match index.checked_sub(1) {
            Some(last) => self.cumulative.get(last).copied().unwrap_or(index as u64),
            None => 0,
        }
    }

    /// The weight of each value, in their order.
    pub fn weights(&self) -> impl ExactSizeIterator<Item = u64> + Clone {
        (0..self.len()).map(|index| self.weight_before(index + 1) - self.weight_before(index))
    }

    /// The run in pieces of at most `most` values (at least 1), for transports with a limit on the
    /// message; [`MAX_PART_VALUES`] is a good number. An empty run is one empty part, which tells
    /// the receiver that there is nothing to wait for.
    pub fn parts(&self, most: usize) -> impl Iterator<Item = (Part, Self)> {
        let most = most.max(1);
        let of = self.len().div_ceil(most).max(1);
        (0..of).map(move |index| {
            let range = index * most..self.len().min((index + 1) * most);
            let before = self.weight_before(range.start);
            let cumulative = self.cumulative.get(range.clone()).unwrap_or_default();
            let piece = Self {
                keys: self.keys[range].to_vec(),
                cumulative: cumulative.iter().map(|sum| sum - before).collect(),
            };
            // More parts than 2^32 would need more memory than there is.
            (Part { index: index as u32, of: of as u32 }, piece)
        })
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The smallest value.
    #[must_use]
    pub fn min(&self) -> Option<f64> {
        self.keys.first().copied().map(to_value)
    }

    /// The largest value.
    #[must_use]
    pub fn max(&self) -> Option<f64> {
        self.keys.last().copied().map(to_value)
    }

    /// The values, ascending.
    pub fn values(&self) -> impl ExactSizeIterator<Item = f64> + Clone {
        self.keys.iter().copied().map(to_value)
    }

    /// The bytes of the run: 20 and 8 for each value, 16 if there are weights.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let weighted = !self.cumulative.is_empty();
        let mut bytes = Vec::with_capacity(HEADER + self.len() * item_bytes(weighted));
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[VERSION, TYPE_DOUBLE, u8::from(weighted), 0]);
        bytes.extend_from_slice(&(self.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&[0; size_of::<u32>()]);
        for value in self.values() {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        if weighted {
            for weight in self.weights() {
                bytes.extend_from_slice(&weight.to_le_bytes());
            }
        }
        let sum = checksum(&bytes).to_le_bytes();
        bytes[CHECKED_HEADER..HEADER].copy_from_slice(&sum);
        bytes
    }

    /// Reads the bytes of a run. Memory is that of the values, after their number is checked.
    ///
    /// # Errors
    ///
    /// [`RunError`] names the first thing that is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RunError> {
        let length = |expected| RunError::Length { expected, actual: bytes.len() };
        let (header, values) = bytes.split_first_chunk::<HEADER>().ok_or(length(HEADER as u64))?;
        let &[m0, m1, m2, m3, version, kind, flags, reserved, rest @ ..] = header;
        let [n0, n1, n2, n3, n4, n5, n6, n7, c0, c1, c2, c3] = rest;
        for (offset, field, expected, actual) in [
            (0, "magic", u32::from_le_bytes(MAGIC), u32::from_le_bytes([m0, m1, m2, m3])),
            (4, "version", VERSION.into(), version.into()),
            (5, "value type", TYPE_DOUBLE.into(), kind.into()),
            (6, "flags", u32::from(flags == WEIGHTED), flags.into()),
            (7, "reserved", 0, reserved.into()),
        ] {
            if actual != expected {
                return Err(RunError::Field { offset, field, expected, actual });
            }
        }
        let count = u64::from_le_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
        let weighted = flags == WEIGHTED;
        if weighted && count == 0 {
            return Err(RunError::Field { offset: 6, field: "flags", expected: 0, actual: flags.into() });
        }
        let expected = count.saturating_mul(item_bytes(weighted) as u64).saturating_add(HEADER as u64);
        if expected != bytes.len() as u64 {
            return Err(length(expected));
        }
        let (expected, actual) = (checksum(bytes), u32::from_le_bytes([c0, c1, c2, c3]));
        if actual != expected {
            return Err(RunError::Checksum { expected, actual });
        }
        let (values, weights) = values.split_at(count as usize * VALUE);
        let (values, _) = values.as_chunks::<VALUE>();
        let mut keys = Vec::with_capacity(values.len());
        let mut least = to_key(f64::NEG_INFINITY);
        for (index, &value) in values.iter().enumerate() {
            let value = f64::from_le_bytes(value);
            let key = to_key(value);
            if value.is_nan() || key < least {
                let offset = HEADER + index * VALUE;
                return Err(RunError::Order { offset });
            }
            least = key;
            keys.push(key);
        }
        let cumulative = read_weights(weights, bytes.len() - weights.len())?;
        Ok(Self { keys, cumulative })
    }
}

/// The sums of weights that begin at byte `begin` of a run.
fn read_weights(weights: &[u8], begin: usize) -> Result<Vec<u64>, RunError> {
    let (weights, _) = weights.as_chunks::<VALUE>();
    let mut cumulative = Vec::with_capacity(weights.len());
    let mut sum = 0u64;
    for (index, &weight) in weights.iter().enumerate() {
        let weight = u64::from_le_bytes(weight);
        let total = sum.checked_add(weight).filter(|total| weight > 0 && *total <= MAX_N);
        sum = total.ok_or(RunError::Weight { offset: begin + index * VALUE })?;
        cumulative.push(sum);
    }
    Ok(cumulative)
}

/// Sums of the weights up to and including each.
fn sums(mut weights: Vec<u64>) -> Vec<u64> {
    let mut sum = 0;
    for weight in &mut weights {
        sum += *weight;
        *weight = sum;
    }
    weights
}

/// Bytes of one value, with its weight if there are weights.
const fn item_bytes(weighted: bool) -> usize {
    if weighted { 2 * VALUE } else { VALUE }
}

/// CRC32C of all bytes of a run but the checksum itself.
fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..CHECKED_HEADER]), &bytes[HEADER..])
}

/// The exact quantiles of all values of all runs by inclusive nearest rank, in the order of
/// `ranks`. The order of the runs does not matter.
///
/// # Errors
///
/// [`QuantileError`] if there is no value or a rank is not in `0..=1`.
pub fn quantiles(runs: &[SortedRun], ranks: &[f64]) -> Result<Vec<f64>, QuantileError> {
    let n = runs.iter().fold(0, |sum: u64, run| sum.saturating_add(run.n()));
    let number = |&q: &f64| rank::number_of(q, n, Criterion::Inclusive);
    if let [a, b] = runs
        && a.cumulative.is_empty()
        && b.cumulative.is_empty()
    {
        // No more values than there is memory.
        let key = |number| select::of_two(&a.keys, &b.keys, number as usize).ok_or(QuantileError::Empty);
        return ranks.iter().map(|q| Ok(to_value(key(number(q)?)?))).collect();
    }
    let numbers = ranks.iter().map(number).collect::<Result<Vec<u64>, _>>()?;
    let mut ascending: Vec<usize> = (0..numbers.len()).collect();
    ascending.sort_unstable_by_key(|&at| numbers[at]);
    let mut selection = select::Selection::new(runs);
    let mut found = vec![0.0; numbers.len()];
    for at in ascending {
        let key = selection.key_at(u128::from(numbers[at]) - 1).ok_or(QuantileError::Empty)?;
        found[at] = to_value(key);
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
