//! `urn:catchment:processor:quantile`: exact or KLL quantiles of numbers in logs and metrics, by window and series.
//!
//! `config.rs` reads the configuration, `measure.rs` offers the observations of a batch to the windows of one measure,
//! `holds.rs` keeps the inputs of open windows until their output is acknowledged, `node.rs` is the processor. Reading
//! and writing columns is in `catchment-columns`, sketches and windows are in `catchment-quantile`.

otel_arrow_dfe_telemetry::otel_component_scope!(urn = QUANTILE_PROCESSOR_URN, target = "catchment.processor.quantile");

mod config;
mod holds;
mod measure;
mod metrics;
mod node;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use linkme::distributed_slice;
use otel_arrow_dfe_config::node::NodeUserConfig;
use otel_arrow_dfe_engine::ProcessorFactory;
use otel_arrow_dfe_engine::capability::registry::Capabilities;
use otel_arrow_dfe_engine::config::ProcessorConfig;
use otel_arrow_dfe_engine::context::PipelineContext;
use otel_arrow_dfe_engine::node::NodeId;
use otel_arrow_dfe_engine::processor::ProcessorWrapper;
use otel_arrow_dfe_engine::wiring_contract::WiringContract;
use otel_arrow_dfe_otap::OTAP_PROCESSOR_FACTORIES;
use otel_arrow_dfe_otap::pdata::OtapPdata;

use config::Config;
use metrics::QuantileMetrics;
use node::QuantileProcessor;

use crate::accounts::NodeName;
use crate::drain::PipelineInstance;

/// URN of the node.
pub const QUANTILE_PROCESSOR_URN: &str = "urn:catchment:processor:quantile";

/// Registration of the node.
#[allow(unsafe_code, reason = "linkme places the static in a link section")]
#[otel_arrow_dfe_engine::component_inventory(category = Processor)]
#[distributed_slice(OTAP_PROCESSOR_FACTORIES)]
pub static QUANTILE_PROCESSOR: ProcessorFactory<OtapPdata> = ProcessorFactory {
    name: QUANTILE_PROCESSOR_URN,
    create: |pipeline: PipelineContext,
             node: NodeId,
             node_config: Arc<NodeUserConfig>,
             processor_config: &ProcessorConfig,
             _capabilities: &Capabilities| {
        let config = Config::parse(&node_config.config)?;
        let processor = QuantileProcessor::new(
            config,
            NodeName::of(&pipeline),
            PipelineInstance::of(&pipeline),
            QuantileMetrics::register(&pipeline),
        )?;
        Ok(ProcessorWrapper::local(processor, node, node_config, processor_config))
    },
    context_declarations: None,
    wiring_contract: WiringContract::UNRESTRICTED,
    validate_config: |config| Config::parse(config).map(|_| ()),
};
