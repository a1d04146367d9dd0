//! The numbers, their times and their series.

use std::num::{NonZeroU32, NonZeroU64};

use crate::traffic::DEFAULT_START_UNIX_NANO;

/// Name of the metric of all points.
pub const METRIC_NAME: &str = "bench.latency";
/// Attributes that tell series apart.
pub const SERIES_KEYS: [&str; 3] = ["service.name", "host.name", "http.route"];
/// Time of a window in event time.
const WINDOW_NANOS: u64 = 10_000_000_000;

/// The observations of one source: latencies in seconds, of which every 20th is ten times as long as the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corpus {
    /// Number of the source; those of different sources are different.
    pub source: u64,
    /// Observations.
    pub count: u64,
    /// Observations of a window of 10 s of event time, over which they are spread evenly.
    pub window: NonZeroU64,
    /// Attribute sets over which observations are spread.
    pub series: NonZeroU32,
}

impl Default for Corpus {
    /// A million observations of source 0 in windows of 65,536, all of one series.
    fn default() -> Self {
        let window = NonZeroU64::MIN.saturating_add(65_535);
        Self { source: 0, count: 1_000_000, window, series: NonZeroU32::MIN }
    }
}

impl Corpus {
    /// The value of an observation, counted from 0: `1.0 + 0.4 u` where the number of the observation over all sources,
    /// counted from 1, is divisible by 20, else `0.005 + 0.1 u`. `u` is a fraction of 53 bits out of a hash of that number.
    #[must_use]
    pub fn value(&self, index: u64) -> f64 {
        let number = self.source.wrapping_mul(self.count).wrapping_add(index).wrapping_add(1);
        let fraction = (mixed(number) >> 11) as f64 / (1_u64 << 53) as f64;
        if number.is_multiple_of(20) { 1.0 + 0.4 * fraction } else { 0.005 + 0.1 * fraction }
    }

    /// The series of an observation: a hash, so that they come in no order.
    #[must_use]
    pub fn series_of(&self, index: u64) -> u32 {
        (mixed(!index) % u64::from(self.series.get())) as u32
    }

    /// Values of the attributes [`SERIES_KEYS`] of a series, all of the same length. They take the cube root of the number
    /// of series as their number of values each.
    #[must_use]
    pub fn series_attributes(&self, series: u32) -> [String; 3] {
        let mut base = 1;
        while base * base * base < u64::from(self.series.get()) {
            base += 1;
        }
        let series = u64::from(series);
        let (first, second, third) = (series % base, series / base % base, series / base / base);
        [format!("svc-{first:04}"), format!("node-{second:06}"), format!("/item/{third:04}")]
    }

    /// Windows with at least one observation.
    #[must_use]
    pub fn windows(&self) -> u64 {
        self.count.div_ceil(self.window.get())
    }

    /// Begin of a window, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn window_start(&self, window: u64) -> u64 {
        DEFAULT_START_UNIX_NANO + window * WINDOW_NANOS
    }

    /// Observations of a window, by their positions.
    #[must_use]
    pub fn window_indices(&self, window: u64) -> std::ops::Range<u64> {
        let size = self.window.get();
        (window * size).min(self.count)..((window + 1) * size).min(self.count)
    }

    /// Time of an observation, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn time(&self, index: u64) -> u64 {
        let size = self.window.get();
        let within = u128::from(index % size) * u128::from(WINDOW_NANOS) / u128::from(size);
        // Less than the length of a window.
        self.window_start(index / size) + within as u64
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn corpus(count: u64, window: u64, series: u32) -> Corpus {
        let window = NonZeroU64::new(window).unwrap();
        Corpus { source: 0, count, window, series: NonZeroU32::new(series).unwrap() }
    }

    /// The hash is that of the published generator for seed 0, and a value is made of its upper 53 bits.
    #[test]
    fn values() {
        // The first output of SplitMix64 seeded with 0 is the hash of 0, and that of 1 is the first for seed 1.
        assert_eq!(mixed(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mixed(1), 0x910a_2dec_8902_5cc1);
        let corpus = corpus(1_000, 100, 1);
        let fraction = (0x910a_2dec_8902_5cc1_u64 >> 11) as f64 / 9_007_199_254_740_992.0;
        assert_eq!(corpus.value(0), 0.005 + 0.1 * fraction);
        let long: Vec<u64> = (0..100).filter(|index| corpus.value(*index) >= 1.0).collect();
        assert_eq!(long, [19, 39, 59, 79, 99]);
        assert!(
            (0..1_000).map(|index| corpus.value(index)).all(|v| (0.005..0.105).contains(&v) || (1.0..1.4).contains(&v))
        );
        // Sources follow one another.
        let next = Corpus { source: 1, ..corpus };
        assert_eq!(next.value(0), Corpus { count: 2_000, ..corpus }.value(1_000));
    }

    /// Every series has its own attributes, of one size, and is met.
    #[test]
    fn series() {
        let corpus = corpus(20_000, 100, 1_000);
        let all: BTreeSet<_> = (0..1_000).map(|series| corpus.series_attributes(series)).collect();
        assert_eq!(all.len(), 1_000);
        assert!(all.iter().all(|set| set.each_ref().map(String::len) == [8, 11, 10]));
        let values = |at: usize| all.iter().map(|set| &set[at]).collect::<BTreeSet<_>>().len();
        assert_eq!([values(0), values(1), values(2)], [10; 3]);
        let met: BTreeSet<u32> = (0..20_000).map(|index| corpus.series_of(index)).collect();
        assert_eq!(met.len(), 1_000);
        assert_eq!(corpus.series_attributes(123), ["svc-0003", "node-000002", "/item/0001"].map(str::to_owned));
    }

    /// Times rise within a window and never leave it; the last window may be short.
    #[test]
    fn windows() {
        let corpus = corpus(250, 100, 1);
        assert_eq!(corpus.windows(), 3);
        assert_eq!(corpus.window_indices(2), 200..250);
        for window in 0..3 {
            let times: Vec<u64> = corpus.window_indices(window).map(|index| corpus.time(index)).collect();
            assert_eq!(times[0], corpus.window_start(window));
            assert!(times.is_sorted() && times[times.len() - 1] < corpus.window_start(window + 1));
        }
        assert_eq!(corpus.time(150), DEFAULT_START_UNIX_NANO + 15_000_000_000);
    }
}
