//! What stands before the host: the stamp, and what Cisco devices put around it.

use super::{MAX_HOST, after_spaces};
use crate::bytes::{DIGIT, HOST, find, span};
use crate::stamp::{self, Scan};

/// Longest uptime with its colon.
const MAX_UPTIME: usize = 24;

/// What stands in the place of the time.
pub(super) enum Clock<'a> {
    Stamp(Scan<'a>),
    /// Time since the device started: no instant.
    Uptime,
    Missing,
}

/// The part of the header up to the stamp.
pub(super) struct Lead<'a> {
    /// Text before the stamp, if it says anything.
    pub(super) prefix: Option<&'a [u8]>,
    /// The name before the stamp.
    pub(super) origin: Option<&'a [u8]>,
    pub(super) clock: Clock<'a>,
    pub(super) rest: &'a [u8],
}

/// The stamp at the start, or behind what Cisco devices put before it.
#[inline]
pub(super) fn lead(text: &[u8]) -> Option<Lead<'_>> {
    match stamp::scan(text) {
        Some(scan) => {
            let rest = &text[scan.len..];
            Some(Lead { prefix: None, origin: None, clock: Clock::Stamp(scan), rest })
        }
        None => cisco_lead(text),
    }
}

/// `counter: counter: origin: : *stamp`, each part optional; after a counter also an uptime, or
/// straight the `%` of a message name.
fn cisco_lead(text: &[u8]) -> Option<Lead<'_>> {
    let mut at = 0;
    let mut counters = 0;
    while counters < 2 {
        let Some(len) = counter_len(&text[at..]) else { break };
        at = after_spaces(text, at + len);
        counters += 1;
    }
    let numbered = counters > 0;
    let (at, colon) = after_lone_colon(text, at);
    if let Some((marked, scan, end)) = marked_stamp(text, at) {
        let prefix = (numbered || marked).then(|| text[..end - scan.len].trim_ascii_end());
        return Some(Lead { prefix, origin: None, clock: Clock::Stamp(scan), rest: &text[end..] });
    }
    if let Some((origin, after)) = origin(text, at) {
        let (after, _) = after_lone_colon(text, after_spaces(text, after));
        if let Some((marked, scan, end)) = marked_stamp(text, after) {
            // Without any other sign of such a header, `word: stamp` is a tag and its message.
            if numbered || colon || marked || scan.colon {
                let prefix = (numbered || marked).then(|| text[..end - scan.len].trim_ascii_end());
                let rest = &text[end..];
                return Some(Lead { prefix, origin: Some(origin), clock: Clock::Stamp(scan), rest });
            }
        }
    }
    if !numbered {
        return None;
    }
    if let Some(len) = uptime_len(&text[at..]) {
        let (prefix, rest) = text.split_at(at + len);
        return Some(Lead { prefix: Some(prefix), origin: None, clock: Clock::Uptime, rest });
    }
    if text.get(at) == Some(&b'%') {
        let (prefix, rest) = text.split_at(at);
        let prefix = Some(prefix.trim_ascii_end());
        return Some(Lead { prefix, origin: None, clock: Clock::Missing, rest });
    }
    None
}

/// Length of a counter with its colon. The digits may also begin an uptime or an address, so a
/// space, a mark, a message name or a stamp must follow.
fn counter_len(text: &[u8]) -> Option<usize> {
    let digits = span(&text[..text.len().min(20)], DIGIT);
    let after = text.get(digits..)?.strip_prefix(b":")?;
    let parted = matches!(after.first(), Some(b' ' | b'*' | b'.' | b'%'));
    (digits > 0 && (parted || stamp::scan(after).is_some())).then_some(digits + 1)
}

/// The position after a colon that stands alone or touches a stamp, and whether there was one.
fn after_lone_colon(text: &[u8], at: usize) -> (usize, bool) {
    match text.get(at..at + 2) {
        Some(b": ") => (after_spaces(text, at + 1), true),
        Some([b':', _]) if marked_stamp(text, at + 1).is_some() => (at + 1, true),
        _ => (at, false),
    }
}

/// A stamp at `at` with an optional mark: `*` for a clock that was never set, `.` for one that is out
/// of step. Gives whether it was marked, and the position after the stamp.
fn marked_stamp(text: &[u8], at: usize) -> Option<(bool, Scan<'_>, usize)> {
    let marked = matches!(text.get(at), Some(b'*' | b'.'));
    let start = at + usize::from(marked);
    let scan = stamp::scan(&text[start..])?;
    Some((marked, scan, start + scan.len))
}

/// A name with a colon at `at`, and the position after the colon. An address may have colons in it.
fn origin(text: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = &text[at..];
    let word_len = span(&rest[..rest.len().min(MAX_HOST)], HOST);
    let word = &rest[..word_len];
    let colon = match rest.get(word_len) {
        Some(b' ') if word.ends_with(b":") => word_len - 1,
        _ => find(word, b':')?,
    };
    (colon > 0).then(|| (&rest[..colon], at + colon + 1))
}

/// Length of an uptime with its colon: `13w1d:`, `1y02w:`, or `00:01:46:`.
fn uptime_len(text: &[u8]) -> Option<usize> {
    let limit = &text[..text.len().min(MAX_UPTIME)];
    let word_len = find(limit, b' ').unwrap_or(limit.len());
    let word = text[..word_len].strip_suffix(b":")?;
    let is_clock = matches!(word, [_, _, b':', _, _, b':', _, _])
        && word.iter().all(|byte| byte.is_ascii_digit() || *byte == b':');
    let is_units = word.first().is_some_and(u8::is_ascii_digit)
        && word.last().is_some_and(u8::is_ascii_lowercase)
        && word.iter().all(|byte| byte.is_ascii_digit() || b"ywdhms".contains(byte))
        && word.windows(2).all(|pair| pair[0].is_ascii_digit() || pair[1].is_ascii_digit());
    (is_clock || is_units).then_some(word_len)
}
