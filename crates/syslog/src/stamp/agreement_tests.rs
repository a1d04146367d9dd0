//! The quick ways agree with the general one, and both with jiff.

use jiff::civil::{Date, DateTime, date};
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::*;

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEK_NANOS: i128 = 7 * 86_400 * 1_000_000_000;

fn instant(time: DateTime, zone: &TimeZone) -> i128 {
    zone.to_timestamp(time).unwrap().as_nanosecond()
}

/// The year by the rule, tried one by one: the latest in which the stamp is at most a week ahead; a 29
/// February that it lacks counts as the day after the 28th, and is then that of the year before.
fn guessed(month: i8, day: i8, hour: i8, zone: &TimeZone, received: i128) -> Option<i128> {
    let on = |date: Date| instant(date.at(hour, 30, 0, 0), zone);
    for year in (2000..2037).rev() {
        let exact = Date::new(year, month, day).ok();
        let stands_for = exact.unwrap_or(date(year, 3, 1));
        if on(stands_for) <= received + WEEK_NANOS {
            return exact.or(Date::new(year - 1, month, day).ok()).map(on);
        }
    }
    None
}

fn assert_agree(text: &str) {
    let scanned = scan(text.as_bytes());
    if let Some((stamp, len)) = scan_usual(text.as_bytes()) {
        assert_eq!(scanned, Some(Scan { stamp, len, colon: false }), "{text}");
    }
    if let Some((stamp, len)) = rfc3339(text.as_bytes()) {
        assert_eq!(scan_usual(&text.as_bytes()[..len]), Some((stamp, len)), "{text}");
    }
}

/// Every day of nine years, two of them leap years: each layout of the stamp is the same instant, by
/// the quick way where there is one, and the one that jiff gives.
#[test]
fn every_day_of_nine_years() {
    let zones: [(Zone, TimeZone); 3] = [
        (Zone::Utc, TimeZone::UTC),
        (Zone::Fixed(-12_600), TimeZone::fixed(jiff::tz::Offset::from_seconds(-12_600).unwrap())),
        ("Europe/Berlin".parse().unwrap(), TimeZone::get("Europe/Berlin").unwrap()),
    ];
    let mut day = date(2022, 1, 1);
    while day.year() <= 2030 {
        let month = MONTHS[usize::try_from(day.month()).unwrap() - 1];
        // An hour that no change of the clocks touches.
        let time = day.at(day.day() % 10 + 8, day.day() + 20, day.month() * 5 - 1, 0);
        let clock = time.strftime("%H:%M:%S").to_string();
        let (number, year) = (day.day(), day.year());
        for (zone, oracle) in &zones {
            let wanted = instant(time, oracle);
            let receipt = Receipt { time_unix_nano: i64::try_from(wanted).unwrap() + 5_000_000_000, zone };
            for (text, usual) in [
                (format!("{month} {number:2} {clock} host"), true),
                (format!("{month} {number:02} {clock}"), true),
                (format!("{} {number:2} {clock} host", month.to_uppercase()), true),
                (format!("{year:04}-{:02}-{number:02}T{clock} host", day.month()), true),
                (format!("{year:04}-{:02}-{number:02} {clock}", day.month()), true),
                (format!("{month} {number} {clock} host"), number > 9),
                (format!("{month}  {number}  {clock} host"), false),
                (format!("{month} {number:2} {year} {clock} host"), false),
                (format!("{month} {number:2} {clock} {year} host"), false),
                (format!("{year} {month} {number:2} {clock}: host"), false),
            ] {
                let stamp = scan(text.as_bytes()).unwrap().stamp;
                assert_eq!(stamp.resolve(&receipt).time_unix_nano.map(i128::from), Some(wanted), "{text} {zone:?}");
                assert_eq!(scan_usual(text.as_bytes()).is_some(), usual, "{text}");
                assert_agree(&text);
            }
        }
        day = day.tomorrow().unwrap();
    }
}

/// Around every new year, and in the spring of every year for the leap day: the year that a search
/// through all years finds.
#[test]
fn year_of_every_day_around_new_year() {
    let zones: [(Zone, TimeZone); 4] = [
        (Zone::Utc, TimeZone::UTC),
        (Zone::Fixed(46_800), TimeZone::fixed(jiff::tz::Offset::from_seconds(46_800).unwrap())),
        ("Pacific/Kiritimati".parse().unwrap(), TimeZone::get("Pacific/Kiritimati").unwrap()),
        ("Pacific/Pago_Pago".parse().unwrap(), TimeZone::get("Pacific/Pago_Pago").unwrap()),
    ];
    let dates: Vec<(u8, u8)> =
        (20..=31).map(|d| (12, d)).chain((1..=15).map(|d| (1, d))).chain([(2, 28), (2, 29), (3, 1), (7, 1)]).collect();
    for year in 2023..=2033 {
        for (first, days) in [(date(year, 12, 20), 25), (date(year, 2, 15), 20)] {
            for half_day in 0..days * 2 {
                let received =
                    instant(first.at(0, 0, 0, 0), &TimeZone::UTC) + i128::from(half_day) * 43_300 * 1_000_000_000;
                for (zone, oracle) in &zones {
                    for &(month, day) in &dates {
                        let civil = Civil { year: 0, month, day, hour: 12, minute: 30, second: 0, nano: 0 };
                        let got = zone.instant_in_guessed_year(&civil, i64::try_from(received).unwrap());
                        let wanted = guessed(month as i8, day as i8, 12, oracle, received);
                        assert_eq!(got.map(i128::from), wanted, "{month}-{day} at {received} in {zone:?}");
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Stamps with parts changed, left out or put in: what the quick way takes, the general one takes
    /// as well, with the same meaning and the same end.
    #[test]
    fn odd_forms(
        date in prop::sample::select(vec![
            "Nov 30", "Nov  3", "Nov 03", "nov 3", "Nov 3x", "Nov 31", "Feb 29", "2026-11-30", "2026-11-3", "2026-13-01",
            "2024-02-29", "0000-01-01", "9999-12-31", "26-11-30", "2026/11/30", "Nov", "",
        ]),
        between in prop::sample::select(vec![" ", "T", "t", "  ", "_", " 2026 ", ""]),
        time in prop::sample::select(vec![
            "10:00:00", "23:59:60", "24:00:00", "1:00:00", "10:00", "10:00:00:00", "10-00-00", "ab:cd:ef", "10:00:0 ",
        ]),
        fraction in prop::sample::select(vec!["", ".1", ",25", ".", ".123456789", ".1234567890", ".12x"]),
        zone in prop::sample::select(vec![
            "", "Z", "z", "+01:00", "-0330", "+01", "+1", "+25:00", " UTC", " CET", " +0200", " GMT-3", "Zx", "-", "+01:0",
        ]),
        rest in prop::sample::select(vec![
            "", " ", " host", ": x", ":x", " : x", "  host", " 2026 h", " 2001:db8::1 h", " Host", " -", "\t", " %X", "::1",
            " 7h", " \u{e4}",
        ]),
        change in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut text = format!("{date}{between}{time}{fraction}{zone}{rest}").into_bytes();
        if let Some((at, byte)) = change {
            let at = at.index(text.len());
            text[at] = byte;
        }
        assert_agree(&String::from_utf8_lossy(&text));
        let receipt = Receipt { time_unix_nano: 1_796_040_000_000_000_000, zone: &Zone::Utc };
        if let Some(scan) = scan(&text) {
            prop_assert!(scan.len <= text.len());
            let _ = scan.stamp.resolve(&receipt);
        }
    }
}
