//! Why a request cannot be written.

use arrow::datatypes::DataType;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;

/// Why records or bytes cannot become a request. The data is at fault, so trying again gives the same.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EncodeError {
    /// A table without a column that it must have.
    #[error("{table:?} has no column {column}")]
    MissingColumn {
        /// The table.
        table: ArrowPayloadType,
        /// The column.
        column: &'static str,
    },
    /// A column of a type that the protocol does not have there.
    #[error("column {column} of {table:?} is of type {found}, expected {expected}")]
    ColumnType {
        /// The table.
        table: ArrowPayloadType,
        /// The column.
        column: &'static str,
        /// Its type.
        found: DataType,
        /// The type that it should have.
        expected: &'static str,
    },
    /// A value that means nothing at its place.
    #[error("column {column} of {table:?} has {found} in row {row}, expected {expected}")]
    Value {
        /// The table.
        table: ArrowPayloadType,
        /// The column.
        column: &'static str,
        /// The row, counted from 0.
        row: usize,
        /// The value.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
    /// More than the protocol can number.
    #[error("{found} {what} in {table:?}, at most {bound}")]
    TooMany {
        /// The table.
        table: ArrowPayloadType,
        /// What there is too much of.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there may be.
        bound: usize,
    },
    /// A request above what the length of a protobuf message can say.
    #[error("a request of {found} bytes, at most {bound}")]
    TooLarge {
        /// Bytes of the request.
        found: usize,
        /// Bytes that it may have.
        bound: usize,
    },
    /// Records of another signal than those of the stream or of the records before.
    #[error("records of {found}, expected {expected}")]
    Signal {
        /// The signal given.
        found: &'static str,
        /// The signal expected.
        expected: &'static str,
    },
    /// Bytes that are no OTLP request.
    #[error("offset {offset}: {message}; expected an OTLP request")]
    Protobuf {
        /// Position in the request.
        offset: usize,
        /// What is there.
        message: &'static str,
    },
    /// Arrow refused what it was given.
    #[error("{table:?}: {message}")]
    Arrow {
        /// The table.
        table: ArrowPayloadType,
        /// What Arrow says.
        message: String,
    },
    /// The compressor failed.
    #[error("cannot compress: {message}")]
    Compression {
        /// What the compressor says.
        message: String,
    },
}

/// Most bytes of a request: the bound of protobuf.
pub(crate) const MAX_REQUEST_BYTES: usize = i32::MAX as usize;
