//! Numbers out of batches, and quantiles back into them.
//!
//! A [`Reader`] reads log attributes or number data points as [`Observations`]: a value, a time and a series each, from
//! the columns of OTAP ([`Reader::read_records`]) or from the bytes of an OTLP request ([`Reader::read_otlp`]), which
//! are walked as they are. Both ways give the same observations.
//! [`gauges()`] and [`Results`] write what came of windows as points; [`forward`] takes out of a batch what goes on
//! unchanged; [`carrier`] carries sketches between processes.

pub mod carrier;
pub mod forward;
pub mod gauges;
pub mod grouped;
pub mod histograms;
mod intern;
mod number;
pub mod observations;
pub mod otlp;
mod pieces;
pub mod query;
mod reader;
mod records;
pub mod series;

pub use forward::Kept;
pub use gauges::{Results, WindowResult, gauges};
pub use grouped::{Grouped, Run};
pub use histograms::ExponentialPoint;
pub use observations::{Fate, Observations};
pub use otlp::{OtlpError, OtlpSignal};
pub use query::{AttributePath, NonFinite, Place, Query, TextNumbers, TimeSource, ValueSource};
pub use reader::Reader;
pub use series::{KeyValue, SeriesKey};
