//! Received IPFIX and NetFlow data sets -> OTAP logs, one record a flow or options record.
//!
//! A receiver admits each datagram with `catchment_ipfix::Session` and collects the data sets in a [`FlowBatch`], with
//! the templates that were valid for them. A [`FlowJob`] decodes them later, by the settings of a [`FlowMapping`]. For each
//! template and settings a plan is made once (`plan.rs`). Records are then taken field by field over a whole set
//! (`columns.rs`), those that become two records each one by one (`row.rs`); both give the same. Which element becomes which attribute is in
//! [`names`]. [`encoded`] has the form in which batches are passed on before they are decoded.

mod batch;
mod biflow;
mod bound;
mod columns;
pub mod encoded;
mod facts;
mod form;
mod job;
mod layout;
mod lists;
mod mapping;
pub mod names;
mod plan;
mod row;
mod sample;
pub(crate) mod sets;
mod split;
mod value;

pub use batch::{FlowBatch, FlowReceipt};
pub use job::{FlowJob, SCOPE};
pub use mapping::{
    Biflow, Enumerations, ExporterAt, FlowMapping, FlowSchema, OptionsData, SamplingUse, TimeForm, U64Overflow,
};
pub use sample::Sampled;
pub use value::FlowCounts;

#[cfg(test)]
mod tests;
