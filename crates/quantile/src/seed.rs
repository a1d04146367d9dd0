//! Random bits from a seed, and seeds for many sketches from one.
//!
//! A KLL sketch is unbiased only with fair bits that are independent between sketches. The bits
//! come from SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators",
//! 2014), which is small, quick and good enough for coins.

use std::hash::{Hash, Hasher};

/// Odd constant of SplitMix64: 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Seed of one sketch from the seed of the node, the hash of the series and its window.
///
/// `window` is anything that differs between the windows of a series, such as the start in
/// nanoseconds. The same three numbers give the same seed; a change in any of them gives bits that
/// are unrelated.
#[must_use]
pub fn derive(seed: u64, series_hash: u64, window: i64) -> u64 {
    let series = finish(seed.wrapping_add(GOLDEN)) ^ series_hash;
    finish(finish(series.wrapping_add(GOLDEN)) ^ window.cast_unsigned())
}

/// Hash of a series key that does not change between processes (FNV-1a, 64 bits), unlike that of a
/// `HashMap`. Only to derive seeds: it does not resist chosen collisions.
#[must_use]
pub fn stable_hash<K: Hash + ?Sized>(key: &K) -> u64 {
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    key.hash(&mut hasher);
    hasher.finish()
}

struct Fnv(u64);

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Output function of SplitMix64.
fn finish(mut state: u64) -> u64 {
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

/// A stream of fair coins.
#[derive(Debug, Clone)]
pub(crate) struct RandomBits {
    state: u64,
    /// Unused bits below a leading one, which marks where they end.
    cache: u64,
}

impl RandomBits {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: seed, cache: 1 }
    }

    /// A number that follows from the state, unlike any coins to come.
    pub(crate) fn fingerprint(&self) -> u64 {
        finish(!self.state ^ self.cache)
    }

    /// The next coin, 0 or 1.
    #[inline]
    pub(crate) fn next_bit(&mut self) -> usize {
        if self.cache == 1 {
            self.state = self.state.wrapping_add(GOLDEN);
            self.cache = finish(self.state) | 1 << 63;
        }
        let bit = self.cache & 1;
        self.cache >>= 1;
        bit as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coins(seed: u64, count: usize) -> Vec<usize> {
        let mut bits = RandomBits::new(seed);
        (0..count).map(|_| bits.next_bit()).collect()
    }

    /// Ones and pairs of neighbours are as frequent as fair coins make them, within 5 sigma.
    #[test]
    fn coins_are_fair_and_independent() {
        let count = 100_000;
        let coins = coins(7, count);
        let ones: usize = coins.iter().sum();
        let five_sigma = 5.0 * (count as f64 / 4.0).sqrt();
        assert!((ones as f64 - count as f64 / 2.0).abs() < five_sigma, "{ones}");
        for distance in [1, 2, 62, 63, 64] {
            let equal = coins.iter().zip(&coins[distance..]).filter(|(a, b)| a == b).count();
            let expected = (count - distance) as f64 / 2.0;
            assert!((equal as f64 - expected).abs() < five_sigma, "{distance}: {equal}");
        }
    }

    /// The same seed gives the same coins, another seed others.
    #[test]
    fn coins_follow_the_seed() {
        assert_eq!(coins(1, 200), coins(1, 200));
        assert_ne!(coins(1, 200), coins(2, 200));
    }

    /// A change of seed, series or window changes about half of the derived bits.
    #[test]
    fn derived_seeds_are_unrelated() {
        let base = derive(1, 2, 3);
        assert_eq!(base, derive(1, 2, 3));
        for other in [derive(2, 2, 3), derive(1, 3, 3), derive(1, 2, 4), derive(2, 1, 3)] {
            let changed = (base ^ other).count_ones();
            assert!((12..=52).contains(&changed), "{changed} bits differ");
        }
    }

    /// The hash of a key is a constant, so that seeds are the same in every process.
    #[test]
    fn stable_hash_is_a_constant() {
        assert_eq!(stable_hash(&b'a'), 0xaf63_dc4c_8601_ec8c);
        assert_ne!(stable_hash("a"), stable_hash("b"));
    }
}
