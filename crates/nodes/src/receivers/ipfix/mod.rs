//! `urn:catchment:receiver:ipfix`: IPFIX, NetFlow v9 and v5 over UDP, TCP and TLS, from files, and SONiC's telemetry.
//!
//! `config.rs` reads the configuration. `udp.rs`, `tcp.rs` with `connection.rs`, `replay.rs` and `sources/` take datagrams
//! and messages; `flows.rs` and `sonic.rs` admit them: headers, sequence numbers and templates at once, records later by
//! decode jobs (`pending.rs`, `crate::ingest`). `shared.rs` is what they have in common, `start.rs` opens the sources.
//! The protocol itself is in `catchment-ipfix`, the mapping to columns in `catchment-columns`.

otel_arrow_dfe_telemetry::otel_component_scope!(urn = IPFIX_RECEIVER_URN, target = "catchment.receiver.ipfix");

mod config;
mod connection;
mod exporter_metrics;
mod flows;
mod metrics;
mod pending;
mod problem_metrics;
mod replay;
mod shared;
mod sonic;
mod sources;
mod start;
mod tcp;
mod template_cache;
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

use crate::accounts::NodeName;
use crate::drain::{Input, PipelineInstance};
use crate::ingest::{self, Rates, SamplingReports};
use config::Config;
use exporter_metrics::ExporterReports;
use metrics::{IpfixMetrics, Metrics};
use problem_metrics::{ProblemMetrics, ProblemReports};
use shared::Shared;
use start::Started;

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
        config.check_cores(pipeline.num_cores())?;
        let pressure = LocalReceiverAdmissionState::from_process_state(&pipeline.memory_pressure_state());
        let rates = Rates::bind(&pipeline, pressure.clone(), config.max_datagrams_per_second_per_source)?;
        let name = NodeName::of(&pipeline);
        let receiver = IpfixReceiver {
            reports: Reports {
                receiver: IpfixMetrics::register(&pipeline),
                problems: ProblemReports::new(ProblemMetrics::register(&pipeline)),
                exporters: ExporterReports::new(&pipeline, config.exporter_metrics),
                sampled: SamplingReports::new(&pipeline, config.head_sampling().is_some()),
            },
            shared: Shared::new(&config, pressure, rates, name.clone())?,
            config,
            name,
            pipeline: PipelineInstance::of(&pipeline),
            cores: pipeline.num_cores(),
        };
        Ok(ReceiverWrapper::local(receiver, node, node_config, receiver_config).with_startup_readiness())
    },
    context_declarations: None,
    wiring_contract: WiringContract::UNRESTRICTED,
    validate_config: |config| Config::parse(config).map(|_| ()),
};

/// The metric sets.
struct Reports {
    receiver: MetricSet<IpfixMetrics>,
    problems: ProblemReports,
    exporters: ExporterReports,
    sampled: SamplingReports,
}

struct IpfixReceiver {
    config: Config,
    shared: Shared,
    name: NodeName,
    pipeline: PipelineInstance,
    cores: usize,
    reports: Reports,
}

#[async_trait(?Send)]
impl local::Receiver<OtapPdata> for IpfixReceiver {
    async fn start(
        self: Box<Self>,
        control: local::ControlChannel<OtapPdata>,
        effects: local::EffectHandler<OtapPdata>,
    ) -> Result<TerminalState, Error> {
        let Self { config, shared, name, pipeline, cores, reports } = *self;
        let input = Input::begin(pipeline);
        let shared = Rc::new(shared);
        let Started { sources, claims } = start::sources(&config, &name, cores, &effects, &shared).await?;
        effects.signal_ready();
        let Reports { receiver, problems, exporters, sampled } = reports;
        let report = Metrics::new(receiver, problems, exporters, sampled, Rc::clone(&shared));
        let intake = Rc::clone(&shared.intake);
        let ended = ingest::run(control, effects, intake, sources, report, input).await;
        drop(claims);
        ended
    }
}
