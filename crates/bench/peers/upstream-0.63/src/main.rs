//! Version 0.63 of the engine with its own nodes.

use otel_arrow_dfe_config::engine::OtelDataflowSpec;
use otel_arrow_dfe_controller::{Controller, ControllerRunOptions, startup};
use otel_arrow_dfe_core_nodes as _;
use otel_arrow_dfe_otap::OTAP_PIPELINE_FACTORY;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    otel_arrow_dfe_otap::crypto::install_crypto_provider()?;
    let path = std::env::args().skip_while(|argument| argument != "--config").nth(1).ok_or("usage: --config FILE")?;
    let spec = OtelDataflowSpec::from_file(path)?;
    startup::validate_engine_components(&spec, &OTAP_PIPELINE_FACTORY)?;
    let options = ControllerRunOptions { handle_os_signals: true, ..Default::default() };
    Controller::new(&OTAP_PIPELINE_FACTORY).run_forever_with_options(spec, options)?;
    Ok(())
}
