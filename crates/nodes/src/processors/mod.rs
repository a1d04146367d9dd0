//! Processors.

pub mod quantile;
