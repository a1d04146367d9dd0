//! The compact image of Apache DataSketches, little endian throughout.
//!
//! | bytes | empty | single item | full |
//! | --- | --- | --- | --- |
//! | 0 preamble, in 4-byte words | 2 | 2 | 5 |
//! | 1 serial version | 1 | 2 | 1 |
//! | 2 family | 15 | 15 | 15 |
//! | 3 flags: 1 empty, 2 level 0 sorted, 4 single item | 1 | 4 | 0 or 2 |
//! | 4, 5 `k` | yes | yes | yes |
//! | 6 smallest level capacity | 8 | 8 | 8 |
//! | 7 unused | 0 | 0 | 0 |
//! | 8.. | - | item | `n`, 8 bytes |
//! | 16, 17 smallest `k` merged | - | - | yes |
//! | 18 levels, 19 unused | - | - | yes |
//! | 20.. | - | - | level offsets, 4 bytes each |
//! | then | - | - | minimum, maximum, items |
//!
//! The offsets count from the beginning of an array that could hold the capacity of all levels and
//! is filled from its end; the part of it that is in use follows. An unsorted level 0 stands in
//! reverse order of arrival. The type of the items, double or float, is not in the image.

use super::compact::{MIN_LEVEL_CAPACITY, total_capacity};
use super::{KllSketch, MAX_LEVELS, MAX_N, MIN_K, SketchImageError};
use crate::key::{to_key, to_value};

const PREAMBLE_SHORT: u8 = 2;
const PREAMBLE_FULL: u8 = 5;
const VERSION: u8 = 1;
const VERSION_SINGLE: u8 = 2;
const FAMILY_KLL: u8 = 15;
const FLAG_EMPTY: u8 = 1;
const FLAG_SORTED: u8 = 2;
const FLAG_SINGLE: u8 = 4;
const SHORT_HEADER: usize = 8;
const FULL_HEADER: usize = 20;
const OFFSET_BYTES: usize = 4;

/// The type of the items in an image.
trait Item {
    const BYTES: usize;
    /// Reads an item from exactly [`Item::BYTES`] bytes.
    fn read(bytes: &[u8]) -> f64;
    fn write(value: f64, image: &mut Vec<u8>);
}

struct Double;

impl Item for Double {
    const BYTES: usize = size_of::<f64>();

    fn read(bytes: &[u8]) -> f64 {
        f64::from_bits(little_endian(bytes))
    }

    fn write(value: f64, image: &mut Vec<u8>) {
        image.extend_from_slice(&value.to_le_bytes());
    }
}

struct Float;

impl Item for Float {
    const BYTES: usize = size_of::<f32>();

    fn read(bytes: &[u8]) -> f64 {
        f64::from(f32::from_bits(little_endian(bytes) as u32))
    }

    fn write(value: f64, image: &mut Vec<u8>) {
        image.extend_from_slice(&(value as f32).to_le_bytes());
    }
}

impl KllSketch {
    /// The compact image with items of type double.
    ///
    /// Count, extremes, `k` and items are in it; the sum, the number of NaN and the state of the
    /// coins are not.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.write::<Double>()
    }

    /// The compact image with items of type float, half the size: each item is rounded to the
    /// nearest float, which keeps their order.
    #[must_use]
    pub fn to_float_bytes(&self) -> Vec<u8> {
        self.write::<Float>()
    }

    /// Reads a compact image with items of type double, and the older form in which a single item
    /// is written like many.
    ///
    /// The image is checked whole before anything is allocated: a sketch read from it obeys all
    /// rules, and its memory is at most a constant times the length of the image. Later coins come
    /// from `seed`. The sum is unknown until [`KllSketch::set_sum`].
    ///
    /// # Errors
    ///
    /// [`SketchImageError`] names the first byte that is wrong. Nothing in an image tells whether
    /// it holds doubles or floats: the wrong one mostly fails by its length, but not always.
    pub fn from_bytes(image: &[u8], seed: u64) -> Result<Self, SketchImageError> {
        read::<Double>(image, seed)
    }

    /// Like [`KllSketch::from_bytes`], with items of type float.
    ///
    /// # Errors
    ///
    /// As [`KllSketch::from_bytes`].
    pub fn from_float_bytes(image: &[u8], seed: u64) -> Result<Self, SketchImageError> {
        read::<Float>(image, seed)
    }

    fn write<I: Item>(&self) -> Vec<u8> {
        let (preamble, version, form) = match self.n() {
            0 => (PREAMBLE_SHORT, VERSION, FLAG_EMPTY),
            1 => (PREAMBLE_SHORT, VERSION_SINGLE, FLAG_SINGLE),
            _ => (PREAMBLE_FULL, VERSION, 0),
        };
        let sorted = if self.level0_sorted { FLAG_SORTED } else { 0 };
        let length = FULL_HEADER + self.num_levels() * OFFSET_BYTES + (2 + self.num_retained()) * I::BYTES;
        let mut image = Vec::with_capacity(length);
        image.extend_from_slice(&[preamble, version, FAMILY_KLL, form | sorted]);
        image.extend_from_slice(&self.k.to_le_bytes());
        image.extend_from_slice(&[MIN_LEVEL_CAPACITY as u8, 0]);
        if self.n() > 1 {
            image.extend_from_slice(&self.n().to_le_bytes());
            image.extend_from_slice(&self.min_k.to_le_bytes());
            image.extend_from_slice(&[self.num_levels() as u8, 0]);
            let mut offset = self.capacity - self.num_retained();
            for height in 0..self.num_levels() {
                image.extend_from_slice(&(offset as u32).to_le_bytes());
                offset += self.level(height).len();
            }
            I::write(self.moments.min, &mut image);
            I::write(self.moments.max, &mut image);
        }
        for &key in self.level(0).iter().rev() {
            I::write(to_value(key), &mut image);
        }
        for height in 1..self.num_levels() {
            for &key in self.level(height) {
                I::write(to_value(key), &mut image);
            }
        }
        image
    }
}

/// What the header of an image says, checked.
struct Header {
    n: u64,
    k: u16,
    min_k: u16,
    sorted: bool,
    levels: usize,
}

fn read<I: Item>(image: &[u8], seed: u64) -> Result<KllSketch, SketchImageError> {
    let header = read_header(image)?;
    let mut sketch = KllSketch::with_valid_k(header.k, seed);
    sketch.level0_sorted = header.sorted;
    if header.n == 0 {
        expect_length("empty", SHORT_HEADER, image)?;
        return Ok(sketch);
    }
    sketch.sum_known = false;
    if image[0] == PREAMBLE_SHORT {
        expect_length("single item", SHORT_HEADER + I::BYTES, image)?;
        let value = number(I::read(&image[SHORT_HEADER..]), SHORT_HEADER)?;
        sketch.moments.count = 1;
        sketch.moments.widen(value, value);
        sketch.items.push(to_key(value));
        return Ok(sketch);
    }

    let capacity = total_capacity(header.k, header.levels);
    let first_offset = check_offsets(image, header.levels, capacity)?;
    let retained = capacity - first_offset as usize;
    let extremes = FULL_HEADER + header.levels * OFFSET_BYTES;
    let items = extremes + 2 * I::BYTES;
    expect_length("full", items + retained * I::BYTES, image)?;
    let lengths = || (0..header.levels).map(|level| level_length(image, level, header.levels, capacity));
    let weights: u128 = lengths().enumerate().map(|(height, length)| (length as u128) << height).sum();
    if weights != u128::from(header.n) {
        return Err(SketchImageError::Weights { weights, n: header.n });
    }

    let min = number(I::read(&image[extremes..items - I::BYTES]), extremes)?;
    let max = number(I::read(&image[items - I::BYTES..items]), items - I::BYTES)?;
    let mut begin = items;
    for (height, length) in lengths().enumerate() {
        let end = begin + length * I::BYTES;
        let ascending = height > 0 || header.sorted;
        check_level::<I>(&image[begin..end], begin, ascending, min, max)?;
        begin = end;
    }

    sketch.min_k = header.min_k;
    sketch.capacity = capacity;
    sketch.moments.count = header.n;
    sketch.moments.min = min;
    sketch.moments.max = max;
    sketch.items.reserve_exact(retained);
    let mut starts = vec![0; header.levels];
    let mut end = image.len();
    for height in (0..header.levels).rev() {
        let begin = end - level_length(image, height, header.levels, capacity) * I::BYTES;
        let level = image[begin..end].chunks_exact(I::BYTES);
        starts[height] = sketch.items.len() as u32;
        let key = |item| to_key(I::read(item));
        match height {
            0 => sketch.items.extend(level.rev().map(key)),
            _ => sketch.items.extend(level.map(key)),
        }
        end = begin;
    }
    if header.levels > 1 {
        sketch.stack().starts = starts;
    }
    Ok(sketch)
}

/// Reads the fixed part of the image, which is there whole if this succeeds.
fn read_header(image: &[u8]) -> Result<Header, SketchImageError> {
    let short = |form, expected| SketchImageError::Length { form, expected, actual: image.len() };
    let Some((&[preamble, version, family, flags, k0, k1, m, _unused], rest)) =
        image.split_first_chunk::<SHORT_HEADER>()
    else {
        return Err(short("any", SHORT_HEADER));
    };
    let k = u16::from_le_bytes([k0, k1]);
    let form = flags & (FLAG_EMPTY | FLAG_SINGLE);
    let field = |offset, field, expected, actual: u8| SketchImageError::Field {
        offset,
        field,
        expected,
        actual: u64::from(actual),
    };
    if family != FAMILY_KLL {
        return Err(field(2, "family", "15 (KLL)", family));
    }
    if form == (FLAG_EMPTY | FLAG_SINGLE) || flags > (FLAG_EMPTY | FLAG_SORTED | FLAG_SINGLE) {
        let expected = "1 (empty), 4 (single item) or 0, plus 2 if level 0 is sorted";
        return Err(field(3, "flags", expected, flags));
    }
    let (expected_preamble, expected_version) = match form {
        FLAG_EMPTY => ((PREAMBLE_SHORT, "2 (empty)"), (VERSION, "1 (empty)")),
        FLAG_SINGLE => ((PREAMBLE_SHORT, "2 (single item)"), (VERSION_SINGLE, "2 (single item)")),
        _ => ((PREAMBLE_FULL, "5 (full)"), (VERSION, "1 (compact)")),
    };
    if preamble != expected_preamble.0 {
        return Err(field(0, "preamble words", expected_preamble.1, preamble));
    }
    if version != expected_version.0 {
        return Err(field(1, "serial version", expected_version.1, version));
    }
    let in_range = |offset, field, expected, actual: u64, valid: bool| {
        let error = SketchImageError::Field { offset, field, expected, actual };
        if valid { Ok(()) } else { Err(error) }
    };
    in_range(4, "k", "at least 8", k.into(), k >= MIN_K)?;
    let m_valid = u16::from(m) == MIN_LEVEL_CAPACITY;
    in_range(6, "smallest level capacity", "8", m.into(), m_valid)?;
    if form != 0 {
        return Ok(Header {
            n: u64::from(form == FLAG_SINGLE),
            k,
            min_k: k,
            sorted: flags & FLAG_SORTED != 0,
            levels: 1,
        });
    }
    let Some(&[n0, n1, n2, n3, n4, n5, n6, n7, min_k0, min_k1, levels, _unused]) =
        rest.first_chunk::<{ FULL_HEADER - SHORT_HEADER }>()
    else {
        return Err(short("full", FULL_HEADER));
    };
    let n = u64::from_le_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
    let min_k = u16::from_le_bytes([min_k0, min_k1]);
    in_range(8, "n", "between 1 and 2^61 - 1", n, (1..=MAX_N).contains(&n))?;
    let min_k_valid = (MIN_K..=k).contains(&min_k);
    in_range(16, "smallest k", "between 8 and k", min_k.into(), min_k_valid)?;
    let levels_valid = (1..=MAX_LEVELS).contains(&usize::from(levels));
    in_range(18, "levels", "between 1 and 61", levels.into(), levels_valid)?;
    Ok(Header { n, k, min_k, sorted: flags & FLAG_SORTED != 0, levels: usize::from(levels) })
}

/// Checks that the level offsets are there, ascend and stay within the capacity; returns the first.
fn check_offsets(image: &[u8], levels: usize, capacity: usize) -> Result<u32, SketchImageError> {
    let end = FULL_HEADER + levels * OFFSET_BYTES;
    if image.len() < end {
        return Err(SketchImageError::Length { form: "full", expected: end, actual: image.len() });
    }
    let most = capacity as u32;
    let mut least = 0;
    for level in 0..levels {
        let actual = level_offset(image, level);
        if !(least..=most).contains(&actual) {
            return Err(SketchImageError::LevelOffset {
                offset: FULL_HEADER + level * OFFSET_BYTES,
                level,
                least,
                most,
                actual,
            });
        }
        least = actual;
    }
    Ok(level_offset(image, 0))
}

/// The offset of a level in an image that has it.
fn level_offset(image: &[u8], level: usize) -> u32 {
    let at = FULL_HEADER + level * OFFSET_BYTES;
    little_endian(&image[at..at + OFFSET_BYTES]) as u32
}

/// The number of items of a level in an image whose offsets are checked.
fn level_length(image: &[u8], level: usize, levels: usize, capacity: usize) -> usize {
    let begin = level_offset(image, level) as usize;
    let end = if level + 1 == levels { capacity } else { level_offset(image, level + 1) as usize };
    end - begin
}

/// Checks the items of one level. Values are compared, not keys: other writers do not tell the
/// zeros apart.
fn check_level<I: Item>(
    bytes: &[u8],
    begin: usize,
    ascending: bool,
    min: f64,
    max: f64,
) -> Result<(), SketchImageError> {
    let mut least = min;
    for (index, item) in bytes.chunks_exact(I::BYTES).enumerate() {
        let offset = begin + index * I::BYTES;
        let value = number(I::read(item), offset)?;
        let problem = if value < min || value > max {
            "item must be between minimum and maximum"
        } else if ascending && value < least {
            "items of a sorted level must ascend"
        } else {
            least = value;
            continue;
        };
        return Err(SketchImageError::Item { offset, problem });
    }
    Ok(())
}

fn number(value: f64, offset: usize) -> Result<f64, SketchImageError> {
    if value.is_nan() {
        let problem = "value must be a number, got NaN";
        return Err(SketchImageError::Item { offset, problem });
    }
    Ok(value)
}

fn expect_length(form: &'static str, expected: usize, image: &[u8]) -> Result<(), SketchImageError> {
    if image.len() == expected {
        return Ok(());
    }
    Err(SketchImageError::Length { form, expected, actual: image.len() })
}

/// The unsigned number in at most eight bytes.
fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}
