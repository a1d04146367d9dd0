//! ASAPv1: the envelope in which ProjectASAP's collectors and query engine exchange KLL sketches.
//!
//! | bytes | content |
//! | --- | --- |
//! | 0..6 | `ASAPv1` |
//! | 6 | version, 1 |
//! | 7 | length of the kind, 2 |
//! | 8, 9 | kind: 6, 0 KLL; 6, 1 dynamic KLL |
//! | 10..14, 14..18 | length of metadata, of payload; big endian |
//! | then | metadata, a MessagePack map: `metadata_version` 1, `k`, `m`, `item_type`, and the seed of the coins, if any |
//! | then | payload, a MessagePack array: level offsets, items, coin |
//!
//! The offsets begin with 0 and go from the top level down; level 0, the last, is in order of
//! arrival. The key of the seed was renamed from `seed` to `compaction_seed` without a new version,
//! so both are read, and which one is written is a setting.
//!
//! Count, minimum and maximum are not in the envelope. The count is the sum of the weights of the
//! items; some writers lose weights when they compact an odd number of items, so it may be less
//! than the count beside the envelope: [`Envelope::weight_mismatch`] tells. The extremes are those
//! of the items until the carrier gives others, see [`KllSketch::widen_extremes`].
//!
//! Not for the other sketches of that format: their kinds are refused by number.

mod error;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use error::EnvelopeError;
pub use read::read;
pub use write::write;

use crate::kll::KllSketch;

const MAGIC: [u8; 6] = *b"ASAPv1";
const VERSION: u8 = 1;
const KIND_LENGTH: u8 = 2;
const HEADER: usize = 18;
const METADATA_VERSION: u64 = 1;
const FAMILY_KLL: u8 = 6;

const KEY_METADATA_VERSION: &str = "metadata_version";
const KEY_K: &str = "k";
const KEY_M: &str = "m";
const KEY_ITEM_TYPE: &str = "item_type";

/// Which of the two forms of KLL sketch an envelope says it has. Their content is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// In arrays of fixed size.
    #[default]
    Kll,
    /// In growing arrays.
    Dynamic,
}

impl Kind {
    const fn id(self) -> u8 {
        match self {
            Self::Kll => 0,
            Self::Dynamic => 1,
        }
    }
}

/// The type of the items. Integers are read as the nearest doubles: beyond 2^53 neighbours become
/// equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemType {
    /// Doubles.
    F64,
    /// Integers with a sign.
    I64,
}

/// The key of the seed in the metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SeedKey {
    /// `compaction_seed`, the present name.
    #[default]
    CompactionSeed,
    /// `seed`, the earlier name.
    Seed,
}

impl SeedKey {
    const fn name(self) -> &'static str {
        match self {
            Self::CompactionSeed => "compaction_seed",
            Self::Seed => "seed",
        }
    }
}

/// The state of the coins of the writer, which a reader that goes on compacting takes over. The
/// sketches here have coins of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coin {
    /// State of the generator.
    pub state: u64,
    /// Bits not used yet.
    pub bit_cache: u64,
    /// How many of them there are, at most 64.
    pub remaining_bits: u32,
}

/// What an envelope holds.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// The sketch. Its count is the sum of the weights in the envelope, NaN items apart: those are
    /// dropped and counted as NaN.
    pub sketch: KllSketch,
    /// Which form it came in.
    pub kind: Kind,
    /// The smallest capacity of a level in the sketch of the writer. Here it is always 8.
    pub m: u16,
    /// The type of the items in the envelope.
    pub item_type: ItemType,
    /// The seed of the coins of the writer, and the key that it stood under.
    pub seed: Option<(SeedKey, u64)>,
    /// The coins of the writer.
    pub coin: Coin,
}

/// The count of a carrier that is not the sum of the weights in the envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightMismatch {
    /// The count of the carrier.
    pub count: u64,
    /// The sum of the weights.
    pub weights: u64,
}

impl Envelope {
    /// The sum of the weights of all items, NaN included.
    #[must_use]
    pub fn weights(&self) -> u64 {
        self.sketch.n().saturating_add(self.sketch.nan_count())
    }

    /// Compares with the count that the carrier of the envelope gives. A difference is a fault of
    /// the writer, but quantiles are still about right: to be reported, not to be refused.
    #[must_use]
    pub fn weight_mismatch(&self, count: u64) -> Option<WeightMismatch> {
        let weights = self.weights();
        (count != weights).then_some(WeightMismatch { count, weights })
    }
}

/// How an envelope is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteSettings {
    /// Which form it says it has.
    pub kind: Kind,
    /// A seed for the metadata, and its key.
    pub seed: Option<(SeedKey, u64)>,
    /// Coins for the reader; `None` takes fresh ones that follow from those of the sketch.
    pub coin: Option<Coin>,
}
