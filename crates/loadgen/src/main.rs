//! Sends traffic to receivers, and receives what exporters send.
//!
//! Results are printed on standard output as one JSON object a line; errors on standard error, with exit code 1.

mod cli;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match cli::run(cli::Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            // Nothing is left to do if standard error is closed.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}
