//! What the nodes of a pipeline hand around, as payloads: record batches, and requests of OTLP that are bytes already.
//!
//! [`OtlpWriter`] makes requests of both: batches are encoded, bytes are taken as they are, and what comes together in a
//! request is put one behind the other, which protobuf takes for one message. [`OtapWriter`] makes messages of OTAP streams
//! of record batches; who has bytes converts them before.

use bytes::Bytes;
use otel_arrow_dfe_pdata::OtapArrowRecords;

use crate::encode::otlp::bytes as otlp;
use crate::encode::split;
use crate::payload::{EncodeError, Payload};
use crate::signal::Signal;

mod series;
#[cfg(test)]
mod tests;
mod writers;

pub use writers::{OtapWriter, OtlpWriter};

/// A batch of items of one signal.
#[derive(Clone, Debug)]
pub struct Load {
    content: Content,
    signal: Signal,
    items: usize,
    bytes: usize,
}

#[derive(Clone, Debug)]
enum Content {
    Records(OtapArrowRecords),
    Otlp(Bytes),
}

impl From<crate::encode::EncodeError> for EncodeError {
    fn from(error: crate::encode::EncodeError) -> Self {
        Self::new(error.to_string())
    }
}

impl Load {
    /// Of record batches.
    #[must_use]
    pub fn records(records: OtapArrowRecords) -> Self {
        let signal = match records {
            OtapArrowRecords::Logs(_) => Signal::Logs,
            OtapArrowRecords::Metrics(_) => Signal::Metrics,
            OtapArrowRecords::Traces(_) => Signal::Traces,
        };
        let bytes = records.logical_arrow_bytes().unwrap_or_else(|_| records.retained_memory_bytes());
        Self { signal, items: records.num_items(), bytes, content: Content::Records(records) }
    }

    /// Of an OTLP request.
    ///
    /// # Errors
    ///
    /// If the bytes are no protobuf.
    pub fn otlp(signal: Signal, request: Bytes) -> Result<Self, EncodeError> {
        let items = otlp::count(&request, signal)?;
        Ok(Self { signal, items, bytes: request.len(), content: Content::Otlp(request) })
    }

    /// Hash of what its series have in common, their resource: the attributes of the one that the load has. `None` if it
    /// has several that differ, and if it cannot be read.
    ///
    /// Record batches and OTLP requests of one resource have different hashes.
    #[must_use]
    pub fn series(&self) -> Option<u64> {
        match &self.content {
            Content::Records(records) => series::of_records(records),
            Content::Otlp(request) => series::of_request(request),
        }
    }
}

impl Payload for Load {
    fn signal(&self) -> Signal {
        self.signal
    }

    fn items(&self) -> usize {
        self.items
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn split(&self, at: usize) -> Result<(Self, Self), EncodeError> {
        let (head, tail) = match &self.content {
            Content::Records(records) => {
                let (head, tail) = split::split_at(records, at)?;
                (Content::Records(head), Content::Records(tail))
            }
            Content::Otlp(request) => {
                let (head, tail) = otlp::split_at(request, self.signal, at)?;
                (Content::Otlp(head), Content::Otlp(tail))
            }
        };
        // By items: a part of a batch holds its dictionaries as a whole, and would seem too large for ever.
        let share = (self.bytes as u128 * at as u128) / (self.items.max(1) as u128);
        let share = usize::try_from(share).unwrap_or(self.bytes).min(self.bytes);
        let part = |content, items, bytes| Self { content, signal: self.signal, items, bytes };
        Ok((part(head, at, share), part(tail, self.items.saturating_sub(at), self.bytes - share)))
    }
}
