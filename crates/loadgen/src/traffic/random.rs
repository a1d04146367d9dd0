//! Pseudo-random numbers that are the same everywhere and in every release.

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). Not for secrets.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number of `low..=high`; `low` when the range is empty.
    pub(crate) fn range(&mut self, low: u64, high: u64) -> u64 {
        let width = high.saturating_sub(low).saturating_add(1);
        // The high half of the product spreads 64 random bits over the width.
        let scaled = (u128::from(self.bits()) * u128::from(width)) >> 64;
        low + scaled as u64
    }

    /// One of `items`, which must not be empty.
    pub(crate) fn choice<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.range(0, items.len() as u64 - 1) as usize]
    }

    /// A number of at least `scale` with a long tail: doubled again and again, with a chance of one half each time, at
    /// most `doublings` times, then spread evenly up to the next doubling.
    pub(crate) fn long_tail(&mut self, scale: u64, doublings: u32) -> u64 {
        let low = scale << self.bits().trailing_zeros().min(doublings);
        self.range(low, 2 * low - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are those of the published algorithm for seed 1234567.
    #[test]
    fn known_numbers() {
        let mut random = Random::new(1_234_567);
        let numbers = [(); 3].map(|()| random.bits());
        assert_eq!(numbers, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    /// Ranges hold both their ends and nothing beyond; the tail is long but bounded.
    #[test]
    fn ranges() {
        let mut random = Random::new(1);
        let seen: std::collections::BTreeSet<u64> = (0..1_000).map(|_| random.range(5, 8)).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [5, 6, 7, 8]);
        let tail: Vec<u64> = (0..10_000).map(|_| random.long_tail(64, 10)).collect();
        assert!(tail.iter().all(|n| (64..64 << 11).contains(n)));
        assert!(tail.iter().any(|n| *n > 64 << 8));
        assert!(tail.iter().filter(|n| **n < 128).count() > 4_500);
    }
}
