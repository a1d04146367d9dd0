use super::*;
use crate::message::parse_header;
use crate::records::Records;
use crate::template::{Kind, Template};

/// 2026-11-30T09:44:28Z.
const EXPORT_SECONDS: u32 = 1_796_031_868;

fn context() -> DecodeContext {
    context_at(EXPORT_SECONDS)
}

fn context_at(export_seconds: u32) -> DecodeContext {
    let mut header = vec![0, 10, 0, 16];
    header.extend(export_seconds.to_be_bytes());
    header.extend([0; 8]);
    parse_header(&header, 0).expect("a header").context()
}

fn value<'a>(id: u16, bytes: &'a [u8], context: &DecodeContext) -> Value<'a> {
    decode(&FieldSpec::ipfix(id, 0, bytes.len() as u16, false), bytes, context)
}

fn ntp(unix_seconds: i64, nanos: u64) -> [u8; 8] {
    let seconds = ((unix_seconds + NTP_UNIX_OFFSET_SECONDS) as u64) & 0xffff_ffff;
    ((seconds << 32) | ((nanos << 32) / 1_000_000_000)).to_be_bytes()
}

/// Seconds in both widths, milliseconds, and values that no time can be.
#[test]
fn unix_times() {
    let context = context();
    assert_eq!(value(150, &[0, 0, 0, 2], &context), Value::TimeUnixNano(2_000_000_000));
    assert_eq!(value(150, &[255; 4], &context), Value::TimeUnixNano(4_294_967_295_000_000_000));
    assert_eq!(value(150, &[0, 0, 0, 0, 0, 0, 0, 2], &context), Value::TimeUnixNano(2_000_000_000));
    assert_eq!(value(150, &[255; 8], &context), Value::Opaque(&[255; 8]));
    assert_eq!(value(152, &[0, 0, 0, 0, 0, 0, 0, 2], &context), Value::TimeUnixNano(2_000_000));
    assert_eq!(value(152, &[255; 8], &context), Value::Opaque(&[255; 8]));
    assert_eq!(value(152, &[0; 4], &context), Value::Opaque(&[0; 4]));
}

/// NTP times come back exactly as they were before they were made fractions of 2^32.
#[test]
fn ntp_times() {
    let context = context();
    let seconds = i64::from(EXPORT_SECONDS) - 7;
    for nanos in [0, 1, 2, 3, 340_000_000, 500_000_000, 999_999_998, 999_999_999] {
        let expected = seconds * NANOS_PER_SECOND + nanos as i64;
        assert_eq!(value(156, &ntp(seconds, nanos), &context), Value::TimeUnixNano(expected));
    }
    for micros in [0, 1, 123_456, 999_999] {
        let mut bytes = ntp(seconds, micros * 1_000 + 500);
        bytes[7] = 0xff;
        let expected = seconds * NANOS_PER_SECOND + micros as i64 * 1_000;
        let Value::TimeUnixNano(time) = value(154, &bytes, &context) else {
            panic!("no time");
        };
        assert!(time == expected || time == expected + 1_000, "microseconds only: {time}");
        assert_eq!(time % 1_000, 0);
    }
    assert_eq!(value(156, &[0; 7], &context), Value::Opaque(&[0; 7]));
}

/// The bits that dateTimeMicroseconds does not use change nothing.
#[test]
fn unused_bits_of_microseconds() {
    let bytes = ntp(i64::from(EXPORT_SECONDS), 250_000_000);
    let mut noisy = bytes;
    noisy[6] |= 0x07;
    noisy[7] = 0xff;
    assert_eq!(value(154, &noisy, &context()), value(154, &bytes, &context()));
    assert_ne!(value(156, &noisy, &context()), value(156, &bytes, &context()));
}

/// Around the end of the NTP era the export time decides.
#[test]
fn ntp_eras() {
    let wrap = NTP_ERA_1_UNIX_SECONDS;
    for (export, time) in [(wrap - 5, wrap - 10), (wrap + 5, wrap - 10), (wrap - 5, wrap + 3), (wrap + 9, wrap + 3)] {
        let context = context_at(export as u32);
        assert_eq!(value(156, &ntp(time, 0), &context), Value::TimeUnixNano(time * NANOS_PER_SECOND));
    }
    let no_export_time = context_at(0);
    let time = i64::from(EXPORT_SECONDS);
    assert_eq!(value(156, &ntp(time, 0), &no_export_time), Value::TimeUnixNano(time * NANOS_PER_SECOND));
}

/// Exporters that send plain nanoseconds, when told so.
#[test]
fn plain_nanoseconds() {
    let mut context = context();
    context.time_encoding = TimeEncoding::UnixNano;
    let time = 1_767_225_600_123_456_789_i64;
    assert_eq!(value(325, &time.to_be_bytes(), &context), Value::TimeUnixNano(time));
    assert_eq!(value(325, &[255; 8], &context), Value::Opaque(&[255; 8]));
    assert_eq!(value(150, &[0, 0, 0, 2], &context), Value::TimeUnixNano(2_000_000_000));
}

/// Without being told, a value is taken for what makes sense at the time of the export.
#[test]
fn encoding_by_plausibility() {
    let context = context();
    assert_eq!(context.time_encoding, TimeEncoding::Auto);
    let export = i64::from(EXPORT_SECONDS) * NANOS_PER_SECOND;
    let year = YEAR_NANOS as i64;
    for plain in [export, export - year + 1, export + year - 1] {
        assert_eq!(value(325, &plain.to_be_bytes(), &context), Value::TimeUnixNano(plain));
        assert_eq!(value(324, &plain.to_be_bytes(), &context), Value::TimeUnixNano(plain), "microseconds by type");
    }
    for seconds in [i64::from(EXPORT_SECONDS), i64::from(EXPORT_SECONDS) - 9 * 31_557_600] {
        assert_eq!(value(325, &ntp(seconds, 0), &context), Value::TimeUnixNano(seconds * NANOS_PER_SECOND));
    }
    // Neither makes sense: then what the RFC says.
    let odd = export - 3 * year;
    let mut strict = context;
    strict.time_encoding = TimeEncoding::Ntp;
    assert_eq!(value(325, &odd.to_be_bytes(), &context), value(325, &odd.to_be_bytes(), &strict));
    assert_ne!(value(325, &export.to_be_bytes(), &strict), Value::TimeUnixNano(export), "told to be NTP");
}

/// The same without a time of export.
#[test]
fn encoding_without_export_time() {
    let context = context_at(0);
    let plain = i64::from(EXPORT_SECONDS) * NANOS_PER_SECOND + 5;
    assert_eq!(value(325, &plain.to_be_bytes(), &context), Value::TimeUnixNano(plain));
    let seconds = i64::from(EXPORT_SECONDS);
    assert_eq!(value(325, &ntp(seconds, 0), &context), Value::TimeUnixNano(seconds * NANOS_PER_SECOND));
    let early = [0, 0, 0, 1, 0, 0, 0, 0];
    assert_eq!(value(325, &early, &context), Value::TimeUnixNano((NTP_ERA_1_UNIX_SECONDS + 1) * NANOS_PER_SECOND));
}

/// Flow times of a record with fields of the given elements and values.
fn times(fields: &[(u16, &[u8])], context: &DecodeContext) -> (Option<i64>, Option<i64>) {
    let specs = fields.iter().map(|(id, bytes)| FieldSpec::ipfix(*id, 0, bytes.len() as u16, false));
    let template = Template::new(256, Kind::Flow, specs.collect()).expect("a template");
    let bytes: Vec<u8> = fields.iter().flat_map(|(_, bytes)| bytes.to_vec()).collect();
    let record = Records::new(&template, &bytes).next().expect("a record");
    let times = flow_times(&record, context);
    (times.start_unix_nano, times.end_unix_nano)
}

const SECOND: &[u8] = &[0, 0, 0, 1];
const MILLIS: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 5];

/// The finest time is taken, whatever the order of the fields; what is not there stays absent.
#[test]
fn best_time() {
    let context = context();
    let seconds = NANOS_PER_SECOND;
    assert_eq!(times(&[(150, SECOND), (151, SECOND)], &context), (Some(seconds), Some(seconds)));
    assert_eq!(times(&[(150, SECOND), (152, MILLIS)], &context), (Some(5_000_000), None));
    assert_eq!(times(&[(322, SECOND), (153, MILLIS)], &context), (Some(seconds), Some(5_000_000)));
    assert_eq!(times(&[(4, &[6])], &context), (None, None));
    assert_eq!(times(&[(152, &[1, 2]), (150, SECOND)], &context), (Some(seconds), None), "a time of a wrong length");
}

/// Microseconds before the export.
#[test]
fn ages() {
    let export = i64::from(EXPORT_SECONDS) * NANOS_PER_SECOND;
    assert_eq!(times(&[(158, SECOND), (159, &[0])], &context()), (Some(export - 1_000), Some(export)));
}

/// Uptimes need the start of the exporter: in the record on either side, or from options data.
#[test]
fn uptimes() {
    let context = context();
    let expected = (Some(6_000_000), Some(5_000_000 + 2_000_000));
    let (first, last): (&[u8], &[u8]) = (&[0, 0, 0, 1], &[0, 0, 0, 2]);
    assert_eq!(times(&[(22, first), (21, last), (160, MILLIS)], &context), expected);
    assert_eq!(times(&[(160, MILLIS), (21, last), (22, first)], &context), expected);
    assert_eq!(times(&[(22, first), (21, last)], &context), (None, None));
    let mut told = context;
    told.system_init_unix_nano = Some(5_000_000);
    assert_eq!(times(&[(22, first), (21, last)], &told), expected);
}

/// NetFlow headers give the uptime at the export; the counter wraps after 49 days.
#[test]
fn netflow_uptimes() {
    let export = i64::from(EXPORT_SECONDS) * NANOS_PER_SECOND;
    let at = |uptime_ms: u32, value: u32| {
        let mut context = context();
        context.uptime_ms = Some(uptime_ms);
        times(&[(22, &value.to_be_bytes())], &context).0.map(|time| (time - export) / NANOS_PER_MILLI)
    };
    assert_eq!(at(10_000, 4_000), Some(-6_000));
    assert_eq!(at(10_000, 10_500), Some(500), "a little ahead");
    assert_eq!(at(1_000, u32::MAX - 999), Some(-2_000), "before the wrap");
    assert_eq!(at(4_000_000_000, 1_000), Some(1_000 - 4_000_000_000), "a flow of many days");
}

/// An uptime of 32 bits belongs to the time closest to the export: the counter wraps after 49.7 days, and flows may be
/// older than the start of their exporter.
#[test]
fn uptimes_wrap() {
    let range_ms = 1_i64 << 32;
    let export_ms = i64::from(EXPORT_SECONDS) * 1_000;
    let at = |init_ms: i64, uptime_ms: u32| {
        let init = init_ms.to_be_bytes();
        let fields: &[(u16, &[u8])] = &[(160, &init), (22, &uptime_ms.to_be_bytes())];
        times(fields, &context()).0.map(|nano| nano / 1_000_000 - export_ms)
    };
    assert_eq!(at(export_ms - 5_000, 2_000), Some(-3_000));
    assert_eq!(at(export_ms - 5_000, 0xffff_fc18), Some(-6_000), "a second before the start");
    assert_eq!(at(export_ms - 3 * range_ms - 5_000, 2_000), Some(-3_000), "three wraps ago");
    let unknown_export = times(&[(160, &7_i64.to_be_bytes()), (22, &[255; 4])], &context_at(0)).0;
    assert_eq!(unknown_export, Some((7 + range_ms - 1) * 1_000_000));
}
