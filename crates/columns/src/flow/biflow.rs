//! Records of both directions of a flow (RFC 5103) as two records: a template for each direction over the same bytes.

use catchment_ipfix::{FieldSpec, Namespace, Semantics, Template};
use rustc_hash::FxHashSet;

use super::facts::Facts;
use super::mapping::FlowMapping;
use super::plan::Plan;

/// The two readings of a record.
#[derive(Debug)]
pub(super) struct Directions {
    pub(super) forward: (Template, Plan),
    pub(super) reverse: (Template, Plan),
}

/// IANA elements that change places when a flow is looked at from its other end.
const PAIRS: [(u16, u16); 20] = [
    (8, 12), // addresses
    (27, 28),
    (7, 11), // ports
    (180, 181),
    (182, 183),
    (9, 13), // prefix lengths
    (29, 30),
    (44, 45), // prefixes
    (170, 169),
    (16, 17), // autonomous systems
    (129, 128),
    (10, 14), // interfaces
    (252, 253),
    (56, 80), // MAC addresses
    (81, 57),
    (58, 59),   // VLANs
    (234, 235), // VRFs
    (225, 226), // translated addresses and ports
    (281, 282),
    (227, 228),
];

/// IANA elements that are about the way that packets of the forward direction take: next hops.
const FORWARD_ONLY: [u16; 4] = [15, 18, 62, 63];

/// paddingOctets, which is skipped.
const PADDING: u16 = 210;
/// biflowDirection.
pub(super) const BIFLOW_DIRECTION: u16 = 239;

impl Directions {
    /// Nothing if the records have one direction.
    pub(super) fn of(template: &Template, mapping: &FlowMapping, facts: &Facts) -> Option<Self> {
        let fields = template.fields();
        if !fields.iter().any(|field| field.reverse) {
            return None;
        }
        let skipped = |field: &FieldSpec| FieldSpec::ipfix(PADDING, 0, field.length, field.scope);
        let forward = fields.iter().map(|field| if field.reverse { skipped(field) } else { *field });
        let identity = |field: &FieldSpec| (field.id, field.enterprise, field.namespace);
        let with_counterpart: FxHashSet<_> =
            fields.iter().filter_map(forward_of).map(|field| identity(&field)).collect();
        let is_of_forward = |field: &FieldSpec| {
            let semantics = field.element.map(|element| element.semantics);
            matches!(semantics, Some(Semantics::DeltaCounter | Semantics::TotalCounter | Semantics::Flags))
                || FORWARD_ONLY.iter().any(|id| field.is_iana(*id))
                || with_counterpart.contains(&identity(field))
        };
        let reverse = fields.iter().map(|field| match forward_of(field) {
            Some(counterpart) => counterpart,
            None if is_of_forward(field) => skipped(field),
            None => swapped(field),
        });
        let of = |fields: Vec<FieldSpec>| {
            let template = Template::new(template.id(), template.kind(), fields).ok()?;
            let plan = Plan::of_one(&template, mapping, facts);
            Some((template, plan))
        };
        Some(Self { forward: of(forward.collect())?, reverse: of(reverse.collect())? })
    }
}

/// The forward element of a reverse field, with the length of the field.
fn forward_of(field: &FieldSpec) -> Option<FieldSpec> {
    if !field.reverse {
        return None;
    }
    let forward = catchment_ipfix::reverse_element(field.enterprise, field.id)?;
    Some(FieldSpec::ipfix(forward.id, forward.enterprise, field.length, field.scope))
}

/// A field as it is from the other end.
fn swapped(field: &FieldSpec) -> FieldSpec {
    if field.enterprise != 0 || field.namespace != Namespace::Ipfix {
        return *field;
    }
    let other = PAIRS.iter().find_map(|(one, other)| match field.id {
        id if id == *one => Some(*other),
        id if id == *other => Some(*one),
        _ => None,
    });
    other.map_or(*field, |id| FieldSpec::ipfix(id, 0, field.length, field.scope))
}

/// The value of biflowDirection from the other end: initiator and reverse initiator change places.
pub(super) fn swapped_direction(direction: u64) -> u64 {
    match direction {
        1 => 2,
        2 => 1,
        other => other,
    }
}
