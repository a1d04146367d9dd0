//! Requests of OTLP that are bytes already: counted, put together and taken apart without being decoded.
//!
//! Only the fields that nest items are followed: resources, scopes, records, and for metrics their points. Everything else is
//! carried along as it is, also what is not known here.

use std::ops::Range;

use ::bytes::Bytes;

use super::wire::push_varint;
use crate::encode::error::EncodeError;
use crate::signal::Signal;

/// Field numbers that lead to items, level by level.
const fn levels(signal: Signal) -> &'static [&'static [u32]] {
    match signal {
        Signal::Logs | Signal::Traces => &[&[1], &[2], &[2]],
        // Gauge, sum, histogram, exponential histogram and summary in a metric; points in these.
        Signal::Metrics => &[&[1], &[2], &[2], &[5, 7, 9, 10, 11], &[1]],
    }
}

/// Requests of one signal as one: protobuf takes repeated fields one after another.
#[must_use]
pub fn merge(requests: &[Bytes]) -> Bytes {
    match requests {
        [] => Bytes::new(),
        [request] => request.clone(),
        _ => Bytes::from(requests.concat()),
    }
}

/// Number of log records, points or spans in a request.
///
/// # Errors
/// [`EncodeError::Protobuf`] where bytes are no protobuf.
pub fn count(request: &[u8], signal: Signal) -> Result<usize, EncodeError> {
    fn below(request: &[u8], range: Range<usize>, levels: &[&[u32]]) -> Result<usize, EncodeError> {
        let Some((fields, deeper)) = levels.split_first() else { return Ok(1) };
        let mut items = 0;
        let mut reader = Reader { request, at: range.start, end: range.end };
        while let Some(field) = reader.next()? {
            if let Some(content) = field.nested(fields) {
                items += below(request, content, deeper)?;
            }
        }
        Ok(items)
    }
    below(request, 0..request.len(), levels(signal))
}

/// A request in parts of at most `max_items` items, in their order. Resources, scopes and metrics whose items come into several
/// parts are in each of them. If there is one part it is the request itself; else what has no items is left out.
///
/// # Errors
/// [`EncodeError::Protobuf`] where bytes are no protobuf.
pub fn split(request: &Bytes, signal: Signal, max_items: usize) -> Result<Vec<Bytes>, EncodeError> {
    let max_items = max_items.max(1);
    let mut tree = Tree { request, groups: Vec::new(), items: Vec::new() };
    tree.read(0..request.len(), levels(signal), None)?;
    if tree.items.len() <= max_items {
        return Ok(vec![request.clone()]);
    }
    Ok(tree.items.chunks(max_items).map(|items| Bytes::from(tree.part(items))).collect())
}

/// The first `at` items of a request and the rest, as [`split`] makes them.
///
/// # Errors
/// [`EncodeError::Protobuf`] where bytes are no protobuf.
pub fn split_at(request: &Bytes, signal: Signal, at: usize) -> Result<(Bytes, Bytes), EncodeError> {
    let mut tree = Tree { request, groups: Vec::new(), items: Vec::new() };
    tree.read(0..request.len(), levels(signal), None)?;
    let (head, tail) = tree.items.split_at(at.min(tree.items.len()));
    Ok((tree.part(head).into(), tree.part(tail).into()))
}

/// The bytes of the resources of a request, in their order; empty for those without one.
///
/// # Errors
/// [`EncodeError::Protobuf`] where bytes are no protobuf.
pub(crate) fn resources(request: &[u8]) -> Result<Vec<&[u8]>, EncodeError> {
    let mut found = Vec::new();
    let mut reader = Reader { request, at: 0, end: request.len() };
    while let Some(field) = reader.next()? {
        let Some(content) = field.nested(&[1]) else { continue };
        let mut inner = Reader { request, at: content.start, end: content.end };
        let mut resource: &[u8] = &[];
        while let Some(field) = inner.next()? {
            if let Some(content) = field.nested(&[1]) {
                resource = &request[content];
            }
        }
        found.push(resource);
    }
    Ok(found)
}

/// A field of a message.
struct Field {
    number: u32,
    /// With its tag.
    whole: Range<usize>,
    /// The content, if it has a length.
    content: Option<Range<usize>>,
}

impl Field {
    fn nested(&self, fields: &[u32]) -> Option<Range<usize>> {
        self.content.clone().filter(|_| fields.contains(&self.number))
    }
}

/// Reads the fields of a message.
struct Reader<'r> {
    request: &'r [u8],
    at: usize,
    end: usize,
}

impl Reader<'_> {
    fn fault(&self, message: &'static str) -> EncodeError {
        EncodeError::Protobuf { offset: self.at, message }
    }

    fn varint(&mut self) -> Result<u64, EncodeError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.request.get(..self.end).and_then(|request| request.get(self.at));
            let byte = *byte.ok_or_else(|| self.fault("a number is cut off"))?;
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.fault("a number of more than ten bytes"))
    }

    fn skip(&mut self, bytes: u64) -> Result<(), EncodeError> {
        let end = usize::try_from(bytes).ok().and_then(|bytes| self.at.checked_add(bytes));
        self.at = end.filter(|end| *end <= self.end).ok_or_else(|| self.fault("a field is longer than its message"))?;
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Field>, EncodeError> {
        if self.at >= self.end {
            return Ok(None);
        }
        let start = self.at;
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0);
        let number = number.ok_or_else(|| self.fault("no number of a field"))?;
        let mut content = None;
        match tag & 7 {
            0 => drop(self.varint()?),
            1 => self.skip(8)?,
            2 => {
                let length = self.varint()?;
                let start = self.at;
                self.skip(length)?;
                content = Some(start..self.at);
            }
            5 => self.skip(4)?,
            _ => return Err(self.fault("a wire type that is not in use")),
        }
        Ok(Some(Field { number, whole: start..self.at, content }))
    }
}

/// A message on the way to items.
struct Group {
    parent: Option<usize>,
    /// Its field number.
    field: u32,
    /// What it has beside the messages on the way.
    rest: Vec<Range<usize>>,
}

/// An item: the message that it is in, and the bytes with tag and length.
struct Item {
    parent: Option<usize>,
    whole: Range<usize>,
}

/// A request as what leads to its items.
struct Tree<'r> {
    request: &'r [u8],
    groups: Vec<Group>,
    items: Vec<Item>,
}

impl Tree<'_> {
    fn read(&mut self, range: Range<usize>, levels: &[&[u32]], parent: Option<usize>) -> Result<(), EncodeError> {
        let Some((fields, deeper)) = levels.split_first() else { return Ok(()) };
        let mut reader = Reader { request: self.request, at: range.start, end: range.end };
        while let Some(field) = reader.next()? {
            match (field.nested(fields), parent) {
                (Some(_), _) if deeper.is_empty() => self.items.push(Item { parent, whole: field.whole }),
                (Some(content), _) => {
                    self.groups.push(Group { parent, field: field.number, rest: Vec::new() });
                    self.read(content, deeper, Some(self.groups.len() - 1))?;
                }
                (None, Some(parent)) => self.groups[parent].rest.push(field.whole),
                // A request has nothing but resources; what else it may have is not repeated.
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// The request with these items. Messages are closed from the inside out, so that their lengths are known.
    fn part(&self, items: &[Item]) -> Vec<u8> {
        // The messages that are open, outermost first, with what has been written of each.
        let mut open: Vec<(usize, Vec<u8>)> = Vec::new();
        let mut out = Vec::new();
        let mut path = Vec::new();
        for item in items {
            path.clear();
            let mut group = item.parent;
            while let Some(number) = group {
                path.push(number);
                group = self.groups[number].parent;
            }
            path.reverse();
            let common = open.iter().zip(&path).take_while(|((one, _), other)| one == *other).count();
            while open.len() > common {
                self.close(&mut open, &mut out);
            }
            for number in path.iter().skip(common) {
                let rest = self.groups[*number].rest.iter().map(|range| &self.request[range.clone()]);
                open.push((*number, rest.collect::<Vec<_>>().concat()));
            }
            let target = open.last_mut().map_or(&mut out, |(_, bytes)| bytes);
            target.extend_from_slice(&self.request[item.whole.clone()]);
        }
        while !open.is_empty() {
            self.close(&mut open, &mut out);
        }
        out
    }

    fn close(&self, open: &mut Vec<(usize, Vec<u8>)>, out: &mut Vec<u8>) {
        let Some((group, bytes)) = open.pop() else { return };
        let target = open.last_mut().map_or(out, |(_, bytes)| bytes);
        push_varint(target, u64::from(super::wire::length_tag(self.groups[group].field)));
        push_varint(target, bytes.len() as u64);
        target.extend_from_slice(&bytes);
    }
}
