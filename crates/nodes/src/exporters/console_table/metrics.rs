//! Metric set `exporter.console_table`, and the account of the node.

use otel_arrow_dfe_telemetry::instrument::Counter;
use otel_arrow_dfe_telemetry::metrics::{MetricSet, MetricSetSnapshot};
use otel_arrow_dfe_telemetry::reporter::MetricsReporter;
use otel_arrow_dfe_telemetry_macros::metric_set;

use crate::accounts::{self, Account, NodeName};

/// What the exporter did since the last report.
#[metric_set(name = "exporter.console_table")]
#[derive(Debug, Default, Clone)]
pub struct ConsoleTableMetrics {
    /// Items taken in: the sum of printed and refused.
    #[metric(unit = "{item}")]
    pub items_received: Counter<u64>,
    /// Points printed.
    #[metric(unit = "{item}")]
    pub items_printed: Counter<u64>,
    /// Items refused because they are no number points, or could not be read or written.
    #[metric(unit = "{item}")]
    pub items_refused: Counter<u64>,
}

/// Sums, reports, and the account at the end.
pub(super) struct Metrics {
    set: MetricSet<ConsoleTableMetrics>,
    name: NodeName,
    printed: u64,
    refused: u64,
}

impl Metrics {
    pub(super) fn new(set: MetricSet<ConsoleTableMetrics>, name: NodeName) -> Self {
        Self { set, name, printed: 0, refused: 0 }
    }

    /// Counts items of one batch.
    pub(super) fn count(&mut self, printed: u64, refused: u64) {
        self.printed += printed;
        self.refused += refused;
        self.set.items_received.add(printed + refused);
        self.set.items_printed.add(printed);
        self.set.items_refused.add(refused);
    }

    pub(super) fn report(&mut self, reporter: &mut MetricsReporter) {
        // A full channel keeps the values for the next time.
        let _ = reporter.report(&mut self.set);
    }

    pub(super) fn snapshot(&self) -> MetricSetSnapshot {
        self.set.snapshot()
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        accounts::publish(Account {
            name: self.name.clone(),
            items: "points",
            received: self.printed + self.refused,
            sent: self.printed,
            dropped: vec![("refused", self.refused)],
            in_flight: 0,
            notes: Vec::new(),
        });
    }
}
