//! Names for numbers that people know by name.

use crate::field::FieldSpec;

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
    match number {
        1 => Some("idle timeout"),
        2 => Some("active timeout"),
        3 => Some("end of flow detected"),
        4 => Some("forced end"),
        5 => Some("lack of resources"),
        _ => None,
    }
}

/// Name of a value of an element whose values are registered, such as a protocol or the reason why a flow ended.
#[must_use]
pub fn enumeration_name(field: &FieldSpec, value: u64) -> Option<&'static str> {
    let value = u8::try_from(value).ok()?;
    match field.id {
        _ if field.enterprise != 0 => None,
        4 => protocol_name(value),
        136 => flow_end_reason_name(value),
        _ => None,
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
}
