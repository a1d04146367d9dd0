//! Exporters.

pub mod console_table;
pub mod lanes;
