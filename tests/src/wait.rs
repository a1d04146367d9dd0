//! Waiting for conditions.

use std::time::{Duration, Instant};

/// How long anything may take: far longer than it does, even on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two looks at a condition.
const POLL: Duration = Duration::from_millis(20);

/// Waits until `condition` holds.
///
/// # Panics
/// After [`PATIENCE`], naming `what`.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// Waits until `condition` gives something.
///
/// # Panics
/// After [`PATIENCE`], naming `what`.
pub fn wait_for<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, condition).unwrap_or_else(|| panic!("waited {PATIENCE:?} in vain: {what}"))
}

/// What `condition` gives within `patience`.
pub(crate) fn within<T>(patience: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(found) = condition() {
            return Some(found);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(POLL);
    }
}
