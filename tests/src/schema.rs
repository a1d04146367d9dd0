//! Which attribute each element is to be in.

use serde_json::{Map, Value, json};

use crate::elements::Numbers;
use crate::expected::{Field, Head};

/// The names of attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// Those of the OpenTelemetry Collector, others behind `ipfix.`.
    Collector,
    /// Those of the IANA registry.
    Ipfix,
}

/// Element of the IANA registry and its name at the Collector.
const COLLECTOR: [(u16, &str); 40] = [
    (1, "flow.io.bytes"),
    (2, "flow.io.packets"),
    (4, TRANSPORT),
    (5, "flow.ip_tos"),
    (6, "flow.tcp_flags"),
    (7, "source.port"),
    (8, SOURCE),
    (9, "flow.src_net"),
    (10, "flow.in_if"),
    (11, "destination.port"),
    (12, "destination.address"),
    (13, "flow.dst_net"),
    (14, "flow.out_if"),
    (15, "flow.next_hop"),
    (16, "flow.src_as"),
    (17, "flow.dst_as"),
    (18, "flow.bgp_next_hop"),
    (27, SOURCE),
    (28, "destination.address"),
    (29, "flow.src_net"),
    (30, "flow.dst_net"),
    (31, "flow.ipv6_flow_label"),
    (54, "flow.fragment_id"),
    (56, "flow.src_mac"),
    (58, "flow.src_vlan"),
    (59, "flow.dst_vlan"),
    (62, "flow.next_hop"),
    (63, "flow.bgp_next_hop"),
    (80, "flow.dst_mac"),
    (88, "flow.fragment_offset"),
    (89, "flow.forwarding_status"),
    (128, "flow.next_hop_as"),
    (138, "flow.observation_point_id"),
    (176, "flow.icmp_type"),
    (177, "flow.icmp_code"),
    (178, "flow.icmp_type"),
    (179, "flow.icmp_code"),
    (192, "flow.ip_ttl"),
    (197, "flow.ip_flags"),
    (243, "flow.vlan_id"),
];

const TRANSPORT: &str = "network.transport";
const SOURCE: &str = "source.address";
const PADDING: u16 = 210;

/// Keywords of the protocols that occur; others are printed as their number.
const PROTOCOLS: [(i64, &str); 11] = [
    (0, "hopopt"),
    (1, "icmp"),
    (2, "igmp"),
    (4, "ipv4"),
    (6, "tcp"),
    (17, "udp"),
    (41, "ipv6"),
    (47, "gre"),
    (58, "ipv6-icmp"),
    (103, "pim"),
    (112, "vrrp"),
];

/// Elements with absolute times of the start and the end of a flow, the best first.
const ABSOLUTE: [(u16, u16); 4] = [(156, 157), (154, 155), (152, 153), (150, 151)];
const UPTIME: (u16, u16) = (22, 21);
const SYSTEM_INIT: u16 = 160;

impl Schema {
    /// What `catchment decode` is to be told for it, with values as numbers where they have names too.
    #[must_use]
    pub fn options(self) -> &'static [&'static str] {
        match self {
            Self::Collector => &["--enumerations", "numbers"],
            Self::Ipfix => &["--schema", "ipfix", "--enumerations", "numbers"],
        }
    }

    /// The name that every element has.
    fn registered(self, field: &Field) -> String {
        let element = &field.element;
        let local = element.name.clone().unwrap_or_else(|| element.id.to_string());
        let plain =
            element.numbers == Numbers::Ipfix && (element.enterprise == 0 || element.of_iana && element.name.is_some());
        let full = match element.numbers {
            Numbers::Ipfix if plain => format!("ipfix.{local}"),
            Numbers::Ipfix => format!("ipfix.{}.{local}", element.enterprise),
            _ if element.of_iana => format!("ipfix.{local}"),
            _ => format!("netflow_v9.{local}"),
        };
        match self {
            Self::Collector => full,
            Self::Ipfix => full.strip_prefix("ipfix.").map(str::to_owned).unwrap_or(full),
        }
    }

    /// The name at the Collector.
    fn collector(self, field: &Field) -> Option<&'static str> {
        let element = &field.element;
        if self != Self::Collector || element.scope || element.reverse {
            return None;
        }
        COLLECTOR.iter().find(|(id, _)| element.is_iana(*id)).map(|(_, name)| *name)
    }

    /// Whether an attribute of this name comes from an element alone, so that it must be expected.
    #[must_use]
    pub fn is_of_an_element(self, name: &str) -> bool {
        match self {
            Self::Collector => name.starts_with("ipfix.") || name.starts_with("netflow_v9."),
            Self::Ipfix => !name.contains('.') || name.starts_with("netflow_v9."),
        }
    }

    /// The attributes of a record; `null` where there must be none.
    #[must_use]
    pub fn attributes(self, fields: &[Field], options: bool, head: &Head) -> Map<String, Value> {
        let kept: Vec<_> = fields.iter().filter(|field| !field.element.is_iana(PADDING)).collect();
        let mut named: Vec<(String, &Field)> = Vec::new();
        for field in kept {
            // The first element of a name has it; another one keeps its registered name.
            let same = |other: &Field| {
                let (one, other) = (&field.element, &other.element);
                (one.id, one.enterprise, one.numbers) == (other.id, other.enterprise, other.numbers)
            };
            let collector = self
                .collector(field)
                .filter(|name| named.iter().find(|(taken, _)| taken == name).is_none_or(|(_, other)| same(other)));
            named.push((collector.map_or_else(|| self.registered(field), str::to_owned), field));
        }
        let mut attributes = Map::new();
        for (name, field) in &named {
            let all: Vec<_> =
                named.iter().filter(|(other, _)| other == name).map(|(_, field)| self.value(field)).collect();
            let single = all.len() == 1;
            let (name, value) = match (all.as_slice(), name.as_str()) {
                ([Value::Number(number)], TRANSPORT) => (TRANSPORT, protocol(number.as_i64())),
                // A list of numbers, or a value of a wrong length.
                (_, TRANSPORT) => ("ipfix.protocolIdentifier", one_or_list(all)),
                (_, name) => (name, one_or_list(all)),
            };
            if name == SOURCE && single && !options {
                let family = if field.element.id == 8 { "ipv4" } else { "ipv6" };
                let _ = attributes.insert("network.type".to_owned(), family.into());
            }
            let _ = attributes.insert(name.to_owned(), value);
        }
        self.times(fields, head, &mut attributes);
        if let Some(rate) = sampling_rate(fields, head).filter(|_| self == Self::Collector) {
            let _ = attributes.insert("flow.sampling_rate".to_owned(), rate);
        }
        let version = match head.version {
            5 => "netflow_v5",
            9 => "netflow_v9",
            _ => "ipfix",
        };
        let mut scope: Vec<_> = named.iter().filter(|(_, field)| field.element.scope).map(|(name, _)| name).collect();
        scope.dedup();
        for (name, value) in [
            ("flow.type", json!(version)),
            ("flow.sequence_num", json!(head.sequence)),
            ("flow.observation_domain_id", json!(head.domain)),
            ("flow.time_exported", json!(head.exported)),
            ("flow.record_type", if options { json!("options") } else { Value::Null }),
            ("flow.scope_fields", if options { json!(scope) } else { Value::Null }),
        ] {
            let _ = attributes.insert(name.to_owned(), value);
        }
        attributes
    }

    /// The value of a field; lists with the registered names of what they hold.
    fn value(self, field: &Field) -> Value {
        let Some(records) = &field.list else { return field.value.clone().unwrap_or_default() };
        let record = |fields: &Vec<Field>| {
            let names: Vec<_> = fields.iter().map(|field| self.registered(field)).collect();
            let value = |name: &String| {
                let all = fields.iter().zip(&names).filter(|(_, other)| *other == name);
                one_or_list(all.map(|(field, _)| self.value(field)).collect())
            };
            names.iter().map(|name| (name.clone(), value(name))).collect::<Map<_, _>>()
        };
        records.iter().map(record).collect()
    }

    /// Start and end of the flow, as far as the message alone tells them.
    fn times(self, fields: &[Field], head: &Head, attributes: &mut Map<String, Value>) {
        let of = |id: u16| fields.iter().find(|field| field.element.is_iana(id));
        let time = |pick: fn((u16, u16)) -> u16| {
            let absolute = ABSOLUTE.iter().find_map(|pair| of(pick(*pair))?.value.as_ref()?.as_i64());
            if let Some(time) = absolute {
                return Some(time);
            }
            let uptime = of(pick(UPTIME))?.number?;
            if let Some(now) = head.uptime {
                // Milliseconds in 32 bits that may have begun again.
                let ahead = uptime - now;
                let ahead = if ahead > 1 << 31 { ahead - (1 << 32) } else { ahead };
                return Some(head.exported + ahead * 1_000_000);
            }
            Some(of(SYSTEM_INIT)?.value.as_ref()?.as_i64()? + uptime * 1_000_000)
        };
        for (name, time) in [("flow.start", time(|pair| pair.0)), ("flow.end", time(|pair| pair.1))] {
            if let Some(time) = time.filter(|_| self == Self::Collector) {
                let _ = attributes.insert(name.to_owned(), json!(time));
            }
        }
    }
}

/// One packet in so many, if the record itself or the header of its message tells it.
fn sampling_rate(fields: &[Field], head: &Head) -> Option<Value> {
    let of = |id: u16| fields.iter().find(|field| field.element.is_iana(id))?.value.as_ref()?.as_f64();
    let rate = of(34)
        .or_else(|| of(50))
        .or_else(|| Some((of(305)? + of(306)?) / of(305)?))
        .or_else(|| Some(of(310)? / of(309)?))
        .or_else(|| Some(1.0 / of(311)?));
    let known = rate.filter(|rate| rate.is_finite() && *rate > 0.0);
    let rate = known.or(head.sampling.filter(|rate| *rate > 0).map(f64::from))?;
    #[allow(clippy::cast_possible_truncation, reason = "a whole number of at most 32 bits")]
    let whole = rate.fract() == 0.0 && rate <= f64::from(u32::MAX);
    Some(if whole { json!(rate as i64) } else { json!(rate) })
}

fn one_or_list(mut values: Vec<Value>) -> Value {
    if values.len() == 1 { values.pop().unwrap_or_default() } else { Value::Array(values) }
}

/// What `network.transport` is for a protocol number.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn protocol(number: Option<i64>) -> Value {
    let number = number.expect("a number of 8 bytes at most");
    let keyword = PROTOCOLS.iter().find(|(known, _)| *known == number);
    keyword.map_or_else(|| number.to_string().into(), |(_, keyword)| (*keyword).into())
}
