//! What options data has told of an exporter, for the records of a set: as the session knows it, or as a payload carries it.

use std::collections::BTreeMap;
use std::sync::Arc;

use catchment_ipfix::{DataType, Element, FieldSpec, Knowledge, SamplingKey, Semantics};

/// Facts for the records of a set.
#[derive(Debug, Clone, Default)]
pub(super) enum Facts {
    #[default]
    None,
    Known(Arc<Knowledge>),
    Carried(Arc<Carried>),
}

/// The answers that some records need. Ordered: senders choose the keys, and one content has one form.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Carried {
    pub(super) system_init_unix_nano: Option<i64>,
    pub(super) depends_on_record: bool,
    pub(super) generation: u64,
    pub(super) rates: BTreeMap<RateKey, f64>,
    pub(super) interfaces: BTreeMap<u64, String>,
    pub(super) vrfs: BTreeMap<u64, String>,
    pub(super) applications: BTreeMap<Vec<u8>, String>,
    pub(super) elements: BTreeMap<(u32, u16), (String, DataType)>,
}

/// A [`SamplingKey`] that can be looked for: selector, interfaces in and out, line card, template.
pub(super) type RateKey = ([Option<u64>; 4], u16);

pub(super) fn rate_key(key: &SamplingKey) -> RateKey {
    ([key.selector, key.ingress_interface, key.egress_interface, key.line_card], key.template_id)
}

impl Facts {
    pub(super) fn new(knowledge: Option<Arc<Knowledge>>) -> Self {
        knowledge.map_or(Self::None, Self::Known)
    }

    pub(super) fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    pub(super) fn system_init_unix_nano(&self) -> Option<i64> {
        match self {
            Self::None => None,
            Self::Known(known) => known.system_init_unix_nano(),
            Self::Carried(carried) => carried.system_init_unix_nano,
        }
    }

    pub(super) fn sampling_rate(&self, key: &SamplingKey) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Known(known) => known.sampling_rate(key),
            Self::Carried(carried) => carried.rates.get(&rate_key(key)).copied(),
        }
    }

    pub(super) fn sampling_depends_on_record(&self) -> bool {
        match self {
            Self::None => false,
            Self::Known(known) => known.sampling_depends_on_record(),
            Self::Carried(carried) => carried.depends_on_record,
        }
    }

    pub(super) fn interface_name(&self, index: u64) -> Option<&str> {
        match self {
            Self::None => None,
            Self::Known(known) => known.interface_name(index),
            Self::Carried(carried) => carried.interfaces.get(&index).map(String::as_str),
        }
    }

    pub(super) fn vrf_name(&self, id: u64) -> Option<&str> {
        match self {
            Self::None => None,
            Self::Known(known) => known.vrf_name(id),
            Self::Carried(carried) => carried.vrfs.get(&id).map(String::as_str),
        }
    }

    pub(super) fn application_name(&self, id: &[u8]) -> Option<&str> {
        match self {
            Self::None => None,
            Self::Known(known) => known.application_name(id),
            Self::Carried(carried) => carried.applications.get(id).map(String::as_str),
        }
    }

    pub(super) fn elements_generation(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Known(known) => known.elements_generation(),
            Self::Carried(carried) => carried.generation,
        }
    }

    /// Name and type of an element of an enterprise as the exporter describes it (RFC 5610).
    pub(super) fn element(&self, enterprise: u32, id: u16) -> Option<(&str, DataType)> {
        match self {
            Self::None => None,
            Self::Known(known) => known.element(enterprise, id).map(|found| (found.name.as_str(), found.data_type)),
            Self::Carried(carried) => {
                carried.elements.get(&(enterprise, id)).map(|(name, data_type)| (name.as_str(), *data_type))
            }
        }
    }

    /// Name and type of a field that the tables do not know but the exporter has described.
    pub(super) fn described(&self, field: &FieldSpec) -> Option<(&str, DataType)> {
        if field.element.is_some() || field.enterprise == 0 {
            return None;
        }
        self.element(field.enterprise, field.id)
    }

    /// The field with the type that the exporter describes, if the tables do not know it.
    pub(super) fn typed(&self, field: &FieldSpec) -> FieldSpec {
        match self.described(field) {
            Some((_, data_type)) => FieldSpec { element: TYPES.get(type_number(data_type)), ..*field },
            None => *field,
        }
    }
}

/// Number of a type in the registry of informationElementDataType (RFC 5610 section 3.1); 23 is unsigned256.
pub(super) fn type_number(data_type: DataType) -> usize {
    TYPES.iter().position(|element| element.data_type == data_type).unwrap_or(0)
}

/// The type of a number.
pub(super) fn type_of_number(number: usize) -> Option<DataType> {
    TYPES.get(number).map(|element| element.data_type)
}

const fn nameless(data_type: DataType) -> Element {
    Element { id: 0, enterprise: 0, name: "", data_type, semantics: Semantics::Default }
}

/// An element of each type, to decode values of described elements as, by the numbers of the registry.
static TYPES: [Element; 24] = [
    nameless(DataType::OctetArray),
    nameless(DataType::Unsigned8),
    nameless(DataType::Unsigned16),
    nameless(DataType::Unsigned32),
    nameless(DataType::Unsigned64),
    nameless(DataType::Signed8),
    nameless(DataType::Signed16),
    nameless(DataType::Signed32),
    nameless(DataType::Signed64),
    nameless(DataType::Float32),
    nameless(DataType::Float64),
    nameless(DataType::Boolean),
    nameless(DataType::MacAddress),
    nameless(DataType::String),
    nameless(DataType::DateTimeSeconds),
    nameless(DataType::DateTimeMilliseconds),
    nameless(DataType::DateTimeMicroseconds),
    nameless(DataType::DateTimeNanoseconds),
    nameless(DataType::Ipv4Address),
    nameless(DataType::Ipv6Address),
    nameless(DataType::BasicList),
    nameless(DataType::SubTemplateList),
    nameless(DataType::SubTemplateMultiList),
    nameless(DataType::Unsigned256),
];
