//! SONiC's high-frequency telemetry -> OTAP metrics, one point a counter.
//!
//! A receiver admits payloads with `catchment_ipfix::sonic::SonicSessions` and collects the records in a [`SonicBatch`],
//! lane by lane: one source, one template. A [`SonicJob`] turns them into metrics later. Records of a template all have
//! one layout, so everything in a batch but values and times depends on the template and the number of records alone:
//! names, ids and attributes are made once (`order.rs`, `skeleton.rs`, `points.rs`) and shared by all batches. What is
//! left is to turn records around into columns (`values.rs`). What a point looks like is said by [`SonicMapping`]. [`encoded`] has the form in
//! which batches are passed on before they are decoded.

mod batch;
pub mod encoded;
mod file;
mod job;
mod mapping;
mod order;
mod points;
mod skeleton;
mod split;
mod values;

pub use batch::SonicBatch;
pub use file::{SessionFileError, session_rows};
pub use job::{SonicCounts, SonicJob};
pub use mapping::{AttributesAt, DEFAULT_POINTS, SonicMapping, SonicNames, U64Overflow};

/// Instrumentation scope of the points, and the `service.name` of their resources: those of SONiC's own exporter.
pub const SCOPE: &str = "countersyncd";

#[cfg(test)]
mod tests;
