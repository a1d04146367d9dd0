//! What can go wrong while columns are written or read.

use arrow::error::ArrowError;

/// A failure to write or read record batches.
///
/// None of these depends on what a device sent: the protocol crates and the row writers accept all bytes. They stand
/// for a batch that does not have the shape OTAP asks for.
#[derive(Debug, thiserror::Error)]
pub enum ColumnsError {
    /// Arrow refused to build an array or a record batch.
    #[error("arrow refused the {table} table: {source}")]
    Arrow {
        /// Which table was being built.
        table: &'static str,
        /// What Arrow says.
        source: ArrowError,
    },
    /// The record batches are not valid OTAP.
    #[error("not a valid otap {table} table: {reason}")]
    Otap {
        /// Which table was read or set.
        table: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl ColumnsError {
    pub(crate) fn arrow(table: &'static str) -> impl FnOnce(ArrowError) -> Self {
        move |source| Self::Arrow { table, source }
    }

    pub(crate) fn otap(table: &'static str) -> impl FnOnce(otel_arrow_dfe_pdata::error::Error) -> Self {
        move |error| Self::Otap { table, reason: error.to_string() }
    }
}
