use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use super::*;

#[derive(Default)]
struct Sample {
    peer: Option<IpAddr>,
    headers: HashMap<String, Vec<u8>>,
    series: Option<u64>,
}

impl Facts for Sample {
    fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.get(name).map(Vec::as_slice)
    }

    fn series(&self) -> Option<u64> {
        self.series
    }
}

fn lanes(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).expect("not zero")
}

fn peer(address: &str) -> Sample {
    Sample { peer: Some(address.parse().expect("an address")), ..Sample::default() }
}

/// These lanes were written down once: another build, core or host must find the same ones.
#[test]
fn lanes_never_change() {
    assert_eq!(hash_address("192.0.2.1".parse().expect("an address")), 0x2c1c_901e_ed9a_dc4a);
    let mut router = Router::new(LaneKey::Peer, lanes(8));
    let found: Vec<_> = (1..9).map(|host| router.lane(&peer(&format!("192.0.2.{host}")))).collect();
    assert_eq!(found, [1, 1, 3, 6, 1, 1, 2, 2]);
    assert_eq!(reduce(u64::MAX, lanes(8)), 7);
    assert_eq!(reduce(0, lanes(8)), 0);
}

/// An IPv4 sender has one lane, whatever kind of socket received it.
#[test]
fn mapped_addresses_are_the_same_sender() {
    let mut router = Router::new(LaneKey::Peer, lanes(1 << 20));
    assert_eq!(router.lane(&peer("192.0.2.77")), router.lane(&peer("::ffff:192.0.2.77")));
    assert_ne!(router.lane(&peer("192.0.2.77")), router.lane(&peer("2001:db8::77")));
}

/// Keys spread over all lanes, no lane with half as many or twice as many as its share.
#[test]
fn keys_spread_evenly() {
    let mut counts = [[0_u32; 8]; 3];
    let mut routers =
        [LaneKey::Peer, LaneKey::Header("x-shard".to_owned()), LaneKey::Series].map(|key| Router::new(key, lanes(8)));
    for number in 0..8000_u32 {
        let sample = Sample {
            peer: Some(Ipv4Addr::from(0x0a00_0000 + number).into()),
            headers: HashMap::from([("x-shard".to_owned(), number.to_string().into_bytes())]),
            series: Some(u64::from(number) << 32),
        };
        for (router, counts) in routers.iter_mut().zip(&mut counts) {
            counts[router.lane(&sample)] += 1;
        }
    }
    assert!(counts.iter().flatten().all(|count| (500..2000).contains(count)), "{counts:?}");
}

/// Round robin takes turns; a single lane takes all; a payload without the key has a lane, and is counted.
#[test]
fn other_keys() {
    let mut router = Router::new(LaneKey::RoundRobin, lanes(3));
    assert_eq!((0..7).map(|_| router.lane(&Sample::default())).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0]);
    assert_eq!(Router::new(LaneKey::Single, lanes(3)).lane(&peer("192.0.2.1")), 0);
    let mut router = Router::new(LaneKey::Header("tenant".to_owned()), lanes(1000));
    let lane = router.lane(&Sample::default());
    assert_eq!(router.lane(&peer("192.0.2.9")), lane);
    assert_eq!(router.unkeyed(), 2);
}
