//! NetFlow v5 as a template, so that its records are records like all others.

use std::sync::{Arc, LazyLock};

use crate::field::FieldSpec;
use crate::template::{Kind, Template};

/// Bytes of a record.
pub(crate) const RECORD_BYTES: usize = 48;

/// Id of the built-in template, below those that exporters may use.
const TEMPLATE_ID: u16 = 5;

/// Element number and length of each field; 210 is padding.
const FIELDS: [(u16, u16); 20] = [
    (8, 4),   // sourceIPv4Address
    (12, 4),  // destinationIPv4Address
    (15, 4),  // ipNextHopIPv4Address
    (10, 2),  // ingressInterface
    (14, 2),  // egressInterface
    (2, 4),   // packetDeltaCount
    (1, 4),   // octetDeltaCount
    (22, 4),  // flowStartSysUpTime
    (21, 4),  // flowEndSysUpTime
    (7, 2),   // sourceTransportPort
    (11, 2),  // destinationTransportPort
    (210, 1), // paddingOctets
    (6, 1),   // tcpControlBits
    (4, 1),   // protocolIdentifier
    (5, 1),   // ipClassOfService
    (16, 2),  // bgpSourceAsNumber
    (17, 2),  // bgpDestinationAsNumber
    (9, 1),   // sourceIPv4PrefixLength
    (13, 1),  // destinationIPv4PrefixLength
    (210, 2), // paddingOctets
];

static TEMPLATE: LazyLock<Arc<Template>> = LazyLock::new(|| {
    let fields = FIELDS.map(|(id, length)| FieldSpec::netflow_v9(id, length));
    Arc::new(Template::compile(TEMPLATE_ID, Kind::Flow, Box::new(fields)))
});

/// The template that the 48-byte records of NetFlow v5 follow, with the IANA elements of the same meaning.
#[must_use]
pub fn netflow_v5_template() -> &'static Arc<Template> {
    &TEMPLATE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields fill the record, and every one has a name.
    #[test]
    fn fields_fill_the_record() {
        let template = netflow_v5_template();
        assert_eq!(template.fixed_record_length(), Some(RECORD_BYTES));
        assert!(template.fields().iter().all(|field| field.element.is_some()));
        assert_eq!(template.offsets().map(|offsets| offsets[12]), Some(37), "tcp flags");
    }
}
