//! The commands that send.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Instant;

use catchment_capture::{Item, Reader};
use catchment_loadgen::traffic::{
    DEFAULT_START_UNIX_NANO, FlowExporter, FlowFields, FlowOptions, FlowProtocol, Framing, Payloads, SendError,
    SendOptions, Sent, Source, SyslogFormat, SyslogLines, SyslogOptions, send_tcp, send_udp,
};
use clap::Args;
use serde::Serialize;

use super::CliError;
use super::target::{Target, Transport};

/// Where to, and how fast.
#[derive(Debug, Args)]
struct Sending {
    /// udp://HOST:PORT or tcp://HOST:PORT.
    #[arg(long)]
    to: Target,
    /// Messages a second; without it as fast as the socket takes them.
    #[arg(long)]
    rate: Option<NonZeroU64>,
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
pub(super) struct IpfixArgs {
    #[command(flatten)]
    sending: Sending,
    /// Protocol of the messages.
    #[arg(long, value_enum)]
    protocol: FlowProtocol,
    /// What a record holds.
    #[arg(long, value_enum)]
    fields: FlowFields,
    /// Messages to send.
    #[arg(long)]
    messages: u64,
    /// Observation domain (IPFIX) or source id (NetFlow v9).
    #[arg(long, default_value_t = 0)]
    domain: u32,
    /// The same seed gives the same messages.
    #[arg(long, default_value_t = 0)]
    seed: u64,
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
    messages: u64,
    records: u64,
    bytes: u64,
    seconds: f64,
    /// Records of a recording that hold no payload to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
}

impl Summary {
    fn new(sent: Sent, began: Instant) -> Self {
        let Sent { messages, records, bytes } = sent;
        Self { messages, records, bytes, seconds: began.elapsed().as_secs_f64(), skipped: None }
    }
}

fn send(target: Target, source: &mut impl Source, framing: Framing, options: &SendOptions) -> Result<Sent, SendError> {
    match target.transport {
        Transport::Udp => send_udp(target.address, source, options),
        Transport::Tcp => send_tcp(target.address, source, framing, options),
    }
}

pub(super) fn syslog(args: &SyslogArgs) -> Result<Summary, CliError> {
    let connections = args.connections.get();
    if args.sending.rate.is_some_and(|rate| rate.get() < connections) {
        return Err(format!("--rate is less than 1 for each of {connections} connections").into());
    }
    let began = Instant::now();
    let connection = |number: u64| {
        let options = SendOptions {
            count: share(args.count, connections, number),
            per_second: args.sending.rate.and_then(|rate| NonZeroU64::new(share(rate.get(), connections, number))),
        };
        let mut lines = SyslogLines::with_options(&SyslogOptions {
            format: args.format,
            seed: args.seed.wrapping_add(number),
            fresh_time: args.fresh_time,
            start_unix_nano: DEFAULT_START_UNIX_NANO,
        });
        send(args.sending.to, &mut lines, args.framing, &options)
    };
    let results: Vec<Result<Sent, SendError>> = std::thread::scope(|scope| {
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
    Ok(Summary::new(total, began))
}

/// The part of `total` for the `number`-th of `parts`; the first ones get what does not divide.
fn share(total: u64, parts: u64, number: u64) -> u64 {
    total / parts + u64::from(number < total % parts)
}

pub(super) fn ipfix(args: &IpfixArgs) -> Result<Summary, CliError> {
    if args.protocol == FlowProtocol::NetflowV9 && args.sending.to.transport == Transport::Tcp {
        return Err("netflow_v9 messages do not say how long they are: expected --to udp://HOST:PORT".into());
    }
    let mut exporter = FlowExporter::new(FlowOptions::new(args.protocol, args.fields, args.domain, args.seed))?;
    let options = SendOptions { count: args.messages, per_second: args.sending.rate };
    let began = Instant::now();
    let sent = send(args.sending.to, &mut exporter, Framing::None, &options)?;
    Ok(Summary::new(sent, began))
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
    let sent = send(args.sending.to, &mut Payloads(payloads), args.framing, &options)?;
    match failure {
        Some(error) => Err(format!("{error}, after {} messages were sent", sent.messages).into()),
        None => Ok(Summary { skipped: Some(reader.counts().skipped_total()), ..Summary::new(sent, began) }),
    }
}

#[cfg(test)]
mod tests;
