//! A hash table that never grows in one go.

use hashbrown::HashTable;

/// Pieces of the table, each with a memory of its own.
const PIECES: usize = 256;

/// Entries by their hash.
///
/// A table of very many moves all it has when it grows, which would hold the thread for
/// milliseconds. Here that is the price of one piece.
#[derive(Debug)]
pub(super) struct Pieces<T> {
    pieces: Box<[HashTable<T>]>,
}

impl<T> Pieces<T> {
    pub(super) fn new() -> Self {
        Self { pieces: (0..PIECES).map(|_| HashTable::new()).collect() }
    }

    /// The entry of this hash that `is` the right one.
    #[inline]
    pub(super) fn find(&self, hash: u64, is: impl FnMut(&T) -> bool) -> Option<&T> {
        self.pieces[piece(hash)].find(hash, is)
    }

    /// Adds an entry that is not there; `hash_of` gives the hash of those that are.
    pub(super) fn insert(&mut self, hash: u64, entry: T, hash_of: impl Fn(&T) -> u64) {
        let _ = self.pieces[piece(hash)].insert_unique(hash, entry, hash_of);
    }
}

/// By bits of the hash that the pieces do not look at: they take the lowest ones and the highest.
#[inline]
fn piece(hash: u64) -> usize {
    (hash >> 40) as usize % PIECES
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is put in is found.
    #[test]
    fn numbers_are_found() {
        let hash = |number: &u32| u64::from(*number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut numbers = Pieces::new();
        (0..5_000).for_each(|number| numbers.insert(hash(&number), number, hash));
        for number in 0..6_000 {
            let found: Option<&u32> = numbers.find(hash(&number), |other| *other == number);
            assert_eq!(found.copied(), (number < 5_000).then_some(number));
        }
    }
}
