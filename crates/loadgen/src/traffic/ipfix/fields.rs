//! What flow records hold: templates, and values to fill them with.

use serde::Deserialize;

use super::FlowProtocol;
use crate::traffic::random::Random;

/// What a record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum FlowFields {
    /// 11 fields: what all exporters agree on; 51 bytes (43 in v9).
    Basic,
    /// The 16 fields of softflowd's IPv4 template, 50 bytes (42 in v9).
    Softflowd,
    /// 18 fields with 64-bit counters, masks and autonomous systems, as a router sends; 67 bytes (59 in v9).
    Router,
    /// The 26 fields of an IPv4 template of Cisco IOS-XR, 89 bytes; in v9 the 23 fields of an ASR 9000, 65 bytes. Times
    /// are uptime of the exporter, of which IPFIX is told only in options data.
    IosXr,
    /// The same with six fields of layer 2: 32 fields, 108 bytes; 29 fields and 84 bytes in v9.
    IosXrLayer2,
}

/// One field of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) id: u16,
    pub(super) bytes: u16,
}

/// Information elements (IANA registry), the same numbers in v9 but for those that name it.
pub(super) mod ie {
    pub(in super::super) const OCTETS: u16 = 1;
    pub(in super::super) const PACKETS: u16 = 2;
    pub(in super::super) const PROTOCOL: u16 = 4;
    pub(in super::super) const TYPE_OF_SERVICE: u16 = 5;
    pub(in super::super) const TCP_FLAGS: u16 = 6;
    pub(in super::super) const SOURCE_PORT: u16 = 7;
    pub(in super::super) const SOURCE_ADDRESS: u16 = 8;
    pub(in super::super) const SOURCE_MASK: u16 = 9;
    pub(in super::super) const INGRESS: u16 = 10;
    pub(in super::super) const DESTINATION_PORT: u16 = 11;
    pub(in super::super) const DESTINATION_ADDRESS: u16 = 12;
    pub(in super::super) const DESTINATION_MASK: u16 = 13;
    pub(in super::super) const EGRESS: u16 = 14;
    pub(in super::super) const SOURCE_AS: u16 = 16;
    pub(in super::super) const DESTINATION_AS: u16 = 17;
    pub(in super::super) const BGP_NEXT_HOP: u16 = 18;
    pub(in super::super) const LAST_SWITCHED: u16 = 21;
    pub(in super::super) const FIRST_SWITCHED: u16 = 22;
    /// v9.
    pub(in super::super) const SAMPLER_ID: u16 = 48;
    /// v9.
    pub(in super::super) const SAMPLER_MODE: u16 = 49;
    /// v9.
    pub(in super::super) const SAMPLER_INTERVAL: u16 = 50;
    pub(in super::super) const MIN_TTL: u16 = 52;
    pub(in super::super) const MAX_TTL: u16 = 53;
    pub(in super::super) const SOURCE_MAC: u16 = 56;
    pub(in super::super) const IP_VERSION: u16 = 60;
    pub(in super::super) const DIRECTION: u16 = 61;
    pub(in super::super) const DESTINATION_MAC: u16 = 80;
    pub(in super::super) const INTERFACE_NAME: u16 = 82;
    pub(in super::super) const FORWARDING_STATUS: u16 = 89;
    pub(in super::super) const END_REASON: u16 = 136;
    pub(in super::super) const OBSERVATION_DOMAIN: u16 = 149;
    pub(in super::super) const START_MS: u16 = 152;
    pub(in super::super) const END_MS: u16 = 153;
    pub(in super::super) const SYSTEM_INIT_MS: u16 = 160;
    pub(in super::super) const OCTETS_SQUARED: u16 = 198;
    pub(in super::super) const INGRESS_VRF: u16 = 234;
    pub(in super::super) const EGRESS_VRF: u16 = 235;
    pub(in super::super) const VLAN: u16 = 243;
    pub(in super::super) const VLAN_PRIORITY: u16 = 244;
    pub(in super::super) const CUSTOMER_VLAN: u16 = 245;
    pub(in super::super) const ETHERNET_TYPE: u16 = 256;
    pub(in super::super) const SELECTOR: u16 = 302;
    pub(in super::super) const SELECTOR_ALGORITHM: u16 = 304;
    pub(in super::super) const SAMPLING_INTERVAL: u16 = 305;
    pub(in super::super) const SAMPLING_SPACE: u16 = 306;
}

/// The sampler that records name and options data describes.
pub(super) const SAMPLER: u8 = 1;

/// The template of a kind of record.
#[rustfmt::skip]
pub(super) fn fields(protocol: FlowProtocol, fields: FlowFields) -> Vec<Field> {
    let v9 = protocol != FlowProtocol::Ipfix;
    let (start, end) = match v9 {
        false => ((ie::START_MS, 8), (ie::END_MS, 8)),
        true => ((ie::FIRST_SWITCHED, 4), (ie::LAST_SWITCHED, 4)),
    };
    let list: &[(u16, u16)] = match fields {
        FlowFields::Basic => &[
            (ie::SOURCE_ADDRESS, 4), (ie::DESTINATION_ADDRESS, 4), (ie::SOURCE_PORT, 2), (ie::DESTINATION_PORT, 2),
            (ie::PROTOCOL, 1), (ie::TCP_FLAGS, 2), (ie::OCTETS, 8), (ie::PACKETS, 8), (ie::INGRESS, 4), start, end,
        ],
        FlowFields::Softflowd => &[
            (ie::SOURCE_ADDRESS, 4), (ie::DESTINATION_ADDRESS, 4), start, end,
            (ie::OCTETS, 4), (ie::PACKETS, 4), (ie::INGRESS, 4), (ie::EGRESS, 4),
            (ie::DIRECTION, 1), (ie::END_REASON, 1), (ie::SOURCE_PORT, 2), (ie::DESTINATION_PORT, 2),
            (ie::PROTOCOL, 1), (ie::TCP_FLAGS, 1), (ie::IP_VERSION, 1), (ie::TYPE_OF_SERVICE, 1),
        ],
        FlowFields::Router => &[
            (ie::SOURCE_ADDRESS, 4), (ie::DESTINATION_ADDRESS, 4), (ie::OCTETS, 8), (ie::PACKETS, 8),
            start, end, (ie::SOURCE_PORT, 2), (ie::DESTINATION_PORT, 2),
            (ie::INGRESS, 4), (ie::EGRESS, 4), (ie::PROTOCOL, 1), (ie::TYPE_OF_SERVICE, 1),
            (ie::TCP_FLAGS, 2), (ie::END_REASON, 1), (ie::SOURCE_MASK, 1), (ie::DESTINATION_MASK, 1),
            (ie::SOURCE_AS, 4), (ie::DESTINATION_AS, 4),
        ],
        FlowFields::IosXr if v9 => &IOS_XR_V9,
        FlowFields::IosXr => &IOS_XR,
        FlowFields::IosXrLayer2 if v9 => &[&IOS_XR_V9[..], &LAYER_2].concat(),
        FlowFields::IosXrLayer2 => &[&IOS_XR[..], &LAYER_2].concat(),
    };
    list.iter().map(|&(id, bytes)| Field { id, bytes }).collect()
}

#[rustfmt::skip]
const IOS_XR: [(u16, u16); 26] = [
    (ie::PACKETS, 8), (ie::OCTETS, 8), (ie::SOURCE_ADDRESS, 4), (ie::DESTINATION_ADDRESS, 4),
    (ie::INGRESS, 4), (ie::EGRESS, 4), (ie::LAST_SWITCHED, 4), (ie::FIRST_SWITCHED, 4),
    (ie::SOURCE_PORT, 2), (ie::DESTINATION_PORT, 2), (ie::SOURCE_AS, 4), (ie::DESTINATION_AS, 4),
    (ie::BGP_NEXT_HOP, 4), (ie::SOURCE_MASK, 1), (ie::DESTINATION_MASK, 1), (ie::PROTOCOL, 1),
    (ie::TCP_FLAGS, 2), (ie::TYPE_OF_SERVICE, 1), (ie::DIRECTION, 1), (ie::FORWARDING_STATUS, 4),
    (ie::SELECTOR, 4), (ie::INGRESS_VRF, 4), (ie::EGRESS_VRF, 4), (ie::MIN_TTL, 1), (ie::MAX_TTL, 1),
    (ie::OCTETS_SQUARED, 8),
];

#[rustfmt::skip]
const IOS_XR_V9: [(u16, u16); 23] = [
    (ie::PACKETS, 4), (ie::OCTETS, 4), (ie::SOURCE_ADDRESS, 4), (ie::DESTINATION_ADDRESS, 4),
    (ie::INGRESS, 4), (ie::EGRESS, 4), (ie::LAST_SWITCHED, 4), (ie::FIRST_SWITCHED, 4),
    (ie::SOURCE_PORT, 2), (ie::DESTINATION_PORT, 2), (ie::SOURCE_AS, 4), (ie::DESTINATION_AS, 4),
    (ie::BGP_NEXT_HOP, 4), (ie::SOURCE_MASK, 1), (ie::DESTINATION_MASK, 1), (ie::PROTOCOL, 1),
    (ie::TCP_FLAGS, 1), (ie::TYPE_OF_SERVICE, 1), (ie::DIRECTION, 1), (ie::FORWARDING_STATUS, 1),
    (ie::SAMPLER_ID, 2), (ie::INGRESS_VRF, 4), (ie::EGRESS_VRF, 4),
];

#[rustfmt::skip]
const LAYER_2: [(u16, u16); 6] = [
    (ie::SOURCE_MAC, 6), (ie::DESTINATION_MAC, 6), (ie::ETHERNET_TYPE, 2), (ie::VLAN, 2), (ie::CUSTOMER_VLAN, 2),
    (ie::VLAN_PRIORITY, 1),
];

/// The values that fields are filled from.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) source: [u8; 4],
    pub(super) destination: [u8; 4],
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) protocol: u8,
    pub(super) tcp_flags: u8,
    pub(super) octets: u64,
    pub(super) packets: u64,
    pub(super) start_ms: u64,
    pub(super) end_ms: u64,
    pub(super) ingress: u32,
    pub(super) egress: u32,
    pub(super) source_as: u32,
    pub(super) destination_as: u32,
}

impl Flow {
    pub(super) fn new(end_ms: u64, random: &mut Random) -> Self {
        let packets = random.long_tail(1, 16);
        let octets = packets * random.range(40, 1_500);
        let duration_ms = random.long_tail(1, 17) - 1;
        let is_tcp = random.range(0, 9) < 8;
        Self {
            source: [10, random.range(0, 3) as u8, 0, random.range(1, 254) as u8],
            destination: [192, 0, 2, random.range(1, 254) as u8],
            source_port: random.range(1_024, 65_535) as u16,
            destination_port: *match is_tcp {
                true => random.choice(&[443, 443, 443, 80, 22, 8_080]),
                false => random.choice(&[53, 123, 443]),
            },
            protocol: if is_tcp { 6 } else { 17 },
            tcp_flags: if is_tcp { 0x1b } else { 0 },
            octets,
            packets,
            start_ms: end_ms.saturating_sub(duration_ms),
            end_ms,
            ingress: random.range(1, INTERFACES.into()) as u32,
            egress: random.range(1, INTERFACES.into()) as u32,
            source_as: random.range(64_496, 64_511) as u32,
            destination_as: random.range(64_496, 64_511) as u32,
        }
    }

    /// Value of an information element, as a number.
    pub(super) fn value(&self, id: u16) -> u64 {
        match id {
            ie::OCTETS => self.octets,
            ie::PACKETS => self.packets,
            ie::PROTOCOL => self.protocol.into(),
            ie::TCP_FLAGS => self.tcp_flags.into(),
            ie::SOURCE_PORT => self.source_port.into(),
            ie::SOURCE_ADDRESS => u32::from_be_bytes(self.source).into(),
            ie::DESTINATION_ADDRESS => u32::from_be_bytes(self.destination).into(),
            ie::SOURCE_MASK | ie::DESTINATION_MASK => 24,
            ie::INGRESS => self.ingress.into(),
            ie::EGRESS => self.egress.into(),
            ie::DESTINATION_PORT => self.destination_port.into(),
            ie::SOURCE_AS => self.source_as.into(),
            ie::DESTINATION_AS => self.destination_as.into(),
            // 198.51.100.1.
            ie::BGP_NEXT_HOP => 0xc633_6401,
            ie::SAMPLER_ID | ie::SELECTOR => SAMPLER.into(),
            ie::MIN_TTL | ie::MAX_TTL => 64 - u64::from(self.source[3] % 32),
            // Locally administered addresses that follow the IP ones.
            ie::SOURCE_MAC => 0x0200_0000_0000 | u64::from(u32::from_be_bytes(self.source)),
            ie::DESTINATION_MAC => 0x0200_0000_0000 | u64::from(u32::from_be_bytes(self.destination)),
            ie::IP_VERSION => 4,
            // Forwarded, reason unknown.
            ie::FORWARDING_STATUS => 0x40,
            // End of flow detected for TCP, idle timeout for the rest.
            ie::END_REASON => {
                if self.protocol == 6 {
                    3
                } else {
                    1
                }
            }
            ie::START_MS => self.start_ms,
            ie::END_MS => self.end_ms,
            // As if all packets were of one size; far from wrapping.
            ie::OCTETS_SQUARED => self.octets / self.packets * self.octets,
            ie::INGRESS_VRF | ie::EGRESS_VRF => 0x6000_0000,
            ie::VLAN => (100 + self.ingress).into(),
            ie::CUSTOMER_VLAN => (200 + self.egress).into(),
            ie::ETHERNET_TYPE => 0x0800,
            // Type of service, direction and priority: best effort, ingress.
            _ => 0,
        }
    }
}

/// Interfaces are numbered from 1 to this.
pub(super) const INTERFACES: u16 = 48;
