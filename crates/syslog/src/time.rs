//! From the time a device wrote to an instant: zones, the year that RFC 3164 leaves out, and local
//! times that a daylight saving change repeats or leaves out.

use std::str::FromStr;

use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, TimeZone};

use crate::civil::{Civil, DAY_SECONDS, SECOND_NANOS, year_or_next};

/// How far a stamp without a year may lie in the future before it belongs to the year before.
const YEAR_GUESS_AHEAD_NANOS: i64 = 7 * DAY_SECONDS * SECOND_NANOS;
/// More than any offset of the time zone database.
const MAX_OFFSET_SECONDS: i64 = 26 * 3600;
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
    #[inline]
    pub(crate) fn instant(&self, civil: &Civil, received_unix_nano: i64) -> Option<i64> {
        let offset = match self {
            Self::Utc => 0,
            Self::Fixed(seconds) => i64::from(*seconds),
            Self::Named(zone) => return named_instant(zone, civil, received_unix_nano),
            Self::Local => return named_instant(&TimeZone::system(), civil, received_unix_nano),
        };
        unix_nano(civil.clock_seconds()?, offset, civil.nano)
    }

    /// As [`Zone::instant`] for a time without a year: the latest year in which it is not more than
    /// seven days after receipt. A 29 February that this year does not have is that of the year
    /// before, if there is one.
    #[inline]
    pub(crate) fn instant_in_guessed_year(&self, civil: &Civil, received_unix_nano: i64) -> Option<i64> {
        let ahead = match self {
            Self::Utc => 0,
            Self::Fixed(seconds) => i64::from(*seconds),
            Self::Named(_) => MAX_OFFSET_SECONDS,
            // Looked up once, not for each year.
            Self::Local => return Self::Named(TimeZone::system()).instant_in_guessed_year(civil, received_unix_nano),
        };
        let latest = received_unix_nano.saturating_add(YEAR_GUESS_AHEAD_NANOS);
        let instant = |date: &Civil| self.instant(date, received_unix_nano);
        // No clock of the zone shows a later year by then, and it may show an earlier one only just.
        let newest = year_or_next(latest.div_euclid(SECOND_NANOS) + ahead);
        for year in (newest - 2..=newest).rev() {
            let dated = Civil { year, ..*civil };
            match instant(&dated) {
                Some(time) if time <= latest => return Some(time),
                Some(_) => {}
                // The day after 28 February tells whether the missing day would be too far ahead.
                None if (civil.month, civil.day) == (2, 29) => {
                    let next_day = Civil { month: 3, day: 1, ..dated };
                    if instant(&next_day)? <= latest {
                        return instant(&Civil { year: year - 1, ..dated });
                    }
                }
                None => {}
            }
        }
        None
    }
}

fn named_instant(zone: &TimeZone, civil: &Civil, received_unix_nano: i64) -> Option<i64> {
    let clock_seconds = civil.clock_seconds()?;
    let at = |offset: i64| unix_nano(clock_seconds, offset, civil.nano);
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
#[inline]
fn unix_nano(clock_seconds: i64, offset_seconds: i64, nano: u32) -> Option<i64> {
    let seconds = clock_seconds - offset_seconds;
    match seconds.checked_mul(SECOND_NANOS).and_then(|nanos| nanos.checked_add(i64::from(nano))) {
        Some(nanos) => Some(nanos),
        // The first second of the range: too far back only without its fraction.
        None => i64::try_from(i128::from(seconds) * i128::from(SECOND_NANOS) + i128::from(nano)).ok(),
    }
}

#[cfg(test)]
mod tests;
