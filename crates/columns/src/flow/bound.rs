//! Plans bound to a table: the numbers that its names have there.

use std::sync::Arc;

use catchment_ipfix::Template;
use rustc_hash::FxHashMap;

use super::batch::Set;
use super::mapping::FlowMapping;
use super::plan::Plan;
use super::row::facts_of;
use crate::table::{AttributeTable, NameId};

/// A plan in one table.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) plan: Arc<Plan>,
    /// Number of each name.
    pub(super) names: Box<[NameId]>,
    /// The same for the plans of both directions.
    pub(super) directions: Option<[Box<[NameId]>; 2]>,
}

/// The plans met since the table began.
#[derive(Debug, Default)]
pub(super) struct Plans {
    bound: Vec<Bound>,
    index: FxHashMap<(usize, u64), usize>,
    last: Option<((usize, u64), usize)>,
}

impl Plans {
    /// Forgets all: the next table numbers its names anew.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The plan of a set whose template outlives this table.
    pub(super) fn of(&mut self, set: &Set, mapping: &FlowMapping, attributes: &mut AttributeTable) -> &Bound {
        let facts = facts_of(set, mapping);
        let key = (Arc::as_ptr(&set.template).addr(), facts.elements_generation());
        let at = match self.last {
            Some((last, at)) if last == key => at,
            _ => *self.index.entry(key).or_insert_with(|| {
                let make = |template: &Template| Plan::new(template, mapping, facts);
                let plan = set.template.attached(mapping.plan_key(key.1), make);
                self.bound.push(Bound::new(plan, attributes));
                self.bound.len() - 1
            }),
        };
        self.last = Some((key, at));
        &self.bound[at]
    }
}

impl Bound {
    fn new(plan: Arc<Plan>, attributes: &mut AttributeTable) -> Self {
        let mut numbers = |plan: &Plan| plan.names.iter().map(|name| attributes.number_of_name(name)).collect();
        Self {
            names: numbers(&plan),
            directions: plan
                .directions
                .as_ref()
                .map(|directions| [numbers(&directions.forward.1), numbers(&directions.reverse.1)]),
            plan,
        }
    }
}
