//! Attribute names, in one place.
//!
//! The names of the first table are those of the OpenTelemetry Collector's `netflowreceiver`, so that its queries
//! carry over. Under that schema every other element keeps its registered name behind `ipfix.`; under the other all do,
//! without anything before it.

use catchment_ipfix::{FieldSpec, Namespace, REVERSE_ENTERPRISE};

use super::facts::Facts;
use super::mapping::FlowSchema;
use crate::sampled;
use crate::table::NameId;

/// `netflow_v5`, `netflow_v9` or `ipfix`.
pub const FLOW_TYPE: &str = "flow.type";
/// `options` on options data; absent on flows.
pub const RECORD_TYPE: &str = "flow.record_type";
/// Names of the scope fields of an options record, a list.
pub const SCOPE_FIELDS: &str = "flow.scope_fields";
/// Sequence number of the message.
pub const SEQUENCE: &str = "flow.sequence_num";
/// Observation domain (IPFIX), source id (v9), or engine type and id (v5).
pub const DOMAIN: &str = "flow.observation_domain_id";
/// Template of the record.
pub const TEMPLATE: &str = "flow.template_id";
/// Time of receipt, nanoseconds since the Unix epoch.
pub const TIME_RECEIVED: &str = "flow.time_received";
/// When the message was exported, nanoseconds since the Unix epoch.
pub const TIME_EXPORTED: &str = "flow.time_exported";
/// First packet, nanoseconds since the Unix epoch.
pub const START: &str = "flow.start";
/// Last packet, nanoseconds since the Unix epoch.
pub const END: &str = "flow.end";
/// Address of the exporter.
pub const SAMPLER_ADDRESS: &str = "flow.sampler_address";
/// One packet in so many was looked at. Counters are as sent unless [`SAMPLING_APPLIED`] says otherwise.
pub const SAMPLING_RATE: &str = "flow.sampling_rate";
/// True where counters of octets and packets have been multiplied by the sampling rate.
pub const SAMPLING_APPLIED: &str = "flow.sampling_applied";
/// Name of the interface that packets came in by, as options data tells it.
pub const IN_IF_NAME: &str = "flow.in_if_name";
/// Name of the interface that packets went out by, as options data tells it.
pub const OUT_IF_NAME: &str = "flow.out_if_name";
/// Name of the VRF that packets came in by, as options data tells it.
pub const INGRESS_VRF_NAME: &str = "flow.ingress_vrf_name";
/// Name of the VRF that packets went out by, as options data tells it.
pub const EGRESS_VRF_NAME: &str = "flow.egress_vrf_name";
/// Name of the application, as options data tells it.
pub const APPLICATION_NAME: &str = "flow.application_name";
/// `forward` or `reverse` where a record of both directions has become two.
pub const BIFLOW_DIRECTION: &str = "flow.biflow_direction";
/// Transport protocol by its lower-case IANA name, or its number as text.
pub const TRANSPORT: &str = "network.transport";
/// `ipv4` or `ipv6`.
pub const NETWORK_TYPE: &str = "network.type";

/// Declares the names that the receiver writes by itself, with numbers by which tables know them.
macro_rules! own {
    ($($own:ident: $name:expr;)+) => {
        /// A name of the receiver's own.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Own {
            $($own,)+
        }

        /// The names by their numbers.
        pub(super) const OWN: &[&str] = &[$($name),+];
    };
}

own! {
    FlowType: FLOW_TYPE;
    RecordType: RECORD_TYPE;
    ScopeFields: SCOPE_FIELDS;
    Sequence: SEQUENCE;
    Domain: DOMAIN;
    Template: TEMPLATE;
    TimeReceived: TIME_RECEIVED;
    TimeExported: TIME_EXPORTED;
    Start: START;
    End: END;
    SamplerAddress: SAMPLER_ADDRESS;
    SamplingRate: SAMPLING_RATE;
    SamplingApplied: SAMPLING_APPLIED;
    InIfName: IN_IF_NAME;
    OutIfName: OUT_IF_NAME;
    IngressVrfName: INGRESS_VRF_NAME;
    EgressVrfName: EGRESS_VRF_NAME;
    ApplicationName: APPLICATION_NAME;
    BiflowDirection: BIFLOW_DIRECTION;
    Transport: TRANSPORT;
    NetworkType: NETWORK_TYPE;
    SamplingThreshold: sampled::THRESHOLD;
    SamplingAdjustedCount: sampled::ADJUSTED_COUNT;
}

/// What kept records stand for.
pub(super) const SAMPLED: sampled::Names = sampled::Names {
    threshold: Own::SamplingThreshold as NameId,
    adjusted_count: Own::SamplingAdjustedCount as NameId,
};

impl Own {
    /// Its number in a table that begins with [`OWN`].
    pub(super) fn id(self) -> NameId {
        self as NameId
    }
}

/// IANA element and attribute. Several elements of one attribute never occur in one record of sense; where they do,
/// the first wins and the others keep their registered names.
const COLLECTOR: &[(u16, &str)] = &[
    (8, "source.address"),
    (27, "source.address"),
    (12, "destination.address"),
    (28, "destination.address"),
    (7, "source.port"),
    (11, "destination.port"),
    (1, "flow.io.bytes"),
    (2, "flow.io.packets"),
    (6, "flow.tcp_flags"),
    (10, "flow.in_if"),
    (14, "flow.out_if"),
    (5, "flow.ip_tos"),
    (192, "flow.ip_ttl"),
    (197, "flow.ip_flags"),
    (54, "flow.fragment_id"),
    (88, "flow.fragment_offset"),
    (31, "flow.ipv6_flow_label"),
    (176, "flow.icmp_type"),
    (178, "flow.icmp_type"),
    (177, "flow.icmp_code"),
    (179, "flow.icmp_code"),
    (56, "flow.src_mac"),
    (80, "flow.dst_mac"),
    (58, "flow.src_vlan"),
    (59, "flow.dst_vlan"),
    (243, "flow.vlan_id"),
    (15, "flow.next_hop"),
    (62, "flow.next_hop"),
    (128, "flow.next_hop_as"),
    (16, "flow.src_as"),
    (17, "flow.dst_as"),
    (18, "flow.bgp_next_hop"),
    (63, "flow.bgp_next_hop"),
    (9, "flow.src_net"),
    (29, "flow.src_net"),
    (13, "flow.dst_net"),
    (30, "flow.dst_net"),
    (89, "flow.forwarding_status"),
    (138, "flow.observation_point_id"),
];

/// The collector's name of a field, if it has one.
pub(super) fn collector(field: &FieldSpec) -> Option<&'static str> {
    if field.scope || field.reverse {
        return None;
    }
    COLLECTOR.iter().find(|(id, _)| field.is_iana(*id)).map(|(_, name)| *name)
}

/// The name that every field has. Under [`FlowSchema::Otel`] `ipfix.<name or number>`, and `ipfix.<pen>.<name or number>`
/// for elements of enterprises; under [`FlowSchema::Ipfix`] the same without `ipfix.`, where a number of the IANA registry
/// that has no name is `0.<number>`. `netflow_v9.<name or number>` for what only NetFlow v9 knows. The name of an enterprise's
/// element is that of the tables, else what the exporter has told.
pub(super) fn registered(field: &FieldSpec, facts: &Facts, schema: FlowSchema) -> String {
    let prefix = if schema == FlowSchema::Otel { "ipfix." } else { "" };
    let name = match facts.described(field) {
        Some((name, _)) => Some(name.to_owned()),
        None => field.name().map(std::borrow::Cow::into_owned),
    };
    let is_v9_only = match field.namespace {
        Namespace::Ipfix => false,
        Namespace::NetflowV9 => !iana_agrees(field),
        Namespace::NetflowV9Scope => true,
    };
    let is_iana = field.enterprise == 0 || field.enterprise == REVERSE_ENTERPRISE;
    match name {
        _ if is_v9_only => format!("netflow_v9.{}", name.unwrap_or_else(|| field.id.to_string())),
        Some(name) if is_iana => format!("{prefix}{name}"),
        Some(name) => format!("{prefix}{}.{name}", field.enterprise),
        None if field.enterprise == 0 && schema == FlowSchema::Otel => format!("{prefix}{}", field.id),
        None => format!("{prefix}{}.{}", field.enterprise, field.id),
    }
}

/// Whether a NetFlow v9 field means the same as the IANA element of its number.
fn iana_agrees(field: &FieldSpec) -> bool {
    let iana = catchment_ipfix::element(0, field.id);
    matches!((iana, field.element), (Some(iana), Some(own)) if iana.name == own.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kind of field under both schemas.
    #[test]
    fn registered_names() {
        let names = |field: FieldSpec| {
            [FlowSchema::Otel, FlowSchema::Ipfix].map(|schema| registered(&field, &Facts::None, schema))
        };
        assert_eq!(names(FieldSpec::ipfix(1, 0, 8, false)), ["ipfix.octetDeltaCount", "octetDeltaCount"]);
        assert_eq!(names(FieldSpec::ipfix(30_000, 0, 8, false)), ["ipfix.30000", "0.30000"]);
        assert_eq!(names(FieldSpec::ipfix(30_000, 9, 8, false)), ["ipfix.9.30000", "9.30000"]);
        assert_eq!(
            names(FieldSpec::ipfix(1, 29_305, 8, false)),
            ["ipfix.reverseOctetDeltaCount", "reverseOctetDeltaCount"]
        );
        assert_eq!(names(FieldSpec::ipfix(30_000, 29_305, 8, false)), ["ipfix.29305.30000", "29305.30000"]);
        assert_eq!(names(FieldSpec::netflow_v9(1, 4)), ["ipfix.octetDeltaCount", "octetDeltaCount"]);
        assert_eq!(names(FieldSpec::netflow_v9(60_000, 4)), ["netflow_v9.60000", "netflow_v9.60000"]);
        assert_eq!(names(FieldSpec::netflow_v9_scope(1, 4)), ["netflow_v9.scopeSystem", "netflow_v9.scopeSystem"]);
    }

    /// The number of a name is its position, and no two are the same.
    #[test]
    fn own_names() {
        assert_eq!(OWN[Own::FlowType.id() as usize], FLOW_TYPE);
        assert_eq!(OWN[Own::NetworkType.id() as usize], NETWORK_TYPE);
        let mut names = OWN.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), OWN.len());
    }
}
