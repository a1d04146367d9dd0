//! Times: from the forms of the wire to nanoseconds since 1970, and when a flow began and ended.

use crate::context::{DecodeContext, TimeEncoding};
use crate::field::FieldSpec;
use crate::records::Record;
use crate::value::{Value, decode};

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const NANOS_PER_MILLI: i64 = 1_000_000;
const NANOS_PER_MICRO: i64 = 1_000;

/// Seconds from 1900, where NTP counts from, to 1970.
const NTP_UNIX_OFFSET_SECONDS: i64 = 2_208_988_800;

/// Seconds in an NTP era.
const NTP_ERA_SECONDS: i64 = 1 << 32;

/// Start of NTP era 1, 2036-02-07 in Unix seconds: the reference for the era when the export time is not known.
const NTP_ERA_1_UNIX_SECONDS: i64 = NTP_ERA_SECONDS - NTP_UNIX_OFFSET_SECONDS;

/// 2000-01-01 in Unix seconds.
const YEAR_2000_UNIX_SECONDS: i64 = 946_684_800;

/// Nanoseconds of a year.
const YEAR_NANOS: u64 = 31_557_600_000_000_000;

/// Bits of an NTP fraction that dateTimeMicroseconds does not use (RFC 7011 section 6.1.9).
const NTP_MICROSECONDS_UNUSED_BITS: u64 = 0x7ff;

/// A uptime further ahead of that of the message than this counts from before the counter wrapped.
const UPTIME_HALF_RANGE_MS: i64 = 1 << 31;

/// Unix seconds in 4 or 8 bytes.
pub(crate) fn seconds(bytes: &[u8]) -> Option<i64> {
    let seconds = match bytes.len() {
        4 | 8 => crate::wire::unsigned(bytes)?,
        _ => return None,
    };
    i64::try_from(seconds).ok()?.checked_mul(NANOS_PER_SECOND)
}

/// Unix milliseconds in 8 bytes.
pub(crate) fn milliseconds(bytes: &[u8]) -> Option<i64> {
    let milliseconds = u64::from_be_bytes(bytes.try_into().ok()?);
    i64::try_from(milliseconds).ok()?.checked_mul(NANOS_PER_MILLI)
}

/// A time of 8 bytes in the encoding of the context; `micro` for dateTimeMicroseconds.
pub(crate) fn high_resolution(bytes: &[u8], context: &DecodeContext, micro: bool) -> Option<i64> {
    let raw = u64::from_be_bytes(bytes.try_into().ok()?);
    match context.time_encoding {
        TimeEncoding::UnixNano => i64::try_from(raw).ok(),
        TimeEncoding::Ntp => Some(ntp_to_unix_nano(raw, context.export_time_unix_nano, micro)),
        TimeEncoding::Auto => {
            let ntp = ntp_to_unix_nano(raw, context.export_time_unix_nano, micro);
            let plain =
                i64::try_from(raw).ok().filter(|&plain| is_plain_nanos(plain, ntp, context.export_time_unix_nano));
            Some(plain.unwrap_or(ntp))
        }
    }
}

/// Whether a value is meant as nanoseconds since 1970 (`plain`) and not as the NTP timestamp that `ntp` is read from.
fn is_plain_nanos(plain: i64, ntp: i64, export_time_unix_nano: i64) -> bool {
    if export_time_unix_nano == 0 {
        return (YEAR_2000_UNIX_SECONDS..NTP_ERA_1_UNIX_SECONDS).contains(&plain.div_euclid(NANOS_PER_SECOND));
    }
    let far = |time: i64| time.abs_diff(export_time_unix_nano);
    far(ntp) > 10 * YEAR_NANOS && far(plain) <= YEAR_NANOS
}

/// An NTP timestamp (RFC 5905 section 6) as nanoseconds since 1970, rounded to what the type can tell. The era is the
/// one that brings it closest to `near_unix_nano`.
fn ntp_to_unix_nano(raw: u64, near_unix_nano: i64, micro: bool) -> i64 {
    let near = match near_unix_nano.div_euclid(NANOS_PER_SECOND) {
        0 => NTP_ERA_1_UNIX_SECONDS,
        seconds => seconds,
    };
    let fraction = if micro { raw & !NTP_MICROSECONDS_UNUSED_BITS } else { raw } & u64::from(u32::MAX);
    let in_era = i64::try_from(raw >> 32).unwrap_or_default() - NTP_UNIX_OFFSET_SECONDS;
    let eras = (near - in_era + NTP_ERA_SECONDS / 2).div_euclid(NTP_ERA_SECONDS);
    let unix_seconds = in_era + eras * NTP_ERA_SECONDS;
    // Rounding gives back exactly what an exporter had before it made a fraction of 2^32 of it.
    let units: u64 = if micro { 1_000_000 } else { 1_000_000_000 };
    let rounded = i64::try_from((fraction * units + (1 << 31)) >> 32).unwrap_or_default();
    let nanos = if micro { rounded * NANOS_PER_MICRO } else { rounded };
    unix_seconds.saturating_mul(NANOS_PER_SECOND).saturating_add(nanos)
}

/// An exporter that seems to be up for longer (20 years) has no clock, or its messages have none.
const LONGEST_UPTIME_NANOS: i64 = 20 * 365 * 86_400 * NANOS_PER_SECOND;

/// When a flow began and ended, in nanoseconds since 1970. What is not known is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowTimes {
    /// First packet of the flow.
    pub start_unix_nano: Option<i64>,
    /// Last packet of the flow.
    pub end_unix_nano: Option<i64>,
}

/// A field that says when a flow began or ended, or what such a field needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeField {
    role: Role,
    form: Form,
    index: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Start,
    End,
    Both,
    SystemInit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The value is a time.
    Absolute,
    /// Milliseconds after the start of the exporter.
    Uptime,
    /// Microseconds before the export.
    Age,
}

/// The elements looked at, best first: flow times by resolution, then relative ones, then times of observation.
const TIME_ELEMENTS: [(u16, Role, Form); 17] = [
    (156, Role::Start, Form::Absolute),
    (157, Role::End, Form::Absolute),
    (154, Role::Start, Form::Absolute),
    (155, Role::End, Form::Absolute),
    (152, Role::Start, Form::Absolute),
    (153, Role::End, Form::Absolute),
    (150, Role::Start, Form::Absolute),
    (151, Role::End, Form::Absolute),
    (22, Role::Start, Form::Uptime),
    (21, Role::End, Form::Uptime),
    (158, Role::Start, Form::Age),
    (159, Role::End, Form::Age),
    (325, Role::Both, Form::Absolute),
    (324, Role::Both, Form::Absolute),
    (323, Role::Both, Form::Absolute),
    (322, Role::Both, Form::Absolute),
    (160, Role::SystemInit, Form::Absolute),
];

/// Finds the time fields of a template, best first; of a repeated element the first field counts.
pub(crate) fn time_fields(fields: &[FieldSpec]) -> Box<[TimeField]> {
    let mut found = [None; TIME_ELEMENTS.len()];
    for (index, field) in fields.iter().enumerate() {
        let place = TIME_ELEMENTS.iter().position(|&(id, ..)| field.is_iana(id));
        if let Some(slot) = place.and_then(|place| found.get_mut(place)) {
            let _: &mut usize = slot.get_or_insert(index);
        }
    }
    let present = TIME_ELEMENTS
        .iter()
        .zip(found)
        .filter_map(|(&(_, role, form), index)| index.map(|index| TimeField { role, form, index }));
    present.collect()
}

/// Tells when the flow of a record began and ended.
///
/// Taken is the first usable of: nanoseconds, microseconds, milliseconds, seconds (elements 156/157 to 150/151), the
/// uptime of the exporter (22/21) once its start is known, microseconds before the export (158/159), and the time of
/// observation (325 to 322). The start of the exporter comes from the header (NetFlow), else from
/// systemInitTimeMilliseconds (160) in the record, in whatever order the fields stand, else from the context.
#[must_use]
pub fn flow_times(record: &Record<'_, '_>, context: &DecodeContext) -> FlowTimes {
    let mut times = FlowTimes::default();
    for field in record.template().time_fields() {
        let starts = matches!(field.role, Role::Start | Role::Both) && times.start_unix_nano.is_none();
        let ends = matches!(field.role, Role::End | Role::Both) && times.end_unix_nano.is_none();
        if !(starts || ends) {
            continue;
        }
        let time = time_of(record, field, context);
        if starts {
            times.start_unix_nano = time;
        }
        if ends {
            times.end_unix_nano = time;
        }
    }
    times
}

fn time_of(record: &Record<'_, '_>, field: &TimeField, context: &DecodeContext) -> Option<i64> {
    match (value_of(record, field, context)?, field.form) {
        (Value::TimeUnixNano(time), Form::Absolute) => Some(time),
        (Value::Unsigned(uptime_ms), Form::Uptime) => absolute(record, i64::try_from(uptime_ms).ok()?, context),
        (Value::Unsigned(age_us), Form::Age) => {
            let age = i64::try_from(age_us).ok()?.checked_mul(NANOS_PER_MICRO)?;
            context.export_time_unix_nano.checked_sub(age)
        }
        _ => None,
    }
}

/// The time at an uptime of the exporter.
fn absolute(record: &Record<'_, '_>, uptime_ms: i64, context: &DecodeContext) -> Option<i64> {
    if context.uptime_ms.is_some() {
        return uptime_unix_nano(uptime_ms, context);
    }
    let init_field = record.template().time_fields().iter().rfind(|field| field.role == Role::SystemInit);
    let init = match init_field.and_then(|field| value_of(record, field, context)) {
        Some(Value::TimeUnixNano(time)) => Some(time),
        _ => context.system_init_unix_nano,
    };
    let mut context = *context;
    context.system_init_unix_nano = init;
    uptime_unix_nano(uptime_ms, &context)
}

/// The time at an uptime of the exporter, in nanoseconds since 1970, as flowStartSysUpTime and flowEndSysUpTime (22, 21)
/// give it: by the uptime in the header (NetFlow), else by the start of the exporter that the context knows.
///
/// The counter has 32 bits and wraps after 49.7 days: of the times that it may mean the one closest to the export is taken,
/// if there is a clock that can be believed.
#[must_use]
pub fn uptime_unix_nano(uptime_ms: i64, context: &DecodeContext) -> Option<i64> {
    if let Some(export_uptime_ms) = context.uptime_ms {
        let ahead = uptime_ms - i64::from(export_uptime_ms);
        let ahead = if ahead > UPTIME_HALF_RANGE_MS { ahead - (1 << 32) } else { ahead };
        return context.export_time_unix_nano.checked_add(ahead.checked_mul(NANOS_PER_MILLI)?);
    }
    let init = context.system_init_unix_nano?;
    let time = init.checked_add(uptime_ms.checked_mul(NANOS_PER_MILLI)?)?;
    let up = context.export_time_unix_nano.checked_sub(init)?;
    let has_clock = context.export_time_unix_nano != 0 && up.abs() <= LONGEST_UPTIME_NANOS;
    if !has_clock || uptime_ms > i64::from(u32::MAX) {
        return Some(time);
    }
    let range = (1 << 32) * NANOS_PER_MILLI;
    let ranges = (context.export_time_unix_nano.checked_sub(time)?.checked_add(range / 2)?).div_euclid(range);
    time.checked_add(ranges.checked_mul(range)?)
}

fn value_of<'a>(record: &Record<'_, 'a>, field: &TimeField, context: &DecodeContext) -> Option<Value<'a>> {
    let spec = record.template().fields().get(field.index)?;
    Some(decode(spec, record.field(field.index)?, context))
}

#[cfg(test)]
mod tests;
