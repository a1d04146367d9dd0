//! One syslog message -> one log record. This is where a line becomes columns.

use catchment_syslog::{Cef, Format, Record, parse, severity};

use super::batch::{Receipt, Source};
use super::{extensions, names, structured};
use crate::attributes::AttributeWriter;
use crate::logs::{LogFields, LogsTable};

/// Form of the structured data of RFC 5424 on the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StructuredDataForm {
    /// One attribute, a map of SD-ID to a map of parameters; a repeated parameter is a list.
    #[default]
    Map,
    /// One attribute, the text as sent.
    Text,
    /// One attribute a parameter: `syslog.structured_data.<sd-id>.<param>`; a repeated parameter is a list.
    Flat,
}

/// How messages become records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowOptions {
    /// Form of structured data.
    pub structured_data: StructuredDataForm,
    /// Put before every CEF extension key; empty means the keys as sent.
    pub cef_extension_prefix: String,
}

/// Writes messages into a logs table and keeps scratch memory between them.
pub(super) struct RowWriter {
    options: RowOptions,
    scratch: structured::Scratch,
}

impl RowWriter {
    pub(super) fn new(options: RowOptions) -> Self {
        Self { options, scratch: structured::Scratch::default() }
    }

    pub(super) fn write(&mut self, table: &mut LogsTable, message: &[u8], source: &Source, receipt: Receipt) {
        let context = catchment_syslog::Receipt { time_unix_nano: receipt.time_unix_nano, zone: source.zone() };
        let record = parse(message, &context);
        let level = record.severity.map(severity::level);
        let mut attributes = table.record(LogFields {
            time_unix_nano: record.time_unix_nano,
            observed_time_unix_nano: receipt.time_unix_nano,
            severity_number: level.map(|level| level.number),
            severity_text: level.map(|level| level.text),
            // What was taken apart whole is not stored twice.
            body: (!record.fully_parsed).then_some(message),
        });
        attributes.text(names::INPUT_FORMAT, record.format.as_str().as_bytes());
        header(&mut attributes, &record);
        if let Some(data) = &record.structured_data {
            structured::write(&mut attributes, data, self.options.structured_data, &mut self.scratch);
        }
        if let Some(text) = record.message {
            let is_5424 = matches!(record.format, Format::Rfc5424 | Format::CefRfc5424);
            attributes.text(if is_5424 { names::MESSAGE } else { names::CONTENT }, text);
        }
        if let Some(cef) = &record.cef {
            self.cef(&mut attributes, cef);
        }
        receipt_context(&mut attributes, source, receipt);
    }

    fn cef(&self, attributes: &mut AttributeWriter<'_>, cef: &Cef<'_>) {
        attributes.int(names::CEF_VERSION, i64::from(cef.version()));
        for (name, value) in [
            (names::CEF_DEVICE_VENDOR, cef.device_vendor()),
            (names::CEF_DEVICE_PRODUCT, cef.device_product()),
            (names::CEF_DEVICE_VERSION, cef.device_version()),
            (names::CEF_DEVICE_EVENT_CLASS_ID, cef.device_event_class_id()),
            (names::CEF_NAME, cef.name()),
            (names::CEF_SEVERITY, cef.severity()),
        ] {
            attributes.text(name, &value);
        }
        extensions::write(attributes, cef, &self.options.cef_extension_prefix);
    }
}

fn receipt_context(attributes: &mut AttributeWriter<'_>, source: &Source, receipt: Receipt) {
    if receipt.truncated {
        attributes.bool(names::TRUNCATED, true);
    }
    if let (Some(peer), Some(address)) = (source.peer, &source.address) {
        attributes.text(names::PEER_ADDRESS, address.as_bytes());
        attributes.int(names::PEER_PORT, i64::from(peer.port()));
    }
    if let Some(transport) = source.transport.as_str() {
        attributes.text(names::TRANSPORT, transport.as_bytes());
    }
    if let Some(subject) = &source.tls_subject {
        attributes.text(names::TLS_CLIENT_SUBJECT, subject.as_bytes());
    }
}

fn header(attributes: &mut AttributeWriter<'_>, record: &Record<'_>) {
    if let Some(facility) = record.facility {
        attributes.int(names::FACILITY, i64::from(facility));
    }
    if let Some(severity) = record.severity {
        attributes.int(names::SEVERITY, i64::from(severity));
    }
    if let Some(version) = record.version {
        attributes.int(names::VERSION, i64::from(version));
    }
    for (name, value) in [
        (names::PREFIX, record.prefix),
        (names::HOST_NAME, record.hostname),
        (names::APP_NAME, record.app_name),
        (names::TAG, record.tag),
        (names::MSG_ID, record.msg_id),
    ] {
        if let Some(value) = value {
            attributes.text(name, value);
        }
    }
    if let Some(text) = record.proc_id {
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
        if let Some(number) = number {
            attributes.int(names::PROCESS_ID, number);
        }
        if number.is_none() || record.version.is_some() {
            attributes.text(names::PROCESS_ID_STR, text);
        }
    }
}
