//! Values inside lists, as CBOR: repeated elements of a record, and structured data (RFC 6313).

use std::convert::Infallible;

use catchment_ipfix::{DecodeContext, Group, List, SubTemplates, Value, decode};
use minicbor::Encoder;
use rustc_hash::FxHashMap;

use super::names;

type Encoded = Result<(), minicbor::encode::Error<Infallible>>;
type Out<'b> = Encoder<&'b mut Vec<u8>>;

fn length(items: usize) -> u64 {
    u64::try_from(items).unwrap_or(u64::MAX)
}

/// A list of `values`.
pub(super) fn repeated(
    values: &[Value<'_>],
    context: &DecodeContext,
    templates: &SubTemplates,
    out: &mut Out<'_>,
) -> Encoded {
    out.array(length(values.len()))?;
    values.iter().try_for_each(|value| encode(value, context, templates, out))
}

/// One value; `context` is that of the record it stands in.
pub(super) fn encode(
    value: &Value<'_>,
    context: &DecodeContext,
    templates: &SubTemplates,
    out: &mut Out<'_>,
) -> Encoded {
    match value {
        Value::Absent => out.null().map(|_| ()),
        Value::Unsigned(number) => match i64::try_from(*number) {
            Ok(number) => out.i64(number).map(|_| ()),
            #[allow(clippy::cast_precision_loss, reason = "above the range of OTLP integers")]
            Err(_) => out.f64(*number as f64).map(|_| ()),
        },
        Value::Signed(number) | Value::TimeUnixNano(number) => out.i64(*number).map(|_| ()),
        Value::Float(number) => out.f64(*number).map(|_| ()),
        Value::Boolean(truth) => out.bool(*truth).map(|_| ()),
        Value::Mac(octets) => out.str(&mac(*octets)).map(|_| ()),
        Value::Ipv4(address) => out.str(&address.to_string()).map(|_| ()),
        Value::Ipv6(address) => out.str(&address.to_string()).map(|_| ()),
        Value::Text(text) => out.str(&String::from_utf8_lossy(text)).map(|_| ()),
        Value::Bytes(bytes) | Value::Opaque(bytes) => out.bytes(bytes).map(|_| ()),
        Value::List(list) => encode_list(list, context, templates, out),
    }
}

/// Structured data: a basicList as a list of values, the others as a list of maps.
fn encode_list(list: &List<'_>, context: &DecodeContext, templates: &SubTemplates, out: &mut Out<'_>) -> Encoded {
    match list {
        List::Basic(basic) => {
            let values: Vec<_> = basic.values(context).collect();
            repeated(&values, &context.nested(), templates, out)
        }
        List::SubTemplate(single) => {
            out.begin_array()?;
            encode_group(&single.group(), context, templates, out)?;
            out.end().map(|_| ())
        }
        List::SubTemplateMulti(multi) => {
            out.begin_array()?;
            multi.groups().try_for_each(|group| encode_group(&group, context, templates, out))?;
            out.end().map(|_| ())
        }
    }
}

/// The records of a group as maps; its bytes where the template is not known.
fn encode_group(group: &Group<'_>, context: &DecodeContext, templates: &SubTemplates, out: &mut Out<'_>) -> Encoded {
    let Some(records) = group.records(templates) else {
        return out.bytes(group.bytes).map(|_| ());
    };
    let nested = context.nested();
    for record in records {
        // A repeated element of a nested record is one key with a list, as in the record itself.
        let mut fields: Vec<(String, Vec<Value<'_>>)> = Vec::new();
        let mut index = FxHashMap::default();
        for (field, bytes) in record.fields().filter(|(field, _)| !field.is_padding()) {
            let name = names::registered(field);
            let value = decode(field, bytes, &nested);
            let at = *index.entry(name.clone()).or_insert_with(|| {
                fields.push((name, Vec::new()));
                fields.len() - 1
            });
            fields[at].1.push(value);
        }
        out.map(length(fields.len()))?;
        for (name, values) in &fields {
            out.str(name)?;
            match values.as_slice() {
                [value] => encode(value, &nested, templates, out)?,
                _ => repeated(values, &nested, templates, out)?,
            }
        }
    }
    Ok(())
}

/// `00:00:5e:00:53:01`.
pub(super) fn mac(octets: [u8; 6]) -> String {
    let [a, b, c, d, e, f] = octets;
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}
