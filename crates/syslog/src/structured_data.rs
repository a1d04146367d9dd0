//! STRUCTURED-DATA of RFC 5424 section 6.3: checked once while its end is found, read lazily.

use std::borrow::Cow;

use crate::escape::unescape;

/// Well-formed structured data of one message, with at least one element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StructuredData<'a> {
    raw: &'a [u8],
}

impl<'a> StructuredData<'a> {
    /// Takes the elements at the start of `text`. Gives them and what follows the last `]`: nothing,
    /// or text that begins with a space. `None` if `text` does not begin with structured data.
    ///
    /// Beyond the grammar a bare `]` or backslash inside quotes is taken as itself, more than one
    /// space may part parameters, and lengths are not limited.
    pub(crate) fn split(text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let mut at = 0;
        while text.get(at) == Some(&b'[') {
            at = element_end(text, at)?;
        }
        let (raw, rest) = text.split_at(at);
        (at > 0 && matches!(rest.first(), None | Some(b' '))).then_some((Self { raw }, rest))
    }

    /// The text as sent, from the first `[` to the last `]`.
    #[must_use]
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// The elements in order. An SD-ID can occur more than once, though the RFC forbids it.
    #[must_use]
    pub fn elements(&self) -> Elements<'a> {
        Elements { rest: self.raw }
    }
}

/// Iterator over the elements of [`StructuredData`].
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let end = element_end(self.rest, 0)?;
        let (element, rest) = self.rest.split_at(end);
        self.rest = rest;
        let id_end = 1 + name_len(&element[1..]);
        Some(Element { id: &element[1..id_end], params: &element[id_end..end - 1] })
    }
}

/// One SD-ELEMENT: an SD-ID and its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element<'a> {
    id: &'a [u8],
    params: &'a [u8],
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
        Params { rest: self.params }
    }
}

/// Iterator over the parameters of an [`Element`]: name (printable ASCII), and value with the
/// escapes `\"`, `\\` and `\]` undone. The value borrows unless it has an escape.
#[derive(Debug, Clone)]
pub struct Params<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Params<'a> {
    type Item = (&'a [u8], Cow<'a, [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        let at = skip_spaces(self.rest, 0);
        let (equals, end) = param_end(self.rest, at)?;
        let name = &self.rest[at..equals];
        let value = &self.rest[equals + 2..end - 1];
        self.rest = &self.rest[end..];
        Some((name, unescape(value, |byte| matches!(byte, b'"' | b'\\' | b']').then_some(byte))))
    }
}

/// The position after the `]` of the element that begins at `at`.
fn element_end(text: &[u8], at: usize) -> Option<usize> {
    let id_start = at + 1;
    let id_len = name_len(text.get(id_start..)?);
    if id_len == 0 {
        return None;
    }
    let mut at = id_start + id_len;
    loop {
        let next = skip_spaces(text, at);
        match text.get(next)? {
            b']' => return Some(next + 1),
            _ if next > at => at = param_end(text, next)?.1,
            _ => return None,
        }
    }
}

/// Of the parameter `name="value"` that begins at `at`: the position of `=` and that after the
/// closing quote.
fn param_end(text: &[u8], at: usize) -> Option<(usize, usize)> {
    let len = name_len(text.get(at..)?);
    let equals = at + len;
    if len == 0 || text.get(equals..equals + 2)? != b"=\"" {
        return None;
    }
    let mut at = equals + 2;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some((equals, at + 1));
        }
        at += 2;
    }
}

/// Length of the SD-NAME at the start of `text`.
fn name_len(text: &[u8]) -> usize {
    let in_name = |byte: &&u8| byte.is_ascii_graphic() && !matches!(byte, b'=' | b']' | b'"');
    text.iter().take_while(in_name).count()
}

fn skip_spaces(text: &[u8], at: usize) -> usize {
    at + text[at..].iter().take_while(|byte| **byte == b' ').count()
}

#[cfg(test)]
mod tests;
