//! Records -> log records, one at a time: for those of both directions, which become two. `columns.rs` takes all at once and
//! gives the same.

use catchment_ipfix::{FlowTimes, Record, Records, SamplingKey, Value, decode, flow_times};

use super::batch::Set;
use super::biflow::{self, Directions};
use super::bound::Bound;
use super::facts::Facts;
use super::mapping::{ExporterAt, FlowMapping, TimeForm};
use super::names::{Own, SAMPLED};
use super::plan::{FamilyBy, Lookup, Plan, Target};
use super::value::{Env, ValueWriter, rate as write_rate};
use crate::logs::{LogFields, LogsTable};
use crate::sampled;
use crate::table::{AttributeWriter, NameId};

/// What the records of a set have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct SetContext<'s> {
    pub(super) set: &'s Set,
    pub(super) env: Env<'s>,
    /// Sampling rate of the header.
    pub(super) header_rate: Option<f64>,
    /// Number of the resource.
    pub(super) resource: u16,
    /// Address of the exporter, where it goes on the record.
    pub(super) exporter: Option<&'s str>,
}

/// Facts of those that may not be used.
static NO_FACTS: Facts = Facts::None;

impl<'s> SetContext<'s> {
    pub(super) fn new(set: &'s Set, mapping: &'s FlowMapping, resource: u16, exporter: Option<&'s str>) -> Self {
        let facts = facts_of(set, mapping);
        let mut context = set.message.context();
        context.system_init_unix_nano = facts.system_init_unix_nano();
        context.time_encoding = mapping.time_encoding;
        Self {
            set,
            env: Env { context, templates: &set.sub_templates, facts, mapping },
            header_rate: set.message.sampling_interval().map(f64::from),
            resource,
            exporter: exporter.filter(|_| mapping.exporter_at == ExporterAt::Record),
        }
    }

    /// The sampling rate of all records, if they have one rate or none.
    pub(super) fn constant_rate(&self, plan: &Plan) -> Option<Option<f64>> {
        if !plan.sampling.is_empty() {
            return None;
        }
        match self.header_rate {
            Some(rate) => Some(Some(rate)),
            None if plan.is_options || self.env.facts.is_none() => Some(None),
            None if self.env.facts.sampling_depends_on_record() => None,
            None => Some(self.told_rate(&any_record(self.set.template.id()))),
        }
    }

    /// The sampling rate of a record: by itself, by its header, or by what options data tells.
    pub(super) fn rate(&self, plan: &Plan, record: &Record<'_, '_>) -> Option<f64> {
        let own = own_rate(plan, record, &self.env).or(self.header_rate);
        match own {
            None if !plan.is_options && !self.env.facts.is_none() => {
                self.told_rate(&rate_question(self.env.facts, plan, record, &self.env))
            }
            rate => rate,
        }
    }

    fn told_rate(&self, key: &SamplingKey) -> Option<f64> {
        self.env.facts.sampling_rate(key).filter(|rate| is_rate(*rate))
    }
}

/// What may be looked up for the records of a set.
pub(super) fn facts_of<'s>(set: &'s Set, mapping: &FlowMapping) -> &'s Facts {
    if mapping.looks_up() { &set.facts } else { &NO_FACTS }
}

/// Writes a record as one log record, or as two.
pub(super) fn write(
    values: &mut ValueWriter,
    table: &mut LogsTable,
    context: &SetContext<'_>,
    bound: &Bound,
    record: &Record<'_, '_>,
) {
    let rate = context.rate(&bound.plan, record);
    match (&bound.plan.directions, &bound.directions) {
        (Some(directions), Some(names)) => {
            let Directions { forward, reverse } = directions.as_ref();
            for (place, (template, plan)) in [forward, reverse].into_iter().enumerate() {
                // Lengths are the same, so the bytes are one record under this template too.
                if let Some(record) = Records::new(template, record.bytes()).next() {
                    write_one(values, table, context, (plan, &names[place]), &record, rate, Some(place == 1));
                }
            }
        }
        _ => write_one(values, table, context, (&bound.plan, &bound.names), record, rate, None),
    }
}

fn write_one(
    values: &mut ValueWriter,
    table: &mut LogsTable,
    context: &SetContext<'_>,
    (plan, names): (&Plan, &[NameId]),
    record: &Record<'_, '_>,
    rate: Option<f64>,
    is_reverse: Option<bool>,
) {
    let times = flow_times(record, &context.env.context);
    let mut attributes = table.record(LogFields {
        time_unix_nano: times.start_unix_nano,
        observed_time_unix_nano: context.set.receipt.time_unix_nano,
        resource: context.resource,
        ..LogFields::default()
    });
    values.counts.records += 1;
    values.counts.unknown_values += plan.unknown;
    receipt(values, &mut attributes, context, &times);
    sampled::write(&mut attributes, SAMPLED, context.set.threshold);
    if let Some(is_reverse) = is_reverse {
        let direction: &[u8] = if is_reverse { b"reverse" } else { b"forward" };
        attributes.text(Own::BiflowDirection.id(), direction);
    }
    fields(values, &mut attributes, context, plan, names, record, rate, is_reverse == Some(true));
    if plan.is_options {
        attributes.text(Own::RecordType.id(), b"options");
        attributes.list(Own::ScopeFields.id(), &plan.scope);
    } else if let Some(family) = family(plan, record, &context.env) {
        attributes.text(Own::NetworkType.id(), family.as_bytes());
    }
    lookups(&mut attributes, plan, record, &context.env);
    if let Some(rate) = rate {
        write_rate(&mut attributes, rate);
        if plan.has_scaled {
            attributes.bool(Own::SamplingApplied.id(), true);
        }
    }
}

fn receipt(
    values: &mut ValueWriter,
    attributes: &mut AttributeWriter<'_>,
    context: &SetContext<'_>,
    times: &FlowTimes,
) {
    let (set, form) = (context.set, context.env.mapping.times);
    attributes.text(Own::FlowType.id(), set.message.version.as_str().as_bytes());
    attributes.int(Own::Sequence.id(), i64::from(set.message.sequence));
    attributes.int(Own::Domain.id(), i64::from(set.message.domain));
    attributes.int(Own::Template.id(), i64::from(set.template.id()));
    values.time(attributes, Own::TimeReceived.id(), set.receipt.time_unix_nano, form);
    values.time(attributes, Own::TimeExported.id(), set.message.export_time_unix_nano, form);
    for (name, time) in [(Own::Start, times.start_unix_nano), (Own::End, times.end_unix_nano)] {
        if let Some(time) = time {
            values.time(attributes, name.id(), time, form);
        }
    }
    if let Some(exporter) = context.exporter {
        attributes.text(Own::SamplerAddress.id(), exporter.as_bytes());
    }
}

#[allow(clippy::too_many_arguments, reason = "the parts of a record and of its plan, in the one place that needs all")]
fn fields(
    values: &mut ValueWriter,
    attributes: &mut AttributeWriter<'_>,
    context: &SetContext<'_>,
    plan: &Plan,
    names: &[NameId],
    record: &Record<'_, '_>,
    rate: Option<f64>,
    is_reverse: bool,
) {
    let env = &context.env;
    let mut repeated: Vec<Vec<_>> = plan.repeated.iter().map(|list| Vec::with_capacity(list.fields.len())).collect();
    for ((_, bytes), field) in record.fields().zip(&plan.fields) {
        if field.target == Target::Skip {
            continue;
        }
        let mut value = decode(&field.spec, bytes, &env.context);
        match (&mut value, is_reverse) {
            (Value::Unsigned(direction), true) if field.spec.is_iana(biflow::BIFLOW_DIRECTION) => {
                *direction = biflow::swapped_direction(*direction);
            }
            _ => {}
        }
        match field.target {
            Target::Skip => {}
            Target::Transport(name) => values.transport(attributes, names[name], field, &value, env),
            Target::Attribute(name) => values.value(attributes, names[name], field, &value, env, rate),
            Target::Repeated(list) => repeated[list].push((field, value)),
        }
    }
    for (list, collected) in plan.repeated.iter().zip(&repeated) {
        values.repeated(attributes, names[list.name], collected, env);
    }
}

/// The address family of a flow.
pub(super) fn family(plan: &Plan, record: &Record<'_, '_>, env: &Env<'_>) -> Option<&'static str> {
    if plan.constant_family.is_some() {
        return plan.constant_family;
    }
    plan.family.iter().find_map(|(by, index)| {
        let value = value_of(plan, record, *index, env)?;
        match (by, value) {
            (FamilyBy::Address, Value::Ipv4(_)) => Some("ipv4"),
            (FamilyBy::Address, Value::Ipv6(_)) => Some("ipv6"),
            (FamilyBy::IpVersion, Value::Unsigned(4)) | (FamilyBy::EtherType, Value::Unsigned(0x0800)) => Some("ipv4"),
            (FamilyBy::IpVersion, Value::Unsigned(6)) | (FamilyBy::EtherType, Value::Unsigned(0x86dd)) => Some("ipv6"),
            _ => None,
        }
    })
}

/// Names for the numbers of a record, as options data tells them.
pub(super) fn lookups(attributes: &mut AttributeWriter<'_>, plan: &Plan, record: &Record<'_, '_>, env: &Env<'_>) {
    if env.facts.is_none() {
        return;
    }
    for (lookup, index, own) in &plan.lookups {
        let found = match lookup {
            Lookup::Interface => number_of(plan, record, *index, env).and_then(|id| env.facts.interface_name(id)),
            Lookup::Vrf => number_of(plan, record, *index, env).and_then(|id| env.facts.vrf_name(id)),
            Lookup::Application => record.field(*index).and_then(|id| env.facts.application_name(id)),
        };
        if let Some(name) = found {
            attributes.text(own.id(), name.as_bytes());
        }
    }
}

fn value_of<'a>(plan: &Plan, record: &Record<'_, 'a>, index: usize, env: &Env<'_>) -> Option<Value<'a>> {
    Some(decode(&plan.fields.get(index)?.spec, record.field(index)?, &env.context))
}

pub(super) fn number_of(plan: &Plan, record: &Record<'_, '_>, index: usize, env: &Env<'_>) -> Option<u64> {
    match value_of(plan, record, index, env)? {
        Value::Unsigned(number) => Some(number),
        _ => None,
    }
}

/// What to ask for the sampling rate of a record.
pub(super) fn rate_question(facts: &Facts, plan: &Plan, record: &Record<'_, '_>, env: &Env<'_>) -> SamplingKey {
    match facts.sampling_depends_on_record() {
        true => sampling_key(plan, record, env),
        false => any_record(record.template().id()),
    }
}

/// The question where the answer does not depend on the record.
fn any_record(template_id: u16) -> SamplingKey {
    SamplingKey { template_id, ..SamplingKey::default() }
}

/// What a record says of its sampler.
fn sampling_key(plan: &Plan, record: &Record<'_, '_>, env: &Env<'_>) -> SamplingKey {
    let number = |index: Option<usize>| number_of(plan, record, index?, env);
    SamplingKey {
        selector: number(plan.sampler.selector),
        ingress_interface: number(plan.sampler.ingress_interface),
        egress_interface: number(plan.sampler.egress_interface),
        line_card: number(plan.sampler.line_card),
        template_id: record.template().id(),
    }
}

/// "One in so many", from whichever elements of the record tell it; 0 means unknown.
fn own_rate(plan: &Plan, record: &Record<'_, '_>, env: &Env<'_>) -> Option<f64> {
    if plan.sampling.is_empty() {
        return None;
    }
    let number = |id: u16| {
        let (_, index) = plan.sampling.iter().find(|(known, _)| *known == id)?;
        #[allow(clippy::cast_precision_loss, reason = "sampling rates are small")]
        match value_of(plan, record, *index, env)? {
            Value::Unsigned(number) => Some(number as f64),
            Value::Float(number) => Some(number),
            _ => None,
        }
    };
    let rates = [
        number(34),
        number(50),
        number(305).zip(number(306)).map(|(interval, space)| (interval + space) / interval),
        number(309).zip(number(310)).map(|(size, population)| population / size),
        number(311).map(|probability| 1.0 / probability),
    ];
    rates.into_iter().flatten().find(|rate| is_rate(*rate))
}

fn is_rate(rate: f64) -> bool {
    rate.is_finite() && rate > 0.0
}

/// A time in the form that the settings ask for, as a text where that is one.
pub(super) fn time_text(unix_nano: i64, form: TimeForm) -> Option<Vec<u8>> {
    (form == TimeForm::Rfc3339).then(|| {
        let mut text = Vec::new();
        super::form::rfc3339(unix_nano, &mut text);
        text
    })
}
