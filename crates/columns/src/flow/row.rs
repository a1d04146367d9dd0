//! One flow or options record -> one log record. This is where elements become columns.

use std::net::IpAddr;

use catchment_ipfix::{DecodeContext, FlowTimes, Record, SubTemplates, Value, decode, flow_times, protocol_name};
use minicbor::Encoder;

use super::batch::Set;
use super::plan::{Plan, Target};
use super::{lists, names};
use crate::logs::{LogFields, LogsTable};
use crate::table::AttributeWriter;

/// Writes records into a logs table and keeps scratch memory between them.
#[derive(Default)]
pub(super) struct RowWriter {
    cbor: Vec<u8>,
    exporter: Option<(IpAddr, String)>,
}

impl RowWriter {
    pub(super) fn write(&mut self, table: &mut LogsTable, record: &Record<'_, '_>, plan: &Plan, set: &Set) {
        let context = set.message.context();
        let times = flow_times(record, &context);
        let mut attributes = table.record(LogFields {
            time_unix_nano: times.start_unix_nano,
            observed_time_unix_nano: set.receipt.time_unix_nano,
            ..LogFields::default()
        });
        self.receipt(&mut attributes, set, &times);
        let family = self.fields(&mut attributes, record, plan, &context, &set.data.sub_templates);
        if plan.options {
            attributes.text(names::RECORD_TYPE, b"options");
            self.scope_fields(&mut attributes, plan);
        } else if let Some(family) = family {
            attributes.text(names::NETWORK_TYPE, family.as_bytes());
        }
        if let Some(rate) = sampling_rate(record, plan, &context).or(set.message.sampling_interval().map(f64::from)) {
            whole_or_double(&mut attributes, names::SAMPLING_RATE, rate);
        }
    }

    fn receipt(&mut self, attributes: &mut AttributeWriter<'_>, set: &Set, times: &FlowTimes) {
        let message = &set.message;
        attributes.text(names::FLOW_TYPE, message.version.as_str().as_bytes());
        attributes.int(names::SEQUENCE, i64::from(message.sequence));
        attributes.int(names::DOMAIN, i64::from(message.domain));
        attributes.int(names::TEMPLATE, i64::from(set.data.template.id()));
        attributes.int(names::TIME_RECEIVED, set.receipt.time_unix_nano);
        attributes.int(names::TIME_EXPORTED, message.export_time_unix_nano);
        for (name, time) in [(names::START, times.start_unix_nano), (names::END, times.end_unix_nano)] {
            if let Some(time) = time {
                attributes.int(name, time);
            }
        }
        if let Some(exporter) = set.receipt.exporter {
            let address = exporter.ip();
            if self.exporter.as_ref().is_none_or(|(known, _)| *known != address) {
                self.exporter = Some((address, address.to_canonical().to_string()));
            }
            if let Some((_, text)) = &self.exporter {
                attributes.text(names::SAMPLER_ADDRESS, text.as_bytes());
            }
        }
    }

    /// Writes the fields; returns the address family of the flow.
    fn fields(
        &mut self,
        attributes: &mut AttributeWriter<'_>,
        record: &Record<'_, '_>,
        plan: &Plan,
        context: &DecodeContext,
        templates: &SubTemplates,
    ) -> Option<&'static str> {
        let mut family = None;
        let mut repeated: Vec<(&str, Vec<Value<'_>>)> =
            plan.repeated.iter().map(|name| (name.as_str(), Vec::new())).collect();
        for ((field, bytes), target) in record.fields().zip(&plan.targets) {
            if *target == Target::Skip {
                continue;
            }
            let value = decode(field, bytes, context);
            match target {
                Target::Skip => {}
                Target::Transport => match value {
                    Value::Unsigned(number) => transport(attributes, number),
                    odd => self.value(attributes, names::PROTOCOL_IDENTIFIER, &odd, context, templates),
                },
                Target::Attribute(name) => {
                    match value {
                        Value::Ipv4(_) if name == "source.address" => family = Some("ipv4"),
                        Value::Ipv6(_) if name == "source.address" => family = Some("ipv6"),
                        _ => {}
                    }
                    self.value(attributes, name, &value, context, templates);
                }
                Target::Repeated(list) => {
                    if let Some((_, values)) = repeated.get_mut(*list) {
                        values.push(value);
                    }
                }
            }
        }
        for (name, values) in repeated {
            self.cbor.clear();
            // Writing to a vector cannot fail.
            if lists::repeated(&values, context, templates, &mut Encoder::new(&mut self.cbor)).is_ok() {
                attributes.list(name, &self.cbor);
            }
        }
        family
    }

    fn value(
        &mut self,
        attributes: &mut AttributeWriter<'_>,
        name: &str,
        value: &Value<'_>,
        context: &DecodeContext,
        templates: &SubTemplates,
    ) {
        match value {
            Value::Absent => {}
            Value::Unsigned(number) => match i64::try_from(*number) {
                Ok(number) => attributes.int(name, number),
                #[allow(clippy::cast_precision_loss, reason = "above the range of OTLP integers")]
                Err(_) => attributes.double(name, *number as f64),
            },
            Value::Signed(number) | Value::TimeUnixNano(number) => attributes.int(name, *number),
            Value::Float(number) => attributes.double(name, *number),
            Value::Boolean(truth) => attributes.bool(name, *truth),
            Value::Mac(octets) => attributes.text(name, lists::mac(*octets).as_bytes()),
            Value::Ipv4(address) => attributes.text(name, address.to_string().as_bytes()),
            Value::Ipv6(address) => attributes.text(name, address.to_string().as_bytes()),
            Value::Text(text) => attributes.text(name, text),
            Value::Bytes(bytes) | Value::Opaque(bytes) => attributes.bytes(name, bytes),
            Value::List(_) => {
                self.cbor.clear();
                if lists::encode(value, context, templates, &mut Encoder::new(&mut self.cbor)).is_ok() {
                    attributes.list(name, &self.cbor);
                }
            }
        }
    }

    fn scope_fields(&mut self, attributes: &mut AttributeWriter<'_>, plan: &Plan) {
        self.cbor.clear();
        let mut out = Encoder::new(&mut self.cbor);
        let written = out
            .array(u64::try_from(plan.scope.len()).unwrap_or(u64::MAX))
            .and_then(|out| plan.scope.iter().try_for_each(|name| out.str(name).map(|_| ())));
        if written.is_ok() {
            attributes.list(names::SCOPE_FIELDS, &self.cbor);
        }
    }
}

fn transport(attributes: &mut AttributeWriter<'_>, number: u64) {
    match u8::try_from(number).ok().and_then(protocol_name) {
        Some(name) => attributes.text(names::TRANSPORT, name.as_bytes()),
        None => attributes.text(names::TRANSPORT, number.to_string().as_bytes()),
    }
}

/// "One in so many", from whichever elements tell it; 0 means unknown.
fn sampling_rate(record: &Record<'_, '_>, plan: &Plan, context: &DecodeContext) -> Option<f64> {
    let number = |id: u16| {
        let (_, index) = plan.sampling.iter().find(|(known, _)| *known == id)?;
        let field = record.template().fields().get(*index)?;
        #[allow(clippy::cast_precision_loss, reason = "sampling rates are small")]
        match decode(field, record.field(*index)?, context) {
            Value::Unsigned(number) => Some(number as f64),
            Value::Float(number) => Some(number),
            _ => None,
        }
    };
    let rate = number(34)
        .or_else(|| number(50))
        .or_else(|| number(305).zip(number(306)).map(|(interval, space)| (interval + space) / interval))
        .or_else(|| number(309).zip(number(310)).map(|(size, population)| population / size))
        .or_else(|| number(311).map(|probability| 1.0 / probability))?;
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

fn whole_or_double(attributes: &mut AttributeWriter<'_>, name: &str, value: f64) {
    #[allow(clippy::cast_possible_truncation, reason = "checked to be a whole number of at most 32 bits")]
    if value.fract() == 0.0 && value <= f64::from(u32::MAX) {
        attributes.int(name, value as i64);
    } else {
        attributes.double(name, value);
    }
}
