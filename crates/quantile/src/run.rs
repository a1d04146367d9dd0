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
//! | 6, 7 | 0 |
//! | 8..16 | number of values |
//! | 16..20 | CRC32C of bytes 0..16 and of all values |
//! | 20.. | values, 8 bytes each, ascending in the IEEE total order |

use crate::exact::ExactQuantiles;
use crate::key::{to_key, to_value};
use crate::rank::{self, Criterion, QuantileError};

const MAGIC: [u8; 4] = *b"CQRN";
const VERSION: u8 = 1;
const TYPE_DOUBLE: u8 = 1;
const CHECKED_HEADER: usize = 16;
const HEADER: usize = CHECKED_HEADER + size_of::<u32>();
const VALUE: usize = size_of::<f64>();

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
}

impl SortedRun {
    /// Sorts values; NaN are left out.
    #[must_use]
    pub fn from_values(values: &[f64]) -> Self {
        let numbers = values.iter().filter(|value| !value.is_nan());
        let mut keys: Vec<i64> = numbers.map(|&value| to_key(value)).collect();
        keys.sort_unstable();
        Self { keys }
    }

    /// Sorts all values of a collection.
    #[must_use]
    pub fn from_exact(exact: &ExactQuantiles) -> Self {
        let mut keys: Vec<i64> = exact.chunks().flatten().map(|&value| to_key(value)).collect();
        keys.sort_unstable();
        Self { keys }
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
    pub fn values(&self) -> impl ExactSizeIterator<Item = f64> {
        self.keys.iter().copied().map(to_value)
    }

    /// The bytes of the run: 20 and 8 for each value.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + self.len() * VALUE);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[VERSION, TYPE_DOUBLE, 0, 0]);
        bytes.extend_from_slice(&(self.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&[0; size_of::<u32>()]);
        for value in self.values() {
            bytes.extend_from_slice(&value.to_le_bytes());
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
        let &[m0, m1, m2, m3, version, kind, r0, r1, rest @ ..] = header;
        let [n0, n1, n2, n3, n4, n5, n6, n7, c0, c1, c2, c3] = rest;
        for (offset, field, expected, actual) in [
            (0, "magic", u32::from_le_bytes(MAGIC), u32::from_le_bytes([m0, m1, m2, m3])),
            (4, "version", VERSION.into(), version.into()),
            (5, "value type", TYPE_DOUBLE.into(), kind.into()),
            (6, "reserved", 0, u16::from_le_bytes([r0, r1]).into()),
        ] {
            if actual != expected {
                return Err(RunError::Field { offset, field, expected, actual });
            }
        }
        let count = u64::from_le_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
        let expected = count.saturating_mul(VALUE as u64).saturating_add(HEADER as u64);
        if expected != bytes.len() as u64 {
            return Err(length(expected));
        }
        let (expected, actual) = (checksum(bytes), u32::from_le_bytes([c0, c1, c2, c3]));
        if actual != expected {
            return Err(RunError::Checksum { expected, actual });
        }
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
        Ok(Self { keys })
    }
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
    let n = runs.iter().map(|run| run.len() as u64).sum();
    ranks
        .iter()
        .map(|&q| {
            let number = rank::number_of(q, n, Criterion::Inclusive)?;
            select(runs, number - 1).map(to_value).ok_or(QuantileError::Empty)
        })
        .collect()
}

/// The key at `index`, counted from zero, of all runs together.
fn select(runs: &[SortedRun], index: u64) -> Option<i64> {
    // What may still hold the key: in each run the part from one index to another.
    let mut parts: Vec<(usize, usize)> = runs.iter().map(|run| (0, run.len())).collect();
    loop {
        let candidates = parts.iter().zip(runs);
        let (&(begin, end), run) = candidates.max_by_key(|((begin, end), _)| end - begin)?;
        let pivot = *run.keys[begin..end].get((end - begin) / 2)?;
        // In each run the part that equals the pivot.
        let equal: Vec<(usize, usize)> = runs
            .iter()
            .zip(&parts)
            .map(|(run, &(begin, end))| {
                let part = &run.keys[begin..end];
                let less = part.partition_point(|&key| key < pivot);
                let equal = part[less..].partition_point(|&key| key == pivot);
                (begin + less, begin + less + equal)
            })
            .collect();
        let below: u64 = equal.iter().map(|&(first, _)| first as u64).sum();
        let up_to: u64 = equal.iter().map(|&(_, after)| after as u64).sum();
        if index < below {
            for (part, (first, _)) in parts.iter_mut().zip(equal) {
                part.1 = first;
            }
        } else if index >= up_to {
            for (part, (_, after)) in parts.iter_mut().zip(equal) {
                part.0 = after;
            }
        } else {
            return Some(pivot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run_of(values: &[f64]) -> SortedRun {
        SortedRun::from_values(values)
    }

    /// The bytes written out.
    #[test]
    fn bytes_of_two_values() {
        let run = run_of(&[2.0, f64::NAN, -1.0]);
        let bytes = run.to_bytes();
        assert_eq!(bytes[..16], *b"CQRN\x01\x01\0\0\x02\0\0\0\0\0\0\0");
        assert_eq!(bytes[20..28], (-1.0f64).to_le_bytes());
        assert_eq!(bytes[28..], 2.0f64.to_le_bytes());
        assert_eq!(SortedRun::from_bytes(&bytes), Ok(run));
    }

    /// Zeros keep their signs, infinities are values, an empty run is one.
    #[test]
    fn special_values_survive() {
        let run = run_of(&[0.0, f64::INFINITY, -0.0, f64::NEG_INFINITY]);
        let read = SortedRun::from_bytes(&run.to_bytes()).expect("own bytes");
        let bits: Vec<u64> = read.values().map(f64::to_bits).collect();
        let expected = [f64::NEG_INFINITY, -0.0, 0.0, f64::INFINITY];
        assert_eq!(bits, expected.map(f64::to_bits));
        assert_eq!((read.min(), read.max()), (Some(f64::NEG_INFINITY), Some(f64::INFINITY)));
        let empty = SortedRun::default();
        assert_eq!(SortedRun::from_bytes(&empty.to_bytes()), Ok(empty.clone()));
        assert_eq!(quantiles(&[empty], &[0.5]), Err(QuantileError::Empty));
        assert_eq!(quantiles(&[], &[0.5]), Err(QuantileError::Empty));
    }

    /// Any changed bit, any cut and anything behind the end is found.
    #[test]
    fn damage_is_found() {
        let bytes = run_of(&[1.0, 2.0, 3.0]).to_bytes();
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[place] ^= 1 << bit;
                assert!(SortedRun::from_bytes(&damaged).is_err(), "byte {place} bit {bit}");
            }
            assert!(SortedRun::from_bytes(&bytes[..place]).is_err());
        }
        assert!(SortedRun::from_bytes(&[bytes, vec![0]].concat()).is_err());
    }

    /// Values that were written out of order, or NaN, are found behind a right checksum.
    #[test]
    fn disorder_is_found() {
        for values in [[2.0, 1.0], [1.0, f64::NAN], [-f64::NAN, 1.0]] {
            let keys = values.map(to_key).to_vec();
            let error = SortedRun::from_bytes(&SortedRun { keys }.to_bytes());
            assert!(matches!(error, Err(RunError::Order { .. })), "{values:?}");
        }
    }

    /// A number of values beyond all memory is a wrong length.
    #[test]
    fn huge_count_is_refused() {
        let mut bytes = run_of(&[1.0]).to_bytes();
        bytes[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        let error = SortedRun::from_bytes(&bytes);
        assert!(matches!(error, Err(RunError::Length { .. })), "{error:?}");
    }

    proptest! {
        /// Selection over runs is selection over all values: empty runs, runs of one, equal values
        /// within and across runs, zeros of both signs.
        #[test]
        fn runs_together_are_all_values(
            parts in prop::collection::vec(prop::collection::vec(-6i32..6, 0..20), 1..8),
            ranks in prop::collection::vec(0.0f64..=1.0, 0..6),
        ) {
            let value = |&number: &i32| if number == 5 { -0.0 } else { f64::from(number) };
            let parts: Vec<Vec<f64>> =
                parts.iter().map(|part| part.iter().map(value).collect()).collect();
            let mut exact = ExactQuantiles::new(1000);
            parts.iter().for_each(|part| { exact.observe_slice(part); });
            let runs: Vec<SortedRun> = parts.iter().map(|part| run_of(part)).collect();
            let bits = |found: Result<Vec<f64>, _>| {
                found.map(|values| values.into_iter().map(f64::to_bits).collect::<Vec<_>>())
            };
            prop_assert_eq!(bits(quantiles(&runs, &ranks)), bits(exact.quantiles(&ranks)));
            let whole = SortedRun::from_exact(&exact);
            prop_assert_eq!(bits(quantiles(&[whole], &ranks)), bits(exact.quantiles(&ranks)));
        }

        /// Arbitrary bytes are refused or a run, without panic.
        #[test]
        fn arbitrary_bytes_are_no_danger(rest in prop::collection::vec(any::<u8>(), 0..80)) {
            let bytes = [&b"CQRN\x01\x01\0\0"[..], &rest].concat();
            if let Ok(run) = SortedRun::from_bytes(&bytes) {
                prop_assert_eq!(run.to_bytes(), bytes);
            }
        }
    }
}
