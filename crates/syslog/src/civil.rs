//! Calendar arithmetic of the proleptic Gregorian calendar, in whole days and seconds.

/// Seconds of a civil day.
pub(crate) const DAY_SECONDS: i64 = 86_400;
/// Nanoseconds of a second.
pub(crate) const SECOND_NANOS: i64 = 1_000_000_000;

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

fn days_of_month(year: i32, month: u8) -> u8 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date. Years begin in March here, so that a leap day is the last day.
fn days_from_date(year: i32, month: u8, day: u8) -> i64 {
    let month = i64::from(month);
    let year = i64::from(year) - i64::from(month <= 2);
    let cycle = year.div_euclid(400);
    let year_of_cycle = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
    cycle * 146_097 + day_of_cycle - 719_468
}

/// Year and month of a time given as seconds on the clock since 1970-01-01T00:00:00.
pub(crate) fn year_and_month(clock_seconds: i64) -> (i32, u8) {
    let days = clock_seconds.div_euclid(DAY_SECONDS) + 719_468;
    let cycle = days.div_euclid(146_097);
    let day_of_cycle = days.rem_euclid(146_097);
    let year_of_cycle = (day_of_cycle - day_of_cycle / 1460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = cycle * 400 + year_of_cycle + i64::from(month <= 2);
    // 64-bit nanoseconds reach the years 1677 to 2262 only.
    (year as i32, month as u8)
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
            assert_eq!(year_and_month(days * DAY_SECONDS + 86_399), (year, month), "{date}");
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
