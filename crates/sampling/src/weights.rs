//! What kept records stand for, each distinct weight once.

use rustc_hash::FxHashMap;

use crate::threshold::Threshold;

/// So many distinct thresholds are kept as they come; further ones move up to the grid of [`Threshold::on_grid`].
const MAX_EXACT: usize = 1024;

/// Names a [`Weight`] of one sampler, from its first use until the sampler ends. Small numbers, given out in order: good
/// as index of a column builder's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WeightId(u16);

impl WeightId {
    /// A record that stands for itself alone: nothing needs to be written.
    pub const ONE: Self = Self(0);

    /// Position among the weights of the sampler; 0 is [`WeightId::ONE`].
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// What is written on a kept record.
#[derive(Debug, Clone, PartialEq)]
pub struct Weight {
    threshold: Threshold,
    text: Box<str>,
    adjusted_count: f64,
}

impl Weight {
    fn new(threshold: Threshold) -> Self {
        Self { threshold, text: threshold.to_string().into(), adjusted_count: threshold.adjusted_count() }
    }

    /// The threshold that the record has passed.
    #[must_use]
    pub fn threshold(&self) -> Threshold {
        self.threshold
    }

    /// Value of `sampling.threshold`: hexadecimal digits without the zeros at the end; `0` if nothing was rejected.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Value of `sampling.adjusted_count`: how many records this one stands for, itself included.
    #[must_use]
    pub fn adjusted_count(&self) -> f64 {
        self.adjusted_count
    }
}

/// All weights that a sampler has given. Their number is bounded, whatever thresholds arrive: see [`Weights::admit`].
#[derive(Debug, Clone)]
pub(crate) struct Weights {
    list: Vec<Weight>,
    by_threshold: FxHashMap<Threshold, WeightId>,
}

impl Weights {
    pub(crate) fn new() -> Self {
        let mut weights = Self { list: Vec::new(), by_threshold: FxHashMap::default() };
        let _one = weights.add(Threshold::KEEP_ALL);
        weights
    }

    /// The weight of that id; of one that this sampler has not given, the weight 1.
    pub(crate) fn get(&self, id: WeightId) -> &Weight {
        self.list.get(id.index()).unwrap_or(&self.list[0])
    }

    /// The id of a threshold that is the configuration's, or on the grid: there are few.
    pub(crate) fn intern(&mut self, threshold: Threshold) -> WeightId {
        match self.by_threshold.get(&threshold) {
            Some(id) => *id,
            None => self.add(threshold),
        }
    }

    /// A threshold from outside. Once very many have been seen, a new one is raised to the next of the grid, so that
    /// nobody can fill the memory; the record is then to be tested against the threshold that is given.
    pub(crate) fn admit(&mut self, threshold: Threshold) -> (Threshold, WeightId) {
        if let Some(id) = self.by_threshold.get(&threshold) {
            return (threshold, *id);
        }
        let threshold = if self.list.len() < MAX_EXACT { threshold } else { threshold.on_grid() };
        (threshold, self.intern(threshold))
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    fn add(&mut self, threshold: Threshold) -> WeightId {
        // At most those of the configuration, the exact ones and the grid.
        let id = WeightId(u16::try_from(self.list.len()).unwrap_or(u16::MAX));
        self.list.push(Weight::new(threshold));
        let _none = self.by_threshold.insert(threshold, id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many thresholds come from outside, the table ends, and no threshold goes down.
    #[test]
    fn table_is_bounded() {
        let mut weights = Weights::new();
        for value in 0..200_000u64 {
            // Of all sizes, from those that keep nearly all to those that keep nearly nothing.
            let kept = value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8 >> (value % 56);
            let asked = Threshold::new((1 << 56) - 1 - kept).expect("56 bits");
            let (given, id) = weights.admit(asked);
            assert!(given >= asked);
            assert_eq!(weights.get(id).threshold(), given);
            assert_eq!(weights.intern(given), id);
        }
        assert!(weights.len() < MAX_EXACT + 3300, "{}", weights.len());
        assert!(weights.len() > MAX_EXACT + 3000, "{}", weights.len());
    }

    /// The weight 1 is there from the beginning.
    #[test]
    fn one() {
        let mut weights = Weights::new();
        assert_eq!(weights.intern(Threshold::KEEP_ALL), WeightId::ONE);
        let one = weights.get(WeightId::ONE);
        assert_eq!((one.text(), one.adjusted_count()), ("0", 1.0));
        assert_eq!(weights.get(WeightId(77)), one);
    }
}
