//! The stages that take sketches of other processes: `merge` sends them on merged, `estimate` answers from them.
//!
//! `config.rs` reads the configuration, `content.rs` merges the messages of a window, `output.rs` writes what windows are
//! sent as, `node.rs` is the processor, and `node/taking.rs` how it takes messages in. Which message counts and when a window
//! is complete is decided in `catchment_quantile::exchange`.

mod config;
mod content;
mod metrics;
mod node;
mod output;
#[cfg(test)]
mod tests;

pub(super) use config::MergeConfig;
#[cfg(test)]
pub(super) use metrics::Totals;
pub(super) use metrics::{MergeMetrics, Metrics};
pub(super) use node::MergeProcessor;
