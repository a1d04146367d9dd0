//! The wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since the Unix epoch; 0 on a clock before 1970 or beyond 2262.
pub(crate) fn now_unix_nano() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|elapsed| i64::try_from(elapsed.as_nanos()).ok())
        .unwrap_or(0)
}
