//! What options data has told of an exporter.
//!
//! A session learns from options data while it admits it, and hands out snapshots with the data sets that follow. All
//! sessions of one exporter address share what they know: what a record asks for is looked up in its own session and
//! observation domain first, then in the same domain of other sessions, then in all else of the address. Of other sessions
//! those that have proved to be real come first.
//!
//! A snapshot shares with the one before whatever has not changed, and a datagram makes but a few of them, so that nobody
//! gets much work and memory for few bytes.

mod facts;
mod learn;
mod shared;
mod snapshot;

use std::sync::Arc;

use crate::elements::{DataType, Semantics};

pub(crate) use facts::{Fact, Facts, MAX_APPLICATION_ID_BYTES, MAX_NAME_BYTES, SamplerKey};
pub(crate) use learn::OptionsPlan;
pub(crate) use shared::{AddressKnowledge, RESTORED, SessionKnowledge, Teller};

/// What the options data of an exporter has told so far, as seen from one session and observation domain.
///
/// A value never changes: later options data makes a new one, so records decoded later use what was known when they
/// were received.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Knowledge {
    /// Nearest first.
    layers: Box<[Arc<Facts>]>,
    /// The rate of all samplers of the nearest layer that has any, if they agree.
    only_rate: Option<f64>,
    depends_on_record: bool,
    elements_generation: u64,
}

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
    /// What is seen through layers of facts, nearest first.
    fn new(layers: Vec<Arc<Facts>>) -> Self {
        let only_rate = layers.iter().find(|facts| facts.has_samplers()).and_then(|facts| facts.only_rate());
        let depends_on_record = layers.iter().any(|facts| facts.depends_on_record());
        let generations = layers.iter().map(|facts| facts.elements_generation()).filter(|&generation| generation != 0);
        let elements_generation = generations.fold(0, |all: u64, one| all.rotate_left(7).wrapping_mul(31) ^ one);
        Self { layers: layers.into(), only_rate, depends_on_record, elements_generation }
    }

    /// When the exporter started (systemInitTimeMilliseconds), nanoseconds since 1970.
    #[must_use]
    pub fn system_init_unix_nano(&self) -> Option<i64> {
        self.layers.iter().find_map(|facts| facts.system_init_unix_nano())
    }

    /// "One packet in so many", by what the record says of its sampler: by its selector, else by its interfaces, line card
    /// or template, else the exporter's only sampler.
    ///
    /// A selector that options data has not described (yet) is not taken for another one, only for one whose options
    /// data name no selector. Several samplers with one and the same rate count as one.
    #[must_use]
    pub fn sampling_rate(&self, key: &SamplingKey) -> Option<f64> {
        let nearest = |key| self.layers.iter().find_map(|facts| facts.sampler(key));
        let by = |number: Option<u64>, make: fn(u64) -> SamplerKey| number.and_then(|number| nearest(make(number)));
        by(key.selector, SamplerKey::Selector)
            .or_else(|| by(key.ingress_interface, SamplerKey::Interface))
            .or_else(|| by(key.egress_interface, SamplerKey::Interface))
            .or_else(|| by(key.line_card, SamplerKey::LineCard))
            .or_else(|| nearest(SamplerKey::Template(key.template_id)))
            .or_else(|| nearest(SamplerKey::All))
            .or_else(|| self.only_rate.filter(|_| key.selector.is_none()))
    }

    /// Whether [`Knowledge::sampling_rate`] may depend on its argument. If not, ask once for all records of a set.
    #[must_use]
    pub fn sampling_depends_on_record(&self) -> bool {
        self.depends_on_record
    }

    /// Name of an interface by its index.
    #[must_use]
    pub fn interface_name(&self, index: u64) -> Option<&str> {
        self.layers.iter().find_map(|facts| facts.interface(index))
    }

    /// Name of a VRF by its id (234, 235).
    #[must_use]
    pub fn vrf_name(&self, id: u64) -> Option<&str> {
        self.layers.iter().find_map(|facts| facts.vrf(id))
    }

    /// Name of an application by the bytes of its applicationId (95).
    #[must_use]
    pub fn application_name(&self, id: &[u8]) -> Option<&str> {
        self.layers.iter().find_map(|facts| facts.application(id))
    }

    /// An element of an enterprise as the exporter describes it (RFC 5610).
    #[must_use]
    pub fn element(&self, enterprise: u32, id: u16) -> Option<&DescribedElement> {
        self.layers.iter().find_map(|facts| facts.element(enterprise, id))
    }

    /// Changes when descriptions of elements do; 0 while there are none. Part of the key of whatever is compiled for a
    /// template with their help.
    #[must_use]
    pub fn elements_generation(&self) -> u64 {
        self.elements_generation
    }
}

#[cfg(test)]
mod tests;
