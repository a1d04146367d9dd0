//! Received syslog messages -> OTAP logs.
//!
//! A receiver collects messages in a [`SyslogBatch`], each with its receipt context, and hands the batch to a
//! [`SyslogJob`]. What a message says becomes columns in `row.rs`; the attribute names are in [`names`].

mod batch;
mod extensions;
mod job;
pub mod names;
mod row;
mod structured;

pub use batch::{Receipt, Source, SyslogBatch, Transport};
pub use job::SyslogJob;
pub use row::{RowOptions, StructuredDataForm};

#[cfg(test)]
mod tests;
