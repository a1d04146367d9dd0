//! `urn:catchment:receiver:ipfix`: IPFIX, NetFlow v9 and v5 over UDP, and from files.
//!
//! `config.rs` reads the configuration, `udp.rs` and `replay.rs` take datagrams, `shared.rs` admits them: headers,
//! sequence numbers and templates at once, records later by decode jobs (`crate::ingest`). The protocol itself is in
//! `catchment-ipfix`, the mapping to columns in `catchment-columns`.

otel_arrow_dfe_telemetry::otel_component_scope!(urn = IPFIX_RECEIVER_URN, target = "catchment.receiver.ipfix");

mod config;
mod exporters;
mod metrics;
mod replay;
mod shared;
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
use otel_arrow_dfe_telemetry::metrics::MetricSet;
use tokio::task::JoinSet;

use crate::accounts::NodeName;
use crate::drain::{Input, PipelineInstance};
use crate::ingest;
use config::Config;
pub(crate) use exporters::Exporters;
use metrics::{IpfixMetrics, Metrics};
use shared::Shared;

/// URN of the node.
pub const IPFIX_RECEIVER_URN: &str = "urn:catchment:receiver:ipfix";

/// Registration of the node.
#[allow(unsafe_code, reason = "linkme places the static in a link section")]
#[otel_arrow_dfe_engine::component_inventory(category = Receiver)]
#[distributed_slice(OTAP_RECEIVER_FACTORIES)]
pub static IPFIX_RECEIVER: ReceiverFactory<OtapPdata> = ReceiverFactory {
    name: IPFIX_RECEIVER_URN,
    create: |pipeline: PipelineContext,
             node: NodeId,
             node_config: Arc<NodeUserConfig>,
             receiver_config: &ReceiverConfig,
             _capabilities: &Capabilities| {
        let config = Config::parse(&node_config.config)?;
        ingest::check_cores(config.replay.as_ref(), pipeline.num_cores())?;
        let receiver = IpfixReceiver {
            config,
            name: NodeName::of(&pipeline),
            pipeline: PipelineInstance::of(&pipeline),
            metrics: IpfixMetrics::register(&pipeline),
            pressure: LocalReceiverAdmissionState::from_process_state(&pipeline.memory_pressure_state()),
        };
        Ok(ReceiverWrapper::local(receiver, node, node_config, receiver_config).with_startup_readiness())
    },
    context_declarations: None,
    wiring_contract: WiringContract::UNRESTRICTED,
    validate_config: |config| Config::parse(config).map(|_| ()),
};

struct IpfixReceiver {
    config: Config,
    name: NodeName,
    pipeline: PipelineInstance,
    metrics: MetricSet<IpfixMetrics>,
    pressure: LocalReceiverAdmissionState,
}

#[async_trait(?Send)]
impl local::Receiver<OtapPdata> for IpfixReceiver {
    async fn start(
        self: Box<Self>,
        control: local::ControlChannel<OtapPdata>,
        effects: local::EffectHandler<OtapPdata>,
    ) -> Result<TerminalState, Error> {
        let Self { config, name, pipeline, metrics, pressure } = *self;
        let input = Input::begin(pipeline);
        let shared = Rc::new(Shared::new(&config, pressure, name.clone()));
        let mut sources = JoinSet::new();
        let mut claims = Vec::new();
        if let Some(udp) = &config.udp {
            let (ingress, claim) = ingest::udp_socket(&effects, &name, udp.listening_addr, udp.receive_buffer)?;
            claims.push(claim);
            let address = ingress.socket.local_addr().unwrap_or(udp.listening_addr);
            otel_info!("ipfix_receiver.udp.listening", address = %address, receive_buffer_bytes = ingress.granted);
            let _ = shared.drops.set(Rc::clone(&ingress.drops));
            let _ = sources.spawn_local(udp::receive(ingress, Rc::clone(&shared)));
        }
        if let Some(replay) = &config.replay {
            let reader = ingest::open_replay(&effects, replay, false, catchment_capture::DEFAULT_MAX_LINE_BYTES)?;
            let _ = sources.spawn_local(replay::run(replay.clone(), reader, Rc::clone(&shared)));
        }
        effects.signal_ready();
        let report = Metrics::new(metrics, Rc::clone(&shared));
        let intake = Rc::clone(&shared.intake);
        let ended = ingest::run(control, effects, intake, sources, report, input).await;
        drop(claims);
        ended
    }
}
