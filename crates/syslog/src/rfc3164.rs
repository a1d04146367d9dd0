//! RFC 3164, and the many headers that are like it without following it.
//!
//! Each part of the header is optional. A part is taken only if it looks like what it should be, so
//! that words of a message never become a host or a time.

mod lead;

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::bytes::{COLON, HOST, SPACE, TAG, class_of, find, span};
use crate::cef::Cef;
use crate::record::{Format, Record};
use crate::stamp::{self, Stamp};
use crate::time::Receipt;
use lead::{Clock, Lead, lead};

/// Longest name of a tag. RFC 3164 section 5.3 says 32; some daemons have longer names.
const MAX_TAG_NAME: usize = 48;
/// Longest text in the brackets of a tag.
const MAX_TAG_PID: usize = 128;
/// Longest host word: a full domain name.
const MAX_HOST: usize = 255;

/// Reads into `record` what follows PRI, or the whole input if it has none.
pub(crate) fn parse<'a>(record: &mut Record<'a>, text: &'a [u8], has_pri: bool, receipt: &Receipt<'_>) {
    let text = if has_pri { skip_spaces(text) } else { text };
    if let Some(cef) = Cef::parse(text) {
        let format = if has_pri { Format::CefRfc3164 } else { Format::Cef };
        return record.set_cef(format, cef, receipt);
    }
    if let Some((stamp, len)) = stamp::scan_usual(text) {
        set_time(record, stamp, receipt);
        return behind_stamp(record, &text[len..], None, receipt);
    }
    match lead(text) {
        Some(lead) => with_lead(record, &lead, receipt),
        None => without_stamp(record, text, receipt),
    }
}

#[inline(always)]
fn set_time(record: &mut Record<'_>, stamp: Stamp<'_>, receipt: &Receipt<'_>) {
    let resolved = stamp.resolve(receipt);
    record.time_unix_nano = resolved.time_unix_nano;
    record.fully_parsed = resolved.complete;
}

/// Host and content. The origin is the host where no other follows.
fn behind_stamp<'a>(record: &mut Record<'a>, rest: &'a [u8], origin: Option<&'a [u8]>, receipt: &Receipt<'_>) {
    let rest = skip_spaces(rest);
    match host(rest) {
        Some((name, rest)) => {
            record.hostname = name;
            content(record, skip_lone_colon(rest), receipt);
        }
        None => {
            record.hostname = origin.and_then(unless_nil);
            content(record, rest, receipt);
        }
    }
}

fn with_lead<'a>(record: &mut Record<'a>, lead: &Lead<'a>, receipt: &Receipt<'_>) {
    record.prefix = lead.prefix;
    match &lead.clock {
        Clock::Stamp(scan) => set_time(record, scan.stamp, receipt),
        Clock::Uptime => {}
        Clock::Missing => return content(record, lead.rest, receipt),
    }
    behind_stamp(record, lead.rest, lead.origin, receipt);
}

/// A header without time: `tag: text`, `host tag: text`, `host CEF:...`, or no header.
fn without_stamp<'a>(record: &mut Record<'a>, text: &'a [u8], receipt: &Receipt<'_>) {
    if let Some(tag) = tag(text).filter(|tag| tag.colon) {
        return tagged(record, &tag, receipt);
    }
    // A bare number in front of a word is a count, not a host.
    let named = |name: &[u8]| !name.iter().all(u8::is_ascii_digit);
    if let Some((Some(name), rest)) = host(text).filter(|(name, _)| name.is_some_and(named)) {
        let rest = skip_spaces(rest);
        if let Some(cef) = Cef::parse(rest) {
            record.hostname = Some(name);
            return record.set_cef(Format::CefRfc3164, cef, receipt);
        }
        let tag = tag(rest).filter(|tag| tag.colon && matches!(tag.after.first(), None | Some(b' ')));
        if let Some(tag) = tag {
            record.hostname = Some(name);
            return tagged(record, &tag, receipt);
        }
    }
    record.set_message(text);
}

/// What follows the host: CEF, a tag with text, or text.
fn content<'a>(record: &mut Record<'a>, text: &'a [u8], receipt: &Receipt<'_>) {
    let trimmed = skip_spaces(text);
    if let Some(cef) = Cef::parse(trimmed) {
        return record.set_cef(Format::CefRfc3164, cef, receipt);
    }
    match tag(trimmed) {
        Some(tag) => tagged(record, &tag, receipt),
        None => record.set_message(text),
    }
}

fn tagged<'a>(record: &mut Record<'a>, tag: &Tag<'a>, receipt: &Receipt<'_>) {
    record.tag = unless_nil(tag.raw);
    record.app_name = unless_nil(tag.name);
    record.proc_id = tag.pid.and_then(unless_nil);
    let text = tag.after.strip_prefix(b" ").unwrap_or(tag.after);
    match Cef::parse(text) {
        Some(cef) => record.set_cef(Format::CefRfc3164, cef, receipt),
        None => record.set_message(text),
    }
}

/// Nothing for `-`, which relays write for what a message of RFC 5424 did not have.
fn unless_nil(word: &[u8]) -> Option<&[u8]> {
    (word != b"-").then_some(word)
}

/// The host word at the start of `rest` (`-` is no name), and what follows the space after it.
#[inline]
fn host(rest: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (mut end, mut seen) = (0, 0);
    while let Some(byte) = rest.get(end)
        && class_of(*byte) & HOST != 0
        && end <= MAX_HOST
    {
        seen |= class_of(*byte);
        end += 1;
    }
    let word = &rest[..end];
    let after = match rest.get(end) {
        None => &rest[end..],
        Some(b' ') => &rest[end + 1..],
        Some(_) => return None,
    };
    if word.is_empty() || end > MAX_HOST || word[0] == b'%' {
        return None;
    }
    if seen & COLON != 0 {
        return host_with_colon(word).map(|name| (Some(name), after));
    }
    Some((unless_nil(word), after))
}

/// The host in a word that has a colon in it: an address, or a name with a port.
fn host_with_colon(word: &[u8]) -> Option<&[u8]> {
    let colon = find(word, b':')?;
    if word.starts_with(b"CEF:") || word.starts_with(b"LEEF:") || word[colon..].starts_with(b"://") {
        return None;
    }
    match word.strip_suffix(b":") {
        Some(_) if is_ipv6(word) => Some(word),
        Some(address) if is_ipv4(address) || is_ipv6(address) => Some(address),
        Some(_) => None,
        None => Some(word),
    }
}

fn is_ipv6(word: &[u8]) -> bool {
    let address = find(word, b'%').map_or(word, |zone| &word[..zone]);
    // The longest text form has 45 characters; anything else need not be tried.
    address.len() <= 45
        && find(address, b':').is_some()
        && std::str::from_utf8(address).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
}

fn is_ipv4(word: &[u8]) -> bool {
    std::str::from_utf8(word).is_ok_and(|text| text.parse::<Ipv4Addr>().is_ok())
}

/// A tag and what follows it.
struct Tag<'a> {
    /// Name and brackets as sent.
    raw: &'a [u8],
    name: &'a [u8],
    pid: Option<&'a [u8]>,
    /// Whether a colon ended it; brackets can do so too.
    colon: bool,
    after: &'a [u8],
}

/// The tag at the start of `text`.
#[inline]
fn tag(text: &[u8]) -> Option<Tag<'_>> {
    let len = span(&text[..text.len().min(MAX_TAG_NAME + 1)], TAG);
    if len == 0 || len > MAX_TAG_NAME {
        return None;
    }
    let name = &text[..len];
    match text.get(len)? {
        b':' => {
            let after = &text[len + 1..];
            let starts = match after.first() {
                // By far the most tags.
                Some(b' ') | None => !is_other_word(text, name, after),
                Some(b':') => false,
                Some(_) => {
                    !(after.starts_with(b"//")
                        || (len == 1 && after.starts_with(b"\\"))
                        || is_clock_or_date(name, after)
                        || is_other_word(text, name, after))
                }
            };
            starts.then_some(Tag { raw: name, name, pid: None, colon: true, after })
        }
        b'[' => bracketed_tag(text, len),
        _ => None,
    }
}

/// Whether `name` before a colon begins something else than a message: another format, a URL, or an
/// address.
fn is_other_word(text: &[u8], name: &[u8], after: &[u8]) -> bool {
    match name {
        // The program that sends CEF, and not the beginning of the CEF text.
        b"CEF" => Cef::parse(skip_spaces(after)).is_none(),
        b"LEEF" | b"http" | b"https" => true,
        // Else no group of an address.
        _ => name.len() <= 4 && name.iter().all(u8::is_ascii_hexdigit) && is_ipv6(first_word(text)),
    }
}

/// A tag whose name of `name_len` bytes is followed by brackets.
fn bracketed_tag(text: &[u8], name_len: usize) -> Option<Tag<'_>> {
    let inside = &text[name_len + 1..];
    let limit = inside.len().min(MAX_TAG_PID + 1);
    let pid_len = find(&inside[..limit], b']')?;
    let pid = &inside[..pid_len];
    let end = name_len + 1 + pid_len + 1;
    let colon = text.get(end) == Some(&b':');
    // Without a colon a bracket with words in it, or with text behind it, is no process id.
    let is_pid = pid.iter().all(|byte| !byte.is_ascii_control() && !matches!(byte, b'[' | b'"' | b'='))
        && (colon || (matches!(text.get(end), None | Some(b' ')) && !pid.contains(&b' ')));
    is_pid.then(|| Tag {
        raw: &text[..end],
        name: &text[..name_len],
        pid: (!pid.is_empty()).then_some(pid),
        colon,
        after: &text[end + usize::from(colon)..],
    })
}

/// Whether `name:after` is a time of day, a date with one, or a hardware address: digits on both
/// sides of the colon, and a digit in front.
fn is_clock_or_date(name: &[u8], after: &[u8]) -> bool {
    name.first().is_some_and(u8::is_ascii_digit)
        && name.last().is_some_and(u8::is_ascii_digit)
        && after.first().is_some_and(u8::is_ascii_digit)
}

fn first_word(text: &[u8]) -> &[u8] {
    // An address with its zone has at most 61 characters.
    let limit = &text[..text.len().min(64)];
    let word = find(limit, b' ').map_or(limit, |end| &limit[..end]);
    match word.strip_suffix(b":") {
        Some(address) if !address.ends_with(b":") => address,
        _ => word,
    }
}

/// Skips the ` : ` that firewalls put between host and message name.
fn skip_lone_colon(rest: &[u8]) -> &[u8] {
    let trimmed = skip_spaces(rest);
    trimmed.strip_prefix(b": ").map_or(rest, skip_spaces)
}

fn skip_spaces(text: &[u8]) -> &[u8] {
    &text[after_spaces(text, 0)..]
}

fn after_spaces(text: &[u8], at: usize) -> usize {
    at + span(&text[at..], SPACE)
}

#[cfg(test)]
mod tests;
