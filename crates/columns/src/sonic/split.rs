//! Parts of a batch that become one batch of metrics each.

use catchment_ipfix::sonic::SonicTemplate;
use rustc_hash::FxHashSet;

use super::batch::{Lane, SonicBatch};
use super::mapping::SonicMapping;

/// Whether a record of a template has some series more than once, as it is kept with the template.
struct Repeats(bool);

/// Key of [`Repeats`] with a template; what else is kept there is of another type.
const REPEATS: u64 = 0;

fn repeats(template: &SonicTemplate) -> bool {
    let make = |template: &SonicTemplate| {
        let mut seen = FxHashSet::default();
        Repeats(!template.counters().iter().all(|counter| seen.insert((counter.label, counter.statistic))))
    };
    template.attached(REPEATS, make).0
}

impl SonicBatch {
    /// The records in parts, in their order: a [`super::SonicJob`] with this mapping makes one batch of each. Parts are of one
    /// source and one template and have no more records than a batch.
    #[must_use]
    pub fn split(self, mapping: &SonicMapping) -> Vec<Self> {
        let mut parts = Vec::new();
        for lane in self.lanes.into_iter().filter(|lane| lane.records > 0) {
            let most = if repeats(&lane.template) { 1 } else { mapping.records(lane.template.counters().len()) };
            if lane.records <= most {
                parts.push(Self::from_lanes(vec![lane]));
                continue;
            }
            let starts = (0..lane.records).step_by(most);
            parts.extend(starts.map(|start| Self::from_lanes(vec![lane.part(start, most.min(lane.records - start))])));
        }
        parts
    }
}

impl Lane {
    /// So many of the records, from that at `start` on.
    fn part(&self, start: usize, records: usize) -> Self {
        let length = self.template.record_length();
        let bytes = self.bytes.get(start * length..(start + records) * length);
        Self {
            source: self.source,
            template: self.template.clone(),
            bytes: bytes.unwrap_or_default().to_vec(),
            records,
            times: self.times.get(start..start + records).unwrap_or_default().to_vec(),
        }
    }
}
