//! The command that sends metrics.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

use catchment_loadgen::metrics::{
    Corpus, MetricsOptions, MetricsProtocol, MetricsShape, Requests, SentMetrics, send_metrics,
};
use clap::Args;

use super::CliError;
use super::target::resolve;

#[derive(Debug, Args)]
pub(super) struct MetricsArgs {
    /// How metrics travel: HTTP to the path /v1/metrics, unary gRPC, or a stream of Arrow.
    #[arg(long, value_enum)]
    protocol: MetricsProtocol,
    /// HOST:PORT of the receiver.
    #[arg(long, value_name = "HOST:PORT")]
    target: String,
    /// How points are put into metrics.
    #[arg(long, value_enum, default_value = "shared_metric")]
    shape: MetricsShape,
    /// Number of this source: sources with the same count send different values.
    #[arg(long, default_value_t = 0)]
    source: u64,
    /// Points to send.
    #[arg(long)]
    count: u64,
    /// Points of each 10 s of event time, from 2026-01-01T00:00:00Z on.
    #[arg(long, default_value = "65536")]
    window: NonZeroU64,
    /// Points of a request.
    #[arg(long, default_value = "1024")]
    batch: NonZeroUsize,
    /// Attribute sets over which the points are spread, by a hash.
    #[arg(long, default_value = "1")]
    series: NonZeroU32,
    /// Connections, over OTAP with one stream each, that share the requests.
    #[arg(long, default_value = "1")]
    connections: NonZeroUsize,
    /// Batches of a stream of OTAP that may wait for an answer; OTLP always waits for each.
    #[arg(long, default_value = "4")]
    in_flight: NonZeroUsize,
    /// Points a second; without it as fast as the receiver answers.
    #[arg(long)]
    rate: Option<NonZeroU64>,
}

pub(super) fn metrics(args: &MetricsArgs) -> Result<SentMetrics, CliError> {
    let target: SocketAddr = resolve(&args.target)?;
    let corpus = Corpus { source: args.source, count: args.count, window: args.window, series: args.series };
    let options = MetricsOptions {
        batch: args.batch,
        connections: args.connections,
        in_flight: args.in_flight,
        ..MetricsOptions::new(args.protocol, args.shape)
    };
    let requests = Requests::encode(&corpus, &options)?;
    Ok(send_metrics(target, &requests, args.rate)?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use catchment_loadgen::sink::{Sink, SinkOptions};

    use super::*;
    use crate::cli::Command;
    use crate::cli::send::tests::command;

    fn arguments(words: &[&str]) -> MetricsArgs {
        match command(words) {
            Command::Metrics(args) => args,
            other => panic!("not metrics: {other:?}"),
        }
    }

    /// The options reach the sender, and all points the sink.
    #[test]
    fn sent() {
        let any = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let sink = Sink::start(SinkOptions { otlp_http: any, ..SinkOptions::default() }).unwrap();
        let target = sink.addresses().otlp_http.unwrap().to_string();
        let words = ["metrics", "--protocol", "otlp_http", "--target", &target, "--shape", "metric_per_point"];
        let more = ["--count", "1000", "--batch", "300", "--series", "8", "--connections", "2", "--rate", "100000000"];
        let sent = metrics(&arguments(&[&words[..], &more[..]].concat())).unwrap();
        assert_eq!((sent.points, sent.requests), (1_000, 4));
        assert!((268_000..278_000).contains(&sent.bytes), "{sent:?}");
        let counts = sink.wait_for(1_000, Duration::ZERO).unwrap();
        assert_eq!((counts.points, counts.wire_bytes), (1_000, sent.bytes));
    }

    /// What is missing or cannot be is named.
    #[test]
    fn refused() {
        let args = arguments(&["metrics", "--protocol", "otap", "--target", "nowhere", "--count", "1"]);
        assert!(metrics(&args).unwrap_err().to_string().contains("nowhere"));
        let args = ["metrics", "--protocol", "otap", "--target", "127.0.0.1:9", "--count", "70000", "--batch", "70000"];
        assert!(metrics(&arguments(&args)).unwrap_err().to_string().contains("65535"));
    }
}
