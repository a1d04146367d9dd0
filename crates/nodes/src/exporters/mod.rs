//! Exporters.

pub mod console_table;
