//! Where the fields of records are, one record after the other.

use std::ops::Range;

use super::plan::{Place, PlannedField};

/// The places of the fields of some records.
pub(super) trait Layout: Copy {
    /// How many records there are.
    fn records(self) -> usize;

    /// Where a field of fixed length begins.
    fn start(self, record: usize, place: Place) -> usize;

    /// Where the value of a field of any length is.
    fn span(self, record: usize, field: &PlannedField) -> Range<usize>;
}

/// Records of one length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Even {
    pub(super) records: usize,
    pub(super) length: usize,
}

impl Layout for Even {
    #[inline]
    fn records(self) -> usize {
        self.records
    }

    #[inline]
    fn start(self, record: usize, place: Place) -> usize {
        record * self.length + place.offset
    }

    fn span(self, record: usize, field: &PlannedField) -> Range<usize> {
        let start = self.start(record, field.place);
        start..start + usize::from(field.spec.length)
    }
}

/// Records with values of variable length.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// For each record where it begins, and where each of its values of variable length ends.
    bases: Vec<usize>,
    /// For each record where its values of variable length begin.
    starts: Vec<usize>,
    /// Values of variable length in a record.
    variable: usize,
}

impl Index {
    /// Finds the fields of the first records of `bytes`: at most so many records, and none that begins after so many bytes.
    /// `runs` are the bytes of fixed length before each value of variable length and after the last. Gives where the last
    /// record ends, and whether no whole record follows.
    pub(super) fn fill(&mut self, bytes: &[u8], runs: &[usize], records: usize, enough: usize) -> (usize, bool) {
        let Some((tail, runs)) = runs.split_last() else { return (0, true) };
        self.bases.clear();
        self.starts.clear();
        self.variable = runs.len();
        let (mut end, mut taken) = (0, 0);
        while taken < records && (taken == 0 || end < enough) {
            let (bases, starts) = (self.bases.len(), self.starts.len());
            match self.record(bytes, end, runs, *tail) {
                Some(next) => end = next,
                None => {
                    self.bases.truncate(bases);
                    self.starts.truncate(starts);
                    return (end, true);
                }
            }
            taken += 1;
        }
        (end, false)
    }

    fn record(&mut self, bytes: &[u8], start: usize, runs: &[usize], tail: usize) -> Option<usize> {
        let mut at = start;
        self.bases.push(at);
        for run in runs {
            at += run;
            // RFC 7011 section 7: one byte, or 255 and two more.
            let (prefix, length) = match bytes.get(at..)? {
                [255, high, low, ..] => (3, usize::from(u16::from_be_bytes([*high, *low]))),
                [255, ..] | [] => return None,
                [length, ..] => (1, usize::from(*length)),
            };
            self.starts.push(at + prefix);
            at += prefix + length;
            self.bases.push(at);
        }
        at += tail;
        (at > start && at <= bytes.len()).then_some(at)
    }
}

impl Layout for &Index {
    fn records(self) -> usize {
        self.bases.len() / (self.variable + 1)
    }

    #[inline]
    fn start(self, record: usize, place: Place) -> usize {
        let base = self.bases.get(record * (self.variable + 1) + place.segment);
        base.map_or(usize::MAX / 2, |base| base + place.offset)
    }

    fn span(self, record: usize, field: &PlannedField) -> Range<usize> {
        let place = field.place;
        if !place.is_variable {
            let start = self.start(record, place);
            return start..start + usize::from(field.spec.length);
        }
        let start = self.starts.get(record * self.variable + place.segment).copied();
        let end = self.bases.get(record * (self.variable + 1) + place.segment + 1).copied();
        start.zip(end).map_or(0..0, |(start, end)| start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both forms of the length, empty values, a cut at every byte, and bounds on records and bytes.
    #[test]
    fn uneven_records() {
        // One byte, a value, two bytes, a value, one byte.
        let runs = [1, 2, 1];
        let first = [9, 1, 7, 8, 8, 255, 0, 2, 5, 5, 4];
        let bytes = [&first[..], &[9, 0, 8, 8, 0, 4]].concat();
        let mut index = Index::default();
        assert_eq!(index.fill(&bytes, &runs, 9, 99), (17, true));
        assert_eq!((&index).records(), 2);
        assert_eq!(index.bases, [0, 3, 10, 11, 13, 16]);
        assert_eq!(index.starts, [2, 8, 13, 16]);
        assert_eq!(index.fill(&bytes, &runs, 1, 99), (11, false));
        assert_eq!(index.fill(&bytes, &runs, 9, 5), (11, false));
        for end in 0..bytes.len() {
            let whole = if end < first.len() { 0 } else { first.len() };
            assert_eq!(index.fill(&bytes[..end], &runs, 9, 99), (whole, true), "cut at {end}");
            assert_eq!((&index).records(), usize::from(whole > 0));
        }
    }
}
