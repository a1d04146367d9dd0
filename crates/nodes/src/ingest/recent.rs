//! A table that keeps what was used recently.

use std::collections::HashMap;
use std::hash::Hash;

/// Values by key, at most `max` of them. The table is kept in two halves: what is used moves to the young one, and when
/// that is full the old one is forgotten. So nothing used among the last `max / 2` different keys is ever lost.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    half: usize,
}

impl<K: Hash + Eq + Clone, V: Clone> Recent<K, V> {
    pub(crate) fn new(max: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), half: (max / 2).max(1) }
    }

    /// The value of `key`, made by `make` if it is not known.
    pub(crate) fn get(&mut self, key: &K, make: impl FnOnce() -> V) -> V {
        if let Some(value) = self.young.get(key) {
            return value.clone();
        }
        let value = self.old.remove(key).unwrap_or_else(make);
        if self.young.len() >= self.half {
            self.old = std::mem::take(&mut self.young);
        }
        let _ = self.young.insert(key.clone(), value.clone());
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table is bounded, and what is used again and again stays.
    #[test]
    fn the_recent_stay() {
        let mut recent = Recent::new(8);
        let mut made = 0;
        for key in 1..1_000 {
            let favourite = recent.get(&0, || {
                made += 1;
                "favourite"
            });
            assert_eq!(favourite, "favourite");
            let _ = recent.get(&key, || "other");
            assert!(recent.young.len() + recent.old.len() <= 8);
        }
        assert_eq!(made, 1);
    }
}
