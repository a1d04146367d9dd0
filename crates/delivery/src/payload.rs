//! What a lane has to know of the things that it delivers.

use crate::signal::Signal;

/// A payload cannot be encoded or split; says what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EncodeError {
    message: String,
}

impl EncodeError {
    /// An error with a message for people: lower case, names what is at fault.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// Something to deliver: a batch of items of one signal.
///
/// Items are what `partial_success` counts: log records, metric points, spans. A payload need not be `Send`; a lane that
/// holds it then stays on the thread it was made on.
pub trait Payload: Sized {
    /// Its signal. A request never mixes signals.
    fn signal(&self) -> Signal;

    /// Number of items. A payload without items is never sent: its verdict is given at once.
    fn items(&self) -> usize;

    /// Memory it holds, in bytes, for the bounds of the queue; also the estimate of what it adds to a request.
    fn bytes(&self) -> usize;

    /// The first `at` items and the rest, in order, `0 < at < items()`. Both must have the items that this says.
    ///
    /// # Errors
    ///
    /// If it cannot be split. The lane then treats it as indivisible.
    fn split(&self, at: usize) -> Result<(Self, Self), EncodeError>;
}

/// Writes payloads as one unary request (OTLP).
pub trait Encode<P> {
    /// Appends the protobuf bytes of one export request with all items of `payloads`, in order, to `out`, and leaves what
    /// is there already. The payloads have one signal, and at least one item together.
    ///
    /// # Errors
    ///
    /// If the payloads cannot be written. What was appended is then thrown away. An error for several payloads is tried
    /// again for each alone, so that only the one at fault is lost.
    fn encode(&mut self, payloads: &[P], out: &mut Vec<u8>) -> Result<(), EncodeError>;
}

/// What messages of streams had to bring along of schemas and dictionaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamTally {
    /// Tables that were those of the message before, and were not encoded again.
    pub tables_reused: u64,
    /// Schemas, with each of which a table begins anew.
    pub schemas: u64,
    /// Dictionaries of which the receiver had all values.
    pub dictionaries_reused: u64,
    /// Dictionaries that values were added to.
    pub dictionaries_extended: u64,
    /// Dictionaries sent as a whole.
    pub dictionaries_sent: u64,
}

impl StreamTally {
    /// Adds another.
    pub const fn add(&mut self, other: Self) {
        self.tables_reused += other.tables_reused;
        self.schemas += other.schemas;
        self.dictionaries_reused += other.dictionaries_reused;
        self.dictionaries_extended += other.dictionaries_extended;
        self.dictionaries_sent += other.dictionaries_sent;
    }
}

/// Writes payloads as messages of a stream with state (OTAP).
pub trait EncodeStream<P> {
    /// Forgets what streams of `signal` have carried: the next message is the first of a new one, and brings its schemas
    /// and dictionaries along.
    fn reset(&mut self, signal: Signal);

    /// Appends the protobuf bytes of one `BatchArrowRecords` with this batch id and all items of `payloads` to `out`. The
    /// payloads have one signal, and at least one item together.
    ///
    /// # Errors
    ///
    /// As for [`Encode::encode`]. [`EncodeStream::reset`] is called before the next message.
    fn encode(&mut self, batch_id: i64, payloads: &[P], out: &mut Vec<u8>) -> Result<(), EncodeError>;

    /// What the messages since this was last asked had to bring along.
    fn tally(&mut self) -> StreamTally {
        StreamTally::default()
    }
}
