//! Calendar arithmetic of the proleptic Gregorian calendar, in whole days and seconds.

/// Seconds of a civil day.
pub(crate) const DAY_SECONDS: i64 = 86_400;
/// Nanoseconds of a second.
pub(crate) const SECOND_NANOS: i64 = 1_000_000_000;

/// Seconds of a year, on the average of the 400 years after which the calendar repeats.
const MEAN_YEAR_SECONDS: i64 = 31_556_952;

/// A date and a time of day as somebody wrote them: fields may be out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i32,
    pub(crate) month: u8,
    pub(crate) day: u8,
    pub(crate) hour: u8,
    pub(crate) minute: u8,
    pub(crate) second: u8,
    pub(crate) nano: u32,
}

impl Civil {
    /// Seconds from 1970-01-01T00:00:00 to this time on the same clock, or `None` if there is no
    /// such date or time of day. Second 60 is refused: RFC 5424 section 6.2.3 rules out leap seconds.
    #[inline]
    pub(crate) fn clock_seconds(&self) -> Option<i64> {
        let in_range = (1..=12).contains(&self.month)
            && self.day >= 1
            && self.day <= days_of_month(self.year, self.month)
            && self.hour < 24
            && self.minute < 60
            && self.second < 60
            && i64::from(self.nano) < SECOND_NANOS;
        in_range.then(|| {
            days_from_date(self.year, self.month, self.day) * DAY_SECONDS
                + i64::from(self.hour) * 3600
                + i64::from(self.minute) * 60
                + i64::from(self.second)
        })
    }
}

/// Days of each month, and those before it in a year that begins in March.
const MONTHS: [(u8, u16); 12] = [
    (31, 306),
    (28, 337),
    (31, 0),
    (30, 31),
    (31, 61),
    (30, 92),
    (31, 122),
    (31, 153),
    (30, 184),
    (31, 214),
    (30, 245),
    (31, 275),
];

#[inline]
fn days_of_month(year: i32, month: u8) -> u8 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    MONTHS[usize::from(month - 1)].0 + u8::from(month == 2 && is_leap)
}

/// Days from 1970-01-01 to a date of a year that is not negative. Years begin in March here, so that
/// a leap day is the last day.
#[inline]
fn days_from_date(year: i32, month: u8, day: u8) -> i64 {
    // Counted from 400 years before, one whole cycle, so that no number is negative.
    let year = (year + 400 - i32::from(month <= 2)) as u32;
    let century = year / 100;
    let day_of_year = u32::from(MONTHS[usize::from(month - 1)].1) + u32::from(day) - 1;
    i64::from(year * 365 + year / 4 - century + century / 4 + day_of_year) - 719_468 - 146_097
}

/// The year of a time given as seconds on the clock since 1970-01-01T00:00:00; in its last days
/// perhaps the next.
#[inline]
pub(crate) fn year_or_next(clock_seconds: i64) -> i32 {
    // No year begins so much earlier than years of equal length would.
    let early = 3 * DAY_SECONDS;
    // 64-bit nanoseconds reach the years 1677 to 2262 only.
    1970 + (clock_seconds + early).div_euclid(MEAN_YEAR_SECONDS) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every day of the years that 64-bit nanoseconds reach agrees with jiff's calendar.
    #[test]
    fn agrees_with_jiff_on_every_day() {
        let epoch = jiff::civil::date(1970, 1, 1);
        let mut date = jiff::civil::date(1677, 1, 1);
        let mut days = i64::from(epoch.until(date).unwrap().get_days());
        while date.year() < 2263 {
            let (year, month) = (i32::from(date.year()), date.month() as u8);
            let civil = Civil { year, month, day: date.day() as u8, hour: 0, minute: 0, second: 0, nano: 0 };
            assert_eq!(civil.clock_seconds(), Some(days * DAY_SECONDS), "{date}");
            for second in [0, 86_399] {
                let guess = year_or_next(days * DAY_SECONDS + second);
                let is_late = month == 12 && date.day() > 24;
                assert!(guess == year || (is_late && guess == year + 1), "{date}: {guess}");
            }
            date = date.tomorrow().unwrap();
            days += 1;
        }
    }

    /// Dates and times that do not exist have no seconds.
    #[test]
    fn refuses_what_does_not_exist() {
        let fine = Civil { year: 2028, month: 2, day: 29, hour: 23, minute: 59, second: 59, nano: 0 };
        assert!(fine.clock_seconds().is_some());
        for broken in [
            Civil { year: 2027, ..fine },
            Civil { year: 2100, ..fine },
            Civil { month: 0, ..fine },
            Civil { month: 13, ..fine },
            Civil { day: 0, ..fine },
            Civil { day: 30, ..fine },
            Civil { hour: 24, ..fine },
            Civil { minute: 60, ..fine },
            Civil { second: 60, ..fine },
            Civil { nano: 1_000_000_000, ..fine },
        ] {
            assert_eq!(broken.clock_seconds(), None, "{broken:?}");
        }
    }
}
