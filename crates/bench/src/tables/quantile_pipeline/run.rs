//! What all runs have in common: the load, the sink, and the numbers.

use std::net::SocketAddr;
use std::time::Duration;

use catchment_loadgen::metrics::{MetricsError, MetricsProtocol, Requests, send_metrics};
use catchment_loadgen::sink::{
    Counts, MetricsMessage, Recording, RunningSink, Sink, SinkError, SinkOptions, WaitError,
};

use super::super::numbers::Metric;
use super::arrived::ArrivedError;
use super::cases::{Case, Method};
use super::truth::{self, Truth, Wrong};
use crate::process::ProcessError;

/// How long what was sent may take to arrive.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Observations of all sources in a second, from the first request until everything has arrived.
pub(super) const RATE: Metric = Metric { name: "rate", unit: "observations/s" };
/// CPU time of the branch process for each observation.
pub(super) const CPU: Metric = Metric { name: "cpu", unit: "ns/observation" };
/// Observations that a core can take of which the branch has all: one divided by `cpu`.
pub(super) const RATE_OF_CORE: Metric = Metric { name: "rate_of_core", unit: "M observations/s" };
/// Bytes of requests or batches that a branch receives and sends.
pub(super) const BYTES_IN: Metric = Metric { name: "bytes_in", unit: "B/observation" };
pub(super) const BYTES_OUT: Metric = Metric { name: "bytes_out", unit: "B/observation" };
/// The same, of all series of a window.
pub(super) const BYTES_WINDOW: Metric = Metric { name: "bytes_out_window", unit: "B/window" };
/// A sketch or sorted run by itself.
pub(super) const ENVELOPE: Metric = Metric { name: "sketch", unit: "B" };
/// Largest resident size of the branch process.
pub(super) const RSS: Metric = Metric { name: "rss", unit: "MiB" };

/// Why a run gives no numbers.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Sink(#[from] SinkError),
    #[error("{source}; last words of the engine:\n{log}")]
    Send { source: MetricsError, log: String },
    #[error("{source}; last words of the engines:\n{log}")]
    Missing { source: WaitError, log: String },
    #[error(transparent)]
    Arrived(#[from] ArrivedError),
    #[error(transparent)]
    Wrong(#[from] Wrong),
    #[error("{sent} points were sent, but other ones or {} arrived, and {} undecodable requests", counts.points, counts.decode_errors)]
    Different { sent: u64, counts: Counts },
}

/// What a source sends.
#[derive(Debug)]
struct Source {
    all: Requests,
    /// The first of them.
    raw: Requests,
    /// An observation that closes all windows.
    closing: Requests,
}

/// What all sources of a case send, and what should come of it.
#[derive(Debug)]
pub(super) struct Load {
    sources: Vec<Source>,
    pub(super) truth: Truth,
    raw_values: Vec<u64>,
}

impl Load {
    /// Encodes all requests.
    pub(super) fn new(case: &Case, quick: bool) -> Result<Self, MetricsError> {
        let corpora: Vec<_> = (0..case.sources()).map(|source| case.corpus(source, quick)).collect();
        let options = case.options();
        let raw_points = if case.methods().contains(&Method::Raw) { case.raw_points(quick) } else { 0 };
        let source = |corpus| {
            let closing = truth::closing_index(corpus);
            Ok(Source {
                all: Requests::encode(corpus, &options)?,
                raw: Requests::encode_part(corpus, 0..raw_points, &options)?,
                closing: Requests::encode_part(corpus, closing..closing + 1, &options)?,
            })
        };
        Ok(Self {
            sources: corpora.iter().map(source).collect::<Result<_, MetricsError>>()?,
            truth: Truth::new(&corpora),
            raw_values: truth::raw_values(&corpora, raw_points),
        })
    }

    /// Points of all sources, without those that close windows.
    pub(super) fn points(&self, method: Method) -> u64 {
        self.sources.iter().map(|source| source.requests(method).points()).sum()
    }

    /// Bytes of their requests.
    pub(super) fn bytes(&self, method: Method) -> u64 {
        self.sources.iter().map(|source| source.requests(method).bytes()).sum()
    }

    /// Sends what a source has, and lets its windows close.
    pub(super) fn send(&self, source: usize, method: Method, to: SocketAddr) -> Result<(), MetricsError> {
        let Some(source) = self.sources.get(source) else { return Ok(()) };
        let _ = send_metrics(to, source.requests(method), None)?;
        if method != Method::Raw {
            let _ = send_metrics(to, &source.closing, None)?;
        }
        Ok(())
    }

    /// Whether points that passed through are those that were sent.
    pub(super) fn is_raw(&self, values: &[u64]) -> bool {
        self.raw_values == values
    }
}

impl Source {
    fn requests(&self, method: Method) -> &Requests {
        match method {
            Method::Kll | Method::Exact => &self.all,
            Method::Raw => &self.raw,
        }
    }
}

/// Starts a sink of one protocol that keeps metrics; gives its address too.
pub(super) fn start_sink(protocol: MetricsProtocol) -> Result<(RunningSink, SocketAddr), SinkError> {
    let any = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut options = SinkOptions { record: Recording::Metrics, ..SinkOptions::default() };
    match protocol {
        MetricsProtocol::OtlpHttp => options.otlp_http = any,
        MetricsProtocol::OtlpGrpc => options.otlp_grpc = any,
        MetricsProtocol::Otap => options.otap = any,
    }
    let sink = Sink::start(options)?;
    let addresses = sink.addresses();
    let endpoint = addresses.otlp_http.or(addresses.otlp_grpc).or(addresses.otap).ok_or(SinkError::NoAddress)?;
    Ok((sink, endpoint))
}

/// Ends a sink that nothing is sent to any more; gives what arrived. Nothing may have been undecodable.
pub(super) fn finish(sink: RunningSink, sent: u64) -> Result<(Vec<MetricsMessage>, Counts), RunError> {
    let messages = sink.take_metrics();
    let counts = sink.stop()?;
    if counts.decode_errors != 0 || counts.items() != counts.points {
        return Err(RunError::Different { sent, counts });
    }
    Ok((messages, counts))
}

/// Checks points that passed through.
pub(super) fn check_raw(load: &Load, messages: Vec<MetricsMessage>, counts: Counts) -> Result<(), RunError> {
    let values = super::arrived::raw_values(messages)?;
    if load.is_raw(&values) { Ok(()) } else { Err(RunError::Different { sent: load.points(Method::Raw), counts }) }
}
