//! Metric set `processor.quantile.merge`, and the account of the node.

use catchment_quantile::exchange::ExchangeCounters;
use otel_arrow_dfe_telemetry::instrument::{Counter, Gauge};
use otel_arrow_dfe_telemetry::metrics::MetricSet;
use otel_arrow_dfe_telemetry::reporter::MetricsReporter;
use otel_arrow_dfe_telemetry_macros::metric_set;

use crate::accounts::{self, Account, NodeName};

/// What the processor did since the last report. Messages are sketches and runs of other processes.
#[metric_set(name = "processor.quantile.merge")]
#[derive(Debug, Default, Clone)]
pub struct MergeMetrics {
    /// Messages and other items taken in: the sum of merged, waiting, forwarded and dropped.
    #[metric(unit = "{message}")]
    pub messages_received: Counter<u64>,
    /// Messages in windows that were sent.
    #[metric(unit = "{message}")]
    pub messages_merged: Counter<u64>,
    /// Items of other signals, passed on as they came.
    #[metric(unit = "{item}")]
    pub items_forwarded: Counter<u64>,
    /// Repeats of messages that count already.
    #[metric(unit = "{message}")]
    pub dropped_duplicate: Counter<u64>,
    /// Messages whose window was sent without them.
    #[metric(unit = "{message}")]
    pub dropped_late: Counter<u64>,
    /// Messages of instances of a source after which a newer one has delivered for the window.
    #[metric(unit = "{message}")]
    pub dropped_replaced: Counter<u64>,
    /// Messages of windows that were dropped because sources were missing.
    #[metric(unit = "{message}")]
    pub dropped_incomplete: Counter<u64>,
    /// Messages that do not fit those before, of unknown sources, or with content that cannot be merged.
    #[metric(unit = "{message}")]
    pub dropped_refused: Counter<u64>,
    /// Points that are no messages, or none with a source.
    #[metric(unit = "{item}")]
    pub dropped_malformed: Counter<u64>,
    /// Windows in which all sources are.
    #[metric(unit = "{window}")]
    pub windows_complete: Counter<u64>,
    /// Windows sent or dropped in which sources are missing.
    #[metric(unit = "{window}")]
    pub windows_incomplete: Counter<u64>,
    /// Series sent as gauges because a summary must not have negative values.
    #[metric(unit = "{series}")]
    pub summary_fallbacks: Counter<u64>,
    /// Points sent.
    #[metric(unit = "{point}")]
    pub points_sent: Counter<u64>,
    /// Points of outputs that were refused for good downstream.
    #[metric(unit = "{point}")]
    pub points_refused: Counter<u64>,
    /// Outputs sent again after they had been refused for now.
    #[metric(unit = "{output}")]
    pub outputs_retried: Counter<u64>,
    /// Messages in windows that wait for more.
    #[metric(unit = "{message}")]
    pub messages_waiting: Gauge<u64>,
    /// Windows that wait for more.
    #[metric(unit = "{window}")]
    pub windows_waiting: Gauge<u64>,
    /// Inputs held until their windows are acknowledged.
    #[metric(unit = "{request}")]
    pub inputs_held: Gauge<u64>,
}

/// Sums over the life of the node, besides those of the exchange.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct Totals {
    pub(in super::super) exchange: ExchangeCounters,
    pub(in super::super) forwarded: u64,
    pub(in super::super) incomplete: u64,
    /// Messages of windows whose contents could not be put together.
    pub(in super::super) unmerged: u64,
    pub(in super::super) malformed: u64,
    pub(in super::super) windows_complete: u64,
    pub(in super::super) windows_incomplete: u64,
    pub(in super::super) summary_fallbacks: u64,
    pub(in super::super) points: u64,
    pub(in super::super) points_refused: u64,
    pub(in super::super) retried: u64,
    pub(in super::super) windows_waiting: u64,
    pub(in super::super) inputs_held: u64,
}

impl Totals {
    pub(in super::super) fn received(&self) -> u64 {
        self.exchange.received + self.forwarded + self.malformed
    }

    pub(in super::super) fn merged(&self) -> u64 {
        self.exchange.merged - self.incomplete - self.unmerged
    }

    fn refused(&self) -> u64 {
        self.exchange.refused + self.unmerged
    }
}

/// Turns sums into reports, and closes the account at the end.
pub(in super::super) struct Metrics {
    set: MetricSet<MergeMetrics>,
    name: NodeName,
    told: Totals,
    pub(in super::super) totals: Totals,
}

impl Metrics {
    pub(in super::super) fn new(set: MetricSet<MergeMetrics>, name: NodeName) -> Self {
        Self { set, name, told: Totals::default(), totals: Totals::default() }
    }

    pub(super) fn report(&mut self, reporter: &mut MetricsReporter) {
        let (now, old, set) = (&self.totals, &self.told, &mut self.set);
        set.messages_received.add(now.received() - old.received());
        set.messages_merged.add(now.merged() - old.merged());
        set.items_forwarded.add(now.forwarded - old.forwarded);
        set.dropped_duplicate.add(now.exchange.duplicates - old.exchange.duplicates);
        set.dropped_late.add(now.exchange.late - old.exchange.late);
        set.dropped_replaced.add(now.exchange.replaced - old.exchange.replaced);
        set.dropped_incomplete.add(now.incomplete - old.incomplete);
        set.dropped_refused.add(now.refused() - old.refused());
        set.dropped_malformed.add(now.malformed - old.malformed);
        set.windows_complete.add(now.windows_complete - old.windows_complete);
        set.windows_incomplete.add(now.windows_incomplete - old.windows_incomplete);
        set.summary_fallbacks.add(now.summary_fallbacks - old.summary_fallbacks);
        set.points_sent.add(now.points - old.points);
        set.points_refused.add(now.points_refused - old.points_refused);
        set.outputs_retried.add(now.retried - old.retried);
        set.messages_waiting.set(now.exchange.waiting);
        set.windows_waiting.set(now.windows_waiting);
        set.inputs_held.set(now.inputs_held);
        self.told = self.totals;
        // A full channel keeps the values for the next time.
        let _ = reporter.report(&mut self.set);
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        let totals = &self.totals;
        accounts::publish(Account {
            name: self.name.clone(),
            items: "messages",
            received: totals.received(),
            sent: totals.merged() + totals.forwarded,
            dropped: vec![
                ("duplicates", totals.exchange.duplicates),
                ("late", totals.exchange.late),
                ("replaced", totals.exchange.replaced),
                ("incomplete", totals.incomplete),
                ("refused", totals.refused()),
                ("malformed", totals.malformed),
                // In windows that were not sent: their inputs are refused for now.
                ("returned", totals.exchange.waiting),
            ],
            in_flight: 0,
            notes: vec![
                ("complete windows", totals.windows_complete),
                ("incomplete windows", totals.windows_incomplete),
                ("points sent", totals.points),
                ("points refused", totals.points_refused),
                ("forwarded", totals.forwarded),
                ("outputs retried", totals.retried),
            ],
        });
    }
}
