//! Records of a data set, cut by their template.

use std::iter::FusedIterator;
use std::slice;

use crate::field::FieldSpec;
use crate::template::{Extent, Template};
use crate::wire;

/// Cursor over the records of one data set.
///
/// Records are taken until fewer bytes are left than the shortest record has; what is left is padding, whatever its
/// value (RFC 7011 section 3.3.1). To decode a set in several steps keep [`Records::position`] and go on later with
/// [`Records::resume`].
#[derive(Debug, Clone)]
pub struct Records<'t, 'a> {
    template: &'t Template,
    bytes: &'a [u8],
    position: usize,
    overrun: bool,
}

impl<'t, 'a> Records<'t, 'a> {
    /// Starts at the first record of `bytes`, the content of a data set without its header.
    #[must_use]
    pub fn new(template: &'t Template, bytes: &'a [u8]) -> Self {
        Self::resume(template, bytes, 0)
    }

    /// Goes on at a position that [`Records::position`] gave before for the same template and bytes.
    #[must_use]
    pub fn resume(template: &'t Template, bytes: &'a [u8], position: usize) -> Self {
        Self { template, bytes, position: position.min(bytes.len()), overrun: false }
    }

    /// Where the next record starts, in bytes.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// The bytes after the last record taken; the padding once there is no next record.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    /// Whether the records ended because a value of variable length reaches past the end of the set. Never so for the
    /// sets that a session admits.
    #[must_use]
    pub fn is_overrun(&self) -> bool {
        self.overrun
    }
}

impl<'t, 'a> Iterator for Records<'t, 'a> {
    type Item = Record<'t, 'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest();
        match self.template.extent(rest) {
            Extent::Whole(length) => {
                let bytes = rest.get(..length)?;
                self.position += length;
                Some(Record { template: self.template, bytes })
            }
            Extent::Padding => None,
            Extent::Overrun => {
                self.overrun = true;
                None
            }
        }
    }
}

impl FusedIterator for Records<'_, '_> {}

/// One record: its template and its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Record<'t, 'a> {
    template: &'t Template,
    bytes: &'a [u8],
}

impl<'t, 'a> Record<'t, 'a> {
    /// The template that the record follows.
    #[must_use]
    pub fn template(&self) -> &'t Template {
        self.template
    }

    /// The bytes of the whole record, length prefixes included.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// All fields in the order of the wire, each with the bytes of its value (without a length prefix).
    #[must_use]
    pub fn fields(&self) -> Fields<'t, 'a> {
        Fields { specs: self.template.fields().iter(), rest: self.bytes }
    }

    /// The bytes of field `index` of the template. Takes constant time when the template has no values of variable
    /// length.
    #[must_use]
    pub fn field(&self, index: usize) -> Option<&'a [u8]> {
        if let Some(offsets) = self.template.offsets() {
            let length = usize::from(self.template.fields().get(index)?.length);
            return self.bytes.get(*offsets.get(index)?..)?.get(..length);
        }
        self.fields().nth(index).map(|(_, bytes)| bytes)
    }
}

/// The fields of a record, made by [`Record::fields`].
#[derive(Debug, Clone)]
pub struct Fields<'t, 'a> {
    specs: slice::Iter<'t, FieldSpec>,
    rest: &'a [u8],
}

impl<'t, 'a> Iterator for Fields<'t, 'a> {
    type Item = (&'t FieldSpec, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let spec = self.specs.next()?;
        let (prefix, length) =
            if spec.is_variable() { wire::prefixed_length(self.rest)? } else { (0, usize::from(spec.length)) };
        let (value, rest) = self.rest.get(prefix..)?.split_at_checked(length)?;
        self.rest = rest;
        Some((spec, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, self.specs.size_hint().1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::VARIABLE_LENGTH;
    use crate::template::Kind;

    fn template(lengths: &[u16]) -> Template {
        let fields = lengths.iter().map(|&length| FieldSpec::ipfix(82, 0, length, false));
        Template::new(256, Kind::Flow, fields.collect()).expect("a template")
    }

    /// Records end where the rest is shorter than a record; the rest is padding even when it is not zero.
    #[test]
    fn padding_is_what_is_too_short() {
        let template = template(&[2, 1]);
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        let mut records = Records::new(&template, &bytes);
        assert_eq!(records.by_ref().count(), 2);
        assert_eq!(records.rest(), [7, 8]);
        assert!(!records.is_overrun());
        assert!(records.next().is_none());
    }

    /// An empty value of variable length is a value, and what follows it is still found.
    #[test]
    fn empty_values() {
        let template = template(&[VARIABLE_LENGTH, 1, VARIABLE_LENGTH]);
        let bytes = [0, 7, 1, 9, 255, 0, 0, 8, 0];
        let records: Vec<Vec<&[u8]>> =
            Records::new(&template, &bytes).map(|record| record.fields().map(|(_, value)| value).collect()).collect();
        assert_eq!(records, [[&[][..], &[7], &[9]], [&[], &[8], &[]]]);
    }

    /// A cursor that is put down after each record and taken up again sees the same records.
    #[test]
    fn resumed_at_every_record() {
        let template = template(&[1, VARIABLE_LENGTH]);
        let bytes = [1, 1, 1, 2, 2, 2, 2, 3, 0, 4];
        let whole: Vec<&[u8]> = Records::new(&template, &bytes).map(|record| record.bytes()).collect();
        let (mut stepped, mut position) = (Vec::new(), 0);
        loop {
            let mut records = Records::resume(&template, &bytes, position);
            let Some(record) = records.next() else { break };
            stepped.push(record.bytes());
            position = records.position();
        }
        assert_eq!(whole, [&[1, 1, 1][..], &[2, 2, 2, 2], &[3, 0]]);
        assert_eq!(stepped, whole);
    }

    /// Fields by index are those of the walk, in both layouts.
    #[test]
    fn fields_by_index() {
        for lengths in [[2, 0, 1], [2, 0, VARIABLE_LENGTH]] {
            let template = template(&lengths);
            let record = Records::new(&template, &[1, 2, 1, 4, 5]).next().expect("a record");
            let walked: Vec<&[u8]> = record.fields().map(|(_, value)| value).collect();
            assert_eq!(walked.len(), 3);
            for (index, value) in walked.iter().enumerate() {
                assert_eq!(record.field(index), Some(*value));
            }
            assert_eq!(record.field(3), None);
        }
    }

    /// A value past the end ends the records and says so; those before it stand.
    #[test]
    fn overrun() {
        let template = template(&[VARIABLE_LENGTH]);
        let mut records = Records::new(&template, &[1, 5, 4, 1]);
        assert_eq!(records.by_ref().count(), 1);
        assert!(records.is_overrun());
        assert_eq!(records.rest(), [4, 1]);
    }
}
