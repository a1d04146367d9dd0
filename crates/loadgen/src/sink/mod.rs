//! A sink for what exporters send: it decodes everything, counts it, answers that all is well, and keeps a record if
//! asked to.
//!
//! It speaks OTAP (the three Arrow streams) and OTLP over gRPC, and OTLP over HTTP/1.1 (binary protobuf), plain or
//! compressed with zstd or gzip; all without TLS.
//! [`Sink::start`] serves from a thread of its own, so that tests and benches can use it in their own process.
//!
//! With a [`script`] it does what the script says instead: it answers late, wrongly or not at all, and ends
//! streams and connections. Then it also follows the order of the items of each key: see [`RunningSink::script_report`].
//!
//! A raw sink ([`SinkOptions::raw`]) decodes nothing: it counts requests and bytes, and leaves its core to the sender.
//!
//! A batch that cannot be decoded is counted in [`Counts::decode_errors`] and refused; a sink is there to find out, so
//! it never stops because of what it gets. It is not a backend: nothing is stored beyond the record, and it never
//! refuses data that it understands.
//!
//! ```
//! use std::time::Duration;
//! use catchment_loadgen::sink::{Sink, SinkOptions};
//!
//! let sink = Sink::start(SinkOptions { otap: Some("127.0.0.1:0".parse()?), ..SinkOptions::default() })?;
//! let address = sink.addresses().otap.ok_or("it listens")?;
//! assert_ne!(address.port(), 0);
//! // ... an exporter sends to http://{address} ...
//! assert!(sink.wait_for(1, Duration::ZERO).is_err(), "nothing was sent");
//! assert_eq!(sink.stop()?.items(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod decode;
mod encoding;
mod http;
mod ipc;
mod ledger;
mod measured;
mod raw;
pub mod script;
mod scripted;
mod serve;
mod services;
mod store;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;
use tokio::sync::oneshot;

use ledger::Ledger;
pub use ledger::{KeyReport, OrderOptions, Outcome, RequestReport, ScriptReport, Totals};
use script::{ScriptError, SinkScript};
pub use store::{Counts, MetricsMessage, WaitError};
use store::{Recorder, Store};

/// The largest message, and the largest table in one, after decompression.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// Where to listen and what to keep.
#[derive(Debug, Clone, Default)]
pub struct SinkOptions {
    /// Address for OTAP; port 0 for any free one.
    pub otap: Option<SocketAddr>,
    /// Address for OTLP over gRPC; port 0 for any free one.
    pub otlp_grpc: Option<SocketAddr>,
    /// Address for OTLP over HTTP; port 0 for any free one.
    pub otlp_http: Option<SocketAddr>,
    /// What to keep of each item.
    pub record: Recording,
    /// What to do with which request. Also an empty script follows the order of items, which costs more than counting.
    pub script: Option<SinkScript>,
    /// How the order of items is told, if there is a script.
    pub order: OrderOptions,
    /// Reads requests and says yes without a look at what is in them: [`Counts::requests`] and [`Counts::wire_bytes`] count,
    /// items stay 0. There is no record and no script then.
    pub raw: bool,
}

/// What a sink keeps of each log record and number point, beside the counts. Spans, histograms and summaries are
/// counted only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Recording {
    /// Nothing.
    #[default]
    Off,
    /// A JSON object each, as [`catchment_columns::json`] describes them, in memory: see [`RunningSink::records`].
    Memory,
    /// The same, one a line, in this file, which is replaced.
    File(PathBuf),
    /// Messages with metrics, all kinds of them, as they came: see [`RunningSink::take_metrics`]. They are not converted
    /// on arrival, which costs the least.
    Metrics,
}

/// The addresses that a sink listens on, with the real port numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Addresses {
    /// OTAP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otap: Option<SocketAddr>,
    /// OTLP over gRPC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otlp_grpc: Option<SocketAddr>,
    /// OTLP over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otlp_http: Option<SocketAddr>,
}

/// A sink could not start, or could not keep its record.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The options have no address.
    #[error("no address to listen on: expected at least one of otap, otlp_grpc and otlp_http")]
    NoAddress,
    /// An address is taken or not ours.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The record file cannot be made or written.
    #[error("cannot write the record {}: {source}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The thread or its runtime could not be made, or serving ended by itself.
    #[error("the sink does not run: {0}")]
    Serve(String),
    /// A raw sink is to record, or to follow a script.
    #[error("a raw sink sees no items: expected neither a record nor a script")]
    Raw,
    /// The script is wrong.
    #[error("{0}")]
    Script(#[from] ScriptError),
    /// Records that are not what OTLP can say.
    #[error("records cannot be converted to OTLP: {0}")]
    Convert(String),
}

/// Starts sinks.
#[derive(Debug)]
pub struct Sink;

impl Sink {
    /// Listens and serves until [`RunningSink::stop`], or until what it returns is dropped.
    ///
    /// # Errors
    ///
    /// [`SinkError`] if there is no address, one cannot be listened on, the record file cannot be made, the script is
    /// wrong, or a raw sink has a record or a script.
    pub fn start(options: SinkOptions) -> Result<RunningSink, SinkError> {
        if options.otap.is_none() && options.otlp_grpc.is_none() && options.otlp_http.is_none() {
            return Err(SinkError::NoAddress);
        }
        if options.raw && (options.script.is_some() || options.record != Recording::Off) {
            return Err(SinkError::Raw);
        }
        if let Some(script) = &options.script {
            script.check()?;
        }
        let otap = options.otap.map(listen).transpose()?;
        let otlp_grpc = options.otlp_grpc.map(listen).transpose()?;
        let otlp_http = options.otlp_http.map(listen).transpose()?;
        let addresses = Addresses {
            otap: otap.as_ref().map(|(_, address)| *address),
            otlp_grpc: otlp_grpc.as_ref().map(|(_, address)| *address),
            otlp_http: otlp_http.as_ref().map(|(_, address)| *address),
        };
        let store = Arc::new(Store::new(Recorder::new(options.record)?));
        let ledger = options.script.map(|script| Arc::new(Ledger::new(script, options.order)));
        let mode = match (&ledger, options.raw) {
            (Some(ledger), _) => serve::Mode::Scripted(Arc::clone(ledger)),
            (None, true) => serve::Mode::Raw,
            (None, false) => serve::Mode::Decoding,
        };
        let (stop, stopped) = oneshot::channel();
        let listeners = serve::Listeners {
            otap: otap.map(|(listener, _)| listener),
            otlp_grpc: otlp_grpc.map(|(listener, _)| listener),
            otlp_http: otlp_http.map(|(listener, _)| listener),
        };
        let served = Arc::clone(&store);
        let thread = std::thread::Builder::new()
            .name("sink".into())
            .spawn(move || serve::run(listeners, &served, mode, stopped))
            .map_err(|error| SinkError::Serve(error.to_string()))?;
        Ok(RunningSink { addresses, store, ledger, running: Some(Serving { stop, thread }) })
    }
}

fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), SinkError> {
    let open = || -> io::Result<_> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    open().map_err(|source| SinkError::Listen { address, source })
}

/// A sink that listens. Dropping it stops it.
#[derive(Debug)]
pub struct RunningSink {
    addresses: Addresses,
    store: Arc<Store>,
    ledger: Option<Arc<Ledger>>,
    running: Option<Serving>,
}

/// The thread that serves, until it is told to stop.
#[derive(Debug)]
struct Serving {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Result<(), SinkError>>,
}

impl RunningSink {
    /// Where it listens.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// What has arrived so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.store.counts()
    }

    /// When the last request came that was counted, if any.
    #[must_use]
    pub fn last_request(&self) -> Option<Instant> {
        self.store.last_request()
    }

    /// Blocks until at least `items` log records, points and spans have arrived altogether, and gives the counts at
    /// that time.
    ///
    /// # Errors
    ///
    /// [`WaitError`] if they have not within `timeout`, or after an [`Interrupter::interrupt`].
    pub fn wait_for(&self, items: u64, timeout: Duration) -> Result<Counts, WaitError> {
        self.store.wait_for(items, timeout)
    }

    /// A handle with which another thread can end [`wait_for`](Self::wait_for) early.
    #[must_use]
    pub fn interrupter(&self) -> Interrupter {
        Interrupter(Arc::clone(&self.store))
    }

    /// What was recorded so far with [`Recording::Memory`], in order of arrival; else empty.
    #[must_use]
    pub fn records(&self) -> Vec<Value> {
        self.store.records()
    }

    /// Takes out the messages with metrics that came so far with [`Recording::Metrics`], in order of arrival; else empty.
    #[must_use]
    pub fn take_metrics(&self) -> Vec<MetricsMessage> {
        self.store.take_metrics()
    }

    /// What came and what was done with it so far, if there is a script.
    #[must_use]
    pub fn script_report(&self) -> Option<ScriptReport> {
        Some(self.ledger.as_ref()?.report())
    }

    /// The sums of [`script_report`](Self::script_report), which cost little.
    #[must_use]
    pub fn script_totals(&self) -> Option<Totals> {
        Some(self.ledger.as_ref()?.totals())
    }

    /// Blocks until the totals are `enough`, at most for `timeout`, and gives those at that time and whether they were
    /// enough. Without a script they are all zero.
    #[must_use]
    pub fn wait_for_totals(&self, enough: impl Fn(&Totals) -> bool, timeout: Duration) -> (Totals, bool) {
        match &self.ledger {
            Some(ledger) => ledger.wait(enough, timeout),
            None => (Totals::default(), enough(&Totals::default())),
        }
    }

    /// Stops listening, cuts the connections, and gives the final counts.
    ///
    /// # Errors
    ///
    /// [`SinkError::Record`] if the record is not complete; [`SinkError::Serve`] if serving had ended before.
    pub fn stop(mut self) -> Result<Counts, SinkError> {
        self.end()?;
        self.store.finish_record()?;
        Ok(self.store.counts())
    }

    /// The same, with the final report if there is a script: what was under way counts as left by its
    /// client.
    ///
    /// # Errors
    ///
    /// As [`stop`](Self::stop).
    pub fn stop_with_report(mut self) -> Result<(Counts, Option<ScriptReport>), SinkError> {
        self.end()?;
        self.store.finish_record()?;
        Ok((self.store.counts(), self.script_report()))
    }

    fn end(&mut self) -> Result<(), SinkError> {
        let Some(Serving { stop, thread }) = self.running.take() else {
            return Ok(());
        };
        // Fails only if serving has ended, of which joining tells more.
        let _ = stop.send(());
        thread.join().unwrap_or_else(|_| Err(SinkError::Serve("its thread panicked".into())))
    }
}

impl Drop for RunningSink {
    fn drop(&mut self) {
        // Whoever wants to know calls `stop`.
        let _ = self.end();
    }
}

/// Ends the waiting for a sink's items.
#[derive(Debug, Clone)]
pub struct Interrupter(Arc<Store>);

impl Interrupter {
    /// Makes every [`RunningSink::wait_for`], running or to come, return [`WaitError::Interrupted`] unless it has what it
    /// waits for.
    pub fn interrupt(&self) {
        self.0.interrupt();
    }
}

#[cfg(test)]
mod tests;
