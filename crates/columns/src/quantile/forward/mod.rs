//! What of a batch goes on unchanged.
//!
//! Items are log records and number data points, in the order in which a [`Reader`](super::Reader) gives them their
//! fates. [`records`] takes rows out of OTAP tables, [`otlp`] copies the bytes of an OTLP request without a conversion.
//! What is left without items goes too: scopes, resources and metrics that had some.

mod bytes;
mod rows;
#[cfg(test)]
mod tests;

pub use bytes::otlp;
pub use rows::records;

/// What is to be kept of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Kept<'a> {
    /// For each item whether it is kept.
    pub items: &'a [bool],
    /// Whether to keep what is no item: points of histograms and summaries, metrics, scopes and resources that are empty
    /// to begin with, and items beyond the list.
    pub others: bool,
}

impl Kept<'_> {
    fn item(&self, at: usize) -> bool {
        self.items.get(at).copied().unwrap_or(self.others)
    }
}
