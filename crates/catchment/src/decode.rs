//! `catchment decode`.

use std::io::{BufWriter, stderr, stdout};
use std::process::ExitCode;

use catchment_nodes::decode::{
    DecodeError, IpfixOptions, NonUtf8, RowOptions, Schema, StructuredDataForm, Summary, SyslogFraming, SyslogOptions,
    ipfix, syslog,
};

use crate::cli::{Decode, Framing, NonUtf8Name, SchemaName, StructuredData};
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
        Decode::Ipfix { file, received_at } => {
            let options = IpfixOptions { received_unix_nano: time(received_at.as_deref())? };
            ipfix(&file, options, &mut records, &mut problems)
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
