//! `ipfix-batch-v1` with records of SONiC's telemetry: admitted records as bytes, to be passed on, stored, and decoded
//! elsewhere or later.
//!
//! A payload stands for itself: the records as they came, their templates with the names of the objects, and how they are
//! to become metrics. It is one CBOR array (RFC 8949) that begins as the one of flow records does
//! ([`crate::flow::encoded`]):
//!
//! | item | content |
//! |---|---|
//! | version | 1 |
//! | kind | 2: records that become metrics |
//! | points | how many there are |
//! | number of records | how many there are |
//! | settings | array of numbers: style of names, place of attributes, form of large values, form of parent ids, points of a batch, records of a batch (0: as many as fit) |
//! | cumulative | array of texts: patterns of statistics that are sums |
//! | templates | array of arrays: observation domain, template record (byte string, RFC 7011 section 3.4.1), names of objects (map from labels) |
//! | lanes | byte string, 17 bytes each, little endian, see `LaneEntry` |
//! | times | byte string, 8 bytes each, little endian: when records were taken that do not say so themselves |
//! | records | byte string: the records of the lanes, one after another |

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use catchment_ipfix::sonic::{SonicTemplate, SonicTemplateError};
use minicbor::{Decoder, Encoder};
use rustc_hash::FxHashMap;

use super::batch::{Lane, SonicBatch};
use super::mapping::{AttributesAt, SonicMapping, SonicNames, U64Overflow};
use crate::ParentIds;
pub use crate::flow::encoded::ENCODING;

const VERSION: u8 = 1;
/// Records that become metrics.
const SONIC: u8 = 2;
/// Items of the payload, as many as that of flows has, so that readers of either see what the other one is; of the
/// settings in it; and of a template.
const ITEMS: u64 = 10;
const SETTINGS: u64 = 6;
const TEMPLATE: u64 = 3;

/// Most bytes of the patterns for cumulative statistics: each is held against every statistic of every template.
pub const MAX_PATTERN_BYTES: usize = 16 * 1024;

/// Why bytes are no batch of SONiC's records.
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
    #[error("offset {offset}: version {found} of the format, expected {VERSION}")]
    Version {
        /// Position in the payload.
        offset: usize,
        /// The version given.
        found: u8,
    },
    /// Content of another kind.
    #[error("offset {offset}: content of kind {found}, expected {SONIC}: records that become metrics")]
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
    /// A template that cannot be used.
    #[error("offset {offset}: {source}")]
    Template {
        /// Position in the payload.
        offset: usize,
        /// What is wrong with it.
        source: SonicTemplateError,
    },
    /// A lane that names what is not there.
    #[error("offset {offset}: lane {lane} has {field} {found}, of {bound}")]
    Lane {
        /// Position in the payload.
        offset: usize,
        /// Number of the lane.
        lane: usize,
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

/// A lane: number of its template, its records, the number that stands for its source, and whether its records have times
/// among the times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LaneEntry {
    template: u32,
    records: u32,
    source: u64,
    has_times: bool,
}

impl LaneEntry {
    const BYTES: usize = 17;

    fn append_to(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.template.to_le_bytes());
        out.extend_from_slice(&self.records.to_le_bytes());
        out.extend_from_slice(&self.source.to_le_bytes());
        out.push(u8::from(self.has_times));
    }

    fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let [t0, t1, t2, t3, r0, r1, r2, r3, source @ .., flags] = *bytes;
        Self {
            template: u32::from_le_bytes([t0, t1, t2, t3]),
            records: u32::from_le_bytes([r0, r1, r2, r3]),
            source: u64::from_le_bytes(source),
            has_times: flags & 1 != 0,
        }
    }
}

/// The records of `batch`, to become metrics as `mapping` says.
#[must_use]
pub fn encode(batch: &SonicBatch, mapping: &SonicMapping) -> Vec<u8> {
    let (mut entries, mut times, mut records) = (Vec::new(), Vec::new(), Vec::with_capacity(batch.bytes()));
    let mut templates: Vec<&Arc<SonicTemplate>> = Vec::new();
    let mut numbers: FxHashMap<*const SonicTemplate, u32> = FxHashMap::default();
    for lane in batch.lanes.iter().filter(|lane| lane.records > 0) {
        let template = *numbers.entry(Arc::as_ptr(&lane.template)).or_insert_with(|| {
            templates.push(&lane.template);
            narrow(templates.len() - 1)
        });
        let has_times = lane.times.len() == lane.records;
        LaneEntry { template, records: narrow(lane.records), source: lane.source, has_times }.append_to(&mut entries);
        if has_times {
            times.extend(lane.times.iter().flat_map(|time| time.to_le_bytes()));
        }
        records.extend_from_slice(&lane.bytes);
    }
    let mut out = Encoder::new(Vec::with_capacity(entries.len() + times.len() + records.len() + 256));
    // Writing to a vector cannot fail.
    let _ = write_head(&mut out, batch, mapping, &templates)
        .and_then(|()| out.bytes(&entries)?.bytes(&times)?.bytes(&records).map(|_| ()));
    out.into_writer()
}

type Written = Result<(), minicbor::encode::Error<std::convert::Infallible>>;

fn write_head(
    out: &mut Encoder<Vec<u8>>,
    batch: &SonicBatch,
    mapping: &SonicMapping,
    templates: &[&Arc<SonicTemplate>],
) -> Written {
    let _ = out.array(ITEMS)?.u8(VERSION)?.u8(SONIC)?.u32(narrow(batch.points()))?.u32(narrow(batch.len()))?;
    let _ = out.array(SETTINGS)?.u8(mapping.names as u8)?.u8(mapping.attributes_at as u8)?;
    let _ = out.u8(mapping.u64_overflow as u8)?.u8(u8::from(mapping.parent_ids == ParentIds::Transport))?;
    let _ = out.u64(wide(mapping.max_points))?.u64(wide(mapping.records_per_batch.map_or(0, NonZeroUsize::get)))?;
    let _ = out.array(wide(mapping.cumulative.len()))?;
    mapping.cumulative.iter().try_for_each(|pattern| out.str(pattern).map(|_| ()))?;
    let _ = out.array(wide(templates.len()))?;
    for template in templates {
        let labels: BTreeSet<u16> = template.counters().iter().map(|counter| counter.label).collect();
        let names = labels.into_iter().filter_map(|label| Some((label, template.object_name(label)?)));
        let names: Vec<(u16, &str)> = names.collect();
        let _ = out.array(TEMPLATE)?.u32(template.domain())?.bytes(template.definition())?;
        let _ = out.map(wide(names.len()))?;
        names.iter().try_for_each(|(label, name)| out.u16(*label)?.str(name).map(|_| ()))?;
    }
    Ok(())
}

/// Batches are bounded far below 4 GiB.
fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn size(number: impl TryInto<usize>) -> usize {
    number.try_into().unwrap_or(usize::MAX)
}

/// Points in a payload, without decoding them; nothing if it is damaged at its beginning, or is of another kind.
#[must_use]
pub fn count(payload: &[u8]) -> Option<usize> {
    let mut input = Decoder::new(payload);
    let is_ours = input.array().ok()? == Some(ITEMS) && input.u8().ok()? == VERSION && input.u8().ok()? == SONIC;
    is_ours.then(|| input.u32().ok()).flatten().map(size)
}

/// The records in a payload, and how they are to become metrics.
///
/// # Errors
/// [`EncodedError`] with the place of what is wrong.
pub fn decode(payload: &[u8]) -> Result<(SonicBatch, SonicMapping), EncodedError> {
    let mut input = Input(Decoder::new(payload));
    input.array(ITEMS)?;
    let offset = input.offset();
    let version = input.item(Decoder::u8)?;
    if version != VERSION {
        return Err(EncodedError::Version { offset, found: version });
    }
    let offset = input.offset();
    let kind = input.item(Decoder::u8)?;
    if kind != SONIC {
        return Err(EncodedError::Kind { offset, found: kind });
    }
    let points = (input.offset(), input.item(Decoder::u32)?, "number of the points that follow");
    let records = (input.offset(), input.item(Decoder::u32)?, "number of the records that follow");
    let announced = [points, records];
    let mapping = input.mapping()?;
    let mut templates = Vec::new();
    for _ in 0..input.length(Decoder::array)? {
        templates.push(Arc::new(input.template()?));
    }
    let entries = input.item(Decoder::bytes)?;
    // Byte strings end where the decoder stands after them.
    let entries_at = input.offset() - entries.len();
    let times = input.item(Decoder::bytes)?;
    let records = input.item(Decoder::bytes)?;
    let (entries, cut) = entries.as_chunks::<{ LaneEntry::BYTES }>();
    let unused = payload.len() - input.offset() + cut.len();
    if unused > 0 {
        return Err(EncodedError::Unused { offset: input.offset(), unused });
    }
    let (times, cut) = times.as_chunks::<8>();
    let mut rest = Rest { templates: &templates, times, records };
    let mut lanes = Vec::with_capacity(entries.len());
    for (lane, entry) in entries.iter().enumerate() {
        let offset = entries_at + lane * LaneEntry::BYTES;
        lanes.push(rest.lane(LaneEntry::from_bytes(entry), (offset, lane))?);
    }
    let unused = rest.times.len() * 8 + cut.len() + rest.records.len();
    if unused > 0 {
        return Err(EncodedError::Unused { offset: input.offset() - rest.records.len(), unused });
    }
    let batch = SonicBatch::from_lanes(lanes);
    for ((offset, number, field), there_are) in announced.into_iter().zip([batch.points(), batch.len()]) {
        if size(number) != there_are {
            return Err(EncodedError::Value { offset, field, found: number.to_string() });
        }
    }
    Ok((batch, mapping))
}

/// What the lanes that have not been read yet take theirs from.
struct Rest<'b> {
    templates: &'b [Arc<SonicTemplate>],
    times: &'b [[u8; 8]],
    records: &'b [u8],
}

impl Rest<'_> {
    fn lane(&mut self, entry: LaneEntry, (offset, lane): (usize, usize)) -> Result<Lane, EncodedError> {
        let of_lane = |field, found, bound| EncodedError::Lane { offset, lane, field, found, bound };
        let (number, records) = (size(entry.template), size(entry.records));
        let template = self.templates.get(number).ok_or_else(|| of_lane("template", number, self.templates.len()))?;
        let needed = records.saturating_mul(template.record_length());
        let (bytes, other_records) =
            self.records.split_at_checked(needed).ok_or_else(|| of_lane("bytes", needed, self.records.len()))?;
        let needed = if entry.has_times { records } else { 0 };
        let (times, other_times) =
            self.times.split_at_checked(needed).ok_or_else(|| of_lane("times", needed, self.times.len()))?;
        (self.records, self.times) = (other_records, other_times);
        Ok(Lane {
            source: entry.source,
            template: Arc::clone(template),
            bytes: bytes.to_vec(),
            records,
            times: times.iter().map(|time| i64::from_le_bytes(*time)).collect(),
        })
    }
}

struct Input<'b>(Decoder<'b>);

impl<'b> Input<'b> {
    fn offset(&self) -> usize {
        self.0.position()
    }

    fn item<T>(
        &mut self,
        read: impl FnOnce(&mut Decoder<'b>) -> Result<T, minicbor::decode::Error>,
    ) -> Result<T, EncodedError> {
        let offset = self.offset();
        read(&mut self.0).map_err(|error| EncodedError::Item { offset, message: error.to_string() })
    }

    /// Number of the entries that follow. Each takes a byte at least, so reading them ends with the input whatever it says.
    fn length(
        &mut self,
        read: impl FnOnce(&mut Decoder<'b>) -> Result<Option<u64>, minicbor::decode::Error>,
    ) -> Result<u64, EncodedError> {
        let offset = self.offset();
        let field = "array or map with a length";
        self.item(read)?.ok_or_else(|| EncodedError::Value { offset, field, found: "one without".to_owned() })
    }

    fn array(&mut self, length: u64) -> Result<(), EncodedError> {
        let offset = self.offset();
        match self.item(Decoder::array)? {
            Some(found) if found == length => Ok(()),
            found => Err(EncodedError::Value { offset, field: "length of this array", found: format!("{found:?}") }),
        }
    }

    fn one<T: Copy>(&mut self, field: &'static str, all: &[T]) -> Result<T, EncodedError> {
        let offset = self.offset();
        let number = self.item(Decoder::u8)?;
        let found = all.get(usize::from(number)).copied();
        found.ok_or_else(|| EncodedError::Value { offset, field, found: number.to_string() })
    }

    fn mapping(&mut self) -> Result<SonicMapping, EncodedError> {
        self.array(SETTINGS)?;
        let names = self.one("style of names", &[SonicNames::Sai, SonicNames::Legacy])?;
        let attributes_at = self.one("place of attributes", &[AttributesAt::Point, AttributesAt::Resource])?;
        let u64_overflow = self.one("form of large values", &[U64Overflow::Saturate, U64Overflow::Double])?;
        let parent_ids = self.one("form of parent ids", &[ParentIds::Plain, ParentIds::Transport])?;
        let max_points = size(self.item(Decoder::u64)?);
        let records_per_batch = NonZeroUsize::new(size(self.item(Decoder::u64)?));
        let mut cumulative = Vec::new();
        let mut bytes = 0;
        for _ in 0..self.length(Decoder::array)? {
            let offset = self.offset();
            let pattern = self.item(Decoder::str)?;
            bytes += pattern.len().max(1);
            if bytes > MAX_PATTERN_BYTES {
                let found = format!("text of {} bytes", pattern.len());
                return Err(EncodedError::Value { offset, field: "part of at most 16384 bytes of patterns", found });
            }
            cumulative.push(pattern.to_owned());
        }
        Ok(SonicMapping { names, attributes_at, u64_overflow, cumulative, max_points, records_per_batch, parent_ids })
    }

    fn template(&mut self) -> Result<SonicTemplate, EncodedError> {
        self.array(TEMPLATE)?;
        let domain = self.item(Decoder::u32)?;
        let definition = self.item(Decoder::bytes)?;
        let offset = self.offset() - definition.len();
        let mut names = Vec::new();
        for _ in 0..self.length(Decoder::map)? {
            names.push((self.item(Decoder::u16)?, self.item(Decoder::str)?.into()));
        }
        let template = SonicTemplate::from_definition(domain, definition, names)
            .map_err(|source| EncodedError::Template { offset, source })?;
        match definition.len() - template.definition().len() {
            0 => Ok(template),
            unused => Err(EncodedError::Unused { offset: offset + template.definition().len(), unused }),
        }
    }
}

#[cfg(test)]
mod tests;
