//! `urn:catchment:processor:quantile`: exact or KLL quantiles of numbers in logs and metrics, by window and series.
//!
//! `config.rs` reads the configuration, `measure.rs` offers the observations of a batch to the windows of one measure,
//! `holds.rs` keeps the inputs of open windows until their output is acknowledged, `output.rs` writes what
//! closed windows are sent as, `forward.rs` takes out of an input what goes on unchanged, `outputs.rs` sends either and
//! sends it again, `transit.rs` ties inputs to outputs, `silence.rs` finds windows without observations, `node.rs` is the
//! processor; `merge` is the one that takes what others send so. Reading
//! and writing columns is in `catchment-columns`, sketches and windows are in `catchment-quantile`.

otel_arrow_dfe_telemetry::otel_component_scope!(urn = QUANTILE_PROCESSOR_URN, target = "catchment.processor.quantile");

mod config;
mod forward;
mod holds;
mod measure;
mod merge;
mod metrics;
mod node;
mod output;
mod outputs;
mod silence;
#[cfg(test)]
mod tests;
mod transit;

use std::sync::Arc;

use linkme::distributed_slice;
use otel_arrow_dfe_config::error::Error;
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
use forward::{LATE_PORT, Late};
use merge::{MergeConfig, MergeMetrics, MergeProcessor};
use metrics::QuantileMetrics;
use node::QuantileProcessor;
use outputs::Ports;

use crate::accounts::NodeName;
use crate::drain::PipelineInstance;

/// URN of the node.
pub const QUANTILE_PROCESSOR_URN: &str = "urn:catchment:processor:quantile";

/// The port that a connection without a port leads from.
const MAIN_PORT: &str = "default";

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
        if MergeConfig::is_meant(&node_config.config) {
            let config = MergeConfig::parse(&node_config.config)?;
            let name = NodeName::of(&pipeline);
            let metrics = merge::Metrics::new(MergeMetrics::register(&pipeline), name.clone());
            let processor = MergeProcessor::new(config, &name, PipelineInstance::of(&pipeline), metrics)?;
            return Ok(ProcessorWrapper::local(processor, node, node_config, processor_config));
        }
        let config = Config::parse(&node_config.config)?;
        let ports = ports(&config, &node_config)?;
        let processor = QuantileProcessor::new(
            config,
            NodeName::of(&pipeline),
            PipelineInstance::of(&pipeline),
            QuantileMetrics::register(&pipeline),
            ports,
        )?;
        Ok(ProcessorWrapper::local(processor, node, node_config, processor_config))
    },
    context_declarations: None,
    wiring_contract: WiringContract::UNRESTRICTED,
    validate_config: |config| match MergeConfig::is_meant(config) {
        true => MergeConfig::parse(config).map(|_| ()),
        false => Config::parse(config).map(|_| ()),
    },
};

/// The output ports that the node sends to by name. With one output it needs none.
fn ports(config: &Config, node: &NodeUserConfig) -> Result<Ports, Error> {
    if config.late == Late::Drop {
        return Ok(Ports::default());
    }
    let is_declared = |port: &str| node.outputs.is_empty() || node.outputs.iter().any(|output| output.as_ref() == port);
    if !is_declared(LATE_PORT) {
        return Err(crate::config::invalid(format!(
            "outputs: `{LATE_PORT}` is missing, expected it with `late: side_output`"
        )));
    }
    let main = node.default_output.clone().unwrap_or_else(|| MAIN_PORT.into());
    if main.as_ref() == LATE_PORT {
        return Err(crate::config::invalid(format!(
            "default_output: `{LATE_PORT}` is for late items, expected another output for the results"
        )));
    }
    Ok(Ports { main: Some(main), late: Some(LATE_PORT.into()) })
}
