//! The command line. The flags of the engine are those of upstream's own binary.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Network telemetry into OTAP: IPFIX, NetFlow and syslog receivers and quantiles on the OTel-Arrow Dataflow Engine.
#[derive(Debug, Parser)]
#[command(name = "catchment", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

const EXAMPLES: &str = "\
Examples:
  catchment --config configs/quickstart.yaml           run a configuration until Ctrl-C
  catchment --config my.yaml --num-cores 2             on two cores
  catchment validate my.yaml                           is it right? says what is wrong and where
  catchment components                                 which nodes are linked in
  catchment decode syslog /var/log/messages            what the receiver makes of these lines
  tail -n 5 device.log | catchment decode syslog -     the same for a few lines
  catchment decode ipfix flows.pcap                    what the receiver makes of a capture";

/// How to run the engine.
#[derive(Debug, Args)]
pub(crate) struct Engine {
    /// Configuration: a path, or file:PATH, env:VARIABLE, http://HOST/PATH; without it ./config.yaml.
    #[arg(short, long, value_name = "URI")]
    pub(crate) config: Option<String>,
    /// Number of cores for pipelines that do not say; 0 means all.
    #[arg(long, value_name = "N", conflicts_with = "core_id_range")]
    pub(crate) num_cores: Option<usize>,
    /// Cores for pipelines that do not say, such as 0-3,8.
    #[arg(long, value_name = "RANGES", value_parser = parse_core_ranges)]
    pub(crate) core_id_range: Option<CoreRanges>,
    /// Address of the admin HTTP server, such as 127.0.0.1:8080.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http_admin_bind: Option<String>,
    /// Check the configuration, say whether it is right, and exit.
    #[arg(long)]
    pub(crate) validate_and_exit: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check a configuration file; exit code 2 if it is wrong.
    Validate {
        /// The file (or another URI that --config takes).
        file: String,
    },
    /// List the nodes that are linked in, with URN and version.
    Components,
    /// Show what the receivers make of a file: one JSON object a record on standard output, problems with offset and
    /// reason on standard error, exit code 1 if there is any.
    Decode {
        #[command(subcommand)]
        input: Decode,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Decode {
    /// Syslog: RFC 3164, RFC 5424, CEF; lines, octet-counted streams, or a capture.
    Syslog {
        /// The file; `-` is standard input.
        #[arg(default_value = "-")]
        file: PathBuf,
        /// How messages are found, unless the file is a capture.
        #[arg(long, value_enum, default_value_t)]
        framing: Framing,
        /// Zone of time stamps that name none: UTC, +HH:MM, local, or a name such as Europe/Paris.
        #[arg(long, visible_alias = "tz", default_value = "UTC")]
        timezone: String,
        /// Time of receipt in RFC 3339, for the year of stamps without one; default: capture time, or now.
        #[arg(long, visible_alias = "now", value_name = "TIME")]
        received_at: Option<String>,
        /// Longest message kept, in bytes.
        #[arg(long, default_value_t = 65_536, value_parser = clap::value_parser!(u64).range(1..=16_777_216))]
        max_message_size: u64,
        /// Keep a line end that is counted into an octet-counted frame.
        #[arg(long)]
        keep_trailing_newline: bool,
        /// Names of the attributes.
        #[arg(long, value_enum, default_value_t)]
        schema: SchemaName,
        /// Form of RFC 5424 structured data; default: map, under the schema otel flat.
        #[arg(long, value_enum)]
        structured_data: Option<StructuredData>,
        /// Put before every CEF extension key; default: nothing, under the schema otel `cef.ext.`.
        #[arg(long, default_value = "")]
        cef_extension_prefix: String,
        /// What becomes of text that is not UTF-8.
        #[arg(long, value_enum, default_value_t)]
        non_utf8: NonUtf8Name,
    },
    /// IPFIX, NetFlow v9 and v5: pcap, pcapng, or a stream of IPFIX messages.
    Ipfix {
        /// The file.
        file: PathBuf,
        /// Time of receipt in RFC 3339; default: capture time, or now.
        #[arg(long, visible_alias = "now", value_name = "TIME")]
        received_at: Option<String>,
        /// What the exporters are.
        #[arg(long, value_enum, default_value_t)]
        profile: ProfileName,
        /// Names of the attributes of flows.
        #[arg(long, value_enum, default_value_t)]
        schema: FlowSchemaName,
        /// Values that the registries give names: as names or as numbers.
        #[arg(long, value_enum, default_value_t)]
        enumerations: EnumerationsName,
        /// Form of times.
        #[arg(long, value_enum, default_value_t)]
        times: TimesName,
        /// Options data: as records, used for flows, or both.
        #[arg(long, value_enum, default_value_t)]
        options: OptionsName,
        /// Sampling rates: told, or counters multiplied by them as well.
        #[arg(long, value_enum, default_value_t)]
        sampling: SamplingName,
        /// Records of both directions of a flow as one record or two.
        #[arg(long, value_enum, default_value_t)]
        biflow: BiflowName,
        /// Say of lists how their entries relate to each other.
        #[arg(long)]
        list_semantics: bool,
        /// Templates that are known from the start: IPFIX messages, a template cache, or (SONiC) JSON with session rows.
        #[arg(long, value_name = "FILE")]
        templates: Option<PathBuf>,
        /// Keep data that comes before its template until the template comes.
        #[arg(long)]
        pending: bool,
        /// Names of SONiC's metrics and attributes.
        #[arg(long, value_enum, default_value_t)]
        names: SonicNamesName,
        /// Place of the attributes of SONiC's points.
        #[arg(long, value_enum, default_value_t)]
        attributes_at: AttributesPlace,
    },
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum ProfileName {
    /// IPFIX, NetFlow v9 and v5.
    #[default]
    Flows,
    /// SONiC's high-frequency telemetry.
    SonicHft,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum FlowSchemaName {
    /// Those of the OpenTelemetry Collector's NetFlow receiver.
    #[default]
    #[value(alias = "collector")]
    Otel,
    /// Those of the IANA registry.
    Ipfix,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum EnumerationsName {
    /// As names where there are any.
    #[default]
    Names,
    /// As numbers.
    Numbers,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum TimesName {
    /// Nanoseconds since 1970.
    #[default]
    UnixNano,
    /// RFC 3339.
    Rfc3339,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum OptionsName {
    /// As records, and used for flows.
    #[default]
    Both,
    /// As records.
    Emit,
    /// Used for flows.
    Use,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum SamplingName {
    /// Told beside the counters.
    #[default]
    Keep,
    /// Counters are multiplied.
    Apply,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum BiflowName {
    /// One record.
    #[default]
    One,
    /// Two records.
    Two,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum SonicNamesName {
    /// By SAI.
    #[default]
    Sai,
    /// By number.
    Legacy,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum AttributesPlace {
    /// On each point.
    #[default]
    Point,
    /// On the resource.
    Resource,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Framing {
    /// Octet counting or lines, decided frame by frame.
    #[default]
    Auto,
    /// One message a line.
    Newline,
    /// Octet counting (RFC 6587).
    OctetCounting,
    /// Messages ended by NUL.
    Nul,
    /// The whole input is one message.
    Datagram,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum SchemaName {
    /// Those of the engine's own syslog receiver.
    #[default]
    Upstream,
    /// Those of OpenTelemetry's log data model.
    Otel,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum NonUtf8Name {
    /// Bad bytes become U+FFFD.
    #[default]
    Replace,
    /// The text of the message is kept as bytes.
    Bytes,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum StructuredData {
    /// A map of maps.
    Map,
    /// The text as sent.
    Text,
    /// One attribute a parameter.
    Flat,
}

/// Inclusive ranges of core ids.
pub(crate) type CoreRanges = Vec<(usize, usize)>;

fn parse_core_ranges(text: &str) -> Result<CoreRanges, String> {
    let number = |text: &str| {
        text.trim().parse::<usize>().map_err(|_| format!("`{text}` is no core id, expected ranges such as 0-3,8"))
    };
    text.split(',')
        .map(|range| {
            let (start, end) = range.split_once('-').unwrap_or((range, range));
            let (start, end) = (number(start)?, number(end)?);
            if start > end {
                return Err(format!("`{range}` runs backwards, expected the smaller core id first"));
            }
            Ok((start, end))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn core_ranges_are_read() {
        assert_eq!(parse_core_ranges("0-3,8"), Ok(vec![(0, 3), (8, 8)]));
        assert!(parse_core_ranges("3-0").expect_err("refused").contains("backwards"));
        assert!(parse_core_ranges("a").expect_err("refused").contains("0-3,8"));
    }
}
