//! Record batches to requests: what goes over the wire, ready to be sent.
//!
//! - [`otlp`]: requests of OTLP, written from the columns, and requests that are bytes already;
//! - [`otap`]: batches of an OTAP stream, whose dictionaries live as long as the stream;
//! - [`split`]: records in parts of so many items, in order.
//!
//! Nothing here is sorted unless the rows come in an order that the protocol cannot express.

pub mod otap;
pub mod otlp;
pub mod split;

mod error;
mod groups;
mod ids;
mod index;
mod marks;
mod same;
mod table;

pub use error::EncodeError;

use otel_arrow_dfe_pdata::OtapArrowRecords;

/// What the signal of records is called.
pub(crate) fn signal_name(records: &OtapArrowRecords) -> &'static str {
    match records {
        OtapArrowRecords::Logs(_) => "logs",
        OtapArrowRecords::Metrics(_) => "metrics",
        OtapArrowRecords::Traces(_) => "traces",
    }
}
