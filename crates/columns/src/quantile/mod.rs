//! Numbers out of record batches, and quantiles back into them.
//!
//! [`observe()`] reads log attributes or number data points as [`Observations`]: a value, a time and a series each.
//! [`gauges()`] writes what came of a window as gauge points.

pub mod gauges;
pub mod observe;
pub mod series;
mod table;

pub use gauges::{WindowResult, gauges};
pub use observe::{Fate, Observations, TextNumbers, TimeSource, ValueSource, observe};
pub use series::{AttributeRef, KeyValue, Place, SeriesKey};
