//! `urn:catchment:exporter:lanes`: OTAP, OTLP over gRPC and OTLP over HTTP, in order and with nothing lost unseen.
//!
//! `config.rs` reads the configuration, `connect.rs` and `tls.rs` make connections by it, `wires.rs` makes lanes with the
//! wires of the protocol, `intake.rs` takes batches apart and finds their keys, `node.rs` is the exporter, `drain.rs` its
//! end, `settle.rs` tells the engine what became of each batch. Lanes, wires and encoders are in `catchment-delivery`.

otel_arrow_dfe_telemetry::otel_component_scope!(urn = LANES_EXPORTER_URN, target = "catchment.exporter.lanes");

mod config;
mod connect;
mod drain;
#[cfg(test)]
mod faults;
mod intake;
mod metrics;
mod node;
mod settle;
mod tls;
mod wires;

use std::sync::Arc;

use linkme::distributed_slice;
use otel_arrow_dfe_config::node::NodeUserConfig;
use otel_arrow_dfe_engine::ExporterFactory;
use otel_arrow_dfe_engine::capability::registry::Capabilities;
use otel_arrow_dfe_engine::config::ExporterConfig;
use otel_arrow_dfe_engine::context::PipelineContext;
use otel_arrow_dfe_engine::exporter::ExporterWrapper;
use otel_arrow_dfe_engine::node::NodeId;
use otel_arrow_dfe_engine::wiring_contract::WiringContract;
use otel_arrow_dfe_otap::OTAP_EXPORTER_FACTORIES;
use otel_arrow_dfe_otap::pdata::OtapPdata;

use config::Config;
use metrics::Metrics;
use node::LanesExporter;

/// URN of the node.
pub const LANES_EXPORTER_URN: &str = "urn:catchment:exporter:lanes";

/// Registration of the node.
#[allow(unsafe_code, reason = "linkme places the static in a link section")]
#[otel_arrow_dfe_engine::component_inventory(category = Exporter)]
#[distributed_slice(OTAP_EXPORTER_FACTORIES)]
pub static LANES_EXPORTER: ExporterFactory<OtapPdata> = ExporterFactory {
    name: LANES_EXPORTER_URN,
    create: |pipeline: PipelineContext,
             node: NodeId,
             node_config: Arc<NodeUserConfig>,
             exporter_config: &ExporterConfig,
             _capabilities: &Capabilities| {
        let config = Config::parse(&node_config.config)?;
        let metrics = Metrics::new(&pipeline, &pipeline, config.count.get());
        let exporter = LanesExporter::new(config, metrics);
        Ok(ExporterWrapper::local(exporter, node, node_config, exporter_config))
    },
    context_declarations: None,
    wiring_contract: WiringContract::UNRESTRICTED,
    validate_config: |config| Config::parse(config).map(|_| ()),
};
