//! `urn:catchment:receiver:syslog`: RFC 3164, RFC 5424 and CEF over UDP and TCP, and from files.
//!
//! `config.rs` reads the configuration, `udp.rs` and `tcp.rs` take messages from sockets, `replay.rs` from files. They
//! meet in the shared intake (`crate::ingest`), which decodes and sends. The parsing itself is in `catchment-syslog`,
//! the mapping to columns in `catchment-columns`.

otel_arrow_dfe_telemetry::otel_component_scope!(urn = SYSLOG_RECEIVER_URN, target = "catchment.receiver.syslog");

mod config;
mod metrics;
mod replay;
mod shared;
mod tcp;
mod udp;

use std::rc::Rc;
use std::sync::Arc;

use async_trait::async_trait;
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
use otel_arrow_dfe_otap::pdata::OtapPdata;
use tokio::task::JoinSet;

use crate::accounts::NodeName;
use crate::drain::{Input, PipelineInstance};
use crate::ingest;
pub(crate) use config::Config;
use metrics::{Metrics, SyslogMetrics};
use shared::{Shared, SyslogPending};

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
        let receiver = SyslogReceiver {
            config,
            name: NodeName::of(&pipeline),
            pipeline: PipelineInstance::of(&pipeline),
            metrics: SyslogMetrics::register(&pipeline),
            pressure: LocalReceiverAdmissionState::from_process_state(&pipeline.memory_pressure_state()),
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
    metrics: otel_arrow_dfe_telemetry::metrics::MetricSet<SyslogMetrics>,
    pressure: LocalReceiverAdmissionState,
}

#[async_trait(?Send)]
impl local::Receiver<OtapPdata> for SyslogReceiver {
    async fn start(
        self: Box<Self>,
        control: local::ControlChannel<OtapPdata>,
        effects: local::EffectHandler<OtapPdata>,
    ) -> Result<TerminalState, Error> {
        let Self { config, name, pipeline, metrics, pressure } = *self;
        let input = Input::begin(pipeline);
        let pending = SyslogPending::new(&config);
        let shared = Rc::new(Shared::new(
            pending,
            config.batch.clone(),
            pressure,
            name.clone(),
            Arc::clone(&config.zone),
            config.max_message_size,
        ));
        let mut sources = JoinSet::new();
        let mut claims = Vec::new();
        if let Some(udp) = &config.udp {
            let (socket, granted, claim) = ingest::udp_socket(&effects, &name, udp.listening_addr, udp.receive_buffer)?;
            claims.push(claim);
            let address = socket.local_addr().unwrap_or(udp.listening_addr);
            otel_info!("syslog_receiver.udp.listening", address = %address, receive_buffer_bytes = granted);
            let _ = sources.spawn_local(udp::receive(socket, granted, Rc::clone(&shared)));
        }
        if let Some(tcp) = &config.tcp {
            let (listener, claim) = ingest::tcp_listener(&effects, &name, tcp.listening_addr)?;
            claims.push(claim);
            let address = listener.local_addr().unwrap_or(tcp.listening_addr);
            otel_info!("syslog_receiver.tcp.listening", address = %address);
            let options = config.framer_options(tcp);
            let _ = sources.spawn_local(tcp::accept(listener, options, tcp.max_connections, Rc::clone(&shared)));
        }
        if let Some(replay) = &config.replay {
            let reader = ingest::open_replay(&effects, replay, true, config.max_message_size)?;
            let _ =
                sources.spawn_local(replay::run(replay.clone(), reader, config.max_message_size, Rc::clone(&shared)));
        }
        effects.signal_ready();
        let report = Metrics::new(metrics, Rc::clone(&shared));
        let intake = Rc::clone(&shared.intake);
        let ended = ingest::run(control, effects, intake, sources, report, input).await;
        drop(claims);
        ended
    }
}
