//! Metric set `receiver.ipfix.problems`: faults in the bytes, by kind.

use catchment_ipfix::ProblemKind;
use otel_arrow_dfe_telemetry::instrument::Counter;
use otel_arrow_dfe_telemetry::metrics::{MeasurementMetricSet, MetricSetSnapshot};
use otel_arrow_dfe_telemetry::reporter::MetricsReporter;
use otel_arrow_dfe_telemetry_macros::{AttributeEnum, attribute_set, metric_set};

/// The kinds as an attribute, from those of the protocol crate.
macro_rules! kinds {
    ($($kind:ident,)*) => {
        /// Kind of a fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, AttributeEnum)]
        pub enum Kind {
            $(
                #[doc = concat!("`", stringify!($kind), "` of the protocol crate, which says what it is.")]
                $kind,
            )*
        }

        impl From<ProblemKind> for Kind {
            fn from(kind: ProblemKind) -> Self {
                match kind {
                    $(ProblemKind::$kind => Self::$kind,)*
                }
            }
        }
    };
}

kinds! {
    Truncated, Version, MessageLength, SetLength, TemplateOverrun, RecordOverrun, TemplateInvalid, TemplateLimit,
    TemplateBudget,
    TemplateRedefined, EmptyScope, EmptyRecords, WithdrawalIgnored, WithdrawalUnknown, ReservedSet, UnknownTemplate,
    MalformedList, UnknownSubTemplate, RecordCount, TrailingBytes,
}

/// Attributes of the counts.
#[attribute_set(item, measurement)]
#[derive(Debug, Clone, Copy)]
pub struct ProblemAttributes {
    /// What is wrong.
    pub kind: Kind,
}

/// Faults since the last report.
#[metric_set(name = "receiver.ipfix.problems", measurement_attributes = ProblemAttributes)]
#[derive(Debug, Default, Clone)]
pub struct ProblemMetrics {
    /// Faults in the bytes, also those that cost nothing.
    #[metric(unit = "{error}")]
    pub problems: Counter<u64>,
}

/// Turns sums into reports.
pub(super) struct ProblemReports {
    set: MeasurementMetricSet<ProblemMetrics>,
    told: [u64; ProblemKind::ALL.len()],
}

impl ProblemReports {
    pub(super) fn new(set: MeasurementMetricSet<ProblemMetrics>) -> Self {
        Self { set, told: [0; ProblemKind::ALL.len()] }
    }

    /// Brings the set up to the sums, which are in the order of [`ProblemKind::ALL`].
    pub(super) fn update(&mut self, sums: &[u64; ProblemKind::ALL.len()]) {
        for ((kind, sum), told) in ProblemKind::ALL.iter().zip(sums).zip(&mut self.told) {
            let new = sum.saturating_sub(*told);
            if new > 0 {
                self.set.with(ProblemAttributes { kind: Kind::from(*kind) }).problems.add(new);
            }
            *told = *sum;
        }
    }

    pub(super) fn report(&mut self, reporter: &mut MetricsReporter) {
        // A full channel keeps the values for the next time.
        let _ = reporter.report_measurement(&mut self.set);
    }

    pub(super) fn last(&mut self) -> Vec<MetricSetSnapshot> {
        self.set.terminal_snapshots()
    }
}
