//! What options data has told of an exporter.

use crate::elements::{DataType, Semantics};

/// What the options data of an exporter has told so far, as seen from one session and observation domain.
///
/// A value never changes: later options data makes a new one, so records decoded later use what was known when they
/// were received.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Knowledge {}

/// What a record says about how it was sampled: the selectors that it or its template names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SamplingKey {
    /// samplerId (48), or selectorId (302).
    pub selector: Option<u64>,
    /// ingressInterface (10 or 252).
    pub ingress_interface: Option<u64>,
    /// egressInterface (14 or 253).
    pub egress_interface: Option<u64>,
    /// lineCardId (141).
    pub line_card: Option<u64>,
    /// Template of the record.
    pub template_id: u16,
}

/// An element of an enterprise that the exporter has described (RFC 5610).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedElement {
    /// Its name.
    pub name: String,
    /// Type of its values.
    pub data_type: DataType,
    /// Semantics of its values.
    pub semantics: Semantics,
}

impl Knowledge {
    /// When the exporter started (systemInitTimeMilliseconds), nanoseconds since 1970.
    #[must_use]
    pub fn system_init_unix_nano(&self) -> Option<i64> {
        None
    }

    /// "One packet in so many", by what the record says of its sampler: by its selector, else by its interfaces, line card
    /// or template, else the exporter's only sampler.
    #[must_use]
    pub fn sampling_rate(&self, _key: &SamplingKey) -> Option<f64> {
        None
    }

    /// Whether [`Knowledge::sampling_rate`] may depend on its argument. If not, ask once for all records of a set.
    #[must_use]
    pub fn sampling_depends_on_record(&self) -> bool {
        false
    }

    /// Name of an interface by its index.
    #[must_use]
    pub fn interface_name(&self, _index: u64) -> Option<&str> {
        None
    }

    /// Name of a VRF by its id (234, 235).
    #[must_use]
    pub fn vrf_name(&self, _id: u64) -> Option<&str> {
        None
    }

    /// Name of an application by the bytes of its applicationId (95).
    #[must_use]
    pub fn application_name(&self, _id: &[u8]) -> Option<&str> {
        None
    }

    /// An element of an enterprise as the exporter describes it (RFC 5610).
    #[must_use]
    pub fn element(&self, _enterprise: u32, _id: u16) -> Option<&DescribedElement> {
        None
    }

    /// Changes when descriptions of elements do; 0 while there are none. Part of the key of whatever is compiled for a
    /// template with their help.
    #[must_use]
    pub fn elements_generation(&self) -> u64 {
        0
    }
}
