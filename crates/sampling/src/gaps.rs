//! How many records are dropped before the next one is kept: one number instead of a decision for each.

use crate::threshold::Threshold;

/// A stream of 64-bit numbers: SplitMix64 of a seed and a running number.
#[derive(Debug, Clone)]
pub(crate) struct Draws {
    state: u64,
}

impl Draws {
    /// The stream of that seed. Each `path` is another stream, not related to the others.
    pub(crate) fn new(seed: u64, path: &[u64]) -> Self {
        Self { state: path.iter().fold(mix(seed), |state, step| mix(state ^ mix(*step))) }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }
}

/// The increment of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of SplitMix64.
fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

/// Which records of a stream are kept.
#[derive(Debug, Clone)]
pub(crate) struct Gaps {
    /// Records to be dropped before the next is kept.
    left: u64,
    spacing: Spacing,
}

#[derive(Debug, Clone)]
enum Spacing {
    /// Each record by itself. Gaps are geometric: P(gap >= n) = (1 - p)^n.
    Random { draws: Draws, per_log: f64 },
    /// Every (1/p)th on average: a record is kept when the sum of the probabilities passes another whole number.
    Systematic { kept: u64, phase: u64 },
}

/// A probability of 1 in the units of [`Spacing::Systematic`].
const WHOLE: u64 = 1 << 56;

impl Gaps {
    /// Records drawn independently of each other.
    pub(crate) fn random(draws: Draws, threshold: Threshold) -> Self {
        let mut gaps = Self { left: 0, spacing: Spacing::Random { draws, per_log: per_log(threshold) } };
        gaps.left = gaps.next();
        gaps
    }

    /// Records at even distances, from a random one on.
    pub(crate) fn systematic(mut draws: Draws, threshold: Threshold) -> Self {
        let spacing = Spacing::Systematic { kept: WHOLE - threshold.get(), phase: draws.next() >> 8 };
        let mut gaps = Self { left: 0, spacing };
        gaps.left = gaps.next();
        gaps
    }

    /// From the next record on another probability. Random gaps have no memory: the rest of the gap is drawn anew.
    pub(crate) fn change(&mut self, threshold: Threshold) {
        match &mut self.spacing {
            Spacing::Random { per_log: current, .. } => *current = per_log(threshold),
            Spacing::Systematic { kept, .. } => *kept = WHOLE - threshold.get(),
        }
        self.left = self.next();
    }

    /// How many of the next records are dropped.
    #[inline]
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Decides on at least one and up to `most` records: so many are all dropped, or one is kept.
    #[inline(always)]
    pub(crate) fn take(&mut self, most: u64) -> (u64, bool) {
        if self.left == 0 {
            self.left = self.next();
            return (1, true);
        }
        let dropped = self.left.min(most);
        self.left -= dropped;
        (dropped, false)
    }

    #[inline(never)]
    fn next(&mut self) -> u64 {
        match &mut self.spacing {
            Spacing::Random { draws, per_log } => {
                // From 2^-53 to 1, never zero.
                let uniform = ((draws.next() >> 11) + 1) as f64 * (-53f64).exp2();
                (uniform.ln() * *per_log) as u64
            }
            Spacing::Systematic { kept, phase } => {
                let steps = (WHOLE - *phase).div_ceil(*kept);
                // The sum that reaches the whole exceeds it by less than one step.
                *phase = phase.wrapping_add(steps.wrapping_mul(*kept)).wrapping_sub(WHOLE);
                steps - 1
            }
        }
    }
}

/// 1 / ln(1 - p). Zero for p = 1, which makes every gap zero.
fn per_log(threshold: Threshold) -> f64 {
    (-threshold.probability()).ln_1p().recip()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threshold(probability: f64) -> Threshold {
        Threshold::from_probability(probability).expect("a probability")
    }

    fn kept(gaps: &mut Gaps, records: u64) -> u64 {
        (0..records).filter(|_| gaps.take(1).1).count() as u64
    }

    /// Records up to the next that is kept, without it.
    fn gap(gaps: &mut Gaps) -> f64 {
        match gaps.take(u64::MAX) {
            (_, true) => 0.0,
            (dropped, false) => {
                assert_eq!(gaps.take(1), (1, true));
                dropped as f64
            }
        }
    }

    /// Random gaps keep the share asked for, within four standard deviations.
    #[test]
    fn random_share() {
        let records = 400_000;
        for (seed, probability) in [(1, 0.9), (2, 0.5), (3, 0.1), (4, 0.01), (5, 0.001)] {
            let kept = kept(&mut Gaps::random(Draws::new(seed, &[]), threshold(probability)), records) as f64;
            let (mean, variance) = (probability * records as f64, probability * (1.0 - probability) * records as f64);
            assert!((kept - mean).abs() < 4.0 * variance.sqrt(), "{probability}: {kept}");
        }
    }

    /// Gaps are geometric: the chance of none is p, and the variance is (1 - p) / p^2.
    #[test]
    fn random_gaps_are_geometric() {
        let (probability, draws) = (0.2, 100_000);
        let mut gaps = Gaps::random(Draws::new(9, &[1, 2]), threshold(probability));
        let all: Vec<f64> = (0..draws).map(|_| gap(&mut gaps)).collect();
        let mean = all.iter().sum::<f64>() / f64::from(draws);
        let variance = all.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / f64::from(draws);
        let none = all.iter().filter(|gap| **gap == 0.0).count() as f64 / f64::from(draws);
        assert!((none - 0.2).abs() < 0.006, "{none}");
        assert!((mean - 4.0).abs() < 0.06, "{mean}");
        assert!((variance - 20.0).abs() < 1.0, "{variance}");
    }

    /// Systematic draws are never off by a whole record, and any phase is as likely as any other.
    #[test]
    fn systematic_is_even() {
        let mut first = [0u32; 10];
        for seed in 0..1000 {
            let mut gaps = Gaps::systematic(Draws::new(seed, &[]), threshold(0.1));
            first[gap(&mut gaps.clone()) as usize] += 1;
            for records in [1000, 1, 17, 40_000] {
                let found = kept(&mut gaps, records) as f64;
                assert!((found - 0.1 * records as f64).abs() < 1.0 + 1e-6, "{seed} {records} {found}");
            }
        }
        assert!(first.iter().all(|count| (60..140).contains(count)), "{first:?}");
    }

    /// Batches cut the stream anywhere and change nothing.
    #[test]
    fn batches_change_nothing() {
        let fresh = [
            Gaps::random(Draws::new(3, &[]), threshold(0.03)),
            Gaps::systematic(Draws::new(3, &[]), threshold(0.03)),
            Gaps::random(Draws::new(3, &[]), threshold(1.0)),
        ];
        for mut one_by_one in fresh {
            let mut batched = one_by_one.clone();
            let mut sizes = Draws::new(4, &[]);
            let mut expected = Vec::new();
            let mut found = Vec::new();
            for record in 0..10_000u64 {
                if one_by_one.take(1).1 {
                    expected.push(record);
                }
            }
            let mut at = 0;
            while at < 10_000 {
                let (records, kept) = batched.take((1 + sizes.next() % 100).min(10_000 - at));
                if kept {
                    found.push(at);
                }
                at += records;
            }
            assert_eq!(found, expected);
        }
    }

    /// The smallest probability does not overflow, and the largest drops nothing.
    #[test]
    fn extremes() {
        let least = Threshold::new(WHOLE - 1).expect("a threshold");
        for mut gaps in [Gaps::random(Draws::new(1, &[]), least), Gaps::systematic(Draws::new(1, &[]), least)] {
            assert_eq!(gaps.take(1_000_000), (1_000_000, false));
            let _far = gaps.take(u64::MAX);
            let _farther = gaps.take(u64::MAX);
        }
        for mut gaps in [
            Gaps::random(Draws::new(1, &[]), Threshold::KEEP_ALL),
            Gaps::systematic(Draws::new(1, &[]), Threshold::KEEP_ALL),
        ] {
            assert_eq!(kept(&mut gaps, 1000), 1000);
        }
    }
}
