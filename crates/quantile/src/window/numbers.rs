//! A hash table of numbers that never grows in one go.

use hashbrown::HashTable;

/// Pieces of the table, each with a memory of its own.
const PIECES: usize = 256;

/// Numbers by the hash of what they stand for.
///
/// A table of very many moves all it has when it grows, which would hold the thread for
/// milliseconds. Here that is the price of one piece.
#[derive(Debug)]
pub(super) struct Numbers {
    pieces: Box<[HashTable<u32>]>,
    len: usize,
}

impl Numbers {
    pub(super) fn new() -> Self {
        Self { pieces: (0..PIECES).map(|_| HashTable::new()).collect(), len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The number of this hash that `is` the right one.
    #[inline]
    pub(super) fn find(&self, hash: u64, is: impl FnMut(&u32) -> bool) -> Option<u32> {
        self.pieces[piece(hash)].find(hash, is).copied()
    }

    /// Adds a number that is not there; `hash_of` gives the hash of those that are.
    pub(super) fn insert(&mut self, hash: u64, number: u32, hash_of: impl Fn(&u32) -> u64) {
        let _ = self.pieces[piece(hash)].insert_unique(hash, number, hash_of);
        self.len += 1;
    }

    /// Takes a number out.
    pub(super) fn remove(&mut self, hash: u64, number: u32) {
        if let Ok(entry) = self.pieces[piece(hash)].find_entry(hash, |other| *other == number) {
            let _ = entry.remove();
            self.len -= 1;
        }
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
    use crate::seed;

    /// What is put in is found until it is taken out.
    #[test]
    fn numbers_come_and_go() {
        let hash = |number: &u32| seed::derive(1, u64::from(*number), 0);
        let mut numbers = Numbers::new();
        (0..5_000).for_each(|number| numbers.insert(hash(&number), number, hash));
        (0..5_000).filter(|number| number % 3 == 0).for_each(|number| numbers.remove(hash(&number), number));
        numbers.remove(hash(&0), 0);
        assert_eq!(numbers.len(), 3_333);
        for number in 0..6_000 {
            let found = numbers.find(hash(&number), |other| *other == number);
            assert_eq!(found.is_some(), number < 5_000 && number % 3 != 0, "{number}");
        }
    }
}
