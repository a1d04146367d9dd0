//! Reading and checking configurations.

use std::process::ExitCode;

use otel_arrow_dfe_config::config_provider::{ConfigFormat, resolve_config};
use otel_arrow_dfe_config::engine::OtelDataflowSpec;
use otel_arrow_dfe_controller::{ControllerExtensionRegistry, startup};
use otel_arrow_dfe_otap::OTAP_PIPELINE_FACTORY;

use crate::{EXIT_USAGE, answer, complain};

/// Reads the configuration at `uri` and checks its structure.
pub(crate) fn load(uri: Option<&str>) -> Result<OtelDataflowSpec, String> {
    let resolved = resolve_config(uri).map_err(|error| error.to_string())?;
    let spec = match resolved.format {
        ConfigFormat::Yaml => OtelDataflowSpec::from_yaml(&resolved.content),
        ConfigFormat::Json => OtelDataflowSpec::from_json(&resolved.content),
    };
    spec.map_err(|error| format!("{}: {error}", resolved.source))
}

/// Checks that every node is linked in and its configuration right.
pub(crate) fn check(spec: &OtelDataflowSpec) -> Result<(), String> {
    startup::validate_engine_components(spec, &OTAP_PIPELINE_FACTORY).map_err(|error| error.to_string())?;
    startup::validate_controller_extensions(spec, &ControllerExtensionRegistry::default())
        .map_err(|error| error.to_string())
}

/// `catchment validate FILE`.
pub(crate) fn validate(uri: &str) -> ExitCode {
    match load(Some(uri)).and_then(|spec| check(&spec).map_err(|error| format!("{uri}: {error}")).map(|()| spec)) {
        Ok(spec) => say_valid(&spec),
        Err(error) => {
            complain(&error);
            ExitCode::from(EXIT_USAGE)
        }
    }
}

/// Says what was found right.
pub(crate) fn say_valid(spec: &OtelDataflowSpec) -> ExitCode {
    let pipelines: usize = spec.groups.values().map(|group| group.pipelines.len()).sum();
    let nodes: usize =
        spec.groups.values().flat_map(|group| group.pipelines.values()).map(|p| p.node_iter().count()).sum();
    answer(&format!("valid: {pipelines} pipelines, {nodes} nodes\n"))
}
