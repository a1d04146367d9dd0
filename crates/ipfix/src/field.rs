//! Fields of a template: number, length, and what the number means.

use std::borrow::Cow;

use crate::elements::{self, DataType, Element};

/// Field length that says "each value carries its own length" (RFC 7011 section 7).
pub const VARIABLE_LENGTH: u16 = 65_535;

/// Bit of a field number of IPFIX that says that an enterprise number follows (RFC 7011 section 3.2).
pub(crate) const ENTERPRISE_BIT: u16 = 0x8000;

/// paddingOctets of the IANA registry.
const PADDING_OCTETS: u16 = 210;

/// Which list of numbers a field number belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Namespace {
    /// IPFIX: IANA elements, or those of an enterprise.
    Ipfix,
    /// Field types of NetFlow v9 (also used for v5): IANA elements and 16-bit numbers of vendors.
    NetflowV9,
    /// Scope field types of NetFlow v9: 1 system to 5 template.
    NetflowV9Scope,
}

/// One field of a template.
///
/// Equality looks at what the exporter sent, not at the tables.
#[derive(Debug, Clone, Copy)]
pub struct FieldSpec {
    /// Element number, without the enterprise bit in IPFIX.
    pub id: u16,
    /// Private enterprise number; 0 when there is none.
    pub enterprise: u32,
    /// Length of each value in bytes, or [`VARIABLE_LENGTH`].
    pub length: u16,
    /// Whether the field is one of the scope of an options template.
    pub scope: bool,
    /// Which list of numbers `id` belongs to.
    pub namespace: Namespace,
    /// Whether the value is about the reverse direction of a biflow (RFC 5103); `element` is then the forward one,
    /// unless the table has an entry of its own.
    pub reverse: bool,
    /// The element, if it is in the tables.
    pub element: Option<&'static Element>,
}

impl FieldSpec {
    /// A field of an IPFIX template; `enterprise` is 0 for the IANA registry.
    #[must_use]
    pub fn ipfix(id: u16, enterprise: u32, length: u16, scope: bool) -> Self {
        let own = elements::element(enterprise, id);
        let forward = elements::reverse_element(enterprise, id);
        Self {
            id,
            enterprise,
            length,
            scope,
            namespace: Namespace::Ipfix,
            reverse: enterprise == elements::REVERSE_ENTERPRISE || forward.is_some(),
            element: own.or(forward),
        }
    }

    /// A field of a NetFlow v9 template that is not a scope.
    #[must_use]
    pub fn netflow_v9(id: u16, length: u16) -> Self {
        Self {
            id,
            enterprise: 0,
            length,
            scope: false,
            namespace: Namespace::NetflowV9,
            reverse: false,
            element: elements::netflow_v9_field(id),
        }
    }

    /// A scope field of a NetFlow v9 options template. Numbers that are no scope type are taken for field types, as
    /// some exporters put those there.
    #[must_use]
    pub fn netflow_v9_scope(id: u16, length: u16) -> Self {
        let Some(element) = elements::netflow_v9_scope(id) else {
            return Self { scope: true, ..Self::netflow_v9(id, length) };
        };
        Self {
            id,
            enterprise: 0,
            length,
            scope: true,
            namespace: Namespace::NetflowV9Scope,
            reverse: false,
            element: Some(element),
        }
    }

    /// Name of the element, such as `octetDeltaCount`, or `reverseOctetDeltaCount` for the reverse direction; `None`
    /// when the tables do not know it.
    #[must_use]
    pub fn name(&self) -> Option<Cow<'static, str>> {
        let name = self.element?.name;
        if !self.reverse || name.starts_with("reverse") {
            return Some(Cow::Borrowed(name));
        }
        let mut letters = name.chars();
        let first = letters.next()?.to_ascii_uppercase();
        Some(Cow::Owned(format!("reverse{first}{}", letters.as_str())))
    }

    /// Type of the values; bytes when the element is not known.
    #[must_use]
    pub fn data_type(&self) -> DataType {
        self.element.map_or(DataType::OctetArray, |element| element.data_type)
    }

    /// Whether each value carries its own length.
    #[must_use]
    pub fn is_variable(&self) -> bool {
        self.length == VARIABLE_LENGTH
    }

    /// Whether the field is paddingOctets, whose values mean nothing.
    #[must_use]
    pub fn is_padding(&self) -> bool {
        self.is_iana(PADDING_OCTETS)
    }

    /// Whether this is element `id` of the IANA registry, in the forward direction. NetFlow fields with the same
    /// meaning count too, scope types do not.
    #[must_use]
    pub fn is_iana(&self, id: u16) -> bool {
        self.id == id && self.enterprise == 0 && self.namespace != Namespace::NetflowV9Scope
    }
}

impl PartialEq for FieldSpec {
    fn eq(&self, other: &Self) -> bool {
        (self.id, self.enterprise, self.length, self.scope, self.namespace)
            == (other.id, other.enterprise, other.length, other.scope, other.namespace)
    }
}

impl Eq for FieldSpec {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of the reverse direction never equal the forward ones.
    #[test]
    fn names_of_biflow_fields() {
        let name = |id, enterprise| FieldSpec::ipfix(id, enterprise, 4, false).name();
        assert_eq!(name(1, 0).as_deref(), Some("octetDeltaCount"));
        assert_eq!(name(1, 29_305).as_deref(), Some("reverseOctetDeltaCount"));
        assert_eq!(name(14, 6_871).as_deref(), Some("initialTCPFlags"));
        assert_eq!(name(14 | 0x4000, 6_871).as_deref(), Some("reverseInitialTCPFlags"));
        assert_eq!(name(9_999, 29_305), None);
        assert!(FieldSpec::ipfix(9_999, 29_305, 4, false).reverse);
    }

    /// The number 1 means three things.
    #[test]
    fn one_number_in_three_namespaces() {
        assert!(FieldSpec::ipfix(1, 0, 4, false).is_iana(1));
        assert!(FieldSpec::netflow_v9(1, 4).is_iana(1));
        let scope = FieldSpec::netflow_v9_scope(1, 4);
        assert!(!scope.is_iana(1));
        assert_eq!(scope.name().as_deref(), Some("scopeSystem"));
        let odd_scope = FieldSpec::netflow_v9_scope(148, 4);
        assert!(odd_scope.scope && odd_scope.is_iana(148));
    }

    /// Only the padding element of the registry is padding.
    #[test]
    fn padding_is_told_from_vendor_fields() {
        assert!(FieldSpec::ipfix(210, 0, 3, false).is_padding());
        assert!(!FieldSpec::ipfix(210, 9, 3, false).is_padding());
    }
}
