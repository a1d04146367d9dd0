//! Attribute names, in one place.
//!
//! The names of the first table are those of the OpenTelemetry Collector's `netflowreceiver`, so that its queries
//! carry over. Every other element keeps its registered name behind `ipfix.`.

use catchment_ipfix::{FieldSpec, Namespace, REVERSE_ENTERPRISE};

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
/// One packet in so many was looked at. Counters are as sent, never scaled.
pub const SAMPLING_RATE: &str = "flow.sampling_rate";
/// Transport protocol by its lower-case IANA name, or its number as text.
pub const TRANSPORT: &str = "network.transport";
/// The transport protocol where it is no number that fits its type.
pub const PROTOCOL_IDENTIFIER: &str = "ipfix.protocolIdentifier";
/// `ipv4` or `ipv6`.
pub const NETWORK_TYPE: &str = "network.type";

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

/// The name that every field has: `ipfix.<name>`, `ipfix.<enterprise>.<name or id>`, `netflow_v9.<name or id>`.
pub(super) fn registered(field: &FieldSpec) -> String {
    let local = field.name().map_or_else(|| field.id.to_string(), std::borrow::Cow::into_owned);
    match field.namespace {
        Namespace::Ipfix if field.enterprise == 0 => format!("ipfix.{local}"),
        Namespace::Ipfix if field.enterprise == REVERSE_ENTERPRISE && field.name().is_some() => {
            format!("ipfix.{local}")
        }
        Namespace::Ipfix => format!("ipfix.{}.{local}", field.enterprise),
        _ if field.namespace != Namespace::NetflowV9Scope && iana_agrees(field) => format!("ipfix.{local}"),
        _ => format!("netflow_v9.{local}"),
    }
}

/// Whether a NetFlow v9 field means the same as the IANA element of its number.
fn iana_agrees(field: &FieldSpec) -> bool {
    let iana = catchment_ipfix::element(0, field.id);
    matches!((iana, field.element), (Some(iana), Some(own)) if iana.name == own.name)
}
