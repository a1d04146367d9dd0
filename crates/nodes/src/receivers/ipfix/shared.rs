//! What the sources of one receiver share: the batch, the state of the exporters, counts.

use std::cell::{OnceCell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use catchment_columns::flow::FlowBatch;
use catchment_columns::sonic::SonicBatch;
use catchment_ipfix::{CacheError, SessionKey};
use catchment_sampling::{Counts, Input};
use otel_arrow_dfe_config::error::Error;
use otel_arrow_dfe_engine::memory_limiter::LocalReceiverAdmissionState;

use super::config::{Config, Profile, Signal};
use super::connection::{Connection, MessageSink};
use super::flows::Flows;
use super::pending::{Collected, IpfixPending};
use super::sonic::Sonic;
use super::sources::files::FilesCounters;
use super::sources::netlink::NetlinkCounters;
use super::sources::redis::RedisCounters;
use super::sources::unix::UnixCounters;
use super::tcp::StreamCounters;
use crate::accounts::NodeName;
use crate::ingest::tcp::Connections;
use crate::ingest::{Intake, KernelDrops, Rates, Sampling, UnderPressure};

/// How often it is looked at most and at least whether something has waited too long for its template; else ten times in
/// the time that it may wait.
const EXPIRY_INTERVALS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// The listeners of this receiver, by number in session keys.
const UDP_LISTENER: u32 = 0;
const REPLAY_LISTENER: u32 = 1;
/// Numbers of what is like a connection and is none; connections have numbers from 1 on.
const REPLAY_CONNECTION: u64 = 0;
const LOCAL_CONNECTION: u64 = u64::MAX;

/// Sums over the life of the receiver that nobody else keeps.
#[derive(Debug, Clone, Default)]
pub(super) struct Totals {
    pub(super) receive_errors: u64,
    pub(super) replay_skipped: u64,
    pub(super) truncated_datagrams: u64,
    pub(super) template_cache_errors: u64,
    /// Datagrams and messages dropped because their sender, or all, were over their rate.
    pub(super) rate_limited: u64,
}

/// Who sends, and how their bytes are understood.
pub(super) enum Mode {
    Flows(Box<Flows>),
    Sonic(Box<Sonic>),
}

pub(super) struct Shared {
    pub(super) intake: Rc<Intake<IpfixPending>>,
    pub(super) mode: Mode,
    pub(super) totals: RefCell<Totals>,
    pub(super) name: NodeName,
    expiry_interval: Duration,
    pub(super) rates: Rates,
    /// Of the UDP socket, once it is open.
    pub(super) drops: OnceCell<Rc<KernelDrops>>,
    /// Of the TCP listener.
    pub(super) connections: OnceCell<Rc<Connections>>,
    pub(super) streams: Rc<RefCell<StreamCounters>>,
    pub(super) netlink: Rc<RefCell<NetlinkCounters>>,
    pub(super) unix: Rc<RefCell<UnixCounters>>,
    pub(super) redis: Rc<RefCell<RedisCounters>>,
    pub(super) files: Rc<RefCell<FilesCounters>>,
}

impl Shared {
    pub(super) fn new(
        config: &Config,
        pressure: LocalReceiverAdmissionState,
        rates: Rates,
        name: NodeName,
    ) -> Result<Self, Error> {
        let (mode, collected) = match (config.profile, config.signal()) {
            (Profile::SonicHft, _) => {
                let mapping = Arc::new(config.sonic_mapping());
                let collected = Collected::Sonic { batch: SonicBatch::default(), mapping, emit: config.emit };
                (Mode::Sonic(Sonic::new().into()), collected)
            }
            (Profile::Flows, Signal::Logs) => {
                let mapping = config.flow_mapping();
                let collected = Collected::Logs { batch: FlowBatch::default(), mapping, emit: config.emit };
                (Mode::Flows(Flows::new(config.collector_limits()).into()), collected)
            }
            (Profile::Flows, Signal::Metrics) => {
                let rules = Arc::new(config.metric_rules()?);
                let collected = Collected::Metrics { batch: FlowBatch::default(), rules };
                (Mode::Flows(Flows::new(config.collector_limits()).into()), collected)
            }
        };
        let sampling = config.head_sampling().map(|settings| Sampling::new(settings, Input::Flows, name.core));
        let pending = IpfixPending::new(collected, sampling.transpose()?);
        Ok(Self {
            intake: Rc::new(Intake::new(pending, config.batch.clone(), config.max_in_flight_bytes, pressure)),
            mode,
            totals: RefCell::default(),
            name,
            expiry_interval: (config.pending.max_age / 10).clamp(EXPIRY_INTERVALS.0, EXPIRY_INTERVALS.1),
            rates,
            drops: OnceCell::new(),
            connections: OnceCell::new(),
            streams: Rc::default(),
            netlink: Rc::default(),
            unix: Rc::default(),
            redis: Rc::default(),
            files: Rc::default(),
        })
    }

    /// Takes a datagram of UDP.
    pub(super) fn take_datagram(&self, payload: &[u8], peer: SocketAddr, time_unix_nano: i64) {
        if !self.rates.admit(peer.ip()) {
            self.totals.borrow_mut().rate_limited += 1;
            return;
        }
        let key = SessionKey::Udp { peer, listener: UDP_LISTENER };
        self.take(key, payload, time_unix_nano, UnderPressure::Shed);
    }

    /// Takes what a program (which waits when memory is short) or the kernel (which does not) of this machine sends.
    pub(super) fn take_local(&self, payload: &[u8], time_unix_nano: i64, under: UnderPressure) {
        let key = SessionKey::Stream { connection: LOCAL_CONNECTION, peer: None };
        self.take(key, payload, time_unix_nano, under);
    }

    /// Takes a packet of a file; without a source address it belongs to a stream of messages.
    pub(super) fn take_replayed(&self, payload: &[u8], source: Option<SocketAddr>, time_unix_nano: i64) {
        let key = match source {
            Some(peer) => SessionKey::Udp { peer, listener: REPLAY_LISTENER },
            None => SessionKey::Stream { connection: REPLAY_CONNECTION, peer: None },
        };
        self.take(key, payload, time_unix_nano, UnderPressure::Keep);
    }

    /// Takes a datagram or a message.
    pub(super) fn take(&self, key: SessionKey, payload: &[u8], time_unix_nano: i64, under: UnderPressure) {
        match &self.mode {
            Mode::Flows(flows) => flows.take(&self.intake, key, payload, time_unix_nano, under),
            Mode::Sonic(sonic) => sonic.take(&self.intake, key, payload, time_unix_nano, under),
        }
    }

    /// The end of a connection or file.
    pub(super) fn close(&self, key: SessionKey) {
        match &self.mode {
            Mode::Flows(flows) => flows.close(key),
            Mode::Sonic(sonic) => sonic.close(key),
        }
    }

    pub(super) fn sonic(&self) -> Option<&Sonic> {
        match &self.mode {
            Mode::Sonic(sonic) => Some(sonic),
            Mode::Flows(_) => None,
        }
    }

    /// Puts kept templates back; gives their number.
    pub(super) fn restore(&self, bytes: &[u8]) -> Result<usize, CacheError> {
        match &self.mode {
            Mode::Flows(flows) => flows.restore(bytes),
            Mode::Sonic(_) => Ok(0),
        }
    }

    /// The templates to be kept, if they have changed since the last time.
    pub(super) fn snapshot_if_changed(&self) -> Option<Vec<u8>> {
        match &self.mode {
            Mode::Flows(flows) => flows.snapshot_if_changed(),
            Mode::Sonic(_) => None,
        }
    }

    /// Drops what has waited too long for its template, from time to time until the intake stops.
    pub(super) async fn expire(self: Rc<Self>) {
        let Mode::Flows(flows) = &self.mode else { return };
        loop {
            tokio::select! {
                () = self.intake.stop.cancelled() => return,
                () = tokio::time::sleep(self.expiry_interval) => flows.expire(),
            }
        }
    }

    /// What the sampler has decided so far, if there is one.
    pub(super) fn sampling_counts(&self) -> Option<Counts> {
        self.intake.with_pending(|pending| pending.sampling.as_ref().map(Sampling::counts))
    }

    /// Datagrams that the kernel had no room for.
    pub(super) fn kernel_drops(&self) -> u64 {
        self.drops.get().map_or(0, |drops| drops.total())
    }
}

/// The session of a connection.
fn stream(connection: Connection) -> SessionKey {
    SessionKey::Stream { connection: connection.number, peer: Some(connection.peer) }
}

impl MessageSink for Shared {
    type Pending = IpfixPending;

    fn intake(&self) -> &Intake<IpfixPending> {
        &self.intake
    }

    fn rates(&self) -> &Rates {
        &self.rates
    }

    fn take_message(&self, connection: Connection, message: &[u8], time_unix_nano: i64) {
        self.take(stream(connection), message, time_unix_nano, UnderPressure::Keep);
    }

    fn connection_closed(&self, connection: Connection) {
        self.close(stream(connection));
    }
}
