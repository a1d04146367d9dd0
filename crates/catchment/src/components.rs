//! `catchment components`: what is linked in.

use std::fmt::Write as _;
use std::process::ExitCode;

use otel_arrow_dfe_otap::OTAP_PIPELINE_FACTORY;

use crate::answer;

/// Version of the engine and of its own nodes.
const ENGINE_VERSION: &str = "0.62.0";

pub(crate) fn print() -> ExitCode {
    let factory = &OTAP_PIPELINE_FACTORY;
    let mut urns: Vec<&str> = Vec::new();
    urns.extend(factory.get_receiver_factory_map().keys().copied());
    urns.extend(factory.get_processor_factory_map().keys().copied());
    urns.extend(factory.get_exporter_factory_map().keys().copied());
    urns.extend(factory.get_extension_factory_map().keys().copied());
    urns.sort_unstable_by_key(|urn| {
        // Ours first; then by kind and name.
        (!urn.starts_with("urn:catchment:"), *urn)
    });
    let mut text = format!("catchment {}, engine otel-arrow-dfe {ENGINE_VERSION}\n", env!("CARGO_PKG_VERSION"));
    let width = urns.iter().map(|urn| urn.len()).max().unwrap_or(0);
    for urn in urns {
        let version = if urn.starts_with("urn:catchment:") { env!("CARGO_PKG_VERSION") } else { ENGINE_VERSION };
        let _ = writeln!(text, "{urn:width$}  {version}");
    }
    answer(&text)
}
