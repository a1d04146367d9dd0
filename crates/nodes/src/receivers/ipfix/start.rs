//! The sources of a receiver, as its configuration asks for them.

use std::fs;
use std::rc::Rc;

use otel_arrow_dfe_engine::error::{Error, ReceiverErrorKind};
use otel_arrow_dfe_engine::local::receiver::EffectHandler;
use otel_arrow_dfe_otap::pdata::OtapPdata;
use tokio::task::JoinSet;

use super::config::{Config, Steering, UdpConfig};
use super::shared::Shared;
use super::sources::files::{self, FileUpdate};
use super::sources::unix::{self, UnixIngress};
use super::sources::{netlink, redis};
use super::tcp::{Tcp, TcpConfig};
use super::template_cache::TemplateCache;
use super::{replay, udp};
use crate::accounts::NodeName;
use crate::ingest::tcp::{Tls, accept};
use crate::ingest::{self, Claim, UnderPressure};

/// Sources at work.
pub(super) struct Started {
    pub(super) sources: JoinSet<()>,
    /// Addresses that are taken until these are dropped.
    pub(super) claims: Vec<Claim>,
}

/// What opening the sources needs.
struct Starter<'s> {
    name: &'s NodeName,
    cores: usize,
    effects: &'s EffectHandler<OtapPdata>,
    shared: &'s Rc<Shared>,
    started: Started,
}

/// Opens all sources.
///
/// # Errors
/// The first that cannot be opened, with its key and reason.
pub(super) async fn sources(
    config: &Config,
    name: &NodeName,
    cores: usize,
    effects: &EffectHandler<OtapPdata>,
    shared: &Rc<Shared>,
) -> Result<Started, Error> {
    let started = Started { sources: JoinSet::new(), claims: Vec::new() };
    let mut starter = Starter { name, cores, effects, shared, started };
    // What explains data comes before data.
    starter.templates(config);
    starter.sessions(config);
    if let Some(udp) = &config.udp {
        starter.udp(udp)?;
    }
    if let Some(tcp) = &config.tcp {
        starter.tcp(tcp).await?;
    }
    starter.local(config)?;
    if let Some(replay) = &config.replay {
        let reader = ingest::open_replay(effects, replay, false, catchment_capture::DEFAULT_MAX_LINE_BYTES)?;
        starter.spawn(replay::run(replay.clone(), reader, Rc::clone(shared)));
    }
    Ok(starter.started)
}

impl Starter<'_> {
    fn spawn(&mut self, source: impl Future<Output = ()> + 'static) {
        let _ = self.started.sources.spawn_local(source);
    }

    fn templates(&mut self, config: &Config) {
        if let Some(cache) = &config.template_cache {
            let cache = TemplateCache::new(cache, self.name.core, self.cores);
            cache.check(self.shared);
            cache.load(self.shared);
            self.spawn(cache.run(Rc::clone(self.shared)));
        }
        self.spawn(Rc::clone(self.shared).expire());
    }

    /// SONiC's telemetry sessions.
    fn sessions(&mut self, config: &Config) {
        let Some(sonic) = self.shared.sonic() else { return };
        let stop = &self.shared.intake.stop;
        if let Some(files) = config.sonic.sessions.files() {
            for path in &files.paths {
                // A file that cannot be read now is told and tried again by whoever watches it.
                if let Ok(content) = fs::read(path) {
                    sonic.file(path, Some(&content));
                }
            }
            let shared = Rc::clone(self.shared);
            let update = move |update: FileUpdate<'_>| {
                if let Some(sonic) = shared.sonic() {
                    match update {
                        FileUpdate::Content { path, bytes } => sonic.file(path, Some(bytes)),
                        FileUpdate::Gone { path } => sonic.file(path, None),
                    }
                }
            };
            self.spawn(files::watch(files, stop.clone(), Rc::clone(&self.shared.files), update));
        }
        if let Some(database) = &config.sonic.sessions.redis {
            let shared = Rc::clone(self.shared);
            let update = move |update| {
                if let Some(sonic) = shared.sonic() {
                    sonic.update(&update);
                }
            };
            self.spawn(redis::follow(database.clone(), stop.clone(), Rc::clone(&self.shared.redis), update));
        }
    }

    fn udp(&mut self, config: &UdpConfig) -> Result<(), Error> {
        let (ingress, claim) =
            ingest::udp_socket(self.effects, self.name, config.listening_addr, config.receive_buffer)?;
        self.started.claims.push(claim);
        let address = ingress.socket.local_addr().unwrap_or(config.listening_addr);
        if config.steering == Steering::Address
            && self.cores > 1
            && let Err(error) = ingest::steer_by_source_address(&ingress.socket, self.cores)
        {
            otel_warn!(
                "ipfix_receiver.udp.not_steered",
                address = %address,
                error = %error,
                message = "the kernel spreads datagrams over cores by address and port; exporters that send templates and data from different ports may be misunderstood"
            );
        }
        otel_info!("ipfix_receiver.udp.listening", address = %address, receive_buffer_bytes = ingress.granted);
        let _ = self.shared.drops.set(Rc::clone(&ingress.drops));
        self.spawn(udp::receive(ingress, Rc::clone(self.shared)));
        Ok(())
    }

    async fn tcp(&mut self, config: &TcpConfig) -> Result<(), Error> {
        let tls = Tls::open(self.effects, config.tls.as_ref()).await?;
        let (listener, claim) = ingest::tcp_listener(self.effects, self.name, config.listening_addr)?;
        self.started.claims.push(claim);
        let address = listener.local_addr().unwrap_or(config.listening_addr);
        otel_info!("ipfix_receiver.tcp.listening", address = %address, tls = tls.is_some());
        let tcp = Tcp::new(config, tls, Rc::clone(self.shared), Rc::clone(&self.shared.streams));
        let _ = self.shared.connections.set(Rc::clone(&tcp.connections));
        self.spawn(accept(listener, Rc::new(tcp)));
        Ok(())
    }

    /// Sources of this machine: the kernel and programs beside.
    fn local(&mut self, config: &Config) -> Result<(), Error> {
        let intake = &self.shared.intake;
        if let Some(netlink) = &config.netlink {
            let (intake, counters) = (Rc::clone(intake), Rc::clone(&self.shared.netlink));
            let shared = Rc::clone(self.shared);
            let take = move |payload: &[u8], time_unix_nano| {
                shared.take_local(payload, time_unix_nano, UnderPressure::Shed);
            };
            self.spawn(netlink::receive(netlink.clone(), intake, counters, take));
        }
        if let Some(unix) = &config.unix {
            let ingress = UnixIngress::open(unix).map_err(|error| self.refused("config.unix", &error))?;
            let (intake, counters) = (Rc::clone(&self.shared.intake), Rc::clone(&self.shared.unix));
            let shared = Rc::clone(self.shared);
            let take = move |payload: &[u8], time_unix_nano| {
                shared.take_local(payload, time_unix_nano, UnderPressure::Keep);
            };
            self.spawn(unix::receive(ingress, intake, counters, take));
        }
        Ok(())
    }

    fn refused(&self, key: &str, error: &std::io::Error) -> Error {
        Error::ReceiverError {
            receiver: self.effects.receiver_id(),
            kind: ReceiverErrorKind::Configuration,
            error: format!("{key}: {error}"),
            source_detail: String::new(),
        }
    }
}
