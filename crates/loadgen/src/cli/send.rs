//! What all commands that send have in common, and those that send lines and recordings.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Instant;

use catchment_capture::{Item, Reader};
use catchment_loadgen::traffic::{
    DEFAULT_START_UNIX_NANO, Framing, Payloads, SendOptions, Sent, Source, SyslogFormat, SyslogLines, SyslogOptions,
    send_tcp, send_udp_in_turns, write_pcap, write_stream,
};
use clap::Args;
use serde::Serialize;

use super::CliError;
use super::target::Target;

/// Where to, and how fast.
#[derive(Debug, Args)]
pub(super) struct Sending {
    /// udp://HOST:PORT, tcp://HOST:PORT, file:PATH for messages as in a TCP stream, or pcap:PATH for datagrams of a
    /// capture. Files are replaced.
    #[arg(long)]
    pub(super) to: Target,
    /// Messages a second; without it as fast as the socket takes them. Files are written without a pace.
    #[arg(long)]
    pub(super) rate: Option<NonZeroU64>,
}

#[derive(Debug, Args)]
pub(super) struct SyslogArgs {
    #[command(flatten)]
    sending: Sending,
    /// Shape of the lines.
    #[arg(long, value_enum)]
    format: SyslogFormat,
    /// How lines are told apart in a TCP stream; a datagram is always one line.
    #[arg(long, value_enum, default_value = "newline")]
    framing: Framing,
    /// Lines to send.
    #[arg(long)]
    count: u64,
    /// The same seed gives the same lines. Each connection has its own, counted up from here.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Gives every line its own time stamp.
    #[arg(long)]
    fresh_time: bool,
    /// Connections, or sockets, that share the lines and the rate.
    #[arg(long, default_value = "1")]
    connections: NonZeroU64,
}

#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    #[command(flatten)]
    sending: Sending,
    /// How payloads are told apart in a TCP stream; a datagram is always one payload.
    #[arg(long, value_enum, default_value = "newline")]
    framing: Framing,
    /// The recording.
    file: PathBuf,
}

/// What was sent, as it is printed.
#[derive(Debug, Default, Serialize)]
pub(super) struct Summary {
    pub(super) messages: u64,
    pub(super) records: u64,
    pub(super) bytes: u64,
    seconds: f64,
    /// Records of a recording that hold no payload to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
    /// Messages that were made to get lost, and the records in them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lost_messages: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lost_records: Option<u64>,
    /// Counters in records of telemetry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) counters: Option<u64>,
}

impl Summary {
    pub(super) fn new(sent: Sent, began: Instant) -> Self {
        let Sent { messages, records, bytes } = sent;
        Self { messages, records, bytes, seconds: began.elapsed().as_secs_f64(), ..Self::default() }
    }
}

/// Sends to the target, over UDP from so many sockets that take turns.
pub(super) fn send(
    target: &Target,
    source: &mut impl Source,
    sockets: u16,
    framing: Framing,
    options: &SendOptions,
) -> Result<Sent, CliError> {
    let named = |path: &Path, error: io::Error| format!("cannot write {}: {error}", path.display());
    match target {
        Target::Udp(address) => Ok(send_udp_in_turns(*address, source, sockets, options)?),
        Target::Tcp(address) => Ok(send_tcp(*address, source, framing, options)?),
        Target::File(path) => {
            let written = File::create(path).and_then(|file| write_stream(file, source, framing, options.count));
            written.map_err(|error| named(path, error).into())
        }
        Target::Pcap(path) => {
            let written = File::create(path).and_then(|file| write_pcap(file, source, sockets, options.count));
            written.map_err(|error| named(path, error).into())
        }
    }
}

/// Sends over several connections at once: `connection` does so for the one with a number, from 0 on.
pub(super) fn side_by_side(
    connections: u64,
    connection: impl Fn(u64) -> Result<Sent, CliError> + Sync,
) -> Result<Sent, CliError> {
    let connection = &connection;
    let results: Vec<Result<Sent, CliError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections).map(|number| scope.spawn(move || connection(number))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut total = Sent::default();
    for result in results {
        let sent = result?;
        total.messages += sent.messages;
        total.records += sent.records;
        total.bytes += sent.bytes;
    }
    Ok(total)
}

/// What the `number`-th of `connections` sends of `count`.
pub(super) fn share_of(sending: &Sending, count: u64, connections: u64, number: u64) -> SendOptions {
    SendOptions {
        count: share(count, connections, number),
        per_second: sending.rate.and_then(|rate| NonZeroU64::new(share(rate.get(), connections, number))),
    }
}

/// The part of `total` for the `number`-th of `parts`; the first ones get what does not divide.
fn share(total: u64, parts: u64, number: u64) -> u64 {
    total / parts + u64::from(number < total % parts)
}

/// That each of several connections has a rate, and a file of its own.
pub(super) fn check_connections(sending: &Sending, connections: u64) -> Result<(), CliError> {
    if sending.rate.is_some_and(|rate| rate.get() < connections) {
        return Err(format!("--rate is less than 1 for each of {connections} connections").into());
    }
    match sending.to {
        Target::File(_) | Target::Pcap(_) if connections > 1 => {
            Err("several connections into one file: expected udp://HOST:PORT or tcp://HOST:PORT".into())
        }
        _ => Ok(()),
    }
}

pub(super) fn syslog(args: &SyslogArgs) -> Result<Summary, CliError> {
    let connections = args.connections.get();
    check_connections(&args.sending, connections)?;
    let began = Instant::now();
    let total = side_by_side(connections, |number| {
        let mut lines = SyslogLines::with_options(&SyslogOptions {
            format: args.format,
            seed: args.seed.wrapping_add(number),
            fresh_time: args.fresh_time,
            start_unix_nano: DEFAULT_START_UNIX_NANO,
        });
        send(&args.sending.to, &mut lines, 1, args.framing, &share_of(&args.sending, args.count, connections, number))
    })?;
    Ok(Summary::new(total, began))
}

pub(super) fn replay(args: &ReplayArgs) -> Result<Summary, CliError> {
    let mut reader = Reader::open(&args.file)?;
    let mut failure = None;
    let payloads = std::iter::from_fn(|| {
        loop {
            match reader.next()? {
                Ok(Item::Packet(packet)) => return Some(packet.payload),
                Ok(Item::Skipped { .. }) => {}
                Err(error) => {
                    failure = Some(error);
                    return None;
                }
            }
        }
    });
    let options = SendOptions { count: u64::MAX, per_second: args.sending.rate };
    let began = Instant::now();
    let sent = send(&args.sending.to, &mut Payloads(payloads), 1, args.framing, &options)?;
    match failure {
        Some(error) => Err(format!("{error}, after {} messages were sent", sent.messages).into()),
        None => Ok(Summary { skipped: Some(reader.counts().skipped_total()), ..Summary::new(sent, began) }),
    }
}

#[cfg(test)]
pub(super) mod tests;
