//! All transport sessions of one receiver, with bounds that no sender can turn against another.
//!
//! Over UDP anybody can claim any source address, so a new source proves nothing. A session is a *newcomer* until it has
//! given data records of known templates over some time; then it is *established*. Newcomers compete for places and
//! for room only with newcomers: whatever they send, an established session that is heard from keeps its templates. At
//! least a quarter of everything is left for newcomers. Streams, which nobody opens under a false address, are
//! established from the start and never evicted; they end with [`Collector::close`].

mod cache;
mod entry;
mod limits;
mod pending;
mod statistics;
mod types;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;

use crate::admitted::Admitted;
use crate::knowledge::{AddressKnowledge, Teller};
use crate::lru::LruMap;
use crate::session::{Limits, Provisional, Session, Transport};

use entry::{Common, Entry, Usage};
use limits::established_part;

pub use cache::{CacheError, CacheFault, Restored, is_template_cache};
pub use limits::{CollectorLimits, PendingLimits, ShutOutLimits, TemplateScope};
pub use statistics::{ExporterCounters, ExporterStatistics, ExporterTotals};
pub use types::{Admission, CollectorCounters, Gauges, Refusal, SessionKey};

/// A session over UDP. The port is 0 where all ports of an address share a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct UdpKey {
    address: IpAddr,
    port: u16,
    listener: u32,
}

/// What is known of a source address.
#[derive(Debug, Default)]
struct Address {
    knowledge: Arc<AddressKnowledge>,
    /// Its sessions over UDP, the oldest first.
    sessions: Vec<UdpKey>,
    /// Number of its connections.
    streams: usize,
    /// Templates from before a restart by listener.
    provisional: Vec<(u32, Arc<Provisional>)>,
}

/// The sessions of all exporters of one receiver.
///
/// ```
/// use catchment_ipfix::{Admission, Admitted, Collector, CollectorLimits, SessionKey};
///
/// let datagram = [
///     0, 10, 0, 36, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0, 1, // header: 36 bytes, exported at 60 s, domain 1
///     0, 2, 0, 12, 1, 0, 0, 1, 0, 1, 0, 4, // template 256: octetDeltaCount in 4 bytes
///     1, 0, 0, 8, 0, 0, 3, 232, // a data set with one record
/// ];
/// let mut collector = Collector::new(CollectorLimits::default());
/// let mut admitted = Admitted::default();
/// let key = SessionKey::Udp { peer: ([192, 0, 2, 1], 2_055).into(), listener: 0 };
/// assert_eq!(collector.admit(key, 0, &datagram, &mut admitted), Admission::Accepted);
/// assert_eq!(admitted.sets[0].records(&datagram).count(), 1);
///
/// let snapshot = collector.templates_snapshot();
/// let mut restarted = Collector::new(CollectorLimits::default());
/// assert_eq!(restarted.restore(&snapshot)?.templates, 1);
/// # Ok::<(), catchment_ipfix::CacheError>(())
/// ```
#[derive(Debug)]
pub struct Collector {
    common: Common,
    established: LruMap<UdpKey, Entry>,
    newcomers: LruMap<UdpKey, Entry>,
    streams: HashMap<u64, Entry>,
    addresses: HashMap<IpAddr, Address>,
    /// Number of the session begun last; 0 stands for none.
    last_session: u64,
    /// When templates were restored, while any of them are kept.
    restored: Option<Duration>,
}

impl Collector {
    /// A collector without sessions.
    #[must_use]
    pub fn new(limits: CollectorLimits) -> Self {
        Self {
            common: Common::new(limits),
            established: LruMap::new(),
            newcomers: LruMap::new(),
            streams: HashMap::default(),
            addresses: HashMap::default(),
            last_session: 0,
            restored: None,
        }
    }

    /// Tells the time, as a duration since any fixed moment. It never goes back: an earlier time is ignored.
    pub fn set_clock(&mut self, now: Duration) {
        self.common.clock = self.common.clock.max(now);
    }

    /// Admits one datagram, or one message of a stream, to its session, which begins with it if need be.
    ///
    /// Adds to `out`, see [`Session::admit`]; data sets of earlier datagrams whose templates have come are in
    /// [`Admitted::released`]. `received_unix_nano` is when the datagram was received, for those that have to wait. A
    /// refused datagram counts as read and as discarded.
    pub fn admit(
        &mut self,
        key: SessionKey,
        received_unix_nano: i64,
        datagram: &[u8],
        out: &mut Admitted,
    ) -> Admission {
        match key {
            SessionKey::Udp { peer, listener } => {
                let key = self.udp_key(peer, listener);
                self.admit_udp(key, peer.port(), received_unix_nano, datagram, out)
            }
            SessionKey::Stream { connection, peer } => {
                let address = peer.map(|peer| peer.ip().to_canonical());
                self.admit_stream(connection, address, received_unix_nano, datagram, out)
            }
        }
    }

    /// Counts records of the last admission of a session that the caller has left out, for [`Collector::exporters`].
    pub fn count_left_out(&mut self, key: SessionKey, records: u64) {
        let entry = match key {
            SessionKey::Udp { peer, listener } => {
                let key = self.udp_key(peer, listener);
                self.established.get_mut(&key).or_else(|| self.newcomers.get_mut(&key))
            }
            SessionKey::Stream { connection, .. } => self.streams.get_mut(&connection),
        };
        match entry {
            Some(entry) => entry.statistics.count_left_out(records),
            // It had to go at once.
            None => self.common.gone.left_out += records,
        }
    }

    fn udp_key(&self, peer: SocketAddr, listener: u32) -> UdpKey {
        let port = match self.common.limits.template_scope {
            TemplateScope::Session => peer.port(),
            TemplateScope::Address => 0,
        };
        UdpKey { address: peer.ip().to_canonical(), port, listener }
    }

    fn admit_udp(
        &mut self,
        key: UdpKey,
        port: u16,
        received_unix_nano: i64,
        datagram: &[u8],
        out: &mut Admitted,
    ) -> Admission {
        if let Some(entry) = self.established.get_mut(&key) {
            let admission = entry.admit(&mut self.common, port, received_unix_nano, datagram, out);
            self.relieve();
            return admission;
        }
        if let Some(entry) = self.newcomers.get_mut(&key) {
            let admission = entry.admit(&mut self.common, port, received_unix_nano, datagram, out);
            if entry.is_ripe(&self.common) {
                self.establish(key);
            }
            return admission;
        }
        if let Err(refusal) = self.make_place(Some(key.address)) {
            return self.common.refuse(datagram, refusal, out);
        }
        let mut entry = self.open_udp(key);
        let admission = entry.admit(&mut self.common, port, received_unix_nano, datagram, out);
        let _: Option<Entry> = self.newcomers.insert(key, entry);
        admission
    }

    fn admit_stream(
        &mut self,
        connection: u64,
        address: Option<IpAddr>,
        received_unix_nano: i64,
        datagram: &[u8],
        out: &mut Admitted,
    ) -> Admission {
        if !self.streams.contains_key(&connection) {
            if let Err(refusal) = self.make_place(address).and_then(|()| self.make_place_for_settled()) {
                return self.common.refuse(datagram, refusal, out);
            }
            let entry = self.open_stream(address);
            let _: Option<Entry> = self.streams.insert(connection, entry);
        }
        let Some(entry) = self.streams.get_mut(&connection) else {
            return Admission::Refused(Refusal::Sessions);
        };
        let admission = entry.admit(&mut self.common, 0, received_unix_nano, datagram, out);
        self.relieve();
        admission
    }

    /// Ends a session: its templates are gone, and so is the data that waits for more of them. Gives whether there was
    /// such a session.
    pub fn close(&mut self, key: SessionKey) -> bool {
        let closed = match key {
            SessionKey::Stream { connection, .. } => {
                let Some(entry) = self.streams.remove(&connection) else {
                    return false;
                };
                if let Some(address) = entry.address.and_then(|address| self.addresses.get_mut(&address)) {
                    address.streams -= 1;
                }
                self.leave(entry);
                true
            }
            SessionKey::Udp { peer, listener } => {
                let key = self.udp_key(peer, listener);
                self.remove_udp(&key)
            }
        };
        self.common.counters.sessions_closed += u64::from(closed);
        closed
    }

    /// Drops data that has waited too long for its template, and restored templates that are too old. To be called now
    /// and then; sessions that are heard from do without.
    pub fn expire(&mut self, now: Duration) {
        self.set_clock(now);
        if self.restored.is_some_and(|restored| self.is_too_old(restored)) {
            self.restored = None;
            self.addresses.retain(|_, address| {
                address.provisional.clear();
                !address.sessions.is_empty() || address.streams > 0
            });
        }
        let waiting = self.common.established.pending_bytes + self.common.newcomers.pending_bytes;
        if waiting == 0 {
            return;
        }
        let sessions = self.established.values_mut().chain(self.newcomers.values_mut());
        for entry in sessions.chain(self.streams.values_mut()) {
            entry.expire(&mut self.common);
        }
    }

    /// Counts over the life of the collector.
    #[must_use]
    pub fn counters(&self) -> &CollectorCounters {
        &self.common.counters
    }

    /// What is kept now. Looks at every session.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        let Usage { weight, facts, pending_bytes } = self.common.established;
        let newcomers = &self.common.newcomers;
        let provisional = self.addresses.values().flat_map(|address| &address.provisional);
        Gauges {
            sessions: self.sessions(),
            established_sessions: self.entries().filter(|entry| entry.established).count(),
            templates: self.entries().map(|entry| entry.session.template_count()).sum(),
            template_fields: weight + newcomers.weight,
            provisional_templates: provisional.map(|(_, templates)| templates.len()).sum(),
            facts: facts + newcomers.facts,
            pending_sets: self.entries().map(Entry::pending_sets).sum(),
            pending_bytes: pending_bytes + newcomers.pending_bytes,
        }
    }

    /// Number of sessions.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.established.len() + self.newcomers.len() + self.streams.len()
    }

    /// What each exporter (a source address and an observation domain) has sent: the `limit` busiest ones, and all others
    /// together. Looks at every session.
    #[must_use]
    pub fn exporters(&self, limit: usize) -> ExporterTotals {
        let sessions = self.entries().map(|entry| (entry.address, &entry.statistics));
        ExporterTotals::sum(sessions, self.common.gone, limit)
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        let datagrams = self.established.iter().chain(self.newcomers.iter());
        datagrams.map(|(_, entry)| entry).chain(self.streams.values())
    }

    /// Moves a newcomer to the established sessions, if there is a place for it.
    fn establish(&mut self, key: UdpKey) {
        if self.make_place_for_settled().is_err() {
            return;
        }
        if let Some(mut entry) = self.newcomers.remove(&key) {
            entry.establish(&mut self.common);
            let _: Option<Entry> = self.established.insert(key, entry);
        }
    }

    /// Lets newcomers go while all sessions together use more than they may.
    fn relieve(&mut self) {
        while self.common.is_over()
            && let Some((&oldest, _)) = self.newcomers.oldest()
        {
            let _: bool = self.remove_udp(&oldest);
            self.common.counters.newcomers_evicted_for_room += 1;
        }
    }

    /// Makes place for one session of an address.
    fn make_place(&mut self, address: Option<IpAddr>) -> Result<(), Refusal> {
        let known = address.and_then(|address| self.addresses.get(&address));
        if let Some(known) = known
            && known.sessions.len() + known.streams >= self.common.limits.max_sessions_per_address
        {
            let silent = known.sessions.iter().copied().find(|key| self.is_idle(key));
            let silent = silent.ok_or(Refusal::SessionsOfAddress)?;
            self.evict(&silent);
        }
        if self.sessions() < self.common.limits.max_sessions {
            return Ok(());
        }
        let newcomer = self.newcomers.oldest().filter(|(_, entry)| entry.is_idle(&self.common));
        let idle = || self.established.oldest().filter(|(_, entry)| entry.is_idle(&self.common));
        let silent = newcomer.or_else(idle).map(|(key, _)| *key).ok_or(Refusal::Sessions)?;
        self.evict(&silent);
        Ok(())
    }

    /// Makes place for one more among established sessions and streams.
    fn make_place_for_settled(&mut self) -> Result<(), Refusal> {
        if self.established.len() + self.streams.len() < established_part(self.common.limits.max_sessions) {
            return Ok(());
        }
        let idle = self.established.oldest().filter(|(_, entry)| entry.is_idle(&self.common));
        let silent = idle.map(|(key, _)| *key).ok_or(Refusal::Sessions)?;
        self.evict(&silent);
        Ok(())
    }

    fn is_idle(&self, key: &UdpKey) -> bool {
        let entry = self.newcomers.peek(key).or_else(|| self.established.peek(key));
        entry.is_some_and(|entry| entry.is_idle(&self.common))
    }

    fn evict(&mut self, key: &UdpKey) {
        let established = self.established.peek(key).is_some();
        if self.remove_udp(key) {
            let counters = &mut self.common.counters;
            let counter = if established { &mut counters.idle_evicted } else { &mut counters.newcomers_evicted };
            *counter += 1;
        }
    }

    fn remove_udp(&mut self, key: &UdpKey) -> bool {
        let Some(entry) = self.newcomers.remove(key).or_else(|| self.established.remove(key)) else {
            return false;
        };
        if let Some(address) = self.addresses.get_mut(&key.address) {
            address.sessions.retain(|session| session != key);
        }
        self.leave(entry);
        true
    }

    /// Gives back what a session used, and forgets its address if nothing else is known of that.
    fn leave(&mut self, entry: Entry) {
        let address = entry.address;
        entry.leave(&mut self.common);
        if let Some(address) = address
            && let Some(known) = self.addresses.get(&address)
            && known.sessions.is_empty()
            && known.streams == 0
            && known.provisional.is_empty()
            && known.knowledge.is_empty()
        {
            let _: Option<Address> = self.addresses.remove(&address);
        }
    }

    fn open_udp(&mut self, key: UdpKey) -> Entry {
        let teller = Teller { session: self.next_session(), established: false };
        let limits = &self.common.limits;
        let newcomer_domains = limits.newcomer_domains.min(limits.session.max_domains);
        let limits = Limits { max_domains: newcomer_domains, ..limits.session.clone() };
        let address = self.addresses.entry(key.address).or_default();
        address.sessions.push(key);
        let mut session = Session::sharing(Transport::Udp, limits, Arc::clone(&address.knowledge), teller);
        let provisional = address.provisional.iter().find(|(listener, _)| *listener == key.listener);
        session.set_provisional(provisional.map(|(_, templates)| Arc::clone(templates)));
        Entry::new(session, Some(key.address))
    }

    fn open_stream(&mut self, address: Option<IpAddr>) -> Entry {
        let teller = Teller { session: self.next_session(), established: true };
        let limits = Limits { template_lifetime: None, ..self.common.limits.session.clone() };
        let knowledge = match address {
            Some(address) => {
                let address = self.addresses.entry(address).or_default();
                address.streams += 1;
                Arc::clone(&address.knowledge)
            }
            // Files say nothing of who sent them.
            None => Arc::default(),
        };
        let mut entry = Entry::new(Session::sharing(Transport::Stream, limits, knowledge, teller), address);
        entry.established = true;
        entry
    }

    fn next_session(&mut self) -> u64 {
        self.common.counters.sessions_opened += 1;
        self.last_session += 1;
        self.last_session
    }
}

#[cfg(test)]
mod tests;
