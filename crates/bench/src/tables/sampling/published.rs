//! What others have published: HAProxy's OpenTelemetry filter, in requests a second of one load
//! (haproxytech/haproxy-opentelemetry, pull request 8). Its requests are no records of ours, so what is put side by side is
//! how much faster each gets by recording less.

use super::sides::Side;

/// Requests a second with all recorded, a tenth, and nothing.
struct Published {
    peer: &'static str,
    all: f64,
    tenth: f64,
    nothing: f64,
}

/// Before and after its fast path, which makes nothing that will not be recorded.
const HAPROXY: [Published; 2] = [
    Published { peer: "haproxy-otel-published-fast-path", all: 16_200.0, tenth: 38_700.0, nothing: 48_300.0 },
    Published { peer: "haproxy-otel-published-before", all: 17_000.0, tenth: 22_800.0, nothing: 27_900.0 },
];

/// Rates of a side divided by those with everything kept.
pub(super) fn over_all(side: Side) -> Vec<(&'static str, f64)> {
    let of = |one: &Published| match side {
        Side::Tenth => Some((one.peer, one.tenth / one.all)),
        Side::Nothing => Some((one.peer, one.nothing / one.all)),
        _ => None,
    };
    HAPROXY.iter().filter_map(of).collect()
}

/// Rates of a tenth divided by those of nothing.
pub(super) fn tenth_of_nothing() -> Vec<(&'static str, f64)> {
    HAPROXY.iter().map(|one| (one.peer, one.tenth / one.nothing)).collect()
}
