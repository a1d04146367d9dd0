//! Sketches and sorted runs on their way between processes: each is an OTLP Summary data point without quantiles.
//!
//! The layout is that of ASAP's sketch messages, with an identity added, and is kept by OTLP and OTAP alike:
//!
//! | where | what |
//! | --- | --- |
//! | resource attributes | `sketch.type`, `sketch.encoding`, `sketch.schema_version` (1), `sketch.agg_id` (1) |
//! | scope `asap.series`, attributes | `sketch.series_id`, and what the series is grouped by |
//! | metric | name and unit of the measure |
//! | data point | bounds of the window as its times, count, sum |
//! | its attributes | `sketch.envelope` (bytes), `sketch.window_start_ms`, `sketch.window_end_ms` |
//! | | `sketch.source`, `sketch.instance`, `sketch.part` (from 1), `sketch.parts`, `sketch.sequence` |
//! | | `sketch.min`, `sketch.max`, `sketch.sum`, `sketch.dropped.<reason>`, `sketch.sources` (`1/2`) |
//! | | `sketch.switched` (true, or absent) |
//!
//! Numbers that must arrive to the last bit whatever they are (minimum, maximum, sum) are carried as 8 bytes, big endian:
//! columns of zeros are left out on the way.

mod decode;
mod encode;

pub use decode::{CarrierError, decode, decode_otlp};
pub use encode::encode;

use super::series::KeyValue;

/// What an envelope holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SketchType {
    /// The compact image of a KLL sketch of doubles of Apache DataSketches.
    KllDataSketches,
    /// A KLL sketch in ASAPv1.
    KllAsap,
    /// A sorted run of exact values.
    Run,
}

impl SketchType {
    const ALL: [Self; 3] = [Self::KllDataSketches, Self::KllAsap, Self::Run];

    /// Its name in `sketch.type`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::KllDataSketches => "kll.datasketches.f64",
            Self::KllAsap => "KLLSketch",
            Self::Run => "run.f64",
        }
    }

    /// The encoding of the envelope, in `sketch.encoding`.
    const fn encoding(self) -> &'static str {
        match self {
            Self::KllDataSketches => "DATASKETCHES",
            Self::KllAsap => "MSGPACK",
            Self::Run => "RUN",
        }
    }
}

/// Who sent a message, and which of its messages it is. The same message sent again has the same identity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MessageIdentity {
    /// The source, the same after a restart: a node with its core, say.
    pub source: String,
    /// A number that each start of the source chooses anew.
    pub instance: u128,
    /// Number of this part of what the source sends for the window, from 0.
    pub part: u32,
    /// How many parts there are.
    pub parts: u32,
    /// Number of the message among all of this instance.
    pub sequence: u64,
}

/// One sketch or run of a series and window. A window without observations is announced by one of count 0.
#[derive(Debug, Clone, PartialEq)]
pub struct SketchMessage {
    /// Name of the measure.
    pub metric: String,
    /// UCUM unit of the values.
    pub unit: String,
    /// What the series is grouped by; absent values are left out. Read back by ascending key: the order is lost on the way.
    pub series: Vec<(String, KeyValue)>,
    /// Begin of the window, nanoseconds since the Unix epoch, inclusive.
    pub start_unix_nano: i64,
    /// End of the window, exclusive.
    pub end_unix_nano: i64,
    /// What the envelope is.
    pub sketch: SketchType,
    /// The sketch or run.
    pub envelope: Vec<u8>,
    /// Observations in it.
    pub count: u64,
    /// The smallest, exactly.
    pub min: Option<f64>,
    /// The largest, exactly.
    pub max: Option<f64>,
    /// The sum, if it is known.
    pub sum: Option<f64>,
    /// Numbers of observations that were not used, by reason.
    pub dropped: Vec<(String, u64)>,
    /// How many sources are in it of how many that were expected, if some are missing.
    pub sources: Option<(u32, u32)>,
    /// Whether exact values were asked for, and there were too many to keep them.
    pub switched: bool,
    /// Who sent it. `None` for messages of others than this project, which have none.
    pub identity: Option<MessageIdentity>,
}

const SCOPE: &str = "asap.series";
const TYPE: &str = "sketch.type";
const ENCODING: &str = "sketch.encoding";
const SCHEMA_VERSION: &str = "sketch.schema_version";
const AGGREGATION_ID: &str = "sketch.agg_id";
const SERIES_ID: &str = "sketch.series_id";
const ENVELOPE: &str = "sketch.envelope";
const WINDOW_START: &str = "sketch.window_start_ms";
const WINDOW_END: &str = "sketch.window_end_ms";
const SOURCE: &str = "sketch.source";
const INSTANCE: &str = "sketch.instance";
const PART: &str = "sketch.part";
const PARTS: &str = "sketch.parts";
const SEQUENCE: &str = "sketch.sequence";
const MIN: &str = "sketch.min";
const MAX: &str = "sketch.max";
const SUM: &str = "sketch.sum";
const SOURCES: &str = "sketch.sources";
const SWITCHED: &str = "sketch.switched";
const DROPPED: &str = "sketch.dropped.";
/// Attributes of a scope that begin so are no part of the series.
const RESERVED: &str = "sketch.";

#[cfg(test)]
mod tests;
