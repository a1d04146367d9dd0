//! The format of RFC 5424.

use crate::bytes::{DIGIT, find, span};
use crate::cef::Cef;
use crate::record::{Format, Record};
use crate::stamp;
use crate::structured_data::StructuredData;
use crate::time::Receipt;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Reads into `record` what follows PRI, or gives false and leaves it as it was if that is not this
/// format: a version, a space, and then `- ` or the date of an RFC 3339 stamp.
pub(crate) fn parse<'a>(record: &mut Record<'a>, text: &'a [u8], receipt: &Receipt<'_>) -> bool {
    let Some((version, text)) = version(text) else { return false };
    let mut fields = if let Some((stamp, len)) = stamp::rfc3339(text) {
        let resolved = stamp.resolve(receipt);
        record.time_unix_nano = resolved.time_unix_nano;
        Fields { rest: text.get(len + 1..), well_formed: resolved.complete }
    } else if text.starts_with(b"- ") {
        Fields { rest: Some(&text[2..]), well_formed: true }
    } else if stamp::begins_like_rfc3339(text) {
        let mut fields = Fields { rest: Some(text), well_formed: false };
        fields.next();
        fields
    } else {
        return false;
    };
    record.format = Format::Rfc5424;
    record.version = Some(version);
    record.hostname = fields.next();
    for field in [&mut record.app_name, &mut record.proc_id, &mut record.msg_id] {
        // Some senders of CEF leave the rest of the header out.
        if let Some(rest @ [b'C', ..]) = fields.rest
            && Cef::parse(rest).is_some()
        {
            break;
        }
        *field = fields.next();
    }
    record.fully_parsed = fields.well_formed;

    let message = match fields.rest.map(|rest| structured_data(rest).ok_or(rest)) {
        Some(Ok((data, message))) => {
            record.structured_data = data;
            message
        }
        Some(Err(text)) => {
            record.fully_parsed = false;
            text
        }
        None => {
            record.fully_parsed = false;
            b""
        }
    };
    let message = message.strip_prefix(BYTE_ORDER_MARK).unwrap_or(message);
    match Cef::parse(message) {
        Some(cef) => record.set_cef(Format::CefRfc5424, cef, receipt),
        None => record.set_message(message),
    }
    true
}

/// VERSION and the space after it.
fn version(text: &[u8]) -> Option<(u16, &[u8])> {
    let len = span(&text[..text.len().min(4)], DIGIT);
    let rest = text.get(len..)?.strip_prefix(b" ")?;
    if len == 0 || len > 3 || text[0] == b'0' {
        return None;
    }
    let value = text[..len].iter().fold(0, |value, byte| value * 10 + u16::from(byte - b'0'));
    Some((value, rest))
}

/// Header fields parted by single spaces.
struct Fields<'a> {
    /// What follows the space after the last field; `None` once the input ended without one.
    rest: Option<&'a [u8]>,
    /// No field was empty or missing.
    well_formed: bool,
}

impl<'a> Fields<'a> {
    /// The next field, if it is there, not empty and not `-`.
    #[inline(always)]
    fn next(&mut self) -> Option<&'a [u8]> {
        let Some(text) = self.rest else {
            self.well_formed = false;
            return None;
        };
        let field = match find(text, b' ') {
            Some(end) => {
                self.rest = Some(&text[end + 1..]);
                &text[..end]
            }
            None => {
                self.rest = None;
                text
            }
        };
        self.well_formed &= !field.is_empty();
        (!field.is_empty() && field != b"-").then_some(field)
    }
}

/// Structured data (`-` is none) and MSG, or `None` if `text` begins with neither.
fn structured_data(text: &[u8]) -> Option<(Option<StructuredData<'_>>, &[u8])> {
    let (data, rest) = if text == b"-" || text.starts_with(b"- ") {
        (None, &text[1..])
    } else {
        let (data, rest) = StructuredData::split(text)?;
        (Some(data), rest)
    };
    Some((data, rest.strip_prefix(b" ").unwrap_or(rest)))
}

#[cfg(test)]
mod tests;
