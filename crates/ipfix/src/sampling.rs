//! Sampling rates: from the record itself, from the header of its message, or from options data.

use crate::context::DecodeContext;
use crate::knowledge::{Knowledge, SamplingKey};
use crate::message::MessageInfo;
use crate::records::Record;
use crate::template::Template;
use crate::value::{Value, decode};

/// The elements that make up a rate: samplingInterval, samplerRandomInterval, samplingPacketInterval and
/// samplingPacketSpace, samplingSize and samplingPopulation, samplingProbability.
const RATE_ELEMENTS: [u16; 7] = [34, 50, 305, 306, 309, 310, 311];

/// The values of the elements that make up a rate; of a repeated element the first with a value.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RateValues {
    values: [Option<f64>; RATE_ELEMENTS.len()],
    present: bool,
}

impl RateValues {
    /// The place of an element of the IANA registry among the values.
    pub(crate) fn place(id: u16) -> Option<usize> {
        RATE_ELEMENTS.iter().position(|&element| element == id)
    }

    /// Notes a value. Only its being a positive number counts as one.
    pub(crate) fn set(&mut self, place: usize, value: Value<'_>) {
        self.present = true;
        #[expect(clippy::cast_precision_loss, reason = "a rate is an approximation")]
        let value = match value {
            Value::Unsigned(number) => number as f64,
            Value::Signed(number) => number as f64,
            Value::Float(number) => number,
            _ => return,
        };
        if let Some(slot) = self.values.get_mut(place) {
            let _: &mut f64 = slot.get_or_insert(value);
        }
    }

    /// Whether any of the elements was there, with a useful value or not.
    pub(crate) fn is_present(&self) -> bool {
        self.present
    }

    /// "One packet in so many"; `None` when the values say nothing, as 0 does.
    pub(crate) fn rate(&self) -> Option<f64> {
        let [interval, random, packets, space, size, population, probability] = self.values;
        let positive = |value: Option<f64>| value.filter(|&value| value.is_finite() && value > 0.0);
        let spaced = || {
            let (packets, space) = (positive(packets)?, space.filter(|&space| space.is_finite() && space >= 0.0)?);
            Some((packets + space) / packets)
        };
        let sized = || Some(positive(population)? / positive(size)?);
        let chance = || positive(probability).filter(|&chance| chance <= 1.0).map(f64::recip);
        let rate = positive(interval).or_else(|| positive(random)).or_else(spaced).or_else(sized).or_else(chance)?;
        Some(rate).filter(|rate| rate.is_finite())
    }
}

/// What a field of a data record is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A part of a rate, by its place.
    Rate(usize),
    Selector,
    Ingress,
    Egress,
    LineCard,
}

/// The fields of a template that say how its records were sampled, compiled once per template (see
/// [`Template::attached`]).
///
/// A rate is looked for in the record itself (samplingInterval 34, samplerRandomInterval 50, samplingPacketInterval and
/// samplingPacketSpace 305 and 306, samplingSize and samplingPopulation 309 and 310, samplingProbability 311; RFC 5477
/// section 8.2), then in the header of NetFlow v5, then in options data by what the record says of its sampler.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SamplingFields {
    /// In the order of the wire.
    fields: Box<[(usize, Role)]>,
}

impl SamplingFields {
    /// Compiles the fields of a template.
    #[must_use]
    pub fn new(template: &Template) -> Self {
        let role = |id: u16| match id {
            48 | 302 => Some(Role::Selector),
            10 | 252 => Some(Role::Ingress),
            14 | 253 => Some(Role::Egress),
            141 => Some(Role::LineCard),
            id => RateValues::place(id).map(Role::Rate),
        };
        let fields = template.fields().iter().enumerate().filter_map(|(index, field)| {
            let role = role(field.id).filter(|_| field.is_iana(field.id))?;
            Some((index, role))
        });
        Self { fields: fields.collect() }
    }

    /// Whether all records of a data set that comes with this `knowledge` have the same rate, so that
    /// [`SamplingFields::rate`] of the first is that of all.
    #[must_use]
    pub fn is_constant(&self, knowledge: Option<&Knowledge>) -> bool {
        let own = self.fields.iter().any(|(_, role)| matches!(role, Role::Rate(_)));
        let varies = knowledge.is_some_and(Knowledge::sampling_depends_on_record);
        !own && (self.fields.is_empty() || !varies)
    }

    /// "One packet in so many" for one record; `None` when that is not known, which a rate of 0 on the wire means too.
    ///
    /// `knowledge` is that of the record's [`DataSet`](crate::DataSet), `context` the one its fields are decoded with.
    #[must_use]
    pub fn rate(
        &self,
        record: &Record<'_, '_>,
        message: &MessageInfo,
        knowledge: Option<&Knowledge>,
        context: &DecodeContext,
    ) -> Option<f64> {
        let mut seen = Seen { rate: RateValues::default(), key: SamplingKey::default() };
        seen.key.template_id = record.template().id();
        if record.template().offsets().is_some() {
            for &(index, role) in &self.fields {
                if let Some((field, bytes)) = record.template().fields().get(index).zip(record.field(index)) {
                    seen.field(role, decode(field, bytes, context));
                }
            }
        } else if !self.fields.is_empty() {
            // One walk finds all fields, however many bytes are before them.
            let mut roles = self.fields.iter().peekable();
            for (index, (field, bytes)) in record.fields().enumerate() {
                if let Some(&(_, role)) = roles.next_if(|&&(place, _)| place == index) {
                    seen.field(role, decode(field, bytes, context));
                } else if roles.peek().is_none() {
                    break;
                }
            }
        }
        let Seen { rate, key } = seen;
        let header = || message.sampling_interval().map(f64::from);
        rate.rate().or_else(header).or_else(|| knowledge?.sampling_rate(&key))
    }
}

/// What one record says.
struct Seen {
    rate: RateValues,
    key: SamplingKey,
}

impl Seen {
    fn field(&mut self, role: Role, value: Value<'_>) {
        let number = match value {
            Value::Unsigned(number) => Some(number),
            _ => None,
        };
        let slot = match role {
            Role::Rate(place) => {
                self.rate.set(place, value);
                return;
            }
            Role::Selector => &mut self.key.selector,
            Role::Ingress => &mut self.key.ingress_interface,
            Role::Egress => &mut self.key.egress_interface,
            Role::LineCard => &mut self.key.line_card,
        };
        *slot = slot.or(number);
    }
}

#[cfg(test)]
mod tests;
