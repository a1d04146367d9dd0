//! Hashes of what records have in common: all records of one host, program or flow share a fate.

use std::net::IpAddr;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::config::KeyField;
use crate::facts::{Facts, Flow, Names};
use crate::threshold::Randomness;

/// The fields that make up a key, in a fixed order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    names: Option<(bool, bool)>,
    source: bool,
    exporter: bool,
    flow: bool,
}

impl Key {
    /// The key of these fields, whose order does not matter.
    pub(crate) fn new(fields: &[KeyField]) -> Self {
        let has = |field| fields.contains(&field);
        let names = (has(KeyField::Host), has(KeyField::App));
        Self {
            names: (names.0 || names.1).then_some(names),
            source: has(KeyField::Source),
            exporter: has(KeyField::Exporter),
            flow: has(KeyField::Flow),
        }
    }

    /// Whether records of one message may have different keys.
    pub(crate) fn varies_by_record(&self) -> bool {
        self.names.is_some() || self.flow
    }

    /// XXH3-64 of the fields, each seeded with the hash of those before it; the upper 56 bits. A field that the record
    /// does not have counts as empty. `None` if it has none of them.
    #[inline]
    pub(crate) fn hash<F: Facts + ?Sized>(&self, seed: u64, facts: &F) -> Option<Randomness> {
        let mut hash = Chain { hash: seed, found: false };
        if let Some((host, app)) = self.names {
            let names: Names<'_> = facts.names();
            if host {
                hash.add(names.host.unwrap_or_default());
            }
            if app {
                hash.add(names.app.unwrap_or_default());
            }
        }
        if self.source || self.exporter {
            hash.address(facts.source());
        }
        if self.exporter {
            hash.domain(facts.domain());
        }
        if self.flow {
            hash.flow(&facts.flow().unwrap_or_default());
        }
        hash.found.then(|| Randomness::from_low_bits(hash.hash >> 8))
    }
}

struct Chain {
    hash: u64,
    found: bool,
}

impl Chain {
    #[inline]
    fn add(&mut self, field: &[u8]) {
        self.hash = xxh3_64_with_seed(field, self.hash);
        self.found |= !field.is_empty();
    }

    /// An IPv4 address that is mapped into IPv6 is the IPv4 address.
    fn address(&mut self, address: Option<IpAddr>) {
        match address.map(|address| address.to_canonical()) {
            Some(IpAddr::V4(address)) => self.add(&address.octets()),
            Some(IpAddr::V6(address)) => self.add(&address.octets()),
            None => self.add(&[]),
        }
    }

    /// A domain alone is not a key: every exporter has one.
    fn domain(&mut self, domain: Option<u32>) {
        let found = self.found;
        self.add(&domain.unwrap_or_default().to_be_bytes());
        self.found = found;
    }

    /// Addresses, ports and protocol, the last three in one number however many bytes each is sent in. Two addresses of
    /// IPv4 go into one field with them.
    #[inline]
    fn flow(&mut self, flow: &Flow<'_>) {
        let Flow { source_address, destination_address, source_port, destination_port, protocol } = *flow;
        let number = |bytes: &[u8]| match bytes {
            [.., high, low] => u64::from(*high) << 8 | u64::from(*low),
            [low] => u64::from(*low),
            [] => 0,
        };
        let numbers = number(source_port) << 32 | number(destination_port) << 16 | number(protocol);
        if let (Ok(source), Ok(destination)) = (source_address.try_into(), destination_address.try_into()) {
            let addresses = u64::from(u32::from_be_bytes(source)) << 32 | u64::from(u32::from_be_bytes(destination));
            return self.add(&(u128::from(addresses) << 64 | u128::from(numbers)).to_be_bytes());
        }
        self.add(source_address);
        self.add(destination_address);
        let found = self.found || !(source_port.is_empty() && destination_port.is_empty() && protocol.is_empty());
        self.add(&numbers.to_be_bytes());
        self.found = found;
    }
}
