//! ArcSight Common Event Format, versions 0 and 1.

use std::borrow::Cow;
use std::sync::LazyLock;

use jiff::tz::TimeZoneDatabase;

use crate::escape::unescape;
use crate::stamp;
use crate::time::{Receipt, Zone};

/// Longest zone name looked up in the database for a zone that a device names.
const MAX_ZONE_NAME: usize = 48;

/// One CEF event. Header fields are cut at unescaped `|`; `\|` and `\\` are undone on access, with a
/// copy only if there is an escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cef<'a> {
    raw: &'a [u8],
    version: &'a [u8],
    header: [&'a [u8]; 6],
    extension: &'a [u8],
    unplaced: Option<&'a [u8]>,
}

impl<'a> Cef<'a> {
    /// Reads `CEF:`, an optional space, version 0 or 1 (a minor part may follow) and six more fields
    /// that each end in `|`. `None` if `text` does not begin like that.
    pub(crate) fn parse(text: &'a [u8]) -> Option<Self> {
        let after_mark = text.strip_prefix(b"CEF:")?;
        let mut rest = after_mark.strip_prefix(b" ").unwrap_or(after_mark);
        let version = header_field(&mut rest)?;
        if !is_supported_version(version) {
            return None;
        }
        let mut header: [&[u8]; 6] = [b""; 6];
        for field in &mut header {
            *field = header_field(&mut rest)?;
        }
        let first_key = next_pair(rest, 0).map_or(rest.len(), |(key_start, _)| key_start);
        let before = rest[..first_key].trim_ascii();
        let unplaced = (!before.is_empty()).then_some(before);
        Some(Self { raw: text, version, header, extension: rest, unplaced })
    }

    /// The whole event as sent, from `CEF:` on.
    #[must_use]
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Major version: 0 or 1.
    #[must_use]
    pub fn version(&self) -> u8 {
        self.version[0] - b'0'
    }

    /// Version as sent, such as `0` or `1.2`.
    #[must_use]
    pub fn version_text(&self) -> &'a [u8] {
        self.version
    }

    /// Device Vendor.
    #[must_use]
    pub fn device_vendor(&self) -> Cow<'a, [u8]> {
        unescape_header(self.header[0])
    }

    /// Device Product.
    #[must_use]
    pub fn device_product(&self) -> Cow<'a, [u8]> {
        unescape_header(self.header[1])
    }

    /// Device Version.
    #[must_use]
    pub fn device_version(&self) -> Cow<'a, [u8]> {
        unescape_header(self.header[2])
    }

    /// Device Event Class ID, also called signature id.
    #[must_use]
    pub fn device_event_class_id(&self) -> Cow<'a, [u8]> {
        unescape_header(self.header[3])
    }

    /// Name of the event.
    #[must_use]
    pub fn name(&self) -> Cow<'a, [u8]> {
        unescape_header(self.header[4])
    }

    /// Severity as sent: 0 to 10, or a word such as `High`.
    #[must_use]
    pub fn severity(&self) -> Cow<'a, [u8]> {
        unescape_header(self.header[5])
    }

    /// The pairs of the extension in order. A key can occur more than once.
    #[must_use]
    pub fn extensions(&self) -> Extensions<'a> {
        Extensions { text: self.extension, next: next_pair(self.extension, 0) }
    }

    /// Extension text before the first pair, which has no key; all of it if there are no pairs.
    /// Absent if that is only space.
    #[must_use]
    pub fn unplaced(&self) -> Option<&'a [u8]> {
        self.unplaced
    }

    /// The time of the event by its own fields, in nanoseconds since 1970: `rt`, else `end`, else
    /// `start`, whichever first can be read.
    pub(crate) fn event_time(&self, receipt: &Receipt<'_>) -> Option<i64> {
        let [mut received, mut end, mut start, mut zone] = [None; 4];
        let mut pairs = self.extensions();
        while let Some((key, value)) = pairs.next_raw() {
            match key {
                b"rt" => received = Some(value),
                b"end" => end = Some(value),
                b"start" => start = Some(value),
                b"dtz" => zone = Some(value),
                _ => {}
            }
        }
        [received, end, start].into_iter().flatten().find_map(|text| {
            let text = text.trim_ascii();
            milliseconds(text).or_else(|| written_time(text, zone, receipt))
        })
    }
}

/// Iterator over the pairs of a CEF extension: key, and value with the escapes `\=`, `\\`, `\n` and
/// `\r` undone. The value borrows unless it has an escape.
#[derive(Debug, Clone)]
pub struct Extensions<'a> {
    text: &'a [u8],
    /// Start of the next key and position of its `=`.
    next: Option<(usize, usize)>,
}

impl<'a> Extensions<'a> {
    /// The next pair with its value as sent.
    fn next_raw(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let (key_start, equals) = self.next?;
        let value_start = equals + 1;
        self.next = next_pair(self.text, value_start);
        // One space before the next key parts the pairs; more belong to the value.
        let value_end = self.next.map_or(self.text.len(), |(key_start, _)| key_start - 1);
        Some((&self.text[key_start..equals], &self.text[value_start..value_end]))
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = (&'a [u8], Cow<'a, [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        self.next_raw().map(|(key, value)| (key, unescape(value, undo_extension)))
    }
}

fn undo_extension(byte: u8) -> Option<u8> {
    match byte {
        b'=' | b'\\' => Some(byte),
        b'n' => Some(b'\n'),
        b'r' => Some(b'\r'),
        _ => None,
    }
}

fn unescape_header(raw: &[u8]) -> Cow<'_, [u8]> {
    unescape(raw, |byte| matches!(byte, b'|' | b'\\').then_some(byte))
}

/// Takes the field up to the next unescaped `|`, and that bar.
fn header_field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let text = *rest;
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'|', b'\\', text.get(at..)?)?;
        if text[at] == b'|' {
            *rest = &text[at + 1..];
            return Some(&text[..at]);
        }
        at += 2;
    }
}

fn is_supported_version(version: &[u8]) -> bool {
    match version {
        [b'0' | b'1'] => true,
        [b'0' | b'1', b'.', minor @ ..] => !minor.is_empty() && minor.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Start of the next key at or after `from`, and the position of its `=`. A key begins at the
/// beginning of the extension or after a space. The walk back from one `=` ends at the one before
/// it at the latest, so that the whole search takes linear time.
fn next_pair(extension: &[u8], from: usize) -> Option<(usize, usize)> {
    let mut searched = from;
    loop {
        let equals = searched + memchr::memchr(b'=', &extension[searched..])?;
        let before = &extension[searched..equals];
        let key_len = before.iter().rev().take_while(|byte| is_key_byte(**byte)).count();
        let key_start = equals - key_len;
        let parted = match key_start.checked_sub(1) {
            Some(previous) => key_start > from && extension[previous] == b' ',
            None => true,
        };
        if key_len > 0 && parted {
            return Some((key_start, equals));
        }
        searched = equals + 1;
    }
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'[' | b']')
}

/// Milliseconds since 1970 as nanoseconds.
fn milliseconds(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.len() > 18 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = text.iter().fold(0i64, |value, byte| value * 10 + i64::from(byte - b'0'));
    value.checked_mul(1_000_000)
}

/// A date in words, or of RFC 3339, with a zone behind it or else in `dtz`.
fn written_time(text: &[u8], dtz: Option<&[u8]>, receipt: &Receipt<'_>) -> Option<i64> {
    let scan = stamp::scan(text)?;
    let zone_behind = text[scan.len..].trim_ascii();
    let zone = if zone_behind.is_empty() {
        dtz.and_then(zone_of_device)
    } else {
        // Not a zone: then the text is something else, and guessing would give a wrong time.
        Some(zone_of_device(zone_behind)?)
    };
    let default_zone = zone.as_ref().unwrap_or(receipt.zone);
    scan.stamp.resolve_in(default_zone, receipt.time_unix_nano).time_unix_nano
}

/// The zone that a device names by offset or by IANA name. Only the bundled database is asked: a
/// name from the network must not reach the file system.
fn zone_of_device(text: &[u8]) -> Option<Zone> {
    static BUNDLED: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
    let text = text.trim_ascii();
    if let Some((seconds, len)) = stamp::offset_with_name(text) {
        return (len == text.len()).then_some(Zone::Fixed(seconds));
    }
    if text.len() > MAX_ZONE_NAME {
        return None;
    }
    let name = std::str::from_utf8(text).ok()?;
    BUNDLED.get(name).ok().map(Zone::Named)
}

#[cfg(test)]
mod tests;
