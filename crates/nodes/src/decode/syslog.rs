//! Syslog: a stream of messages, or the UDP datagrams of a capture.

use std::fs::File;
use std::io::{Cursor, Read, Write};
use std::path::Path;
use std::sync::Arc;

use catchment_capture::{Format, Item, Options, Reader, SkipReason};
use catchment_columns::syslog::{Receipt, Source, SyslogBatch, SyslogJob, Transport};
use catchment_syslog::{Framer, FramerOptions, Framing, Record, Step, Zone, framing::datagram, parse};

use super::{DecodeError, Sink, Summary};
use crate::time::now_unix_nano;

pub use catchment_columns::syslog::{NonUtf8, RowOptions, Schema, StructuredDataForm};

const READ_BYTES: usize = 64 * 1024;
/// Messages decoded at a time.
const BATCH: usize = 1_000;

/// How messages are found in a file that is no capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyslogFraming {
    /// Octet counting or lines, decided frame by frame.
    #[default]
    Auto,
    /// One message a line.
    Newline,
    /// Octet counting (RFC 6587).
    OctetCounting,
    /// Messages ended by NUL.
    Nul,
    /// The whole input is one datagram.
    Datagram,
}

/// Settings of a run; the same as those of the receiver.
#[derive(Debug, Clone)]
pub struct SyslogOptions {
    /// How messages are found.
    pub framing: SyslogFraming,
    /// Zone of stamps that name none: `UTC`, `+HH:MM`, `local`, or an IANA name.
    pub timezone: String,
    /// Time of receipt in nanoseconds since the Unix epoch; now where it is not given.
    pub received_unix_nano: Option<i64>,
    /// Longest message kept, in bytes.
    pub max_message_size: usize,
    /// Remove one line end that is counted into an octet-counted frame.
    pub trim_trailing_newline: bool,
    /// How messages become records.
    pub rows: RowOptions,
}

/// Decodes the file at `path`, or standard input if it is `-`.
///
/// # Errors
/// [`DecodeError`] if the input cannot be read or the output not be written. What is wrong inside the input is told on
/// `problems` and counted.
pub fn syslog(
    path: &Path,
    options: &SyslogOptions,
    records: &mut dyn Write,
    problems: &mut dyn Write,
) -> Result<Summary, DecodeError> {
    let zone: Zone = options.timezone.parse().map_err(|error| DecodeError::Input(format!("--timezone: {error}")))?;
    let mut run = Run {
        batch: SyslogBatch::new(),
        source: None,
        rows: options.rows.clone(),
        zone: Arc::new(zone),
        received: options.received_unix_nano,
        sink: Sink::new(records, problems),
    };
    let mut input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        if path.is_dir() {
            return Err(DecodeError::Input(format!("{} is a directory, expected a file or `-`", path.display())));
        }
        Box::new(
            File::open(path).map_err(|error| DecodeError::Input(format!("cannot open {}: {error}", path.display())))?,
        )
    };
    let mut head = Vec::new();
    let read_error = |error| DecodeError::Input(format!("cannot read {}: {error}", path.display()));
    let _ = input.by_ref().take(64).read_to_end(&mut head).map_err(read_error)?;
    let is_capture = matches!(Format::detect(&head), Format::Pcap | Format::PcapNg);
    let input = Cursor::new(head).chain(input);
    if is_capture {
        run.capture(input, path)?;
    } else if options.framing == SyslogFraming::Datagram {
        run.one_datagram(input, options.max_message_size).map_err(|error| match error {
            Failure::Read(error) => read_error(error),
            Failure::Decode(error) => error,
        })?;
    } else {
        run.stream(input, options).map_err(|error| match error {
            Failure::Read(error) => read_error(error),
            Failure::Decode(error) => error,
        })?;
    }
    run.flush()?;
    run.sink.finish()
}

enum Failure {
    Read(std::io::Error),
    Decode(DecodeError),
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

struct Run<'w> {
    batch: SyslogBatch,
    rows: RowOptions,
    zone: Arc<Zone>,
    /// The source of the last message.
    source: Option<Arc<Source>>,
    received: Option<i64>,
    sink: Sink<'w>,
}

impl Run<'_> {
    fn stream(&mut self, mut input: impl Read, options: &SyslogOptions) -> Result<(), Failure> {
        let framing = match options.framing {
            SyslogFraming::Auto | SyslogFraming::Datagram => Framing::Auto,
            SyslogFraming::Newline => Framing::Newline,
            SyslogFraming::OctetCounting => Framing::OctetCounting,
            SyslogFraming::Nul => Framing::Nul,
        };
        let mut framer = Framer::new(FramerOptions {
            framing,
            max_message_size: options.max_message_size,
            trim_trailing_newline: options.trim_trailing_newline,
        });
        let (mut buffer, mut start, mut offset) = (Vec::new(), 0, 0u64);
        loop {
            let _ = buffer.drain(..start);
            start = 0;
            let before = buffer.len();
            let _ = input.by_ref().take(READ_BYTES as u64).read_to_end(&mut buffer).map_err(Failure::Read)?;
            let end = buffer.len() - before < READ_BYTES;
            loop {
                let rest = buffer.get(start..).unwrap_or_default();
                let consumed = match framer.next(rest, end) {
                    Step::Frame { message, consumed, truncated } => {
                        self.message(message, None, Transport::File, truncated, offset)?;
                        consumed
                    }
                    Step::Skip { consumed, error } => {
                        if let Some(error) = error {
                            self.sink.problem(offset, &error)?;
                        }
                        consumed
                    }
                    Step::NeedMore => break,
                    Step::Error { error, .. } => {
                        self.sink.problem(offset, &format!("{error}; the rest of the stream cannot be read"))?;
                        return Ok(());
                    }
                };
                start += consumed;
                offset += consumed as u64;
            }
            if end {
                return Ok(());
            }
        }
    }

    fn one_datagram(&mut self, input: impl Read, max_message_size: usize) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        let _ =
            input.take((max_message_size as u64).saturating_add(1)).read_to_end(&mut bytes).map_err(Failure::Read)?;
        let truncated = bytes.len() > max_message_size;
        bytes.truncate(max_message_size);
        Ok(self.message(datagram(&bytes), None, Transport::File, truncated, 0)?)
    }

    fn capture(&mut self, input: impl Read, path: &Path) -> Result<(), DecodeError> {
        let reader =
            Reader::new(input, path, Options::default()).map_err(|error| DecodeError::Input(error.to_string()))?;
        for item in reader {
            match item {
                Ok(Item::Packet(packet)) => {
                    let received = self.received;
                    self.received = received.or(packet.time_unix_nano);
                    self.message(datagram(&packet.payload), packet.source, Transport::Udp, false, packet.offset)?;
                    self.received = received;
                }
                Ok(Item::Skipped { offset, reason }) => skipped(&mut self.sink, offset, reason)?,
                Err(error) => {
                    self.sink.problem(error.offset(), &error)?;
                    break;
                }
            }
        }
        Ok(())
    }

    fn message(
        &mut self,
        message: &[u8],
        peer: Option<std::net::SocketAddr>,
        transport: Transport,
        truncated: bool,
        offset: u64,
    ) -> Result<(), DecodeError> {
        if message.is_empty() {
            return Ok(());
        }
        let time_unix_nano = self.received.unwrap_or_else(now_unix_nano);
        if truncated {
            self.sink.problem(offset, &"message is longer than --max-message-size, its end is cut off")?;
        }
        let record = parse(message, &catchment_syslog::Receipt { time_unix_nano, zone: &self.zone });
        if !record.fully_parsed {
            self.sink.problem(offset, &format!("{}; the raw message is kept as body", reason(&record)))?;
        }
        let source = match self.source.take().filter(|source| source.peer() == peer) {
            Some(source) => source,
            None => Arc::new(Source::new(peer, transport, Arc::clone(&self.zone))),
        };
        self.batch.push(message, &source, Receipt { time_unix_nano, truncated });
        self.source = Some(source);
        if self.batch.len() >= BATCH {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DecodeError> {
        self.sink.print(SyslogJob::new(self.batch.take(), self.rows.clone()))
    }
}

/// What kept a message from being taken apart whole, as far as its fields show.
fn reason(record: &Record<'_>) -> &'static str {
    if record.facility.is_none() && record.cef.is_none() {
        "no PRI, or one that is not a number from 0 to 191 in angle brackets"
    } else if record.cef.as_ref().is_some_and(|cef| cef.unplaced().is_some()) {
        "CEF extension has text that belongs to no key"
    } else if record.version.is_some() && record.structured_data.is_none() {
        "RFC 5424 header or structured data is malformed or incomplete"
    } else if record.time_unix_nano.is_none() {
        "time stamp cannot be read"
    } else {
        "header has parts that cannot be placed, such as a zone other than the configured one"
    }
}

/// Tells a record of a capture that is no datagram: other traffic is no problem, a damaged packet is.
pub(super) fn skipped(sink: &mut Sink<'_>, offset: u64, reason: SkipReason) -> Result<(), DecodeError> {
    match reason {
        SkipReason::Tcp | SkipReason::OtherProtocol(_) | SkipReason::NotIp | SkipReason::EmptyLine => {
            sink.note(&format!("offset {offset}: skipped, {reason}"))
        }
        _ => sink.problem(offset, &format!("packet cannot be used: {reason}")),
    }
}
