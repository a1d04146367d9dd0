//! What a scripted sink tells afterwards.

use std::time::Duration;

use serde::{Serialize, Serializer};

use super::KeyReport;
use crate::sink::script::{Event, Protocol, Signal};

/// What came, what was done with it, and in which order data was stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScriptReport {
    /// Sums over everything.
    pub totals: Totals,
    /// Each key, sorted.
    pub keys: Vec<KeyReport>,
    /// Each request and opening, in order of arrival.
    pub requests: Vec<RequestReport>,
}

/// Sums over all requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Requests of OTLP and batches of OTAP that began to arrive.
    pub requests: u64,
    /// Streams of OTAP that were opened.
    pub openings: u64,
    /// Requests and openings that came when the list was full.
    pub requests_not_listed: u64,
    /// Items stored, duplicates included.
    pub stored_items: u64,
    /// Items with key and number that were stored for the first time.
    pub first_accepted: u64,
    /// Items stored again.
    pub duplicates: u64,
    /// Items stored for the first time after one of the same key with a higher number.
    pub out_of_order: u64,
    /// Items stored without telling the client for sure: no answer, another answer, or a connection cut within a second
    /// after it. Duplicates of these are the sink's fault, others are the client's.
    pub ambiguous_items: u64,
    /// Items stored and answered after a delay, for which a client may not have waited.
    pub late_items: u64,
    /// Items refused so that the client should give them up; again, if it sends them again.
    pub refused_for_good: u64,
    /// Stored items without key or number, whose order is not followed.
    pub without_key: u64,
    /// Stored items that were not followed for want of room.
    pub untracked: u64,
}

/// What became of a request or an opening.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestReport {
    /// Which of both.
    pub event: Event,
    /// Its number among those, from 1.
    pub ordinal: u64,
    /// When it began to arrive, after the start; in seconds in JSON.
    #[serde(rename = "at_seconds", serialize_with = "seconds")]
    pub at: Duration,
    /// How it came.
    pub protocol: Protocol,
    /// What it carries.
    pub signal: Signal,
    /// Number of its connection, from 1.
    pub connection: u64,
    /// Log records, data points or spans; 0 if it was not decoded.
    pub items: u64,
    /// Size of the message, compressed if it was, without prefix; 0 if it was not read.
    pub wire_bytes: u64,
    /// Size after decompression.
    pub decoded_bytes: u64,
    /// Number of the step that took it, from 0.
    pub step: Option<usize>,
    /// Name of the step, else of the answer.
    pub action: String,
    /// Whether its items were stored, all or some.
    pub stored: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// When it ended, after the start.
    #[serde(rename = "answered_at_seconds", serialize_with = "optional_seconds")]
    pub answered_at: Option<Duration>,
    /// Stored, but the client may not know.
    pub ambiguous: bool,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It has not.
    Open,
    /// The client was told that its data is stored, or that its stream is open.
    Accepted,
    /// The client was told something else.
    Refused,
    /// The sink ended the stream or the connection.
    Cut,
    /// The client, or its connection, went away before there was an answer.
    ClientLeft,
}

fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

fn optional_seconds<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => seconds(time, serializer),
        None => serializer.serialize_none(),
    }
}
