//! Head sampling: which records are worth decoding, and what those that are kept stand for. Bytes in, decisions out.
//!
//! A receiver asks a [`Sampler`] as soon as it knows where a record begins and ends, before it decodes or copies
//! anything. A dropped record then costs the look that the policies take at its bytes, and nothing else. The crate knows
//! nothing of sockets, runtimes or Arrow, and reads no clock.
//!
//! 1. [`SamplingConfig`] is read from the settings; [`SamplingConfig::compile`] checks it and makes the sampler of one
//!    thread.
//! 2. [`Sampler::decide`] takes the [`Facts`] of one record: [`SyslogMessage`] finds them in a message when they are
//!    asked for, [`FlowRecord`] carries those of a flow. [`Sampler::run`] decides on many records that share them, so that a
//!    receiver can skip the dropped ones in one step.
//! 3. A kept record has a [`Weight`], to be written as `sampling.threshold` and `sampling.adjusted_count` unless it is
//!    [`WeightId::ONE`]. Sums of values times adjusted counts are then right on average, but for what is dropped without a
//!    probability: at ratio 0, above the hard cap of a rate limit, and by the flag of traces that tell no threshold.
//! 4. [`Sampler::counts`] tells what was seen, kept, and dropped for which reason: exact numbers, no estimates. It also tells
//!    whether `key_hash` has met keys with so many records that its sums are far off ([`HeavyKeys`]).
//!
//! ```
//! use catchment_sampling::{Decision, DropReason, Input, SamplingConfig, SyslogMessage};
//!
//! let config: SamplingConfig = serde_json::from_str(
//!     r#"{"policies": [{"always_keep": {"severity": "err"}}, {"key_hash": {"ratio": 0.25, "key": "host"}}, {"ratio": 0}]}"#,
//! )?;
//! let mut sampler = config.compile(Input::Syslog, 0)?;
//! let mut decide = |message: &str| sampler.decide(&SyslogMessage { message: message.as_bytes(), source: None }, 0);
//!
//! // Errors are kept, and stand for themselves.
//! let Decision::Keep { weight } = decide("<11>Nov 30 10:00:00 web01 app: disk is full") else { panic!() };
//! // All else of web01 has one fate.
//! let fate = decide("<14>Nov 30 10:00:01 web01 app: all is well");
//! assert_eq!(fate, decide("<14>1 2026-11-30T10:00:02Z web01 cron - - - all is well"));
//! // Without a host only the last policy is left.
//! assert_eq!(decide("<14>all is well"), Decision::Drop { reason: DropReason::Ratio });
//!
//! assert_eq!(sampler.weight(weight).adjusted_count(), 1.0);
//! assert_eq!(sampler.counts().seen, 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What may be skipped
//!
//! Only records. Whatever else a receiver does for what it receives is done before it asks: framing, counters of bytes and
//! messages, headers with sequence numbers, templates, options data. A message whose records are all dropped is
//! delivered.
//!
//! # Policies
//!
//! In the order of the settings, the first that applies decides; see [`config`] for what each does. A record that none
//! applies to is kept.
//!
//! | policy | applies to | weight of a kept record |
//! | --- | --- | --- |
//! | `always_keep` | records that are listed | 1 |
//! | `trace_flag` | messages with a valid `traceparent` | 1; if unsampled traces are dropped, by `th` of `tracestate` |
//! | `key_hash` | records with a field of the key | 1 / ratio |
//! | `trace_ratio` | messages with a valid `traceparent` | 1 / ratio; by `th` of `tracestate` if that is higher |
//! | `ratio` | all | 1 / ratio |
//! | `rate_limit` | all | 1 / probability of the moment |
//!
//! Thresholds of two samplers are only ever combined by taking the higher one, where both look at the same randomness:
//! that of a trace. `ratio`, `key_hash` and `rate_limit` draw by themselves and do not look at `tracestate`; behind a
//! sender that has thinned its messages their weights are those of what it has sent.
//!
//! # Bounds
//!
//! A decision takes time linear in the bytes that it looks at: [`HEADER_LOOK`] at the start of a message for host and
//! program, [`TRACE_LOOK`] for a trace, and what is asked for last costs nothing where an earlier policy decides. Bytes
//! are never copied. Memory is bounded whatever is received: there are less than 4,400 weights, and 32 keys of each `key_hash`
//! are counted.

mod compile;
pub mod config;
mod decision;
mod facts;
mod gaps;
mod heavy;
mod hex;
mod key;
mod policy;
mod rate_limit;
mod sampler;
mod syslog;
mod threshold;
mod trace;
mod weights;

pub use compile::{ConfigError, Input};
pub use config::SamplingConfig;
pub use decision::{Decision, DropReason, Run};
pub use facts::{Facts, Flow, FlowRecord, Names};
pub use heavy::HeavyKeys;
pub use sampler::{Counts, PolicyCounts, Sampler};
pub use syslog::{HEADER_LOOK, SyslogMessage};
pub use threshold::{Randomness, Threshold};
pub use trace::{TRACE_LOOK, TraceParent, TraceState};
pub use weights::{Weight, WeightId};
