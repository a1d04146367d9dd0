//! STRUCTURED-DATA of RFC 5424 section 6.3: checked once while its end is found, read lazily.

use std::borrow::Cow;

use crate::bytes::{SD_NAME, SPACE, find, find2, span};
use crate::escape::unescape;
use crate::trace;

/// Ends of so many elements are kept from the check, in 16 bits each.
const KNOWN_ENDS: usize = 4;

/// Well-formed structured data of one message, with at least one element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StructuredData<'a> {
    raw: &'a [u8],
    /// Where the first elements end, the first lowest; zero if there is no such element, or if it ends
    /// too far away. One number, which stays in a register while the text is checked.
    ends: u64,
    /// A value has a backslash in it.
    escaped: bool,
    /// A parameter has a name that a trace context can have.
    traced: bool,
}

impl<'a> StructuredData<'a> {
    /// Takes the elements at the start of `text`. Gives them and what follows the last `]`: nothing,
    /// or text that begins with a space. `None` if `text` does not begin with structured data.
    ///
    /// Beyond the grammar a bare `]` or backslash inside quotes is taken as itself, more than one
    /// space may part parameters, and lengths are not limited.
    pub(crate) fn split(text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let mut data = Self { raw: text, ends: 0, escaped: false, traced: false };
        let (mut at, mut count) = (0, 0);
        while text.get(at) == Some(&b'[') {
            at = data.check_element(at)?;
            if count < KNOWN_ENDS {
                data.ends |= u64::from(u16::try_from(at).unwrap_or(0)) << (16 * count);
                count += 1;
            }
        }
        let (raw, rest) = text.split_at(at);
        data.raw = raw;
        (at > 0 && matches!(rest.first(), None | Some(b' '))).then_some((data, rest))
    }

    /// The position after the `]` of the element that begins at `at`, if it is well formed.
    #[inline(always)]
    fn check_element(&mut self, at: usize) -> Option<usize> {
        let text = self.raw;
        let id_len = span(&text[at + 1..], SD_NAME);
        if id_len == 0 {
            return None;
        }
        let mut at = at + 1 + id_len;
        loop {
            let next = skip_spaces(text, at);
            match text.get(next)? {
                b']' => return Some(next + 1),
                _ if next > at => at = self.check_param(next)?,
                _ => return None,
            }
        }
    }

    /// The position after the parameter `name="value"` that begins at `at`.
    #[inline(always)]
    fn check_param(&mut self, at: usize) -> Option<usize> {
        let text = self.raw;
        let name = &text[at..at + span(&text[at..], SD_NAME)];
        let value_start = at + name.len() + 2;
        if name.is_empty() || text.get(value_start - 2..value_start)? != b"=\"" {
            return None;
        }
        self.traced |= trace::may_name_context(name);
        let (end, escaped) = value_end(text, value_start)?;
        self.escaped |= escaped;
        Some(end + 1)
    }

    /// The text as sent, from the first `[` to the last `]`.
    #[must_use]
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// The elements in order. An SD-ID can occur more than once, though the RFC forbids it.
    #[must_use]
    pub fn elements(&self) -> Elements<'a> {
        Elements { data: *self, at: 0 }
    }

    /// Whether the name of a parameter is one that [`trace`] knows, or may be.
    pub(crate) fn may_have_trace_context(&self) -> bool {
        self.traced
    }
}

/// Iterator over the elements of [`StructuredData`].
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    data: StructuredData<'a>,
    /// Start of the next element.
    at: usize,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let StructuredData { raw, ends, escaped, .. } = self.data;
        let start = self.at;
        let id_len = span(raw.get(start + 1..)?, SD_NAME);
        self.at = match ends as u16 {
            0 => element_end(raw, start + 1 + id_len)?,
            end => usize::from(end),
        };
        // Those of the elements to come.
        self.data.ends >>= 16;
        let id = &raw[start + 1..start + 1 + id_len];
        Some(Element { id, params: &raw[start + 1 + id_len..self.at - 1], escaped })
    }
}

/// One SD-ELEMENT: an SD-ID and its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element<'a> {
    id: &'a [u8],
    params: &'a [u8],
    escaped: bool,
}

impl<'a> Element<'a> {
    /// SD-ID, such as `origin` or `ses@32473`: printable ASCII.
    #[must_use]
    pub fn id(&self) -> &'a [u8] {
        self.id
    }

    /// The parameters in order. A name can occur more than once.
    #[must_use]
    pub fn params(&self) -> Params<'a> {
        Params { rest: self.params, escaped: self.escaped }
    }
}

/// Iterator over the parameters of an [`Element`]: name (printable ASCII), and value with the
/// escapes `\"`, `\\` and `\]` undone. The value borrows unless it has an escape.
#[derive(Debug, Clone)]
pub struct Params<'a> {
    rest: &'a [u8],
    /// Some value of the message has a backslash in it.
    escaped: bool,
}

impl<'a> Params<'a> {
    /// The next parameter with its value as sent.
    #[inline]
    fn next_raw(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let at = skip_spaces(self.rest, 0);
        let equals = at + find(&self.rest[at..], b'=')?;
        let value_start = equals + 2;
        let value_end = if self.escaped {
            value_end(self.rest, value_start)?.0
        } else {
            value_start + find(self.rest.get(value_start..)?, b'"')?
        };
        let pair = (&self.rest[at..equals], &self.rest[value_start..value_end]);
        self.rest = &self.rest[value_end + 1..];
        Some(pair)
    }
}

impl<'a> Iterator for Params<'a> {
    type Item = (&'a [u8], Cow<'a, [u8]>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.next_raw()?;
        let value = match self.escaped {
            true => unescape(value, |byte| matches!(byte, b'"' | b'\\' | b']').then_some(byte)),
            false => Cow::Borrowed(value),
        };
        Some((name, value))
    }
}

/// The position after the bracket that ends the checked element whose parameters begin at `at`.
fn element_end(raw: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = skip_spaces(raw, at);
        if raw.get(at)? == &b']' {
            return Some(at + 1);
        }
        let value_start = at + find(&raw[at..], b'=')? + 2;
        at = value_end(raw, value_start)?.0 + 1;
    }
}

/// The closing quote of the value that begins at `at`, and whether a backslash is in the value.
#[inline(always)]
fn value_end(text: &[u8], at: usize) -> Option<(usize, bool)> {
    let mut end = at;
    let mut escaped = false;
    loop {
        end += find2(text.get(end..)?, b'"', b'\\')?;
        if text[end] == b'"' {
            return Some((end, escaped));
        }
        escaped = true;
        end += 2;
    }
}

#[inline]
fn skip_spaces(text: &[u8], at: usize) -> usize {
    at + span(&text[at..], SPACE)
}

#[cfg(test)]
mod tests;
