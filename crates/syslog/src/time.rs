//! From the time a device wrote to an instant: zones, the year that RFC 3164 leaves out, and local
//! times that a daylight saving change repeats or leaves out.

use std::str::FromStr;

use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, TimeZone};

use crate::civil::{Civil, DAY_SECONDS, SECOND_NANOS, year_and_month};

/// How far a stamp without a year may lie in the future before it belongs to the year before.
const YEAR_GUESS_AHEAD_NANOS: i64 = 7 * DAY_SECONDS * SECOND_NANOS;
/// Clock skew allowed between device and receiver when a local time occurs twice.
const FOLD_GRACE_NANOS: i64 = 300 * SECOND_NANOS;

/// The time zone of stamps that name none.
#[derive(Debug, Clone, PartialEq)]
pub enum Zone {
    /// Coordinated universal time.
    Utc,
    /// Seconds east of UTC.
    Fixed(i32),
    /// A zone of the IANA database.
    Named(TimeZone),
    /// The zone of this machine, looked up anew for each stamp that needs it.
    Local,
}

/// Text that names no time zone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// An offset with a sign that does not follow the form.
    #[error("offset `{text}` is not of the form +HH:MM with HH up to 23 and MM up to 59")]
    Offset {
        /// The text given.
        text: String,
    },
    /// No such name in the database.
    #[error("`{text}` is not a time zone: expected `UTC`, `local`, +HH:MM or an IANA name")]
    Unknown {
        /// The text given.
        text: String,
    },
}

impl FromStr for Zone {
    type Err = ZoneError;

    /// Reads `UTC`, `local`, `+HH:MM`, `-HH:MM`, or an IANA name such as `Europe/Berlin`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.eq_ignore_ascii_case("utc") || text == "Z" {
            return Ok(Self::Utc);
        }
        if text.eq_ignore_ascii_case("local") {
            return Ok(Self::Local);
        }
        if text.starts_with(['+', '-']) {
            return match crate::stamp::offset(text.as_bytes()) {
                Some((seconds, 6)) if text.len() == 6 => Ok(Self::Fixed(seconds)),
                _ => Err(ZoneError::Offset { text: text.to_owned() }),
            };
        }
        TimeZone::get(text).map(Self::Named).map_err(|_| ZoneError::Unknown { text: text.to_owned() })
    }
}

/// What the receiver knows about the arrival of a message. It is taken when the bytes are read, so
/// that decoding later gives the same record.
#[derive(Debug, Clone, Copy)]
pub struct Receipt<'z> {
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    pub time_unix_nano: i64,
    /// Zone of stamps that name none.
    pub zone: &'z Zone,
}

impl Zone {
    /// Offset from UTC in seconds at an instant.
    fn offset_at(&self, time_unix_nano: i64) -> i64 {
        match self {
            Self::Utc => 0,
            Self::Fixed(seconds) => i64::from(*seconds),
            Self::Named(zone) => named_offset(zone, time_unix_nano),
            Self::Local => named_offset(&TimeZone::system(), time_unix_nano),
        }
    }

    /// Whether the clocks of this zone carry the abbreviation `word` at an instant.
    pub(crate) fn has_abbreviation(&self, word: &[u8], time_unix_nano: i64) -> bool {
        let named = |zone: &TimeZone| {
            let instant = Timestamp::from_nanosecond(i128::from(time_unix_nano));
            instant.is_ok_and(|at| zone.to_offset_info(at).abbreviation().as_bytes() == word)
        };
        match self {
            Self::Utc => matches!(word, b"UTC" | b"GMT"),
            Self::Fixed(_) => false,
            Self::Named(zone) => named(zone),
            Self::Local => named(&TimeZone::system()),
        }
    }

    /// The instant at which a clock of this zone shows `civil`, in nanoseconds since 1970.
    ///
    /// A time shown twice is the later instant if that is not after receipt (with five minutes'
    /// grace), else the earlier. A time never shown is read with the offset before the change.
    /// `None`: no such date, or not in the range of 64 bits.
    pub(crate) fn instant(&self, civil: &Civil, received_unix_nano: i64) -> Option<i64> {
        let clock_seconds = civil.clock_seconds()?;
        let at = |offset: i64| unix_nano(clock_seconds, offset, civil.nano);
        match self {
            Self::Utc => at(0),
            Self::Fixed(seconds) => at(i64::from(*seconds)),
            Self::Named(zone) => named_instant(zone, civil, received_unix_nano, at),
            Self::Local => named_instant(&TimeZone::system(), civil, received_unix_nano, at),
        }
    }

    /// As [`Zone::instant`] for a time without a year: the latest year in which it is not more than
    /// seven days after receipt. A 29 February of a year that has none is tried a year earlier.
    pub(crate) fn instant_in_guessed_year(&self, civil: &Civil, received_unix_nano: i64) -> Option<i64> {
        let clock = received_unix_nano.div_euclid(SECOND_NANOS) + self.offset_at(received_unix_nano);
        let (year, month) = year_and_month(clock);
        let latest = received_unix_nano.saturating_add(YEAR_GUESS_AHEAD_NANOS);
        // Only in December can a stamp of the next year be seven days away.
        let first = if month == 12 { year + 1 } else { year };
        (year - 1..=first).rev().find_map(|year| {
            let instant = self.instant(&Civil { year, ..*civil }, received_unix_nano)?;
            (instant <= latest).then_some(instant)
        })
    }
}

fn named_offset(zone: &TimeZone, time_unix_nano: i64) -> i64 {
    Timestamp::from_nanosecond(i128::from(time_unix_nano)).map_or(0, |at| i64::from(zone.to_offset(at).seconds()))
}

fn named_instant(
    zone: &TimeZone,
    civil: &Civil,
    received_unix_nano: i64,
    at: impl Fn(i64) -> Option<i64>,
) -> Option<i64> {
    let date_time = jiff::civil::DateTime::new(
        i16::try_from(civil.year).ok()?,
        i8::try_from(civil.month).ok()?,
        i8::try_from(civil.day).ok()?,
        i8::try_from(civil.hour).ok()?,
        i8::try_from(civil.minute).ok()?,
        i8::try_from(civil.second).ok()?,
        0,
    )
    .ok()?;
    match zone.to_ambiguous_timestamp(date_time).offset() {
        AmbiguousOffset::Unambiguous { offset } => at(i64::from(offset.seconds())),
        AmbiguousOffset::Gap { before, .. } => at(i64::from(before.seconds())),
        AmbiguousOffset::Fold { before, after } => {
            let later = at(i64::from(after.seconds()))?;
            if later <= received_unix_nano.saturating_add(FOLD_GRACE_NANOS) {
                Some(later)
            } else {
                at(i64::from(before.seconds()))
            }
        }
    }
}

/// Nanoseconds since 1970 of a clock reading, if they fit.
fn unix_nano(clock_seconds: i64, offset_seconds: i64, nano: u32) -> Option<i64> {
    let seconds = i128::from(clock_seconds) - i128::from(offset_seconds);
    i64::try_from(seconds * i128::from(SECOND_NANOS) + i128::from(nano)).ok()
}

#[cfg(test)]
mod tests;
