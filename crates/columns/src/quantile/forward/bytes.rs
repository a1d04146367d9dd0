//! Parts of OTLP requests, copied.

use super::Kept;
use crate::quantile::otlp::wire::{Content, Fault, Fields};
use crate::quantile::otlp::{OtlpError, OtlpSignal, fields, kind_of};

/// What is kept of an OTLP request (`ExportLogsServiceRequest` or `ExportMetricsServiceRequest`, protobuf): a request
/// too, or `None` if that is nothing.
///
/// Every field that is not taken out stays as it is, unknown ones included, so what is returned is never longer than the
/// request.
///
/// # Errors
/// [`OtlpError`] if what has to be looked at is not valid protobuf.
pub fn otlp(signal: OtlpSignal, request: &[u8], kept: Kept<'_>) -> Result<Option<Vec<u8>>, OtlpError> {
    let mut filter = Filter { kept, at: 0 };
    match filter.request(signal, request).map_err(|fault| fault.within(request))? {
        Part::Whole => Ok(Some(request.to_vec())),
        Part::Changed(bytes) => Ok(Some(bytes)),
        Part::Nothing => Ok(None),
    }
}

/// What is kept of a message.
enum Part {
    Whole,
    Changed(Vec<u8>),
    Nothing,
}

struct Filter<'k> {
    kept: Kept<'k>,
    /// Number of the next item.
    at: usize,
}

impl Filter<'_> {
    fn request(&mut self, signal: OtlpSignal, request: &[u8]) -> Result<Part, Fault> {
        let others = self.kept.others;
        filter(request, fields::FIRST, others, |resource| {
            filter(resource, fields::CHILDREN, others, |scope| {
                filter(scope, fields::CHILDREN, others, |child| match signal {
                    OtlpSignal::Logs => Ok(self.item()),
                    OtlpSignal::Metrics => self.metric(child),
                })
            })
        })
    }

    fn item(&mut self) -> Part {
        self.at += 1;
        if self.kept.item(self.at - 1) { Part::Whole } else { Part::Nothing }
    }

    fn metric(&mut self, metric: &[u8]) -> Result<Part, Fault> {
        let others = self.kept.others;
        match kind_of(metric)? {
            Some(kind @ (fields::METRIC_GAUGE | fields::METRIC_SUM)) => {
                filter(metric, kind, others, |data| filter(data, fields::DATA_POINTS, others, |_| Ok(self.item())))
            }
            _ if others => Ok(Part::Whole),
            _ => Ok(Part::Nothing),
        }
    }
}

/// A message without those of its fields `number` that `child` does not keep. Stretches that stay are copied as they are,
/// and nothing is if all stay.
fn filter(
    message: &[u8],
    number: u32,
    others: bool,
    mut child: impl FnMut(&[u8]) -> Result<Part, Fault>,
) -> Result<Part, Fault> {
    let mut content = Fields::new(message);
    let mut out = Vec::new();
    let (mut seen, mut kept, mut copied) = (false, false, 0);
    loop {
        let start = message.len() - content.rest().len();
        let Some((found, field)) = content.next()? else { break };
        if found != number {
            continue;
        }
        let Content::Bytes(field) = field else { return Err(content.wrong_type()) };
        seen = true;
        let part = child(field)?;
        kept |= !matches!(part, Part::Nothing);
        if matches!(part, Part::Whole) {
            continue;
        }
        out.extend_from_slice(&message[copied..start]);
        copied = message.len() - content.rest().len();
        if let Part::Changed(field) = part {
            put(&mut out, number, &field);
        }
    }
    Ok(match (seen, kept) {
        (true, false) => Part::Nothing,
        (false, _) if !others => Part::Nothing,
        _ if copied == 0 => Part::Whole,
        _ => {
            out.extend_from_slice(&message[copied..]);
            Part::Changed(out)
        }
    })
}

/// Writes a field that is a message.
fn put(out: &mut Vec<u8>, number: u32, message: &[u8]) {
    varint(out, u64::from(number) << 3 | 2);
    varint(out, message.len() as u64);
    out.extend_from_slice(message);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        #[allow(clippy::cast_possible_truncation, reason = "seven bits are taken")]
        out.push(value as u8 & 0x7f | 0x80);
        value >>= 7;
    }
    #[allow(clippy::cast_possible_truncation, reason = "seven bits are left")]
    out.push(value as u8);
}
