//! What options data has told, in a payload: the answers that the records of the payload need.
//!
//! Each is an array: start of the exporter in ns or null; whether sampling rates depend on the record; a number that
//! differs where descriptions of elements do; array of rates (selector, interfaces in and out, line card, template, rate),
//! of interfaces and of VRFs (number, name), of applications (bytes, name) and of elements (enterprise, number, name, number
//! of the type by RFC 5610).

use catchment_ipfix::{Record, Records, Template, Value, decode};
use minicbor::Encoder;

use super::read::Input;
use super::write::Written;
use super::{EncodedError, NONE};
use crate::flow::batch::Set;
use crate::flow::facts::{Carried, Facts, rate_key, type_number, type_of_number};
use crate::flow::mapping::FlowMapping;
use crate::flow::plan::{Lookup, Plan};
use crate::flow::row::{number_of, rate_question};
use crate::flow::value::Env;

/// Adds the answers that the records of `set` need to `carried`.
pub(super) fn collect(carried: &mut Carried, set: &Set, bytes: &[u8], mapping: &FlowMapping) {
    let facts = &set.facts;
    carried.system_init_unix_nano = facts.system_init_unix_nano();
    carried.depends_on_record = facts.sampling_depends_on_record();
    carried.generation = facts.elements_generation();
    let plan =
        set.template.attached(mapping.plan_key(carried.generation), |template| Plan::new(template, mapping, facts));
    let env = Env { context: set.message.context(), templates: &set.sub_templates, facts, mapping };
    // The plans of both directions read the same bytes, and may look up other fields of them.
    let directions = plan.directions.iter().flat_map(|both| [&both.forward.1, &both.reverse.1]);
    let plans: Vec<&Plan> = std::iter::once(&*plan).chain(directions).collect();
    for record in Records::new(&set.template, bytes) {
        let question = rate_question(facts, &plan, &record, &env);
        if let Some(rate) = facts.sampling_rate(&question) {
            let _ = carried.rates.insert(rate_key(&question), rate);
        }
        for plan in &plans {
            names(carried, plan, &record, &env);
        }
    }
    lists(carried, set, bytes, &env);
}

/// Adds the names of what a record has numbers of to `carried`.
fn names(carried: &mut Carried, plan: &Plan, record: &Record<'_, '_>, env: &Env<'_>) {
    for (lookup, index, _) in &plan.lookups {
        let number = || number_of(plan, record, *index, env);
        match lookup {
            Lookup::Interface => {
                if let Some((id, name)) = number().and_then(|id| Some((id, env.facts.interface_name(id)?))) {
                    let _ = carried.interfaces.entry(id).or_insert_with(|| name.to_owned());
                }
            }
            Lookup::Vrf => {
                if let Some((id, name)) = number().and_then(|id| Some((id, env.facts.vrf_name(id)?))) {
                    let _ = carried.vrfs.entry(id).or_insert_with(|| name.to_owned());
                }
            }
            Lookup::Application => {
                let id = record.field(*index).unwrap_or_default();
                if let Some(name) = env.facts.application_name(id) {
                    let _ = carried.applications.entry(id.to_vec()).or_insert_with(|| name.to_owned());
                }
            }
        }
    }
}

/// Adds what the exporter has told of the elements of `template` to `carried`.
pub(super) fn describe(carried: &mut Carried, template: &Template, facts: &Facts) {
    for field in template.fields() {
        if let Some((name, data_type)) = facts.described(field) {
            let _ = carried.elements.insert((field.enterprise, field.id), (name.to_owned(), data_type));
        }
    }
}

/// Elements in basicLists name no template: they are looked for in the values.
fn lists(carried: &mut Carried, set: &Set, bytes: &[u8], env: &Env<'_>) {
    if !set.template.has_lists() || env.facts.elements_generation() == 0 {
        return;
    }
    for record in Records::new(&set.template, bytes) {
        for (field, bytes) in record.fields().filter(|(field, _)| field.data_type().is_list()) {
            in_value(carried, &decode(field, bytes, &env.context), env, &env.context);
        }
    }
}

fn in_value(carried: &mut Carried, value: &Value<'_>, env: &Env<'_>, context: &catchment_ipfix::DecodeContext) {
    use catchment_ipfix::List;
    let nested = context.nested();
    let groups: Vec<_> = match value {
        Value::List(List::Basic(list)) => {
            let field = list.field();
            if let Some((name, data_type)) = env.facts.described(&field) {
                let _ = carried.elements.insert((field.enterprise, field.id), (name.to_owned(), data_type));
            }
            list.values(context).for_each(|value| in_value(carried, &value, env, &nested));
            return;
        }
        Value::List(List::SubTemplate(list)) => vec![list.group()],
        Value::List(List::SubTemplateMulti(list)) => list.groups().collect(),
        _ => return,
    };
    for record in groups.iter().filter_map(|group| group.records(env.templates)).flatten() {
        for (field, bytes) in record.fields().filter(|(field, _)| field.data_type().is_list()) {
            in_value(carried, &decode(field, bytes, &nested), env, &nested);
        }
    }
}

/// The same for sets that share what has been told of their exporter.
pub(super) fn identity(facts: &Facts) -> usize {
    match facts {
        Facts::None => 0,
        Facts::Known(known) => std::sync::Arc::as_ptr(known).addr(),
        Facts::Carried(carried) => std::sync::Arc::as_ptr(carried).addr(),
    }
}

pub(super) fn write(out: &mut Encoder<Vec<u8>>, carried: &Carried) -> Written {
    let length = |items: usize| u64::try_from(items).unwrap_or(u64::MAX);
    let _ = out.array(8)?;
    let _ = match carried.system_init_unix_nano {
        Some(time) => out.i64(time)?,
        None => out.null()?,
    };
    let _ = out.bool(carried.depends_on_record)?.u64(carried.generation)?;
    let _ = out.array(length(carried.rates.len()))?;
    for ((numbers, template), rate) in &carried.rates {
        let _ = out.array(6)?;
        for number in numbers {
            let _ = match number {
                Some(number) => out.u64(*number)?,
                None => out.null()?,
            };
        }
        let _ = out.u16(*template)?.f64(*rate)?;
    }
    for names in [&carried.interfaces, &carried.vrfs] {
        let _ = out.array(length(names.len()))?;
        for (id, name) in names {
            let _ = out.array(2)?.u64(*id)?.str(name)?;
        }
    }
    let _ = out.array(length(carried.applications.len()))?;
    for (id, name) in &carried.applications {
        let _ = out.array(2)?.bytes(id)?.str(name)?;
    }
    let _ = out.array(length(carried.elements.len()))?;
    for ((enterprise, id), (name, data_type)) in &carried.elements {
        let number = u8::try_from(type_number(*data_type)).unwrap_or(0);
        let _ = out.array(4)?.u32(*enterprise)?.u16(*id)?.str(name)?.u8(number)?;
    }
    Ok(())
}

/// One exporter's. `place` tells it from the others of the payload.
pub(super) fn read(input: &mut Input<'_>, place: usize) -> Result<Carried, EncodedError> {
    input.array(8)?;
    let mut carried = Carried {
        system_init_unix_nano: input.optional(minicbor::Decoder::i64)?,
        depends_on_record: input.item(minicbor::Decoder::bool)?,
        ..Carried::default()
    };
    let generation = input.item(minicbor::Decoder::u64)?;
    // Templates of a payload are its own, but exporters may share one: their descriptions must not be confused.
    carried.generation = if generation == 0 { 0 } else { u64::try_from(place).unwrap_or(u64::from(NONE)) + 1 };
    input.each(|input| {
        input.array(6)?;
        let mut numbers = [None; 4];
        for number in &mut numbers {
            *number = input.optional(minicbor::Decoder::u64)?;
        }
        let template = input.item(minicbor::Decoder::u16)?;
        let _ = carried.rates.insert((numbers, template), input.item(minicbor::Decoder::f64)?);
        Ok(())
    })?;
    for names in [&mut carried.interfaces, &mut carried.vrfs] {
        input.each(|input| {
            input.array(2)?;
            let id = input.item(minicbor::Decoder::u64)?;
            let _ = names.insert(id, input.item(minicbor::Decoder::str)?.to_owned());
            Ok(())
        })?;
    }
    input.each(|input| {
        input.array(2)?;
        let id = input.item(minicbor::Decoder::bytes)?.to_vec();
        let _ = carried.applications.insert(id, input.item(minicbor::Decoder::str)?.to_owned());
        Ok(())
    })?;
    input.each(|input| {
        input.array(4)?;
        let enterprise = input.item(minicbor::Decoder::u32)?;
        let id = input.item(minicbor::Decoder::u16)?;
        let name = input.item(minicbor::Decoder::str)?.to_owned();
        let data_type = input.number("number of a type", type_of_number)?;
        let _ = carried.elements.insert((enterprise, id), (name, data_type));
        Ok(())
    })?;
    Ok(carried)
}
