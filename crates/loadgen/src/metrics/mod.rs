//! A sender of metrics over OTLP and OTAP, made to cost little while it sends: [`Requests`] are encoded beforehand.
//!
//! What is sent is a [`Corpus`]: numbers that are a function of their position, so that whoever receives quantiles of them
//! can work out what they should be. Every answer is checked: [`send_metrics`] gives a number of points only if all of
//! them were accepted.
//!
//! ```
//! use std::num::NonZeroU64;
//! use catchment_loadgen::metrics::{Corpus, MetricsOptions, MetricsProtocol, MetricsShape, Requests};
//!
//! let corpus = Corpus { count: 10_000, window: NonZeroU64::MIN.saturating_add(4_095), ..Corpus::default() };
//! let options = MetricsOptions::new(MetricsProtocol::OtlpHttp, MetricsShape::SharedMetric);
//! let requests = Requests::encode(&corpus, &options)?;
//! assert_eq!((requests.points(), requests.len()), (10_000, 10));
//! // ... send_metrics(address, &requests, None) ...
//! # Ok::<(), catchment_loadgen::metrics::MetricsError>(())
//! ```

mod corpus;
mod encode;
mod send;

use std::net::SocketAddr;
use std::num::NonZeroUsize;

use serde::Serialize;

pub use corpus::{Corpus, METRIC_NAME, SERIES_KEYS};
pub use encode::{Request, Requests};
pub use send::send_metrics;

/// Bytes that requests may have, a little less than the 4 MiB that receivers of gRPC accept by default.
const MAX_REQUEST_BYTES: usize = 4 * 1024 * 1024 - 1024;

/// How metrics travel. All without TLS and without compression of the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum MetricsProtocol {
    /// OTLP over HTTP/1.1: `POST /v1/metrics`, connections kept alive.
    OtlpHttp,
    /// OTLP over gRPC, unary.
    OtlpGrpc,
    /// A stream of OTAP Arrow over gRPC; buffers are compressed with zstd, as exporters do.
    Otap,
}

/// How points are put into metrics. All are gauges of doubles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum MetricsShape {
    /// Each has a metric and a scope of its own, and 7 attributes: about 273 bytes of OTLP.
    MetricPerPoint,
    /// Those of a request share one metric; each has 3 attributes: about 104 bytes of OTLP.
    SharedMetric,
}

/// How a corpus is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricsOptions {
    /// How metrics travel.
    pub protocol: MetricsProtocol,
    /// How points are put into metrics.
    pub shape: MetricsShape,
    /// Points of a request. At most 65,535 over OTAP, whose identifiers have 16 bits.
    pub batch: NonZeroUsize,
    /// Connections; over OTAP each has one stream. Whichever is free sends the next request of OTLP, unless it is twice as
    /// many as there are connections ahead of the oldest without an answer; of OTAP they take turns, because a stream
    /// depends on its order.
    pub connections: NonZeroUsize,
    /// Requests of a connection that may wait for an answer: always one over OTLP.
    pub in_flight: NonZeroUsize,
}

impl MetricsOptions {
    /// Requests of 1,024 points over one connection; over OTAP 4 of them may wait for an answer.
    #[must_use]
    pub fn new(protocol: MetricsProtocol, shape: MetricsShape) -> Self {
        let of = |number: usize| NonZeroUsize::MIN.saturating_add(number - 1);
        Self { protocol, shape, batch: of(1_024), connections: of(1), in_flight: of(4) }
    }
}

/// What was sent and accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct SentMetrics {
    /// Requests, of OTAP batches.
    pub requests: u64,
    /// Data points.
    pub points: u64,
    /// Bytes of bodies or messages, without HTTP, gRPC and TCP.
    pub bytes: u64,
    /// From the first request to the last answer, without the time to connect.
    pub seconds: f64,
}

/// Metrics could not be made or sent.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// More points than identifiers.
    #[error("{batch} points in a batch: over OTAP expected at most {most}")]
    Batch {
        /// What was asked for.
        batch: usize,
        /// What is possible.
        most: usize,
    },
    /// A request that receivers refuse by default.
    #[error(
        "a request of {points} points has {bytes} bytes: expected at most {MAX_REQUEST_BYTES}, so less points in a batch"
    )]
    TooLarge {
        /// Points of a request.
        points: usize,
        /// What they come to.
        bytes: usize,
    },
    /// The encoder of OTAP failed.
    #[error("points cannot be encoded: {0}")]
    Encode(String),
    /// A connection cannot be made or broke.
    #[error("the connection to {target} failed after {} points were accepted: {reason}", accepted.points)]
    Connection {
        /// Where it went.
        target: SocketAddr,
        /// What was accepted before, over all connections.
        accepted: SentMetrics,
        /// Why.
        reason: String,
    },
    /// The answer is another than that all points were accepted.
    #[error("{target} refused a request after {} points were accepted: {answer}", accepted.points)]
    Refused {
        /// Where it went.
        target: SocketAddr,
        /// What was accepted before, over all connections.
        accepted: SentMetrics,
        /// Status and text of the server.
        answer: String,
    },
}

#[cfg(test)]
mod tests;
