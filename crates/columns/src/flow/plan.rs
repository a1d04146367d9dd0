//! What is decided once per template: the attribute of each field, and what needs more than its own bytes.

use std::sync::Arc;

use catchment_ipfix::{Kind, Template};
use rustc_hash::FxHashMap;

use super::names;

/// Where the value of a field goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// To the attribute of this name.
    Attribute(String),
    /// To the list attribute of this index in [`Plan::repeated`], which collects all fields of one element of a record in
    /// their order.
    Repeated(usize),
    /// To `network.transport`, as a name.
    Transport,
    /// Nowhere: padding.
    Skip,
}

/// The compiled form of a template.
#[derive(Debug)]
pub(super) struct Plan {
    /// One target for each field.
    pub(super) targets: Vec<Target>,
    /// Names of repeated elements, in the order of first appearance.
    pub(super) repeated: Vec<String>,
    /// Names of the scope fields.
    pub(super) scope: Vec<String>,
    /// Index of each field that tells the sampling rate, by element.
    pub(super) sampling: Vec<(u16, usize)>,
    /// Options data rather than flows.
    pub(super) options: bool,
}

/// Elements that tell a sampling rate alone or in pairs.
const SAMPLING: [u16; 7] = [34, 50, 305, 306, 309, 310, 311];
const PROTOCOL_IDENTIFIER: u16 = 4;

impl Plan {
    fn new(template: &Template) -> Self {
        let fields = template.fields();
        let mut used: FxHashMap<String, usize> = FxHashMap::default();
        let mut name_of = Vec::with_capacity(fields.len());
        for (index, field) in fields.iter().enumerate() {
            if field.is_padding() {
                name_of.push(None);
                continue;
            }
            let same_element = |other: &usize| {
                let other = &fields[*other];
                (other.id, other.enterprise, other.namespace) == (field.id, field.enterprise, field.namespace)
            };
            let name = match names::collector(field).map(str::to_owned) {
                Some(name) if used.get(&name).is_none_or(same_element) => name,
                _ => names::registered(field),
            };
            let _ = used.entry(name.clone()).or_insert(index);
            name_of.push(Some(name));
        }
        // A template may have thousands of fields: counted once, not once for each.
        let mut counts: FxHashMap<&str, usize> = FxHashMap::default();
        for name in name_of.iter().flatten() {
            *counts.entry(name).or_default() += 1;
        }
        let mut repeated: Vec<String> = Vec::new();
        let mut lists: FxHashMap<&str, usize> = FxHashMap::default();
        let mut targets = Vec::with_capacity(fields.len());
        for (field, name) in fields.iter().zip(&name_of) {
            targets.push(match name {
                None => Target::Skip,
                Some(name) if counts.get(name.as_str()).is_some_and(|count| *count > 1) => {
                    Target::Repeated(*lists.entry(name).or_insert_with(|| {
                        repeated.push(name.clone());
                        repeated.len() - 1
                    }))
                }
                Some(_) if field.is_iana(PROTOCOL_IDENTIFIER) && !field.scope && !field.reverse => Target::Transport,
                Some(name) => Target::Attribute(name.clone()),
            });
        }
        let scope = fields.iter().zip(&name_of).filter(|(field, _)| field.scope).filter_map(|(_, name)| name.clone());
        let sampling =
            SAMPLING.iter().filter_map(|id| Some((*id, fields.iter().position(|field| field.is_iana(*id))?)));
        Self {
            targets,
            repeated,
            scope: scope.collect(),
            sampling: sampling.collect(),
            options: template.kind() == Kind::Options,
        }
    }
}

/// The plans of the templates met so far.
#[derive(Debug, Default)]
pub(super) struct Plans(FxHashMap<usize, (Arc<Template>, Arc<Plan>)>);

impl Plans {
    /// The plan of `template`. The template is kept, so that its address stays its own.
    pub(super) fn of(&mut self, template: &Arc<Template>) -> Arc<Plan> {
        let address = Arc::as_ptr(template).addr();
        let (_, plan) = self.0.entry(address).or_insert_with(|| (Arc::clone(template), Arc::new(Plan::new(template))));
        Arc::clone(plan)
    }
}
