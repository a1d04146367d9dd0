//! What can be wrong with a sketch or its bytes.

use super::{MAX_N, MIN_K};

/// An operation that a sketch refuses; the sketch is then unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KllError {
    /// `k` is too small.
    #[error("k must be between {MIN_K} and 65535, got {k}")]
    K {
        /// The value given.
        k: u16,
    },
    /// The count would leave the range in which the weights of all levels can be written.
    #[error("count must not exceed {MAX_N}: have {have}, {more} more")]
    Count {
        /// Observations so far.
        have: u64,
        /// Observations to add.
        more: u64,
    },
    /// A weight of zero.
    #[error("weight must be at least 1, got 0")]
    Weight,
}

/// Bytes that are not a valid compact image of a KLL sketch.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum SketchImageError {
    /// The image does not have the length that its own header asks for.
    #[error("{form} KLL image must be {expected} bytes long, got {actual}")]
    Length {
        /// The form of the image: `empty`, `single item`, `full`, or `any` if it has no header.
        form: &'static str,
        /// Length that the header asks for; the least possible one if the header is cut.
        expected: usize,
        /// Length of the image.
        actual: usize,
    },
    /// A field of the header has a value that is not allowed.
    #[error("byte {offset}: {field} must be {expected}, got {actual}")]
    Field {
        /// Where the field begins.
        offset: usize,
        /// Name of the field.
        field: &'static str,
        /// What is allowed.
        expected: &'static str,
        /// What is there.
        actual: u64,
    },
    /// The level offsets do not ascend or leave the array of the capacity.
    #[error("byte {offset}: offset of level {level} must be between {least} and {most}, got {actual}")]
    LevelOffset {
        /// Where the offset stands.
        offset: usize,
        /// Level, at most 60.
        level: usize,
        /// Offset of the level below.
        least: u32,
        /// Capacity of all levels.
        most: u32,
        /// What is there.
        actual: u32,
    },
    /// The weights of the items do not add up to the count.
    #[error("byte 8: n must be the sum of the weights {weights}, got {n}")]
    Weights {
        /// Sum of the weights of the items.
        weights: u128,
        /// Count in the header.
        n: u64,
    },
    /// An item is NaN, out of order, or outside minimum and maximum.
    #[error("byte {offset}: {problem}")]
    Item {
        /// Where the item begins.
        offset: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
}
