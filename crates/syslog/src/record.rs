//! One parsed message, and the decision which format it has.

use crate::cef::Cef;
use crate::structured_data::StructuredData;
use crate::time::Receipt;
use crate::{rfc3164, rfc5424};

/// The format that a message was read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// RFC 3164 and everything that has no better form.
    Rfc3164,
    /// RFC 5424.
    Rfc5424,
    /// CEF without any syslog header.
    Cef,
    /// CEF behind a PRI or an RFC 3164 header.
    CefRfc3164,
    /// CEF as MSG of RFC 5424.
    CefRfc5424,
}

impl Format {
    /// The value of the attribute `input.format`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rfc3164 => "rfc3164",
            Self::Rfc5424 => "rfc5424",
            Self::Cef => "cef",
            Self::CefRfc3164 => "cef_rfc3164",
            Self::CefRfc5424 => "cef_rfc5424",
        }
    }
}

/// The fields of one message. Bytes are as sent and need not be UTF-8; an absent field is `None`,
/// never an empty or `-` text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Record<'a> {
    /// The format the message was read as.
    pub format: Format,
    /// Facility of PRI, 0 to 23.
    pub facility: Option<u8>,
    /// Severity of PRI, 0 (most severe) to 7.
    pub severity: Option<u8>,
    /// VERSION of RFC 5424, 1 to 999.
    pub version: Option<u16>,
    /// Time of the event in nanoseconds since 1970-01-01T00:00:00Z; may be negative.
    pub time_unix_nano: Option<i64>,
    /// What a Cisco device writes before its stamp: counters, origin, clock mark or uptime, such
    /// as `237: *`. In no other field, except that the origin is the host name where no host follows.
    pub prefix: Option<&'a [u8]>,
    /// HOSTNAME.
    pub hostname: Option<&'a [u8]>,
    /// APP-NAME, or the tag of RFC 3164 without process id.
    pub app_name: Option<&'a [u8]>,
    /// RFC 3164 only: the tag as sent, with `[pid]` and without the colon.
    pub tag: Option<&'a [u8]>,
    /// PROCID, or the text in the brackets of an RFC 3164 tag.
    pub proc_id: Option<&'a [u8]>,
    /// MSGID of RFC 5424.
    pub msg_id: Option<&'a [u8]>,
    /// STRUCTURED-DATA of RFC 5424.
    pub structured_data: Option<StructuredData<'a>>,
    /// MSG or CONTENT. Absent if empty, and if it is CEF.
    pub message: Option<&'a [u8]>,
    /// The message as CEF.
    pub cef: Option<Cef<'a>>,
    /// Every part of the input is in some field and has the form it should have. If false, the
    /// raw input must be kept: a stamp that cannot be read, a zone word that is not the configured
    /// zone's, broken structured data, a header that ends early, extension text of CEF without a
    /// key, or no PRI (except for bare CEF, which has none).
    pub fully_parsed: bool,
}

/// The record of an RFC 3164 message without any field.
impl Default for Record<'_> {
    fn default() -> Self {
        Self::empty(Format::Rfc3164)
    }
}

impl<'a> Record<'a> {
    #[inline(always)]
    pub(crate) fn empty(format: Format) -> Self {
        Self {
            format,
            facility: None,
            severity: None,
            version: None,
            time_unix_nano: None,
            prefix: None,
            hostname: None,
            app_name: None,
            tag: None,
            proc_id: None,
            msg_id: None,
            structured_data: None,
            message: None,
            cef: None,
            fully_parsed: true,
        }
    }

    /// Makes `cef` the content, in place of a message.
    pub(crate) fn set_cef(&mut self, format: Format, cef: Cef<'a>, receipt: &Receipt<'_>) {
        self.format = format;
        if self.time_unix_nano.is_none() {
            self.time_unix_nano = cef.event_time(receipt);
        }
        self.fully_parsed &= cef.unplaced().is_none();
        self.cef = Some(cef);
    }

    /// Makes `text` the message, unless there is none.
    pub(crate) fn set_message(&mut self, text: &'a [u8]) {
        self.message = (!text.is_empty()).then_some(text);
    }
}

/// Reads one message without its frame. Every input gives a record.
///
/// `receipt` supplies what stamps leave out. The order of tries: PRI and RFC 5424, then CEF, then
/// RFC 3164 and the header forms of its relatives.
#[must_use]
pub fn parse<'a>(input: &'a [u8], receipt: &Receipt<'_>) -> Record<'a> {
    let mut record = Record::default();
    parse_into(&mut record, input, receipt);
    record
}

/// As [`parse`], into a record that is there already, whose fields are all replaced. Where many
/// messages are read, this saves copying each record once.
pub fn parse_into<'a>(record: &mut Record<'a>, input: &'a [u8], receipt: &Receipt<'_>) {
    *record = Record::empty(Format::Rfc3164);
    match pri(input) {
        Some((value, rest)) => {
            record.facility = Some(value >> 3);
            record.severity = Some(value & 7);
            if !rfc5424::parse(record, rest, receipt) {
                rfc3164::parse(record, rest, true, receipt);
            }
        }
        // A broken PRI: nothing behind it can be trusted.
        None if input.first() == Some(&b'<') => {
            record.message = Some(input);
            record.fully_parsed = false;
        }
        None => {
            rfc3164::parse(record, input, false, receipt);
            record.fully_parsed &= record.format == Format::Cef;
        }
    }
}

/// PRI of RFC 5424 section 6.2.1: its value and what follows.
#[inline]
fn pri(input: &[u8]) -> Option<(u8, &[u8])> {
    let digits = input.strip_prefix(b"<")?;
    let value = |digit: &u8| digit.is_ascii_digit().then(|| u16::from(digit - b'0'));
    let (value, rest) = match digits {
        [a, b'>', rest @ ..] => (value(a)?, rest),
        [a @ b'1'..=b'9', b, b'>', rest @ ..] => (value(a)? * 10 + value(b)?, rest),
        [a @ b'1'..=b'9', b, c, b'>', rest @ ..] => (value(a)? * 100 + value(b)? * 10 + value(c)?, rest),
        _ => return None,
    };
    u8::try_from(value).ok().filter(|value| *value <= 191).map(|value| (value, rest))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod work_tests;
