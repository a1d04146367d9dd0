//! What makes a message one and no other.

/// One run of one source.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId {
    /// The source, the same after a restart: a node with its core, say.
    pub name: Box<str>,
    /// A number that each start chooses anew.
    pub instance: u128,
}

/// The time of a window, half open, in nanoseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WindowBounds {
    /// Its start.
    pub start_ns: i64,
    /// Its end, which is not part of it.
    pub end_ns: i64,
}

/// One of the messages that make up the delivery of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Part {
    /// Its number, from 0.
    pub index: u32,
    /// How many there are.
    pub of: u32,
}

impl Part {
    /// The only part.
    pub const WHOLE: Self = Self { index: 0, of: 1 };
}

/// The identity of a message. A message that is sent again keeps it to the last bit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MessageId {
    /// Who sends.
    pub source: SourceId,
    /// What was measured.
    pub metric: Box<str>,
    /// The series in some encoding that is the same for all sources.
    pub series: Box<[u8]>,
    /// The window.
    pub window: WindowBounds,
    /// Which part of the delivery it is; see [`super::Scope`] for what the parts are numbered over.
    pub part: Part,
    /// Number of the message among all that this instance has sent first. It ascends in the order
    /// of sending, and no two messages have the same: what comes again under the same part and
    /// number is taken for a repeat.
    pub sequence: u64,
    /// Whether all it says is that the source has nothing for the window. Such a message replaces nothing.
    pub announces: bool,
}
