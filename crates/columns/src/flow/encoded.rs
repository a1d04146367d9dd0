//! `ipfix-batch-v1`: admitted data sets as bytes, to be passed on, stored, and decoded elsewhere or later.
//!
//! A payload stands for itself: the records as they came, the templates that were valid for them, what options data had
//! told of what they name, what was known when they were read, and how they are to become log records. It is one CBOR array
//! (RFC 8949):
//!
//! | item | content |
//! |---|---|
//! | version | 1, or 2 if a sampler has left records out |
//! | kind | 1: data sets that become logs; other numbers are for other content |
//! | records | how many there are |
//! | settings | array of numbers, see `SETTINGS` |
//! | templates | array of arrays: id, kind (0 flows, 1 options data, 2 the built-in one of NetFlow v5), fields (byte string, 9 bytes each, little endian: name space and, in bit 7, scope (1), element (2), enterprise (4), length (2)) |
//! | groups | array of arrays of templates: those that lists of a set may need |
//! | facts | array of what options data has told, see `facts` |
//! | exporters | array of arrays: address or null, port |
//! | sets | byte string, 56 bytes each, see `SetEntry` |
//! | records | byte string: the records of the sets, one after another |
//! | thresholds | of version 2: byte string, 8 bytes for each set, little endian: the threshold that its records have passed |

mod facts;
mod read;
mod write;

pub use read::decode;
pub use write::encode;

use minicbor::Decoder;

/// Name of the encoding.
pub const ENCODING: &str = "ipfix-batch-v1";

/// All records stand for themselves.
const VERSION: u8 = 1;
/// Sets have thresholds.
const VERSION_SAMPLED: u8 = 2;
/// Data sets that become logs.
const FLOWS: u8 = 1;

const FIELD_BYTES: usize = 9;
const SCOPE: u8 = 0x80;
/// Items of the payload of version 1, to which version 2 adds one, and of the settings in it.
const ITEMS: u64 = 10;
const THRESHOLD_BYTES: usize = 8;
const SETTINGS: u64 = 12;
/// In place of a number: none.
const NONE: u32 = u32::MAX;

/// Why bytes are no batch of data sets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodedError {
    /// The CBOR items are not those of the format.
    #[error("offset {offset}: {message}; expected the items of {ENCODING}")]
    Item {
        /// Position in the payload.
        offset: usize,
        /// What the CBOR decoder found.
        message: String,
    },
    /// Another version of the format.
    #[error("offset {offset}: version {found} of the format, expected {VERSION} or {VERSION_SAMPLED}")]
    Version {
        /// Position in the payload.
        offset: usize,
        /// The version given.
        found: u8,
    },
    /// Content of another kind.
    #[error("offset {offset}: content of kind {found}, expected {FLOWS}: data sets that become logs")]
    Kind {
        /// Position in the payload.
        offset: usize,
        /// The kind given.
        found: u8,
    },
    /// A value that means nothing at its place.
    #[error("offset {offset}: {found} is no {field}")]
    Value {
        /// Position in the payload.
        offset: usize,
        /// What should be there.
        field: &'static str,
        /// What is.
        found: String,
    },
    /// A set that names what is not there, or whose records are not those it announces.
    #[error("offset {offset}: set {set} has {field} {found}, of {bound}")]
    Set {
        /// Position in the payload.
        offset: usize,
        /// Number of the set.
        set: usize,
        /// What does not fit.
        field: &'static str,
        /// The number given.
        found: usize,
        /// How many there are.
        bound: usize,
    },
    /// Bytes are left over.
    #[error("offset {offset}: {unused} bytes that belong to nothing")]
    Unused {
        /// Position in the payload.
        offset: usize,
        /// How many.
        unused: usize,
    },
}

/// A set: numbers of its template, group, facts and exporter, its records and their bytes, and its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SetEntry {
    template: u32,
    group: u32,
    facts: u32,
    exporter: u32,
    records: u32,
    bytes: u32,
    received_unix_nano: i64,
    exported_unix_nano: i64,
    sequence: u32,
    domain: u32,
    uptime_ms: Option<u32>,
    sampling: Option<u16>,
    /// 5, 9 or 10.
    version: u8,
}

impl SetEntry {
    const BYTES: usize = 56;
    const HAS_UPTIME: u8 = 1;
    const HAS_SAMPLING: u8 = 2;

    /// Little endian, in the order of the fields; flags at the end say which optional ones are there.
    fn append_to(&self, out: &mut Vec<u8>) {
        let words = [self.template, self.group, self.facts, self.exporter, self.records, self.bytes];
        words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        out.extend_from_slice(&self.received_unix_nano.to_le_bytes());
        out.extend_from_slice(&self.exported_unix_nano.to_le_bytes());
        let words = [self.sequence, self.domain, self.uptime_ms.unwrap_or(0)];
        words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        out.extend_from_slice(&self.sampling.unwrap_or(0).to_le_bytes());
        let has = |flag, is_there| if is_there { flag } else { 0 };
        let flags = has(Self::HAS_UPTIME, self.uptime_ms.is_some()) | has(Self::HAS_SAMPLING, self.sampling.is_some());
        out.extend_from_slice(&[self.version, flags]);
    }

    /// Of [`SetEntry::BYTES`] bytes.
    fn from_bytes(bytes: &[u8]) -> Self {
        let word = |at: usize| u32::from_le_bytes(array(bytes, at));
        let long = |at: usize| i64::from_le_bytes(array(bytes, at));
        let [version, flags] = array(bytes, 54);
        Self {
            template: word(0),
            group: word(4),
            facts: word(8),
            exporter: word(12),
            records: word(16),
            bytes: word(20),
            received_unix_nano: long(24),
            exported_unix_nano: long(32),
            sequence: word(40),
            domain: word(44),
            uptime_ms: (flags & Self::HAS_UPTIME != 0).then(|| word(48)),
            sampling: (flags & Self::HAS_SAMPLING != 0).then(|| u16::from_le_bytes(array(bytes, 52))),
            version,
        }
    }
}

/// The bytes at a place, zeros where there are none.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk().copied()).unwrap_or([0; N])
}

/// Items of a payload of that version, if there is such a version.
fn items_of(version: u8) -> Option<u64> {
    match version {
        VERSION => Some(ITEMS),
        VERSION_SAMPLED => Some(ITEMS + 1),
        _ => None,
    }
}

/// Records in a payload, without decoding them; nothing if it is damaged at its beginning, or is none of data sets.
#[must_use]
pub fn count(payload: &[u8]) -> Option<usize> {
    let mut input = Decoder::new(payload);
    let items = input.array().ok()??;
    let is_ours = items_of(input.u8().ok()?) == Some(items) && input.u8().ok()? == FLOWS;
    is_ours.then(|| input.u32().ok()).flatten().and_then(|records| usize::try_from(records).ok())
}

#[cfg(test)]
mod tests;
