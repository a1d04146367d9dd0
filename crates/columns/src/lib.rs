//! Arrow, written and read column by column.
//!
//! This floor turns what the protocol crates understood into OTAP record batches, and reads numbers back out of
//! record batches:
//!
//! - [`syslog`]: received syslog messages -> logs. **A syslog line becomes columns in `syslog/row.rs`.**
//! - [`flow`]: received IPFIX/NetFlow data sets -> logs. A flow record becomes columns in
//!   `flow/columns.rs`.
//! - [`metrics`]: the same data sets -> metrics, by rules.
//! - [`sonic`]: records of SONiC's high-frequency telemetry -> metrics.
//! - [`quantile`]: record batches -> observations for the quantile processor, and its results -> gauges.
//! - [`json`]: record batches -> one JSON object a record, for people.
//!
//! Decoding is done by *jobs*: resumable structs that own their input and work it off in [`Budget`]ed steps, so that
//! a caller on a shared thread can let others run between two steps. A job knows nothing of tokio or the engine.

pub mod flow;
pub mod json;
pub mod metrics;
pub mod quantile;
pub mod sonic;
pub mod syslog;

mod error;
mod job;
mod logs;
pub mod sampled;
mod table;
mod text;

pub use error::ColumnsError;
pub(crate) use job::MAX_BATCH_BYTES;
pub use job::{Budget, Job, MAX_BATCH_RECORDS, SMALL_BYTES, SMALL_RECORDS, Step};
pub use table::ParentIds;

/// The record batches of one signal, as they travel through the engine.
pub use otel_arrow_dfe_pdata::{OtapArrowRecords, OtlpProtoBytes};
