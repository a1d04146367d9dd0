//! Which of `n` ascending values a quantile is.
//!
//! The two definitions are those of Apache DataSketches. *Inclusive* is the classic nearest rank:
//! the smallest value whose cumulative count reaches `q n`. *Exclusive* is the first value with
//! more than `q n` values at or before it.

/// How a normalised rank `q` in `0..=1` chooses one of `n` ascending values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Criterion {
    /// Number `ceil(q n)`, counted from one: nearest rank.
    #[default]
    Inclusive,
    /// Number `floor(q n) + 1`, counted from one.
    Exclusive,
}

/// Why there is no quantile.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum QuantileError {
    /// No value has been observed.
    #[error("no quantile of zero observations")]
    Empty,
    /// The rank is NaN or outside `0..=1`.
    #[error("quantile rank must be between 0 and 1, got {rank}")]
    Rank {
        /// The rank asked for.
        rank: f64,
    },
}

/// Checks a rank.
///
/// # Errors
///
/// [`QuantileError::Rank`] if it is NaN or outside `0..=1`.
pub fn check(q: f64) -> Result<(), QuantileError> {
    if (0.0..=1.0).contains(&q) { Ok(()) } else { Err(QuantileError::Rank { rank: q }) }
}

/// The number, counted from one, of the value that `q` chooses among `n` ascending values.
///
/// A product `q n` within a few units in the last place of a whole number is taken as that number:
/// 0.07 of 100 values is number 7, although `0.07 * 100.0` is slightly more than 7 in doubles.
///
/// # Errors
///
/// [`QuantileError::Rank`] if `q` is NaN or outside `0..=1`, [`QuantileError::Empty`] if `n` is 0.
pub fn number_of(q: f64, n: u64, criterion: Criterion) -> Result<u64, QuantileError> {
    check(q)?;
    if n == 0 {
        return Err(QuantileError::Empty);
    }
    if q == 1.0 {
        // Beyond 2^53 the product is rounded, and the last of all values need not be it.
        return Ok(n);
    }
    let product = q * n as f64;
    let whole = product.round();
    let product = if (product - whole).abs() <= 2.0 * f64::EPSILON * whole { whole } else { product };
    let number = match criterion {
        Criterion::Inclusive => product.ceil() as u64,
        Criterion::Exclusive => (product.floor() as u64).saturating_add(1),
    };
    Ok(number.clamp(1, n))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ends, the middle, and one step to each side of a boundary.
    #[test]
    fn numbers_by_both_criteria() {
        let inclusive = |q, n| number_of(q, n, Criterion::Inclusive);
        let exclusive = |q, n| number_of(q, n, Criterion::Exclusive);
        assert_eq!(inclusive(0.0, 10), Ok(1));
        assert_eq!(inclusive(0.1, 10), Ok(1));
        assert_eq!(inclusive(0.100001, 10), Ok(2));
        assert_eq!(inclusive(0.5, 10), Ok(5));
        assert_eq!(inclusive(0.5, 11), Ok(6));
        assert_eq!(inclusive(1.0, 10), Ok(10));
        assert_eq!(exclusive(0.0, 10), Ok(1));
        assert_eq!(exclusive(0.0999, 10), Ok(1));
        assert_eq!(exclusive(0.1, 10), Ok(2));
        assert_eq!(exclusive(1.0, 10), Ok(10));
        assert_eq!(inclusive(0.99, 1), Ok(1));
        assert_eq!(inclusive(1.0, u64::MAX), Ok(u64::MAX));
        assert_eq!(inclusive(1.0, (1 << 60) + 1), Ok((1 << 60) + 1));
    }

    /// Every percentage of 100 values is the value of that number, whatever doubles make of it.
    #[test]
    fn percentages_of_a_hundred_are_exact() {
        for percent in 1..=100u32 {
            let q = f64::from(percent) / 100.0;
            assert_eq!(number_of(q, 100, Criterion::Inclusive), Ok(u64::from(percent)), "{percent} %");
            let thousand = u64::from(percent) * 10;
            assert_eq!(number_of(q, 1000, Criterion::Inclusive), Ok(thousand));
        }
    }

    /// Ranks outside 0..=1 are named in the error; an empty stream has no quantile.
    #[test]
    fn bad_ranks_are_refused() {
        for rank in [-0.001, 1.001, f64::INFINITY] {
            assert_eq!(number_of(rank, 5, Criterion::Inclusive), Err(QuantileError::Rank { rank }));
        }
        assert!(number_of(f64::NAN, 5, Criterion::Inclusive).is_err());
        assert_eq!(number_of(0.5, 0, Criterion::Inclusive), Err(QuantileError::Empty));
    }
}
