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

    /// Whether the flow is all there is to the key.
    pub(crate) fn is_flow_alone(&self) -> bool {
        *self == Self { names: None, source: false, exporter: false, flow: true }
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

/// What is kept of a flow when nothing else is in the key: the hash of [`Key::hash`], by the shortest way.
#[inline(always)]
pub(crate) fn of_flow<F: Facts + ?Sized>(seed: u64, facts: &F) -> Option<Randomness> {
    let (hash, found) = flow_hash(seed, &facts.flow().unwrap_or_default());
    found.then(|| Randomness::from_low_bits(hash >> 8))
}

/// The last two bytes of a number in network byte order.
fn number(bytes: &[u8]) -> u64 {
    match bytes {
        [.., high, low] => u64::from(*high) << 8 | u64::from(*low),
        [low] => u64::from(*low),
        [] => 0,
    }
}

/// XXH3-64 of two numbers in network byte order, 16 bytes: what [`xxh3_64_with_seed`] does for that length, without
/// writing them to memory and asking for the length of what is there.
#[inline]
fn xxh3_of_two(first: u64, second: u64, seed: u64) -> u64 {
    /// Of XXH3's default secret the words at 24 and 32, and those at 40 and 48, combined.
    const SECRETS: [u64; 2] =
        [0x1f67_b3b7_a4a4_4072 ^ 0x78e5_c0cc_4ee6_79cb, 0x2172_ffcc_7dd0_5a82 ^ 0x8e24_43f7_7446_08b8];
    let low = first.swap_bytes() ^ SECRETS[0].wrapping_add(seed);
    let high = second.swap_bytes() ^ SECRETS[1].wrapping_sub(seed);
    let product = u128::from(low) * u128::from(high);
    let folded = (product as u64) ^ (product >> 64) as u64;
    let sum = 16u64.wrapping_add(low.swap_bytes()).wrapping_add(high).wrapping_add(folded);
    let mixed = (sum ^ sum >> 37).wrapping_mul(0x1656_6791_9e37_79f9);
    mixed ^ mixed >> 32
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

    #[inline]
    fn flow(&mut self, flow: &Flow<'_>) {
        let (hash, found) = flow_hash(self.hash, flow);
        self.hash = hash;
        self.found |= found;
    }
}

/// The hash of a flow, seeded with that of what was before, and whether there is any field of it. Addresses, ports and
/// protocol, the last three in one number however many bytes each is sent in; two addresses of IPv4 go into one field with
/// them.
#[inline(always)]
fn flow_hash(seed: u64, flow: &Flow<'_>) -> (u64, bool) {
    let Flow { source_address, destination_address, source_port, destination_port, protocol } = *flow;
    // By far the most are of these sizes.
    let numbers = match (source_port, destination_port, protocol) {
        (&[a, b], &[c, d], &[e]) => u64::from_be_bytes([0, 0, a, b, c, d, 0, e]),
        _ => number(source_port) << 32 | number(destination_port) << 16 | number(protocol),
    };
    if let (Ok(source), Ok(destination)) = (source_address.try_into(), destination_address.try_into()) {
        let addresses = u64::from(u32::from_be_bytes(source)) << 32 | u64::from(u32::from_be_bytes(destination));
        return (xxh3_of_two(addresses, numbers, seed), true);
    }
    let any = [source_address, destination_address, source_port, destination_port, protocol];
    (long_flow_hash(seed, source_address, destination_address, numbers), any.iter().any(|field| !field.is_empty()))
}

/// The same with other addresses than two of IPv4.
#[inline(never)]
fn long_flow_hash(seed: u64, source: &[u8], destination: &[u8], numbers: u64) -> u64 {
    let hash = xxh3_64_with_seed(destination, xxh3_64_with_seed(source, seed));
    xxh3_64_with_seed(&numbers.to_be_bytes(), hash)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Two numbers have the hash of their bytes.
        #[test]
        fn two_numbers_are_sixteen_bytes(first: u64, second: u64, seed: u64) {
            let bytes = [first.to_be_bytes(), second.to_be_bytes()].concat();
            prop_assert_eq!(xxh3_of_two(first, second, seed), xxh3_64_with_seed(&bytes, seed));
        }
    }
}
