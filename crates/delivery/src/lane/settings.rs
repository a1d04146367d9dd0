//! Settings of a lane and their defaults.

use std::time::Duration;

/// Settings of one lane.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneSettings {
    /// Payloads that may wait, those in flight not among them. Default 8.
    pub max_queue_batches: usize,
    /// Bytes that may wait, as [`Payload::bytes`](crate::payload::Payload::bytes) counts them. One payload that is larger
    /// than this is admitted to an empty queue. Default 16 MiB.
    pub max_queue_bytes: usize,
    /// What happens to a payload that has no room. Default: it waits.
    pub on_full: OnFull,
    /// How payloads are put together to requests.
    pub batch: Batching,
    /// Longest time of one attempt, the connection included. Default 10 s.
    pub attempt_timeout: Duration,
    /// What happens after an attempt that may be repeated.
    pub retry: RetrySettings,
    /// Longest time for the wire to close after the last request. Default 5 s.
    pub close_timeout: Duration,
}

impl Default for LaneSettings {
    fn default() -> Self {
        Self {
            max_queue_batches: 8,
            max_queue_bytes: 16 << 20,
            on_full: OnFull::Block,
            batch: Batching::default(),
            attempt_timeout: Duration::from_secs(10),
            retry: RetrySettings::default(),
            close_timeout: Duration::from_secs(5),
        }
    }
}

/// What happens to a payload for which the queue has no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFull {
    /// It is handed back, and can wait for room.
    #[default]
    Block,
    /// It is refused at once.
    Nack,
    /// The oldest that wait are dropped until it fits. What is in flight, or was sent in part, stays.
    DropOldest,
}

/// How the payloads of a lane become requests. Order is kept; only neighbours of one signal share a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batching {
    /// A request is made as soon as so many items wait. 0 or 1, the default: at once.
    pub min_items: usize,
    /// Most items of a request; larger payloads are split. Default 65,535, the most that OTAP's ids can number.
    pub max_items: usize,
    /// Most bytes of the payloads of a request, by their own estimate; larger payloads are split. Default 4 MiB. The hard
    /// limit on the encoded size is the wire's.
    pub max_bytes: usize,
    /// Longest time that a payload waits for `min_items` to come together. Default 1 s.
    pub max_delay: Duration,
}

impl Default for Batching {
    fn default() -> Self {
        Self { min_items: 0, max_items: 65_535, max_bytes: 4 << 20, max_delay: Duration::from_secs(1) }
    }
}

/// Back-off between the attempts of one request: exponential, with full jitter.
#[derive(Clone, Debug, PartialEq)]
pub struct RetrySettings {
    /// The first wait is between nothing and this. Default 200 ms.
    pub initial: Duration,
    /// No wait is longer, unless the server asks for it. Default 30 s.
    pub max: Duration,
    /// Growth of the wait with every attempt, at least 1. Default 2.
    pub multiplier: f64,
    /// Longest delay of a server that is respected. Default 5 min.
    pub max_server_delay: Duration,
    /// A request that could only be sent again later than this after its first attempt is refused, before the wait, not
    /// behind it. `None` holds it until it is taken, which is what keeps order through an outage. Default 5 min.
    pub max_elapsed: Option<Duration>,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(200),
            max: Duration::from_secs(30),
            multiplier: 2.0,
            max_server_delay: Duration::from_secs(300),
            max_elapsed: Some(Duration::from_secs(300)),
        }
    }
}
