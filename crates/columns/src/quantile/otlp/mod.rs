//! Observations out of the bytes of OTLP requests (opentelemetry-proto, `ExportMetricsServiceRequest` and
//! `ExportLogsServiceRequest`), without a conversion.
//!
//! Only what is asked for is looked at: names, values, times and wanted attributes. All else, unknown fields included, is
//! stepped over by its length. Fields may come in any order; the last one wins where a field may stand once only, and
//! parts of a message that come several times are taken together, as protobuf has it.

pub(super) mod fields;
mod logs;
mod memo;
mod points;
pub(super) mod value;
pub(super) mod wire;

use super::intern::{ABSENT, NotUtf8};
use super::number::{self, Scalar};
use super::observations::{Fate, Observations, index};
use super::query::ValueSource;
use super::reader::{Bound, RECORD, Reader};
pub(super) use memo::Memo;
pub(super) use points::kind_of;
use value::{Scratch, Slots};
use wire::Fault;

/// Which request the bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtlpSignal {
    /// `ExportLogsServiceRequest`.
    Logs,
    /// `ExportMetricsServiceRequest`.
    Metrics,
}

/// Bytes that are no OTLP request. Offsets are from the beginning of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OtlpError {
    /// A field or message is longer than what holds it.
    #[error("otlp request is cut short at byte {offset}: a field ends beyond the message that holds it")]
    Truncated {
        /// Where the field begins that does not end.
        offset: usize,
    },
    /// A variable-length integer of more than 64 bits.
    #[error("otlp request has an integer of more than 64 bits at byte {offset}")]
    Varint {
        /// Where it begins.
        offset: usize,
    },
    /// A tag with a wire type that does not exist or is not in use, or with field number 0.
    #[error("otlp request has a field of unknown wire type or number at byte {offset}")]
    Tag {
        /// Where the rest of the message after the tag begins.
        offset: usize,
    },
    /// A known field with another wire type than its own.
    #[error("otlp request has a field of the wrong wire type before byte {offset}")]
    FieldType {
        /// Where the rest of the message after the field begins.
        offset: usize,
    },
    /// A text that is not UTF-8.
    #[error("otlp request has a text that is not utf-8 at byte {offset}")]
    Utf8 {
        /// Where the text begins.
        offset: usize,
    },
    /// Lists and maps within each other beyond the bound.
    #[error("otlp request has an attribute nested deeper than {max} lists and maps at byte {offset}")]
    Depth {
        /// Where the value begins that is too deep.
        offset: usize,
        /// The bound.
        max: usize,
    },
}

pub(super) fn read(
    reader: &mut Reader,
    signal: OtlpSignal,
    request: &[u8],
    now: i64,
    out: &mut Observations,
) -> Result<(), OtlpError> {
    reader.group_of_series.begin(reader.interner.len());
    let mut walk = Walk::new(reader, now, out);
    match (signal, &walk.reader.query.source) {
        (OtlpSignal::Logs, ValueSource::LogAttribute { text, .. }) => {
            let text = *text;
            logs::request(&mut walk, request, text)
        }
        (OtlpSignal::Metrics, ValueSource::Metric { .. }) => points::request(&mut walk, request),
        _ => Ok(()),
    }
    .map_err(|fault| fault.within(request))
}

/// A walk through one request: where it is and what it found.
struct Walk<'r, 'a> {
    reader: &'r mut Reader,
    slots: Slots<'a>,
    /// Numbers of the values of the grouping attributes.
    numbers: Vec<u32>,
    /// Hash of those that are not attributes of the records themselves.
    owner: u64,
    /// Series of all records of the present owner, where their own attributes are not asked for.
    settled: Option<u32>,
    /// Whether to look for the attributes of a record as they are.
    by_memo: bool,
    scratch: Scratch,
    now: i64,
    out: &'r mut Observations,
}

impl<'r, 'a> Walk<'r, 'a> {
    fn new(reader: &'r mut Reader, now: i64, out: &'r mut Observations) -> Self {
        let slots = Slots::new(&reader.bound.wanted);
        let numbers = vec![ABSENT; reader.bound.group_by.len()];
        // A weight is not remembered.
        let weighs = reader.bound.weight.as_ref().is_some_and(|bound| bound.place == RECORD);
        let asked = !weighs && !reader.bound.wanted[RECORD].is_empty();
        let by_memo = asked && reader.memo.begin(reader.interner.generation());
        Self { reader, slots, numbers, owner: 0, settled: None, by_memo, scratch: Scratch::default(), now, out }
    }

    /// Takes the attributes that are fields `field` of the messages given, and numbers those that group.
    fn owner(
        &mut self,
        place: usize,
        messages: impl Iterator<Item = Result<&'a [u8], Fault>>,
        field: u32,
    ) -> Result<(), Fault> {
        if self.reader.bound.wanted[place].is_empty() {
            return Ok(());
        }
        self.slots.clear(place);
        for message in messages {
            for attribute in wire::messages(message?, field) {
                self.slots.take(place, &self.reader.bound.wanted[place], attribute?)?;
            }
        }
        self.number(place)?;
        self.owner = self.reader.bound.hash_owner(&self.numbers);
        self.settled = None;
        Ok(())
    }

    /// Numbers the grouping attributes of one place.
    fn number(&mut self, place: usize) -> Result<(), Fault> {
        let Reader { bound, interner, .. } = &mut *self.reader;
        for (number, bound) in self.numbers.iter_mut().zip(&bound.group_by) {
            if bound.place != place {
                continue;
            }
            if let Some(text) = self.slots.text(bound) {
                *number = interner.text(text).map_err(|NotUtf8| Fault::utf8(text))?;
            } else {
                let value = self.slots.scalar(bound, &mut self.scratch)?;
                *number = interner.value(value).map_err(|NotUtf8| not_utf8(value))?;
            }
        }
        Ok(())
    }

    fn scalar(&mut self, bound: &Bound) -> Result<Option<Scalar<'_>>, Fault> {
        self.slots.scalar(bound, &mut self.scratch)
    }

    /// Decides on an item by its value. Whether it is observed so far.
    #[inline]
    fn judge(&mut self, value: Result<f64, Fate>, time: i64) -> bool {
        let time = if time == 0 { self.now } else { time };
        self.out.judge(value, self.reader.query.non_finite, || time)
    }

    /// Takes the weight of an item whose attributes are in the slots. Whether it has a valid one.
    #[inline]
    fn weigh(&mut self) -> Result<bool, Fault> {
        let Some(bound) = &self.reader.bound.weight else { return Ok(true) };
        let scalar = self.slots.scalar(bound, &mut self.scratch)?;
        let weight = number::weight(scalar, || self.out.draw(self.out.values.len().saturating_sub(1)));
        match weight {
            Some(weight) => self.out.weights.push(weight),
            None => self.out.refuse_last(Fate::BadWeight),
        }
        Ok(weight.is_some())
    }

    /// The number of the series of an item whose attributes are in the slots.
    fn series(&mut self) -> Result<u32, Fault> {
        self.number(RECORD)?;
        Ok(self.reader.interner.series_of(&self.numbers))
    }

    /// The number of the series of an item with attributes that came before in the same bytes; else their hash.
    #[inline]
    fn remembered(&mut self, attributes: &[u8]) -> Result<u32, u64> {
        let Reader { bound, interner, memo, .. } = &mut *self.reader;
        let hash = memo.hash(self.owner, attributes);
        let is_owner = |series| {
            let numbers = interner.numbers_of(series).iter().zip(&self.numbers).zip(&bound.group_by);
            self.owner == 0 || numbers.fold(true, |is, ((a, b), bound)| is & (a == b || bound.place == RECORD))
        };
        memo.find(hash, attributes, is_owner).ok_or(hash)
    }

    /// Puts the item that is observed last into its series.
    #[inline]
    fn put(&mut self, series: u32) {
        let seen = &mut self.out.series;
        let group = self.reader.group_of_series.get_or_insert_with(series as usize, || {
            seen.push(series);
            index(seen.len() - 1)
        });
        self.out.groups.push(group);
    }
}

fn not_utf8(value: Option<Scalar<'_>>) -> Fault {
    match value {
        Some(Scalar::Text(text)) => Fault::utf8(text),
        _ => Fault::utf8(&[]),
    }
}
