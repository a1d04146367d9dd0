//! Running the engine.

use std::process::ExitCode;

use otel_arrow_dfe_config::policy::{CoreAllocation, CoreRange};
use otel_arrow_dfe_controller::{BuildInfo, Controller, ControllerRunOptions, startup};
use otel_arrow_dfe_core_nodes::exporters::console_exporter::claim_structured_stdout;
use otel_arrow_dfe_otap::OTAP_PIPELINE_FACTORY;
use otel_arrow_dfe_telemetry::output_service::{Frame, OutputService, OutputServiceConfig};

use crate::cli::{CoreRanges, Engine};
use crate::{EXIT_USAGE, check, complain, drain, parent_ids, report};

pub(crate) fn run(arguments: &Engine) -> ExitCode {
    let prepared = check::load(arguments.config.as_deref()).and_then(|mut spec| {
        startup::apply_cli_overrides(
            &mut spec,
            arguments.num_cores,
            arguments.core_id_range.as_ref().map(core_set),
            arguments.http_admin_bind.clone(),
        );
        check::check(&spec)?;
        Ok(spec)
    });
    let mut spec = match prepared {
        Ok(spec) => spec,
        Err(error) => {
            complain(&error);
            return ExitCode::from(EXIT_USAGE);
        }
    };
    if arguments.validate_and_exit {
        return check::say_valid(&spec);
    }
    parent_ids::choose(&mut spec);
    claim_structured_stdout(&spec);
    let mut options = ControllerRunOptions {
        build_info: BuildInfo {
            service_name: Some(env!("CARGO_PKG_NAME").to_owned()),
            service_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        },
        ..ControllerRunOptions::default()
    };
    let drained = drain::install(&mut spec, &mut options.extensions);
    let result = Controller::new(&OTAP_PIPELINE_FACTORY).run_forever_with_options(spec, options);

    let text = report::text(&drained.nodes, &drained.counts);
    let console = if OutputService::structured_stdout() { OutputService::stderr() } else { OutputService::stdout() };
    let told = console.try_submit(Frame::new(text.into_bytes())).map_err(|error| error.to_string());
    let output = OutputService::shutdown(OutputServiceConfig::default().shutdown_drain_deadline);
    if let Err(error) = told {
        complain(&format!("the report could not be written: {error}"));
    }
    match result {
        Ok(()) if output.drained => ExitCode::SUCCESS,
        Ok(()) => {
            complain(&"console output could not be written to its end");
            ExitCode::FAILURE
        }
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn core_set(ranges: &CoreRanges) -> CoreAllocation {
    CoreAllocation::core_set(ranges.iter().map(|(start, end)| CoreRange { start: *start, end: *end }).collect())
}
