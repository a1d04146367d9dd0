//! What ASAPCollector has published of its stream benchmark: two sources, one core for each role, OTLP over HTTP, a metric
//! for each point. Not measured here, and on another machine. Its branch counts the points of a request and takes the values
//! from a formula instead of the request.

use catchment_loadgen::metrics::{MetricsProtocol, MetricsShape};

use super::super::numbers::Metric;
use super::cases::{Case, Method, Place, Window};
use super::run::{BYTES_IN, BYTES_OUT, BYTES_WINDOW, CPU, RATE};
use super::topology::{ESTIMATE_WINDOW, MERGE_WINDOW};

/// The one number of a metric, or the ends of a range.
const ONE: &str = "asapcollector-published";
const LOWEST: &str = "asapcollector-published-lowest";
const HIGHEST: &str = "asapcollector-published-highest";

/// What can stand beside a metric of a method.
pub(super) fn of(case: &Case, method: Method, metric: Metric) -> Vec<(&'static str, f64)> {
    if case.protocol != MetricsProtocol::OtlpHttp || case.shape != MetricsShape::MetricPerPoint {
        return Vec::new();
    }
    let one = |value| vec![(ONE, value)];
    let range = |lowest, highest| vec![(LOWEST, lowest), (HIGHEST, highest)];
    match (case.place, method) {
        (Place::Branch, Method::Kll) if metric == CPU => one(match case.window {
            Window::Small => 402.0,
            Window::Middle => 365.0,
            Window::Large => 353.0,
        }),
        (Place::Branch, Method::Kll) if metric == BYTES_IN => one(273.0),
        (Place::Branch, Method::Kll) if metric == BYTES_WINDOW => one(12_800.0),
        (Place::Branch, Method::Exact) if metric == BYTES_OUT => one(105.0),
        (Place::Topology, Method::Kll) if metric == RATE => range(4_900_000.0, 5_600_000.0),
        (Place::Topology, Method::Kll) if metric == MERGE_WINDOW => one(2.4),
        (Place::Topology, Method::Kll) if metric == ESTIMATE_WINDOW => one(1.7),
        (Place::Topology, Method::Exact) if metric == RATE => range(60_000.0, 74_000.0),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cases;
    use super::*;

    /// Only cases of the same protocol and shape have something beside them, and those of one process a number for each
    /// window.
    #[test]
    fn beside() {
        for case in cases::all() {
            let same = case.name().contains("otlp_http/metric_per_point");
            let cpu = of(&case, Method::Kll, CPU);
            assert_eq!(cpu.len(), usize::from(same && case.place == Place::Branch), "{case:?}");
            let rate = of(&case, Method::Exact, RATE);
            assert_eq!(rate.len(), if same && case.place == Place::Topology { 2 } else { 0 }, "{case:?}");
            assert!(of(&case, Method::Raw, RATE).is_empty());
        }
    }
}
