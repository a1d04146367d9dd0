//! What can be wrong with an envelope.

use crate::kll::MAX_N;

/// Bytes that are not an ASAPv1 envelope of a KLL sketch. Offsets count from the beginning of the
/// envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// The envelope does not have the length that its header asks for.
    #[error("ASAPv1 envelope must be {expected} bytes long, got {actual}")]
    Length {
        /// Length that the header asks for; that of the header if it is cut.
        expected: u64,
        /// Length of the bytes.
        actual: usize,
    },
    /// A field has a value that is not allowed.
    #[error("byte {offset}: {field} must be {expected}, got {actual}")]
    Field {
        /// Where the field begins.
        offset: usize,
        /// Name of the field.
        field: &'static str,
        /// What is allowed.
        expected: &'static str,
        /// What is there.
        actual: u64,
    },
    /// MessagePack of another type, cut, or out of the range of its field.
    #[error("byte {offset}: {field} must be {expected}")]
    Value {
        /// Where the value begins.
        offset: usize,
        /// Name of the field.
        field: &'static str,
        /// What is allowed.
        expected: &'static str,
    },
    /// A key that the metadata must not have, or not twice.
    #[error(
        "byte {offset}: metadata key must be one of metadata_version, k, m, item_type, seed, compaction_seed, each once and one seed only"
    )]
    Key {
        /// Where the key begins.
        offset: usize,
    },
    /// A key is missing.
    #[error("metadata must have the key {key}")]
    Missing {
        /// The key.
        key: &'static str,
    },
    /// Something follows where the metadata or the payload should end.
    #[error("byte {offset}: {block} must end here")]
    Trailing {
        /// Where it should end.
        offset: usize,
        /// Metadata or payload.
        block: &'static str,
    },
    /// The level offsets do not go from 0 to the number of items without a step back.
    #[error("byte {offset}: level offset must be between {least} and {most}, got {actual}")]
    LevelOffset {
        /// Where the offset stands.
        offset: usize,
        /// The least allowed: the offset before.
        least: u32,
        /// The most allowed: the number of items.
        most: u32,
        /// What is there.
        actual: u32,
    },
    /// The weights add up to more than can be counted.
    #[error("weights must add up to at most {MAX_N}, got {weights}")]
    Weights {
        /// Their sum.
        weights: u128,
    },
}
