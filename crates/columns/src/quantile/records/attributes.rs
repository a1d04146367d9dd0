//! An attributes table, and what stands in it for the keys that are asked for.

use std::ops::Range;

use arrow::array::{
    Array, BooleanArray, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt8Array, UInt16Array,
};
use arrow::datatypes::{UInt8Type, UInt16Type};
use otel_arrow_dfe_pdata::arrays::{MaybeDictArrayAccessor, NullableArrayAccessor};
use otel_arrow_dfe_pdata::otlp::attributes::AttributeValueType;
use otel_arrow_dfe_pdata::schema::consts;

use super::bytes::Blobs;
use super::cbor;
use super::deltas::Deltas;
use super::join::{Join, NO_ROW, ParentIds, Parents};
use crate::ColumnsError;
use crate::quantile::number::Scalar;

/// Text as it is stored.
enum Texts<'a> {
    Plain(&'a StringArray),
    Byte(&'a UInt8Array, &'a StringArray),
    Short(&'a UInt16Array, &'a StringArray),
}

impl<'a> Texts<'a> {
    fn new(column: &'a dyn Array) -> Result<Self, ColumnsError> {
        let any = column.as_any();
        if let Some(plain) = any.downcast_ref::<StringArray>() {
            return Ok(Self::Plain(plain));
        }
        let strings = |values: &'a dyn Array| values.as_any().downcast_ref::<StringArray>();
        let found = if let Some(column) = any.downcast_ref::<DictionaryArray<UInt8Type>>() {
            strings(column.values()).map(|values| Self::Byte(column.keys(), values))
        } else if let Some(column) = any.downcast_ref::<DictionaryArray<UInt16Type>>() {
            strings(column.values()).map(|values| Self::Short(column.keys(), values))
        } else {
            None
        };
        found.ok_or_else(|| malformed(format!("text column of type {}", column.data_type())))
    }

    /// Position in the dictionary, if there is one.
    #[inline]
    fn code(&self, row: usize) -> Option<usize> {
        match self {
            Self::Plain(_) => None,
            Self::Byte(keys, _) => keys.is_valid(row).then(|| usize::from(keys.value(row))),
            Self::Short(keys, _) => keys.is_valid(row).then(|| usize::from(keys.value(row))),
        }
    }

    /// Null stands for empty: writers leave out what is the default of its type.
    fn at(&self, row: usize) -> &'a [u8] {
        let of =
            |values: &'a StringArray, at: usize| if values.is_valid(at) { values.value(at).as_bytes() } else { b"" };
        match (self, self.code(row)) {
            (Self::Plain(values), _) => of(values, row),
            (Self::Byte(_, values) | Self::Short(_, values), Some(code)) => of(values, code),
            (_, None) => b"",
        }
    }
}

/// Codes of the texts of all rows.
pub(super) enum TextCodes<'a> {
    Byte(&'a [u8]),
    Short(&'a [u16]),
}

/// The columns of an attributes table, and for each wanted key the row of each parent.
pub(super) struct Attributes<'a> {
    types: &'a UInt8Array,
    text: Option<Texts<'a>>,
    int: Option<MaybeDictArrayAccessor<'a, Int64Array>>,
    double: Option<MaybeDictArrayAccessor<'a, Float64Array>>,
    bool: Option<&'a BooleanArray>,
    bytes: Option<Blobs<'a>>,
    encoded: Option<Blobs<'a>>,
    rows: Vec<Vec<u32>>,
    /// Whether all values are texts.
    are_texts: bool,
}

fn malformed(reason: impl ToString) -> ColumnsError {
    ColumnsError::Otap { table: "attributes", reason: reason.to_string() }
}

impl<'a> Attributes<'a> {
    /// Reads `batch`. Where a parent has a key twice, the last row wins.
    pub(super) fn new(batch: &'a RecordBatch, keys: &[String], parents: &Parents) -> Result<Self, ColumnsError> {
        let column = |name: &str| batch.column_by_name(name);
        let types = column(consts::ATTRIBUTE_TYPE)
            .and_then(|c| c.as_any().downcast_ref::<UInt8Array>())
            .ok_or_else(|| malformed("column `type` is missing or not uint8"))?;
        let names = column(consts::ATTRIBUTE_KEY).ok_or_else(|| malformed("column `key` is missing"))?;
        let names = Texts::new(names)?;
        let parent_ids = ParentIds::new(batch)?;
        let mut rows = vec![vec![NO_ROW; parents.len()]; keys.len()];
        let wanted = |name: &str| keys.iter().position(|key| key == name);
        let deltas = Deltas::new(batch, types);
        let join = Joining { parents, ids: &parent_ids, deltas, slots: &mut rows };
        match names {
            Texts::Plain(names) => join.run(PlainStretches { names, at: 0, wanted }),
            Texts::Byte(codes, names) => join.run_coded(codes.values(), Wanted::new(names, wanted)),
            Texts::Short(codes, names) => join.run_coded(codes.values(), Wanted::new(names, wanted)),
        }
        let blobs = |name: &str| column(name).map(|column| Blobs::new(column)).transpose().map_err(malformed);
        Ok(Self {
            types,
            text: column(consts::ATTRIBUTE_STR).map(|column| Texts::new(column)).transpose()?,
            int: column(consts::ATTRIBUTE_INT)
                .map(MaybeDictArrayAccessor::<Int64Array>::try_new)
                .transpose()
                .map_err(malformed)?,
            double: column(consts::ATTRIBUTE_DOUBLE)
                .map(MaybeDictArrayAccessor::<Float64Array>::try_new)
                .transpose()
                .map_err(malformed)?,
            bool: column(consts::ATTRIBUTE_BOOL).and_then(|c| c.as_any().downcast_ref::<BooleanArray>()),
            bytes: blobs(consts::ATTRIBUTE_BYTES)?,
            encoded: blobs(consts::ATTRIBUTE_SER)?,
            rows,
            are_texts: types.values().iter().fold(true, |all, kind| all & (*kind == AttributeValueType::Str as u8)),
        })
    }

    /// The row in which `parent` has the key at `key` of the wanted keys.
    #[inline]
    pub(super) fn row(&self, key: usize, parent: u32) -> Option<usize> {
        let row = *self.rows.get(key)?.get(parent as usize)?;
        (row != NO_ROW).then_some(row as usize)
    }

    /// Where all values are texts from a dictionary: for a wanted key the row of each parent, and the code of each row.
    pub(super) fn by_text_code(&self, key: usize) -> Option<(&[u32], TextCodes<'a>)> {
        let codes = match self.text.as_ref().filter(|_| self.are_texts)? {
            Texts::Plain(_) => return None,
            Texts::Byte(keys, _) if keys.null_count() == 0 => TextCodes::Byte(keys.values()),
            Texts::Short(keys, _) if keys.null_count() == 0 => TextCodes::Short(keys.values()),
            _ => return None,
        };
        Some((self.rows.get(key)?, codes))
    }

    /// The position in the dictionary of texts of what stands in `row`, if it is a text from a dictionary.
    #[inline]
    pub(super) fn text_code(&self, row: usize) -> Option<usize> {
        if self.types.value(row) != AttributeValueType::Str as u8 {
            return None;
        }
        self.text.as_ref()?.code(row)
    }

    /// What stands in `row`, or at the end of `steps` into it.
    ///
    /// A column that is not there stands for the default of its type: writers leave out columns of zeros.
    pub(super) fn value(&self, row: usize, steps: &[String]) -> Option<Scalar<'a>> {
        let kind = self.types.value(row);
        let is = |wanted: AttributeValueType| kind == wanted as u8;
        let is_encoded = is(AttributeValueType::Map) || is(AttributeValueType::Slice);
        if !steps.is_empty() && !is_encoded {
            return None;
        }
        if is(AttributeValueType::Str) {
            Some(Scalar::Text(self.text.as_ref().map_or(b"", |c| c.at(row))))
        } else if is(AttributeValueType::Int) {
            Some(Scalar::Int(self.int.value_at(row).unwrap_or(0)))
        } else if is(AttributeValueType::Double) {
            Some(Scalar::Double(self.double.value_at(row).unwrap_or(0.0)))
        } else if is(AttributeValueType::Bool) {
            Some(Scalar::Bool(self.bool.is_some_and(|c| c.is_valid(row) && c.value(row))))
        } else if is(AttributeValueType::Bytes) {
            Some(Scalar::Bytes(self.bytes.as_ref().map_or(b"", |c| c.at(row))))
        } else if is_encoded {
            let encoded = self.encoded.as_ref().map_or(&b""[..], |c| c.at(row));
            if steps.is_empty() { Some(Scalar::Bytes(encoded)) } else { cbor::at(encoded, steps) }
        } else {
            None
        }
    }
}

/// A table on its way to its parents.
struct Joining<'s, 'a> {
    parents: &'s Parents,
    ids: &'s ParentIds<'a>,
    deltas: Option<Deltas<'a>>,
    slots: &'s mut [Vec<u32>],
}

impl Joining<'_, '_> {
    /// By the codes of names.
    fn run_coded<K: Copy + Eq + Into<usize>>(self, codes: &[K], wanted: Wanted) {
        if self.deltas.is_none() && are_mixed(codes) {
            let of_row = |(row, code): (usize, &K)| Some((wanted.of_code((*code).into())?, row..row + 1));
            self.run(codes.iter().enumerate().filter_map(of_row));
        } else {
            self.run(Stretches { codes, at: 0, wanted });
        }
    }

    fn run(self, stretches: impl Iterator<Item = (usize, Range<usize>)>) {
        let Self { parents, ids, deltas, slots } = self;
        let Some(deltas) = deltas else { return ids.dispatch(parents, Join { slots, stretches }) };
        let mut decoded = Vec::new();
        for (wanted, rows) in stretches {
            ids.copy(rows.clone(), &mut decoded);
            deltas.decode(rows.clone(), &mut decoded);
            parents.put(rows, &decoded, ids, &mut slots[wanted]);
        }
    }
}

/// As [`Stretches`], of names without a dictionary.
struct PlainStretches<'a, W> {
    names: &'a StringArray,
    at: usize,
    wanted: W,
}

impl<W: Fn(&str) -> Option<usize>> Iterator for PlainStretches<'_, W> {
    type Item = (usize, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let names = self.names;
        while self.at < names.len() {
            let start = self.at;
            self.at += 1;
            if names.is_valid(start)
                && let Some(wanted) = (self.wanted)(names.value(start))
            {
                let same = |row: &usize| names.is_valid(*row) && names.value(*row) == names.value(start);
                self.at += (self.at..names.len()).take_while(same).count();
                return Some((wanted, start..self.at));
            }
        }
        None
    }
}

/// For each code of a name the number of the name, if it is wanted.
struct Wanted(Vec<Option<usize>>);

impl Wanted {
    fn new(names: &StringArray, wanted: impl Fn(&str) -> Option<usize>) -> Self {
        let of_code = |at| if names.is_valid(at) { wanted(names.value(at)) } else { None };
        Self((0..names.len()).map(of_code).collect())
    }

    /// The code of a null may be anything, and in no dictionary.
    #[inline]
    fn of_code(&self, code: usize) -> Option<usize> {
        self.0.get(code).copied().flatten()
    }
}

/// Whether neighbours mostly have different names, as far as the first ones tell: so are tables that were not sorted to
/// be sent.
fn are_mixed<K: Eq>(codes: &[K]) -> bool {
    const LOOKED_AT: usize = 64;
    let first = &codes[..codes.len().min(LOOKED_AT)];
    first.windows(2).filter(|pair| pair[0] != pair[1]).count() > first.len() / 4
}

/// The stretches of rows with a wanted name, and the number of the name. Tables are mostly sorted by name: what is not
/// wanted is passed over in stretches.
struct Stretches<'a, K> {
    codes: &'a [K],
    at: usize,
    wanted: Wanted,
}

impl<K: Copy + Eq + Into<usize>> Iterator for Stretches<'_, K> {
    type Item = (usize, Range<usize>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let start = self.at;
            let code = *self.codes.get(start)?;
            self.at += run_length(&self.codes[start..], code);
            if let Some(wanted) = self.wanted.of_code(code.into()) {
                return Some((wanted, start..self.at));
            }
        }
    }
}

/// How many of `codes` are `code` at the beginning; the first is.
#[inline]
fn run_length<K: Copy + Eq>(codes: &[K], code: K) -> usize {
    const STRIDE: usize = 32;
    let mut length = 1;
    if codes.get(1) == Some(&code) {
        // Without a branch in between, so that a stride is a few vector comparisons.
        let same = |chunk: &&[K]| chunk.iter().fold(true, |same, other| same & (*other == code));
        length = codes.chunks_exact(STRIDE).take_while(same).count() * STRIDE;
        length += codes[length..].iter().take_while(|other| **other == code).count();
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever lies beyond the first stride.
    #[test]
    fn stretches_end_where_the_code_changes() {
        for length in [1, 2, 31, 32, 33, 64, 100] {
            let mut codes = vec![7_u8; length];
            assert_eq!(run_length(&codes, 7), length);
            codes.extend([8, 7]);
            assert_eq!(run_length(&codes, 7), length);
        }
    }
}
