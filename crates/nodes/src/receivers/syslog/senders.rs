//! Who sends: the context that all messages of a sender share.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use catchment_columns::syslog::{Source, Transport};
use catchment_syslog::Zone;
use ipnet::IpNet;

use crate::ingest::Recent;

/// Senders of datagrams whose context is kept.
const SENDERS_KEPT: usize = 4_096;

/// Zones of stamps that name none.
#[derive(Debug, Clone)]
pub(super) struct Zones {
    /// By address of the sender, the longest prefix first.
    prefixes: Arc<[(IpNet, Arc<Zone>)]>,
    /// Of all others.
    default: Arc<Zone>,
}

impl Zones {
    pub(super) fn new(default: Arc<Zone>, mut prefixes: Vec<(IpNet, Arc<Zone>)>) -> Self {
        prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.prefix_len()));
        Self { prefixes: prefixes.into(), default }
    }

    /// The same prefixes with another default.
    pub(super) fn with_default(&self, default: Arc<Zone>) -> Self {
        Self { prefixes: Arc::clone(&self.prefixes), default }
    }

    /// The zone of a sender; of an IPv4 address that came over IPv6, that of the IPv4 address.
    pub(super) fn of(&self, sender: Option<IpAddr>) -> &Arc<Zone> {
        let sender = sender.map(|address| address.to_canonical());
        let found = sender.and_then(|sender| self.prefixes.iter().find(|(prefix, _)| prefix.contains(&sender)));
        found.map_or(&self.default, |(_, zone)| zone)
    }
}

/// The senders of one transport.
pub(super) struct Senders {
    zones: Zones,
    transport: Transport,
    recent: RefCell<Recent<Option<SocketAddr>, Arc<Source>>>,
    /// The sender of the last message: they come in bursts.
    last: RefCell<Option<Arc<Source>>>,
}

impl Senders {
    pub(super) fn new(zones: Zones, transport: Transport) -> Self {
        Self { zones, transport, recent: RefCell::new(Recent::new(SENDERS_KEPT)), last: RefCell::default() }
    }

    /// The context of a sender that is not kept: of a connection, which keeps it itself.
    pub(super) fn fresh(&self, peer: Option<SocketAddr>) -> Source {
        let zone = self.zones.of(peer.map(|peer| peer.ip()));
        Source::new(peer, self.transport, Arc::clone(zone))
    }

    /// The context of a sender, kept for its next message.
    pub(super) fn source(&self, peer: Option<SocketAddr>) -> Arc<Source> {
        let mut last = self.last.borrow_mut();
        if let Some(source) = last.as_ref().filter(|source| source.peer() == peer) {
            return Arc::clone(source);
        }
        let source = self.recent.borrow_mut().get(&peer, || Arc::new(self.fresh(peer)));
        *last = Some(Arc::clone(&source));
        source
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> Arc<Zone> {
        Arc::new(name.parse().expect("zone"))
    }

    fn zones() -> Zones {
        let prefix = |text: &str, name| (text.parse().expect("prefix"), zone(name));
        let list = vec![
            prefix("10.0.0.0/8", "+01:00"),
            prefix("10.1.2.3/32", "+03:00"),
            prefix("10.1.0.0/16", "+02:00"),
            prefix("2001:db8::/32", "+04:00"),
        ];
        Zones::new(zone("UTC"), list)
    }

    /// The longest prefix decides, also for IPv4 over IPv6; others have the default.
    #[test]
    fn the_longest_prefix_decides() {
        let zones = zones();
        for (address, expected) in [
            ("10.1.2.3", "+03:00"),
            ("10.1.2.4", "+02:00"),
            ("10.2.0.0", "+01:00"),
            ("::ffff:10.1.9.9", "+02:00"),
            ("2001:db8::1", "+04:00"),
            ("192.0.2.1", "UTC"),
            ("::1", "UTC"),
        ] {
            assert_eq!(**zones.of(address.parse().ok()), *zone(expected), "{address}");
        }
        assert_eq!(**zones.of(None), *zone("UTC"));
        assert_eq!(**zones.with_default(zone("+09:00")).of(None), *zone("+09:00"));
    }

    /// A sender's context is made once, also when others send in between.
    #[test]
    fn a_sender_keeps_its_context() {
        let senders = Senders::new(zones(), Transport::Udp);
        let address = |port| Some(SocketAddr::from(([10, 1, 2, 3], port)));
        let first = senders.source(address(1));
        assert!(Arc::ptr_eq(&first, &senders.source(address(1))));
        let _ = senders.source(address(2));
        assert!(Arc::ptr_eq(&first, &senders.source(address(1))));
        assert_eq!(first.peer(), address(1));
        assert_eq!(*first.zone(), *zone("+03:00"));
    }
}
