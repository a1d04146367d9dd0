//! Metric set `receiver.syslog.parsed`: what messages were read as.

use catchment_columns::syslog::Parsed;
use otel_arrow_dfe_telemetry::instrument::Counter;
use otel_arrow_dfe_telemetry::metrics::{MeasurementMetricSet, MetricSetSnapshot};
use otel_arrow_dfe_telemetry::reporter::MetricsReporter;
use otel_arrow_dfe_telemetry_macros::{AttributeEnum, attribute_set, metric_set};

/// Format of a message, as in the attribute `input.format` of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, AttributeEnum)]
pub enum Format {
    /// RFC 3164 and its relatives.
    Rfc3164,
    /// RFC 5424.
    Rfc5424,
    /// CEF without a syslog header.
    Cef,
    /// CEF in RFC 3164.
    CefRfc3164,
    /// CEF in RFC 5424.
    CefRfc5424,
}

/// How far a message could be taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, AttributeEnum)]
pub enum Result {
    /// Everything has its place.
    Full,
    /// Something has none; the record has the whole message too.
    Partial,
}

/// Attributes of the counts.
#[attribute_set(item, measurement)]
#[derive(Debug, Clone, Copy)]
pub struct ParsedAttributes {
    /// Format.
    pub format: Format,
    /// How far.
    pub result: Result,
}

/// Messages decoded since the last report.
#[metric_set(name = "receiver.syslog.parsed", measurement_attributes = ParsedAttributes)]
#[derive(Debug, Default, Clone)]
pub struct ParsedMetrics {
    /// Messages decoded by this node. Those that go out encoded are decoded elsewhere.
    #[metric(unit = "{message}")]
    pub messages: Counter<u64>,
}

/// Turns sums into reports.
pub(super) struct Told {
    set: MeasurementMetricSet<ParsedMetrics>,
    told: Parsed,
}

impl Told {
    pub(super) fn new(set: MeasurementMetricSet<ParsedMetrics>) -> Self {
        Self { set, told: Parsed::default() }
    }

    /// Brings the set up to the sums of `parsed`.
    pub(super) fn update(&mut self, parsed: Parsed) {
        for ((format, full, partial), (_, told_full, told_partial)) in parsed.iter().zip(self.told.iter()) {
            let format = match format {
                catchment_syslog::Format::Rfc3164 => Format::Rfc3164,
                catchment_syslog::Format::Rfc5424 => Format::Rfc5424,
                catchment_syslog::Format::Cef => Format::Cef,
                catchment_syslog::Format::CefRfc3164 => Format::CefRfc3164,
                catchment_syslog::Format::CefRfc5424 => Format::CefRfc5424,
            };
            for (result, new) in [(Result::Full, full - told_full), (Result::Partial, partial - told_partial)] {
                if new > 0 {
                    self.set.with(ParsedAttributes { format, result }).messages.add(new);
                }
            }
        }
        self.told = parsed;
    }

    pub(super) fn report(&mut self, reporter: &mut MetricsReporter) {
        // A full channel keeps the values for the next time.
        let _ = reporter.report_measurement(&mut self.set);
    }

    pub(super) fn last(&mut self) -> Vec<MetricSetSnapshot> {
        self.set.terminal_snapshots()
    }
}
