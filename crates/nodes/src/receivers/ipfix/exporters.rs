//! One session for each exporter: a source address and port, as the templates of one are nothing to another.

use std::net::SocketAddr;

use catchment_ipfix::{Limits, Session, Transport};
use std::collections::HashMap;

/// The sessions of the exporters heard of, the most recent `max`.
#[derive(Debug)]
pub(crate) struct Exporters {
    sessions: HashMap<Option<SocketAddr>, (Session, u64)>,
    limits: Limits,
    max: usize,
    heard: u64,
    evicted: u64,
}

impl Exporters {
    pub(crate) fn new(max: usize, limits: Limits) -> Self {
        Self { sessions: HashMap::new(), limits, max, heard: 0, evicted: 0 }
    }

    /// The session of `exporter`; `None` stands for a file that names no exporter.
    pub(crate) fn session(&mut self, exporter: Option<SocketAddr>) -> &mut Session {
        self.heard += 1;
        if self.sessions.len() >= self.max && !self.sessions.contains_key(&exporter) {
            let oldest = self.sessions.iter().min_by_key(|(_, (_, heard))| *heard).map(|(exporter, _)| *exporter);
            if let Some(oldest) = oldest {
                let _ = self.sessions.remove(&oldest);
                self.evicted += 1;
            }
        }
        let limits = &self.limits;
        let (session, heard) =
            self.sessions.entry(exporter).or_insert_with(|| (Session::new(Transport::Udp, limits.clone()), 0));
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
        assert_eq!((exporters.len(), exporters.evicted()), (2, 1));
        assert!(exporters.sessions.contains_key(&address(1)) && !exporters.sessions.contains_key(&address(2)));
    }
}
