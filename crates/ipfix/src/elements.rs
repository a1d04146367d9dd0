//! Information elements: what a number in a template means.
//!
//! The tables are generated from the CSV files in `tables/` of this crate: the IANA registry of IPFIX information
//! elements, elements of enterprises, and the field types of NetFlow v9 that lie outside the registry.

mod enterprise;
mod enumerations;
mod iana;
mod netflow_v9;

/// Enterprise number that stands for "the same element, in the reverse direction of the flow" (RFC 5103).
pub const REVERSE_ENTERPRISE: u32 = 29_305;

/// Enterprise number of CERT, whose exporter marks reverse elements by a bit in the element number.
const CERT_ENTERPRISE: u32 = 6_871;
const CERT_REVERSE_BIT: u16 = 0x4000;

/// Abstract data type of an element (RFC 7012 section 3.1, RFC 6313 section 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DataType {
    /// Bytes without a meaning of their own.
    OctetArray,
    /// Unsigned number of up to 1 byte.
    Unsigned8,
    /// Unsigned number of up to 2 bytes.
    Unsigned16,
    /// Unsigned number of up to 4 bytes.
    Unsigned32,
    /// Unsigned number of up to 8 bytes.
    Unsigned64,
    /// Unsigned number of up to 32 bytes; decoded as bytes.
    Unsigned256,
    /// Signed number of up to 1 byte.
    Signed8,
    /// Signed number of up to 2 bytes.
    Signed16,
    /// Signed number of up to 4 bytes.
    Signed32,
    /// Signed number of up to 8 bytes.
    Signed64,
    /// IEEE 754 number of 4 bytes.
    Float32,
    /// IEEE 754 number of 8 bytes, or 4 in the reduced form.
    Float64,
    /// One byte: 1 is true, 2 is false.
    Boolean,
    /// Six bytes.
    MacAddress,
    /// UTF-8 text.
    String,
    /// Seconds since 1970.
    DateTimeSeconds,
    /// Milliseconds since 1970.
    DateTimeMilliseconds,
    /// NTP timestamp of which microseconds count.
    DateTimeMicroseconds,
    /// NTP timestamp.
    DateTimeNanoseconds,
    /// Four bytes.
    Ipv4Address,
    /// Sixteen bytes.
    Ipv6Address,
    /// List of values of one element.
    BasicList,
    /// List of records of one template.
    SubTemplateList,
    /// List of records of several templates.
    SubTemplateMultiList,
}

impl DataType {
    /// The type with a number of the registry that RFC 5610 section 3.1 set up.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        const TYPES: [DataType; 24] = [
            DataType::OctetArray,
            DataType::Unsigned8,
            DataType::Unsigned16,
            DataType::Unsigned32,
            DataType::Unsigned64,
            DataType::Signed8,
            DataType::Signed16,
            DataType::Signed32,
            DataType::Signed64,
            DataType::Float32,
            DataType::Float64,
            DataType::Boolean,
            DataType::MacAddress,
            DataType::String,
            DataType::DateTimeSeconds,
            DataType::DateTimeMilliseconds,
            DataType::DateTimeMicroseconds,
            DataType::DateTimeNanoseconds,
            DataType::Ipv4Address,
            DataType::Ipv6Address,
            DataType::BasicList,
            DataType::SubTemplateList,
            DataType::SubTemplateMultiList,
            DataType::Unsigned256,
        ];
        TYPES.get(usize::try_from(number).ok()?).copied()
    }

    /// The number of the type in that registry.
    pub(crate) fn number(self) -> u8 {
        (0..=u8::MAX).find(|&number| Self::from_number(number.into()) == Some(self)).unwrap_or_default()
    }

    /// Whether values are lists (RFC 6313).
    #[must_use]
    pub fn is_list(self) -> bool {
        matches!(self, Self::BasicList | Self::SubTemplateList | Self::SubTemplateMultiList)
    }
}

/// How values of an element relate to each other over time (RFC 7012 section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Semantics {
    /// Nothing is said.
    Default,
    /// A measured amount.
    Quantity,
    /// Counter since the start of the metering process.
    TotalCounter,
    /// Counter since the report before.
    DeltaCounter,
    /// A label; arithmetic makes no sense.
    Identifier,
    /// A set of bits.
    Flags,
    /// A list (RFC 6313).
    List,
    /// Counter32 or Counter64 of the SNMP world (RFC 8038).
    SnmpCounter,
    /// Gauge32 of the SNMP world (RFC 8038).
    SnmpGauge,
}

impl Semantics {
    /// The semantics with a number of the registry that RFC 5610 section 3.6 set up.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        const SEMANTICS: [Semantics; 9] = [
            Semantics::Default,
            Semantics::Quantity,
            Semantics::TotalCounter,
            Semantics::DeltaCounter,
            Semantics::Identifier,
            Semantics::Flags,
            Semantics::List,
            Semantics::SnmpCounter,
            Semantics::SnmpGauge,
        ];
        SEMANTICS.get(usize::try_from(number).ok()?).copied()
    }

    /// The number of the semantics in that registry.
    pub(crate) fn number(self) -> u8 {
        (0..=u8::MAX).find(|&number| Self::from_number(number.into()) == Some(self)).unwrap_or_default()
    }
}

/// One information element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element {
    /// Element number, without the enterprise bit.
    pub id: u16,
    /// Private enterprise number; 0 for the IANA registry and for NetFlow v9 field types.
    pub enterprise: u32,
    /// Name as registered, such as `octetDeltaCount`.
    pub name: &'static str,
    /// Type of its values.
    pub data_type: DataType,
    /// Semantics of its values.
    pub semantics: Semantics,
}

/// Shorthand for the generated tables.
const fn row(enterprise: u32, id: u16, name: &'static str, data_type: DataType, semantics: Semantics) -> Element {
    Element { id, enterprise, name, data_type, semantics }
}

/// Scope field types of NetFlow v9 (RFC 3954 section 6.1); they are numbered apart from the other fields.
static NETFLOW_V9_SCOPES: [Element; 5] = [
    row(0, 1, "scopeSystem", DataType::OctetArray, Semantics::Identifier),
    row(0, 2, "scopeInterface", DataType::Unsigned32, Semantics::Identifier),
    row(0, 3, "scopeLineCard", DataType::Unsigned32, Semantics::Identifier),
    row(0, 4, "scopeCache", DataType::OctetArray, Semantics::Identifier),
    row(0, 5, "scopeTemplate", DataType::Unsigned16, Semantics::Identifier),
];

fn find(table: &'static [Element], enterprise: u32, id: u16) -> Option<&'static Element> {
    let index = table.binary_search_by_key(&(enterprise, id), |entry| (entry.enterprise, entry.id)).ok()?;
    table.get(index)
}

/// Looks up an IPFIX element by enterprise number (0 for the IANA registry) and element number.
///
/// Elements of the reverse direction are not entries of their own, see [`reverse_element`].
#[must_use]
pub fn element(enterprise: u32, id: u16) -> Option<&'static Element> {
    match enterprise {
        0 => find(&iana::ELEMENTS, 0, id),
        _ => find(&enterprise::ELEMENTS, enterprise, id),
    }
}

/// The registered name of a value of an element of the IANA registry.
pub(crate) fn registered_value(id: u16, value: u64) -> Option<&'static str> {
    let entries = &enumerations::ENTRIES;
    let index = entries.binary_search_by_key(&(id, value), |entry| (entry.0, entry.1)).ok()?;
    entries.get(index).map(|entry| entry.2)
}

/// Looks up the forward element that a field in the reverse direction of a biflow is the counterpart of: enterprise
/// 29305 (RFC 5103 section 6.2), and the elements that CERT's exporter numbers with bit 14 set.
#[must_use]
pub fn reverse_element(enterprise: u32, id: u16) -> Option<&'static Element> {
    match enterprise {
        REVERSE_ENTERPRISE => element(0, id),
        CERT_ENTERPRISE if id & CERT_REVERSE_BIT != 0 => element(CERT_ENTERPRISE, id & !CERT_REVERSE_BIT),
        _ => None,
    }
}

/// Looks up a field type of NetFlow v9: the IANA elements, which took over its numbers, and the numbers that vendors
/// use beyond them.
#[must_use]
pub fn netflow_v9_field(id: u16) -> Option<&'static Element> {
    element(0, id).or_else(|| find(&netflow_v9::ELEMENTS, 0, id))
}

/// Looks up a scope field type of NetFlow v9, 1 (system) to 5 (template).
#[must_use]
pub fn netflow_v9_scope(id: u16) -> Option<&'static Element> {
    find(&NETFLOW_V9_SCOPES, 0, id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every table is in order without repeats, so that binary search finds every entry.
    #[test]
    fn every_entry_is_found() {
        for entry in iana::ELEMENTS.iter().chain(&enterprise::ELEMENTS) {
            assert_eq!(element(entry.enterprise, entry.id), Some(entry));
        }
        for entry in netflow_v9::ELEMENTS.iter().chain(&iana::ELEMENTS) {
            assert_eq!(netflow_v9_field(entry.id), Some(entry));
        }
    }

    /// A few entries whose meaning everything else rests on.
    #[test]
    fn well_known_elements() {
        let octets = element(0, 1).expect("octetDeltaCount");
        assert_eq!(
            (octets.name, octets.data_type, octets.semantics),
            ("octetDeltaCount", DataType::Unsigned64, Semantics::DeltaCounter)
        );
        assert_eq!(element(0, 291).map(|entry| entry.data_type), Some(DataType::BasicList));
        assert_eq!(element(0, 483 + 1).map(|entry| entry.data_type), Some(DataType::BasicList));
        assert_eq!(element(0, 0), None, "reserved");
        assert_eq!(element(9, 1), None);
    }

    /// Reverse elements lead to the forward one.
    #[test]
    fn reverse_elements() {
        assert_eq!(reverse_element(REVERSE_ENTERPRISE, 1), element(0, 1));
        assert_eq!(reverse_element(CERT_ENTERPRISE, 0x4000 | 14), element(CERT_ENTERPRISE, 14));
        assert_eq!(reverse_element(CERT_ENTERPRISE, 14), None);
        assert_eq!(reverse_element(9, 1), None);
    }

    /// NetFlow v9 numbers its scopes apart from its fields.
    #[test]
    fn netflow_v9_numbers() {
        assert_eq!(netflow_v9_field(1).map(|entry| entry.name), Some("octetDeltaCount"));
        assert_eq!(netflow_v9_scope(1).map(|entry| entry.name), Some("scopeSystem"));
        assert_eq!(netflow_v9_scope(6), None);
        assert_eq!(netflow_v9_field(33_002).map(|entry| entry.name), Some("firewallEventExtended"));
        assert_eq!(element(0, 33_002), None, "no such IPFIX element");
        // Events of Cisco's firewalls.
        let events = [
            (33_000, "ingressAclId", DataType::OctetArray),
            (40_000, "userName", DataType::String),
            (231, "initiatorOctets", DataType::Unsigned64),
            (232, "responderOctets", DataType::Unsigned64),
            (233, "firewallEvent", DataType::Unsigned8),
            (323, "observationTimeMilliseconds", DataType::DateTimeMilliseconds),
            (152, "flowStartMilliseconds", DataType::DateTimeMilliseconds),
        ];
        for (id, name, data_type) in events {
            assert_eq!(netflow_v9_field(id).map(|entry| (entry.name, entry.data_type)), Some((name, data_type)));
        }
    }
}
