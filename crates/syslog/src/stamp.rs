//! Finding and reading the time stamp of a header, without allocation.
//!
//! The two layouts that nearly all devices send, `Mmm dd hh:mm:ss` and `yyyy-mm-ddThh:mm:ss`, are
//! read at fixed positions. Other spacing, a year in the BSD form and zones behind the time take
//! the general way. A stamp is recognised by its shape; whether such a date exists is decided when
//! it is resolved, so that an impossible date still ends where the next field begins.

mod zone;

use crate::bytes::{self, digit_pairs};
use crate::civil::Civil;
use crate::time::{Receipt, Zone};
use zone::{WrittenZone, separate_zone};
pub(crate) use zone::{offset, offset_with_name};

/// Fraction with more digits than nanoseconds have; never a valid value of [`Civil::nano`].
const TOO_PRECISE: u32 = u32::MAX;

/// A time stamp as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp<'a> {
    /// The year in it means nothing unless `has_year`.
    civil: Civil,
    has_year: bool,
    zone: WrittenZone<'a>,
}

/// A stamp found at the start of some text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scan<'a> {
    pub(crate) stamp: Stamp<'a>,
    /// Bytes from the start of the text to the end of the stamp, with zone and colon.
    pub(crate) len: usize,
    /// A colon follows the stamp, as Cisco devices write it.
    pub(crate) colon: bool,
}

/// The instant of a stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// Nanoseconds since 1970-01-01T00:00:00Z, if the stamp can be read and is in range.
    pub(crate) time_unix_nano: Option<i64>,
    /// The instant says all that the stamp said. False for an unreadable stamp, and for a zone word
    /// that is not the configured zone's.
    pub(crate) complete: bool,
}

impl Stamp<'_> {
    /// The instant, with the configured zone where the stamp has none and the guessed year where
    /// it has no year.
    #[inline]
    pub(crate) fn resolve(&self, receipt: &Receipt<'_>) -> Resolved {
        self.resolve_in(receipt.zone, receipt.time_unix_nano)
    }

    /// As [`Stamp::resolve`] with another default zone.
    #[inline]
    pub(crate) fn resolve_in(&self, default_zone: &Zone, received_unix_nano: i64) -> Resolved {
        let written;
        let zone = match self.zone {
            WrittenZone::Offset(seconds) => {
                written = Zone::Fixed(seconds);
                &written
            }
            WrittenZone::Missing | WrittenZone::Word(_) => default_zone,
        };
        let time_unix_nano = if self.has_year {
            zone.instant(&self.civil, received_unix_nano)
        } else {
            zone.instant_in_guessed_year(&self.civil, received_unix_nano)
        };
        let complete = match (time_unix_nano, self.zone) {
            (None, _) => false,
            (Some(time), WrittenZone::Word(word)) => zone.has_abbreviation(word, time),
            (Some(_), _) => true,
        };
        Resolved { time_unix_nano, complete }
    }
}

/// The stamp at the start of `text`: BSD or ISO 8601 form, then optionally zone, year and colon.
pub(crate) fn scan(text: &[u8]) -> Option<Scan<'_>> {
    let core = fixed_bsd(text).or_else(|| fixed_iso(text)).or_else(|| general_bsd(text))?;
    tail(text, core)
}

/// What [`scan`] gives, and its length, for the stamps that nearly all devices send; `None` for any
/// other. In one piece, so that the parts of the stamp stay in registers.
#[inline(always)]
pub(crate) fn scan_usual(text: &[u8]) -> Option<(Stamp<'_>, usize)> {
    let core = match text.first()? {
        b'0'..=b'9' => fixed_iso(text)?,
        _ => fixed_bsd(text)?,
    };
    let (stamp, end) = attached(text, core);
    ends(text, end).then_some((stamp, end))
}

/// The RFC 3339 time stamp that `text` begins with, and its length; a space or the end of the text
/// follows. Besides the grammar of RFC 5424 section 6.2.3 it takes up to nine digits of fraction, a
/// comma before them, offsets without colon, and no offset.
#[inline(always)]
pub(crate) fn rfc3339(text: &[u8]) -> Option<(Stamp<'_>, usize)> {
    let core = fixed_iso(text).filter(|_| text[10] == b'T')?;
    let (stamp, end) = attached(text, core);
    matches!(text.get(end), None | Some(b' ')).then_some((stamp, end))
}

/// Whether `text` begins with `dddd-dd-ddT`.
pub(crate) fn begins_like_rfc3339(text: &[u8]) -> bool {
    text.get(10) == Some(&b'T') && iso_date(text).is_some()
}

/// Date and time up to the seconds, and where they end.
struct Core {
    civil: Civil,
    has_year: bool,
    end: usize,
}

/// `Mmm dd hh:mm:ss` with the day padded by a space or a zero.
#[inline(always)]
fn fixed_bsd(text: &[u8]) -> Option<Core> {
    let b: &[u8; 15] = text.first_chunk()?;
    if b[3] != b' ' || b[6] != b' ' {
        return None;
    }
    let month = month(b[0], b[1], b[2])?;
    let day = if b[4] == b' ' { digit(b[5])? } else { two_digits(b[4], b[5])? };
    let (hour, minute, second) = time_of_day(&b[7..])?;
    let civil = Civil { year: 0, month, day, hour, minute, second, nano: 0 };
    Some(Core { civil, has_year: false, end: 15 })
}

/// `yyyy-mm-dd hh:mm:ss` with `T` or a space between.
#[inline(always)]
fn fixed_iso(text: &[u8]) -> Option<Core> {
    let b: &[u8; 19] = text.first_chunk()?;
    let (year, month, day) = iso_date(b)?;
    if !matches!(b[10], b'T' | b't' | b' ') {
        return None;
    }
    let (hour, minute, second) = time_of_day(&b[11..])?;
    let civil = Civil { year, month, day, hour, minute, second, nano: 0 };
    Some(Core { civil, has_year: true, end: 19 })
}

/// `[yyyy] Mmm d[d] [yyyy] hh:mm:ss` with any number of spaces between.
fn general_bsd(text: &[u8]) -> Option<Core> {
    let mut year = year_at(text, 0);
    let mut at = if year.is_some() { spaces(text, 4)? } else { 0 };
    let name: &[u8; 3] = text.get(at..)?.first_chunk()?;
    let month = month(name[0], name[1], name[2])?;
    at = spaces(text, at + 3)?;
    let first = digit(*text.get(at)?)?;
    let day = match text.get(at + 1).copied().and_then(digit) {
        Some(second) => {
            at += 2;
            first * 10 + second
        }
        None => {
            at += 1;
            first
        }
    };
    at = spaces(text, at)?;
    if year.is_none() {
        year = year_at(text, at);
        if year.is_some() {
            at = spaces(text, at + 4)?;
        }
    }
    let (hour, minute, second) = time_of_day(text.get(at..)?)?;
    let civil = Civil { year: year.unwrap_or(0), month, day, hour, minute, second, nano: 0 };
    Some(Core { civil, has_year: year.is_some(), end: at + 8 })
}

/// What may touch the seconds: fraction, then `Z` or an offset. Gives the end of it too.
#[inline(always)]
fn attached(text: &[u8], core: Core) -> (Stamp<'_>, usize) {
    let Core { mut civil, has_year, mut end } = core;
    if matches!(text.get(end), Some(b'.' | b',')) {
        let digits = bytes::span(&text[end + 1..], bytes::DIGIT);
        if digits > 0 {
            civil.nano = nanos(&text[end + 1..=end + digits]);
            end += 1 + digits;
        }
    }
    let mut zone = WrittenZone::Missing;
    match text.get(end) {
        Some(b'Z' | b'z') => {
            zone = WrittenZone::Offset(0);
            end += 1;
        }
        Some(b'+' | b'-') => {
            if let Some((seconds, len)) = offset(&text[end..]) {
                zone = WrittenZone::Offset(seconds);
                end += len;
            }
        }
        _ => {}
    }
    (Stamp { civil, has_year, zone }, end)
}

/// Whether the text ends, or a word follows that nothing of a stamp begins with.
#[inline]
fn ends(text: &[u8], end: usize) -> bool {
    match (text.get(end), text.get(end + 1)) {
        (None, _) | (Some(b' '), None) => true,
        (Some(b' '), Some(next)) => bytes::class_of(*next) & bytes::STAMP_MORE == 0,
        _ => false,
    }
}

/// What may follow the seconds: fraction, zone, year, colon. `None` if something else follows.
fn tail(text: &[u8], core: Core) -> Option<Scan<'_>> {
    let (stamp, end) = attached(text, core);
    let (Stamp { mut civil, mut has_year, mut zone }, mut end) = (stamp, end);
    if !is_boundary(text, end) {
        return None;
    }
    // Year and zone may come in either order.
    for _ in 0..2 {
        let Some(at) = spaces(text, end) else { break };
        if !has_year
            && text.get(at + 4) == Some(&b' ')
            && let Some(year) = year_at(text, at).filter(|year| (1970..2262).contains(year))
        {
            civil.year = year;
            has_year = true;
            end = at + 4;
            continue;
        }
        if zone == WrittenZone::Missing
            && let Some((written, len)) = separate_zone(&text[at..])
        {
            zone = written;
            end = at + len;
        }
    }
    let colon = if text.get(end) == Some(&b':') {
        end += 1;
        true
    } else {
        let at = spaces(text, end).unwrap_or(end);
        let alone = at > end && text.get(at) == Some(&b':') && matches!(text.get(at + 1), None | Some(b' '));
        if alone {
            end = at + 1;
        }
        alone
    };
    Some(Scan { stamp: Stamp { civil, has_year, zone }, len: end, colon })
}

/// Whether a stamp may end at `end`: the text ends, a space follows, or a colon that does not
/// belong to another number or an address.
fn is_boundary(text: &[u8], end: usize) -> bool {
    match text.get(end) {
        None | Some(b' ') => true,
        Some(b':') => text.get(end + 1).is_none_or(|next| !next.is_ascii_digit() && *next != b':'),
        Some(_) => false,
    }
}

#[inline]
fn month(a: u8, b: u8, c: u8) -> Option<u8> {
    match &[a | 0x20, b | 0x20, c | 0x20] {
        b"jan" => Some(1),
        b"feb" => Some(2),
        b"mar" => Some(3),
        b"apr" => Some(4),
        b"may" => Some(5),
        b"jun" => Some(6),
        b"jul" => Some(7),
        b"aug" => Some(8),
        b"sep" => Some(9),
        b"oct" => Some(10),
        b"nov" => Some(11),
        b"dec" => Some(12),
        _ => None,
    }
}

/// `hh:mm:ss` at the start of `text`.
#[inline(always)]
fn time_of_day(text: &[u8]) -> Option<(u8, u8, u8)> {
    let pairs = digit_pairs(bytes::word(text, 0)?, b"00:00:00")?.to_le_bytes();
    Some((pairs[0], pairs[3], pairs[6]))
}

/// `yyyy-mm-dd` at the start of `text`.
#[inline(always)]
fn iso_date(text: &[u8]) -> Option<(i32, u8, u8)> {
    let pairs = digit_pairs(bytes::word(text, 0)?, b"0000-00-")?.to_le_bytes();
    let day = two_digits(*text.get(8)?, *text.get(9)?)?;
    Some((i32::from(pairs[0]) * 100 + i32::from(pairs[2]), pairs[5], day))
}

/// Four digits at `at`.
fn year_at(text: &[u8], at: usize) -> Option<i32> {
    let b: &[u8; 4] = text.get(at..)?.first_chunk()?;
    Some(i32::from(two_digits(b[0], b[1])?) * 100 + i32::from(two_digits(b[2], b[3])?))
}

/// The position after one or more spaces at `at`.
fn spaces(text: &[u8], at: usize) -> Option<usize> {
    let count = bytes::span(text.get(at..)?, bytes::SPACE);
    (count > 0).then_some(at + count)
}

#[inline]
fn digit(byte: u8) -> Option<u8> {
    byte.is_ascii_digit().then(|| byte - b'0')
}

#[inline]
fn two_digits(tens: u8, ones: u8) -> Option<u8> {
    Some(digit(tens)? * 10 + digit(ones)?)
}

/// Nanoseconds of a fraction given by its digits.
#[inline]
fn nanos(digits: &[u8]) -> u32 {
    if digits.len() > 9 {
        return TOO_PRECISE;
    }
    let value = digits.iter().fold(0, |value, byte| value * 10 + u32::from(byte - b'0'));
    (digits.len()..9).fold(value, |value, _| value * 10)
}

#[cfg(test)]
mod agreement_tests;
#[cfg(test)]
mod tests;
