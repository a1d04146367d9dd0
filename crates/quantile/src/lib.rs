//! Quantiles over streams of `f64` observations: mergeable KLL sketches, exact selection, and the
//! windows that decide which observations belong together.
//!
//! * [`kll`]: KLL sketches with the compaction rules and the compact bytes of Apache DataSketches,
//!   so that any other implementation of that library reads what is written here.
//! * [`asapv1`]: the envelope in which ProjectASAP exchanges KLL sketches.
//! * [`exact`]: every value kept, quantiles by selection at the end of a window.
//! * [`exponential`]: exponential histograms of OpenTelemetry, from values or from sketches.
//! * [`exchange`]: windows that several sources send in parts: repeats, stragglers, completeness.
//! * [`run`]: sorted runs of exact values, their bytes, and the selection of any rank across runs
//!   without merging them.
//! * [`accumulator`]: one interface over both, with a bound on the memory of the exact kind.
//! * [`window`]: count and event time windows per series, lateness, limits, and counters that add
//!   up: every point is used or dropped for one named reason.
//!
//! The crate is pure: no clock is read (the caller passes the time), no input or output, no
//! threads, and all randomness comes from a seed, so the same input gives the same bytes.
//!
//! A quantile is the *inclusive nearest rank* unless said otherwise: of `n` ascending values the
//! one with the number `ceil(q n)`, counted from one. See [`rank`] for the exact definition.
//!
//! ```
//! use catchment_quantile::{Criterion, KllSketch};
//!
//! let mut morning = KllSketch::new(200, 1).expect("200 is a valid k");
//! let mut evening = KllSketch::new(200, 2).expect("200 is a valid k");
//! morning.update_slice(&[0.010, 0.012, 0.250]);
//! evening.update_slice(&[0.011, 0.013]);
//! morning.merge(&evening).expect("far below the largest count");
//!
//! assert_eq!(morning.n(), 5);
//! assert_eq!(morning.quantile(0.5, Criterion::Inclusive), Ok(0.012));
//! let bytes = morning.to_bytes();
//! let copy = KllSketch::from_bytes(&bytes, 3).expect("own bytes");
//! assert_eq!(copy.to_bytes(), bytes);
//! ```

pub mod accumulator;
pub mod asapv1;
pub mod exact;
pub mod exchange;
pub mod exponential;
mod key;
pub mod kll;
mod moments;
pub mod rank;
pub mod run;
pub mod seed;
pub mod window;

pub use accumulator::{
    Absorbed, Accumulator, AccumulatorConfig, AccumulatorFactory, Method, QuantileAccumulator, WhenFull,
};
pub use exact::ExactQuantiles;
pub use exponential::ExponentialHistogram;
pub use kll::{KllError, KllSketch, SketchImageError, SortedView};
pub use rank::{Criterion, QuantileError};
pub use run::{RunError, SortedRun};
pub use window::{CloseReason, ClosedWindow, Counters, Outcome, SeriesKey, WindowConfig, WindowSpec, Windows};
