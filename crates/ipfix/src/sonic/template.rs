//! Templates of telemetry sessions, compiled: where each counter stands in a record, and what it counts.

use std::any::Any;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use thiserror::Error;

use super::names::StatisticId;
use crate::attachments::Attachments;
use crate::field::VARIABLE_LENGTH;
use crate::template::MIN_TEMPLATE_ID;
use crate::wire;

/// Most counters of one template: a template set takes 28 bytes of its message and 8 a counter.
pub const MAX_COUNTERS: usize = 8_188;

/// observationTimeSeconds and observationTimeNanoseconds of the IANA registry.
const OBSERVATION_SECONDS: u16 = 322;
const OBSERVATION_NANOSECONDS: u16 = 325;

const ENTERPRISE_BIT: u16 = 0x8000;
const FIELD_BYTES: usize = 4;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Names of objects by their labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ObjectNames(pub(super) FxHashMap<u16, Box<str>>);

impl ObjectNames {
    pub(super) fn get(&self, label: u16) -> Option<&str> {
        self.0.get(&label).map(AsRef::as_ref)
    }
}

/// Why a template record cannot be used. Fields are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SonicTemplateError {
    /// The id is in the reserved range.
    #[error("template id {id} is reserved, templates start at 256")]
    ReservedId {
        /// The id given.
        id: u16,
    },
    /// The fields do not fit the template set.
    #[error("template {id} with {fields} fields does not fit the {available} bytes left in its set")]
    Overrun {
        /// Id of the template.
        id: u16,
        /// Number of fields announced.
        fields: usize,
        /// Bytes left in the set.
        available: usize,
    },
    /// A counter of no bytes, or of more than a number has.
    #[error("field {field} of template {id} is a counter of {length} bytes, counters take 1 to 8")]
    CounterLength {
        /// Id of the template.
        id: u16,
        /// Position of the field.
        field: usize,
        /// Length given.
        length: u16,
    },
    /// A counter without an object.
    #[error("field {field} of template {id} has label 0, labels are 1 to 32767")]
    Label {
        /// Id of the template.
        id: u16,
        /// Position of the field.
        field: usize,
    },
    /// A time in a number of bytes that has no meaning.
    #[error("field {field} of template {id} is a time of {length} bytes, times take 4 or 8")]
    TimeLength {
        /// Id of the template.
        id: u16,
        /// Position of the field.
        field: usize,
        /// Length given.
        length: u16,
    },
    /// Records would not all have one length.
    #[error("field {field} of template {id} has a variable length, all fields must have a fixed one")]
    VariableLength {
        /// Id of the template.
        id: u16,
        /// Position of the field.
        field: usize,
    },
    /// Nothing is counted.
    #[error("template {id} has no counter, it needs one")]
    NoCounters {
        /// Id of the template.
        id: u16,
    },
    /// More counters than a session has.
    #[error("template {id} has more than {limit} counters")]
    TooManyCounters {
        /// Id of the template.
        id: u16,
        /// Most counters allowed.
        limit: usize,
    },
}

/// A counter of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    /// Where its value starts in a record.
    pub offset: usize,
    /// Bytes of its value, 1 to 8, unsigned and big-endian.
    pub width: usize,
    /// Label of the object, 1 to 32767.
    pub label: u16,
    /// What is counted.
    pub statistic: StatisticId,
}

/// Where a record says when it was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordTime {
    /// Nanoseconds since 1970 in 8 bytes. The element is observationTimeNanoseconds, but the encoding is not IPFIX's.
    UnixNano {
        /// Where it starts in a record.
        offset: usize,
    },
    /// Seconds since 1970 in 4 or 8 bytes, and nanoseconds within that second in 4.
    Seconds {
        /// Where the seconds start in a record.
        offset: usize,
        /// Bytes of the seconds.
        width: usize,
        /// Where the nanoseconds start; `None` for whole seconds.
        nanos: Option<usize>,
    },
    /// Nowhere.
    Nowhere,
}

impl RecordTime {
    /// The time of a record in nanoseconds since 1970; `None` if it has none. Times beyond the year 2262 are held there.
    #[inline]
    #[must_use]
    pub fn read(self, record: &[u8]) -> Option<i64> {
        match self {
            Self::UnixNano { offset } => {
                let bytes: &[u8; 8] = record.get(offset..)?.first_chunk()?;
                Some(saturate(u64::from_be_bytes(*bytes)))
            }
            Self::Seconds { offset, width, nanos } => {
                let seconds = saturate(wire::unsigned(record.get(offset..offset + width)?)?);
                let nanos = match nanos {
                    Some(offset) => wire::u32_at(record, offset)?,
                    None => 0,
                };
                Some(seconds.saturating_mul(NANOS_PER_SECOND).saturating_add(i64::from(nanos)))
            }
            Self::Nowhere => None,
        }
    }
}

fn saturate(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A template with the names of its objects. It never changes: whatever is built for it can be kept by the identity of
/// its `Arc`.
#[derive(Debug)]
pub struct SonicTemplate {
    domain: u32,
    id: u16,
    /// The template record as it was read.
    definition: Box<[u8]>,
    /// Number of its fields.
    fields: usize,
    record_length: usize,
    time: RecordTime,
    counters: Box<[Counter]>,
    names: Arc<ObjectNames>,
    attachments: Attachments,
}

impl SonicTemplate {
    /// Compiles the template record that `record` is.
    pub(super) fn compile(domain: u32, record: &[u8], names: &Arc<ObjectNames>) -> Result<Self, SonicTemplateError> {
        let id = wire::u16_at(record, 0).unwrap_or_default();
        let count = wire::u16_at(record, 2).map_or(0, usize::from);
        if id < MIN_TEMPLATE_ID {
            return Err(SonicTemplateError::ReservedId { id });
        }
        let mut fields = Fields { record, at: FIELD_BYTES };
        let mut counters = Vec::with_capacity(count.min(MAX_COUNTERS));
        let (mut offset, mut unix_nano, mut seconds, mut nanos) = (0, None, None, None);
        for field in 0..count {
            let Some((number, length, enterprise)) = fields.next() else { break };
            if length == VARIABLE_LENGTH {
                return Err(SonicTemplateError::VariableLength { id, field });
            }
            let width = usize::from(length);
            let label = number & !ENTERPRISE_BIT;
            match (enterprise, label) {
                (None, OBSERVATION_NANOSECONDS) => match width {
                    8 => unix_nano = unix_nano.or(Some(offset)),
                    4 => nanos = nanos.or(Some(offset)),
                    _ => return Err(SonicTemplateError::TimeLength { id, field, length }),
                },
                (None, OBSERVATION_SECONDS) => match width {
                    4 | 8 => seconds = seconds.or(Some((offset, width))),
                    _ => return Err(SonicTemplateError::TimeLength { id, field, length }),
                },
                // Other elements and place holders take bytes and mean nothing.
                (None, _) | (Some(0), 0) => {}
                (Some(_), 0) => return Err(SonicTemplateError::Label { id, field }),
                (Some(enterprise), label) => {
                    if !(1..=8).contains(&width) {
                        return Err(SonicTemplateError::CounterLength { id, field, length });
                    }
                    if counters.len() == MAX_COUNTERS {
                        return Err(SonicTemplateError::TooManyCounters { id, limit: MAX_COUNTERS });
                    }
                    counters.push(Counter {
                        offset,
                        width,
                        label,
                        statistic: StatisticId::from_enterprise(enterprise),
                    });
                }
            }
            offset += width;
        }
        if counters.is_empty() {
            return Err(SonicTemplateError::NoCounters { id });
        }
        let time = match (unix_nano, seconds) {
            (Some(offset), _) => RecordTime::UnixNano { offset },
            (None, Some((offset, width))) => RecordTime::Seconds { offset, width, nanos },
            (None, None) => RecordTime::Nowhere,
        };
        Ok(Self {
            domain,
            id,
            definition: record.into(),
            fields: count,
            record_length: offset,
            time,
            counters: counters.into(),
            names: Arc::clone(names),
            attachments: Attachments::default(),
        })
    }

    /// The template that `definition` begins with, a template record as [`SonicTemplate::definition`] gives it, with the
    /// names of objects by their labels. Takes time and memory in proportion to both.
    ///
    /// # Errors
    /// [`SonicTemplateError`] with what is wrong with the record.
    pub fn from_definition(
        domain: u32,
        definition: &[u8],
        names: impl IntoIterator<Item = (u16, Box<str>)>,
    ) -> Result<Self, SonicTemplateError> {
        let record = match SetItems(definition).next().transpose()? {
            Some(SetItem::Template(record)) => record,
            // Refused below, with the reason.
            Some(SetItem::Withdrawal(_)) | None => definition,
        };
        Self::compile(domain, record, &Arc::new(ObjectNames(names.into_iter().collect())))
    }

    /// Observation domain that it is valid in.
    #[must_use]
    pub fn domain(&self) -> u32 {
        self.domain
    }

    /// Id of the template, 256 or above.
    #[must_use]
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Bytes of each record, 1 or more.
    #[must_use]
    pub fn record_length(&self) -> usize {
        self.record_length
    }

    /// Where records say when they were taken.
    #[must_use]
    pub fn time(&self) -> RecordTime {
        self.time
    }

    /// The counters in the order of the wire, 1 to [`MAX_COUNTERS`]. Place holders and times are not among them.
    #[must_use]
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// Name of the object with a label; `None` if the session does not name it.
    #[must_use]
    pub fn object_name(&self, label: u16) -> Option<&str> {
        self.names.get(label)
    }

    /// What a consumer has made of the template, made now if it is not there yet. It lives as long as the template.
    /// `key` tells consumers with different settings apart; a few are kept.
    pub fn attached<T: Any + Send + Sync>(&self, key: u64, make: impl FnOnce(&Self) -> T) -> Arc<T> {
        self.attachments.get_or_make(key, || make(self))
    }

    /// The template record as it was read: id, number of fields, and the fields (RFC 7011 section 3.4.1).
    #[must_use]
    pub fn definition(&self) -> &[u8] {
        &self.definition
    }

    /// What it costs to keep: counters, times and place holders alike.
    pub(super) fn fields(&self) -> usize {
        self.fields
    }

    pub(super) fn names(&self) -> &Arc<ObjectNames> {
        &self.names
    }

    /// Whether both decode the same records to the same points.
    pub(super) fn same(&self, other: &Self) -> bool {
        let same_names = || {
            Arc::ptr_eq(&self.names, &other.names)
                || self.counters.iter().all(|counter| self.names.get(counter.label) == other.names.get(counter.label))
        };
        self.domain == other.domain && self.definition == other.definition && same_names()
    }
}

/// The fields of a template record: number, length, enterprise number.
struct Fields<'a> {
    record: &'a [u8],
    at: usize,
}

impl Iterator for Fields<'_> {
    type Item = (u16, u16, Option<u32>);

    fn next(&mut self) -> Option<Self::Item> {
        let number = wire::u16_at(self.record, self.at)?;
        let length = wire::u16_at(self.record, self.at + 2)?;
        self.at += FIELD_BYTES;
        if number & ENTERPRISE_BIT == 0 {
            return Some((number, length, None));
        }
        let enterprise = wire::u32_at(self.record, self.at)?;
        self.at += FIELD_BYTES;
        Some((number, length, Some(enterprise)))
    }
}

/// What stands in a template set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetItem<'a> {
    /// A whole template record.
    Template(&'a [u8]),
    /// A withdrawal of a template, or of all with id 2.
    Withdrawal(u16),
}

/// Walks the content of a template set. An error ends it: nothing after it can be found.
#[derive(Debug)]
pub(super) struct SetItems<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for SetItems<'a> {
    type Item = Result<SetItem<'a>, SonicTemplateError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = std::mem::take(&mut self.0);
        let id = wire::u16_at(rest, 0).filter(|id| *id != 0)?;
        let fields = wire::u16_at(rest, 2).map(usize::from)?;
        if fields == 0 {
            self.0 = rest.get(FIELD_BYTES..).unwrap_or_default();
            return Some(Ok(SetItem::Withdrawal(id)));
        }
        let mut walk = Fields { record: rest, at: FIELD_BYTES };
        if walk.by_ref().take(fields).count() < fields {
            return Some(Err(SonicTemplateError::Overrun { id, fields, available: rest.len() }));
        }
        let (record, rest) = rest.split_at_checked(walk.at)?;
        self.0 = rest;
        Some(Ok(SetItem::Template(record)))
    }
}
