//! `catchment decode`.

use std::io::{BufWriter, stderr, stdout};
use std::process::ExitCode;

use catchment_nodes::decode::{
    AttributesAt, Biflow, DecodeError, Enumerations, FlowMapping, FlowSchema, IpfixOptions, IpfixProfile, NonUtf8,
    OptionsData, RowOptions, SamplingUse, Schema, SonicMapping, SonicNames, StructuredDataForm, Summary, SyslogFraming,
    SyslogOptions, TimeForm, ipfix, syslog,
};

use crate::cli::{
    AttributesPlace, BiflowName, Decode, EnumerationsName, FlowSchemaName, Framing, NonUtf8Name, OptionsName,
    ProfileName, SamplingName, SchemaName, SonicNamesName, StructuredData, TimesName,
};
use crate::{EXIT_USAGE, complain};

pub(crate) fn run(input: Decode) -> ExitCode {
    match decode(input) {
        Ok(Summary { problems: 0, .. }) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        // The reader of a pipe has seen enough: that is how `head` ends.
        Err(DecodeError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn decode(input: Decode) -> Result<Summary, DecodeError> {
    let mut records = BufWriter::new(stdout().lock());
    let mut problems = stderr().lock();
    match input {
        Decode::Syslog {
            file,
            framing,
            timezone,
            received_at,
            max_message_size,
            keep_trailing_newline,
            schema,
            structured_data,
            cef_extension_prefix,
            non_utf8,
        } => {
            let options = SyslogOptions {
                framing: match framing {
                    Framing::Auto => SyslogFraming::Auto,
                    Framing::Newline => SyslogFraming::Newline,
                    Framing::OctetCounting => SyslogFraming::OctetCounting,
                    Framing::Nul => SyslogFraming::Nul,
                    Framing::Datagram => SyslogFraming::Datagram,
                },
                timezone,
                received_unix_nano: time(received_at.as_deref())?,
                max_message_size: usize::try_from(max_message_size).unwrap_or(usize::MAX),
                trim_trailing_newline: !keep_trailing_newline,
                rows: RowOptions {
                    schema: match schema {
                        SchemaName::Upstream => Schema::Upstream,
                        SchemaName::Otel => Schema::Otel,
                    },
                    structured_data: structured_data.map(|form| match form {
                        StructuredData::Map => StructuredDataForm::Map,
                        StructuredData::Text => StructuredDataForm::Text,
                        StructuredData::Flat => StructuredDataForm::Flat,
                    }),
                    cef_extension_prefix,
                    non_utf8: match non_utf8 {
                        NonUtf8Name::Replace => NonUtf8::Replace,
                        NonUtf8Name::Bytes => NonUtf8::Bytes,
                    },
                    ..RowOptions::default()
                },
            };
            syslog(&file, &options, &mut records, &mut problems)
        }
        Decode::Ipfix {
            file,
            received_at,
            profile,
            schema,
            enumerations,
            times,
            options,
            sampling,
            biflow,
            list_semantics,
            templates,
            pending,
            names,
            attributes_at,
        } => {
            let profile = match profile {
                ProfileName::Flows => IpfixProfile::Flows(FlowMapping {
                    schema: match schema {
                        FlowSchemaName::Otel => FlowSchema::Otel,
                        FlowSchemaName::Ipfix => FlowSchema::Ipfix,
                    },
                    enumerations: match enumerations {
                        EnumerationsName::Names => Enumerations::Names,
                        EnumerationsName::Numbers => Enumerations::Numbers,
                    },
                    times: match times {
                        TimesName::UnixNano => TimeForm::UnixNano,
                        TimesName::Rfc3339 => TimeForm::Rfc3339,
                    },
                    options: match options {
                        OptionsName::Both => OptionsData::Both,
                        OptionsName::Emit => OptionsData::Emit,
                        OptionsName::Use => OptionsData::Use,
                    },
                    sampling: match sampling {
                        SamplingName::Keep => SamplingUse::Keep,
                        SamplingName::Apply => SamplingUse::Apply,
                    },
                    biflow: match biflow {
                        BiflowName::One => Biflow::One,
                        BiflowName::Two => Biflow::Two,
                    },
                    list_semantics,
                    ..FlowMapping::default()
                }),
                ProfileName::SonicHft => IpfixProfile::SonicHft(SonicMapping {
                    names: match names {
                        SonicNamesName::Sai => SonicNames::Sai,
                        SonicNamesName::Legacy => SonicNames::Legacy,
                    },
                    attributes_at: match attributes_at {
                        AttributesPlace::Point => AttributesAt::Point,
                        AttributesPlace::Resource => AttributesAt::Resource,
                    },
                    ..SonicMapping::default()
                }),
            };
            let received_unix_nano = time(received_at.as_deref())?;
            let options = IpfixOptions { received_unix_nano, profile, templates, pending };
            ipfix(&file, &options, &mut records, &mut problems)
        }
    }
}

fn time(text: Option<&str>) -> Result<Option<i64>, DecodeError> {
    let Some(text) = text else { return Ok(None) };
    let stamp: jiff::Timestamp = text.parse().map_err(|_| {
        DecodeError::Input(format!(
            "--received-at: `{text}` is no time, expected RFC 3339 such as 2026-11-30T12:00:00Z"
        ))
    })?;
    i64::try_from(stamp.as_nanosecond())
        .map(Some)
        .map_err(|_| DecodeError::Input(format!("--received-at: `{text}` is out of range, expected 1678 to 2261")))
}
