//! What other writers than that of logs need of data sets and of names.

use std::sync::Arc;

use catchment_ipfix::{DecodeContext, FieldSpec, MessageInfo, Template};
use catchment_sampling::Threshold;

use super::batch::{FlowBatch, FlowReceipt};
use super::facts::Facts;
use super::mapping::FlowSchema;
use super::{form, names};

/// A data set with its records and where it came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SetView<'a> {
    pub(crate) template: &'a Arc<Template>,
    /// The bytes of its records.
    pub(crate) bytes: &'a [u8],
    pub(crate) message: &'a MessageInfo,
    pub(crate) receipt: &'a FlowReceipt,
    /// What their sampler let the records through by.
    pub(crate) threshold: Threshold,
    facts: &'a Facts,
}

impl SetView<'_> {
    /// What the values of its records depend on.
    pub(crate) fn context(&self) -> DecodeContext {
        let mut context = self.message.context();
        context.system_init_unix_nano = self.facts.system_init_unix_nano();
        context
    }
}

impl FlowBatch {
    /// The data set at a position, in the order in which they were pushed.
    pub(crate) fn set(&self, index: usize) -> Option<SetView<'_>> {
        let set = self.sets.get(index)?;
        let bytes = self.arena.get(set.bytes.clone()).unwrap_or_default();
        let (template, message, receipt, facts) = (&set.template, &set.message, &set.receipt, &set.facts);
        Some(SetView { template, bytes, message, receipt, threshold: set.threshold, facts })
    }
}

/// protocolIdentifier of the IANA registry, which logs tell by its name.
const PROTOCOL_IDENTIFIER: u16 = 4;

/// The name of a field as an attribute: the collector's, else the registered one.
pub(crate) fn attribute_name(field: &FieldSpec) -> String {
    if field.is_iana(PROTOCOL_IDENTIFIER) && !field.scope {
        return names::TRANSPORT.to_owned();
    }
    names::collector(field).map_or_else(|| names::registered(field, &Facts::None, FlowSchema::Otel), str::to_owned)
}

/// A MAC address as people write it.
pub(crate) fn mac_text(octets: [u8; 6]) -> Vec<u8> {
    let [a, b, c, d, e, f] = octets;
    let mut text = Vec::new();
    form::mac(u64::from_be_bytes([0, 0, a, b, c, d, e, f]), &mut text);
    text
}
