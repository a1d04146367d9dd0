//! Received syslog messages -> OTAP logs.
//!
//! A receiver collects messages in a [`SyslogBatch`], each with its receipt context, and hands the batch to a
//! [`SyslogJob`]. What a message says becomes columns in `row.rs`; the attribute names are in `names.rs`.

mod batch;
pub mod encoded;
mod extensions;
mod job;
mod names;
mod resource;
mod row;
mod structured;

/// The time zone of stamps that name none.
pub use catchment_syslog::Zone;

pub use batch::{Receipt, Source, SyslogBatch, Transport};
pub use job::SyslogJob;
pub use names::Schema;
pub use row::{MAX_PREFIX_BYTES, NonUtf8, Parsed, RowOptions, StructuredDataForm};

#[cfg(test)]
mod tests;
