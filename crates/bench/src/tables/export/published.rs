//! What others have published: SONiC's countersyncd, which writes OTLP from such counters, into a sink that reads bytes.

use super::super::numbers::Metric;
use super::cases::{Case, Side, Source, Wire};
use super::run::{BYTES, EXPORT, RATE_OF_CORE};

/// Numbers to put beside ours: the peer, and its number.
pub(super) fn of(case: &Case, side: Side, metric: Metric) -> Vec<(&'static str, f64)> {
    let same = matches!(case.source, Source::Sonic { .. }) && matches!(side, Side::Lanes(Wire::Otlp, _));
    if !same {
        return Vec::new();
    }
    match metric {
        // 15.6 and 20.7 million points a second of three threads with two lanes each; 4.5 of one thread with one lane.
        RATE_OF_CORE => vec![
            ("countersyncd-published-3-threads-owned-metadata", 5.2),
            ("countersyncd-published-3-threads-shared-metadata", 6.9),
            ("countersyncd-published-1-thread-1-lane", 4.5),
        ],
        EXPORT => vec![("countersyncd-published-sender", 130.0)],
        BYTES => vec![("countersyncd-published", 140.6)],
        _ => Vec::new(),
    }
}
