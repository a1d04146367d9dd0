//! Protobuf written twice: once to learn the lengths, once into a buffer of exactly that size.
//!
//! Messages are written by functions over [`Sink`]. The first run of such a function counts and notes the length of every
//! nested message in the order in which they begin; the second takes them from there.

use super::wire::{length_tag, push_varint, varint_bytes};
use crate::encode::error::{EncodeError, MAX_REQUEST_BYTES};

/// Wire types of protobuf.
const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const FIXED_32: u32 = 5;

/// Where fields go.
pub(super) trait Sink {
    /// Bytes that are encoded already.
    fn raw(&mut self, bytes: &[u8]);
    /// A number.
    fn varint(&mut self, value: u64);
    /// A number of 64 bits as it is.
    fn raw_64(&mut self, value: u64);
    /// A number of 32 bits as it is.
    fn raw_32(&mut self, value: u32);
    /// A nested message of the field.
    fn message(&mut self, field: u32, content: impl FnOnce(&mut Self));

    #[inline]
    fn field_varint(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field << 3 | VARINT));
        self.varint(value);
    }

    /// As [`Sink::field_varint`], but nothing if it is 0, which is what readers take for a field that is not there.
    #[inline]
    fn nonzero_varint(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.field_varint(field, value);
        }
    }

    #[inline]
    fn fixed_64(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field << 3 | FIXED_64));
        self.raw_64(value);
    }

    #[inline]
    fn nonzero_fixed_64(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.fixed_64(field, value);
        }
    }

    #[inline]
    fn nonzero_fixed_32(&mut self, field: u32, value: u32) {
        if value != 0 {
            self.varint(u64::from(field << 3 | FIXED_32));
            self.raw_32(value);
        }
    }

    #[inline]
    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(length_tag(field)));
        self.varint(bytes.len() as u64);
        self.raw(bytes);
    }

    #[inline]
    fn nonempty_bytes(&mut self, field: u32, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.bytes(field, bytes);
        }
    }
}

/// Counts.
#[derive(Debug)]
pub(super) struct Counter<'l> {
    total: usize,
    lengths: &'l mut Vec<u32>,
}

impl Sink for Counter<'_> {
    #[inline]
    fn raw(&mut self, bytes: &[u8]) {
        self.total += bytes.len();
    }

    #[inline]
    fn varint(&mut self, value: u64) {
        self.total += varint_bytes(value);
    }

    #[inline]
    fn raw_64(&mut self, _: u64) {
        self.total += 8;
    }

    #[inline]
    fn raw_32(&mut self, _: u32) {
        self.total += 4;
    }

    #[inline]
    fn message(&mut self, field: u32, content: impl FnOnce(&mut Self)) {
        let (place, start) = (self.lengths.len(), self.total);
        self.lengths.push(0);
        content(self);
        let length = self.total - start;
        // What does not fit is refused before anything is written.
        self.lengths[place] = u32::try_from(length).unwrap_or(u32::MAX);
        self.total += varint_bytes(u64::from(length_tag(field))) + varint_bytes(length as u64);
    }
}

/// Writes.
#[derive(Debug)]
pub(super) struct Writer<'l> {
    out: Vec<u8>,
    lengths: std::slice::Iter<'l, u32>,
}

impl Sink for Writer<'_> {
    #[inline]
    fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    #[inline]
    fn varint(&mut self, value: u64) {
        push_varint(&mut self.out, value);
    }

    #[inline]
    fn raw_64(&mut self, value: u64) {
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    fn raw_32(&mut self, value: u32) {
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    fn message(&mut self, field: u32, content: impl FnOnce(&mut Self)) {
        let length = self.lengths.next().copied().unwrap_or_default();
        self.varint(u64::from(length_tag(field)));
        self.varint(u64::from(length));
        content(self);
    }

    #[inline]
    fn fixed_64(&mut self, field: u32, value: u64) {
        if field < 16 {
            let mut bytes = [0; 9];
            bytes[0] = (field << 3 | FIXED_64) as u8;
            bytes[1..].copy_from_slice(&value.to_le_bytes());
            self.out.extend_from_slice(&bytes);
        } else {
            self.varint(u64::from(field << 3 | FIXED_64));
            self.raw_64(value);
        }
    }
}

/// A message that can be written to any sink.
pub(super) trait Message {
    /// Writes its fields. Both runs write the same.
    fn write<S: Sink>(&self, sink: &mut S);
}

/// Appends the bytes of a message to `out`; nothing if it is too large. `lengths` is room that is used.
pub(super) fn encode(message: &impl Message, lengths: &mut Vec<u32>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    lengths.clear();
    let mut counter = Counter { total: 0, lengths };
    message.write(&mut counter);
    let total = counter.total;
    if total > MAX_REQUEST_BYTES {
        return Err(EncodeError::TooLarge { found: total, bound: MAX_REQUEST_BYTES });
    }
    out.reserve(total);
    let mut writer = Writer { out: std::mem::take(out), lengths: lengths.iter() };
    message.write(&mut writer);
    *out = writer.out;
    Ok(())
}
