//! What kept records stand for, where a sampler has dropped others.
//!
//! The threshold that a record has passed goes with its bytes until it is decoded, and is then written as two attributes,
//! unless nothing was rejected.

use std::io::Write as _;
use std::ops::Range;

use catchment_sampling::Threshold;

use crate::table::{AttributeTable, AttributeWriter, NameId};

/// The threshold of a kept record, as in `tracestate`: hexadecimal digits without the zeros at the end.
pub const THRESHOLD: &str = "sampling.threshold";
/// How many records a kept one stands for, itself included; a floating point number above 1.
pub const ADJUSTED_COUNT: &str = "sampling.adjusted_count";

/// Numbers of [`THRESHOLD`] and [`ADJUSTED_COUNT`] in a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names {
    pub(crate) threshold: NameId,
    pub(crate) adjusted_count: NameId,
}

/// A threshold as text.
struct Text {
    digits: [u8; 16],
    length: usize,
}

impl Text {
    fn of(threshold: Threshold) -> Self {
        let mut digits = [0; 16];
        let mut rest = &mut digits[..];
        // There are 14 digits at most.
        let _ = write!(rest, "{threshold}");
        let length = 16 - rest.len();
        Self { digits, length }
    }

    fn bytes(&self) -> &[u8] {
        self.digits.get(..self.length).unwrap_or_default()
    }
}

/// Writes what the records of `rows` stand for, which are later than all that have such an attribute.
pub(crate) fn write_all(attributes: &mut AttributeTable, rows: Range<u16>, names: Names, threshold: Threshold) {
    if threshold == Threshold::KEEP_ALL || rows.is_empty() {
        return;
    }
    attributes.text_of_all(rows.clone(), names.threshold, Text::of(threshold).bytes());
    let adjusted_count = threshold.adjusted_count();
    for row in rows {
        AttributeWriter::new(attributes, row, true).double(names.adjusted_count, adjusted_count);
    }
}

/// Writes what one record stands for.
pub(crate) fn write(attributes: &mut AttributeWriter<'_>, names: Names, threshold: Threshold) {
    if threshold != Threshold::KEEP_ALL {
        attributes.text(names.threshold, Text::of(threshold).bytes());
        attributes.double(names.adjusted_count, threshold.adjusted_count());
    }
}
