//! The three signals, and the names that OTLP and OTAP give to their services.

/// A signal of OpenTelemetry. A request carries exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Log records.
    Logs,
    /// Metric points.
    Metrics,
    /// Spans.
    Traces,
}

impl Signal {
    /// All signals, in the order of [`Signal::index`].
    pub const ALL: [Self; 3] = [Self::Logs, Self::Metrics, Self::Traces];

    /// A number from 0 to 2, for tables with one entry a signal.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Path of the unary OTLP method over gRPC.
    #[must_use]
    pub const fn otlp_grpc_path(self) -> &'static str {
        match self {
            Self::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
            Self::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
            Self::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        }
    }

    /// Default path of OTLP over HTTP.
    #[must_use]
    pub const fn otlp_http_path(self) -> &'static str {
        match self {
            Self::Logs => "/v1/logs",
            Self::Metrics => "/v1/metrics",
            Self::Traces => "/v1/traces",
        }
    }

    /// Path of the bidirectional OTAP method.
    #[must_use]
    pub const fn otap_path(self) -> &'static str {
        match self {
            Self::Logs => "/opentelemetry.proto.experimental.arrow.v1.ArrowLogsService/ArrowLogs",
            Self::Metrics => "/opentelemetry.proto.experimental.arrow.v1.ArrowMetricsService/ArrowMetrics",
            Self::Traces => "/opentelemetry.proto.experimental.arrow.v1.ArrowTracesService/ArrowTraces",
        }
    }
}
