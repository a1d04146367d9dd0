//! The command that receives.

mod script;

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use catchment_loadgen::sink::script::Protocol;
use catchment_loadgen::sink::{Interrupter, Recording, Sink, SinkOptions, WaitError};
use clap::Args;
use humantime_serde::re::humantime;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::{CliError, print};

/// How long to wait for what is expected.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
pub(super) struct SinkArgs {
    /// Address for OTLP over gRPC, such as 127.0.0.1:4317; port 0 for any free one.
    #[arg(long, value_name = "ADDRESS", required_unless_present_any = ["otap", "otlp_http"])]
    otlp_grpc: Option<SocketAddr>,
    /// Address for OTLP over HTTP; port 0 for any free one.
    #[arg(long, value_name = "ADDRESS")]
    otlp_http: Option<SocketAddr>,
    /// Address for OTAP; port 0 for any free one.
    #[arg(long, value_name = "ADDRESS")]
    otap: Option<SocketAddr>,
    /// Writes each log record and number point to this file, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Ends when so many log records, points and spans have arrived.
    #[arg(long, value_name = "ITEMS")]
    expect: Option<u64>,
    /// Ends after this time, such as 30s; without it after 30s if something is expected, else never.
    #[arg(long, value_parser = humantime::parse_duration)]
    timeout: Option<Duration>,
    /// Counts requests and bytes without decoding them, so that the sender is what is measured; items stay 0.
    #[arg(
        long,
        conflicts_with_all = ["record", "expect", "script", "random_script", "key_attribute", "sequence_attribute", "report"]
    )]
    raw: bool,
    #[command(flatten)]
    script: script::ScriptArgs,
}

pub(super) fn run(args: SinkArgs) -> Result<ExitCode, CliError> {
    let protocols =
        [(args.otlp_grpc, Protocol::OtlpGrpc), (args.otlp_http, Protocol::OtlpHttp), (args.otap, Protocol::Otap)];
    let protocols: Vec<_> = protocols.into_iter().filter_map(|(address, protocol)| address.map(|_| protocol)).collect();
    let script = args.script.script(&protocols)?;
    let sink = Sink::start(SinkOptions {
        otap: args.otap,
        otlp_grpc: args.otlp_grpc,
        otlp_http: args.otlp_http,
        record: args.record.map_or(Recording::Off, Recording::File),
        script,
        order: args.script.order(),
        raw: args.raw,
    })?;
    interrupt_on_signals(sink.interrupter())?;
    print(&json!({ "listening": sink.addresses() }))?;

    let timeout = args.timeout.unwrap_or(if args.expect.is_some() { DEFAULT_TIMEOUT } else { Duration::MAX });
    let waited = sink.wait_for(args.expect.unwrap_or(u64::MAX), timeout);
    let (counts, report) = sink.stop_with_report()?;
    print(&counts)?;
    if let Some(report) = report {
        args.script.tell(&report)?;
    }

    let met = match (args.expect, waited) {
        (Some(_), Err(error @ (WaitError::TimedOut { .. } | WaitError::Interrupted { .. }))) => {
            writeln!(io::stderr(), "error: {error}")?;
            false
        }
        // Without anything expected the time was simply over.
        (None, _) | (_, Ok(_)) => true,
    };
    Ok(if met && counts.decode_errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// From now on SIGTERM and SIGINT end the waiting.
fn interrupt_on_signals(interrupter: Interrupter) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let entered = runtime.enter();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    drop(entered);
    // The thread ends with the process.
    let _ = std::thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
        interrupter.interrupt();
    })?;
    Ok(())
}
