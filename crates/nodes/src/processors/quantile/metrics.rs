//! Metric set `processor.quantile`, and the account of the node.

use catchment_columns::quantile::Fate;
use otel_arrow_dfe_telemetry::instrument::{Counter, Gauge};
use otel_arrow_dfe_telemetry::metrics::MetricSet;
use otel_arrow_dfe_telemetry::reporter::MetricsReporter;
use otel_arrow_dfe_telemetry_macros::metric_set;

use super::forward::{Forward, is_rest};
use crate::accounts::{self, Account, NodeName};

/// What the processor did since the last report. Items are log records and data points.
#[metric_set(name = "processor.quantile")]
#[derive(Debug, Default, Clone)]
pub struct QuantileMetrics {
    /// Items taken in: the sum of used, forwarded and dropped.
    #[metric(unit = "{item}")]
    pub items_received: Counter<u64>,
    /// Items that at least one measure observed.
    #[metric(unit = "{item}")]
    pub items_used: Counter<u64>,
    /// Items that are not observed, sent on as they came: of signals that no measure wants, and by `forward`.
    #[metric(unit = "{item}")]
    pub items_forwarded: Counter<u64>,
    /// Items that have no value any measure asks for.
    #[metric(unit = "{item}")]
    pub dropped_no_value: Counter<u64>,
    /// Items whose value is no finite number.
    #[metric(unit = "{item}")]
    pub dropped_not_a_number: Counter<u64>,
    /// Items whose weight is no number of at least 1.
    #[metric(unit = "{item}")]
    pub dropped_bad_weight: Counter<u64>,
    /// Points of cumulative sums.
    #[metric(unit = "{item}")]
    pub dropped_cumulative: Counter<u64>,
    /// Points of histograms and summaries.
    #[metric(unit = "{item}")]
    pub dropped_other_points: Counter<u64>,
    /// Items whose window had closed.
    #[metric(unit = "{item}")]
    pub dropped_late: Counter<u64>,
    /// Items too far ahead of the clock.
    #[metric(unit = "{item}")]
    pub dropped_future: Counter<u64>,
    /// Items of series that keep no more values.
    #[metric(unit = "{item}")]
    pub dropped_full: Counter<u64>,
    /// Items of inputs that were refused because a series had no room for them.
    #[metric(unit = "{item}")]
    pub dropped_no_room: Counter<u64>,
    /// Items of batches that could not be read.
    #[metric(unit = "{item}")]
    pub dropped_malformed: Counter<u64>,
    /// Items that are counted as used or dropped and were sent on too.
    #[metric(unit = "{item}")]
    pub items_copied: Counter<u64>,
    /// Late items that were sent to the output for them.
    #[metric(unit = "{item}")]
    pub late_sent: Counter<u64>,
    /// Items sent on, late ones included, that were refused for good downstream.
    #[metric(unit = "{item}")]
    pub forwarded_refused: Counter<u64>,
    /// Outputs sent again after they had been refused for now.
    #[metric(unit = "{output}")]
    pub outputs_retried: Counter<u64>,
    /// Observations that went into the overflow series.
    #[metric(unit = "{observation}")]
    pub overflow_folded: Counter<u64>,
    /// Windows that closed.
    #[metric(unit = "{window}")]
    pub windows_closed: Counter<u64>,
    /// Windows without observations that were told of.
    #[metric(unit = "{window}")]
    pub windows_announced: Counter<u64>,
    /// Series sent as gauges because a summary must not have negative values.
    #[metric(unit = "{series}")]
    pub summary_fallbacks: Counter<u64>,
    /// Points sent.
    #[metric(unit = "{point}")]
    pub points_sent: Counter<u64>,
    /// Points of outputs that were refused for good downstream.
    #[metric(unit = "{point}")]
    pub points_refused: Counter<u64>,
    /// Series in open windows.
    #[metric(unit = "{series}")]
    pub series_open: Gauge<u64>,
    /// Inputs held until their windows are acknowledged.
    #[metric(unit = "{request}")]
    pub inputs_held: Gauge<u64>,
}

/// Sums over the life of the node.
#[derive(Debug, Clone, Default)]
pub(super) struct Totals {
    pub(super) received: u64,
    pub(super) used: u64,
    pub(super) forwarded: u64,
    pub(super) no_value: u64,
    pub(super) not_a_number: u64,
    pub(super) bad_weight: u64,
    pub(super) cumulative: u64,
    pub(super) other_points: u64,
    pub(super) late: u64,
    pub(super) future: u64,
    pub(super) full: u64,
    pub(super) no_room: u64,
    pub(super) malformed: u64,
    pub(super) copied: u64,
    pub(super) late_sent: u64,
    pub(super) forwarded_refused: u64,
    pub(super) retried: u64,
    pub(super) overflow_folded: u64,
    pub(super) windows: u64,
    pub(super) announced: u64,
    pub(super) summary_fallbacks: u64,
    pub(super) points: u64,
    pub(super) points_refused: u64,
    pub(super) series_open: u64,
    pub(super) inputs_held: u64,
}

impl Totals {
    /// Counts items by their fates, and by what goes on of them.
    pub(super) fn count_all(&mut self, fates: &[Fate], forwarding: Forward) {
        // Mostly all are observed; that is counted without a branch for each.
        let observed = fates.iter().map(|fate| u64::from(*fate == Fate::Observed)).sum::<u64>();
        self.used += observed;
        let mut forwarded = 0;
        if observed < fates.len() as u64 {
            for fate in fates {
                if forwarding != Forward::None && is_rest(*fate) {
                    forwarded += 1;
                } else {
                    self.count_dropped(*fate);
                }
            }
        }
        self.forwarded += forwarded;
        if forwarding == Forward::All {
            self.copied += fates.len() as u64 - forwarded;
        }
    }

    /// Counts points of histograms and summaries.
    pub(super) fn count_others(&mut self, points: u64, forwarding: Forward) {
        self.received += points;
        match forwarding {
            Forward::None => self.other_points += points,
            Forward::Rest | Forward::All => self.forwarded += points,
        }
    }

    fn count_dropped(&mut self, fate: Fate) {
        match fate {
            Fate::Observed => {}
            Fate::NoValue => self.no_value += 1,
            Fate::Cumulative => self.cumulative += 1,
            Fate::NotANumber => self.not_a_number += 1,
            Fate::BadWeight => self.bad_weight += 1,
            Fate::Future => self.future += 1,
            Fate::Late => self.late += 1,
            Fate::Full => self.full += 1,
        }
    }
}

/// Turns sums into reports, and closes the account at the end.
pub(super) struct Metrics {
    set: MetricSet<QuantileMetrics>,
    name: NodeName,
    told: Totals,
    pub(super) totals: Totals,
}

impl Metrics {
    pub(super) fn new(set: MetricSet<QuantileMetrics>, name: NodeName) -> Self {
        Self { set, name, told: Totals::default(), totals: Totals::default() }
    }

    pub(super) fn report(&mut self, reporter: &mut MetricsReporter) {
        let (now, old, set) = (&self.totals, &self.told, &mut self.set);
        set.items_received.add(now.received - old.received);
        set.items_used.add(now.used - old.used);
        set.items_forwarded.add(now.forwarded - old.forwarded);
        set.dropped_no_value.add(now.no_value - old.no_value);
        set.dropped_not_a_number.add(now.not_a_number - old.not_a_number);
        set.dropped_bad_weight.add(now.bad_weight - old.bad_weight);
        set.dropped_cumulative.add(now.cumulative - old.cumulative);
        set.dropped_other_points.add(now.other_points - old.other_points);
        set.dropped_late.add(now.late - old.late);
        set.dropped_future.add(now.future - old.future);
        set.dropped_full.add(now.full - old.full);
        set.dropped_no_room.add(now.no_room - old.no_room);
        set.items_copied.add(now.copied - old.copied);
        set.late_sent.add(now.late_sent - old.late_sent);
        set.forwarded_refused.add(now.forwarded_refused - old.forwarded_refused);
        set.outputs_retried.add(now.retried - old.retried);
        set.dropped_malformed.add(now.malformed - old.malformed);
        set.overflow_folded.add(now.overflow_folded - old.overflow_folded);
        set.windows_closed.add(now.windows - old.windows);
        set.windows_announced.add(now.announced - old.announced);
        set.summary_fallbacks.add(now.summary_fallbacks - old.summary_fallbacks);
        set.points_sent.add(now.points - old.points);
        set.points_refused.add(now.points_refused - old.points_refused);
        set.series_open.set(now.series_open);
        set.inputs_held.set(now.inputs_held);
        self.told = self.totals.clone();
        // A full channel keeps the values for the next time.
        let _ = reporter.report(&mut self.set);
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        let totals = &self.totals;
        accounts::publish(Account {
            name: self.name.clone(),
            items: "records",
            received: totals.received,
            sent: totals.used + totals.forwarded,
            dropped: vec![
                ("no value", totals.no_value),
                ("not a number", totals.not_a_number),
                ("bad weight", totals.bad_weight),
                ("cumulative", totals.cumulative),
                ("other points", totals.other_points),
                ("late", totals.late),
                ("future", totals.future),
                ("full", totals.full),
                ("no room", totals.no_room),
                ("malformed", totals.malformed),
            ],
            in_flight: 0,
            notes: vec![
                ("windows", totals.windows),
                ("announced", totals.announced),
                ("points sent", totals.points),
                ("points refused", totals.points_refused),
                ("forwarded", totals.forwarded),
                ("copied", totals.copied),
                ("late sent", totals.late_sent),
                ("forwarded refused", totals.forwarded_refused),
                ("outputs retried", totals.retried),
            ],
        });
    }
}
