//! What an engine says about itself.

use serde_json::Value;

/// One answer of the admin server's metrics, as JSON.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Metrics(Value);

impl Metrics {
    /// `None` if it is not the JSON that the admin server gives.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(body).ok()?;
        value["metric_sets"].is_array().then_some(Self(value))
    }

    /// Sum of the metrics of a set, in the main pipeline, that `wanted` says yes to by name. Series of failed or
    /// refused items are left out. Sets and series that have not counted yet are not there, and count as 0.
    pub(crate) fn sum(&self, set: &str, wanted: impl Fn(&str) -> bool) -> u64 {
        let sets = self.0["metric_sets"].as_array().map_or(&[][..], Vec::as_slice);
        let text = |attributes: &Value, key: &str| attributes[key]["String"].as_str().map(str::to_owned);
        sets.iter()
            .filter(|one| one["name"] == set && text(&one["attributes"], "pipeline.id").as_deref() == Some(MAIN))
            .filter_map(|one| one["metrics"].as_array())
            .flatten()
            .filter(|metric| metric["name"].as_str().is_some_and(&wanted))
            .filter(|metric| text(&metric["attributes"], "outcome").is_none_or(|outcome| outcome == "success"))
            .filter_map(|metric| metric["value"].as_u64())
            .sum()
    }
}

/// The pipeline under measurement.
pub(crate) const MAIN: &str = "main";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Sets, pipelines, outcomes and metrics are told apart, and what is left is added up.
    #[test]
    fn sums() {
        let set = |name: &str, pipeline: &str, metrics: Value| json!({ "name": name, "attributes": { "pipeline.id": { "String": pipeline } }, "metrics": metrics });
        let messages = |outcome: &str, value: u64| json!({ "name": "messages", "attributes": { "outcome": { "String": outcome } }, "value": value });
        let body = json!({ "metric_sets": [
            set("receiver.received", "main", json!([messages("success", 40), messages("failure", 3)])),
            set("receiver.received", "main", json!([messages("success", 2)])),
            set("receiver.received", "probe", json!([messages("success", 500)])),
            set("receiver.syslog", "main", json!([
                { "name": "messages.sent", "value": 7 },
                { "name": "datagrams.dropped", "value": 9 },
                { "name": "duration", "value": { "sum": 1.5 } },
            ])),
        ] });
        let metrics = Metrics::parse(body.to_string().as_bytes()).unwrap();
        assert_eq!(metrics.sum("receiver.received", |name| name == "messages"), 42);
        assert_eq!(metrics.sum("receiver.syslog", |name| name == "messages.sent"), 7);
        assert_eq!(metrics.sum("receiver.syslog", |name| name.contains("drop")), 9);
        assert_eq!(metrics.sum("receiver.syslog", |_| true), 16);
        assert_eq!(metrics.sum("receiver.other", |_| true), 0);
    }

    /// Other answers are not taken for "nothing was counted".
    #[test]
    fn not_metrics() {
        for body in [&b""[..], b"# TYPE a counter", b"{}", b"{\"metric_sets\": 1}"] {
            assert_eq!(Metrics::parse(body), None);
        }
    }
}
