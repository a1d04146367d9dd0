//! The values of a dictionary, each once, by number.

use std::hash::BuildHasher as _;

use arrow::array::{
    Array, ArrayDataBuilder, ArrayRef, BinaryArray, FixedSizeBinaryArray, PrimitiveArray, StringArray, make_array,
    new_null_array,
};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, DurationNanosecondType, Int32Type, Int64Type};
use hashbrown::{DefaultHashBuilder, HashTable};

/// Values that keys of 16 bits can name.
const WIDE: usize = 1 << 16;
/// Bytes of values kept; more than that is no dictionary.
const MAX_BYTES: usize = 4 << 20;

/// Values by number.
#[derive(Debug, Default)]
pub(super) struct Entries {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Hashes with numbers: a table that grows would have to read all values otherwise.
    index: HashTable<(u64, u32)>,
    /// Seeded: values come from anywhere.
    hasher: DefaultHashBuilder,
    /// How many the receiver knows.
    pub(super) sent: usize,
}

impl Entries {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Values by number as an array of a type.
    pub(super) fn array(&self, value: &DataType, from: usize, to: usize) -> ArrayRef {
        let Self { bytes, ends, .. } = self;
        let start = from.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
        let end = to.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or(0);
        let raw = bytes.get(start as usize..end as usize).unwrap_or_default();
        let mut data = ArrayDataBuilder::new(value.clone()).len(to - from);
        if matches!(*value, DataType::Utf8 | DataType::Binary) {
            let ends = ends.get(from..to).unwrap_or_default().iter();
            let offsets: Vec<i32> = std::iter::once(0).chain(ends.map(|end| (end - start) as i32)).collect();
            data = data.add_buffer(Buffer::from_vec(offsets));
        }
        let data = data.add_buffer(Buffer::from(raw)).build();
        data.map_or_else(|_| new_null_array(value, to - from), make_array)
    }

    /// The value with a number.
    pub(super) fn get(&self, number: usize) -> &[u8] {
        value_at(&self.bytes, &self.ends, number)
    }

    /// The number of a value, which is added if it is new; nothing if there is no room for it.
    #[inline]
    pub(super) fn intern(&mut self, value: &[u8]) -> Option<u16> {
        let Self { bytes, ends, index, hasher, .. } = self;
        let hash = hasher.hash_one(value);
        let is_it = |(other, number): &(u64, u32)| *other == hash && value_at(bytes, ends, *number as usize) == value;
        if let Some((_, number)) = index.find(hash, is_it) {
            return u16::try_from(*number).ok();
        }
        if ends.len() >= WIDE || bytes.len() + value.len() > MAX_BYTES {
            return None;
        }
        let number = ends.len() as u32;
        bytes.extend_from_slice(value);
        ends.push(bytes.len() as u32);
        let _ = index.insert_unique(hash, (hash, number), |(hash, _)| *hash);
        u16::try_from(number).ok()
    }
}

fn value_at<'b>(bytes: &'b [u8], ends: &[u32], number: usize) -> &'b [u8] {
    let start = number.checked_sub(1).map_or(0, |before| ends[before] as usize);
    &bytes[start..ends[number] as usize]
}

/// The values of an array as bytes.
pub(super) enum Values<'a> {
    Text(&'a StringArray),
    Bytes(&'a BinaryArray),
    Fixed(&'a FixedSizeBinaryArray),
    Int32(&'a PrimitiveArray<Int32Type>),
    Int64(&'a [i64]),
}

impl<'a> Values<'a> {
    /// Nothing if values of the type have no dictionaries.
    pub(super) fn of(array: &'a ArrayRef) -> Option<Self> {
        let any = array.as_any();
        Some(match array.data_type() {
            DataType::Utf8 => Self::Text(any.downcast_ref()?),
            DataType::Binary => Self::Bytes(any.downcast_ref()?),
            DataType::FixedSizeBinary(_) => Self::Fixed(any.downcast_ref()?),
            DataType::Int32 => Self::Int32(any.downcast_ref()?),
            DataType::Int64 => Self::Int64(any.downcast_ref::<PrimitiveArray<Int64Type>>()?.values()),
            DataType::Duration(_) => {
                Self::Int64(any.downcast_ref::<PrimitiveArray<DurationNanosecondType>>()?.values())
            }
            _ => return None,
        })
    }

    /// The bytes of a value, those of a number in `room`.
    #[inline]
    pub(super) fn get<'b>(&self, row: usize, room: &'b mut [u8; 8]) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            Self::Text(array) => array.value(row).as_bytes(),
            Self::Bytes(array) => array.value(row),
            Self::Fixed(array) => array.value(row),
            Self::Int32(array) => {
                room[..4].copy_from_slice(&array.value(row).to_le_bytes());
                &room[..4]
            }
            Self::Int64(values) => {
                *room = values[row].to_le_bytes();
                room
            }
        }
    }
}
