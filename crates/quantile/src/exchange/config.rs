//! Sources, times and limits.

use std::collections::BTreeSet;

/// Which sources make a window complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// So many, whatever their names.
    Count(usize),
    /// These and no others.
    Named(BTreeSet<Box<str>>),
}

impl Expected {
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Count(count) => *count,
            Self::Named(names) => names.len(),
        }
    }

    pub(super) fn allows(&self, name: &str) -> bool {
        match self {
            Self::Count(_) => true,
            Self::Named(names) => names.contains(name),
        }
    }
}

/// What becomes complete together, and so what the parts of a source are numbered over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// All series of a metric in a window: a source numbers all its messages for it. Right where
    /// sources need not have the same series.
    #[default]
    Window,
    /// Each series by itself: every source must announce every series.
    Series,
}

/// What a source that has restarted sends of a window of which it had sent something before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Restarted {
    /// All of it again, as nothing of the window was acknowledged before it is emitted: what the newer instance
    /// delivers replaces what the older one did.
    #[default]
    Replace,
    /// What it has seen since: both count.
    Add,
}

/// Sources, times and limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectorConfig {
    /// Which sources make a window complete.
    pub expected: Expected,
    /// What becomes complete together.
    pub scope: Scope,
    /// What becomes of the messages of a source that has restarted.
    pub restarted: Restarted,
    /// How long after its first message a window waits for the others, in nanoseconds.
    pub max_wait_ns: u64,
    /// How long after it was emitted a window is remembered, in nanoseconds: so long a repeat is
    /// told from a straggler. Beyond it both are late, and so is what was sent or what ended before.
    pub dedupe_horizon_ns: u64,
    /// The most windows in memory. Of those emitted the oldest is forgotten early to make room;
    /// if all are open, messages for further ones are refused.
    pub max_windows: usize,
    /// The most messages that one source may send for a window.
    pub max_parts: u32,
    /// The most instances whose forgotten messages, and whose order, are remembered.
    pub max_instances: usize,
}

impl Default for CollectorConfig {
    fn default() -> Self {
        const SECOND: u64 = 1_000_000_000;
        Self {
            expected: Expected::Count(1),
            scope: Scope::default(),
            restarted: Restarted::default(),
            max_wait_ns: 30 * SECOND,
            dedupe_horizon_ns: 300 * SECOND,
            max_windows: 10_000,
            max_parts: 65_536,
            max_instances: 4096,
        }
    }
}

/// A configuration with which nothing could be collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{setting} must be at least 1, got 0")]
pub struct CollectorError {
    /// The setting that is 0.
    pub setting: &'static str,
}
