//! Which numbers of which keys were accepted, and in which order.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

/// Keys that are followed. Memory is bounded by this and [`MAX_RANGES`].
const MAX_KEYS: usize = 10_000;
/// Ranges of numbers without a gap, over all keys: some 50 bytes each.
const MAX_RANGES: usize = 1_000_000;
/// Missing numbers that a report names for a key.
const MISSING_NAMED: usize = 10;

/// Which attributes tell the order of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderOptions {
    /// Attribute of each log record, data point or span with its key: items of one key have to arrive in order.
    pub key_attribute: String,
    /// Attribute with the number of the item within its key, an integer.
    pub sequence_attribute: String,
    /// The first number of each key.
    pub first: u64,
}

impl Default for OrderOptions {
    /// `key`, and `seq` from 0 on.
    fn default() -> Self {
        Self { key_attribute: "key".to_owned(), sequence_attribute: "seq".to_owned(), first: 0 }
    }
}

/// An item with a key and a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sink) struct Keyed {
    pub(in crate::sink) key: String,
    pub(in crate::sink) number: u64,
}

/// What became of the items of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyReport {
    /// The key.
    pub key: String,
    /// Items accepted, duplicates included.
    pub items: u64,
    /// Items accepted again.
    pub duplicates: u64,
    /// Items accepted for the first time after one with a higher number.
    pub out_of_order: u64,
    /// The highest number accepted.
    pub highest: Option<u64>,
    /// Numbers up to the highest that were neither accepted nor refused for good.
    pub missing: u64,
    /// The first of them.
    pub first_missing: Vec<u64>,
    /// Numbers refused for good and never accepted.
    pub refused_for_good: u64,
}

/// How an item counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accepted {
    InOrder,
    OutOfOrder,
    Duplicate,
    /// There is no room to follow it.
    Untracked,
}

/// All keys.
#[derive(Debug, Default)]
pub(super) struct Order {
    keys: HashMap<String, KeyOrder>,
    ranges: usize,
}

#[derive(Debug, Default)]
struct KeyOrder {
    accepted: Ranges,
    refused: Ranges,
    items: u64,
    duplicates: u64,
    out_of_order: u64,
}

impl Order {
    /// Takes an item that was stored.
    pub(super) fn accept(&mut self, item: &Keyed) -> Accepted {
        let Some(key) = self.room_for(&item.key) else {
            return Accepted::Untracked;
        };
        key.items += 1;
        let highest = key.accepted.highest();
        let Some(grown) = key.accepted.insert(item.number) else {
            key.duplicates += 1;
            return Accepted::Duplicate;
        };
        let late = highest.is_some_and(|highest| item.number < highest);
        key.out_of_order += u64::from(late);
        self.ranges = self.ranges.saturating_add_signed(grown);
        if late { Accepted::OutOfOrder } else { Accepted::InOrder }
    }

    /// Takes an item that will not come again.
    pub(super) fn refuse(&mut self, item: &Keyed) {
        if let Some(key) = self.room_for(&item.key) {
            let grown = key.refused.insert(item.number).unwrap_or_default();
            self.ranges = self.ranges.saturating_add_signed(grown);
        }
    }

    fn room_for(&mut self, name: &str) -> Option<&mut KeyOrder> {
        if self.ranges >= MAX_RANGES {
            return None;
        }
        if !self.keys.contains_key(name) {
            if self.keys.len() >= MAX_KEYS {
                return None;
            }
            let _ = self.keys.insert(name.to_owned(), KeyOrder::default());
        }
        self.keys.get_mut(name)
    }

    /// What became of each key, sorted by key.
    pub(super) fn report(&self, first: u64) -> Vec<KeyReport> {
        let mut keys: Vec<_> = self.keys.iter().map(|(name, key)| key.report(name, first)).collect();
        keys.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        keys
    }
}

impl KeyOrder {
    fn report(&self, key: &str, first: u64) -> KeyReport {
        let highest = self.accepted.highest();
        let (mut missing, mut first_missing) = (0, Vec::new());
        if let Some(highest) = highest {
            for (low, high) in gaps(first, highest, &self.accepted, &self.refused) {
                missing += high - low + 1;
                first_missing.extend((low..=high).take(MISSING_NAMED - first_missing.len()));
            }
        }
        // Counted by joining: what the refused numbers add to the accepted.
        let refused_for_good = self.refused.iter().map(|(low, high)| {
            let gaps = gaps(low, high, &self.accepted, &Ranges::default());
            gaps.iter().map(|(low, high)| high - low + 1).sum::<u64>()
        });
        KeyReport {
            key: key.to_owned(),
            items: self.items,
            duplicates: self.duplicates,
            out_of_order: self.out_of_order,
            highest,
            missing,
            first_missing,
            refused_for_good: refused_for_good.sum(),
        }
    }
}

/// The ranges of `low..=high` that neither of two sets has.
fn gaps(low: u64, high: u64, one: &Ranges, other: &Ranges) -> Vec<(u64, u64)> {
    let mut covered: Vec<(u64, u64)> = one.touching(low, high).chain(other.touching(low, high)).collect();
    covered.sort_unstable();
    let (mut gaps, mut next) = (Vec::new(), Some(low));
    for (from, to) in covered {
        let Some(at) = next else { break };
        if from > at {
            gaps.push((at, from - 1));
        }
        if to >= at {
            next = to.checked_add(1);
        }
    }
    if let Some(at) = next
        && at <= high
    {
        gaps.push((at, high));
    }
    gaps
}

/// A set of numbers, as ranges with gaps between them: first to last.
#[derive(Debug, Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds a number, and says by how many ranges the set has grown; none if it has the number.
    fn insert(&mut self, number: u64) -> Option<isize> {
        let before = self.0.range(..=number).next_back().map(|(low, high)| (*low, *high));
        if before.is_some_and(|(_, high)| high >= number) {
            return None;
        }
        let low = match before {
            Some((low, high)) if high + 1 == number => low,
            _ => number,
        };
        let after = number.checked_add(1).and_then(|next| self.0.remove(&next));
        let merged = isize::from(low != number) + isize::from(after.is_some());
        let _ = self.0.insert(low, after.unwrap_or(number));
        Some(1 - merged)
    }

    fn highest(&self) -> Option<u64> {
        self.0.last_key_value().map(|(_, high)| *high)
    }

    fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|(low, high)| (*low, *high))
    }

    /// The ranges with a number of `low..=high`.
    fn touching(&self, low: u64, high: u64) -> impl Iterator<Item = (u64, u64)> {
        let before = self.0.range(..low).next_back().filter(move |(_, last)| **last >= low);
        before.into_iter().chain(self.0.range(low..=high)).map(|(low, high)| (*low, *high))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn item(number: u64) -> Keyed {
        Keyed { key: "a".to_owned(), number }
    }

    /// Duplicates, late first acceptances, gaps, and what is refused for good.
    #[test]
    fn one_key() {
        let mut order = Order::default();
        let accepted = [1, 2, 5, 3, 5, 2, 9].map(|number| order.accept(&item(number)));
        use Accepted::{Duplicate, InOrder, OutOfOrder};
        assert_eq!(accepted, [InOrder, InOrder, InOrder, OutOfOrder, Duplicate, Duplicate, InOrder]);
        for number in [7, 3, 12] {
            order.refuse(&item(number));
        }
        let expected = KeyReport {
            key: "a".to_owned(),
            items: 7,
            duplicates: 2,
            out_of_order: 1,
            highest: Some(9),
            missing: 4,
            first_missing: vec![0, 4, 6, 8],
            refused_for_good: 2,
        };
        assert_eq!(order.report(0), [expected]);
        assert_eq!(order.report(1)[0].missing, 3);
    }

    /// More keys than there is room for are told apart.
    #[test]
    fn too_many_keys() {
        let mut order = Order::default();
        for number in 0..MAX_KEYS {
            let keyed = Keyed { key: number.to_string(), number: 0 };
            assert_eq!(order.accept(&keyed), Accepted::InOrder);
        }
        assert_eq!(order.accept(&Keyed { key: "one more".to_owned(), number: 0 }), Accepted::Untracked);
        assert_eq!(order.accept(&Keyed { key: "7".to_owned(), number: 0 }), Accepted::Duplicate);
    }

    proptest! {
        /// Ranges are a set, also at both ends of the numbers.
        #[test]
        fn ranges_are_a_set(numbers in prop::collection::vec(0_u64..40, 0..60), at_end in any::<bool>()) {
            let shift = if at_end { u64::MAX - 39 } else { 0 };
            let (mut ranges, mut set, mut count) = (Ranges::default(), BTreeSet::new(), 0);
            for number in numbers.into_iter().map(|number| number + shift) {
                let grown = ranges.insert(number);
                prop_assert_eq!(grown.is_some(), set.insert(number));
                count += grown.unwrap_or_default();
            }
            prop_assert_eq!(usize::try_from(count), Ok(ranges.0.len()));
            prop_assert!(ranges.iter().flat_map(|(low, high)| low..=high).eq(set.iter().copied()));
            let missing: Vec<_> = (shift + 3..=shift + 35).filter(|number| !set.contains(number)).collect();
            let gaps = gaps(shift + 3, shift + 35, &ranges, &Ranges::default());
            prop_assert!(gaps.into_iter().flat_map(|(low, high)| low..=high).eq(missing));
        }
    }
}
