//! Attribute names, each with a number.

use std::borrow::Cow;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::text::{same, text};

/// Number of a name.
pub(crate) type NameId = u32;

/// Names that are known beforehand, by position, and after them those of devices in the order of their appearance.
#[derive(Debug)]
pub(super) struct Names {
    names: Vec<Cow<'static, str>>,
    /// For each name the one that came next the last time: devices send theirs in the same order again and again, so most
    /// names are found by one comparison.
    next: Vec<NameId>,
    index: HashTable<(u64, NameId)>,
    hasher: DefaultHashBuilder,
}

impl Names {
    pub(super) fn new(known: &[&'static str]) -> Self {
        let mut names = Self {
            names: Vec::new(),
            next: Vec::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        };
        for name in known {
            let _ = names.add(names.hasher.hash_one(name.as_bytes()), Cow::Borrowed(name));
        }
        names
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(AsRef::as_ref)
    }

    pub(super) fn get(&self, id: NameId) -> &str {
        usize::try_from(id).ok().and_then(|index| self.names.get(index)).map_or("", AsRef::as_ref)
    }

    /// The number of a name that follows `previous` in its record.
    /// Bytes that are not UTF-8 become U+FFFD when the name is new.
    pub(super) fn resolve(&mut self, previous: NameId, name: &[u8]) -> NameId {
        let previous = usize::try_from(previous).unwrap_or(usize::MAX);
        if let Some(next) = self.next.get(previous)
            && same(self.get(*next).as_bytes(), name)
        {
            return *next;
        }
        let hash = self.hasher.hash_one(name);
        let names = &self.names;
        let is_it = |(other, id): &(u64, NameId)| {
            *other == hash
                && usize::try_from(*id).ok().and_then(|id| names.get(id)).is_some_and(|known| known.as_bytes() == name)
        };
        let id = match self.index.find(hash, is_it) {
            Some((_, id)) => *id,
            None => match text(name) {
                Cow::Borrowed(name) => self.add(hash, Cow::Owned(name.to_owned())),
                // It has another hash now, and may be known.
                Cow::Owned(repaired) => return self.resolve(NameId::MAX, repaired.as_bytes()),
            },
        };
        if let Some(next) = self.next.get_mut(previous) {
            *next = id;
        }
        id
    }

    fn add(&mut self, hash: u64, name: Cow<'static, str>) -> NameId {
        let id = NameId::try_from(self.names.len()).unwrap_or(NameId::MAX);
        self.names.push(name);
        self.next.push(id);
        let _ = self.index.insert_unique(hash, (hash, id), |(hash, _)| *hash);
        id
    }
}
