//! Reading and checking configurations.

use std::process::ExitCode;

use otel_arrow_dfe_config::config_provider::{ConfigFormat, resolve_config};
use otel_arrow_dfe_config::engine::OtelDataflowSpec;
use otel_arrow_dfe_config::error::Error;
use otel_arrow_dfe_controller::{ControllerExtensionRegistry, startup};
use otel_arrow_dfe_otap::OTAP_PIPELINE_FACTORY;

use crate::{EXIT_USAGE, answer, complain};

/// Reads the configuration at `uri` and checks its structure.
pub(crate) fn load(uri: Option<&str>) -> Result<OtelDataflowSpec, String> {
    let resolved = resolve_config(uri).map_err(|error| explain(&error))?;
    let spec = match resolved.format {
        ConfigFormat::Yaml => OtelDataflowSpec::from_yaml(&resolved.content),
        ConfigFormat::Json => OtelDataflowSpec::from_json(&resolved.content),
    };
    spec.map_err(|error| format!("{}: {}", resolved.source, explain(&error)))
}

/// The engine's errors about the structure of a configuration, one sentence each. They come nested in lists, and in
/// the form that is made for programmers.
fn explain(error: &Error) -> String {
    match error {
        Error::InvalidConfiguration { errors } => errors.iter().map(explain).collect::<Vec<_>>().join("; "),
        Error::InvalidHyperEdgeSpec { context, source_node, missing_source, details } => {
            let missing = details.missing_targets.iter().chain(missing_source.then_some(source_node));
            let missing = missing.map(|node| format!("`{node}`")).collect::<Vec<_>>().join(", ");
            let name = |id: Option<&str>| id.unwrap_or("?").to_owned();
            format!(
                "pipeline_group={} pipeline={}: the connection from `{source_node}` names {missing}, \
                 expected names of nodes of this pipeline",
                name(context.pipeline_group_id.as_deref()),
                name(context.pipeline_id.as_deref()),
            )
        }
        other => other.to_string().replace("\nContext: ", " ").trim_end().to_owned(),
    }
}

/// Checks that every node is linked in and its configuration right.
pub(crate) fn check(spec: &OtelDataflowSpec) -> Result<(), String> {
    startup::validate_engine_components(spec, &OTAP_PIPELINE_FACTORY).map_err(|error| {
        let text = error.to_string();
        // The engine says which component is unknown; this says where the known ones are listed.
        if text.starts_with("Unknown ") {
            format!("{text}, expected one of those that `catchment components` lists")
        } else {
            text
        }
    })?;
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
