use jiff::Timestamp;
use proptest::prelude::*;

use super::*;

const RECEIVED: &str = "2026-11-30T12:00:00Z";

fn nanos(text: &str) -> i64 {
    let instant: Timestamp = text.parse().unwrap();
    i64::try_from(instant.as_nanosecond()).unwrap()
}

/// The instant of the stamp at the start of `text`, and the text behind it.
fn read(text: &str) -> Option<(Option<i64>, &str)> {
    let scan = scan(text.as_bytes())?;
    let receipt = Receipt { time_unix_nano: nanos(RECEIVED), zone: &Zone::Utc };
    Some((scan.stamp.resolve(&receipt).time_unix_nano, &text[scan.len..]))
}

/// Forms that are read, the instant, and what remains.
#[test]
fn forms() {
    for (text, instant, rest) in [
        ("Nov 30 10:00:00 host", "2026-11-30T10:00:00Z", " host"),
        ("Nov  9 10:00:00 host", "2026-11-09T10:00:00Z", " host"),
        ("Nov 9 10:00:00 host", "2026-11-09T10:00:00Z", " host"),
        ("Nov 09 10:00:00", "2026-11-09T10:00:00Z", ""),
        ("NOV  09  10:00:00 host", "2026-11-09T10:00:00Z", " host"),
        ("Nov 30 10:00:00.123 host", "2026-11-30T10:00:00.123Z", " host"),
        ("Nov 30 10:00:00,5 host", "2026-11-30T10:00:00.5Z", " host"),
        ("Nov 30 2025 10:00:00 host", "2025-11-30T10:00:00Z", " host"),
        ("Oct  3 2025 10:00:00: %ASA", "2025-10-03T10:00:00Z", " %ASA"),
        ("Nov 30 10:00:00 2025 host", "2025-11-30T10:00:00Z", " host"),
        ("2025 Nov 30 10:00:00 UTC: %X", "2025-11-30T10:00:00Z", " %X"),
        ("2025 Nov  3 10:00:00.123456789 host", "2025-11-03T10:00:00.123456789Z", " host"),
        ("Nov 30 10:00:00 UTC 2025 host", "2025-11-30T10:00:00Z", " host"),
        ("Nov 30 10:00:00 2025 UTC host", "2025-11-30T10:00:00Z", " host"),
        ("Nov 30 10:00:00 2001:db8::1 named", "2026-11-30T10:00:00Z", " 2001:db8::1 named"),
        ("Nov 30 10:00:00 8080 named", "2026-11-30T10:00:00Z", " 8080 named"),
        ("Nov 30 10:00:00 ::1 named", "2026-11-30T10:00:00Z", " ::1 named"),
        ("Nov 30 10:00:00 UTC host", "2026-11-30T10:00:00Z", " host"),
        ("Nov 30 10:00:00 GMT: host", "2026-11-30T10:00:00Z", " host"),
        ("Nov 30 10:00:00 GMT+2 host", "2026-11-30T08:00:00Z", " host"),
        ("Nov 30 10:00:00 UTC-05:30 host", "2026-11-30T15:30:00Z", " host"),
        ("Nov 30 10:00:00 CEST host", "2026-11-30T10:00:00Z", " host"),
        ("Nov 30 10:00:00 Z host", "2026-11-30T10:00:00Z", " host"),
        ("Nov 30 10:00:00Z host", "2026-11-30T10:00:00Z", " host"),
        ("Nov 30 10:00:00 +01:00 host", "2026-11-30T09:00:00Z", " host"),
        ("Nov 30 10:00:00-0330 host", "2026-11-30T13:30:00Z", " host"),
        ("Nov 30 10:00:00 +01: host", "2026-11-30T09:00:00Z", " host"),
        ("Nov 30 10:00:00 ZEUS host", "2026-11-30T10:00:00Z", " ZEUS host"),
        ("Nov 30 10:00:00 UTCHOST x", "2026-11-30T10:00:00Z", " UTCHOST x"),
        ("Nov 30 10:00:00 EST5EDT x", "2026-11-30T10:00:00Z", " EST5EDT x"),
        ("Nov 30 10:00:00 - app", "2026-11-30T10:00:00Z", " - app"),
        ("Nov 30 10:00:00 : %ASA", "2026-11-30T10:00:00Z", " %ASA"),
        ("Nov 30 10:00:00:%ASA", "2026-11-30T10:00:00Z", "%ASA"),
        ("2026-11-30T10:00:00Z host", "2026-11-30T10:00:00Z", " host"),
        ("2026-11-30T10:00:00 host", "2026-11-30T10:00:00Z", " host"),
        ("2026-11-30 10:00:00.5 host", "2026-11-30T10:00:00.5Z", " host"),
        ("2026-11-30 10:00:00 +0200 host", "2026-11-30T08:00:00Z", " host"),
        ("2026-11-30t10:00:00z: host", "2026-11-30T10:00:00Z", " host"),
        ("2026-11-30T10:00:00,25+01 host", "2026-11-30T09:00:00.25Z", " host"),
    ] {
        assert_eq!(read(text), Some((Some(nanos(instant)), rest)), "{text}");
    }
}

/// Shapes of a stamp that name no instant still end where the next field begins.
#[test]
fn impossible() {
    for text in [
        "Nov 31 10:00:00 host",
        "Nov 00 10:00:00 host",
        "Feb 29 10:00:00 host",
        "Nov 30 24:00:00 host",
        "Nov 30 10:00:60 host",
        "2026-13-01T10:00:00Z host",
        "2026-02-29 10:00:00 host",
        "9999-12-31T23:59:59Z host",
        "Nov 30 10:00:00.1234567890 host",
    ] {
        assert_eq!(read(text), Some((None, " host")), "{text}");
    }
}

/// Words that are no stamp.
#[test]
fn other_words() {
    for text in [
        "",
        "Nov",
        "Nov 30 10:00 host",
        "Nov 30 10:00:0",
        "Nov 300 10:00:00 host",
        "Nov30 10:00:00 host",
        "Nov 30 10:00:00x host",
        "Nov 30 10:00:00. host",
        "Nov 30 10:00:00:12 host",
        "Nov 30 10:00:00::1 host",
        "Nox 30 10:00:00 host",
        "ntp is synchronized to",
        "2026-11-30",
        "2026-11-30_10:00:00 host",
        "2026-11-30T10:00:00+1 host",
        "2026-11-30T10:00:00+25:00 host",
        "26-11-30T10:00:00Z host",
        "10:00:00 host",
    ] {
        assert_eq!(read(text), None, "{text}");
    }
}

/// A whole token of RFC 5424: nothing may follow, and `T` must be there.
#[test]
fn tokens() {
    for text in ["2026-11-30T10:00:00Z", "2026-11-30T10:00:00", "2026-11-30T10:00:00.1-07:00"] {
        assert!(rfc3339(text.as_bytes()).is_some(), "{text}");
    }
    for text in ["2026-11-30T10:00:00Z:", "2026-11-30 10:00:00", "2026-11-30T10:00:00Zx", "-", ""] {
        assert!(rfc3339(text.as_bytes()).is_none(), "{text}");
    }
}

/// A zone word is honoured only if it is the configured zone's at that time.
#[test]
fn zone_words() {
    let berlin: Zone = "Europe/Berlin".parse().unwrap();
    for (text, zone, complete) in [
        ("Nov 30 10:00:00 CET", &berlin, true),
        ("Nov 30 10:00:00 CEST", &berlin, false),
        ("Jul 30 10:00:00 CEST", &berlin, true),
        ("Nov 30 10:00:00 CET", &Zone::Utc, false),
        ("Nov 30 10:00:00 CET", &Zone::Fixed(3600), false),
        ("Nov 30 10:00:00 UTC", &berlin, true),
        ("Nov 30 10:00:00", &berlin, true),
    ] {
        let stamp = scan(text.as_bytes()).unwrap().stamp;
        let resolved = stamp.resolve(&Receipt { time_unix_nano: nanos(RECEIVED), zone });
        assert!(resolved.time_unix_nano.is_some());
        assert_eq!(resolved.complete, complete, "{text} in {zone:?}");
    }
}

/// On every day of a leap year the fixed layout and the general form read the same.
#[test]
fn fixed_layout_agrees_on_every_day() {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut date = jiff::civil::date(2028, 1, 1);
    while date.year() == 2028 {
        let month = MONTHS[usize::try_from(date.month()).unwrap() - 1];
        for day in [format!("{:2}", date.day()), format!("{:02}", date.day())] {
            let text = format!("{month} {day} 01:02:03");
            let (fixed, general) = (fixed_bsd(text.as_bytes()), general_bsd(text.as_bytes()));
            let (fixed, general) = (fixed.unwrap(), general.unwrap());
            assert_eq!(fixed.civil, general.civil, "{text}");
            assert_eq!((fixed.end, general.end), (15, 15));
            let days = (fixed.civil.month, fixed.civil.day);
            assert_eq!(days, (date.month() as u8, date.day() as u8));
        }
        date = date.tomorrow().unwrap();
    }
}

proptest! {
    /// Whatever the fixed layout takes, the general form takes in the same way.
    #[test]
    fn fixed_layout_agrees_on_odd_forms(
        text in "(Jan|feb|MAY|Xyz) ?[ 0-3]?[0-9] ?[0-9]{2}:[0-9]{2}:[0-9]{2}( x)?",
    ) {
        if let Some(fixed) = fixed_bsd(text.as_bytes()) {
            let general = general_bsd(text.as_bytes()).unwrap();
            prop_assert_eq!(fixed.civil, general.civil);
            prop_assert_eq!(fixed.end, general.end);
        }
    }

    /// RFC 3339 stamps of any instant come back, in any offset and with any number of digits.
    #[test]
    fn rfc3339_agrees_with_jiff(
        second in -9_000_000_000i64..9_000_000_000, nano in 0i32..1_000_000_000,
        digits in 0u8..=9, offset_minutes in -1439i32..=1439,
    ) {
        let scale = 10i32.pow(9 - u32::from(digits));
        let instant = Timestamp::new(second, 0).unwrap()
            + jiff::SignedDuration::from_nanos(i64::from(nano / scale * scale));
        let offset = jiff::tz::Offset::from_seconds(offset_minutes * 60).unwrap();
        let fraction = if digits == 0 {
            String::new()
        } else {
            format!(".{:0width$}", nano / scale, width = usize::from(digits))
        };
        let local = offset.to_datetime(instant).strftime("%Y-%m-%dT%H:%M:%S").to_string();
        let sign = if offset_minutes < 0 { '-' } else { '+' };
        let minutes = offset_minutes.abs();
        let text = format!("{local}{fraction}{sign}{:02}:{:02}", minutes / 60, minutes % 60);
        let (stamp, len) = rfc3339(text.as_bytes()).unwrap();
        prop_assert_eq!(len, text.len());
        let receipt = Receipt { time_unix_nano: 0, zone: &Zone::Utc };
        let read = stamp.resolve(&receipt).time_unix_nano.map(i128::from);
        prop_assert_eq!(read, Some(instant.as_nanosecond()), "{}", text);
    }
}
