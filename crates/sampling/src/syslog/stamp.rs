//! What stands before the host, skipped without being read: a stamp, and what Cisco devices put around it.

use super::header::{CEF, HOST, MAX_HOST, begins_with_date, is_ip, skip_spaces, span, word};

/// Zones that follow a time, each with a space before it.
const ZONES: &[u8] = b" UTC GMT Z WET WEST CET CEST MET MEST EET EEST MSK MSD BST IST EST EDT CST CDT MST MDT PST PDT \
    AKST AKDT HST HDT AST ADT NST NDT JST KST SGT HKT PHT ICT WIB PKT TRT AEST AEDT ACST ACDT AWST NZST NZDT SAST CAT \
    EAT WAT BRT BRST ART CLT CLST ";
/// Longest word of them.
const MAX_ZONE: usize = 4;
/// Length of `Mmm dd hh:mm:ss`.
const USUAL: usize = 15;
/// Longest counter.
const MAX_COUNTER: usize = 20;

/// What follows a stamp and the spaces behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Behind<'a> {
    pub(super) rest: &'a [u8],
    /// A colon ended the stamp.
    colon: bool,
}

/// Skips a stamp: `Mmm dd hh:mm:ss`, with a year at any place, a fraction, a zone and a colon; or RFC 3339, also with a
/// space between date and time.
#[inline]
pub(super) fn behind_stamp(text: &[u8]) -> Option<Behind<'_>> {
    if let Some(stamp) = text.first_chunk::<{ USUAL + 1 }>()
        && [stamp[3], stamp[6], stamp[15]] == [b' '; 3]
        && [stamp[9], stamp[12]] == [b':'; 2]
        && stamp[0].is_ascii_alphabetic()
        && stamp[5].is_ascii_digit()
        && stamp[14].is_ascii_digit()
    {
        return Some(Behind { rest: behind_zone(skip_spaces(&text[USUAL + 1..])).0, colon: false });
    }
    behind_other_stamp(text)
}

fn behind_other_stamp(text: &[u8]) -> Option<Behind<'_>> {
    if begins_with_date(text) {
        let (date, rest) = word(text)?;
        // The time may stand apart from the date.
        let rest = if date.len() > 10 { rest } else { behind_time(rest)? };
        return Some(ended(rest));
    }
    let date = behind_year(text);
    let [a, b, c, b' ', day @ ..] = date else { return None };
    let day = day.strip_prefix(b" ").unwrap_or(day);
    let rest = match day {
        [d, b' ', rest @ ..] if d.is_ascii_digit() => rest,
        [d, e, b' ', rest @ ..] if d.is_ascii_digit() && e.is_ascii_digit() => rest,
        _ => return None,
    };
    let is_month = [a, b, c].iter().all(|letter| letter.is_ascii_alphabetic());
    is_month.then(|| behind_time(behind_year(rest)).map(ended)).flatten()
}

/// `hh:mm:ss` and a fraction.
fn behind_time(text: &[u8]) -> Option<&[u8]> {
    let [h, i, b':', m, n, b':', s, t, rest @ ..] = text else { return None };
    if ![h, i, m, n, s, t].iter().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    match rest {
        [b'.' | b',', fraction @ ..] => {
            let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            Some(&fraction[digits..])
        }
        _ => Some(rest),
    }
}

/// The end of a stamp: year, zone, colon.
fn ended(rest: &[u8]) -> Behind<'_> {
    let (rest, colon) = match rest.strip_prefix(b":") {
        Some(rest) => (skip_spaces(rest), true),
        None => (skip_spaces(rest), false),
    };
    let (rest, zone_colon) = if colon { (rest, false) } else { behind_zone(rest) };
    Behind { rest, colon: colon || zone_colon }
}

/// What follows a year, a zone word and a colon, each if it is there, and whether there was a colon.
#[inline]
fn behind_zone(text: &[u8]) -> (&[u8], bool) {
    let text = match text.first() {
        Some(b'1' | b'2') => behind_year(text),
        _ => text,
    };
    if !text.first().is_some_and(u8::is_ascii_uppercase) {
        return (text, false);
    }
    let len = text.iter().take(MAX_ZONE).take_while(|byte| byte.is_ascii_uppercase()).count();
    let (zone, rest) = text.split_at(len);
    let colon = rest.first() == Some(&b':');
    let rest = &rest[usize::from(colon)..];
    let parted = matches!(rest.first(), None | Some(b' '));
    if parted && ZONES.split(|byte| *byte == b' ').any(|known| known == zone) {
        return (skip_spaces(rest), colon);
    }
    (text, false)
}

/// What follows four digits and a space, if they are there.
fn behind_year(text: &[u8]) -> &[u8] {
    match text {
        [b'1' | b'2', a, b, c, b' ', rest @ ..] if [a, b, c].iter().all(|byte| byte.is_ascii_digit()) => rest,
        _ => text,
    }
}

/// A header of Cisco devices: `counter: counter: origin: : *stamp`, each part optional. Gives the origin, and what follows
/// the stamp; behind a counter without a stamp there is nothing to be found.
pub(super) fn cisco(text: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let mut rest = text;
    let mut numbered = false;
    for _ in 0..2 {
        let Some(behind) = behind_counter(rest) else { break };
        (rest, numbered) = (skip_spaces(behind), true);
    }
    let (at_stamp, colon) = behind_colon(rest);
    if let Some((behind, _)) = marked_stamp(at_stamp) {
        return Some((None, behind.rest));
    }
    if let Some((origin, behind_origin)) = origin(at_stamp) {
        let (at_stamp, _) = behind_colon(skip_spaces(behind_origin));
        // Without any other sign of such a header, `word: stamp` is a tag and its message.
        if let Some((behind, marked)) = marked_stamp(at_stamp)
            && (numbered || colon || marked || behind.colon)
        {
            return Some((Some(origin), behind.rest));
        }
    }
    numbered.then_some((None, b""))
}

/// What follows a number and a colon that are not the beginning of a time.
fn behind_counter(text: &[u8]) -> Option<&[u8]> {
    let digits = text.iter().take(MAX_COUNTER).take_while(|byte| byte.is_ascii_digit()).count();
    let rest = text.get(digits..)?.strip_prefix(b":")?;
    let parted = matches!(rest.first(), Some(b' ' | b'*' | b'.' | b'%'));
    (digits > 0 && (parted || behind_stamp(rest).is_some())).then_some(rest)
}

/// What follows a colon that stands alone or touches a stamp, and whether there was one.
fn behind_colon(text: &[u8]) -> (&[u8], bool) {
    match text.strip_prefix(b":") {
        Some(rest) if rest.first() == Some(&b' ') || marked_stamp(rest).is_some() => (skip_spaces(rest), true),
        _ => (text, false),
    }
}

/// A stamp, and whether it has a mark: `*` for a clock that was never set, `.` for one that is out of step.
fn marked_stamp(text: &[u8]) -> Option<(Behind<'_>, bool)> {
    let (stamp, marked) = match text {
        [b'*' | b'.', rest @ ..] => (rest, true),
        _ => (text, false),
    };
    behind_stamp(stamp).map(|behind| (behind, marked))
}

/// A name with a colon, and what follows it. An address may have colons in it.
fn origin(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (word, rest) = text.split_at(span(text, HOST, MAX_HOST));
    let colon = match word.strip_suffix(b":") {
        Some(name) if rest.first() == Some(&b' ') => name.len(),
        _ => memchr::memchr(b':', word)?,
    };
    let (name, rest) = text.split_at(colon);
    (!name.is_empty() && !word.starts_with(CEF)).then(|| (name, &rest[1..]))
}

/// A host word that has a colon at its end: an address. Any other is a tag.
pub(super) fn address_with_colon(word: &[u8]) -> Option<&[u8]> {
    if is_ip(word) {
        return Some(word);
    }
    word.strip_suffix(b":").filter(|address| is_ip(address))
}
