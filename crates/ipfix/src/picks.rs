//! Some fields of a template, found in a record without looking at the others.

use crate::field::{FieldSpec, VARIABLE_LENGTH};
use crate::wire;

/// Fields that are wanted, each with what it is wanted for. Those of length 0, which have no value, are not among them, so
/// that a look at a record takes no more steps than the record has bytes.
#[derive(Debug, Clone)]
pub(crate) struct Picks<T>(Box<[Pick<T>]>);

#[derive(Debug, Clone, Copy)]
struct Pick<T> {
    /// Bytes of fixed fields between the field before and this one.
    skip: usize,
    /// Position in the template.
    index: u32,
    length: u16,
    /// Nothing for a field of variable length that is only in the way.
    wanted: Option<T>,
}

impl<T: Copy> Picks<T> {
    /// The fields for which `want` gives something.
    pub(crate) fn new(fields: &[FieldSpec], want: impl Fn(&FieldSpec) -> Option<T>) -> Self {
        let (mut picks, mut skip, mut end) = (Vec::new(), 0, 0);
        for (index, field) in fields.iter().enumerate() {
            let wanted = want(field).filter(|_| field.length > 0);
            if wanted.is_none() && !field.is_variable() {
                skip += usize::from(field.length);
                continue;
            }
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            picks.push(Pick { skip: std::mem::take(&mut skip), index, length: field.length, wanted });
            if wanted.is_some() {
                end = picks.len();
            }
        }
        picks.truncate(end);
        Self(picks.into())
    }

    /// What the fields are wanted for, in the order of the wire.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = T> {
        self.0.iter().filter_map(|pick| pick.wanted)
    }

    /// The wanted fields of a whole record: position in the template, what it is wanted for, value.
    pub(crate) fn of<'a>(&self, record: &'a [u8]) -> impl Iterator<Item = (u32, T, &'a [u8])> {
        let mut at = 0;
        let mut value = move |pick: &Pick<T>| {
            at += pick.skip;
            let (prefix, length) = match pick.length {
                VARIABLE_LENGTH => record.get(at..).and_then(wire::prefixed_length)?,
                length => (0, usize::from(length)),
            };
            let start = at + prefix;
            at = start + length;
            record.get(start..at)
        };
        self.0.iter().filter_map(move |pick| {
            let value = value(pick)?;
            pick.wanted.map(|wanted| (pick.index, wanted, value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picks(fields: &[(u16, u16)]) -> Picks<u16> {
        let fields: Vec<FieldSpec> =
            fields.iter().map(|&(id, length)| FieldSpec::ipfix(id, 0, length, false)).collect();
        Picks::new(&fields, |field| (field.id < 10).then_some(field.id))
    }

    /// Wanted fields before, between and after others, of fixed and of variable length.
    #[test]
    fn the_wanted_ones() {
        const ANY: u16 = VARIABLE_LENGTH;
        let picks = picks(&[(50, 2), (1, 1), (50, ANY), (50, 1), (2, ANY), (50, 1), (3, 2), (50, ANY), (50, 3)]);
        let record = [9, 9, 1, 2, 9, 9, 9, 255, 0, 2, 5, 6, 9, 7, 8, 1, 9, 9, 9, 9];
        let found: Vec<_> = picks.of(&record).collect();
        assert_eq!(found, [(1, 1, &[1][..]), (4, 2, &[5, 6]), (6, 3, &[7, 8])]);
        assert_eq!(picks.wanted().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(picks.of(&record[..9]).count(), 1, "a record that is cut");
    }

    /// Neither fields without bytes nor those behind the last wanted one are looked at.
    #[test]
    fn the_unwanted_ones() {
        let picks = picks(&[(1, 0), (2, 1), (3, 0), (50, VARIABLE_LENGTH), (4, 0)]);
        assert_eq!(picks.0.len(), 1);
        assert_eq!(picks.of(&[7, 0]).collect::<Vec<_>>(), [(1, 2, &[7][..])]);
    }
}
