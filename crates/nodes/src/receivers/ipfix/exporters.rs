//! One session for each exporter: a source address and port, as the templates of one are nothing to another.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use catchment_ipfix::{Limits, Session, Transport};

/// The sessions of the exporters heard of, the most recent `max`.
#[derive(Debug)]
pub(crate) struct Exporters {
    sessions: HashMap<Option<SocketAddr>, (Session, u64)>,
    /// Exporters by when they were heard of last, so that finding the oldest costs no search.
    order: BTreeMap<u64, Option<SocketAddr>>,
    limits: Limits,
    max: usize,
    heard: u64,
    evicted: u64,
}

impl Exporters {
    pub(crate) fn new(max: usize, limits: Limits) -> Self {
        Self { sessions: HashMap::new(), order: BTreeMap::new(), limits, max, heard: 0, evicted: 0 }
    }

    /// The session of `exporter`; `None` stands for a stream of messages in a file, which follows the rules of streams.
    pub(crate) fn session(&mut self, exporter: Option<SocketAddr>) -> &mut Session {
        self.heard += 1;
        if self.sessions.len() >= self.max
            && !self.sessions.contains_key(&exporter)
            && let Some((_, oldest)) = self.order.pop_first()
        {
            let _ = self.sessions.remove(&oldest);
            self.evicted += 1;
        }
        let limits = &self.limits;
        let transport = if exporter.is_some() { Transport::Udp } else { Transport::Stream };
        let (session, heard) =
            self.sessions.entry(exporter).or_insert_with(|| (Session::new(transport, limits.clone()), 0));
        let _ = self.order.remove(heard);
        let _ = self.order.insert(self.heard, exporter);
        *heard = self.heard;
        session
    }

    /// Exporters known now.
    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Exporters forgotten because of the limit.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exporter not heard of for the longest time gives way.
    #[test]
    fn the_limit_holds() {
        let mut exporters = Exporters::new(2, Limits::default());
        let address = |port| Some(SocketAddr::from(([192, 0, 2, 1], port)));
        for port in [1, 2, 1, 3] {
            let _ = exporters.session(address(port));
        }
        assert_eq!((exporters.len(), exporters.evicted(), exporters.order.len()), (2, 1, 2));
        assert!(exporters.sessions.contains_key(&address(1)) && !exporters.sessions.contains_key(&address(2)));
    }
}
