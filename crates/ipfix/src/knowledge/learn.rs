//! Reads facts out of options data.

use std::borrow::Cow;

use crate::context::DecodeContext;
use crate::elements::{DataType, Semantics};
use crate::field::{FieldSpec, Namespace};
use crate::knowledge::facts::{Fact, MAX_APPLICATION_ID_BYTES, SamplerKey, cut};
use crate::picks::Picks;
use crate::records::{Record, Records};
use crate::sampling::RateValues;
use crate::template::Template;
use crate::value::{Value, decode};

/// What a field of an options record is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    SystemInit,
    Selector,
    Interface,
    LineCard,
    ScopeTemplate,
    Vrf,
    VrfName,
    InterfaceName,
    InterfaceDescription,
    ApplicationId,
    ApplicationName,
    ApplicationDescription,
    /// A part of a sampling rate, by its place in [`RateValues`].
    Rate(usize),
    ElementId,
    ElementEnterprise,
    ElementType,
    ElementSemantics,
    ElementName,
}

/// The fields of an options template that say something worth knowing.
#[derive(Debug, Clone)]
pub(crate) struct OptionsPlan(Picks<Role>);

/// Elements by their role.
const ROLES: [(u16, Role); 22] = [
    (160, Role::SystemInit),
    (48, Role::Selector),
    (302, Role::Selector),
    (10, Role::Interface),
    (14, Role::Interface),
    (252, Role::Interface),
    (253, Role::Interface),
    (141, Role::LineCard),
    (145, Role::ScopeTemplate),
    (234, Role::Vrf),
    (235, Role::Vrf),
    (236, Role::VrfName),
    (82, Role::InterfaceName),
    (83, Role::InterfaceDescription),
    (95, Role::ApplicationId),
    (96, Role::ApplicationName),
    (94, Role::ApplicationDescription),
    (303, Role::ElementId),
    (346, Role::ElementEnterprise),
    (339, Role::ElementType),
    (344, Role::ElementSemantics),
    (341, Role::ElementName),
];

fn role(field: &FieldSpec) -> Option<Role> {
    if field.namespace == Namespace::NetflowV9Scope {
        return match field.id {
            2 => Some(Role::Interface),
            3 => Some(Role::LineCard),
            5 => Some(Role::ScopeTemplate),
            _ => None,
        };
    }
    if field.enterprise != 0 {
        return None;
    }
    let known = ROLES.iter().find(|&&(id, _)| id == field.id).map(|&(_, role)| role);
    known.or_else(|| RateValues::place(field.id).map(Role::Rate))
}

impl OptionsPlan {
    /// The plan of a template, unless its records say nothing that is kept.
    pub(crate) fn new(fields: &[FieldSpec]) -> Option<Self> {
        let roles = Picks::new(fields, role);
        let has = |wanted: Role| roles.wanted().any(|role| role == wanted);
        let says = has(Role::SystemInit)
            || has(Role::Interface) && (has(Role::InterfaceName) || has(Role::InterfaceDescription))
            || has(Role::Vrf) && has(Role::VrfName)
            || has(Role::ApplicationId) && (has(Role::ApplicationName) || has(Role::ApplicationDescription))
            || has(Role::ElementId) && has(Role::ElementName)
            || roles.wanted().any(|role| matches!(role, Role::Rate(_)));
        says.then_some(Self(roles))
    }

    /// Gives the facts of all records to `take`.
    pub(super) fn read<'a>(
        &self,
        template: &Template,
        records: &'a [u8],
        context: &DecodeContext,
        mut take: impl FnMut(&Fact<'a>),
    ) {
        for record in Records::new(template, records) {
            self.record(&record, context, &mut take);
        }
    }

    fn record<'a>(&self, record: &Record<'_, 'a>, context: &DecodeContext, take: &mut impl FnMut(&Fact<'a>)) {
        let mut seen = Seen::default();
        for (index, role, bytes) in self.0.of(record.bytes()) {
            let field = usize::try_from(index).ok().and_then(|index| record.template().fields().get(index));
            let Some(field) = field else { continue };
            seen.field(role, decode(field, bytes, context), bytes);
        }
        seen.facts(take);
    }
}

/// What one record says. Of several fields for one thing the first with a value counts.
#[derive(Default)]
struct Seen<'a> {
    system_init: Option<i64>,
    selector: Option<u64>,
    interface: Option<u64>,
    line_card: Option<u64>,
    template: Option<u64>,
    vrf: Option<u64>,
    vrf_name: Option<&'a [u8]>,
    interface_name: Option<&'a [u8]>,
    interface_description: Option<&'a [u8]>,
    application: Option<&'a [u8]>,
    application_name: Option<&'a [u8]>,
    application_description: Option<&'a [u8]>,
    rate: RateValues,
    element_id: Option<u64>,
    element_enterprise: Option<u64>,
    element_type: Option<u64>,
    element_semantics: Option<u64>,
    element_name: Option<&'a [u8]>,
}

impl<'a> Seen<'a> {
    fn field(&mut self, role: Role, value: Value<'a>, bytes: &'a [u8]) {
        let number = match value {
            Value::Unsigned(number) => Some(number),
            // Exporters write ids in bytes of their own choice.
            Value::Bytes(bytes) | Value::Opaque(bytes) => crate::wire::unsigned(bytes),
            _ => None,
        };
        let text = match value {
            Value::Text(text) | Value::Bytes(text) | Value::Opaque(text) => Some(trimmed(text)),
            _ => None,
        };
        let (slot, value) = match role {
            Role::SystemInit => {
                if let Value::TimeUnixNano(time) = value {
                    self.system_init = self.system_init.or(Some(time));
                }
                return;
            }
            Role::Rate(place) => {
                self.rate.set(place, value);
                return;
            }
            Role::ApplicationId => {
                if !bytes.is_empty() && bytes.len() <= MAX_APPLICATION_ID_BYTES {
                    self.application = self.application.or(Some(bytes));
                }
                return;
            }
            Role::VrfName | Role::InterfaceName | Role::InterfaceDescription => {
                let slot = match role {
                    Role::VrfName => &mut self.vrf_name,
                    Role::InterfaceName => &mut self.interface_name,
                    _ => &mut self.interface_description,
                };
                *slot = slot.or(text);
                return;
            }
            Role::ApplicationName | Role::ApplicationDescription | Role::ElementName => {
                let slot = match role {
                    Role::ApplicationName => &mut self.application_name,
                    Role::ApplicationDescription => &mut self.application_description,
                    _ => &mut self.element_name,
                };
                *slot = slot.or(text);
                return;
            }
            Role::Selector => (&mut self.selector, number),
            Role::Interface => (&mut self.interface, number),
            Role::LineCard => (&mut self.line_card, number),
            Role::ScopeTemplate => (&mut self.template, number),
            Role::Vrf => (&mut self.vrf, number),
            Role::ElementId => (&mut self.element_id, number),
            Role::ElementEnterprise => (&mut self.element_enterprise, number),
            Role::ElementType => (&mut self.element_type, number),
            Role::ElementSemantics => (&mut self.element_semantics, number),
        };
        *slot = slot.or(value);
    }

    fn facts(self, take: &mut impl FnMut(&Fact<'a>)) {
        if let Some(time) = self.system_init {
            take(&Fact::SystemInit(time));
        }
        if self.rate.is_present() {
            self.samplers(take);
        }
        let interface_name = name(self.interface_name, self.interface_description);
        if let Some((index, name)) = self.interface.zip(interface_name) {
            take(&Fact::Interface(index, name));
        }
        if let Some((id, name)) = self.vrf.zip(name(self.vrf_name, None)) {
            take(&Fact::Vrf(id, name));
        }
        let application_name = name(self.application_name, self.application_description);
        if let Some((id, name)) = self.application.zip(application_name) {
            take(&Fact::Application(Cow::Borrowed(id), name));
        }
        let id = self.element_id.and_then(|id| u16::try_from(id & 0x7fff).ok());
        let enterprise = self.element_enterprise.and_then(|enterprise| u32::try_from(enterprise).ok());
        if let Some((key, name)) = enterprise.zip(id).zip(name(self.element_name, None)) {
            let data_type = self.element_type.and_then(DataType::from_number).unwrap_or(DataType::OctetArray);
            let semantics = self.element_semantics.and_then(Semantics::from_number).unwrap_or(Semantics::Default);
            take(&Fact::Element(key, name, data_type, semantics));
        }
    }

    fn samplers(&self, take: &mut impl FnMut(&Fact<'a>)) {
        let rate = self.rate.rate();
        let template = self.template.and_then(|id| u16::try_from(id).ok());
        let keys = [
            self.selector.map(SamplerKey::Selector),
            self.interface.map(SamplerKey::Interface),
            self.line_card.map(SamplerKey::LineCard),
            template.map(SamplerKey::Template),
        ];
        if keys.iter().all(Option::is_none) {
            take(&Fact::Sampler(SamplerKey::All, rate));
        }
        for key in keys.into_iter().flatten() {
            take(&Fact::Sampler(key, rate));
        }
    }
}

/// Bytes without the zeros that fill a fixed length.
fn trimmed(bytes: &[u8]) -> &[u8] {
    let length = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    bytes.get(..length).unwrap_or_default()
}

/// The better of two names: the second one counts when the first is empty or not there.
fn name<'a>(first: Option<&'a [u8]>, second: Option<&'a [u8]>) -> Option<Cow<'a, str>> {
    let bytes = first.filter(|name| !name.is_empty()).or(second).or(first)?;
    // Text is cut before it is checked, so that a long one costs no more than a short one.
    let bytes = bytes.get(..bytes.len().min(4 * super::facts::MAX_NAME_BYTES)).unwrap_or_default();
    Some(match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => Cow::Borrowed(cut(text)),
        Cow::Owned(text) => Cow::Owned(cut(&text).to_owned()),
    })
}
