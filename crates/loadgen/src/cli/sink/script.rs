//! Arguments of a sink that follows a script.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use catchment_loadgen::sink::script::{Protocol, SinkScript};
use catchment_loadgen::sink::{OrderOptions, ScriptReport};
use clap::Args;
use serde_json::json;

use crate::cli::{CliError, print};

/// How much of what random scripts can do, if nothing is said.
const DEFAULT_INTENSITY: f64 = 0.5;

#[derive(Debug, Args)]
pub(super) struct ScriptArgs {
    /// Answers as this script says (YAML): late, with codes, wrongly or not at all; ends streams and connections.
    #[arg(long, value_name = "FILE", conflicts_with = "random_script")]
    script: Option<PathBuf>,
    /// Makes a script with faults of all kinds, and prints it; needs exactly one address, whose protocol it is for.
    #[arg(long, value_name = "SEED")]
    random_script: Option<u64>,
    /// How many faults a random script has, and for how long: 0 to 1.
    #[arg(long, value_name = "PART", requires = "random_script", default_value_t = DEFAULT_INTENSITY)]
    intensity: f64,
    /// Attribute with the key of each item; items of a key have to arrive in order. Implies a report [default: key].
    #[arg(long, value_name = "NAME")]
    key_attribute: Option<String>,
    /// Attribute with the number of each item within its key, an integer. Implies a report [default: seq].
    #[arg(long, value_name = "NAME")]
    sequence_attribute: Option<String>,
    /// The first number of each key.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    first_number: u64,
    /// Writes the report with every request to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl ScriptArgs {
    /// The script, if anything asks for one; `protocols` are those that are listened for.
    pub(super) fn script(&self, protocols: &[Protocol]) -> Result<Option<SinkScript>, CliError> {
        if let Some(path) = &self.script {
            let named = |error| format!("{}: {error}", path.display());
            return Ok(Some(SinkScript::from_file(path).map_err(named)?));
        }
        if let Some(seed) = self.random_script {
            let [protocol] = protocols else {
                return Err(
                    "a random script is for one protocol: expected one of --otlp-grpc, --otlp-http, --otap".into()
                );
            };
            let script = SinkScript::random(seed, *protocol, self.intensity);
            print(&json!({ "script": script }))?;
            return Ok(Some(script));
        }
        let asked = self.key_attribute.is_some() || self.sequence_attribute.is_some() || self.report.is_some();
        Ok(asked.then(SinkScript::default))
    }

    pub(super) fn order(&self) -> OrderOptions {
        let default = OrderOptions::default();
        OrderOptions {
            key_attribute: self.key_attribute.clone().unwrap_or(default.key_attribute),
            sequence_attribute: self.sequence_attribute.clone().unwrap_or(default.sequence_attribute),
            first: self.first_number,
        }
    }

    /// Prints the report without the requests, and writes all of it to the file.
    pub(super) fn tell(&self, report: &ScriptReport) -> Result<(), CliError> {
        print(&json!({ "report": { "totals": report.totals, "keys": report.keys } }))?;
        if let Some(path) = &self.report {
            let failed = |error: std::io::Error| format!("cannot write the report {}: {error}", path.display());
            let mut file = BufWriter::new(File::create(path).map_err(failed)?);
            serde_json::to_writer(&mut file, report)?;
            file.flush().map_err(failed)?;
        }
        Ok(())
    }
}
