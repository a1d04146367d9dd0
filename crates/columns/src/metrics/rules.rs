//! Rules: which elements become points, and of what kind.

use catchment_ipfix::{FieldSpec, Namespace, REVERSE_ENTERPRISE, Semantics, element};
use thiserror::Error;

use crate::sonic::U64Overflow;

/// An element, as a rule names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ElementRef {
    /// By its name in the IANA registry, such as `octetDeltaCount`; with `reverse` before it for the reverse direction of a
    /// biflow (RFC 5103), such as `reverseOctetDeltaCount`.
    Name(String),
    /// By enterprise number, 0 for the IANA registry, and element number.
    Number {
        /// Private enterprise number.
        enterprise: u32,
        /// Element number without the enterprise bit; a field type in NetFlow.
        id: u16,
    },
}

/// What kind of metric a counter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MetricKind {
    /// As the registry has it (RFC 7012 section 3.2): delta counters are delta sums, total counters and SNMP counters are
    /// cumulative sums, everything else is a gauge.
    #[default]
    Auto,
    /// Monotonic sum since the record before.
    Delta,
    /// Monotonic sum since the exporter started.
    Cumulative,
    /// A value as it is.
    Gauge,
}

/// Which elements become points, and how.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MetricRule {
    /// The counters. Where an element is repeated in a template, its first field counts.
    pub elements: Vec<ElementRef>,
    /// Their kind.
    pub kind: MetricKind,
    /// Name of the metric, for a rule of one element; by default the attribute name that the element has in logs.
    pub name: Option<String>,
    /// Elements that become attributes of the points, under the names that they have in logs. Those that a record does not
    /// have are left out.
    pub keys: Vec<ElementRef>,
}

/// Why rules make no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MetricRuleError {
    /// A rule without counters.
    #[error("rule {rule}: elements is empty, it needs one")]
    NoElements {
        /// Position of the rule, counted from 0.
        rule: usize,
    },
    /// A name that is not in the registry.
    #[error("rule {rule}: {name:?} is no element of the IANA registry")]
    UnknownName {
        /// Position of the rule, counted from 0.
        rule: usize,
        /// The name.
        name: String,
    },
    /// A name for several metrics.
    #[error("rule {rule}: name {name:?} is for {elements} elements, it can be for one only")]
    SharedName {
        /// Position of the rule, counted from 0.
        rule: usize,
        /// The name.
        name: String,
        /// Number of elements.
        elements: usize,
    },
    /// An empty name.
    #[error("rule {rule}: name is empty, leave it out or give one")]
    EmptyName {
        /// Position of the rule, counted from 0.
        rule: usize,
    },
}

/// Enterprise number and element number.
pub(super) type ElementId = (u32, u16);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CheckedRule {
    pub(super) elements: Vec<ElementId>,
    pub(super) kind: MetricKind,
    pub(super) name: Option<String>,
    pub(super) keys: Vec<ElementId>,
}

/// Checked rules. Where several are about one element, the first counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricRules {
    pub(super) rules: Vec<CheckedRule>,
    pub(super) u64_overflow: U64Overflow,
}

impl MetricRules {
    /// Checks rules; `u64_overflow` says what becomes of values above the range of OTLP's integers.
    ///
    /// # Errors
    /// [`MetricRuleError`] with the rule at fault.
    pub fn new(rules: &[MetricRule], u64_overflow: U64Overflow) -> Result<Self, MetricRuleError> {
        let check = |(number, rule): (usize, &MetricRule)| {
            let id = |wanted: &ElementRef| {
                let name = || MetricRuleError::UnknownName { rule: number, name: format!("{}", Named(wanted)) };
                find(wanted).ok_or_else(name)
            };
            if rule.elements.is_empty() {
                return Err(MetricRuleError::NoElements { rule: number });
            }
            match &rule.name {
                Some(name) if name.is_empty() => return Err(MetricRuleError::EmptyName { rule: number }),
                Some(name) if rule.elements.len() > 1 => {
                    let (name, elements) = (name.clone(), rule.elements.len());
                    return Err(MetricRuleError::SharedName { rule: number, name, elements });
                }
                _ => {}
            }
            Ok(CheckedRule {
                elements: rule.elements.iter().map(id).collect::<Result<_, _>>()?,
                kind: rule.kind,
                name: rule.name.clone(),
                keys: rule.keys.iter().map(id).collect::<Result<_, _>>()?,
            })
        };
        Ok(Self { rules: rules.iter().enumerate().map(check).collect::<Result<_, _>>()?, u64_overflow })
    }
}

struct Named<'a>(&'a ElementRef);

impl std::fmt::Display for Named<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            ElementRef::Name(name) => formatter.write_str(name),
            ElementRef::Number { enterprise, id } => write!(formatter, "{enterprise}/{id}"),
        }
    }
}

/// The number of an element.
fn find(wanted: &ElementRef) -> Option<ElementId> {
    let name = match wanted {
        ElementRef::Number { enterprise, id } => return Some((*enterprise, *id)),
        ElementRef::Name(name) => name,
    };
    let of_name = |name: &str| (1..0x8000).find(|id| element(0, *id).is_some_and(|element| element.name == name));
    if let Some(id) = of_name(name) {
        return Some((0, id));
    }
    let mut forward = name.strip_prefix("reverse")?.chars();
    let first = forward.next()?.to_ascii_lowercase();
    of_name(&format!("{first}{}", forward.as_str())).map(|id| (REVERSE_ENTERPRISE, id))
}

/// Whether a field is of an element.
pub(super) fn is_element(field: &FieldSpec, (enterprise, id): ElementId) -> bool {
    match enterprise {
        0 => field.is_iana(id),
        _ => field.namespace == Namespace::Ipfix && (field.enterprise, field.id) == (enterprise, id),
    }
}

/// The kind of a field's metric; never [`MetricKind::Auto`].
pub(super) fn kind_of(field: &FieldSpec, wanted: MetricKind) -> MetricKind {
    match (wanted, field.element.map(|element| element.semantics)) {
        (MetricKind::Auto, Some(Semantics::DeltaCounter)) => MetricKind::Delta,
        (MetricKind::Auto, Some(Semantics::TotalCounter | Semantics::SnmpCounter)) => MetricKind::Cumulative,
        (MetricKind::Auto, _) => MetricKind::Gauge,
        (kind, _) => kind,
    }
}
