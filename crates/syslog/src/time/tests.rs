use proptest::prelude::*;

use super::*;

fn nanos(text: &str) -> i64 {
    let instant: Timestamp = text.parse().unwrap();
    i64::try_from(instant.as_nanosecond()).unwrap()
}

fn civil(year: i32, month: u8, day: u8, hour: u8, minute: u8) -> Civil {
    Civil { year, month, day, hour, minute, second: 0, nano: 0 }
}

fn zone(text: &str) -> Zone {
    text.parse().unwrap()
}

/// Every documented form of a zone, and texts that are none.
#[test]
fn zones_from_text() {
    assert_eq!(zone("UTC"), Zone::Utc);
    assert_eq!(zone("local"), Zone::Local);
    assert_eq!(zone("+05:30"), Zone::Fixed(19_800));
    assert_eq!(zone("-11:00"), Zone::Fixed(-39_600));
    assert!(matches!(zone("Europe/Berlin"), Zone::Named(_)));
    for text in ["+5:30", "+05:60", "+24:00", "+0530", "+05", "-", "+05:30 "] {
        assert_eq!(text.parse::<Zone>(), Err(ZoneError::Offset { text: text.to_owned() }));
    }
    for text in ["", "Europe/Nowhere", "05:30", "utc "] {
        assert_eq!(text.parse::<Zone>(), Err(ZoneError::Unknown { text: text.to_owned() }));
    }
    let message = "Mars/Olympus".parse::<Zone>().unwrap_err().to_string();
    assert!(message.contains("Mars/Olympus"), "{message}");
}

/// A time that occurs twice is the later instant once that is past (or nearly), else the earlier.
#[test]
fn repeated_local_time() {
    let berlin = zone("Europe/Berlin");
    let (first, second) = (nanos("2026-10-25T00:15:00Z"), nanos("2026-10-25T01:15:00Z"));
    for (received, wanted) in [
        ("2026-10-25T00:15:02Z", first),
        ("2026-10-25T01:09:59Z", first),
        ("2026-10-25T01:10:00Z", second),
        ("2026-10-25T03:00:00Z", second),
    ] {
        let twice = civil(2026, 10, 25, 2, 15);
        assert_eq!(berlin.instant(&twice, nanos(received)), Some(wanted), "{received}");
        assert_eq!(berlin.instant_in_guessed_year(&twice, nanos(received)), Some(wanted));
    }
}

/// A time that never occurs is read with the offset before the change.
#[test]
fn skipped_local_time() {
    let skipped = civil(2026, 3, 29, 2, 30);
    let instant = zone("Europe/Berlin").instant(&skipped, nanos("2026-03-29T01:30:04Z"));
    assert_eq!(instant, Some(nanos("2026-03-29T01:30:00Z")));
}

/// The latest year that is not more than seven days ahead, in the zone of the stamp.
#[test]
fn guessed_year() {
    for (zone_text, received, (month, day, hour), wanted) in [
        ("UTC", "2027-01-01T00:00:10Z", (12, 31, 23), Some("2026-12-31T23:00:00Z")),
        ("UTC", "2026-12-31T23:59:00Z", (1, 1, 0), Some("2027-01-01T00:00:00Z")),
        ("UTC", "2026-12-31T23:59:00Z", (1, 7, 23), Some("2027-01-07T23:00:00Z")),
        ("UTC", "2026-12-31T23:59:00Z", (1, 8, 0), Some("2026-01-08T00:00:00Z")),
        ("UTC", "2026-11-30T12:00:00Z", (12, 7, 12), Some("2026-12-07T12:00:00Z")),
        ("UTC", "2026-11-30T12:00:00Z", (12, 7, 13), Some("2025-12-07T13:00:00Z")),
        // In Tokyo it is the new year already, in Honolulu not yet.
        ("Asia/Tokyo", "2026-12-31T16:00:00Z", (1, 1, 1), Some("2026-12-31T16:00:00Z")),
        ("-10:00", "2027-01-01T05:00:00Z", (12, 31, 19), Some("2027-01-01T05:00:00Z")),
        ("UTC", "2028-03-01T00:00:01Z", (2, 29, 23), Some("2028-02-29T23:00:00Z")),
        ("UTC", "2029-01-10T00:00:00Z", (2, 29, 1), Some("2028-02-29T01:00:00Z")),
        ("UTC", "2027-03-01T00:00:00Z", (2, 29, 1), None),
        ("UTC", "2026-11-30T12:00:00Z", (11, 31, 1), None),
    ] {
        let stamp = civil(0, month, day, hour, 0);
        let guessed = zone(zone_text).instant_in_guessed_year(&stamp, nanos(received));
        assert_eq!(guessed, wanted.map(nanos), "{zone_text} {received} {stamp:?}");
    }
}

/// Instants that 64 bits cannot hold are absent; those before 1970 are not.
#[test]
fn range() {
    assert_eq!(Zone::Utc.instant(&civil(9999, 1, 1, 0, 0), 0), None);
    assert_eq!(Zone::Utc.instant(&civil(1, 1, 1, 0, 0), 0), None);
    assert_eq!(zone("Asia/Tokyo").instant(&civil(9999, 1, 1, 0, 0), 0), None);
    assert_eq!(Zone::Utc.instant(&civil(1969, 12, 31, 0, 0), 0), Some(-86_400_000_000_000));
    let last = Civil { year: 2262, month: 4, day: 11, hour: 23, minute: 47, second: 16, nano: 854_775_807 };
    assert_eq!(Zone::Utc.instant(&last, 0), Some(i64::MAX));
    assert_eq!(Zone::Utc.instant(&Civil { nano: 854_775_808, ..last }, 0), None);
}

/// Receipt times at the ends of the range do not overflow.
#[test]
fn extreme_receipts() {
    for received in [i64::MIN, i64::MAX] {
        for zone in [Zone::Utc, Zone::Fixed(-86_340), zone("Asia/Tokyo"), Zone::Local] {
            let _ = zone.instant_in_guessed_year(&civil(0, 6, 15, 12, 0), received);
        }
    }
}

proptest! {
    /// The arithmetic for UTC and fixed offsets gives what jiff gives, and so do zones whose
    /// clocks do not change.
    #[test]
    fn agrees_with_jiff(
        year in 1680i16..2260, month in 1i8..=12, day in 1i8..=31,
        hour in 0i8..24, minute in 0i8..60, second in 0i8..60, nano in 0i32..1_000_000_000,
        offset in -1439i32..=1439,
    ) {
        let date_time = jiff::civil::DateTime::new(year, month, day, hour, minute, second, nano);
        let civil = Civil {
            year: year.into(), month: month as u8, day: day as u8, hour: hour as u8,
            minute: minute as u8, second: second as u8, nano: nano as u32,
        };
        let offset = jiff::tz::Offset::from_seconds(offset * 60).unwrap();
        let wanted = date_time.ok().map(|time| offset.to_timestamp(time).unwrap().as_nanosecond());
        let fixed = Zone::Fixed(offset.seconds()).instant(&civil, 0);
        prop_assert_eq!(fixed.map(i128::from), wanted);
        let named = Zone::Named(TimeZone::fixed(offset)).instant(&civil, 0);
        prop_assert_eq!(named, fixed);
    }

    /// A guessed year is never more than seven days ahead, and one more year would be.
    #[test]
    fn guessed_year_is_the_latest(received in 0i64..4_000_000_000, month in 1u8..=12, day in 1u8..=28) {
        let received = received * SECOND_NANOS;
        for zone in [Zone::Utc, Zone::Fixed(43_200), zone("America/New_York")] {
            let guessed = zone.instant_in_guessed_year(&civil(0, month, day, 12, 0), received);
            let ahead = i128::from(guessed.unwrap()) - i128::from(received);
            let week = i128::from(YEAR_GUESS_AHEAD_NANOS);
            // A leap day, and a change of the clocks.
            let longest_year = 367 * i128::from(DAY_SECONDS * SECOND_NANOS);
            prop_assert!(ahead <= week && ahead + longest_year > week);
        }
    }
}
