//! The commands that send IPFIX and NetFlow.

use std::num::{NonZeroU16, NonZeroU64};
use std::path::PathBuf;
use std::time::Instant;

use catchment_loadgen::traffic::{
    Faults, Faulty, FlowExporter, FlowFields, FlowOptions, FlowOptionsError, FlowProtocol, FlowTemplates, Framing,
    Interleaved, SendOptions, SonicObject, SonicOptions, SonicTelemetry, SonicTime,
};
use clap::Args;
use serde_json::json;

use super::CliError;
use super::send::{Sending, Summary, check_connections, send, share_of, side_by_side};
use super::target::Target;

/// Bytes of a payload where no datagram bounds it.
const STREAM_PAYLOAD_BYTES: usize = 16 * 1024 * 1024;

#[derive(Debug, Args)]
pub(super) struct IpfixArgs {
    #[command(flatten)]
    sending: Sending,
    /// Protocol of the messages.
    #[arg(long, value_enum)]
    protocol: FlowProtocol,
    /// What a record holds; all records of NetFlow v5 are of one kind.
    #[arg(long, value_enum, required_if_eq_any([("protocol", "ipfix"), ("protocol", "netflow_v9")]))]
    fields: Option<FlowFields>,
    /// Messages to send.
    #[arg(long)]
    messages: u64,
    /// Observation domain (IPFIX) or source id (NetFlow v9), of the first exporter.
    #[arg(long, default_value_t = 0)]
    domain: u32,
    /// The same seed gives the same messages.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Data records in a message; without it as many as fit in a packet of 1,500 bytes.
    #[arg(long)]
    records_per_message: Option<u16>,
    /// Exporters that take turns, each with a port (over TCP a connection), domains and a seed of its own.
    #[arg(long, default_value = "1")]
    exporters: NonZeroU16,
    /// Domains of each exporter that take turns, numbered on from --domain.
    #[arg(long, default_value = "1")]
    domains: NonZeroU16,
    /// Sends the template in every so many-th message; 0 for the first alone.
    #[arg(long, default_value_t = 16)]
    template_every: u64,
    /// regular, late:MESSAGES (data before its template), flip:MESSAGES (the same id gets other fields), new_ids or
    /// new_domains (a new template in each message), never.
    #[arg(long, default_value = "regular")]
    templates: FlowTemplates,
    /// Sends options data before every so many-th message: sampler, interface names, start of the exporter; 0 for none.
    #[arg(long, default_value_t = 0)]
    options_every: u64,
    /// One packet in so many is sampled, as options data says.
    #[arg(long, default_value_t = 1_000)]
    sampling_interval: u16,
    /// Loses every so many-th message of an exporter; 0 for none.
    #[arg(long, default_value_t = 0)]
    lose_every: u64,
    /// Sends every so many-th message of an exporter after its successor; 0 for none.
    #[arg(long, default_value_t = 0)]
    swap_every: u64,
}

/// Messages of one exporter.
type Exporter = Faulty<Interleaved<FlowExporter>>;

fn exporter(args: &IpfixArgs, number: u16) -> Result<Exporter, FlowOptionsError> {
    let first = args.domain.wrapping_add(u32::from(number) * u32::from(args.domains.get()));
    let fields = args.fields.unwrap_or(FlowFields::Basic);
    let domain = |offset: u16| {
        let seed = args.seed.wrapping_add(u64::from(number) * u64::from(args.domains.get()) + u64::from(offset));
        FlowExporter::new(FlowOptions {
            records_per_message: args.records_per_message,
            template_every: args.template_every,
            templates: args.templates,
            options_every: args.options_every,
            sampling_interval: args.sampling_interval,
            ..FlowOptions::new(args.protocol, fields, first.wrapping_add(offset.into()), seed)
        })
    };
    let domains = (0..args.domains.get()).map(domain).collect::<Result<Vec<_>, _>>()?;
    let faults = Faults { lose_every: args.lose_every, swap_every: args.swap_every };
    Ok(Faulty::new(Interleaved::new(domains), faults))
}

pub(super) fn ipfix(args: &IpfixArgs) -> Result<Summary, CliError> {
    let streamed = matches!(args.sending.to, Target::Tcp(_) | Target::File(_));
    if args.protocol != FlowProtocol::Ipfix && streamed {
        return Err("only ipfix messages say how long they are: expected --to udp://HOST:PORT or pcap:PATH".into());
    }
    let exporters = args.exporters.get();
    let began = Instant::now();
    if matches!(args.sending.to, Target::Tcp(_)) && exporters > 1 {
        check_connections(&args.sending, exporters.into())?;
        let total = side_by_side(exporters.into(), |number| {
            let mut exporter = exporter(args, number as u16)?;
            let options = share_of(&args.sending, args.messages, exporters.into(), number);
            send(&args.sending.to, &mut exporter, 1, Framing::None, &options)
        })?;
        return Ok(Summary::new(total, began));
    }
    let sources = (0..exporters).map(|number| exporter(args, number)).collect::<Result<Vec<_>, _>>()?;
    let mut sources = Interleaved::new(sources);
    let options = SendOptions { count: args.messages, per_second: args.sending.rate };
    let sent = send(&args.sending.to, &mut sources, exporters, Framing::None, &options)?;
    let mut summary = Summary::new(sent, began);
    if args.lose_every > 0 {
        let lost = || sources.sources().iter().map(Faulty::lost);
        summary.lost_messages = Some(lost().map(|lost| lost.messages).sum());
        summary.lost_records = Some(lost().map(|lost| lost.records).sum());
    }
    Ok(summary)
}

#[derive(Debug, Args)]
pub(super) struct SonicArgs {
    #[command(flatten)]
    sending: Sending,
    /// Kind of the objects.
    #[arg(long, value_enum, default_value = "port")]
    object: SonicObject,
    /// Objects.
    #[arg(long)]
    objects: u16,
    /// Statistics of each object, from the first that SAI has on.
    #[arg(long)]
    stats: u16,
    /// Records, each a snapshot of the counters of a template, in a message.
    #[arg(long, default_value_t = 1)]
    records_per_message: u16,
    /// Messages in a payload, which is what --messages and --rate count; fewer where a datagram holds no more.
    #[arg(long, default_value_t = 1)]
    messages_per_payload: u16,
    /// Payloads to send.
    #[arg(long)]
    messages: u64,
    /// How records tell their time.
    #[arg(long, value_enum, default_value = "nanoseconds")]
    time: SonicTime,
    /// Place holders in each template.
    #[arg(long, default_value_t = 0)]
    place_holders: u16,
    /// Milliseconds between two snapshots.
    #[arg(long, default_value = "10")]
    interval_ms: NonZeroU64,
    /// Name of the telemetry profile.
    #[arg(long, default_value = "hft0")]
    profile: String,
    /// The same seed gives the same counters.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Writes the session, a row of STATE_DB, to this file as JSON before anything is sent.
    #[arg(long, value_name = "PATH")]
    session_file: Option<PathBuf>,
    /// Writes the templates of the session to this file as a stream of IPFIX messages before anything is sent.
    #[arg(long, value_name = "PATH")]
    session_config_file: Option<PathBuf>,
}

pub(super) fn sonic(args: &SonicArgs) -> Result<Summary, CliError> {
    let defaults = SonicOptions::default();
    let max_payload_bytes = match args.sending.to {
        Target::Udp(_) | Target::Pcap(_) => defaults.max_payload_bytes,
        Target::Tcp(_) | Target::File(_) => STREAM_PAYLOAD_BYTES,
    };
    let mut telemetry = SonicTelemetry::new(SonicOptions {
        object: args.object,
        objects: args.objects,
        statistics: args.stats,
        records_per_message: args.records_per_message,
        messages_per_payload: args.messages_per_payload,
        max_payload_bytes,
        time: args.time,
        place_holders: args.place_holders,
        interval_nano: args.interval_ms.get().saturating_mul(1_000_000),
        profile: args.profile.clone(),
        seed: args.seed,
        ..defaults
    })?;
    let session = telemetry.session();
    let files = [
        (&args.session_file, serde_json::to_vec_pretty(&json!({ "redis": session }))?),
        (&args.session_config_file, session.fields.session_config),
    ];
    for (path, content) in files {
        if let Some(path) = path {
            std::fs::write(path, content).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
    }
    let options = SendOptions { count: args.messages, per_second: args.sending.rate };
    let began = Instant::now();
    let sent = send(&args.sending.to, &mut telemetry, 1, Framing::None, &options)?;
    let mut summary = Summary::new(sent, began);
    summary.counters = Some(telemetry.counters_made());
    Ok(summary)
}

#[cfg(test)]
mod tests;
