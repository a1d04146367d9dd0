//! Dates of the Gregorian calendar in UTC, as log lines write them.

/// Names of the months in RFC 3164 time stamps.
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A point in time taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DateTime {
    year: u64,
    /// 1 to 12.
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
    microsecond: u64,
}

impl DateTime {
    /// Takes apart nanoseconds since the Unix epoch.
    pub(super) fn new(unix_nano: u64) -> Self {
        let seconds = unix_nano / 1_000_000_000;
        let (year, month, day) = date(seconds / 86_400);
        let second_of_day = seconds % 86_400;
        Self {
            year,
            month,
            day,
            hour: second_of_day / 3_600,
            minute: second_of_day / 60 % 60,
            second: second_of_day % 60,
            microsecond: unix_nano / 1_000 % 1_000_000,
        }
    }

    /// `Jan  1 00:00:00`, the stamp of RFC 3164 section 4.1.2.
    pub(super) fn bsd(self) -> String {
        let month = MONTHS[self.month as usize - 1];
        let time = self.time();
        format!("{month} {:2} {time}", self.day)
    }

    /// `2026-01-01T00:00:00Z`, or with microseconds, as in RFC 5424 section 6.2.3.
    pub(super) fn rfc3339(self, microseconds: bool) -> String {
        let Self { year, month, day, .. } = self;
        let time = self.time();
        let fraction = match microseconds {
            true => format!(".{:06}", self.microsecond),
            false => String::new(),
        };
        format!("{year:04}-{month:02}-{day:02}T{time}{fraction}Z")
    }

    fn time(self) -> String {
        format!("{:02}:{:02}:{:02}", self.hour, self.minute, self.second)
    }
}

/// Year, month and day of a number of days since 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    let mut year = 1970;
    let mut left = days;
    // Whole cycles of 400 years first, so that the loop below is short whatever the date.
    year += left / 146_097 * 400;
    left %= 146_097;
    while left >= days_of_year(year) {
        left -= days_of_year(year);
        year += 1;
    }
    let mut month = 1;
    while left >= days_of_month(year, month) {
        left -= days_of_month(year, month);
        month += 1;
    }
    (year, month, left + 1)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of_year(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn days_of_month(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends of months and years, leap days and their exceptions; expected values from GNU date.
    #[test]
    fn known_dates() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (1_767_225_600, "2026-01-01T00:00:00Z"),
            (1_835_440_496, "2028-02-29T12:34:56Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            let time = DateTime::new(seconds * 1_000_000_000);
            assert_eq!(time.rfc3339(false), text);
        }
    }

    /// Days below ten are padded with a space in the old stamp, and microseconds are cut, not rounded.
    #[test]
    fn stamps() {
        let time = DateTime::new(1_767_225_600_123_456_999);
        assert_eq!(time.bsd(), "Jan  1 00:00:00");
        assert_eq!(time.rfc3339(true), "2026-01-01T00:00:00.123456Z");
        let late = DateTime::new(1_796_000_000_000_000_000);
        assert_eq!(late.bsd(), "Nov 30 00:53:20");
    }
}
