//! `urn:catchment:exporter:console_table`: number points as a table that a person likes to read.
//!
//! `rows.rs` turns points into rows (one a series, quantiles as columns), `render.rs` turns rows into a table or into
//! plain lines, `units.rs` makes numbers readable, `node.rs` is the exporter.

otel_arrow_dfe_telemetry::otel_component_scope!(
    urn = CONSOLE_TABLE_EXPORTER_URN,
    target = "catchment.exporter.console_table"
);

mod config;
mod metrics;
mod node;
mod render;
mod rows;
mod units;

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
use metrics::{ConsoleTableMetrics, Metrics};
use node::ConsoleTableExporter;

use crate::accounts::NodeName;

/// URN of the node.
pub const CONSOLE_TABLE_EXPORTER_URN: &str = "urn:catchment:exporter:console_table";

/// Registration of the node.
#[allow(unsafe_code, reason = "linkme places the static in a link section")]
#[otel_arrow_dfe_engine::component_inventory(category = Exporter)]
#[distributed_slice(OTAP_EXPORTER_FACTORIES)]
pub static CONSOLE_TABLE_EXPORTER: ExporterFactory<OtapPdata> = ExporterFactory {
    name: CONSOLE_TABLE_EXPORTER_URN,
    create: |pipeline: PipelineContext,
             node: NodeId,
             node_config: Arc<NodeUserConfig>,
             exporter_config: &ExporterConfig,
             _capabilities: &Capabilities| {
        let config = Config::parse(&node_config.config)?;
        let metrics = Metrics::new(ConsoleTableMetrics::register(&pipeline), NodeName::of(&pipeline));
        let exporter = ConsoleTableExporter::new(&config, metrics);
        Ok(ExporterWrapper::local(exporter, node, node_config, exporter_config))
    },
    context_declarations: None,
    wiring_contract: WiringContract::UNRESTRICTED,
    validate_config: |config| Config::parse(config).map(|_| ()),
};
