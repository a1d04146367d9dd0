//! What a PRI severity means to OpenTelemetry.

/// One syslog severity in the words of both worlds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// OpenTelemetry severity number, 1 to 24.
    pub number: i32,
    /// Short OpenTelemetry name of that number, such as `ERROR2`.
    pub text: &'static str,
    /// Keyword of syslog.conf, such as `crit`.
    pub name: &'static str,
}

/// The levels by syslog severity: 0 is the most severe (RFC 5424 section 6.2.1). The numbers follow
/// the syslog mapping in the appendix of the OpenTelemetry log data model.
pub const LEVELS: [Level; 8] = [
    Level { number: 21, text: "FATAL", name: "emerg" },
    Level { number: 19, text: "ERROR3", name: "alert" },
    Level { number: 18, text: "ERROR2", name: "crit" },
    Level { number: 17, text: "ERROR", name: "err" },
    Level { number: 13, text: "WARN", name: "warning" },
    Level { number: 10, text: "INFO2", name: "notice" },
    Level { number: 9, text: "INFO", name: "info" },
    Level { number: 5, text: "DEBUG", name: "debug" },
];

/// The level of a syslog severity. Only the low three bits are read, as PRI has no more.
#[must_use]
pub const fn level(severity: u8) -> &'static Level {
    &LEVELS[(severity & 7) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A less severe syslog level never has a higher OpenTelemetry number.
    #[test]
    fn numbers_fall_with_severity() {
        assert!(LEVELS.windows(2).all(|pair| pair[0].number > pair[1].number));
        assert_eq!(level(2).text, "ERROR2");
        assert_eq!(level(5).name, "notice");
        assert_eq!(level(8), level(0));
    }
}
