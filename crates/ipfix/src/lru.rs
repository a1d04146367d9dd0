//! A map that knows which entry was not used for longest.

use std::hash::Hash;

use hashbrown::HashMap;

/// "No entry" in the chain of entries.
const NONE: usize = usize::MAX;

/// Map with a chain from the entry used last to the one used longest ago. All operations take constant time.
#[derive(Debug)]
pub(crate) struct LruMap<K, V> {
    index: HashMap<K, usize>,
    entries: Vec<Entry<K, V>>,
    newest: usize,
    oldest: usize,
}

#[derive(Debug)]
struct Entry<K, V> {
    key: K,
    value: V,
    newer: usize,
    older: usize,
}

impl<K: Copy + Eq + Hash, V> LruMap<K, V> {
    pub(crate) fn new() -> Self {
        Self { index: HashMap::default(), entries: Vec::new(), newest: NONE, oldest: NONE }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Entries in no order of use.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|entry| (&entry.key, &entry.value))
    }

    /// Finds an entry and leaves it where it is in the order of use.
    pub(crate) fn peek(&self, key: &K) -> Option<&V> {
        self.entries.get(*self.index.get(key)?).map(|entry| &entry.value)
    }

    /// The entry that was not used for longest.
    pub(crate) fn oldest(&self) -> Option<(&K, &V)> {
        self.entries.get(self.oldest).map(|entry| (&entry.key, &entry.value))
    }

    /// Entries in no order of use, to be changed; that is no use of them.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries.iter_mut().map(|entry| &mut entry.value)
    }

    /// Finds an entry and makes it the one used last.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let place = *self.index.get(key)?;
        if place != self.newest {
            self.unchain(place);
            self.chain_newest(place);
        }
        self.entries.get_mut(place).map(|entry| &mut entry.value)
    }

    /// Puts an entry in as the one used last; gives the value it replaces.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(present) = self.get_mut(&key) {
            return Some(std::mem::replace(present, value));
        }
        let place = self.entries.len();
        self.entries.push(Entry { key, value, newer: NONE, older: NONE });
        let _: Option<usize> = self.index.insert(key, place);
        self.chain_newest(place);
        None
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let place = self.index.remove(key)?;
        self.unchain(place);
        let removed = self.entries.swap_remove(place);
        // The last entry has moved to the free place: whoever pointed at it has to follow.
        if let Some(moved) = self.entries.get(place) {
            let (key, newer, older) = (moved.key, moved.newer, moved.older);
            let _: Option<usize> = self.index.insert(key, place);
            self.set_older_of(newer, place);
            self.set_newer_of(older, place);
        }
        Some(removed.value)
    }

    /// Takes out the entry that was not used for longest.
    pub(crate) fn pop_oldest(&mut self) -> Option<(K, V)> {
        let key = self.entries.get(self.oldest)?.key;
        self.remove(&key).map(|value| (key, value))
    }

    fn unchain(&mut self, place: usize) {
        let Some(entry) = self.entries.get(place) else {
            return;
        };
        let (newer, older) = (entry.newer, entry.older);
        self.set_older_of(newer, older);
        self.set_newer_of(older, newer);
    }

    fn chain_newest(&mut self, place: usize) {
        let newest = self.newest;
        if let Some(entry) = self.entries.get_mut(place) {
            (entry.newer, entry.older) = (NONE, newest);
        }
        self.set_newer_of(newest, place);
        self.newest = place;
    }

    /// Sets what follows `place` towards the oldest; before the newest stands the map itself.
    fn set_older_of(&mut self, place: usize, older: usize) {
        match self.entries.get_mut(place) {
            Some(entry) => entry.older = older,
            None => self.newest = older,
        }
    }

    fn set_newer_of(&mut self, place: usize, newer: usize) {
        match self.entries.get_mut(place) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Insert(u8),
        Get(u8),
        Remove(u8),
        Pop,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0_u8..12).prop_map(Step::Insert),
            (0_u8..12).prop_map(Step::Get),
            (0_u8..12).prop_map(Step::Remove),
            Just(Step::Pop),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The map does what a plain list, newest last, does.
        #[test]
        fn like_a_list(steps in proptest::collection::vec(step(), 0..200)) {
            let mut map = LruMap::new();
            let mut list: Vec<(u8, usize)> = Vec::new();
            let take = |list: &mut Vec<(u8, usize)>, key| {
                let place = list.iter().position(|&(other, _)| other == key)?;
                Some(list.remove(place).1)
            };
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Insert(key) => {
                        prop_assert_eq!(map.insert(key, number), take(&mut list, key));
                        list.push((key, number));
                    }
                    Step::Get(key) => {
                        let expected = take(&mut list, key);
                        prop_assert_eq!(map.get_mut(&key).copied(), expected);
                        list.extend(expected.map(|value| (key, value)));
                    }
                    Step::Remove(key) => prop_assert_eq!(map.remove(&key), take(&mut list, key)),
                    Step::Pop => {
                        let expected = (!list.is_empty()).then(|| list.remove(0));
                        prop_assert_eq!(map.pop_oldest(), expected);
                    }
                }
                prop_assert_eq!(map.len(), list.len());
            }
            let mut rest: Vec<(u8, usize)> = map.iter().map(|(&key, &value)| (key, value)).collect();
            rest.sort_unstable();
            list.sort_unstable();
            prop_assert_eq!(rest, list);
        }
    }
}
