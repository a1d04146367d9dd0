//! Which lane a payload goes to.
//!
//! Order is kept inside a lane, so everything whose order matters must go to the same one: the key says what that is. The
//! lane of a key depends on nothing but the key and the number of lanes: cores, hosts and restarts agree on it.

use std::net::IpAddr;
use std::num::NonZeroUsize;

use xxhash_rust::xxh3::xxh3_64;

#[cfg(test)]
mod tests;

/// What decides over the lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LaneKey {
    /// The address of the sender as the receiver saw it, without its port. The default.
    #[default]
    Peer,
    /// The value of this header of the payload, the name in lower case.
    Header(String),
    /// A hash that whoever built the payload made of its series.
    Series,
    /// Each payload to the next lane: no order at all between payloads.
    RoundRobin,
    /// Everything to lane 0: order over all payloads.
    Single,
}

/// What a payload has to offer as a key.
pub trait Facts {
    /// Address of its sender.
    fn peer(&self) -> Option<IpAddr>;
    /// Value of a header, by its name in lower case.
    fn header(&self, name: &str) -> Option<&[u8]>;
    /// Hash of its series.
    fn series(&self) -> Option<u64>;
}

/// Maps payloads to lanes.
#[derive(Clone, Debug)]
pub struct Router {
    key: LaneKey,
    lanes: NonZeroUsize,
    next: usize,
    unkeyed: u64,
}

impl Router {
    /// A router over lanes 0 to `lanes - 1`.
    #[must_use]
    pub const fn new(key: LaneKey, lanes: NonZeroUsize) -> Self {
        Self { key, lanes, next: 0, unkeyed: 0 }
    }

    /// The lane of a payload. A payload without the key goes to the lane of the empty key, together with all others
    /// without it, and is counted.
    pub fn lane(&mut self, facts: &impl Facts) -> usize {
        let hash = match &self.key {
            LaneKey::Single => return 0,
            LaneKey::RoundRobin => {
                let lane = self.next;
                self.next = (lane + 1) % self.lanes;
                return lane;
            }
            LaneKey::Peer => facts.peer().map(hash_address),
            LaneKey::Header(name) => facts.header(name).map(xxh3_64),
            // Who made the hash may have left structure in it.
            LaneKey::Series => facts.series().map(|series| xxh3_64(&series.to_le_bytes())),
        };
        let hash = hash.unwrap_or_else(|| {
            self.unkeyed += 1;
            xxh3_64(&[])
        });
        reduce(hash, self.lanes)
    }

    /// Payloads that had no key.
    #[must_use]
    pub const fn unkeyed(&self) -> u64 {
        self.unkeyed
    }
}

/// Hash of an address. An IPv4 address mapped into IPv6, as dual-stack sockets give it, is the IPv4 address.
#[must_use]
pub fn hash_address(address: IpAddr) -> u64 {
    match address.to_canonical() {
        IpAddr::V4(v4) => xxh3_64(&v4.octets()),
        IpAddr::V6(v6) => xxh3_64(&v6.octets()),
    }
}

/// Spreads a hash evenly over 0 to `lanes - 1`, by multiplication instead of division.
#[must_use]
pub const fn reduce(hash: u64, lanes: NonZeroUsize) -> usize {
    ((hash as u128 * lanes.get() as u128) >> 64) as usize
}
