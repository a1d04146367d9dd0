//! Protobuf, field by field (protobuf.dev, "Encoding").

use super::OtlpError;
use super::value::MAX_DEPTH;

/// What is wrong, and the address where; [`Fault::within`] turns it into an offset. So nothing needs to be carried along
/// for errors.
#[derive(Debug, Clone, Copy)]
pub(in crate::quantile) struct Fault {
    kind: Kind,
    address: usize,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Truncated,
    Varint,
    Tag,
    FieldType,
    Utf8,
    Depth,
}

impl Fault {
    #[cold]
    fn new(kind: Kind, at: &[u8]) -> Self {
        Self { kind, address: at.as_ptr().addr() }
    }

    #[cold]
    pub(in crate::quantile) fn utf8(text: &[u8]) -> Self {
        Self::new(Kind::Utf8, text)
    }

    #[cold]
    pub(in crate::quantile) fn depth(value: &[u8]) -> Self {
        Self::new(Kind::Depth, value)
    }

    #[cold]
    pub(in crate::quantile) fn field_type(rest: &[u8]) -> Self {
        Self::new(Kind::FieldType, rest)
    }

    /// The error of a request that holds the address.
    #[cold]
    pub(in crate::quantile) fn within(self, request: &[u8]) -> OtlpError {
        let offset = self.address.saturating_sub(request.as_ptr().addr()).min(request.len());
        match self.kind {
            Kind::Truncated => OtlpError::Truncated { offset },
            Kind::Varint => OtlpError::Varint { offset },
            Kind::Tag => OtlpError::Tag { offset },
            Kind::FieldType => OtlpError::FieldType { offset },
            Kind::Utf8 => OtlpError::Utf8 { offset },
            Kind::Depth => OtlpError::Depth { offset, max: MAX_DEPTH },
        }
    }
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::quantile) enum Content<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    /// Text, bytes or a message.
    Bytes(&'a [u8]),
}

/// The fields of a message in their order.
#[derive(Debug, Clone, Copy)]
pub(in crate::quantile) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(in crate::quantile) const fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// The next field: its number and what it holds.
    // What is returned is taken apart at once: inlined, it never exists.
    #[inline(always)]
    pub(in crate::quantile) fn next(&mut self) -> Result<Option<(u32, Content<'a>)>, Fault> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = match u32::try_from(tag >> 3) {
            Ok(number) if number > 0 => number,
            _ => return Err(Fault::new(Kind::Tag, self.rest)),
        };
        let content = match tag & 7 {
            0 => Content::Varint(self.varint()?),
            1 => Content::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = self.varint()?;
                Content::Bytes(self.split(length)?)
            }
            5 => Content::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(Fault::new(Kind::Tag, self.rest)),
        };
        Ok(Some((number, content)))
    }

    /// Takes the next field if it has this tag, of one byte, and eight bytes. What is wrong with it is left to
    /// [`Fields::next`], as is a field that comes elsewhere than writers mostly put it.
    #[inline(always)]
    pub(in crate::quantile) fn fixed64_if(&mut self, number: u32) -> Option<u64> {
        let (first, tail) = self.rest.split_first()?;
        if u32::from(*first) != number << 3 | 1 {
            return None;
        }
        let (bytes, tail) = tail.split_first_chunk()?;
        self.rest = tail;
        Some(u64::from_le_bytes(*bytes))
    }

    /// As [`Fields::fixed64_if`], for a text, bytes or a message of up to 16 KiB.
    #[inline(always)]
    pub(in crate::quantile) fn bytes_if(&mut self, number: u32) -> Option<&'a [u8]> {
        let (length, tail) = match *self.rest {
            [tag, length, ref tail @ ..] if u32::from(tag) == number << 3 | 2 && length < 0x80 => (length.into(), tail),
            [tag, low, high, ref tail @ ..] if u32::from(tag) == number << 3 | 2 && high < 0x80 => {
                (usize::from(low & 0x7f) | usize::from(high) << 7, tail)
            }
            _ => return None,
        };
        let (head, tail) = tail.split_at_checked(length)?;
        self.rest = tail;
        Some(head)
    }

    /// What has not been given yet.
    #[inline(always)]
    pub(in crate::quantile) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The fault that the field given last has another type than its own.
    #[cold]
    pub(in crate::quantile) fn wrong_type(&self) -> Fault {
        Fault::field_type(self.rest)
    }

    #[inline(always)]
    fn split(&mut self, length: u64) -> Result<&'a [u8], Fault> {
        let split = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let Some((head, tail)) = split else { return Err(Fault::new(Kind::Truncated, self.rest)) };
        self.rest = tail;
        Ok(head)
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let Some((head, tail)) = self.rest.split_first_chunk() else {
            return Err(Fault::new(Kind::Truncated, self.rest));
        };
        self.rest = tail;
        Ok(*head)
    }

    #[inline(always)]
    fn varint(&mut self) -> Result<u64, Fault> {
        match self.rest.split_first() {
            Some((first, tail)) if *first < 0x80 => {
                self.rest = tail;
                Ok(u64::from(*first))
            }
            // Most messages are longer than 127 bytes and shorter than 16 KiB.
            Some((first, [second, tail @ ..])) if *second < 0x80 => {
                self.rest = tail;
                Ok(u64::from(*first & 0x7f) | u64::from(*second) << 7)
            }
            _ => self.long_varint(),
        }
    }

    #[inline(never)]
    fn long_varint(&mut self) -> Result<u64, Fault> {
        let mut value = 0;
        for (at, byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * at);
            if *byte < 0x80 {
                // The tenth byte has room for one bit.
                if at == 9 && *byte > 1 {
                    break;
                }
                self.rest = &self.rest[at + 1..];
                return Ok(value);
            }
        }
        let kind = if self.rest.len() < 10 { Kind::Truncated } else { Kind::Varint };
        Err(Fault::new(kind, self.rest))
    }
}

/// The contents of all fields `wanted` of a message, which are messages, texts or bytes.
#[derive(Debug, Clone)]
pub(in crate::quantile) struct Messages<'a> {
    fields: Fields<'a>,
    wanted: u32,
}

/// See [`Messages`].
pub(in crate::quantile) const fn messages(message: &[u8], wanted: u32) -> Messages<'_> {
    Messages { fields: Fields::new(message), wanted }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<&'a [u8], Fault>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let fault = match self.fields.next() {
                Ok(None) => return None,
                Ok(Some((number, _))) if number != self.wanted => continue,
                Ok(Some((_, Content::Bytes(content)))) => return Some(Ok(content)),
                Ok(Some(_)) => self.fields.wrong_type(),
                Err(fault) => fault,
            };
            self.fields = Fields::new(&[]);
            return Some(Err(fault));
        }
    }
}

/// A message that may have come in several fields of the same number, which are one message together.
#[derive(Debug, Clone)]
pub(in crate::quantile) struct Parts<'a> {
    first: &'a [u8],
    others: Messages<'a>,
}

impl<'a> Parts<'a> {
    /// A message in one piece.
    #[inline(always)]
    pub(in crate::quantile) const fn whole(message: &'a [u8]) -> Self {
        Self { first: message, others: messages(&[], 1) }
    }

    /// The message that begins with `first`, a field `number` after which come the fields `rest`.
    #[inline(always)]
    pub(in crate::quantile) const fn new(first: &'a [u8], number: u32, rest: &'a [u8]) -> Self {
        Self { first, others: messages(rest, number) }
    }

    /// The contents of all parts.
    #[inline(always)]
    pub(in crate::quantile) fn iter(&self) -> impl Iterator<Item = Result<&'a [u8], Fault>> + use<'a> {
        std::iter::once(Ok(self.first)).chain(self.others.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(message: &[u8]) -> Result<Vec<(u32, Content<'_>)>, OtlpError> {
        let mut fields = Fields::new(message);
        let mut found = Vec::new();
        while let Some(field) = fields.next().map_err(|fault| fault.within(message))? {
            found.push(field);
        }
        Ok(found)
    }

    /// The four wire types in use, with long and short integers.
    #[test]
    fn fields_are_read() {
        let message = b"\x08\x96\x01\x11\x01\0\0\0\0\0\0\0\x1a\x02ab\x25\x02\0\0\0\xf8\x07\x00";
        let expected = [
            (1, Content::Varint(150)),
            (2, Content::Fixed64(1)),
            (3, Content::Bytes(b"ab")),
            (4, Content::Fixed32(2)),
            (127, Content::Varint(0)),
        ];
        assert_eq!(all(message).as_deref(), Ok(&expected[..]));
        let greatest = b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(all(greatest).as_deref(), Ok(&[(1, Content::Varint(u64::MAX))][..]));
    }

    /// Each way to be wrong has its error, with the place.
    #[test]
    fn faults_tell_what_and_where() {
        assert_eq!(all(b"\x08\x01\x1a\x05ab"), Err(OtlpError::Truncated { offset: 4 }));
        assert_eq!(all(b"\x11\x01"), Err(OtlpError::Truncated { offset: 1 }));
        assert_eq!(all(b"\x08\x80"), Err(OtlpError::Truncated { offset: 1 }));
        assert_eq!(all(b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), Err(OtlpError::Varint { offset: 1 }));
        assert_eq!(all(b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), Err(OtlpError::Varint { offset: 1 }));
        assert_eq!(all(b"\x0b"), Err(OtlpError::Tag { offset: 1 }), "a group");
        assert_eq!(all(b"\x00\x01"), Err(OtlpError::Tag { offset: 1 }), "field number 0");
        assert_eq!(all(b"\x1a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), Err(OtlpError::Truncated { offset: 10 }));
    }
}
