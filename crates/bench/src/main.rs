//! Measures the engine with our nodes, side by side with peers, in tables of one JSON object a line.
//!
//! Progress and errors are on standard error. A row is printed only if everything that was sent arrived; if any is
//! missing for this or another reason the exit code is 1.

mod framing;
mod http;
mod process;
mod row;
mod stats;
mod tables;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use process::{LOAD_CORE, pin};
use row::{Machine, Rows};
use tables::{Setup, Table};

/// Environment variable that names the engine's binary.
const BINARY_VARIABLE: &str = "CATCHMENT_BINARY";
/// Environment variable that names the program of upstream 0.63.
const PEER_063_VARIABLE: &str = "CATCHMENT_PEER_063";

/// Environment variable that names the program with crates that decode IPFIX.
const PEER_IPFIX_VARIABLE: &str = "CATCHMENT_PEER_IPFIX";
/// Environment variable that names the folder of captures.
const CAPTURES_VARIABLE: &str = "CATCHMENT_IPFIX_CAPTURES";

/// Measures one table of the benchmarks.
#[derive(Debug, Parser)]
#[command(name = "catchment-bench", version)]
struct Args {
    /// The table.
    #[arg(value_enum)]
    table: Table,
    /// One short run of each side at a low rate: to see that it works, not to compare.
    #[arg(long)]
    quick: bool,
    /// Writes the rows to this file too, which is replaced.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The engine; without it $CATCHMENT_BINARY, or `catchment` beside this program.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Version 0.63 of the engine with its own nodes (peers/upstream-0.63); without it $CATCHMENT_PEER_063, or no rows of
    /// it.
    #[arg(long, value_name = "PATH")]
    peer_063: Option<PathBuf>,
    /// Crates that decode IPFIX, in a program (peers/ipfix-crates); without it $CATCHMENT_PEER_IPFIX, or no rows of them.
    #[arg(long, value_name = "PATH")]
    peer_ipfix: Option<PathBuf>,
    /// Measures only cases whose name has this in it; may be given again for more.
    #[arg(long = "case", value_name = "PART")]
    cases: Vec<String>,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let ran = match arguments.next() {
        // What this program starts itself.
        Some(command) if command == framing::COMMAND => {
            framing::run(arguments.next().as_deref()).map(|()| 0).map_err(Into::into)
        }
        _ => run(Args::parse()),
    };
    match ran {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failures) => {
            report(&format!("{failures} sides of cases could not be measured"));
            ExitCode::FAILURE
        }
        Err(error) => {
            report(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn report(error: &str) {
    // Nothing is left to do if standard error is closed.
    let _ = writeln!(io::stderr(), "error: {error}");
}

/// Gives the number of sides of cases that failed.
fn run(args: Args) -> Result<usize, Box<dyn std::error::Error>> {
    let binary = match args.table.needs_engine() {
        true => Some(find_binary(args.binary, std::env::var_os(BINARY_VARIABLE), &std::env::current_exe()?)?),
        false => None,
    };
    let peer_063 = find_peer("upstream-0.63", args.peer_063, std::env::var_os(PEER_063_VARIABLE))?;
    let peer_ipfix = find_peer("ipfix-crates", args.peer_ipfix, std::env::var_os(PEER_IPFIX_VARIABLE))?;
    let captures = std::env::var_os(CAPTURES_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    // Before any thread starts, so that all of them stay off the engine's core.
    pin(LOAD_CORE)?;
    let file = args.json.map(File::create).transpose()?;
    let mut rows = Rows::new(Machine::detect(), io::stdout(), file);
    args.table
        .measure(&Setup { binary, peer_063, peer_ipfix, captures, quick: args.quick, cases: args.cases }, &mut rows)
}

/// The first of: the argument, the variable, the neighbour of this program.
fn find_binary(argument: Option<PathBuf>, variable: Option<OsString>, program: &Path) -> Result<PathBuf, String> {
    let path = argument.or(variable.map(PathBuf::from)).unwrap_or_else(|| program.with_file_name("catchment"));
    if path.is_file() {
        return Ok(path);
    }
    Err(format!(
        "no engine at {}: build it first: cargo build --release -p catchment (or name it with --binary or {BINARY_VARIABLE})",
        path.display()
    ))
}

/// The argument or the variable. A path that is given must be there; it is no error to give none.
fn find_peer(peer: &str, argument: Option<PathBuf>, variable: Option<OsString>) -> Result<Option<PathBuf>, String> {
    let given = argument.or(variable.filter(|path| !path.is_empty()).map(PathBuf::from));
    match given {
        Some(path) if !path.is_file() => Err(format!(
            "no program of peer {peer} at {}: build it first with crates/bench/peers/{peer}/build.sh",
            path.display()
        )),
        given => Ok(given),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The argument wins over the variable, which wins over the neighbour; what is missing is explained.
    #[test]
    fn binary() {
        let folder = tempfile::tempdir().unwrap();
        let [argument, variable, neighbour] = ["argument", "variable", "catchment"].map(|name| {
            let path = folder.path().join(name);
            std::fs::write(&path, "").unwrap();
            path
        });
        let program = folder.path().join("catchment-bench");
        let find = |a: Option<&PathBuf>, v: Option<&PathBuf>| find_binary(a.cloned(), v.map(|v| v.into()), &program);
        assert_eq!(find(Some(&argument), Some(&variable)).unwrap(), argument);
        assert_eq!(find(None, Some(&variable)).unwrap(), variable);
        assert_eq!(find(None, None).unwrap(), neighbour);
        std::fs::remove_file(&neighbour).unwrap();
        assert!(find(None, None).unwrap_err().contains("build it first: cargo build --release -p catchment"));
    }

    /// The peer may be left out, but not be missing where it is said to be.
    #[test]
    fn peer() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_owned();
        let find = |argument, variable| find_peer("ipfix-crates", argument, variable);
        assert_eq!(find(None, None), Ok(None));
        assert_eq!(find(None, Some("".into())), Ok(None));
        assert_eq!(find(None, Some(path.clone().into())), Ok(Some(path.clone())));
        assert_eq!(find(Some(path.clone()), Some("/missing".into())), Ok(Some(path)));
        assert!(find(Some("/missing".into()), None).unwrap_err().contains("peers/ipfix-crates/build.sh"));
    }
}
