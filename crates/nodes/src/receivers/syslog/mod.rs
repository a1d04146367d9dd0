//! `urn:catchment:receiver:syslog`: RFC 3164, RFC 5424 and CEF over UDP and TCP, and from files.
//!
//! `config.rs` reads the configuration. `udp.rs` takes messages from datagrams, `replay.rs` from files, `tcp.rs` and
//! `connection.rs` from connections (`crate::ingest::tcp`); `subject.rs` names TLS clients, `senders.rs` knows the
//! senders. All meet in the shared intake (`crate::ingest`), which decodes and sends. The parsing itself is in
//! `catchment-syslog`, the mapping to columns in `catchment-columns`.

otel_arrow_dfe_telemetry::otel_component_scope!(urn = SYSLOG_RECEIVER_URN, target = "catchment.receiver.syslog");

mod config;
mod connection;
mod metrics;
mod parsed;
mod replay;
mod senders;
mod shared;
mod subject;
mod tcp;
#[cfg(test)]
pub(crate) mod testing;
mod udp;

use std::rc::Rc;
use std::sync::Arc;

use async_trait::async_trait;
use catchment_columns::syslog::Transport;
use catchment_sampling::Input as Sampled;
use linkme::distributed_slice;
use otel_arrow_dfe_config::node::NodeUserConfig;
use otel_arrow_dfe_engine::ReceiverFactory;
use otel_arrow_dfe_engine::capability::registry::Capabilities;
use otel_arrow_dfe_engine::config::ReceiverConfig;
use otel_arrow_dfe_engine::context::PipelineContext;
use otel_arrow_dfe_engine::error::Error;
use otel_arrow_dfe_engine::local::receiver as local;
use otel_arrow_dfe_engine::memory_limiter::LocalReceiverAdmissionState;
use otel_arrow_dfe_engine::node::NodeId;
use otel_arrow_dfe_engine::receiver::ReceiverWrapper;
use otel_arrow_dfe_engine::terminal_state::TerminalState;
use otel_arrow_dfe_engine::wiring_contract::WiringContract;
use otel_arrow_dfe_otap::OTAP_RECEIVER_FACTORIES;
use otel_arrow_dfe_otap::metrics::ReceiverMetrics;
use otel_arrow_dfe_otap::pdata::OtapPdata;
use otel_arrow_dfe_telemetry::metrics::MetricSet;
use tokio::task::JoinSet;

use crate::accounts::NodeName;
use crate::drain::{Input, PipelineInstance};
use crate::ingest::tcp::{Tls, accept};
use crate::ingest::{self, Intake, Rates, Sampling, SamplingReports};
pub(crate) use config::Config;
use metrics::{Metrics, SyslogMetrics};
use parsed::{ParsedMetrics, Told};
use senders::Senders;
use shared::{Shared, SyslogPending};
use tcp::Tcp;

/// URN of the node.
pub const SYSLOG_RECEIVER_URN: &str = "urn:catchment:receiver:syslog";

/// Registration of the node.
#[allow(unsafe_code, reason = "linkme places the static in a link section")]
#[otel_arrow_dfe_engine::component_inventory(category = Receiver)]
#[distributed_slice(OTAP_RECEIVER_FACTORIES)]
pub static SYSLOG_RECEIVER: ReceiverFactory<OtapPdata> = ReceiverFactory {
    name: SYSLOG_RECEIVER_URN,
    create: |pipeline: PipelineContext,
             node: NodeId,
             node_config: Arc<NodeUserConfig>,
             receiver_config: &ReceiverConfig,
             _capabilities: &Capabilities| {
        let config = Config::parse(&node_config.config)?;
        ingest::check_cores(config.replay.as_ref(), pipeline.num_cores())?;
        let pressure = LocalReceiverAdmissionState::from_process_state(&pipeline.memory_pressure_state());
        let name = NodeName::of(&pipeline);
        let sampling = config.sampling.as_ref().map(|settings| Sampling::new(settings, Sampled::Syslog, name.core));
        let receiver = SyslogReceiver {
            sampling: sampling.transpose()?,
            sampled: SamplingReports::new(&pipeline, config.sampling.is_some()),
            rates: Rates::bind(&pipeline, pressure.clone(), config.max_messages_per_second_per_source)?,
            config,
            name,
            pipeline: PipelineInstance::of(&pipeline),
            metrics: SyslogMetrics::register(&pipeline),
            parsed: Told::new(ParsedMetrics::register(&pipeline)),
            border: metrics::border(&pipeline),
            pressure,
        };
        Ok(ReceiverWrapper::local(receiver, node, node_config, receiver_config).with_startup_readiness())
    },
    context_declarations: None,
    wiring_contract: WiringContract::UNRESTRICTED,
    validate_config: |config| Config::parse(config).map(|_| ()),
};

struct SyslogReceiver {
    config: Config,
    name: NodeName,
    pipeline: PipelineInstance,
    metrics: MetricSet<SyslogMetrics>,
    parsed: Told,
    sampling: Option<Sampling>,
    sampled: SamplingReports,
    border: ReceiverMetrics,
    rates: Rates,
    pressure: LocalReceiverAdmissionState,
}

#[async_trait(?Send)]
impl local::Receiver<OtapPdata> for SyslogReceiver {
    async fn start(
        self: Box<Self>,
        control: local::ControlChannel<OtapPdata>,
        effects: local::EffectHandler<OtapPdata>,
    ) -> Result<TerminalState, Error> {
        let Self { config, name, pipeline, metrics, parsed, sampling, sampled, border, rates, pressure } = *self;
        let input = Input::begin(pipeline);
        let pending = SyslogPending::new(&config, sampling);
        let intake = Intake::new(pending, config.batch.clone(), config.max_in_flight_bytes, pressure);
        let shared = Rc::new(Shared::new(intake, rates, Some(border), name.clone(), config.max_message_size));
        let mut sources = JoinSet::new();
        let mut claims = Vec::new();
        if let Some(udp) = &config.udp {
            let (ingress, claim) = ingest::udp_socket(&effects, &name, udp.listening_addr, udp.receive_buffer)?;
            claims.push(claim);
            let address = ingress.socket.local_addr().unwrap_or(udp.listening_addr);
            otel_info!("syslog_receiver.udp.listening", address = %address, receive_buffer_bytes = ingress.granted);
            let _ = shared.drops.set(Rc::clone(&ingress.drops));
            let senders = Senders::new(config.zones.udp.clone(), Transport::Udp);
            let _ = sources.spawn_local(udp::receive(ingress, senders, Rc::clone(&shared)));
        }
        if let Some(tcp) = &config.tcp {
            let tls = Tls::open(&effects, tcp.tls.as_ref()).await?;
            let (listener, claim) = ingest::tcp_listener(&effects, &name, tcp.listening_addr)?;
            claims.push(claim);
            let address = listener.local_addr().unwrap_or(tcp.listening_addr);
            otel_info!("syslog_receiver.tcp.listening", address = %address, tls = tls.is_some());
            let senders = Senders::new(config.zones.tcp.clone(), Transport::Tcp);
            let tcp = Tcp::new(tcp, config.max_message_size, tls, senders, Rc::clone(&shared));
            let _ = sources.spawn_local(accept(listener, Rc::new(tcp)));
        }
        if let Some(replay) = &config.replay {
            let reader = ingest::open_replay(&effects, replay, true, config.max_message_size)?;
            let zones = config.zones.replay.clone();
            let replay = replay::run(replay.clone(), reader, config.max_message_size, zones, Rc::clone(&shared));
            let _ = sources.spawn_local(replay);
        }
        effects.signal_ready();
        let report = Metrics::new(metrics, parsed, sampled, Rc::clone(&shared));
        let intake = Rc::clone(&shared.intake);
        let ended = ingest::run(control, effects, intake, sources, report, input).await;
        drop(claims);
        ended
    }
}

#[cfg(test)]
mod tests;
