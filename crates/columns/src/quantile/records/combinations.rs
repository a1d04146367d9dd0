//! Combinations of values that came in earlier batches.
//!
//! Each value of a grouping attribute has a small number among those of its attribute. The bits of these numbers side by
//! side are an index into a table of series. So with few values of each attribute a combination that came before costs one
//! look-up, whatever the number of attributes.

use crate::quantile::intern::Interner;

/// The most bits of an index: the table takes a mebibyte then.
const MAX_BITS: u32 = 18;
/// Not there.
const NONE: u32 = u32::MAX;

/// The numbers of the values of one attribute.
#[derive(Debug, Default)]
struct Values {
    /// By the number of the value in the interner.
    numbers: Vec<u32>,
    count: u32,
}

impl Values {
    fn number(&mut self, value: u32) -> u32 {
        let at = value as usize;
        if self.numbers.len() <= at {
            self.numbers.resize(at + 1, NONE);
        }
        let number = &mut self.numbers[at];
        if *number == NONE {
            *number = self.count;
            self.count += 1;
        }
        *number
    }

    /// Bits that a number takes.
    const fn bits(&self) -> u32 {
        u32::BITS - self.count.saturating_sub(1).leading_zeros()
    }
}

/// Series by combinations of values.
#[derive(Debug, Default)]
pub(super) struct Combinations {
    /// Of the numbers of values and series.
    generation: u64,
    keys: Vec<Values>,
    /// Bits of each key.
    bits: Vec<u32>,
    /// Number of the series of each combination.
    series: Vec<u32>,
    /// There are too many, until numbers are given anew.
    too_many: bool,
}

impl Combinations {
    /// Begins a batch with the distinct values of each attribute in it. Whether combinations can be looked up; `places` is
    /// then, for each attribute and value, what [`Combinations::series`] wants the sum of.
    pub(super) fn begin<'v>(
        &mut self,
        interner: &Interner,
        values: impl Iterator<Item = &'v [u32]> + Clone,
        places: &mut Vec<Vec<u32>>,
    ) -> bool {
        if self.generation != interner.generation() {
            *self = Self { generation: interner.generation(), ..Self::default() };
        }
        if self.too_many {
            return false;
        }
        places.resize_with(values.clone().count(), Vec::new);
        self.keys.resize_with(places.len(), Values::default);
        for ((key, values), places) in self.keys.iter_mut().zip(values).zip(places.iter_mut()) {
            places.clear();
            places.extend(values.iter().map(|value| key.number(*value)));
        }
        if self.keys.iter().zip(&self.bits).any(|(key, bits)| key.bits() > *bits) || self.series.is_empty() {
            self.bits = self.keys.iter().map(Values::bits).collect();
            let bits: u32 = self.bits.iter().sum();
            if bits > MAX_BITS {
                *self = Self { generation: self.generation, too_many: true, ..Self::default() };
                return false;
            }
            // What was known is soon learned again.
            self.series.clear();
            self.series.resize(1 << bits, NONE);
        }
        let mut shift = 0;
        for (places, bits) in places.iter_mut().zip(&self.bits) {
            places.iter_mut().for_each(|place| *place <<= shift);
            shift += bits;
        }
        true
    }

    /// How many places there are.
    pub(super) fn len(&self) -> usize {
        self.series.len()
    }

    /// The series at a place; if it is not known, what `learn` gives.
    #[inline]
    pub(super) fn series(&mut self, place: u32, learn: impl FnOnce() -> u32) -> u32 {
        let series = &mut self.series[place as usize];
        if *series == NONE {
            *series = learn();
        }
        *series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places of combinations do not meet, as values come and the table grows; with too many values there are none.
    #[test]
    fn each_combination_has_a_place() {
        let interner = Interner::new(2, 10);
        let (mut combinations, mut places) = (Combinations::default(), Vec::new());
        for count in [1, 3, 9, 400] {
            let (a, b): (Vec<u32>, Vec<u32>) = ((0..count).collect(), (5..5 + count / 2 + 1).collect());
            assert!(combinations.begin(&interner, [&a[..], &b[..]].into_iter(), &mut places));
            for round in 0..2 {
                let mut expected = 0;
                for a in &places[0] {
                    for b in &places[1] {
                        let found = combinations.series(a + b, || if round == 0 { expected } else { NONE });
                        assert_eq!(found, expected);
                        expected += 1;
                    }
                }
            }
        }
        let many: Vec<u32> = (0..1_025).collect();
        assert!(!combinations.begin(&interner, [&many[..], &many[..]].into_iter(), &mut places));
        assert!(!combinations.begin(&interner, [&[1][..], &[1][..]].into_iter(), &mut places));
        assert_eq!(combinations.len(), 0);
    }
}
