//! ArcSight Common Event Format, versions 0 and 1.

use std::borrow::Cow;
use std::sync::LazyLock;

use jiff::tz::TimeZoneDatabase;
use memchr::memmem::Finder;

use crate::bytes::{CEF_KEY, DIGIT, Positions, find, span, span_back, work};
use crate::escape::unescape;
use crate::stamp;
use crate::time::{Receipt, Zone};

const MARK: &[u8] = b"CEF:";
/// Longest zone name looked up in the database for a zone that a device names.
const MAX_ZONE_NAME: usize = 48;

/// One CEF event. Header fields are cut at unescaped `|`; `\|` and `\\` are undone on access, with a
/// copy only if there is an escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cef<'a> {
    raw: &'a [u8],
    /// Positions of the bars behind the version and the six fields.
    bars: [u32; 7],
    /// Start of the first key and position of its `=`, in the extension.
    first_pair: Option<(u32, u32)>,
    /// There is a backslash somewhere.
    escaped: bool,
}

impl<'a> Cef<'a> {
    /// Reads `CEF:`, an optional space, version 0 or 1 (a minor part may follow) and six more fields
    /// that each end in `|`. `None` if `text` does not begin like that, or has 4 GiB.
    #[inline]
    pub(crate) fn parse(text: &'a [u8]) -> Option<Self> {
        if text.starts_with(MARK) { Self::parse_marked(text) } else { None }
    }

    fn parse_marked(text: &'a [u8]) -> Option<Self> {
        u32::try_from(text.len()).ok()?;
        let version_start = version_start(text);
        let version_end = version_start + version_len(&text[version_start..])?;
        let mut bars = [version_end as u32; 7];
        let mut positions = Positions::new(text, version_end + 1, b'|');
        for field in 1..7 {
            let start = bars[field - 1] as usize + 1;
            let end = positions.find(|end| !is_escaped(&text[start..*end]))?;
            bars[field] = end as u32;
        }
        let extension = &text[bars[6] as usize + 1..];
        let first_pair = next_pair(extension, &mut Positions::new(extension, 0, b'='));
        let first_pair = first_pair.map(|(key, equals)| (key as u32, equals as u32));
        let escaped = find(text, b'\\').is_some();
        Some(Self { raw: text, bars, first_pair, escaped })
    }

    /// The whole event as sent, from `CEF:` on.
    #[must_use]
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Major version: 0 or 1.
    #[must_use]
    pub fn version(&self) -> u8 {
        self.version_text()[0] - b'0'
    }

    /// Version as sent, such as `0` or `1.2`.
    #[must_use]
    pub fn version_text(&self) -> &'a [u8] {
        &self.raw[version_start(self.raw)..self.bars[0] as usize]
    }

    /// Device Vendor.
    #[must_use]
    pub fn device_vendor(&self) -> Cow<'a, [u8]> {
        self.header(0)
    }

    /// Device Product.
    #[must_use]
    pub fn device_product(&self) -> Cow<'a, [u8]> {
        self.header(1)
    }

    /// Device Version.
    #[must_use]
    pub fn device_version(&self) -> Cow<'a, [u8]> {
        self.header(2)
    }

    /// Device Event Class ID, also called signature id.
    #[must_use]
    pub fn device_event_class_id(&self) -> Cow<'a, [u8]> {
        self.header(3)
    }

    /// Name of the event.
    #[must_use]
    pub fn name(&self) -> Cow<'a, [u8]> {
        self.header(4)
    }

    /// Severity as sent: 0 to 10, or a word such as `High`.
    #[must_use]
    pub fn severity(&self) -> Cow<'a, [u8]> {
        self.header(5)
    }

    /// The field behind the bar of that number.
    #[inline]
    fn header(&self, bar: usize) -> Cow<'a, [u8]> {
        let field = &self.raw[self.bars[bar] as usize + 1..self.bars[bar + 1] as usize];
        match self.escaped {
            true => unescape(field, |byte| matches!(byte, b'|' | b'\\').then_some(byte)),
            false => Cow::Borrowed(field),
        }
    }

    fn extension(&self) -> &'a [u8] {
        &self.raw[self.bars[6] as usize + 1..]
    }

    /// The pairs of the extension in order. A key can occur more than once.
    #[must_use]
    #[inline]
    pub fn extensions(&self) -> Extensions<'a> {
        let text = self.extension();
        let next = self.first_pair.map(|(key, equals)| (key as usize, equals as usize));
        let behind = next.map_or(text.len(), |(_, equals)| equals + 1);
        Extensions { positions: Positions::new(text, behind, b'='), text, next, escaped: self.escaped }
    }

    /// Extension text before the first pair, which has no key; all of it if there are no pairs.
    /// Absent if that is only space.
    #[must_use]
    pub fn unplaced(&self) -> Option<&'a [u8]> {
        let text = self.extension();
        let first_key = self.first_pair.map_or(text.len(), |(key, _)| key as usize);
        let before = text[..first_key].trim_ascii();
        (!before.is_empty()).then_some(before)
    }

    /// The time of the event by its own fields, in nanoseconds since 1970: `rt`, else `end`, else
    /// `start`, whichever first can be read.
    pub(crate) fn event_time(&self, receipt: &Receipt<'_>) -> Option<i64> {
        let text = self.extension();
        // Most events have no such field. `start=` ends like `rt=`.
        if RECEIVED.find(text).is_none() && END.find(text).is_none() {
            return None;
        }
        let [mut received, mut end, mut start, mut zone] = [None; 4];
        // What makes a pair is seen at its `=`, so that the others need not be taken apart.
        for equals in Positions::new(text, 0, b'=') {
            let before = &text[..equals];
            match before.last() {
                Some(b't') if is_key(before, b"rt") => received = Some(equals),
                Some(b't') if is_key(before, b"start") => start = Some(equals),
                Some(b'd') if is_key(before, b"end") => end = Some(equals),
                Some(b'z') if is_key(before, b"dtz") => zone = Some(equals),
                _ => {}
            }
        }
        let value = |equals: usize| {
            let start = equals + 1;
            let next = next_pair(text, &mut Positions::new(text, start, b'='));
            text[start..next.map_or(text.len(), |(key_start, _)| key_start - 1)].trim_ascii()
        };
        [received, end, start].into_iter().flatten().find_map(|equals| {
            let text = value(equals);
            milliseconds(text).or_else(|| written_time(text, zone.map(value), receipt))
        })
    }
}

static RECEIVED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"rt="));
static END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"end="));

/// Iterator over the pairs of a CEF extension: key, and value with the escapes `\=`, `\\`, `\n` and
/// `\r` undone. The value borrows unless it has an escape.
#[derive(Debug, Clone)]
pub struct Extensions<'a> {
    text: &'a [u8],
    /// Every `=` that has not been looked at.
    positions: Positions<'a>,
    /// Start of the next key and position of its `=`.
    next: Option<(usize, usize)>,
    /// A value may have a backslash in it.
    escaped: bool,
}

impl<'a> Extensions<'a> {
    /// The next pair with its value as sent.
    #[inline]
    pub(crate) fn next_raw(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let (key_start, equals) = self.next?;
        let value_start = equals + 1;
        self.next = next_pair(self.text, &mut self.positions);
        // One space before the next key parts the pairs; more belong to the value.
        let value_end = self.next.map_or(self.text.len(), |(key_start, _)| key_start - 1);
        Some((&self.text[key_start..equals], &self.text[value_start..value_end]))
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = (&'a [u8], Cow<'a, [u8]>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.next_raw()?;
        let value = if self.escaped { unescape(value, undo_extension) } else { Cow::Borrowed(value) };
        Some((key, value))
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

/// Where the version begins: behind the mark and one optional space.
fn version_start(text: &[u8]) -> usize {
    MARK.len() + usize::from(text.get(MARK.len()) == Some(&b' '))
}

/// Length of a supported version, which a bar follows.
fn version_len(text: &[u8]) -> Option<usize> {
    let len = match text {
        [b'0' | b'1', b'|', ..] => 1,
        [b'0' | b'1', b'.', minor @ ..] => match span(minor, DIGIT) {
            0 => return None,
            digits => 2 + digits,
        },
        _ => return None,
    };
    (text.get(len) == Some(&b'|')).then_some(len)
}

/// Whether a backslash before the end of `text` belongs to what follows, and not to another backslash.
#[inline]
fn is_escaped(text: &[u8]) -> bool {
    if text.last() != Some(&b'\\') {
        return false;
    }
    let backslashes = text.iter().rev().take_while(|byte| **byte == b'\\').count();
    work::add(backslashes);
    backslashes % 2 == 1
}

/// Start of the next key, and the position of its `=`. A key begins at the beginning of the extension
/// or after a space. The walk back from one `=` ends at the one before it at the latest, so that the
/// whole search takes linear time.
#[inline]
fn next_pair(extension: &[u8], positions: &mut Positions<'_>) -> Option<(usize, usize)> {
    positions.find_map(|equals| {
        let key_start = equals - span_back(&extension[..equals], CEF_KEY);
        let parted = key_start == 0 || extension[key_start - 1] == b' ';
        (key_start < equals && parted).then_some((key_start, equals))
    })
}

/// Whether `key` is the key that `text` ends with.
fn is_key(text: &[u8], key: &[u8]) -> bool {
    text.strip_suffix(key).is_some_and(|before| matches!(before.last(), None | Some(b' ')))
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
