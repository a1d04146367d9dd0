//! Values to measure with, and what is true of them.

use catchment_quantile::seed;

use super::Wrong;

/// Kinds of streams: four distributions, three orders and two multiplicities that have broken sketches before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Uniform,
    Normal,
    Pareto,
    Bimodal,
    Sorted,
    Reverse,
    ZigZag,
    Constant,
    FewDistinct,
}

impl Stream {
    pub(super) const ALL: [Self; 9] = [
        Self::Uniform,
        Self::Normal,
        Self::Pareto,
        Self::Bimodal,
        Self::Sorted,
        Self::Reverse,
        Self::ZigZag,
        Self::Constant,
        Self::FewDistinct,
    ];

    /// Its part of the names of cases.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Normal => "normal",
            Self::Pareto => "pareto",
            Self::Bimodal => "bimodal",
            Self::Sorted => "sorted",
            Self::Reverse => "reverse",
            Self::ZigZag => "zig-zag",
            Self::Constant => "constant",
            Self::FewDistinct => "few-distinct",
        }
    }

    /// Whether so few values are equal that a quantile can have the wrong rank at all.
    pub(super) fn is_smooth(self) -> bool {
        !matches!(self, Self::Constant | Self::FewDistinct)
    }

    /// The `n` values of a stream, always the same, and others than those that other streams are made of.
    pub(super) fn values(self, n: usize) -> Vec<f64> {
        let salt = 1 + self as u64;
        let value = |i: usize| match self {
            Self::Uniform => uniform(i, salt),
            Self::Normal => {
                let radius = (-2.0 * uniform(i, salt).max(1e-300).ln()).sqrt();
                radius * (std::f64::consts::TAU * uniform(i, !salt)).cos()
            }
            Self::Pareto => (1.0 - uniform(i, salt)).powf(-1.0 / 1.1),
            Self::Bimodal if i.is_multiple_of(20) => 1.0 + uniform(i, salt),
            Self::Bimodal => uniform(i, salt) / 10.0,
            Self::Sorted => i as f64,
            Self::Reverse => (n - i) as f64,
            Self::ZigZag if i.is_multiple_of(2) => i as f64,
            Self::ZigZag => (2 * n - i) as f64,
            Self::Constant => 3.0,
            Self::FewDistinct => (uniform(i, salt) * 5.0).floor(),
        };
        (0..n).map(value).collect()
    }
}

/// A uniform number in 0..1 for each index and salt.
fn uniform(index: usize, salt: u64) -> f64 {
    (seed::derive(salt, index as u64, 0) >> 11) as f64 / (1u64 << 53) as f64
}

/// All values in order.
#[derive(Debug, Clone)]
pub(super) struct Truth(Vec<f64>);

impl Truth {
    pub(super) fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        Self(values)
    }

    /// The exact quantile: of `n` values the one with the number `ceil(q n)`, counted from one.
    pub(super) fn quantile(&self, q: f64) -> f64 {
        self.at((q * self.0.len() as f64).ceil() - 1.0)
    }

    fn at(&self, index: f64) -> f64 {
        self.0[(index.max(0.0) as usize).min(self.0.len() - 1)]
    }

    /// How far the rank `q` is outside the ranks that `found` has, as a fraction of all; negative if `found` is too small.
    pub(super) fn rank_error(&self, found: f64, q: f64) -> f64 {
        let n = self.0.len() as f64;
        let below = self.0.partition_point(|&other| other < found) as f64 / n;
        let up_to = self.0.partition_point(|&other| other <= found) as f64 / n;
        (below - q).max(0.0) + (up_to - q).min(0.0)
    }

    /// Whether there are `n` values.
    pub(super) fn check_count(&self, n: u64) -> Result<(), Wrong> {
        let expected = self.0.len() as u64;
        if n == expected { Ok(()) } else { Err(Wrong::Count { found: n, expected }) }
    }

    /// Whether `found` has the rank `q`, give or take `bound`.
    pub(super) fn check_rank(&self, q: f64, found: f64, bound: f64) -> Result<(), Wrong> {
        if self.rank_error(found, q).abs() <= bound { Ok(()) } else { Err(Wrong::Quantile { q, found }) }
    }

    /// Whether `found` is the quantile, give or take one value and then a share `bound` of it.
    pub(super) fn check_value(&self, q: f64, found: f64, bound: f64) -> Result<(), Wrong> {
        let index = (q * self.0.len() as f64).ceil() - 1.0;
        let (low, high) = (self.at(index - 1.0), self.at(index + 1.0));
        let (low, high) = (low - bound * low.abs(), high + bound * high.abs());
        if (low..=high).contains(&found) { Ok(()) } else { Err(Wrong::Quantile { q, found }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every stream has as many values as asked for, none of them NaN, and the same again.
    #[test]
    fn streams() {
        for stream in Stream::ALL {
            let values = stream.values(1_000);
            assert!(values.len() == 1_000 && values.iter().all(|value| value.is_finite()), "{stream:?}");
            assert_eq!(values, stream.values(1_000));
            let mut distinct = values;
            distinct.sort_by(f64::total_cmp);
            distinct.dedup();
            assert_eq!(distinct.len() > 900, stream.is_smooth(), "{stream:?}");
        }
    }

    /// Ranks of values that are there once, several times, and not at all.
    #[test]
    fn ranks() {
        let truth = Truth::of(vec![4.0, 1.0, 2.0, 2.0, 2.0, 3.0, 5.0, 6.0, 7.0, 8.0]);
        assert_eq!([0.0, 0.1, 0.11, 0.4, 1.0].map(|q| truth.quantile(q)), [1.0, 1.0, 2.0, 2.0, 8.0]);
        assert_eq!([0.1, 0.25, 0.4].map(|q| truth.rank_error(2.0, q)), [0.0; 3]);
        assert!((truth.rank_error(2.0, 0.5) + 0.1).abs() < 1e-9);
        assert!((truth.rank_error(7.5, 0.5) - 0.4).abs() < 1e-9);
        assert!(truth.check_rank(0.5, 2.0, 0.11).is_ok() && truth.check_rank(0.5, 2.0, 0.09).is_err());
        assert!(truth.check_value(0.5, 4.04, 0.01).is_ok() && truth.check_value(0.5, 4.1, 0.01).is_err());
        assert!(truth.check_count(10).is_ok() && truth.check_count(9).is_err());
    }
}
