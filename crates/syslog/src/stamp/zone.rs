//! The zone in a stamp: an offset from UTC, or a word.

use super::{is_boundary, two_digits};

/// Zone words other than UTC and GMT that follow a time. They are read in the configured zone, for
/// many of them mean different offsets in different countries.
const ZONE_WORDS: [&[u8]; 53] = [
    b"WET", b"WEST", b"CET", b"CEST", b"MET", b"MEST", b"EET", b"EEST", b"MSK", b"MSD", b"BST", b"IST", b"EST", b"EDT",
    b"CST", b"CDT", b"MST", b"MDT", b"PST", b"PDT", b"AKST", b"AKDT", b"HST", b"HDT", b"AST", b"ADT", b"NST", b"NDT",
    b"JST", b"KST", b"SGT", b"HKT", b"PHT", b"ICT", b"WIB", b"PKT", b"TRT", b"AEST", b"AEDT", b"ACST", b"ACDT",
    b"AWST", b"NZST", b"NZDT", b"SAST", b"CAT", b"EAT", b"WAT", b"BRT", b"BRST", b"ART", b"CLT", b"CLST",
];

/// The zone words as numbers, so that all are compared in a few steps.
static ZONE_NUMBERS: [u32; ZONE_WORDS.len()] = {
    let mut numbers = [0; ZONE_WORDS.len()];
    let mut at = 0;
    while at < numbers.len() {
        numbers[at] = zone_number(ZONE_WORDS[at]);
        at += 1;
    }
    numbers
};

/// Number of a word of at most four letters.
const fn zone_number(word: &[u8]) -> u32 {
    let mut number = 0;
    let mut at = 0;
    while at < word.len() {
        number = number << 8 | word[at] as u32;
        at += 1;
    }
    number
}

/// The zone as the stamp has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WrittenZone<'a> {
    Missing,
    /// Seconds east of UTC.
    Offset(i32),
    /// A zone word other than UTC and GMT.
    Word(&'a [u8]),
}

/// A zone parted from the time by spaces.
pub(super) fn separate_zone(text: &[u8]) -> Option<(WrittenZone<'_>, usize)> {
    let found = match text.first()? {
        b'+' | b'-' => offset(text).map(|(seconds, len)| (WrittenZone::Offset(seconds), len))?,
        b'A'..=b'Z' => {
            let len = text.iter().take(5).take_while(|byte| byte.is_ascii_uppercase()).count();
            let word = &text[..len];
            if word == b"Z" {
                (WrittenZone::Offset(0), 1)
            } else if let Some((seconds, len)) = offset_with_name(text) {
                (WrittenZone::Offset(seconds), len)
            } else if len < 5 && ZONE_NUMBERS.contains(&zone_number(word)) {
                (WrittenZone::Word(word), len)
            } else {
                return None;
            }
        }
        _ => return None,
    };
    is_boundary(text, found.1).then_some(found)
}

/// Offset from UTC in seconds at the start of `text`, and its length: `+hh:mm`, `+hhmm` or `+hh`.
pub(crate) fn offset(text: &[u8]) -> Option<(i32, usize)> {
    let sign = match text.first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = two_digits(*text.get(1)?, *text.get(2)?)?;
    let two_at = |at: usize| two_digits(*text.get(at)?, *text.get(at + 1)?);
    let (minutes, len) = if text.get(3) == Some(&b':') {
        two_at(4).map_or((0, 3), |minutes| (minutes, 6))
    } else {
        two_at(3).map_or((0, 3), |minutes| (minutes, 5))
    };
    let in_range = hours < 24 && minutes < 60 && !text.get(len).is_some_and(u8::is_ascii_digit);
    in_range.then_some((sign * (i32::from(hours) * 3600 + i32::from(minutes) * 60), len))
}

/// As [`offset`], or `UTC` or `GMT` with or without an offset, which may have one digit there.
pub(crate) fn offset_with_name(text: &[u8]) -> Option<(i32, usize)> {
    let Some(after) = text.strip_prefix(b"UTC").or_else(|| text.strip_prefix(b"GMT")) else {
        return offset(text);
    };
    let behind = offset(after).or_else(|| match after {
        [b'+', hours @ b'0'..=b'9', ..] => Some((i32::from(hours - b'0') * 3600, 2)),
        [b'-', hours @ b'0'..=b'9', ..] => Some((-i32::from(hours - b'0') * 3600, 2)),
        _ => None,
    });
    let (seconds, len) = behind.unwrap_or((0, 0));
    Some((seconds, 3 + len))
}
