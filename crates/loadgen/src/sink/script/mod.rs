//! Scripts: what a sink does with which request, when it should not just say that all is well.
//!
//! A script is a list of steps. A request takes the first step that fits it; if none does, its data is stored and
//! answered with success. Scripts are written by hand as YAML ([`SinkScript::from_yaml`]), built in Rust, or made from a
//! seed ([`SinkScript::random`]).
//!
//! ```
//! use catchment_loadgen::sink::script::{Answer, SinkScript};
//!
//! let script = SinkScript::from_yaml(
//!     "
//!     steps:
//!       - name: the second request is stored, but the client is told otherwise
//!         when: { protocol: otlp_grpc, signal: logs, from: 2, to: 2 }
//!         store: true
//!         delay: 20ms
//!         answer: { grpc: { code: UNAVAILABLE, message: try again, retry_info: 50ms } }
//!     ",
//! )?;
//! assert!(matches!(script.steps[0].answer, Answer::Grpc { .. }));
//! # Ok::<(), catchment_loadgen::sink::script::ScriptError>(())
//! ```

mod answer;
mod check;
mod choose;
mod code;
mod random;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use super::decode::Signal;
pub use answer::{Answer, HttpBody, Lie, Moment, RetryAfter, Wording};
pub use check::ScriptError;
pub(super) use choose::Chooser;
pub use code::Code;
pub use random::FaultKind;

/// Window of HTTP/2 unless a script says otherwise (RFC 9113, section 6.9.2).
const DEFAULT_WINDOW_BYTES: u32 = 65_535;

/// What a sink does with which request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SinkScript {
    /// Decides which requests a step with a probability takes.
    pub seed: u64,
    /// How much of one request a client of gRPC may send before the sink has read it, in bytes. A connection may have
    /// 64 KiB under way at least.
    pub window_bytes: u32,
    /// In order of precedence.
    pub steps: Vec<Step>,
}

impl Default for SinkScript {
    /// Without steps: everything is stored and answered with success.
    fn default() -> Self {
        Self { seed: 0, window_bytes: DEFAULT_WINDOW_BYTES, steps: Vec::new() }
    }
}

/// What is done with some requests. The order is: read, store, wait, answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// For the report; without it the answer's name is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Which requests.
    #[serde(skip_serializing_if = "is_default")]
    pub when: When,
    /// How many requests at most; all by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// Leaves the body unread for a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reading: Option<StopReading>,
    /// Whether the data is stored. By default it is if the answer says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<bool>,
    /// Time between storing and answering. On a stream of OTAP later batches do not wait for it.
    #[serde(with = "humantime_serde", skip_serializing_if = "is_default")]
    pub delay: Duration,
    /// What the client gets.
    pub answer: Answer,
    /// Whether a client that obeys the protocol gives the data up, which the report counts. By default as the codes of
    /// the protocol say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuses_for_good: Option<bool>,
}

/// The requests that a step fits: all conditions hold. A request is a request of OTLP or a batch of OTAP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// Over this protocol; by default over all that can carry the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// With this signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<Signal>,
    /// Requests, or the opening of a stream of OTAP.
    #[serde(skip_serializing_if = "is_default")]
    pub on: Event,
    /// From this one on, of those with this protocol, signal and event; the first is 1.
    pub from: u64,
    /// Up to this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Of these only each so-many-th, beginning with the first.
    pub every: u64,
    /// Of these only a part, chosen by the seed: from 0 to 1.
    pub probability: f64,
    /// From this time after the start of the sink on.
    #[serde(with = "humantime_serde", skip_serializing_if = "is_default")]
    pub after: Duration,
    /// Up to this time after the start of the sink.
    #[serde(with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub before: Option<Duration>,
}

impl Default for When {
    fn default() -> Self {
        Self {
            protocol: None,
            signal: None,
            on: Event::default(),
            from: 1,
            to: None,
            every: 1,
            probability: 1.0,
            after: Duration::ZERO,
            before: None,
        }
    }
}

/// How a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// A unary call of gRPC.
    OtlpGrpc,
    /// A POST of HTTP/1.1.
    OtlpHttp,
    /// A batch on a stream of gRPC.
    Otap,
}

/// What a step looks at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A request of OTLP, or a batch of OTAP.
    #[default]
    Request,
    /// The opening of a stream of OTAP, before any batch.
    Open,
}

/// A time in which a request is not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopReading {
    /// How long.
    #[serde(rename = "for", with = "humantime_serde")]
    pub time: Duration,
    /// What is not read.
    #[serde(default)]
    pub of: Unread,
}

/// What is not read for a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unread {
    /// The body of this request: flow control holds the client back once the window is full.
    #[default]
    Body,
    /// The whole connection, control frames included.
    Connection,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests;
