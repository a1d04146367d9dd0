//! A second reader of the element tables and of single values, to check that of the project with.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::repository;

const TABLES: &str = "crates/ipfix/tables";
/// Enterprise of the reverse direction (RFC 5103 section 6.2).
const REVERSE: u32 = 29_305;
/// CERT marks the reverse direction in its own elements.
const CERT: (u32, u16) = (6_871, 0x4000);
/// Names of the scope types of NetFlow v9 from 1 on (RFC 3954 section 6.1), with their types.
const V9_SCOPES: [(&str, &str); 5] = [
    ("scopeSystem", "octetArray"),
    ("scopeInterface", "unsigned32"),
    ("scopeLineCard", "unsigned32"),
    ("scopeCache", "octetArray"),
    ("scopeTemplate", "unsigned16"),
];
/// Seconds from 1900 to 1970.
const NTP_OFFSET: i128 = 2_208_988_800;
const SECOND: i128 = 1_000_000_000;

/// Which list of numbers an element is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// IANA or an enterprise.
    Ipfix,
    /// Fields of NetFlow v9, which v5 is put in too.
    NetflowV9,
    /// Scope types of NetFlow v9.
    NetflowV9Scope,
}

/// An element as a template names it, and what the tables say of it.
#[derive(Debug, Clone)]
pub struct Element {
    /// Number without enterprise bit.
    pub id: u16,
    /// Enterprise; 0 for none.
    pub enterprise: u32,
    /// What `id` counts in.
    pub numbers: Numbers,
    /// In the scope of an options template.
    pub scope: bool,
    /// Of the reverse direction of a biflow.
    pub reverse: bool,
    /// Name, if a table has it.
    pub name: Option<String>,
    /// Whether the name is that of the IANA registry.
    pub of_iana: bool,
    kind: String,
}

/// Name and type of a row.
type Row = (String, String);

/// All tables.
#[derive(Debug)]
pub struct Elements {
    iana: BTreeMap<u16, Row>,
    enterprise: BTreeMap<(u32, u16), Row>,
    v9: BTreeMap<u16, Row>,
}

impl Elements {
    /// Reads the tables of the repository.
    ///
    /// # Panics
    /// If they are not as their README says.
    #[must_use]
    pub fn load() -> Self {
        let (mut iana, mut enterprise, mut v9) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for row in rows("iana-information-elements.csv") {
            let _ = iana.insert(number(&row[0]), (row[1].clone(), row[2].clone()));
        }
        for row in rows("enterprise-information-elements.csv") {
            let key = (row[0].parse().expect("an enterprise"), number(&row[1]));
            let _ = enterprise.insert(key, (row[2].clone(), row[3].clone()));
        }
        for row in rows("netflow-v9-fields.csv") {
            let or = |first: &String, second: &String| if first.is_empty() { second.clone() } else { first.clone() };
            let _ = v9.insert(number(&row[0]), (or(&row[1], &row[4]), or(&row[2], &row[5])));
        }
        Self { iana, enterprise, v9 }
    }

    /// What the tables say of a field.
    #[must_use]
    pub fn of(&self, id: u16, enterprise: u32, scope: bool, numbers: Numbers) -> Element {
        // Rows without a type are reserved numbers.
        let iana = |id| self.iana.get(&id).filter(|row| !row.1.is_empty());
        let (row, reverse, of_iana) = match numbers {
            Numbers::NetflowV9Scope => {
                let row = V9_SCOPES.get(usize::from(id) - 1).map(|(name, kind)| ((*name).into(), (*kind).into()));
                (row, false, false)
            }
            Numbers::NetflowV9 => {
                let other = self.v9.get(&id).filter(|_| !self.iana.contains_key(&id));
                (iana(id).or(other).cloned(), false, iana(id).is_some())
            }
            Numbers::Ipfix if enterprise == 0 => (iana(id).cloned(), false, true),
            Numbers::Ipfix if enterprise == REVERSE => (iana(id).cloned(), true, true),
            Numbers::Ipfix => {
                let forward = || self.enterprise.get(&(enterprise, id & !CERT.1));
                let is_reverse = enterprise == CERT.0 && id & CERT.1 != 0 && forward().is_some();
                let row = self.enterprise.get(&(enterprise, id)).or_else(|| forward().filter(|_| is_reverse));
                (row.cloned(), is_reverse, false)
            }
        };
        let (name, kind) = row.map_or((None, String::new()), |(name, kind)| (Some(name), kind));
        let name = name.map(|name| if reverse { reversed(&name) } else { name });
        let kind = match (kind.as_str(), &name) {
            ("ip", Some(name)) if name.to_lowercase().contains("ipv6") => "ipv6address".to_owned(),
            ("ip", _) => "ipv4address".to_owned(),
            (kind, _) => kind.to_lowercase(),
        };
        Element { id, enterprise, numbers, scope, reverse, name, of_iana, kind }
    }
}

fn rows(file: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(repository().join(TABLES).join(file)).expect("a table");
    assert!(!text.contains('"'), "{file}: quotes need a real reader of CSV");
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn number(text: &str) -> u16 {
    text.parse().expect("an element number")
}

fn reversed(name: &str) -> String {
    if name.starts_with("reverse") {
        return name.to_owned();
    }
    format!("reverse{}{}", name[..1].to_uppercase(), &name[1..])
}

impl Element {
    /// Whether this is element `id` of the IANA registry in the forward direction.
    #[must_use]
    pub fn is_iana(&self, id: u16) -> bool {
        self.id == id && self.enterprise == 0 && self.numbers != Numbers::NetflowV9Scope
    }

    /// Whether the value is structured data (RFC 6313).
    #[must_use]
    pub fn is_list(&self) -> bool {
        ["basiclist", "subtemplatelist", "subtemplatemultilist"].contains(&self.kind.as_str())
    }

    /// The value of `bytes` as `catchment decode` prints it; `None` where there is none. `variable`: the value has a
    /// length of its own. `export_seconds` tells the era of NTP times.
    #[must_use]
    pub fn value(&self, bytes: &[u8], variable: bool, export_seconds: i64) -> Option<Value> {
        let kind = self.kind.as_str();
        let is_text = kind == "string";
        let is_octets = ["", "octetarray", "hex", "unsigned256"].contains(&kind);
        if bytes.is_empty() && !(variable && (is_text || is_octets)) {
            return None;
        }
        if is_text {
            let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            return Some(String::from_utf8_lossy(&bytes[..length]).into());
        }
        Some(self.fitting(bytes, export_seconds).unwrap_or_else(|| octets(bytes)))
    }

    /// A value of the right length for its type.
    fn fitting(&self, bytes: &[u8], export_seconds: i64) -> Option<Value> {
        let longest = |own: usize| if self.numbers == Numbers::Ipfix { own } else { 8 };
        let unsigned = |own| (bytes.len() <= longest(own)).then(|| whole(big_endian(bytes)));
        let signed = |own| (bytes.len() <= longest(own)).then(|| json!(sign_extended(bytes)));
        let seconds = |unit: u64| big_endian(bytes).checked_mul(unit).and_then(|nanos| i64::try_from(nanos).ok());
        match self.kind.as_str() {
            "unsigned8" | "uint8" | "proto" => unsigned(1),
            "unsigned16" | "uint16" | "uint15" => unsigned(2),
            "unsigned32" | "uint32" => unsigned(4),
            "unsigned64" | "uint64" | "uint" => unsigned(8),
            "signed8" | "int8" => signed(1),
            "signed16" => signed(2),
            "signed32" | "int32" => signed(4),
            "signed64" => signed(8),
            "float32" | "float64" | "float" => match (bytes.len(), self.kind.as_str()) {
                (4, _) => Some(json!(f64::from(f32::from_be_bytes(bytes.try_into().ok()?)))),
                (8, "float64" | "float") => Some(json!(f64::from_be_bytes(bytes.try_into().ok()?))),
                _ => None,
            },
            "boolean" if bytes == [1] => Some(json!(true)),
            "boolean" if bytes == [2] => Some(json!(false)),
            "macaddress" if bytes.len() == 6 => {
                let pairs: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                Some(pairs.join(":").into())
            }
            "ipv4address" | "ip4_addr" => {
                Some(std::net::Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).to_string().into())
            }
            "ipv6address" | "ip6_addr" => {
                Some(std::net::Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_string().into())
            }
            "datetimeseconds" if matches!(bytes.len(), 4 | 8) => seconds(1_000_000_000).map(|nanos| json!(nanos)),
            "datetimemilliseconds" if bytes.len() == 8 => seconds(1_000_000).map(|nanos| json!(nanos)),
            "datetimemicroseconds" if bytes.len() == 8 => Some(json!(ntp(bytes, export_seconds, 1_000_000))),
            "datetimenanoseconds" if bytes.len() == 8 => Some(json!(ntp(bytes, export_seconds, 1_000_000_000))),
            _ => None,
        }
    }
}

/// Bytes as `catchment decode` prints them.
fn octets(bytes: &[u8]) -> Value {
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "base16": text })
}

fn whole(number: u64) -> Value {
    #[allow(clippy::cast_precision_loss, reason = "above the range of OTLP's integers")]
    i64::try_from(number).map_or_else(|_| json!(number as f64), |number| json!(number))
}

/// The number of at most 8 bytes.
#[must_use]
pub fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn sign_extended(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * u32::try_from(bytes.len()).expect("at most 8 bytes");
    big_endian(bytes).cast_signed().wrapping_shl(unused).wrapping_shr(unused)
}

/// An NTP time stamp as nanoseconds since 1970, to the nearest of `units` per second, in the era closest to the export.
fn ntp(bytes: &[u8], export_seconds: i64, units: i128) -> i64 {
    let (seconds, mut fraction) = (i128::from(big_endian(&bytes[..4])), i128::from(big_endian(&bytes[4..])));
    if units == 1_000_000 {
        // RFC 7011 section 6.1.9: the low bits are no part of it.
        fraction &= !0x7ff;
    }
    let units_of_fraction = (fraction * units * 2 + (1 << 32)) >> 33;
    let in_era_0 = (seconds - NTP_OFFSET) * SECOND + units_of_fraction * (SECOND / units);
    let eras = [-1, 0, 1, 2].map(|era: i128| in_era_0 + (era << 32) * SECOND);
    let export = i128::from(export_seconds) * SECOND;
    let nearest = eras.into_iter().min_by_key(|time| (time - export).abs()).expect("four");
    i64::try_from(nearest).expect("a time of this age")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of all kinds of numbers, and one value of each kind of type.
    #[test]
    fn names_and_values() {
        let elements = Elements::load();
        let of = |id, enterprise| elements.of(id, enterprise, false, Numbers::Ipfix);
        assert_eq!(of(1, 0).name.as_deref(), Some("octetDeltaCount"));
        assert_eq!(of(1, REVERSE).name.as_deref(), Some("reverseOctetDeltaCount"));
        assert_eq!(of(14 | CERT.1, CERT.0).name.as_deref(), Some("reverseInitialTCPFlags"));
        assert_eq!(of(0, 0).name, None);
        assert_eq!(elements.of(1, 0, true, Numbers::NetflowV9Scope).name.as_deref(), Some("scopeSystem"));
        let value = |id, bytes: &[u8]| of(id, 0).value(bytes, false, 1_796_000_000);
        assert_eq!(value(1, &[1, 0]), Some(json!(256)));
        assert_eq!(value(1, &[0; 9]), Some(json!({"base16": "000000000000000000"})));
        assert_eq!(value(8, &[192, 0, 2, 1]), Some(json!("192.0.2.1")));
        assert_eq!(value(56, &[0, 1, 2, 3, 4, 255]), Some(json!("00:01:02:03:04:ff")));
        assert_eq!(value(82, b"eth0\0\0"), Some(json!("eth0")));
        assert_eq!(value(434, &[0xff]), Some(json!(-1)));
        assert_eq!(value(276, &[2]), Some(json!(false)));
        assert_eq!(value(150, &[0, 0, 0, 1]), Some(json!(1_000_000_000)));
        // 2^31 of a fraction is half a second; 1970 is 2208988800 in NTP.
        let time = [&3_000_000_000u32.to_be_bytes()[..], &[0x80, 0, 0, 0]].concat();
        assert_eq!(of(156, 0).value(&time, false, 791_000_000), Some(json!(791_011_200_500_000_000i64)));
        assert_eq!(value(1, &[]), None);
    }
}
