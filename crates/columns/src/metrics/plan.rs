//! What the rules make of a template.

use std::sync::Arc;

use catchment_ipfix::{Template, element_unit};
use rustc_hash::FxHashMap;

use super::rules::{ElementId, MetricKind, MetricRules, is_element, kind_of};
use crate::flow::sets::attribute_name;

/// systemInitTimeMilliseconds of the IANA registry.
const SYSTEM_INIT: ElementId = (0, 160);

/// A metric: everything that its points have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Metric {
    pub(super) name: String,
    pub(super) unit: &'static str,
    pub(super) kind: MetricKind,
}

/// What one rule finds in a template.
#[derive(Debug)]
pub(super) struct RulePlan {
    /// Positions of counters, each with the number of its metric.
    pub(super) counters: Vec<(usize, u16)>,
    /// Positions of keys, each with the number of its attribute name.
    pub(super) keys: Vec<(usize, u16)>,
}

/// What all rules find in a template.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) rules: Vec<RulePlan>,
    /// Position of the time at which the exporter started.
    pub(super) system_init: Option<usize>,
}

/// Metrics and attribute names with numbers, and the plans of the templates met so far.
#[derive(Debug, Default)]
pub(super) struct Plans {
    pub(super) metrics: Vec<Metric>,
    pub(super) names: Vec<String>,
    plans: FxHashMap<usize, (Arc<Template>, Arc<Plan>)>,
}

impl Plans {
    /// The plan of `template`. The template is kept, so that its address stays its own.
    pub(super) fn of(&mut self, template: &Arc<Template>, rules: &MetricRules) -> Arc<Plan> {
        let address = Arc::as_ptr(template).addr();
        if let Some((_, plan)) = self.plans.get(&address) {
            return Arc::clone(plan);
        }
        let plan = Arc::new(self.plan(template, rules));
        let _ = self.plans.insert(address, (Arc::clone(template), Arc::clone(&plan)));
        plan
    }

    fn plan(&mut self, template: &Template, rules: &MetricRules) -> Plan {
        let fields = template.fields();
        let find = |id: ElementId| fields.iter().position(|field| is_element(field, id));
        let mut taken = vec![false; fields.len()];
        let plans = rules.rules.iter().map(|rule| {
            let mut plan = RulePlan { counters: Vec::new(), keys: Vec::new() };
            for at in rule.elements.iter().filter_map(|id| find(*id)) {
                // An earlier rule has it.
                if std::mem::replace(&mut taken[at], true) {
                    continue;
                }
                let field = &fields[at];
                let metric = Metric {
                    name: rule.name.clone().unwrap_or_else(|| attribute_name(field)),
                    unit: element_unit(field.enterprise, field.id).unwrap_or_default(),
                    kind: kind_of(field, rule.kind),
                };
                plan.counters.push((at, number_of(&mut self.metrics, metric)));
            }
            for at in rule.keys.iter().filter_map(|id| find(*id)) {
                let name = number_of(&mut self.names, attribute_name(&fields[at]));
                // A point has an attribute once: of two elements with one name the first counts.
                if plan.keys.iter().all(|(_, known)| *known != name) {
                    plan.keys.push((at, name));
                }
            }
            plan
        });
        let rules = plans.filter(|plan| !plan.counters.is_empty()).collect();
        Plan { rules, system_init: find(SYSTEM_INIT) }
    }
}

/// Position of a value, which is added if it is new. Rules bound their number.
fn number_of<T: PartialEq>(all: &mut Vec<T>, value: T) -> u16 {
    let place = all.iter().position(|known| *known == value).unwrap_or_else(|| {
        all.push(value);
        all.len() - 1
    });
    u16::try_from(place).unwrap_or(u16::MAX)
}
