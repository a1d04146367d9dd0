//! The trace that a message belongs to (W3C Trace Context), found in its text without reading the message.
//!
//! Looked for in the first [`TRACE_LOOK`] bytes: the lower-case names `traceparent` and `tracestate` with their values as
//! programs write them: `traceparent="..."` in structured data, `traceparent=...` or `traceparent: ...` in text and in
//! CEF, `"traceparent":"..."` in JSON, also with the quotes escaped.

use std::ops::ControlFlow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::hex;
use crate::threshold::{Randomness, Threshold};

/// A trace is looked for in so many bytes at the start of a message; a name that begins there is read to its end.
pub const TRACE_LOOK: usize = 8 * 1024;
/// So many bytes of a `tracestate` are read. W3C asks for 512; `ot` comes early, as the last to be changed.
const STATE_LOOK: usize = 1024;
/// Length of a `traceparent` of version 00, and least length of any later one.
const PARENT_LEN: usize = 55;
/// Both names begin with this.
const STEM: &[u8] = b"trace";
/// Spaces on either side of `=` or `:`.
const MAX_SPACES: usize = 4;

/// What sampling wants to know of a `traceparent` (W3C Trace Context section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// The sampled flag.
    pub sampled: bool,
    /// The low 56 bits of the trace id: the randomness of the trace, if `tracestate` has no other.
    pub randomness: Randomness,
}

/// What OpenTelemetry tells in the member `ot` of a `tracestate` ("TraceState Handling").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TraceState {
    /// `th`: the threshold that the trace was sampled with.
    pub threshold: Option<Threshold>,
    /// `rv`: the randomness of the trace.
    pub randomness: Option<Randomness>,
}

/// A trace and how it was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) randomness: Randomness,
    /// Absent if the trace is not sampled, or should not be by this threshold: then it says nothing.
    pub(crate) threshold: Option<Threshold>,
}

impl Trace {
    #[inline]
    pub(crate) fn new(parent: TraceParent, state: TraceState) -> Self {
        let randomness = state.randomness.unwrap_or(parent.randomness);
        let threshold = state.threshold.filter(|threshold| parent.sampled && threshold.admits(randomness));
        Self { randomness, threshold }
    }
}

/// Gives what follows each name that begins with [`STEM`] to `read`, until that has enough. Time is linear in the bytes
/// looked at, if `read` takes no more than a constant time.
#[inline]
fn names<'a>(message: &'a [u8], mut read: impl FnMut(&'a [u8]) -> ControlFlow<()>) {
    static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(STEM));
    let finder = &*FINDER;
    let look = &message[..message.len().min(TRACE_LOOK)];
    let mut at = 0;
    while let Some(distance) = finder.find(&look[at..]) {
        let start = at + distance;
        at = start + STEM.len();
        // What follows may go beyond the look, so that it does not cut a value in two.
        if (start == 0 || !is_name_byte(look[start - 1])) && read(&message[at..]).is_break() {
            break;
        }
    }
}

/// The first valid `traceparent` in a message, and the first `tracestate`, in one pass.
#[inline]
pub(crate) fn find(message: &[u8]) -> Option<(TraceParent, TraceState)> {
    let (mut parent, mut list) = (None, None);
    names(message, |rest| {
        parent = parent.or_else(|| TraceParent::behind_stem(rest));
        list = list.or_else(|| Some(value(rest.strip_prefix(b"state")?)?.list()));
        if parent.is_some() && list.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    Some((parent?, list.map(TraceState::from_header).unwrap_or_default()))
}

impl TraceParent {
    /// The first valid `traceparent` in a message.
    #[must_use]
    pub fn find(message: &[u8]) -> Option<Self> {
        let mut parent = None;
        names(message, |rest| {
            parent = Self::behind_stem(rest);
            if parent.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        parent
    }

    #[inline]
    fn behind_stem(rest: &[u8]) -> Option<Self> {
        Self::read(value(rest.strip_prefix(b"parent")?)?.text)
    }

    /// Reads the value of a header.
    #[must_use]
    pub fn from_header(value: &[u8]) -> Option<Self> {
        let ends = matches!(value.get(PARENT_LEN), None | Some(b'-'));
        if ends { Self::read(value) } else { None }
    }

    /// Reads `00-<trace id>-<parent id>-<flags>` at the start of `text`; what follows must not belong to it. Digits are lower case. Versions from 01 to fe may go on behind a `-`; ff is not valid, nor
    /// is an id of zeros.
    #[inline]
    fn read(text: &[u8]) -> Option<Self> {
        let fields: &[u8; PARENT_LEN] = text.first_chunk()?;
        if fields[2] != b'-' || fields[35] != b'-' || fields[52] != b'-' {
            return None;
        }
        let (version, trace_id): (&[u8; 2], &[u8; 32]) = (fields.first_chunk()?, fields[3..].first_chunk()?);
        let (parent_id, flags): (&[u8; 16], &[u8; 2]) = (fields[36..].first_chunk()?, fields.last_chunk()?);
        let known = version == b"00";
        let ends = match text.get(PARENT_LEN) {
            Some(b'-') => !known,
            Some(byte) => !is_name_byte(*byte) && *byte != b'.',
            None => true,
        };
        let digits = hex::are_digits(trace_id)
            && hex::are_digits(parent_id)
            && hex::are_digits(&[version[0], version[1], flags[0], flags[1]]);
        if !ends || !digits || version == b"ff" || trace_id == &[b'0'; 32] || parent_id == &[b'0'; 16] {
            return None;
        }
        let randomness = Randomness::from_low_bits(hex::sixteen(trace_id.last_chunk()?));
        Some(Self { sampled: hex::one(flags[1])? & 1 != 0, randomness })
    }
}

impl TraceState {
    /// Reads the value of a header. What is not valid in it is as if it was not there.
    #[must_use]
    pub fn from_header(list: &[u8]) -> Self {
        let mut state = Self::default();
        let members = list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        // CEF escapes the equals sign.
        let mut values = members.filter_map(|text| text.strip_prefix(b"ot=").or_else(|| text.strip_prefix(b"ot\\=")));
        for pair in values.next().unwrap_or_default().split(|byte| *byte == b';') {
            if let Some(digits) = pair.strip_prefix(b"th:") {
                state.threshold = state.threshold.or_else(|| Threshold::from_hex(digits));
            } else if let Some(digits) = pair.strip_prefix(b"rv:") {
                state.randomness = state.randomness.or_else(|| Randomness::from_hex(digits));
            }
        }
        state
    }
}

/// A value in a message: where it begins, and the quote that ends it.
struct Value<'a> {
    text: &'a [u8],
    quote: Option<u8>,
}

impl<'a> Value<'a> {
    /// The value up to its end, if it is a list of members; without the last one where it is longer than what is read.
    fn list(&self) -> &'a [u8] {
        let look = &self.text[..self.text.len().min(STATE_LOOK)];
        let ends = |byte: &u8| match self.quote {
            Some(quote) => *byte == quote,
            None => byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b']' | b'}'),
        };
        match look.iter().position(ends) {
            // The backslash of a quote that is escaped.
            Some(end) => look[..end].strip_suffix(b"\\").unwrap_or(&look[..end]),
            None if look.len() == self.text.len() => look,
            None => &look[..memchr::memrchr(b',', look).unwrap_or(0)],
        }
    }
}

/// The value behind a name: `=` or `:`, perhaps in spaces, perhaps with a quote on either side.
#[inline(always)]
fn value(text: &[u8]) -> Option<Value<'_>> {
    let (_, text) = quote(text);
    let text = match spaces(text) {
        [b'=' | b':', rest @ ..] => spaces(rest),
        _ => return None,
    };
    let (quote, text) = quote(text);
    Some(Value { text, quote })
}

/// A quote, or an escaped one.
#[inline(always)]
fn quote(text: &[u8]) -> (Option<u8>, &[u8]) {
    match text {
        [b'\\', quote @ (b'"' | b'\''), rest @ ..] | [quote @ (b'"' | b'\''), rest @ ..] => (Some(*quote), rest),
        _ => (None, text),
    }
}

#[inline]
fn spaces(text: &[u8]) -> &[u8] {
    match text {
        [b' ', rest @ ..] => {
            let more = rest.iter().take(MAX_SPACES - 1).take_while(|byte| **byte == b' ').count();
            &rest[more..]
        }
        _ => text,
    }
}

/// What a longer name is made of.
#[inline]
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || !byte.is_ascii()
}

#[cfg(test)]
mod tests;
