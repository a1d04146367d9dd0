//! Searching short texts: classes of bytes by table, and eight bytes at a time in one word.
//!
//! The words of a header are a few bytes long, so that calling a vectorised search for each costs
//! more than the search.

/// Byte of a host word.
pub(crate) const HOST: u8 = 1;
/// Byte of the name in a tag.
pub(crate) const TAG: u8 = 1 << 1;
/// Byte of an SD-NAME (RFC 5424 section 6.3).
pub(crate) const SD_NAME: u8 = 1 << 2;
/// Byte of a key in a CEF extension.
pub(crate) const CEF_KEY: u8 = 1 << 3;
/// What may begin more of a stamp behind the time and a space: zone, year, colon, another space.
pub(crate) const STAMP_MORE: u8 = 1 << 4;
/// A decimal digit.
pub(crate) const DIGIT: u8 = 1 << 5;
/// A colon.
pub(crate) const COLON: u8 = 1 << 6;
/// A space.
pub(crate) const SPACE: u8 = 1 << 7;

static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0u8;
    loop {
        let alphanumeric = byte.is_ascii_alphanumeric();
        let mut class = 0;
        if alphanumeric || matches!(byte, b'.' | b'_' | b':' | b'%' | b'/' | b'@' | b'+' | b'-') {
            class |= HOST;
        }
        if alphanumeric || matches!(byte, b'-' | b'_' | b'.' | b'/' | b'@' | b'#' | b'+' | b'~' | b'\\') {
            class |= TAG;
        }
        if byte.is_ascii_graphic() && !matches!(byte, b'=' | b']' | b'"') {
            class |= SD_NAME;
        }
        if alphanumeric || matches!(byte, b'_' | b'.' | b'-' | b'[' | b']') {
            class |= CEF_KEY;
        }
        if byte.is_ascii_digit() || byte.is_ascii_uppercase() || matches!(byte, b' ' | b':' | b'+' | b'-') {
            class |= STAMP_MORE;
        }
        if byte.is_ascii_digit() {
            class |= DIGIT;
        }
        if byte == b':' {
            class |= COLON;
        }
        if byte == b' ' {
            class |= SPACE;
        }
        table[byte as usize] = class;
        if byte == u8::MAX {
            return table;
        }
        byte += 1;
    }
}

/// All classes of a byte.
#[inline]
pub(crate) fn class_of(byte: u8) -> u8 {
    CLASSES[usize::from(byte)]
}

/// How many bytes of a class `text` begins with.
#[inline]
pub(crate) fn span(text: &[u8], class: u8) -> usize {
    let len = text.iter().position(|byte| class_of(*byte) & class == 0).unwrap_or(text.len());
    work::add(len + 1);
    len
}

/// How many bytes of a class `text` ends with.
#[inline]
pub(crate) fn span_back(text: &[u8], class: u8) -> usize {
    let len = text.iter().rev().position(|byte| class_of(*byte) & class == 0).unwrap_or(text.len());
    work::add(len + 1);
    len
}

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;
/// So far a byte is searched in words; beyond, vectors win.
const NEAR: usize = 32;

/// Eight bytes as a number, the first of them lowest.
#[inline]
pub(crate) fn word(text: &[u8], at: usize) -> Option<u64> {
    text.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}

/// The high bit of each byte that is zero, without any other.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    !(((word & !HIGH) + !HIGH) | word) & HIGH
}

#[inline]
fn index(hits: u64) -> usize {
    hits.trailing_zeros() as usize / 8
}

/// Position of the first `needle`.
#[inline]
pub(crate) fn find(text: &[u8], needle: u8) -> Option<usize> {
    let found = find_near_or_far(text, needle);
    work::add(found.unwrap_or(text.len()));
    found
}

#[inline]
fn find_near_or_far(text: &[u8], needle: u8) -> Option<usize> {
    let pattern = LOW * u64::from(needle);
    let mut at = 0;
    while at < NEAR
        && let Some(word) = word(text, at)
    {
        let different = word ^ pattern;
        // Bits above the lowest may be wrong here, which does not matter to the first hit.
        let hits = different.wrapping_sub(LOW) & !different & HIGH;
        if hits != 0 {
            return Some(at + index(hits));
        }
        at += 8;
    }
    memchr::memchr(needle, &text[at..]).map(|distance| at + distance)
}

/// Position of the first of two needles.
#[inline]
pub(crate) fn find2(text: &[u8], first: u8, second: u8) -> Option<usize> {
    let found = find2_near_or_far(text, first, second);
    work::add(found.unwrap_or(text.len()));
    found
}

#[inline]
fn find2_near_or_far(text: &[u8], first: u8, second: u8) -> Option<usize> {
    let patterns = [LOW * u64::from(first), LOW * u64::from(second)];
    let mut at = 0;
    while at < NEAR
        && let Some(word) = word(text, at)
    {
        let [a, b] = patterns.map(|pattern| {
            let different = word ^ pattern;
            different.wrapping_sub(LOW) & !different & HIGH
        });
        if a | b != 0 {
            return Some(at + index(a | b));
        }
        at += 8;
    }
    memchr::memchr2(first, second, &text[at..]).map(|distance| at + distance)
}

/// The positions of a byte that is not zero, where it occurs often.
#[derive(Debug, Clone)]
pub(crate) struct Positions<'a> {
    text: &'a [u8],
    pattern: u64,
    /// Start of the word that `hits` belongs to.
    base: usize,
    /// The high bit of each byte of that word that is still to be given.
    hits: u64,
    /// Start of the next word.
    next: usize,
}

impl<'a> Positions<'a> {
    /// The positions from `start` on.
    #[inline]
    pub(crate) fn new(text: &'a [u8], start: usize, needle: u8) -> Self {
        Self { text, pattern: LOW * u64::from(needle), base: start, hits: 0, next: start }
    }
}

impl Iterator for Positions<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.hits == 0 {
            self.base = self.next;
            let word = match word(self.text, self.base) {
                Some(word) => word,
                None => last_word(self.text, self.base)?,
            };
            work::add(8);
            self.hits = zero_bytes(word ^ self.pattern);
            self.next += 8;
        }
        let at = self.base + index(self.hits);
        self.hits &= self.hits - 1;
        Some(at)
    }
}

/// Fewer than eight bytes at the end, filled up with zeros.
fn last_word(text: &[u8], at: usize) -> Option<u64> {
    let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
    Some(rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)))
}

/// Takes `hh:mm:ss`, or digits and other separators as in `layout` (a `0` stands for any digit):
/// the value of each pair of digits in the byte of its first digit.
#[inline]
pub(crate) fn digit_pairs(word: u64, layout: &[u8; 8]) -> Option<u64> {
    let digits = word ^ u64::from_le_bytes(*layout);
    // Added to a byte that is too large, this reaches the high bit: nine for digits, zero for others.
    let limits = limits(layout);
    if (digits | digits.wrapping_add(limits)) & HIGH != 0 {
        return None;
    }
    Some(digits.wrapping_mul(10).wrapping_add(digits >> 8))
}

#[inline]
const fn limits(layout: &[u8; 8]) -> u64 {
    let mut limits = [0x7f; 8];
    let mut at = 0;
    while at < 8 {
        if layout[at] == b'0' {
            limits[at] = 0x7f - 9;
        }
        at += 1;
    }
    u64::from_le_bytes(limits)
}

/// Counts the bytes that are looked at, in tests: that time is linear is shown without a clock.
pub(crate) mod work {
    #[cfg(test)]
    thread_local! {
        static BYTES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    /// Counts bytes looked at.
    #[inline(always)]
    #[cfg_attr(not(test), expect(unused_variables, reason = "nothing is counted outside of tests"))]
    pub(crate) fn add(bytes: usize) {
        #[cfg(test)]
        BYTES.with(|all| all.set(all.get() + bytes));
    }

    /// Bytes counted since the last call.
    #[cfg(test)]
    pub(crate) fn take() -> usize {
        BYTES.with(|all| all.replace(0))
    }
}

#[cfg(test)]
mod tests;
