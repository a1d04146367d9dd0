//! Plugin nodes for the OTel-Arrow Dataflow Engine.
//!
//! | URN | node |
//! |---|---|
//! | `urn:catchment:receiver:syslog` | [`receivers::syslog`] |
//! | `urn:catchment:receiver:ipfix` | [`receivers::ipfix`] |
//! | `urn:catchment:processor:quantile` | [`processors::quantile`] |
//! | `urn:catchment:exporter:console_table` | [`exporters::console_table`] |
//! | `urn:catchment:exporter:lanes` | [`exporters::lanes`] |
//!
//! and the codec `syslog-batch-v1` ([`codecs::syslog_batch`]).
//!
//! The nodes register themselves with the engine's factory lists. An engine binary links them by naming this crate:
//!
//! ```
//! use catchment_nodes as _;
//! ```
//!
//! This crate alone speaks the engine's API. What a node does with bytes and columns lives in the crates below.

pub mod accounts;
pub mod codecs;
pub mod decode;
pub mod drain;
pub mod exporters;
pub mod processors;
pub mod receivers;

mod config;
#[cfg(test)]
mod counting;
mod ingest;
mod time;
