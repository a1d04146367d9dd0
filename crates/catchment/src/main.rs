//! `catchment`: the OTel-Arrow Dataflow Engine with Catchment's nodes linked in.

mod check;
mod cli;
mod components;
mod decode;
mod drain;
mod parent_ids;
mod report;
mod run;

use std::process::ExitCode;

use clap::Parser;

// The linker keeps the registrations of a crate only if the crate is named.
use catchment_nodes as _;
use otel_arrow_dfe_core_nodes as _;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Exit code of a wrong command line or configuration.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments = cli::Cli::parse();
    // Before anything else: reading a configuration may already need TLS.
    if let Err(error) = otel_arrow_dfe_otap::crypto::install_crypto_provider() {
        complain(&format!("no TLS provider: {error}"));
        return ExitCode::FAILURE;
    }
    match arguments.command {
        Some(cli::Command::Validate { file }) => check::validate(&file),
        Some(cli::Command::Components) => components::print(),
        Some(cli::Command::Decode { input }) => decode::run(input),
        None => run::run(&arguments.engine),
    }
}

/// Writes the answer of a command. A reader that has seen enough is no failure.
fn answer(text: &str) -> ExitCode {
    use std::io::Write as _;
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            complain(&format!("cannot write to standard output: {error}"));
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Tells what is wrong. If nobody listens on standard error, the work at hand still goes on.
fn complain(error: &dyn std::fmt::Display) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "catchment: {error}");
}
