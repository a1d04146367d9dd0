//! What the value of a field depends on besides its own bytes.

use crate::message::MessageInfo;

/// Deepest nesting of lists that is decoded; lists further down are given as opaque bytes.
pub const MAX_LIST_DEPTH: u8 = 8;

/// How an exporter writes dateTimeMicroseconds and dateTimeNanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TimeEncoding {
    /// NTP timestamps, unless that makes no sense and plain nanoseconds since 1970 do: as NTP the value is more than ten
    /// years away from the time of the export, and as nanoseconds less than one. Without a time of export (0), values
    /// that are nanoseconds of the years 2000 to 2035 are taken for those; as NTP they would lie beyond 2036.
    #[default]
    Auto,
    /// NTP timestamps, as RFC 7011 sections 6.1.9 and 6.1.10 want.
    Ntp,
    /// Plain nanoseconds since 1970, as some exporters send.
    UnixNano,
}

/// The surroundings of a value: the message it came in, and what is known of its exporter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeContext {
    /// When the message was exported, in nanoseconds since 1970. Settles the era of NTP timestamps and is the base of
    /// times given as an age.
    pub export_time_unix_nano: i64,
    /// Milliseconds the exporter was up at that time (NetFlow only), the base of sysUpTime values.
    pub uptime_ms: Option<u32>,
    /// When the exporter started, in nanoseconds since 1970, as learned from options data; used when neither the
    /// message nor the record says it.
    pub system_init_unix_nano: Option<i64>,
    /// How the exporter writes high-resolution times.
    pub time_encoding: TimeEncoding,
    /// How many lists are around the value.
    depth: u8,
}

impl DecodeContext {
    /// The context of the records of a message.
    #[must_use]
    pub fn new(message: &MessageInfo) -> Self {
        Self {
            export_time_unix_nano: message.export_time_unix_nano,
            uptime_ms: message.uptime_ms,
            system_init_unix_nano: None,
            time_encoding: TimeEncoding::default(),
            depth: 0,
        }
    }

    /// The context of what a list holds. Decoding nested values with it is what limits the depth.
    #[must_use]
    pub fn nested(&self) -> Self {
        Self { depth: self.depth.saturating_add(1), ..*self }
    }

    /// Whether a list at this place is still decoded.
    pub(crate) fn allows_lists(&self) -> bool {
        self.depth < MAX_LIST_DEPTH
    }
}
