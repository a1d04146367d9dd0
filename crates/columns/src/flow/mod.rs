//! Received IPFIX and NetFlow data sets -> OTAP logs, one record a flow or options record.
//!
//! A receiver admits each datagram with `catchment_ipfix::Session` and collects the data sets in a [`FlowBatch`], with
//! the templates that were valid for them. A [`FlowJob`] decodes them later. A record becomes columns in `row.rs`;
//! which element becomes which attribute is in [`names`].

mod batch;
mod job;
mod lists;
pub mod names;
mod plan;
mod row;

pub use batch::{FlowBatch, FlowReceipt};
pub use job::FlowJob;

#[cfg(test)]
mod tests;
