//! Names for numbers that people know by name.

use crate::elements::{self, REVERSE_ENTERPRISE};
use crate::field::{FieldSpec, Namespace};

const PROTOCOL_IDENTIFIER: u16 = 4;
const FORWARDING_STATUS: u16 = 89;
const FLOW_END_REASON: u16 = 136;

/// What the two high bits of forwardingStatus say.
const FORWARDING_STATUSES: [&str; 4] = ["Unknown", "Forwarded", "Dropped", "Consumed"];

/// Keywords of the IANA protocol numbers in lower case, from 0 on; empty where there is none.
#[rustfmt::skip]
const PROTOCOLS: [&str; 149] = [
    "hopopt", "icmp", "igmp", "ggp", "ipv4", "st", "tcp", "cbt", "egp", "igp",
    "bbn-rcc-mon", "nvp-ii", "pup", "argus", "emcon", "xnet", "chaos", "udp", "mux", "dcn-meas",
    "hmp", "prm", "xns-idp", "trunk-1", "trunk-2", "leaf-1", "leaf-2", "rdp", "irtp", "iso-tp4",
    "netblt", "mfe-nsp", "merit-inp", "dccp", "3pc", "idpr", "xtp", "ddp", "idpr-cmtp", "tp++",
    "il", "ipv6", "sdrp", "ipv6-route", "ipv6-frag", "idrp", "rsvp", "gre", "dsr", "bna",
    "esp", "ah", "i-nlsp", "swipe", "narp", "min-ipv4", "tlsp", "skip", "ipv6-icmp", "ipv6-nonxt",
    "ipv6-opts", "", "cftp", "", "sat-expak", "kryptolan", "rvd", "ippc", "", "sat-mon",
    "visa", "ipcv", "cpnx", "cphb", "wsn", "pvp", "br-sat-mon", "sun-nd", "wb-mon", "wb-expak",
    "iso-ip", "vmtp", "secure-vmtp", "vines", "iptm", "nsfnet-igp", "dgp", "tcf", "eigrp", "ospfigp",
    "sprite-rpc", "larp", "mtp", "ax.25", "ipip", "micp", "scc-sp", "etherip", "encap", "",
    "gmtp", "ifmp", "pnni", "pim", "aris", "scps", "qnx", "a/n", "ipcomp", "snp",
    "compaq-peer", "ipx-in-ip", "vrrp", "pgm", "", "l2tp", "ddx", "iatp", "stp", "srp",
    "uti", "smp", "sm", "ptp", "isis over ipv4", "fire", "crtp", "crudp", "sscopmce", "iplt",
    "sps", "pipe", "sctp", "fc", "rsvp-e2e-ignore", "mobility header", "udplite", "mpls-in-ip", "manet", "hip",
    "shim6", "wesp", "rohc", "ethernet", "aggfrag", "nsh", "homa", "bit-emu", "",
];

/// Keyword of an IP protocol number (protocolIdentifier) in lower case, such as `tcp` or `ipv6-icmp`; `None` where the
/// IANA registry has none.
#[must_use]
pub fn protocol_name(number: u8) -> Option<&'static str> {
    let name = PROTOCOLS.get(usize::from(number)).copied()?;
    (!name.is_empty()).then_some(name)
}

/// Name of a flowEndReason; `None` for reserved and unassigned numbers.
#[must_use]
pub fn flow_end_reason_name(number: u8) -> Option<&'static str> {
    elements::registered_value(FLOW_END_REASON, number.into())
}

/// Name of a value of an element whose values are registered, such as a protocol or the reason why a flow ended.
///
/// Elements of the IANA registry have such names, in the reverse direction of a biflow too. Values that are reserved or
/// not assigned have none.
#[must_use]
pub fn enumeration_name(field: &FieldSpec, value: u64) -> Option<&'static str> {
    let registered = matches!(field.enterprise, 0 | REVERSE_ENTERPRISE) && field.namespace != Namespace::NetflowV9Scope;
    if !registered {
        return None;
    }
    match field.id {
        PROTOCOL_IDENTIFIER => protocol_name(u8::try_from(value).ok()?),
        FORWARDING_STATUS => elements::registered_value(FORWARDING_STATUS, value).or_else(|| {
            // Two bits say what happened, the other six why.
            let status = usize::from(u8::try_from(value).ok()? >> 6);
            FORWARDING_STATUSES.get(status).copied()
        }),
        id => elements::registered_value(id, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers spread over the table: one entry too many or too few would move those after it.
    #[test]
    fn protocols() {
        let known = [
            (0, "hopopt"),
            (1, "icmp"),
            (6, "tcp"),
            (17, "udp"),
            (41, "ipv6"),
            (47, "gre"),
            (50, "esp"),
            (58, "ipv6-icmp"),
            (88, "eigrp"),
            (89, "ospfigp"),
            (103, "pim"),
            (112, "vrrp"),
            (115, "l2tp"),
            (132, "sctp"),
            (136, "udplite"),
            (143, "ethernet"),
            (145, "nsh"),
        ];
        for (number, name) in known {
            assert_eq!(protocol_name(number), Some(name));
        }
        for number in [61, 63, 68, 99, 114, 200, 255] {
            assert_eq!(protocol_name(number), None);
        }
    }

    /// The five reasons, and nothing else.
    #[test]
    fn flow_end_reasons() {
        assert_eq!((0..=255).filter_map(flow_end_reason_name).count(), 5);
        assert_eq!(flow_end_reason_name(4), Some("forced end"));
    }

    /// Names by element and value, in both directions of a flow and in NetFlow v9, and no names elsewhere.
    #[test]
    fn values_of_elements() {
        let name = |id, value| enumeration_name(&FieldSpec::ipfix(id, 0, 4, false), value);
        let known = [
            (4, 6, "tcp"),
            (46, 5, "LDP"),
            (61, 1, "egress"),
            (89, 0x40, "Forwarded: Unknown"),
            (89, 0x81, "Dropped: ACL deny"),
            (89, 0xbf, "Dropped"),
            (89, 3, "Unknown"),
            (101, 20, "PANA-L7-PEN"),
            (101, 22, "nDPI"),
            (136, 1, "idle timeout"),
            (230, 4, "NAT44 session create"),
            (233, 3, "Flow Denied"),
            (239, 2, "reverseInitiator"),
            (277, 2, "Port channel"),
            (304, 3, "Random n-out-of-N Sampling"),
            (339, 13, "string"),
            (344, 3, "deltaCounter"),
            (345, 2, "octets"),
            (390, 9, "Flow-state Dependent Intermediate Flow Selection Process"),
            (466, 3, "Maximum entries per user"),
            (467, 2, "Address pool low threshold event"),
        ];
        for (id, value, expected) in known {
            assert_eq!(name(id, value), Some(expected), "{id} {value}");
        }
        for (id, value) in [(4, 262), (89, 256), (136, 0), (136, 6), (304, 9), (1, 1), (230, u64::MAX)] {
            assert_eq!(name(id, value), None, "{id} {value}");
        }
        assert_eq!(enumeration_name(&FieldSpec::ipfix(136, 29_305, 1, false), 2), Some("active timeout"));
        assert_eq!(enumeration_name(&FieldSpec::netflow_v9(233, 1), 1), Some("Flow Created"));
        assert_eq!(enumeration_name(&FieldSpec::ipfix(136, 9, 1, false), 2), None);
        assert_eq!(enumeration_name(&FieldSpec::netflow_v9_scope(4, 1), 6), None, "a scope, not a protocol");
    }
}
