//! Values inside lists, as CBOR: repeated elements of a record, and structured data (RFC 6313).

use std::convert::Infallible;

use catchment_ipfix::{DecodeContext, FieldSpec, Group, List, Value, decode, enumeration_name};
use hashbrown::HashMap;
use minicbor::Encoder;

use super::mapping::{Enumerations, TimeForm};
use super::value::{Env, FlowCounts, Number, number};
use super::{form, names};

type Encoded = Result<(), minicbor::encode::Error<Infallible>>;
type Out<'b> = Encoder<&'b mut Vec<u8>>;

/// Key of a list's semantic, and of its values beside it.
const SEMANTIC: &str = "_semantic";
const VALUES: &str = "_values";

fn length(items: usize) -> u64 {
    u64::try_from(items).unwrap_or(u64::MAX)
}

/// A list of `values` with their fields; `context` is that of the record they stand in.
pub(super) fn repeated<'f, 'v>(
    mut values: impl ExactSizeIterator<Item = (&'f FieldSpec, Value<'v>)>,
    env: &Env<'_>,
    context: &DecodeContext,
    counts: &mut FlowCounts,
    out: &mut Out<'_>,
) -> Encoded {
    out.array(length(values.len()))?;
    values.try_for_each(|(field, value)| encode(field, &value, env, context, counts, out))
}

/// One value; `context` is that of the record it stands in.
pub(super) fn encode(
    field: &FieldSpec,
    value: &Value<'_>,
    env: &Env<'_>,
    context: &DecodeContext,
    counts: &mut FlowCounts,
    out: &mut Out<'_>,
) -> Encoded {
    let mut text = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut text = Vec::new();
        write(&mut text);
        out.str(&String::from_utf8_lossy(&text)).map(|_| ())
    };
    match value {
        Value::Mac([a, b, c, d, e, f]) => {
            return text(&|out| form::mac(u64::from_be_bytes([0, 0, *a, *b, *c, *d, *e, *f]), out));
        }
        Value::Ipv4(address) => return text(&|out| form::ipv4(u32::from(*address), out)),
        Value::Ipv6(address) => return text(&|out| form::ipv6(u128::from(*address), out)),
        Value::TimeUnixNano(time) if env.mapping.times == TimeForm::Rfc3339 => {
            return text(&|out| form::rfc3339(*time, out));
        }
        _ => {}
    }
    let _ = match value {
        Value::Absent => out.null()?,
        Value::Unsigned(value) => {
            let is_named = env.mapping.enumerations == Enumerations::Names;
            match is_named.then(|| enumeration_name(field, *value)).flatten() {
                Some(name) => out.str(name)?,
                None => match number(u128::from(*value), env.mapping.u64_overflow, counts) {
                    Number::Integer(number) => out.i64(number)?,
                    Number::Double(number) => out.f64(number)?,
                    Number::Text(text) => out.str(&text)?,
                },
            }
        }
        Value::Signed(number) | Value::TimeUnixNano(number) => out.i64(*number)?,
        Value::Float(number) => out.f64(*number)?,
        Value::Boolean(truth) => out.bool(*truth)?,
        Value::Text(text) => out.str(&String::from_utf8_lossy(text))?,
        Value::Bytes(bytes) => out.bytes(bytes)?,
        Value::Opaque(bytes) => {
            counts.opaque_values += 1;
            out.bytes(bytes)?
        }
        Value::List(list) => return encode_list(list, env, context, counts, out),
        Value::Mac(_) | Value::Ipv4(_) | Value::Ipv6(_) => out,
    };
    Ok(())
}

/// Structured data: a basicList as a list of values, the others as a list of maps; on request in a map with its semantic.
fn encode_list(
    list: &List<'_>,
    env: &Env<'_>,
    context: &DecodeContext,
    counts: &mut FlowCounts,
    out: &mut Out<'_>,
) -> Encoded {
    if env.mapping.list_semantics {
        let _ = out.map(2)?.str(SEMANTIC)?.str(list.semantic().as_str())?.str(VALUES)?;
    }
    match list {
        List::Basic(basic) => {
            let (field, nested) = (env.facts.typed(&basic.field()), context.nested());
            let values: Vec<_> = basic.elements().map(|bytes| (&field, decode(&field, bytes, &nested))).collect();
            repeated(values.into_iter(), env, &nested, counts, out)
        }
        List::SubTemplate(single) => encode_groups(&[single.group()], env, context, counts, out),
        List::SubTemplateMulti(multi) => {
            let groups: Vec<_> = multi.groups().collect();
            encode_groups(&groups, env, context, counts, out)
        }
    }
}

/// The records of groups as maps, one after the other; the bytes of a group whose template is not known.
fn encode_groups(
    groups: &[Group<'_>],
    env: &Env<'_>,
    context: &DecodeContext,
    counts: &mut FlowCounts,
    out: &mut Out<'_>,
) -> Encoded {
    let entries = groups.iter().map(|group| group.records(env.templates).map_or(1, Iterator::count));
    out.array(length(entries.sum()))?;
    for group in groups {
        let Some(records) = group.records(env.templates) else {
            counts.unknown_list_parts += 1;
            out.bytes(group.bytes)?;
            continue;
        };
        let nested = context.nested();
        for record in records {
            // A repeated element of a nested record is one key with a list, as in the record itself.
            let mut fields: Vec<(String, Vec<(FieldSpec, Value<'_>)>)> = Vec::new();
            let mut index = HashMap::new();
            for (field, bytes) in record.fields().filter(|(field, _)| !field.is_padding()) {
                let name = names::registered(field, env.facts, env.mapping.schema);
                let field = env.facts.typed(field);
                counts.unknown_values += u64::from(field.element.is_none() && !bytes.is_empty());
                let value = decode(&field, bytes, &nested);
                let at = *index.entry(name.clone()).or_insert_with(|| {
                    fields.push((name, Vec::new()));
                    fields.len() - 1
                });
                fields[at].1.push((field, value));
            }
            out.map(length(fields.len()))?;
            for (name, values) in &fields {
                out.str(name)?;
                match values.as_slice() {
                    [(field, value)] => encode(field, value, env, &nested, counts, out)?,
                    _ => {
                        let values = values.iter().map(|(field, value)| (field, *value));
                        repeated(values, env, &nested, counts, out)?;
                    }
                }
            }
        }
    }
    Ok(())
}
