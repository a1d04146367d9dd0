//! RFC 3164, and the many headers that are like it without following it.
//!
//! Each part of the header is optional. A part is taken only if it looks like what it should be, so
//! that words of a message never become a host or a time.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::cef::Cef;
use crate::record::{Format, Record};
use crate::stamp::{self, Scan};
use crate::time::Receipt;

/// Longest name of a tag. RFC 3164 section 5.3 says 32; some daemons have longer names.
const MAX_TAG_NAME: usize = 48;
/// Longest text in the brackets of a tag.
const MAX_TAG_PID: usize = 128;
/// Longest host word: a full domain name.
const MAX_HOST: usize = 255;
/// Words before a colon that are no tag.
const NOT_A_TAG: [&[u8]; 4] = [b"CEF", b"LEEF", b"http", b"https"];

/// Reads what follows PRI, or the whole input if it has none.
pub(crate) fn parse<'a>(text: &'a [u8], has_pri: bool, receipt: &Receipt<'_>) -> Record<'a> {
    let text = if has_pri { skip_spaces(text) } else { text };
    let mut record = Record::empty(Format::Rfc3164);
    if let Some(cef) = Cef::parse(text) {
        let format = if has_pri { Format::CefRfc3164 } else { Format::Cef };
        record.set_cef(format, cef, receipt);
        return record;
    }
    match lead(text) {
        Some(lead) => with_lead(&mut record, &lead, receipt),
        None => without_stamp(&mut record, text, receipt),
    }
    record
}

fn with_lead<'a>(record: &mut Record<'a>, lead: &Lead<'a>, receipt: &Receipt<'_>) {
    record.prefix = lead.prefix;
    match &lead.clock {
        Clock::Stamp(scan) => {
            let resolved = scan.stamp.resolve(receipt);
            record.time_unix_nano = resolved.time_unix_nano;
            record.fully_parsed = resolved.complete;
        }
        Clock::Uptime => {}
        Clock::Missing => return content(record, lead.rest, receipt),
    }
    let rest = skip_spaces(lead.rest);
    match host(rest) {
        Some((name, rest)) => {
            record.hostname = name;
            content(record, skip_lone_colon(rest), receipt);
        }
        None => {
            record.hostname = lead.origin.and_then(unless_nil);
            content(record, rest, receipt);
        }
    }
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

/// What stands in the place of the time.
enum Clock<'a> {
    Stamp(Scan<'a>),
    /// Time since the device started: no instant.
    Uptime,
    Missing,
}

/// The part of the header up to the stamp.
struct Lead<'a> {
    /// Text before the stamp, if it says anything.
    prefix: Option<&'a [u8]>,
    /// The name before the stamp.
    origin: Option<&'a [u8]>,
    clock: Clock<'a>,
    rest: &'a [u8],
}

/// The stamp at the start, or behind what Cisco devices put before it.
fn lead(text: &[u8]) -> Option<Lead<'_>> {
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
    let digits = text.iter().take(20).take_while(|byte| byte.is_ascii_digit()).count();
    let after = text.get(digits..)?.strip_prefix(b":")?;
    let parted = matches!(after.first(), Some(b' ' | b'*' | b'.' | b'%'));
    (digits > 0 && (parted || stamp::scan(after).is_some())).then_some(digits + 1)
}

/// The position after a colon that stands alone, and whether there was one.
fn after_lone_colon(text: &[u8], at: usize) -> (usize, bool) {
    if text[at..].starts_with(b": ") { (after_spaces(text, at + 1), true) } else { (at, false) }
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
    let word_len = rest.iter().take(MAX_HOST).take_while(|byte| is_host_byte(**byte)).count();
    let word = &rest[..word_len];
    let colon = match rest.get(word_len) {
        Some(b' ') if word.ends_with(b":") => word_len - 1,
        _ => memchr::memchr(b':', word)?,
    };
    (colon > 0).then(|| (&rest[..colon], at + colon + 1))
}

/// Length of an uptime with its colon: `13w1d:`, `1y02w:`, or `00:01:46:`.
fn uptime_len(text: &[u8]) -> Option<usize> {
    let word_len = text.iter().position(|byte| *byte == b' ').unwrap_or(text.len()).min(24);
    let word = text[..word_len].strip_suffix(b":")?;
    let is_clock = matches!(word, [_, _, b':', _, _, b':', _, _])
        && word.iter().all(|byte| byte.is_ascii_digit() || *byte == b':');
    let is_units = word.first().is_some_and(u8::is_ascii_digit)
        && word.last().is_some_and(u8::is_ascii_lowercase)
        && word.iter().all(|byte| byte.is_ascii_digit() || b"ywdhms".contains(byte))
        && word.windows(2).all(|pair| pair[0].is_ascii_digit() || pair[1].is_ascii_digit());
    (is_clock || is_units).then_some(word_len)
}

/// The host word at the start of `rest` (`-` is no name), and what follows the space after it.
fn host(rest: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let end = rest.iter().take(MAX_HOST + 1).take_while(|byte| is_host_byte(**byte)).count();
    let word = &rest[..end];
    let after = match rest.get(end) {
        None => &rest[end..],
        Some(b' ') => &rest[end + 1..],
        Some(_) => return None,
    };
    if word.is_empty()
        || end > MAX_HOST
        || word[0] == b'%'
        || word.starts_with(b"CEF:")
        || word.starts_with(b"LEEF:")
        || memchr::memchr(b':', word).is_some_and(|at| word[at..].starts_with(b"://"))
    {
        return None;
    }
    if word == b"-" {
        return Some((None, after));
    }
    match word.strip_suffix(b":") {
        Some(_) if is_ipv6(word) => Some((Some(word), after)),
        Some(address) if is_ipv4(address) || is_ipv6(address) => Some((Some(address), after)),
        Some(_) => None,
        None => Some((Some(word), after)),
    }
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._:%/@+-".contains(&byte)
}

fn is_ipv6(word: &[u8]) -> bool {
    let address = memchr::memchr(b'%', word).map_or(word, |zone| &word[..zone]);
    // The longest text form has 45 characters; anything else need not be tried.
    address.len() <= 45
        && memchr::memchr(b':', address).is_some()
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
fn tag(text: &[u8]) -> Option<Tag<'_>> {
    let len = text.iter().take(MAX_TAG_NAME + 1).take_while(|byte| is_tag_byte(**byte)).count();
    if len == 0 || len > MAX_TAG_NAME {
        return None;
    }
    let name = &text[..len];
    match text.get(len)? {
        b':' => {
            let after = &text[len + 1..];
            let is_other = (NOT_A_TAG.contains(&name) && !is_tag_of_cef(name, after))
                || after.starts_with(b":")
                || after.starts_with(b"//")
                || (len == 1 && after.starts_with(b"\\"))
                || is_clock_or_date(name, after)
                || is_ipv6(first_word(text));
            (!is_other).then_some(Tag { raw: name, name, pid: None, colon: true, after })
        }
        b'[' => bracketed_tag(text, len),
        _ => None,
    }
}

/// Whether the name is the program that sends CEF, and not the beginning of the CEF text.
fn is_tag_of_cef(name: &[u8], after: &[u8]) -> bool {
    name == b"CEF" && Cef::parse(skip_spaces(after)).is_some()
}

/// A tag whose name of `name_len` bytes is followed by brackets.
fn bracketed_tag(text: &[u8], name_len: usize) -> Option<Tag<'_>> {
    let inside = &text[name_len + 1..];
    let limit = inside.len().min(MAX_TAG_PID + 1);
    let pid_len = memchr::memchr(b']', &inside[..limit])?;
    let pid = &inside[..pid_len];
    let end = name_len + 1 + pid_len + 1;
    let colon = text.get(end) == Some(&b':');
    // Without a colon a bracket with words in it, or with text behind it, is no process id.
    let is_pid = pid.iter().all(|byte| !byte.is_ascii_control() && !b"[\"=".contains(byte))
        && (colon || (matches!(text.get(end), None | Some(b' ')) && !pid.contains(&b' ')));
    is_pid.then(|| Tag {
        raw: &text[..end],
        name: &text[..name_len],
        pid: (!pid.is_empty()).then_some(pid),
        colon,
        after: &text[end + usize::from(colon)..],
    })
}

fn is_tag_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_./@#+~\\".contains(&byte)
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
    let word = memchr::memchr(b' ', limit).map_or(limit, |end| &limit[..end]);
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
    at + text[at..].iter().take_while(|byte| **byte == b' ').count()
}

#[cfg(test)]
mod tests;
