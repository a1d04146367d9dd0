//! Records -> log records, field by field over all records of a set: no decision is made once a record that could be made
//! once a set.

use std::ops::Range;

use catchment_ipfix::{Namespace, Record, Records, Value, decode, enumeration_name, uptime_unix_nano};
use rustc_hash::FxHashMap;

use super::bound::Bound;
use super::form;
use super::layout::Layout;
use super::mapping::TimeForm;
use super::names::{Own, SAMPLED};
use super::plan::{Place, Plan, PlannedField, QuickTime, Reading, Target};
use super::row::{self, SetContext, time_text};
use super::value::{ValueWriter, rate as write_rate, transport};
use crate::logs::LogsTable;
use crate::sampled;
use crate::table::{AttributeTable, AttributeWriter, Cached, NameId, TextIds};

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const NANOS_PER_MILLI: i64 = 1_000_000;

/// Texts of values by the values, for one table.
#[derive(Debug)]
pub(super) struct Texts {
    ipv4: Cached<u32>,
    ipv6: Cached<u128>,
    mac: Cached<u64>,
    protocols: TextIds,
    /// Names of values by element.
    named: FxHashMap<(Namespace, u32, u16), TextIds>,
    /// When flows began and ended; room for the next records.
    times: [Vec<Option<i64>>; 2],
}

impl Default for Texts {
    fn default() -> Self {
        Self {
            ipv4: Cached::default(),
            ipv6: Cached::default(),
            mac: Cached::default(),
            protocols: TextIds::new(),
            named: FxHashMap::default(),
            times: Default::default(),
        }
    }
}

impl Texts {
    /// Forgets all: the next table numbers its texts anew.
    pub(super) fn clear(&mut self) {
        self.ipv4.clear();
        self.ipv6.clear();
        self.mac.clear();
        self.protocols.clear();
        self.named.clear();
    }
}

/// Whole records, one after the other.
#[derive(Debug, Clone, Copy)]
struct Run<'b, L> {
    bytes: &'b [u8],
    layout: L,
}

impl<'b, L: Layout> Run<'b, L> {
    /// The first bytes of a field of fixed length of each record.
    #[inline]
    fn field<const N: usize>(self, place: Place) -> impl ExactSizeIterator<Item = [u8; N]> + use<'b, N, L> {
        let Self { bytes, layout } = self;
        (0..layout.records()).map(move |record| {
            let field = bytes.get(layout.start(record, place)..).and_then(<[u8]>::first_chunk);
            field.copied().unwrap_or([0; N])
        })
    }

    /// A field of fixed length of each record as a number of at most 8 bytes.
    #[inline]
    fn number(self, place: Place, length: usize) -> impl Iterator<Item = u64> + use<'b, L> {
        let Self { bytes, layout } = self;
        (0..layout.records()).map(move |record| {
            let start = layout.start(record, place);
            let bytes = bytes.get(start..start + length).unwrap_or_default();
            bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte))
        })
    }

    /// The bytes of a field of one record.
    fn value(self, record: usize, field: &PlannedField) -> &'b [u8] {
        self.bytes.get(self.layout.span(record, field)).unwrap_or_default()
    }
}

/// Writes the records of `bytes`, which are whole and laid out as `layout` says.
pub(super) fn write<L: Layout>(
    values: &mut ValueWriter,
    texts: &mut Texts,
    table: &mut LogsTable,
    context: &SetContext<'_>,
    bound: &Bound,
    bytes: &[u8],
    layout: L,
) {
    let template = &context.set.template;
    let run = Run { bytes, layout };
    let records = || Records::new(template, bytes);
    let Bound { plan, names, .. } = bound;
    let [mut starts, mut ends] = std::mem::take(&mut texts.times);
    times(&mut starts, plan.start, run, context, records(), |times| times.start_unix_nano);
    times(&mut ends, plan.end, run, context, records(), |times| times.end_unix_nano);
    let known_or_zero = starts.iter().map(|time| time.unwrap_or(0));
    let rows = table.records_of(known_or_zero, context.set.receipt.time_unix_nano, context.resource);
    values.counts.records += rows.len() as u64;
    values.counts.unknown_values += plan.unknown * rows.len() as u64;
    let attributes = table.attributes();
    receipt(attributes, &rows, context);
    sampled::write_all(attributes, rows.clone(), SAMPLED, context.set.threshold);
    for (own, times) in [(Own::Start, &starts), (Own::End, &ends)] {
        flow_times(values, attributes, &rows, own, times, context.env.mapping.times);
    }
    texts.times = [starts, ends];
    let rates = Rates::new(context, plan, records());
    for field in &plan.fields {
        let (Target::Attribute(name) | Target::Transport(name)) = field.target else { continue };
        let Some(name) = names.get(name).copied() else { continue };
        let (place, length) = (field.place, usize::from(field.spec.length));
        let rows = rows.clone();
        let is_written = match field.reading {
            Reading::Skip => true,
            Reading::Value => false,
            Reading::Unsigned => unsigned(attributes, rows.clone(), name, run, place, length),
            Reading::Named => {
                let element = (field.spec.namespace, field.spec.enterprise, field.spec.id);
                let ids = texts.named.entry(element).or_insert_with(TextIds::new);
                // Above the range of integers nothing has a name.
                let is_small = length < 8 || run.number(place, length).all(|value| i64::try_from(value).is_ok());
                if is_small {
                    let name_of = |value| enumeration_name(&field.spec, value).map(std::borrow::Cow::Borrowed);
                    attributes.named_numbers_of(rows.clone(), name, run.number(place, length), ids, name_of);
                }
                is_small
            }
            Reading::Transport => {
                let (numbers, ids) = (run.number(place, length), &mut texts.protocols);
                let name_of = |value| Some(transport(value));
                attributes.named_numbers_of(rows.clone(), Own::Transport.id(), numbers, ids, name_of);
                true
            }
            Reading::Ipv4 => {
                let addresses = run.field(place).map(u32::from_be_bytes);
                attributes.cached_texts_of(rows.clone(), name, addresses, &mut texts.ipv4, form::ipv4);
                true
            }
            Reading::Ipv6 => {
                let addresses = run.field(place).map(u128::from_be_bytes);
                attributes.cached_texts_of(rows.clone(), name, addresses, &mut texts.ipv6, form::ipv6);
                true
            }
            Reading::Mac => {
                let addresses = run.number(place, 6);
                attributes.cached_texts_of(rows.clone(), name, addresses, &mut texts.mac, form::mac);
                true
            }
            Reading::Seconds => {
                let times = run.field(place).map(|bytes| i64::from(u32::from_be_bytes(bytes)) * NANOS_PER_SECOND);
                attributes.integers_of(rows.clone(), name, times);
                true
            }
            Reading::Milliseconds => {
                // A time out of range becomes too large a number, and is opaque.
                let times = run.field(place).map(|bytes| {
                    let nanos = u64::from_be_bytes(bytes).checked_mul(NANOS_PER_MILLI.unsigned_abs());
                    nanos.unwrap_or(u64::MAX)
                });
                attributes.unsigned_of(rows.clone(), name, times)
            }
        };
        if is_written {
            continue;
        }
        for ((record, row), rate) in rows.enumerate().zip(rates.iter()) {
            let value = decode(&field.spec, run.value(record, field), &context.env.context);
            let mut writer = AttributeWriter::new(attributes, row, false);
            match field.target {
                Target::Transport(_) => values.transport(&mut writer, name, field, &value, &context.env),
                _ => values.value(&mut writer, name, field, &value, &context.env, rate),
            }
        }
    }
    for list in &plan.repeated {
        let Some(name) = names.get(list.name) else { continue };
        for (record, row) in rows.clone().enumerate() {
            let fields = list.fields.iter().filter_map(|index| plan.fields.get(*index));
            let value = |field: &PlannedField| decode(&field.spec, run.value(record, field), &context.env.context);
            let decoded: Vec<(_, Value<'_>)> = fields.map(|field| (field, value(field))).collect();
            values.repeated(&mut AttributeWriter::new(attributes, row, false), *name, &decoded, &context.env);
        }
    }
    about(attributes, &rows, context, plan, records());
    rates.write(attributes, &rows, plan);
}

/// A number without sign; false if one of them is above the range of integers.
#[inline]
fn unsigned<L: Layout>(
    attributes: &mut AttributeTable,
    rows: Range<u16>,
    name: NameId,
    run: Run<'_, L>,
    place: Place,
    length: usize,
) -> bool {
    match length {
        1 => attributes.integers_of(rows, name, run.field(place).map(|[byte]| i64::from(byte))),
        2 => attributes.integers_of(rows, name, run.field(place).map(|bytes| i64::from(u16::from_be_bytes(bytes)))),
        4 => attributes.integers_of(rows, name, run.field(place).map(|bytes| i64::from(u32::from_be_bytes(bytes)))),
        8 => return attributes.unsigned_of(rows, name, run.field(place).map(u64::from_be_bytes)),
        _ => return attributes.unsigned_of(rows, name, run.number(place, length)),
    }
    true
}

/// When each flow began or ended, in place of what is in `times`.
fn times<'r, L: Layout>(
    times: &mut Vec<Option<i64>>,
    quick: Option<QuickTime>,
    run: Run<'_, L>,
    context: &SetContext<'_>,
    records: Records<'r, 'r>,
    of: impl Fn(catchment_ipfix::FlowTimes) -> Option<i64>,
) {
    let env = &context.env.context;
    times.clear();
    match (quick, env.uptime_ms) {
        (Some(QuickTime::Milliseconds(place)), _) => {
            let found = run.field(place).map(u64::from_be_bytes);
            times.extend(found.map(|time| i64::try_from(time).ok()?.checked_mul(NANOS_PER_MILLI)));
        }
        (Some(QuickTime::Seconds(place)), _) => {
            let found = run.field(place).map(u32::from_be_bytes);
            times.extend(found.map(|time| Some(i64::from(time) * NANOS_PER_SECOND)));
        }
        (Some(QuickTime::Uptime { place, is_alone }), uptime_ms) if is_alone || uptime_ms.is_some() => {
            let found = run.field(place).map(u32::from_be_bytes);
            times.extend(found.map(|uptime_ms| uptime_unix_nano(i64::from(uptime_ms), env)));
            if is_alone {
                return;
            }
        }
        (Some(QuickTime::Field(index)), _) => {
            let field = context.set.template.fields().get(index);
            let value = |record: Record<'_, '_>| match decode(field?, record.field(index)?, env) {
                Value::TimeUnixNano(time) => Some(time),
                _ => None,
            };
            times.extend(records.clone().map(value));
        }
        _ => return times.extend(records.map(|record| of(catchment_ipfix::flow_times(&record, env)))),
    }
    // The first form gives nothing where its value is out of range: the others are tried.
    if times.iter().any(Option::is_none) {
        for (time, record) in times.iter_mut().zip(records) {
            *time = time.or_else(|| of(catchment_ipfix::flow_times(&record, env)));
        }
    }
}

fn flow_times(
    values: &mut ValueWriter,
    attributes: &mut AttributeTable,
    rows: &Range<u16>,
    own: Own,
    times: &[Option<i64>],
    form: TimeForm,
) {
    if form == TimeForm::UnixNano && times.iter().all(Option::is_some) {
        attributes.integers_of(rows.clone(), own.id(), times.iter().map(|time| time.unwrap_or(0)));
        return;
    }
    for (row, time) in rows.clone().zip(times) {
        if let Some(time) = time {
            values.time(&mut AttributeWriter::new(attributes, row, false), own.id(), *time, form);
        }
    }
}

/// What all records of a message have in common.
fn receipt(attributes: &mut AttributeTable, rows: &Range<u16>, context: &SetContext<'_>) {
    let (set, form) = (context.set, context.env.mapping.times);
    attributes.text_of_all(rows.clone(), Own::FlowType.id(), set.message.version.as_str().as_bytes());
    attributes.int_of_all(rows.clone(), Own::Sequence.id(), i64::from(set.message.sequence));
    attributes.int_of_all(rows.clone(), Own::Domain.id(), i64::from(set.message.domain));
    attributes.int_of_all(rows.clone(), Own::Template.id(), i64::from(set.template.id()));
    let times =
        [(Own::TimeReceived, set.receipt.time_unix_nano), (Own::TimeExported, set.message.export_time_unix_nano)];
    for (own, time) in times {
        match time_text(time, form) {
            Some(text) => attributes.text_of_all(rows.clone(), own.id(), &text),
            None => attributes.int_of_all(rows.clone(), own.id(), time),
        }
    }
    if let Some(exporter) = context.exporter {
        attributes.text_of_all(rows.clone(), Own::SamplerAddress.id(), exporter.as_bytes());
    }
}

/// Kind and family of the records, and the names that options data tells.
fn about(
    attributes: &mut AttributeTable,
    rows: &Range<u16>,
    context: &SetContext<'_>,
    plan: &Plan,
    records: Records<'_, '_>,
) {
    if plan.is_options {
        attributes.text_of_all(rows.clone(), Own::RecordType.id(), b"options");
        for row in rows.clone() {
            AttributeWriter::new(attributes, row, false).list(Own::ScopeFields.id(), &plan.scope);
        }
    } else if let Some(family) = plan.constant_family {
        attributes.text_of_all(rows.clone(), Own::NetworkType.id(), family.as_bytes());
    } else if !plan.family.is_empty() {
        for (record, row) in records.clone().zip(rows.clone()) {
            if let Some(family) = row::family(plan, &record, &context.env) {
                AttributeWriter::new(attributes, row, false).text(Own::NetworkType.id(), family.as_bytes());
            }
        }
    }
    if !context.env.facts.is_none() && !plan.lookups.is_empty() {
        for (record, row) in records.zip(rows.clone()) {
            row::lookups(&mut AttributeWriter::new(attributes, row, false), plan, &record, &context.env);
        }
    }
}

/// Sampling rates of records.
enum Rates {
    One(Option<f64>),
    Each(Vec<Option<f64>>),
}

impl Rates {
    fn new(context: &SetContext<'_>, plan: &Plan, records: Records<'_, '_>) -> Self {
        match context.constant_rate(plan) {
            Some(rate) => Self::One(rate),
            None => Self::Each(records.map(|record| context.rate(plan, &record)).collect()),
        }
    }

    fn iter(&self) -> impl Iterator<Item = Option<f64>> {
        let (one, each) = match self {
            Self::One(rate) => (Some(*rate), [].as_slice()),
            Self::Each(rates) => (None, rates.as_slice()),
        };
        one.into_iter().cycle().chain(each.iter().copied())
    }

    fn write(&self, attributes: &mut AttributeTable, rows: &Range<u16>, plan: &Plan) {
        match self {
            Self::One(None) => {}
            Self::One(Some(rate)) if rate.fract() == 0.0 && *rate <= f64::from(u32::MAX) && !plan.has_scaled => {
                #[allow(clippy::cast_possible_truncation, reason = "checked to be a whole number of at most 32 bits")]
                attributes.int_of_all(rows.clone(), Own::SamplingRate.id(), *rate as i64);
            }
            _ => {
                for (row, rate) in rows.clone().zip(self.iter()) {
                    let Some(rate) = rate else { continue };
                    let mut writer = AttributeWriter::new(attributes, row, false);
                    write_rate(&mut writer, rate);
                    if plan.has_scaled {
                        writer.bool(Own::SamplingApplied.id(), true);
                    }
                }
            }
        }
    }
}
