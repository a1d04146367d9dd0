//! Payloads: checked whole, then walked set by set.

use std::sync::Arc;

use super::SessionRow;
use super::limits::{SonicCounters, SonicLimits, SonicRejection};
use super::registry::{Applied, Key, Registry};
use super::session::{SonicSessionError, TEMPLATE_SET};
use super::template::{RecordTime, SonicTemplate, SonicTemplateError};
use crate::lru::LruMap;
use crate::message::{self, IPFIX_HEADER_BYTES, SET_HEADER_BYTES};
use crate::problem::Fault;
use crate::template::MIN_TEMPLATE_ID;

/// Records of one set that were admitted.
#[derive(Debug, Clone, Copy)]
pub struct SonicRecords<'a> {
    /// Their template.
    pub template: &'a Arc<SonicTemplate>,
    /// One or more whole records, without padding.
    pub bytes: &'a [u8],
    /// Number of records.
    pub records: usize,
    /// When they were taken if they do not say so themselves, in nanoseconds since 1970.
    pub time_unix_nano: Option<i64>,
}

/// A set of a payload whose framing is good. Payloads are shorter than 4 GiB.
#[derive(Debug, Clone, Copy)]
struct RawSet {
    start: u32,
    end: u32,
    domain: u32,
    message: u32,
    id: u16,
}

impl RawSet {
    fn content<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        payload.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    fn key(&self) -> Key {
        (self.domain, self.id)
    }
}

/// The sessions of a switch or several, and the way from payloads to records.
///
/// Templates come from rows of the session table ([`SonicSessions::apply`]) or from the payloads of a source, which
/// then hold for that source and before those of a session. Sequence numbers and export times mean nothing here.
#[derive(Debug)]
pub struct SonicSessions {
    limits: SonicLimits,
    registry: Registry,
    counters: SonicCounters,
    sets: Vec<RawSet>,
    /// The last explicit time of each source.
    times: LruMap<u64, i64>,
    /// The source of the last payload, with its last explicit time.
    current: (u64, Option<i64>),
    unknown: Option<Key>,
    refused: Option<SonicTemplateError>,
}

impl SonicSessions {
    /// No sessions.
    #[must_use]
    pub fn new(mut limits: SonicLimits) -> Self {
        limits.max_payload_bytes = limits.max_payload_bytes.min(u32::MAX as usize);
        Self {
            limits,
            registry: Registry::new(),
            counters: SonicCounters::default(),
            sets: Vec::new(),
            times: LruMap::new(),
            current: (0, None),
            unknown: None,
            refused: None,
        }
    }

    /// Takes a row of the session table, new or changed. `key` is its key there.
    ///
    /// The first configuration of a session holds at once. A later one that has new templates holds when the first data
    /// for one of these arrives: the switch goes on with the old ones until then. A disabled session is removed.
    ///
    /// # Errors
    /// [`SonicSessionError`] with the field at fault; a session that was there stays as it was.
    pub fn apply(&mut self, key: &str, row: &SessionRow) -> Result<Applied, SonicSessionError> {
        let applied = self.registry.apply(key, row, self.limits.max_sessions);
        if let Err(error) = &applied {
            self.counters.sessions_refused += 1;
            let in_conflict = matches!(error, SonicSessionError::Conflict { .. });
            self.counters.sessions_in_conflict += u64::from(in_conflict);
        }
        applied
    }

    /// Forgets a session, as when its row is deleted. Gives whether there was one.
    pub fn remove(&mut self, key: &str) -> bool {
        self.registry.remove(key)
    }

    /// Forgets what a source has sent itself, as when its connection ends.
    pub fn forget_source(&mut self, source: u64) {
        self.registry.forget_source(source);
        let _: Option<i64> = self.times.remove(&source);
        if self.current.0 == source {
            self.current.1 = None;
        }
    }

    /// Number of sessions.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.registry.sessions()
    }

    /// Counts since the beginning.
    #[must_use]
    pub fn counters(&self) -> &SonicCounters {
        &self.counters
    }

    /// Observation domain and id of the template that was missed last.
    #[must_use]
    pub fn last_unknown_template(&self) -> Option<(u32, u16)> {
        self.unknown
    }

    /// Why a template that a source sent was refused, the last time.
    #[must_use]
    pub fn last_refused_template(&self) -> Option<SonicTemplateError> {
        self.refused
    }

    /// Admits a payload: whole IPFIX messages back to back. `source` is any number that stands for whoever sent it.
    ///
    /// The records of each set go to `sink`, in the order of the wire; none does if the payload is rejected. Data sets
    /// without a template are counted and skipped.
    ///
    /// A record that does not say when it was taken has the time of the last one before it in its message that does, else
    /// of the first after it there, else the last time that the source gave, else `received_unix_nano`.
    ///
    /// # Errors
    /// [`SonicRejection`] if the payload was dropped.
    pub fn admit(
        &mut self,
        source: u64,
        payload: &[u8],
        received_unix_nano: i64,
        mut sink: impl FnMut(SonicRecords<'_>),
    ) -> Result<(), SonicRejection> {
        self.counters.payloads += 1;
        self.counters.bytes += payload.len() as u64;
        self.check(payload)?;
        if self.current.0 != source {
            self.change_source(source);
        }
        let sets = std::mem::take(&mut self.sets);
        let mut cached: Option<(Key, Arc<SonicTemplate>)> = None;
        // Where the last record is that says when it was taken.
        let mut timed: Option<(u32, RecordTime, &[u8])> = None;
        for (index, set) in sets.iter().enumerate() {
            let content = set.content(payload);
            if set.id < MIN_TEMPLATE_ID {
                self.other_set(source, set, content);
                cached = None;
                continue;
            }
            if cached.as_ref().is_none_or(|(key, _)| *key != set.key()) {
                cached = self.registry.find(source, set.key()).map(|template| (set.key(), template));
            }
            let Some((_, template)) = &cached else {
                self.counters.unknown_template_sets += 1;
                self.unknown = Some(set.key());
                continue;
            };
            self.counters.data_sets += 1;
            let length = template.record_length();
            let records = if content.len() == length { 1 } else { content.len() / length };
            let Some((bytes, padding)) = content.split_at_checked(records * length) else { continue };
            if !padding.is_empty() && padding.iter().any(|&byte| byte != 0) {
                self.counters.nonzero_padding_sets += 1;
            }
            if records == 0 {
                continue;
            }
            self.counters.records += records as u64;
            self.counters.counters += (records * template.counters().len()) as u64;
            let time_unix_nano = if template.time() == RecordTime::Nowhere {
                self.counters.records_without_time += records as u64;
                let mut time = timed.filter(|(message, ..)| *message == set.message).and_then(read);
                if time.is_none() {
                    let later = sets.get(index + 1..).unwrap_or_default();
                    time = self.time_after(source, payload, set.message, later).or_else(|| timed.and_then(read));
                }
                Some(time.or(self.current.1).unwrap_or(received_unix_nano))
            } else {
                timed = bytes.get((records - 1) * length..).map(|last| (set.message, template.time(), last));
                None
            };
            sink(SonicRecords { template, bytes, records, time_unix_nano });
        }
        self.current.1 = timed.and_then(read).or(self.current.1);
        self.sets = sets;
        Ok(())
    }

    /// Checks the framing of a payload and notes its sets.
    fn check(&mut self, payload: &[u8]) -> Result<(), SonicRejection> {
        let (limits, counters) = (&self.limits, &mut self.counters);
        if payload.len() > limits.max_payload_bytes {
            counters.rejected_limit += 1;
            return Err(SonicRejection::TooLong { length: payload.len(), limit: limits.max_payload_bytes });
        }
        self.sets.clear();
        match walk(payload, &mut self.sets, limits.max_sets) {
            Walk::Whole { messages } => {
                counters.messages += u64::from(messages);
                Ok(())
            }
            Walk::TooManySets => {
                counters.rejected_limit += 1;
                Err(SonicRejection::TooManySets { limit: limits.max_sets })
            }
            Walk::Fault => {
                counters.rejected_framing += 1;
                // Walked again for the particulars, which cost time.
                let (offset, source) =
                    message::check_framing(payload).err().unwrap_or((0, Fault::TrailingBytes { length: 0 }));
                Err(SonicRejection::Framing { offset, source })
            }
        }
    }

    #[cold]
    fn other_set(&mut self, source: u64, set: &RawSet, content: &[u8]) {
        if set.id != TEMPLATE_SET {
            self.counters.skipped_sets += 1;
            return;
        }
        let learning = self.registry.learn(source, set.domain, content, self.limits.max_learned_fields);
        self.counters.templates_learned += learning.learned;
        self.counters.templates_refused += learning.refused;
        self.counters.templates_withdrawn += learning.withdrawn;
        self.counters.templates_evicted += learning.evicted;
        self.refused = learning.error.or(self.refused);
    }

    /// The first time that a message gives in `sets`, those of it that are still to come.
    fn time_after(&mut self, source: u64, payload: &[u8], message: u32, sets: &[RawSet]) -> Option<i64> {
        let data = sets.iter().take_while(|set| set.message == message).filter(|set| set.id >= MIN_TEMPLATE_ID);
        data.into_iter().find_map(|set| {
            let template = self.registry.peek(source, set.key())?;
            template.time().read(set.content(payload).get(..template.record_length())?)
        })
    }

    #[cold]
    fn change_source(&mut self, source: u64) {
        if let (before, Some(time)) = self.current {
            let _: Option<i64> = self.times.insert(before, time);
            if self.times.len() > self.limits.max_sources {
                let _: Option<(u64, i64)> = self.times.pop_oldest();
            }
        }
        self.current = (source, self.times.get_mut(&source).copied());
    }
}

fn read((_, time, record): (u32, RecordTime, &[u8])) -> Option<i64> {
    time.read(record)
}

enum Walk {
    Whole { messages: u32 },
    TooManySets,
    Fault,
}

/// Notes the sets of a payload; says what [`message::check_framing`] says.
fn walk(payload: &[u8], sets: &mut Vec<RawSet>, max_sets: usize) -> Walk {
    let (mut at, mut messages) = (0, 0);
    while at < payload.len() {
        let Some(header) = payload.get(at..).and_then(<[u8]>::first_chunk::<IPFIX_HEADER_BYTES>) else {
            return Walk::Fault;
        };
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let end = at + length;
        if header[..2] != [0, 10] || length < IPFIX_HEADER_BYTES || end > payload.len() {
            return Walk::Fault;
        }
        let domain = u32::from_be_bytes([header[12], header[13], header[14], header[15]]);
        at += IPFIX_HEADER_BYTES;
        while at < end {
            let Some(&[a, b, c, d]) = payload.get(at..end).and_then(<[u8]>::first_chunk::<SET_HEADER_BYTES>) else {
                return Walk::Fault;
            };
            let set_length = usize::from(u16::from_be_bytes([c, d]));
            if set_length < SET_HEADER_BYTES || set_length > end - at {
                return Walk::Fault;
            }
            if sets.len() == max_sets {
                // A fault further on is not found; the payload is dropped in any case.
                return Walk::TooManySets;
            }
            #[allow(clippy::cast_possible_truncation, reason = "payloads are shorter than 4 GiB")]
            sets.push(RawSet {
                start: (at + SET_HEADER_BYTES) as u32,
                end: (at + set_length) as u32,
                domain,
                message: messages,
                id: u16::from_be_bytes([a, b]),
            });
            at += set_length;
        }
        messages += 1;
    }
    Walk::Whole { messages }
}
