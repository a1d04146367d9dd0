//! One syslog message -> one log record. This is where a line becomes columns.

use catchment_syslog::{Cef, Format, Record, TraceContext, parse_into, severity};

use super::batch::{Receipt, Source};
use super::names::{Key, Schema};
use super::resource::Resources;
use super::{extensions, structured};
use crate::logs::{Body, Levels, LogFields, LogsTable, Trace};
use crate::table::{AttributeWriter, ParentIds};
use crate::text::is_utf8;

/// Form of the structured data of RFC 5424 on the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum StructuredDataForm {
    /// One attribute, a map of SD-ID to a map of parameters; a repeated parameter is a list.
    #[default]
    Map,
    /// One attribute, the text as sent.
    Text,
    /// One attribute a parameter: `syslog.structured_data.<sd-id>.<param>`, under the schema `otel`
    /// `syslog.<sd-id>.<param>`; a repeated parameter is a list.
    Flat,
}

/// What becomes of a message whose text is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum NonUtf8 {
    /// Bad bytes become U+FFFD, in the values where they are.
    #[default]
    Replace,
    /// The text of the message is kept as bytes; other values as above.
    Bytes,
}

/// Longest prefix of CEF extension keys, in bytes: it is written before every key.
pub const MAX_PREFIX_BYTES: usize = 256;

/// How messages become records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowOptions {
    /// Names of the attributes.
    pub schema: Schema,
    /// Form of structured data; `None` is the schema's own: `map` of `upstream`, `flat` of `otel`.
    pub structured_data: Option<StructuredDataForm>,
    /// Put before every CEF extension key; empty means the schema's own: the keys as sent, of `otel` `cef.ext.`.
    pub cef_extension_prefix: String,
    /// Text that is not UTF-8.
    pub non_utf8: NonUtf8,
    /// How the parent ids of attributes are written.
    pub parent_ids: ParentIds,
}

impl RowOptions {
    pub(super) fn structured_data(&self) -> StructuredDataForm {
        self.structured_data.unwrap_or(match self.schema {
            Schema::Upstream => StructuredDataForm::Map,
            Schema::Otel => StructuredDataForm::Flat,
        })
    }

    pub(super) fn levels(&self) -> &'static Levels {
        match self.schema {
            Schema::Upstream => &UPSTREAM_LEVELS,
            Schema::Otel => &OTEL_LEVELS,
        }
    }
}

/// Severity number and text of each severity, as the engine's own receiver writes them.
static UPSTREAM_LEVELS: Levels = levels(false);
/// The same numbers, with the words of syslog itself.
static OTEL_LEVELS: Levels = levels(true);

const fn levels(words_of_syslog: bool) -> Levels {
    let mut levels = [(0, ""); 8];
    let mut severity = 0;
    while severity < levels.len() {
        let level = &severity::LEVELS[severity];
        levels[severity] = (level.number, if words_of_syslog { level.name } else { level.text });
        severity += 1;
    }
    levels
}

/// How many messages were read as which format: whole, and with a rest that is kept as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parsed {
    whole: [u64; 5],
    partly: [u64; 5],
}

impl Parsed {
    /// The formats, in the order of [`Parsed::iter`].
    const FORMATS: [Format; 5] =
        [Format::Rfc3164, Format::Rfc5424, Format::Cef, Format::CefRfc3164, Format::CefRfc5424];

    /// For each format the messages taken apart whole, and those that were not.
    pub fn iter(&self) -> impl Iterator<Item = (Format, u64, u64)> {
        Self::FORMATS
            .into_iter()
            .zip(self.whole.into_iter().zip(self.partly))
            .map(|(format, (whole, partly))| (format, whole, partly))
    }

    /// Adds the counts of `more`.
    pub fn add(&mut self, more: &Self) {
        let pairs = self.whole.iter_mut().chain(&mut self.partly).zip(more.whole.iter().chain(&more.partly));
        pairs.for_each(|(sum, count)| *sum += count);
    }

    fn count(&mut self, record: &Record<'_>) {
        let counts = if record.fully_parsed { &mut self.whole } else { &mut self.partly };
        let at = Self::FORMATS.iter().position(|format| *format == record.format);
        if let Some(count) = at.and_then(|at| counts.get_mut(at)) {
            *count += 1;
        }
    }
}

/// Writes messages into a logs table and keeps scratch memory between them.
pub(super) struct RowWriter {
    options: RowOptions,
    scratch: structured::Scratch,
    resources: Resources,
    pub(super) parsed: Parsed,
}

impl RowWriter {
    pub(super) fn new(options: RowOptions) -> Self {
        Self {
            options,
            scratch: structured::Scratch::default(),
            resources: Resources::default(),
            parsed: Parsed::default(),
        }
    }

    /// Forgets the resources of the batch that has ended.
    pub(super) fn next_batch(&mut self) {
        self.resources = Resources::default();
    }

    /// Parses a message and appends its record, whatever the message is.
    pub(super) fn write(&mut self, table: &mut LogsTable, message: &[u8], source: &Source, receipt: Receipt) {
        let context = catchment_syslog::Receipt { time_unix_nano: receipt.time_unix_nano, zone: source.zone() };
        let mut record = Record::default();
        parse_into(&mut record, message, &context);
        self.parsed.count(&record);
        // Fields end at ASCII characters, so parts of valid UTF-8 are valid.
        let is_utf8 = is_utf8(message);
        let as_bytes = !is_utf8 && self.options.non_utf8 == NonUtf8::Bytes;
        let is_otel = self.options.schema == Schema::Otel;
        let content = |text| if as_bytes { Body::Bytes(text) } else { Body::Text(text) };
        // What was taken apart whole is not stored twice.
        let raw = (!record.fully_parsed).then_some(message);
        let body = if is_otel { record.message } else { raw };
        let resource = if is_otel { self.resources.number(&record, &mut table.resource_attributes) } else { 0 };
        let mut attributes = table.record(LogFields {
            time_unix_nano: record.time_unix_nano,
            observed_time_unix_nano: receipt.time_unix_nano,
            severity: record.severity,
            body: body.map_or(Body::None, content),
            trace: record.trace_context().map(trace),
            resource,
            is_utf8,
        });
        attributes.text(Key::InputFormat.id(), record.format.as_str().as_bytes());
        header(&mut attributes, &record, self.options.schema);
        if let Some(data) = &record.structured_data {
            structured::write(&mut attributes, data, &self.options, &mut self.scratch);
        }
        let text = match (is_otel, record.format) {
            (true, _) => raw.map(|raw| (Key::Original, raw)),
            (false, Format::Rfc5424 | Format::CefRfc5424) => record.message.map(|text| (Key::Message, text)),
            (false, _) => record.message.map(|text| (Key::Content, text)),
        };
        match text {
            Some((key, text)) if as_bytes => attributes.bytes(key.id(), text),
            Some((key, text)) => attributes.text(key.id(), text),
            None => {}
        }
        if let Some(cef) = &record.cef {
            write_cef(&mut attributes, cef);
            extensions::write(&mut attributes, cef, &self.options);
        }
        if receipt.truncated {
            attributes.bool(Key::Truncated.id(), true);
        }
    }
}

fn trace(context: TraceContext) -> Trace {
    Trace { trace_id: context.trace_id, span_id: context.span_id, flags: u32::from(context.flags) }
}

/// Writes what the records of `rows` have in common by their sender.
pub(super) fn write_source(table: &mut LogsTable, rows: std::ops::Range<u16>, source: &Source) {
    if let (Some(peer), Some(address)) = (source.peer, &source.address) {
        table.text_of_all(rows.clone(), Key::PeerAddress.id(), address.as_bytes());
        table.int_of_all(rows.clone(), Key::PeerPort.id(), i64::from(peer.port()));
    }
    if let Some(transport) = source.transport.as_str() {
        table.text_of_all(rows.clone(), Key::Transport.id(), transport.as_bytes());
    }
    if let Some(subject) = &source.tls_subject {
        table.text_of_all(rows, Key::TlsClientSubject.id(), subject.as_bytes());
    }
}

fn write_cef(attributes: &mut AttributeWriter<'_>, cef: &Cef<'_>) {
    attributes.int(Key::CefVersion.id(), i64::from(cef.version()));
    attributes.text(Key::CefDeviceVendor.id(), &cef.device_vendor());
    attributes.text(Key::CefDeviceProduct.id(), &cef.device_product());
    attributes.text(Key::CefDeviceVersion.id(), &cef.device_version());
    attributes.text(Key::CefDeviceEventClassId.id(), &cef.device_event_class_id());
    attributes.text(Key::CefName.id(), &cef.name());
    attributes.text(Key::CefSeverity.id(), &cef.severity());
}

fn header(attributes: &mut AttributeWriter<'_>, record: &Record<'_>, schema: Schema) {
    let is_otel = schema == Schema::Otel;
    if let Some(facility) = record.facility {
        attributes.int(Key::Facility.id(), i64::from(facility));
    }
    if let Some(severity) = record.severity.filter(|_| !is_otel) {
        attributes.int(Key::Severity.id(), i64::from(severity));
    }
    if let Some(version) = record.version {
        attributes.int(Key::Version.id(), i64::from(version));
    }
    if let Some(prefix) = record.prefix {
        attributes.text(Key::Prefix.id(), prefix);
    }
    if let Some(id) = record.msg_id {
        attributes.text(Key::MsgId.id(), id);
    }
    if is_otel {
        if let Some(text) = record.proc_id {
            attributes.text(Key::ProcessIdText.id(), text);
        }
        return;
    }
    for (key, value) in [(Key::HostName, record.hostname), (Key::AppName, record.app_name), (Key::Tag, record.tag)] {
        if let Some(value) = value {
            attributes.text(key.id(), value);
        }
    }
    if let Some(text) = record.proc_id {
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
        if let Some(number) = number {
            attributes.int(Key::ProcessId.id(), number);
        }
        if number.is_none() || record.version.is_some() {
            attributes.text(Key::ProcessIdText.id(), text);
        }
    }
}
