//! What became of messages.

/// Numbers of messages. `received` is the sum of all others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExchangeCounters {
    /// All that were offered.
    pub received: u64,
    /// Merged into windows that have been emitted.
    pub merged: u64,
    /// Repeats of messages that count already.
    pub duplicates: u64,
    /// Came after their window was emitted.
    pub late: u64,
    /// Of an instance of a source after which a newer one has delivered for the same window: what was merged is taken
    /// out again, and what comes then is not merged.
    pub replaced: u64,
    /// Refused.
    pub refused: u64,
    /// Merged into windows that are still open.
    pub waiting: u64,
}

impl ExchangeCounters {
    /// The sum of all that can become of a message.
    #[must_use]
    pub fn accounted(&self) -> u64 {
        self.merged + self.duplicates + self.late + self.replaced + self.refused + self.waiting
    }
}
