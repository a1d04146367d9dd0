//! A map of which copies are cheap, so that a snapshot can be taken after every change.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, LazyLock};

use hashbrown::{DefaultHashBuilder, HashMap};

/// Parts of a map, and leaves of a part.
const PARTS: usize = 32;

/// None, or [`PARTS`] of them.
type Parts<T> = Vec<Arc<T>>;

/// Entries; with the most facts that a session may have, some 16 of them.
type Leaf<K, V> = HashMap<K, V>;

/// Finds the leaf of a key. Whoever sends keys cannot tell which of them share one.
static PLACES: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// Map in parts that copies share until one of them changes. A change copies the list of parts, one part and one leaf if
/// somebody still looks at them, and never more.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SnapshotMap<K: Eq + Hash, V> {
    parts: Arc<Parts<Parts<Leaf<K, V>>>>,
    length: usize,
}

impl<K: Eq + Hash, V> Default for SnapshotMap<K, V> {
    fn default() -> Self {
        Self { parts: Arc::default(), length: 0 }
    }
}

impl<K: Eq + Hash + Clone, V: Clone> SnapshotMap<K, V> {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.parts.iter().flat_map(|part| part.iter()).flat_map(|leaf| leaf.iter())
    }

    pub(super) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let (part, leaf) = place_of(key);
        self.parts.get(part)?.get(leaf)?.get(key)
    }

    /// Puts an entry in; gives whether its key was not there before.
    pub(super) fn insert(&mut self, key: K, value: V) -> bool {
        let new = self.leaf(&key).is_some_and(|leaf| leaf.insert(key, value).is_none());
        self.length += usize::from(new);
        new
    }

    /// Takes an entry out; gives whether it was there.
    pub(super) fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        if self.get(key).is_none() {
            return false;
        }
        let _: Option<V> = self.leaf(key).and_then(|leaf| leaf.remove(key));
        self.length -= 1;
        true
    }

    /// The leaf of a key, to be changed.
    fn leaf<Q: Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut Leaf<K, V>> {
        let (part, leaf) = place_of(key);
        one_of(one_of(Arc::make_mut(&mut self.parts), part)?, leaf)
    }
}

/// One part, to be changed.
fn one_of<T: Clone + Default>(parts: &mut Parts<T>, number: usize) -> Option<&mut T> {
    if parts.is_empty() {
        parts.resize(PARTS, Arc::default());
    }
    parts.get_mut(number).map(Arc::make_mut)
}

/// The part and the leaf that a key belongs to. With some seeds some bits of a hash hardly differ; the highest bits of a
/// product depend on all of them.
fn place_of<Q: Hash + ?Sized>(key: &Q) -> (usize, usize) {
    const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;
    let place = usize::try_from(PLACES.hash_one(key).wrapping_mul(GOLDEN_RATIO) >> 54).unwrap_or_default();
    (place / PARTS, place % PARTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy keeps what was there; the map itself goes on, and counts right.
    #[test]
    fn copies_stay_as_they_were() {
        let mut map = SnapshotMap::default();
        for key in 0..200_u64 {
            assert!(map.insert(key, key));
        }
        let copy = map.clone();
        assert!(!map.insert(7, 70) && map.insert(900, 1));
        assert!(map.remove(&8) && !map.remove(&8));
        assert_eq!((copy.get(&7), copy.get(&8), copy.get(&900), copy.len()), (Some(&7), Some(&8), None, 200));
        assert_eq!((map.get(&7), map.get(&8), map.get(&900), map.len()), (Some(&70), None, Some(&1), 200));
        assert_eq!(map.iter().count(), map.len());
    }

    /// A change to one entry copies the leaf it is in, and shares all others.
    #[test]
    fn a_change_copies_one_leaf() {
        let mut map = SnapshotMap::default();
        for key in 0..5_000_u64 {
            let _ = map.insert(key, 0);
        }
        let copy = map.clone();
        assert!(Arc::ptr_eq(&map.parts, &copy.parts));
        let _ = map.insert(3, 1);
        let leaves = |map: &SnapshotMap<u64, i32>| -> Vec<Arc<Leaf<u64, i32>>> {
            map.parts.iter().flat_map(|part| part.iter().cloned()).collect()
        };
        let (one, other) = (leaves(&map), leaves(&copy));
        let copied: Vec<usize> =
            one.iter().zip(&other).filter(|(one, other)| !Arc::ptr_eq(one, other)).map(|(one, _)| one.len()).collect();
        assert_eq!((one.len(), copied.len()), (PARTS * PARTS, 1));
        assert!(copied[0] < 64, "{} entries in one leaf", copied[0]);
    }

    /// Keys that a fixed hash sends to one place are spread all the same.
    #[test]
    fn chosen_keys_are_spread() {
        // The multiplier of the hash that maps of this project have for keys that nobody chooses, and its inverse.
        const MULTIPLIER: u64 = 0xf135_7aea_2e62_a9c5;
        let inverse = (0..6).fold(MULTIPLIER, |inverse: u64, _| {
            inverse.wrapping_mul(2_u64.wrapping_sub(MULTIPLIER.wrapping_mul(inverse)))
        });
        assert_eq!(MULTIPLIER.wrapping_mul(inverse), 1);
        let mut map = SnapshotMap::default();
        for number in 0..4_096_u64 {
            assert!(map.insert(number.wrapping_mul(inverse), ()));
        }
        let largest = map.parts.iter().flat_map(|part| part.iter()).map(|leaf| leaf.len()).max();
        assert!(largest < Some(64), "{largest:?} of 4096 in one leaf");
    }
}
