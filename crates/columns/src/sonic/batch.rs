//! Records waiting to become metrics, lane by lane.

use std::sync::Arc;

use catchment_ipfix::sonic::{SonicRecords, SonicTemplate};
use rustc_hash::FxHashMap;

/// The records of one source and one template, in the order in which they came.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) source: u64,
    pub(super) template: Arc<SonicTemplate>,
    /// Whole records, one after the other.
    pub(super) bytes: Vec<u8>,
    pub(super) records: usize,
    /// When each record was taken; empty if records say so themselves.
    pub(super) times: Vec<i64>,
}

impl Lane {
    fn new(source: u64, template: &Arc<SonicTemplate>, bytes: usize, times: usize) -> Self {
        let template = Arc::clone(template);
        Self { source, template, bytes: Vec::with_capacity(bytes), records: 0, times: Vec::with_capacity(times) }
    }

    /// Points that the records give.
    pub(super) fn points(&self) -> usize {
        self.records * self.template.counters().len()
    }

    fn is_of(&self, source: u64, template: &Arc<SonicTemplate>) -> bool {
        self.source == source && Arc::ptr_eq(&self.template, template)
    }
}

/// Source, observation domain, template id.
type LaneKey = (u64, u32, u16);

/// Admitted records. Grows by what is pushed; whoever fills it bounds it.
#[derive(Debug, Default)]
pub struct SonicBatch {
    pub(super) lanes: Vec<Lane>,
    /// The lane that records of a source and a template id go to. Where the id changes its meaning a new lane begins, so that
    /// lanes stand in the order in which their records came.
    index: FxHashMap<LaneKey, usize>,
    /// Where the last records went.
    last: usize,
    records: usize,
    points: usize,
    bytes: usize,
}

impl SonicBatch {
    /// The records of these lanes.
    pub(super) fn from_lanes(lanes: Vec<Lane>) -> Self {
        let mut batch = Self::default();
        for (place, lane) in lanes.iter().enumerate() {
            let _ = batch.index.insert((lane.source, lane.template.domain(), lane.template.id()), place);
            batch.records += lane.records;
            batch.points += lane.points();
            batch.bytes += lane.bytes.len();
        }
        Self { last: lanes.len().saturating_sub(1), lanes, ..batch }
    }

    /// Adds the records of a set, which `SonicSessions::admit` gives for a payload of `source`.
    #[inline]
    pub fn push(&mut self, source: u64, set: SonicRecords<'_>) {
        if !self.lanes.get(self.last).is_some_and(|lane| lane.is_of(source, set.template)) {
            self.last = self.find(source, set.template);
        }
        let Some(lane) = self.lanes.get_mut(self.last) else { return };
        lane.bytes.extend_from_slice(set.bytes);
        lane.records += set.records;
        if let Some(time) = set.time_unix_nano {
            lane.times.resize(lane.records, time);
        }
        self.records += set.records;
        self.points += set.records * set.template.counters().len();
        self.bytes += set.bytes.len();
    }

    #[cold]
    fn find(&mut self, source: u64, template: &Arc<SonicTemplate>) -> usize {
        let key = (source, template.domain(), template.id());
        if let Some(place) = self.index.get(&key)
            && self.lanes.get(*place).is_some_and(|lane| lane.is_of(source, template))
        {
            return *place;
        }
        self.lanes.push(Lane::new(source, template, 0, 0));
        let _ = self.index.insert(key, self.lanes.len() - 1);
        self.lanes.len() - 1
    }

    /// Records in the batch.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records
    }

    /// Whether there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Points that the records give.
    #[must_use]
    pub fn points(&self) -> usize {
        self.points
    }

    /// Bytes of the records.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the records out; the next batch starts with the lanes that this one used, and with their room.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let mut next = Self::default();
        for (place, lane) in self.lanes.iter().enumerate().filter(|(_, lane)| lane.records > 0) {
            let key = (lane.source, lane.template.domain(), lane.template.id());
            if self.index.get(&key) == Some(&place) {
                let _ = next.index.insert(key, next.lanes.len());
                next.lanes.push(Lane::new(lane.source, &lane.template, lane.bytes.len(), lane.times.len()));
            }
        }
        std::mem::replace(self, next)
    }
}
