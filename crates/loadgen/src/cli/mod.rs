//! The command line.

mod ipfix;
#[cfg(feature = "sink")]
mod metrics;
mod send;
#[cfg(feature = "sink")]
mod sink;
mod target;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use serde::Serialize;

/// Traffic for receivers, and a sink for exporters.
#[derive(Debug, Parser)]
#[command(name = "catchment-loadgen", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Sends generated log lines.
    Syslog(send::SyslogArgs),
    /// Sends generated IPFIX or NetFlow messages with flows.
    Ipfix(ipfix::IpfixArgs),
    /// Sends generated high-frequency telemetry of a SONiC switch.
    Sonic(ipfix::SonicArgs),
    /// Sends the payloads of a recording: pcap, pcapng, a stream of IPFIX messages, or lines of text.
    Replay(send::ReplayArgs),
    /// Sends generated metrics over OTLP or OTAP, encoded beforehand: latencies that are a function of their position.
    #[cfg(feature = "sink")]
    Metrics(metrics::MetricsArgs),
    /// Receives OTAP and OTLP, counts it and records it.
    #[cfg(feature = "sink")]
    Sink(sink::SinkArgs),
}

/// Any failure, to be shown to the user.
pub(crate) type CliError = Box<dyn std::error::Error + Send + Sync>;

/// Does what the arguments ask for.
pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    match args.command {
        Command::Syslog(args) => send::syslog(&args).and_then(|sent| finish(&sent)),
        Command::Ipfix(args) => ipfix::ipfix(&args).and_then(|sent| finish(&sent)),
        Command::Sonic(args) => ipfix::sonic(&args).and_then(|sent| finish(&sent)),
        Command::Replay(args) => send::replay(&args).and_then(|sent| finish(&sent)),
        #[cfg(feature = "sink")]
        Command::Metrics(args) => metrics::metrics(&args).and_then(|sent| finish(&sent)),
        #[cfg(feature = "sink")]
        Command::Sink(args) => sink::run(args),
    }
}

fn finish(result: &impl Serialize) -> Result<ExitCode, CliError> {
    print(result)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints one line, at once: the reader may be waiting for it.
fn print(object: &impl Serialize) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, object)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}
