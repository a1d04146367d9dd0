//! What arrived: the counts, and the record.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::MetricsData;
use otel_arrow_dfe_pdata::{OtapArrowRecords, OtlpProtoBytes, TryFromWithOptions as _};
use prost::Message as _;
use serde::Serialize;
use serde_json::Value;

use super::{Recording, SinkError};

/// What arrived at a sink.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Log records.
    pub logs: u64,
    /// Data points of metrics, of every kind.
    pub points: u64,
    /// Spans.
    pub spans: u64,
    /// Messages that were decoded, or by a raw sink read: OTAP batches and OTLP requests.
    pub requests: u64,
    /// Bytes of the gRPC messages as they arrived, compressed, with their prefix of 5 bytes each, and of the bodies of
    /// OTLP/HTTP. Those that could not be decoded are in it; HTTP and TCP overhead is not.
    pub wire_bytes: u64,
    /// Messages that could not be decoded.
    pub decode_errors: u64,
}

impl Counts {
    /// Log records, points and spans altogether. A raw sink sees none: always 0.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.logs + self.points + self.spans
    }
}

/// What was waited for did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// Not in time.
    #[error("{} of {expected} items arrived within {timeout:?}", counts.items())]
    TimedOut {
        /// The number waited for.
        expected: u64,
        /// How long.
        timeout: Duration,
        /// What did arrive.
        counts: Counts,
    },
    /// Not before the waiting was interrupted.
    #[error("interrupted when {} of {expected} items had arrived", counts.items())]
    Interrupted {
        /// The number waited for.
        expected: u64,
        /// What did arrive.
        counts: Counts,
    },
}

/// A message with metrics, as it arrived.
#[derive(Debug, Clone)]
pub enum MetricsMessage {
    /// Over OTLP.
    Otlp(MetricsData),
    /// Over OTAP, decoded to records.
    Otap(Box<OtapArrowRecords>),
}

impl MetricsMessage {
    /// The metrics in it, whatever they came over.
    ///
    /// # Errors
    ///
    /// [`SinkError::Convert`] if the records are no metrics of OTLP.
    pub fn into_metrics(self) -> Result<MetricsData, SinkError> {
        let failed = |error: &dyn std::fmt::Display| SinkError::Convert(error.to_string());
        match self {
            Self::Otlp(metrics) => Ok(metrics),
            Self::Otap(records) => {
                let bytes = OtlpProtoBytes::try_from_with_default(*records).map_err(|error| failed(&error))?;
                MetricsData::decode(bytes.as_bytes()).map_err(|error| failed(&error))
            }
        }
    }
}

/// What of a message is kept beside the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Nothing,
    /// [`Arrival::objects`].
    Objects,
    /// [`Arrival::metrics`].
    Metrics,
}

/// The items of one message.
#[derive(Debug, Default)]
pub(super) struct Arrival {
    pub(super) logs: u64,
    pub(super) points: u64,
    pub(super) spans: u64,
    /// One for each item to record.
    pub(super) objects: Vec<Value>,
    /// The message itself, if it has metrics.
    pub(super) metrics: Option<MetricsMessage>,
}

/// Counts and record, shared by the services and whoever waits.
#[derive(Debug)]
pub(super) struct Store {
    state: Mutex<State>,
    changed: Condvar,
    keep: Keep,
}

#[derive(Debug)]
struct State {
    counts: Counts,
    recorder: Recorder,
    /// When the last request came.
    last: Option<Instant>,
    interrupted: bool,
}

impl Store {
    pub(super) fn new(recorder: Recorder) -> Self {
        let keep = match &recorder {
            Recorder::Off => Keep::Nothing,
            Recorder::Memory(_) | Recorder::File { .. } => Keep::Objects,
            Recorder::Metrics(_) => Keep::Metrics,
        };
        let state = State { counts: Counts::default(), recorder, last: None, interrupted: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), keep }
    }

    /// What is of use of a message.
    pub(super) fn keep(&self) -> Keep {
        self.keep
    }

    pub(super) fn add(&self, arrival: Arrival) {
        let mut state = self.lock();
        state.recorder.add(arrival.objects, arrival.metrics);
        state.last = Some(Instant::now());
        let counts = &mut state.counts;
        counts.requests += 1;
        counts.logs += arrival.logs;
        counts.points += arrival.points;
        counts.spans += arrival.spans;
        drop(state);
        self.changed.notify_all();
    }

    /// A request of which nothing is known but its bytes, which were added before.
    pub(super) fn add_raw(&self) {
        self.add(Arrival::default());
    }

    pub(super) fn add_wire_bytes(&self, bytes: usize) {
        self.lock().counts.wire_bytes += bytes as u64;
    }

    pub(super) fn add_decode_error(&self) {
        self.lock().counts.decode_errors += 1;
    }

    pub(super) fn counts(&self) -> Counts {
        self.lock().counts
    }

    pub(super) fn last_request(&self) -> Option<Instant> {
        self.lock().last
    }

    pub(super) fn records(&self) -> Vec<Value> {
        match &self.lock().recorder {
            Recorder::Memory(objects) => objects.clone(),
            Recorder::Off | Recorder::Metrics(_) | Recorder::File { .. } => Vec::new(),
        }
    }

    pub(super) fn take_metrics(&self) -> Vec<MetricsMessage> {
        match &mut self.lock().recorder {
            Recorder::Metrics(messages) => std::mem::take(messages),
            Recorder::Off | Recorder::Memory(_) | Recorder::File { .. } => Vec::new(),
        }
    }

    pub(super) fn interrupt(&self) {
        self.lock().interrupted = true;
        self.changed.notify_all();
    }

    pub(super) fn wait_for(&self, expected: u64, timeout: Duration) -> Result<Counts, WaitError> {
        // A timeout too long for the clock is none.
        let deadline = Instant::now().checked_add(timeout);
        let mut state = self.lock();
        loop {
            let counts = state.counts;
            if counts.items() >= expected {
                return Ok(counts);
            }
            if state.interrupted {
                return Err(WaitError::Interrupted { expected, counts });
            }
            state = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return Err(WaitError::TimedOut { expected, timeout, counts }),
                Some(left) => self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    pub(super) fn finish_record(&self) -> Result<(), SinkError> {
        self.lock().recorder.finish()
    }

    /// The state is whole after each statement, so a panic of another thread does not matter.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the objects.
#[derive(Debug)]
pub(super) enum Recorder {
    Off,
    Memory(Vec<Value>),
    Metrics(Vec<MetricsMessage>),
    File {
        path: PathBuf,
        writer: BufWriter<File>,
        /// The first failure; nothing is written after it.
        failure: Option<io::Error>,
    },
}

impl Recorder {
    pub(super) fn new(recording: Recording) -> Result<Self, SinkError> {
        Ok(match recording {
            Recording::Off => Self::Off,
            Recording::Memory => Self::Memory(Vec::new()),
            Recording::Metrics => Self::Metrics(Vec::new()),
            Recording::File(path) => match File::create(&path) {
                Ok(file) => Self::File { path, writer: BufWriter::new(file), failure: None },
                Err(source) => return Err(SinkError::Record { path, source }),
            },
        })
    }

    fn add(&mut self, mut objects: Vec<Value>, metrics: Option<MetricsMessage>) {
        match self {
            Self::Off => {}
            Self::Memory(all) => all.append(&mut objects),
            Self::Metrics(all) => all.extend(metrics),
            Self::File { writer, failure, .. } => {
                if failure.is_none() {
                    *failure = write_lines(writer, &objects).err();
                }
            }
        }
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        match self {
            Self::File { path, failure, .. } => match failure.take() {
                Some(source) => Err(SinkError::Record { path: path.clone(), source }),
                None => Ok(()),
            },
            Self::Off | Self::Memory(_) | Self::Metrics(_) => Ok(()),
        }
    }
}

/// Writes the objects through to the file, so that others can read along.
fn write_lines(writer: &mut impl Write, objects: &[Value]) -> io::Result<()> {
    for object in objects {
        serde_json::to_writer(&mut *writer, object)?;
        writer.write_all(b"\n")?;
    }
    writer.flush()
}
