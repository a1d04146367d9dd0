//! Host and program in the header of a message.
//!
//! This is not a parser: where a header is very unusual it gives less than the parser of `catchment-syslog` would. What it
//! gives depends on the bytes alone.

use std::net::IpAddr;

use memchr::memmem;

use super::stamp::{address_with_colon, behind_stamp, cisco};
use crate::facts::Names;

/// Host and program are looked for in so many bytes at the start of a message. The longest header of RFC 5424 is shorter.
pub const HEADER_LOOK: usize = 1024;
/// Longest host: a full domain name.
pub(super) const MAX_HOST: usize = 255;
/// Longest name of an RFC 3164 tag.
const MAX_TAG: usize = 48;
/// Longest text in the brackets of a tag.
const MAX_PID: usize = 128;
/// Longest text form of an IP address.
const MAX_IP: usize = 45;
pub(super) const CEF: &[u8] = b"CEF:";
/// So far a space is looked for without vectors.
const NEAR: usize = 32;

/// Byte of a host word.
pub(super) const HOST: u8 = 1;
/// Byte of the name in a tag.
const TAG: u8 = 2;

static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0u8;
    while byte.is_ascii() {
        let alphanumeric = byte.is_ascii_alphanumeric();
        if alphanumeric || matches!(byte, b'.' | b'_' | b':' | b'%' | b'/' | b'@' | b'+' | b'-') {
            table[byte as usize] |= HOST;
        }
        if alphanumeric || matches!(byte, b'-' | b'_' | b'.' | b'/' | b'@' | b'#' | b'+' | b'~' | b'\\') {
            table[byte as usize] |= TAG;
        }
        byte += 1;
    }
    table
}

/// How many of the first `most` bytes are of a class.
#[inline]
pub(super) fn span(text: &[u8], class: u8, most: usize) -> usize {
    let look = &text[..text.len().min(most)];
    look.iter().position(|byte| CLASSES[usize::from(*byte)] & class == 0).unwrap_or(look.len())
}

/// PRI: its value and what follows.
#[inline]
pub(super) fn pri(message: &[u8]) -> Option<(u8, &[u8])> {
    let digits = message.strip_prefix(b"<")?;
    let value = |digit: &u8| digit.is_ascii_digit().then(|| u16::from(digit - b'0'));
    let (value, rest) = match digits {
        [a, b'>', rest @ ..] => (value(a)?, rest),
        [a @ b'1'..=b'9', b, b'>', rest @ ..] => (value(a)? * 10 + value(b)?, rest),
        [a @ b'1'..=b'9', b, c, b'>', rest @ ..] => (value(a)? * 100 + value(b)? * 10 + value(c)?, rest),
        _ => return None,
    };
    u8::try_from(value).ok().filter(|value| *value <= 191).map(|value| (value, rest))
}

/// Host and program.
pub(super) fn names(message: &[u8]) -> Names<'_> {
    let look = &message[..message.len().min(HEADER_LOOK)];
    match pri(look) {
        Some((_, rest)) => rfc5424(rest).unwrap_or_else(|| rfc3164(skip_spaces(rest))),
        // Behind a broken PRI nothing can be trusted.
        None if look.first() == Some(&b'<') => Names::default(),
        None => rfc3164(look),
    }
}

/// VERSION, TIMESTAMP, HOSTNAME and APP-NAME; `None` if it is not this format.
fn rfc5424(text: &[u8]) -> Option<Names<'_>> {
    let rest = match text {
        [b'1'..=b'9', b' ', rest @ ..] => rest,
        [b'1'..=b'9', a, b' ', rest @ ..] if a.is_ascii_digit() => rest,
        [b'1'..=b'9', a, b, b' ', rest @ ..] if a.is_ascii_digit() && b.is_ascii_digit() => rest,
        _ => return None,
    };
    if !(rest.starts_with(b"- ") || begins_with_date(rest)) {
        return None;
    }
    let (_, rest) = word(rest)?;
    let Some((host, rest)) = word(rest) else { return Some(Names { host: field(rest), app: None }) };
    let app = if is_cef(rest) { None } else { field(word(rest).map_or(rest, |(app, _)| app)) };
    Some(Names { host: field(host), app: app.or_else(|| cef_within(rest)) })
}

/// `yyyy-mm-dd`, as RFC 3339 stamps begin.
#[inline]
pub(super) fn begins_with_date(text: &[u8]) -> bool {
    match text {
        [y, u, v, w, b'-', m, n, b'-', d, e, _, ..] => {
            [y, u, v, w, m, n, d, e].iter().all(|byte| byte.is_ascii_digit())
        }
        _ => false,
    }
}

/// A stamp, a host, and a tag or CEF, of which any may be missing.
fn rfc3164(text: &[u8]) -> Names<'_> {
    if is_cef(text) {
        return Names { host: None, app: cef(text) };
    }
    if let Some(behind) = behind_stamp(text) {
        return behind_header(behind.rest, None);
    }
    if let Some((origin, rest)) = cisco(text) {
        return behind_header(rest, origin);
    }
    if let Some((app, true)) = tag(text) {
        return Names { host: None, app: field(app) };
    }
    // Without a stamp a word is a host only if something follows that a host is in front of.
    let Some((host, rest)) = host(text) else { return Names::default() };
    let rest = skip_spaces(rest);
    let app = if is_cef(rest) { cef(rest) } else { tag(rest).and_then(|(app, colon)| colon.then_some(app)) };
    Names { host: app.and(field(host)), app: app.and_then(field) }
}

/// Host and tag, or CEF. The origin is the host where no other follows.
fn behind_header<'a>(text: &'a [u8], origin: Option<&'a [u8]>) -> Names<'a> {
    let (host, rest) = host(text).map_or((origin, text), |(host, rest)| (Some(host), rest));
    let rest = skip_spaces(rest);
    let app = if is_cef(rest) { cef(rest) } else { tag(rest).and_then(|(app, _)| field(app)) };
    Names { host: host.and_then(field), app: app.or_else(|| cef_within(rest)) }
}

/// A host word and what follows the space after it.
fn host(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = span(text, HOST, MAX_HOST + 1);
    let (word, rest) = text.split_at(len);
    let rest = match rest {
        [] => rest,
        [b' ', rest @ ..] => rest,
        _ => return None,
    };
    let host = match word {
        [b'%', ..] | [] => return None,
        [.., b':'] => address_with_colon(word)?,
        _ => word,
    };
    let is_url = (3..6).any(|at| word.get(at..at + 3) == Some(b"://"));
    let other = is_url || word.starts_with(CEF) || word.starts_with(b"LEEF:");
    (len <= MAX_HOST && !other).then_some((host, rest))
}

/// The name of a tag, `name:` or `name[pid]`, and whether a colon ended it.
fn tag(text: &[u8]) -> Option<(&[u8], bool)> {
    let len = span(text, TAG, MAX_TAG + 1);
    let (name, rest) = text.split_at(len);
    if len == 0 || len > MAX_TAG {
        return None;
    }
    match rest {
        [b':', after @ ..] => {
            let other = match after {
                [b':', ..] => true,
                // A URL, a path of Windows, a time.
                [b'/', b'/', ..] => true,
                [b'\\', ..] => len == 1,
                [after, ..] => after.is_ascii_digit() && name[0].is_ascii_digit() && name[len - 1].is_ascii_digit(),
                [] => false,
            };
            (!other && !is_other_word(name, text)).then_some((name, true))
        }
        [b'[', inside @ ..] => {
            // By far the most tags.
            let digits = inside.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if inside[digits..].starts_with(b"]:") && digits <= MAX_PID {
                return Some((name, true));
            }
            let pid = memchr::memchr(b']', &inside[..inside.len().min(MAX_PID + 1)])?;
            let (pid, after) = inside.split_at(pid);
            let colon = after.get(1) == Some(&b':');
            let plain = pid.iter().all(|byte| !byte.is_ascii_control() && !matches!(byte, b'[' | b'"' | b'='));
            let ended = colon || (matches!(after.get(1), None | Some(b' ')) && !pid.contains(&b' '));
            (plain && ended).then_some((name, colon))
        }
        _ => None,
    }
}

/// Whether a name before a colon begins something else than a message: another format, or an address.
fn is_other_word(name: &[u8], text: &[u8]) -> bool {
    if name.len() > 5 {
        return false;
    }
    let address = || {
        let word = &text[..span(text, HOST, MAX_IP + 1)];
        is_ip(word) || word.strip_suffix(b":").is_some_and(is_ip)
    };
    matches!(name, b"CEF" | b"LEEF" | b"http" | b"https")
        || (name.len() <= 4 && name.iter().all(u8::is_ascii_hexdigit) && address())
}

/// Whether a word is an IP address; of IPv6 perhaps with a zone.
pub(super) fn is_ip(word: &[u8]) -> bool {
    let address = memchr::memchr(b'%', word).map_or(word, |zone| &word[..zone]);
    address.len() <= MAX_IP && std::str::from_utf8(address).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}

/// `CEF:` with a version.
#[inline]
fn is_cef(text: &[u8]) -> bool {
    let Some(version) = text.strip_prefix(CEF) else { return false };
    let version = version.strip_prefix(b" ").unwrap_or(version);
    matches!(version, [b'0' | b'1', b'|' | b'.', ..])
}

/// Vendor and product of CEF, as sent: `vendor|product`.
fn cef(text: &[u8]) -> Option<&[u8]> {
    let start = memchr::memchr(b'|', text)? + 1;
    let vendor = bar(text, start)?;
    let product = bar(text, vendor + 1)?;
    Some(&text[start..product])
}

/// The next bar from `at` on that is not escaped.
fn bar(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'|', b'\\', &text[at..])?;
        if text[at] == b'|' {
            return Some(at);
        }
        at = (at + 2).min(text.len());
    }
}

/// CEF somewhere behind a header that names no program.
fn cef_within(text: &[u8]) -> Option<&[u8]> {
    let at = memmem::find(text, CEF)?;
    let begins = at == 0 || text[at - 1] == b' ';
    (begins && is_cef(&text[at..])).then(|| cef(&text[at..])).flatten()
}

/// The text up to the next space, and what follows that.
#[inline]
pub(super) fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = space(text)?;
    Some((&text[..end], &text[end + 1..]))
}

/// Position of the first space. Words are short: eight bytes at a time are faster than the start of a vectorised search.
#[inline]
fn space(text: &[u8]) -> Option<usize> {
    const LOW: u64 = 0x0101_0101_0101_0101;
    let mut at = 0;
    while at < NEAR
        && let Some(eight) = text.get(at..).and_then(<[u8]>::first_chunk)
    {
        let different = u64::from_le_bytes(*eight) ^ (LOW * b' ' as u64);
        // Bits above the lowest may be wrong here, which does not matter to the first hit.
        let hits = different.wrapping_sub(LOW) & !different & (LOW << 7);
        if hits != 0 {
            return Some(at + hits.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    memchr::memchr(b' ', &text[at..]).map(|distance| at + distance)
}

/// Nothing for an empty word, and for the `-` that stands for one.
#[inline]
fn field(word: &[u8]) -> Option<&[u8]> {
    (!word.is_empty() && word != b"-").then_some(word)
}

#[inline]
pub(super) fn skip_spaces(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| **byte == b' ').count();
    &text[spaces..]
}
