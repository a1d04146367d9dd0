//! The trace that a message belongs to, where its sender says so (W3C Trace Context).
//!
//! Syslog has no field for it. Programs that are traced put it into structured data or into the
//! extension of CEF, either as the `traceparent` of HTTP or as separate ids.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::cef::Cef;
use crate::record::Record;
use crate::structured_data::StructuredData;

const TRACEPARENT: &[u8] = b"traceparent";
const TRACE_ID: &[u8] = b"trace_id";
const SPAN_ID: &[u8] = b"span_id";
const TRACE_FLAGS: &[u8] = b"trace_flags";

/// Length of a `traceparent` of version 00, and least length of any later one.
const TRACEPARENT_LEN: usize = 55;
/// The flags that level 2 defines: sampled, and random trace id.
const KNOWN_FLAGS: u8 = 0x03;

/// Ids of a trace and of the span in it that sent the message. Neither id is all zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// Trace id.
    pub trace_id: [u8; 16],
    /// Id of the span, called parent id in `traceparent`.
    pub span_id: [u8; 8],
    /// Trace flags: bit 0 sampled, bit 1 random trace id. Zero if the message has none.
    pub flags: u8,
}

impl TraceContext {
    /// Reads a `traceparent` (W3C Trace Context section 3.2): `00-<trace id>-<parent id>-<flags>`.
    ///
    /// Digits are lower-case hexadecimal, as the grammar says: a value with others is to be ignored.
    /// So is one of version `ff`, or with an id of zeros. Of a version that is not known yet the
    /// same leading fields are read and only the known flags kept; more may follow behind a `-`.
    #[must_use]
    pub fn from_traceparent(text: &[u8]) -> Option<Self> {
        let fields: &[u8; TRACEPARENT_LEN] = text.first_chunk()?;
        if fields[2] != b'-' || fields[35] != b'-' || fields[52] != b'-' || fields.iter().any(u8::is_ascii_uppercase) {
            return None;
        }
        let [version]: [u8; 1] = hex(&fields[..2])?;
        let flags = match (version, text.get(TRACEPARENT_LEN)) {
            (0, None) => !0,
            (1..=0xfe, None | Some(b'-')) => KNOWN_FLAGS,
            _ => return None,
        };
        let [sent]: [u8; 1] = hex(&fields[53..])?;
        Self::new(hex(&fields[3..35])?, hex(&fields[36..52])?, sent & flags)
    }

    /// The context of these ids, unless one is all zero.
    fn new(trace_id: [u8; 16], span_id: [u8; 8], flags: u8) -> Option<Self> {
        (trace_id != [0; 16] && span_id != [0; 8]).then_some(Self { trace_id, span_id, flags })
    }
}

impl Record<'_> {
    /// The trace context that the sender put into the message, if it is valid.
    ///
    /// It is looked for in structured data: a parameter `traceparent` of any element, or parameters
    /// `trace_id` and `span_id` (hexadecimal), and perhaps `trace_flags`, of one element; the case of
    /// these names does not matter. Then in the extension of CEF under the same keys, in lower case.
    /// A `traceparent` goes before ids, and of several the first valid one counts. Costs next to
    /// nothing if there is no such name.
    #[must_use]
    pub fn trace_context(&self) -> Option<TraceContext> {
        let data = self.structured_data.as_ref().filter(|data| data.may_have_trace_context());
        data.and_then(of_structured_data).or_else(|| self.cef.as_ref().and_then(of_cef))
    }
}

/// Whether a parameter can be part of a trace context, by a look that costs nothing: every context
/// has a name of this length and first letter.
#[inline]
pub(crate) fn may_name_context(name: &[u8]) -> bool {
    (name.len() == TRACEPARENT.len() || name.len() == TRACE_ID.len()) && name[0] | 0x20 == b't'
}

fn of_structured_data(data: &StructuredData<'_>) -> Option<TraceContext> {
    let mut by_ids = None;
    for element in data.elements() {
        let mut ids = Ids::default();
        for (name, value) in element.params() {
            let known = [TRACEPARENT, TRACE_ID, SPAN_ID, TRACE_FLAGS];
            let Some(known) = known.into_iter().find(|known| name.eq_ignore_ascii_case(known)) else { continue };
            if let Some(context) = ids.take(known, &value) {
                return Some(context);
            }
        }
        by_ids = by_ids.or_else(|| ids.context());
    }
    by_ids
}

fn of_cef(cef: &Cef<'_>) -> Option<TraceContext> {
    static TRACE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("trace"));
    TRACE.find(cef.raw())?;
    let mut ids = Ids::default();
    let mut pairs = cef.extensions();
    while let Some((key, value)) = pairs.next_raw() {
        // Spaces before the next key but one belong to the value, and mean nothing here.
        if let Some(context) = ids.take(key, value.trim_ascii()) {
            return Some(context);
        }
    }
    ids.context()
}

/// Parts of a context that come one by one.
#[derive(Default)]
struct Ids {
    trace_id: Option<[u8; 16]>,
    span_id: Option<[u8; 8]>,
    flags: u8,
}

impl Ids {
    /// Takes one value; a `traceparent` is a context by itself.
    fn take(&mut self, name: &[u8], value: &[u8]) -> Option<TraceContext> {
        match name {
            TRACEPARENT => return TraceContext::from_traceparent(value),
            TRACE_ID => self.trace_id = self.trace_id.or_else(|| hex(value)),
            SPAN_ID => self.span_id = self.span_id.or_else(|| hex(value)),
            TRACE_FLAGS => self.flags = hex(value).map_or(self.flags, |[flags]: [u8; 1]| flags),
            _ => {}
        }
        None
    }

    fn context(&self) -> Option<TraceContext> {
        TraceContext::new(self.trace_id?, self.span_id?, self.flags)
    }
}

/// Bytes written as exactly two hexadecimal digits each.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    if digits.len() != 2 * N {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
