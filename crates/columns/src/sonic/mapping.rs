//! What points look like.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;

use crate::ParentIds;

/// Points of a batch unless it is set otherwise: about a record of the largest template.
pub const DEFAULT_POINTS: usize = 8_192;

/// Most points of a batch, whatever is set; far below the 32 bits of their ids.
const MAX_POINTS: usize = 1 << 20;

/// How metrics and attributes are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SonicNames {
    /// By SAI: metric `SAI_PORT_STAT_IF_IN_OCTETS`, attributes `object_name`, `sai_type` and `sai_stat` with SAI's names.
    #[default]
    Sai,
    /// By number, as older versions of SONiC's exporter do: metric `sai_counter_type_1_stat_0`, attributes `object_name`,
    /// `sai_type_id` and `sai_stat_id` with decimal text.
    Legacy,
}

/// Where it stands what a point is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AttributesAt {
    /// On each point: one metric a statistic, with `object_name`, type and statistic as attributes of its points.
    #[default]
    Point,
    /// On the resource: one resource an object, with `object` and the type as attributes, and in it one metric a statistic
    /// whose points have no attributes. Costs a third of the work.
    Resource,
}

/// What becomes of a value above the range of OTLP's integers. None ever wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum U64Overflow {
    /// The largest integer. A series stays one of integers.
    #[default]
    Saturate,
    /// The nearest floating-point number.
    Double,
}

/// How records become metrics.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SonicMapping {
    /// Names of metrics and attributes.
    pub names: SonicNames,
    /// Place of the attributes.
    pub attributes_at: AttributesAt,
    /// What becomes of values above 9,223,372,036,854,775,807.
    pub u64_overflow: U64Overflow,
    /// Statistics that are cumulative monotonic sums, by their SAI name; `*` stands for any text. All others are gauges, as
    /// SONiC's exporter has them: many are cleared when they are read.
    pub cumulative: Vec<String>,
    /// Points of a batch, 1,048,576 at most. A batch has at least one whole record, however many points that is.
    pub max_points: usize,
    /// Most records of a batch; `None` for as many as `max_points` allows. Batches of one record have their points in the
    /// order of the wire; others have them metric by metric, and in a metric series by series, each in the order in which
    /// its records came.
    pub records_per_batch: Option<NonZeroUsize>,
    /// How ids are written. In the transport form an OTAP exporter has nothing left to do, but nodes in between must not
    /// read ids as they stand. Batches with the order of the wire are always plain.
    pub parent_ids: ParentIds,
}

impl Default for SonicMapping {
    fn default() -> Self {
        Self {
            names: SonicNames::default(),
            attributes_at: AttributesAt::default(),
            u64_overflow: U64Overflow::default(),
            cumulative: Vec::new(),
            max_points: DEFAULT_POINTS,
            records_per_batch: None,
            parent_ids: ParentIds::Plain,
        }
    }
}

impl SonicMapping {
    /// Whether points stand in the order of the wire.
    pub(super) fn is_wire_order(&self) -> bool {
        self.records_per_batch.is_some_and(|records| records.get() == 1)
    }

    pub(super) fn ids(&self) -> ParentIds {
        if self.is_wire_order() { ParentIds::Plain } else { self.parent_ids }
    }

    pub(super) fn is_cumulative(&self, statistic: &str) -> bool {
        self.cumulative.iter().any(|pattern| matches(pattern, statistic))
    }

    /// Records of a full batch of `counters` points each.
    pub(super) fn records(&self, counters: usize) -> usize {
        let records = (self.max_points.min(MAX_POINTS) / counters.max(1)).max(1);
        self.records_per_batch.map_or(records, |most| records.min(most.get()))
    }

    /// Tells mappings apart that lead to different skeletons.
    pub(super) fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.names, self.attributes_at, &self.cumulative, self.is_wire_order(), self.ids()).hash(&mut hasher);
        hasher.finish()
    }
}

/// Whether `text` is what `pattern` describes; `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Patterns with none, one and several wildcards.
    #[test]
    fn patterns() {
        for pattern in ["abcab", "*", "a*", "*ab", "a*b", "ab*ab", "a*c*b", "**"] {
            assert!(matches(pattern, "abcab"), "{pattern}");
        }
        for pattern in ["", "abc", "b*", "*a", "abca*cab", "a*x*b", "abcab*ab"] {
            assert!(!matches(pattern, "abcab"), "{pattern}");
        }
    }

    /// A batch has as many records as fit, at least one, at most as many as are asked for.
    #[test]
    fn records_of_a_batch() {
        let mapping = SonicMapping::default();
        assert_eq!([1, 2, 500, 8_188, 9_000].map(|counters| mapping.records(counters)), [8_192, 4_096, 16, 1, 1]);
        let few = SonicMapping { records_per_batch: NonZeroUsize::new(3), ..SonicMapping::default() };
        assert_eq!([2, 500, 8_188].map(|counters| few.records(counters)), [3, 3, 1]);
        let endless = SonicMapping { max_points: usize::MAX, ..SonicMapping::default() };
        assert_eq!(endless.records(1), MAX_POINTS);
    }
}
