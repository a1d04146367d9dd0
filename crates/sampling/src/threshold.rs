//! The numbers of consistent probability sampling (OpenTelemetry, "TraceState: Probability Sampling"): a record is kept
//! if its randomness is not below the threshold.

use std::fmt;

use crate::hex;

/// Both numbers have so many bits.
const BITS: u32 = 56;
/// What a probability of 1 is in units of the least one.
const ALL: u64 = 1 << BITS;
/// Hexadecimal digits of a number.
const DIGITS: usize = 14;
/// Significant bits of a probability on the grid: 64 steps from one power of two to the next.
const GRID_BITS: u32 = 7;

/// How many of 2^56 records are rejected: `th` of `tracestate`, 0 to 2^56 - 1. That nothing is kept is no probability,
/// and no threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Threshold(u64);

impl Threshold {
    /// Rejects nothing: probability 1.
    pub const KEEP_ALL: Self = Self(0);

    /// The threshold of that value; `None` from 2^56 on.
    #[must_use]
    pub fn new(value: u64) -> Option<Self> {
        (value < ALL).then_some(Self(value))
    }

    /// The threshold for keeping with a probability of 2^-56 to 1, rounded to the nearest; `None` for any other number.
    #[must_use]
    pub fn from_probability(probability: f64) -> Option<Self> {
        let in_range = (1.0 / ALL as f64..=1.0).contains(&probability);
        // Exact for all but the smallest: a power of two times a number of 53 bits.
        in_range.then(|| Self(ALL - (probability * ALL as f64).round() as u64))
    }

    /// Reads 1 to 14 lower-case hexadecimal digits; those that are not written are zeros at the end.
    #[must_use]
    pub fn from_hex(digits: &[u8]) -> Option<Self> {
        leading_digits(digits).map(Self)
    }

    /// The number itself.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }

    /// The probability of keeping a record.
    #[must_use]
    pub fn probability(self) -> f64 {
        (ALL - self.0) as f64 / ALL as f64
    }

    /// How many records a kept one stands for: 2^56 / (2^56 - th), at least 1.
    #[must_use]
    pub fn adjusted_count(self) -> f64 {
        ALL as f64 / (ALL - self.0) as f64
    }

    /// Whether a record of this randomness is kept.
    #[inline]
    #[must_use]
    pub fn admits(self, randomness: Randomness) -> bool {
        randomness.0 >= self.0
    }

    /// The lowest threshold of the grid that is not below this one. There are less than 3,300 on the grid, each up to
    /// 1.6 % of the probability from the next.
    pub(crate) fn on_grid(self) -> Self {
        let kept = ALL - self.0;
        let below = (u64::BITS - kept.leading_zeros()).saturating_sub(GRID_BITS);
        Self(ALL - (kept >> below << below))
    }

    /// The threshold of half the probability, on the grid.
    pub(crate) fn halved_on_grid(self) -> Self {
        let kept = ((ALL - self.0) / 2).max(1);
        Self(ALL - kept).on_grid()
    }
}

/// As in `tracestate`, and in the attribute `sampling.threshold`: hexadecimal digits without the zeros at the end, of
/// which one stays if there is nothing else.
impl fmt::Display for Threshold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zeros = (self.0.trailing_zeros() / 4).min(DIGITS as u32 - 1);
        let width = DIGITS - zeros as usize;
        write!(formatter, "{:0width$x}", self.0 >> (4 * zeros))
    }
}

/// A number from 0 to 2^56 - 1, as likely as any other: `rv` of `tracestate`, the end of a trace id, or a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Randomness(u64);

impl Randomness {
    /// The low 56 bits of a number: of the low half of a trace id, for one.
    #[inline]
    #[must_use]
    pub fn from_low_bits(number: u64) -> Self {
        Self(number & (ALL - 1))
    }

    /// Reads exactly 14 lower-case hexadecimal digits.
    #[must_use]
    pub fn from_hex(digits: &[u8]) -> Option<Self> {
        if digits.len() == DIGITS { leading_digits(digits).map(Self) } else { None }
    }

    /// The number itself.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

/// Up to 14 lower-case hexadecimal digits, from the highest on.
fn leading_digits(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > DIGITS {
        return None;
    }
    let value = digits.iter().try_fold(0, |value: u64, digit| Some(value << 4 | u64::from(hex::one(*digit)?)))?;
    Some(value << (4 * (DIGITS - digits.len())))
}

#[cfg(test)]
mod tests;
