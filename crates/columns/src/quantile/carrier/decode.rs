//! OTLP bytes or record batches -> messages.

use otel_arrow_dfe_pdata::{OtapArrowRecords, OtlpProtoBytes, TryIntoWithOptions};

use super::*;
use crate::ColumnsError;
use crate::quantile::number::Scalar;
use crate::quantile::otlp::value::{Value, any_value, key_and_value};
use crate::quantile::otlp::wire::{Content, Fault, Fields, messages};
use crate::quantile::otlp::{OtlpError, fields};

/// Why a Summary data point is no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CarrierError {
    /// The request is no OTLP; what came before has been given.
    #[error(transparent)]
    Otlp(#[from] OtlpError),
    /// An attribute that each message must have is not there: probably a summary of something else.
    #[error("summary point of `{metric}` has no attribute `{attribute}`")]
    Missing {
        /// The metric.
        metric: String,
        /// The attribute.
        attribute: &'static str,
    },
    /// An attribute has another type or a value that it cannot have.
    #[error("summary point of `{metric}` has an attribute `{attribute}` that is not {expected}")]
    Invalid {
        /// The metric.
        metric: String,
        /// The attribute.
        attribute: &'static str,
        /// What would be right.
        expected: &'static str,
    },
}

/// Reads the messages of a batch of metrics; points of other kinds are passed over. Other signals have none.
///
/// # Errors
/// [`ColumnsError::Otap`] if the tables do not fit together. A point that is no message is an error in the list.
pub fn decode(records: &OtapArrowRecords) -> Result<Vec<Result<SketchMessage, CarrierError>>, ColumnsError> {
    if !matches!(records, OtapArrowRecords::Metrics(_)) {
        return Ok(Vec::new());
    }
    let request: OtlpProtoBytes =
        records.clone().try_into_with_options(Default::default()).map_err(ColumnsError::otap("metrics"))?;
    Ok(match request {
        OtlpProtoBytes::ExportMetricsRequest(request) => decode_otlp(&request),
        _ => Vec::new(),
    })
}

/// Reads the messages of an `ExportMetricsServiceRequest`; points of other kinds are passed over. A point that is no
/// message is an error in the list; bytes that are no OTLP are the last one.
#[must_use]
pub fn decode_otlp(request: &[u8]) -> Vec<Result<SketchMessage, CarrierError>> {
    let mut found = Vec::new();
    if let Err(fault) = walk(request, &mut found) {
        found.push(Err(fault.within(request).into()));
    }
    found
}

type Attributes<'a> = Vec<(&'a [u8], Option<Value<'a>>)>;

fn attributes<'a>(message: &'a [u8], field: u32, into: &mut Attributes<'a>) -> Result<(), Fault> {
    for attribute in messages(message, field) {
        let (key, value) = key_and_value(attribute?)?;
        into.push((key, value.map(any_value).transpose()?.flatten()));
    }
    Ok(())
}

fn walk(request: &[u8], found: &mut Vec<Result<SketchMessage, CarrierError>>) -> Result<(), Fault> {
    for resource in messages(request, fields::FIRST) {
        let resource = resource?;
        let mut of_resource = Vec::new();
        for message in messages(resource, fields::FIRST) {
            attributes(message?, fields::RESOURCE_ATTRIBUTES, &mut of_resource)?;
        }
        for scope in messages(resource, fields::CHILDREN) {
            let scope = scope?;
            let mut of_scope = Vec::new();
            for message in messages(scope, fields::FIRST) {
                attributes(message?, fields::SCOPE_ATTRIBUTES, &mut of_scope)?;
            }
            for metric in messages(scope, fields::CHILDREN) {
                let metric = metric?;
                let name = messages(metric, fields::METRIC_NAME).last().transpose()?.unwrap_or_default();
                let unit = messages(metric, fields::METRIC_UNIT).last().transpose()?.unwrap_or_default();
                for summary in messages(metric, fields::METRIC_SUMMARY) {
                    for point in messages(summary?, fields::DATA_POINTS) {
                        let read = Point::read(point?)?;
                        let name = text(name)?;
                        found.push(read.message(name, text(unit)?, &of_resource, series(&of_scope)?));
                    }
                }
            }
        }
    }
    Ok(())
}

fn text(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|_| Fault::utf8(bytes))
}

/// What a series is grouped by. Lists and maps are no part of it: they are not written.
fn series(of_scope: &Attributes<'_>) -> Result<Vec<(String, KeyValue)>, Fault> {
    let mut series = Vec::new();
    for (key, value) in of_scope {
        let key = text(key)?;
        if let (false, Some(Value::Scalar(value))) = (key.starts_with(RESERVED), value) {
            let value = match *value {
                Scalar::Text(value) => KeyValue::Text(text(value)?.into()),
                Scalar::Int(value) => KeyValue::Int(value),
                Scalar::Double(value) => KeyValue::Double(value.to_bits()),
                Scalar::Bool(value) => KeyValue::Bool(value),
                Scalar::Bytes(value) => KeyValue::Bytes(value.into()),
            };
            series.push((key.to_owned(), value));
        }
    }
    // On the way attributes are sorted by their types.
    series.sort();
    Ok(series)
}

/// A Summary data point.
#[derive(Default)]
struct Point<'a> {
    start: i64,
    end: i64,
    count: u64,
    attributes: Attributes<'a>,
}

impl<'a> Point<'a> {
    fn read(point: &'a [u8]) -> Result<Self, Fault> {
        let mut read = Self::default();
        attributes(point, fields::POINT_ATTRIBUTES, &mut read.attributes)?;
        let mut content = Fields::new(point);
        while let Some((number, field)) = content.next()? {
            match (number, field) {
                (fields::POINT_START, Content::Fixed64(time)) => read.start = time.cast_signed(),
                (fields::POINT_TIME, Content::Fixed64(time)) => read.end = time.cast_signed(),
                (fields::SUMMARY_COUNT, Content::Fixed64(count)) => read.count = count,
                (fields::POINT_START | fields::POINT_TIME | fields::SUMMARY_COUNT, _) => {
                    return Err(content.wrong_type());
                }
                _ => {}
            }
        }
        Ok(read)
    }

    fn scalar(&self, key: &str) -> Option<Scalar<'a>> {
        find(&self.attributes, key)
    }

    fn message(
        &self,
        metric: &str,
        unit: &str,
        of_resource: &Attributes<'a>,
        series: Vec<(String, KeyValue)>,
    ) -> Result<SketchMessage, CarrierError> {
        let missing = |attribute| CarrierError::Missing { metric: metric.to_owned(), attribute };
        let invalid = |attribute, expected| CarrierError::Invalid { metric: metric.to_owned(), attribute, expected };
        let envelope = match self.scalar(ENVELOPE).ok_or_else(|| missing(ENVELOPE))? {
            Scalar::Bytes(envelope) => envelope.to_vec(),
            _ => return Err(invalid(ENVELOPE, "bytes")),
        };
        let name = self.scalar(TYPE).or_else(|| find(of_resource, TYPE)).ok_or_else(|| missing(TYPE))?;
        let sketch = SketchType::ALL.into_iter().find(|sketch| Scalar::Text(sketch.name().as_bytes()) == name);
        let sketch = sketch.ok_or_else(|| invalid(TYPE, "a known type of sketch"))?;
        let bits = |key| match self.scalar(key) {
            None => Ok(None),
            Some(Scalar::Bytes(bytes)) => match bytes.try_into() {
                Ok(bytes) => Ok(Some(f64::from_be_bytes(bytes))),
                Err(_) => Err(invalid(key, "8 bytes")),
            },
            Some(_) => Err(invalid(key, "8 bytes")),
        };
        let (min, max, sum) = (bits(MIN)?, bits(MAX)?, bits(SUM)?);
        let sources = match self.scalar(SOURCES) {
            None => None,
            Some(Scalar::Text(text)) => Some(fraction(text).ok_or_else(|| invalid(SOURCES, "<got>/<expected>"))?),
            Some(_) => return Err(invalid(SOURCES, "<got>/<expected>")),
        };
        let switched = match self.scalar(SWITCHED) {
            None => false,
            Some(Scalar::Bool(switched)) => switched,
            Some(_) => return Err(invalid(SWITCHED, "a boolean")),
        };
        let mut dropped = Vec::new();
        for (key, value) in &self.attributes {
            let reason = std::str::from_utf8(key).ok().and_then(|key| key.strip_prefix(DROPPED));
            if let (Some(reason), Some(Value::Scalar(Scalar::Int(count)))) = (reason, value) {
                dropped.push((reason.to_owned(), count.cast_unsigned()));
            }
        }
        dropped.sort();
        Ok(SketchMessage {
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            series,
            start_unix_nano: self.start,
            end_unix_nano: self.end,
            sketch,
            envelope,
            count: self.count,
            min,
            max,
            sum,
            dropped,
            sources,
            switched,
            identity: self.identity(missing, invalid)?,
        })
    }

    fn identity(
        &self,
        missing: impl Fn(&'static str) -> CarrierError,
        invalid: impl Fn(&'static str, &'static str) -> CarrierError,
    ) -> Result<Option<MessageIdentity>, CarrierError> {
        let text = |key| match self.scalar(key).ok_or_else(|| missing(key))? {
            Scalar::Text(text) => std::str::from_utf8(text).map_err(|_| invalid(key, "text")),
            _ => Err(invalid(key, "text")),
        };
        let int = |key| match self.scalar(key).ok_or_else(|| missing(key))? {
            Scalar::Int(value) => Ok(value),
            _ => Err(invalid(key, "an integer")),
        };
        if self.scalar(SOURCE).is_none() {
            return Ok(None);
        }
        let instance =
            u128::from_str_radix(text(INSTANCE)?, 16).map_err(|_| invalid(INSTANCE, "a number in base 16"))?;
        let parts = u32::try_from(int(PARTS)?).map_err(|_| invalid(PARTS, "a number of parts"))?;
        let part = int(PART)?.checked_sub(1).and_then(|part| u32::try_from(part).ok()).filter(|part| *part < parts);
        Ok(Some(MessageIdentity {
            source: text(SOURCE)?.to_owned(),
            instance,
            part: part.ok_or_else(|| invalid(PART, "from 1 to the number of parts"))?,
            parts,
            sequence: int(SEQUENCE)?.cast_unsigned(),
        }))
    }
}

/// Two numbers with a slash between them.
fn fraction(text: &[u8]) -> Option<(u32, u32)> {
    let (got, expected) = std::str::from_utf8(text).ok()?.split_once('/')?;
    Some((got.parse().ok()?, expected.parse().ok()?))
}

/// The last of equal keys wins.
fn find<'a>(attributes: &Attributes<'a>, key: &str) -> Option<Scalar<'a>> {
    let (_, value) = attributes.iter().rfind(|(other, _)| *other == key.as_bytes())?;
    match value {
        Some(Value::Scalar(value)) => Some(*value),
        _ => None,
    }
}
