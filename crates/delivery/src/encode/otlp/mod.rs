//! Requests of OTLP: the bodies of `ExportLogsServiceRequest`, `ExportMetricsServiceRequest` and
//! `ExportTraceServiceRequest`.
//!
//! They are written straight from the columns into a buffer of exactly their size: one run over the rows counts, a second
//! one writes. Fields that hold their default are left out. Points and records refer to attributes that are encoded
//! beforehand, each distinct set once, and not at all if a batch has the attribute table of the batch before it, as those
//! of a receiver with fixed templates do.

mod attributes;
pub mod bytes;
mod envelope;
mod exemplars;
mod logs;
mod metrics;
mod points;
mod sink;
mod traces;
mod value;
pub(crate) mod wire;

use ::bytes::Bytes;
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;

use self::attributes::AttributeCache;
use self::envelope::{Envelope, Request};
use self::logs::Logs;
use self::metrics::Metrics;
use self::traces::Spans;
use super::error::EncodeError;
use super::table::Table;

/// Writes requests of OTLP. Keeps the attributes of the last batch, encoded, for the next one.
#[derive(Debug, Default)]
pub struct OtlpEncoder {
    cache: AttributeCache,
    lengths: Vec<u32>,
}

impl OtlpEncoder {
    /// An encoder that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The request body with the items of `records`, of whichever signal they are. Ids may be plain or in their transport
    /// encoding. Records without items give no bytes.
    ///
    /// Items stay in their order. Only if a resource or scope comes up again after another one are its later items put
    /// behind its earlier ones.
    ///
    /// # Errors
    /// [`EncodeError`] for columns that are missing or of another type than the protocol has, for values that mean nothing,
    /// and for requests above 2 GiB.
    pub fn encode(&mut self, records: &OtapArrowRecords) -> Result<Bytes, EncodeError> {
        let mut out = Vec::new();
        self.encode_into(records, &mut out)?;
        Ok(Bytes::from(out))
    }

    /// Appends what [`OtlpEncoder::encode`] gives to `out`. Behind the body of another request of the signal that is a request
    /// with the items of both.
    ///
    /// # Errors
    /// As for [`OtlpEncoder::encode`]; nothing is appended then.
    pub fn encode_into(&mut self, records: &OtapArrowRecords, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let kind = match records {
            OtapArrowRecords::Logs(_) => ArrowPayloadType::Logs,
            OtapArrowRecords::Metrics(_) => ArrowPayloadType::UnivariateMetrics,
            OtapArrowRecords::Traces(_) => ArrowPayloadType::Spans,
        };
        let Some((root, batch)) = Table::of(records, kind).zip(records.get(kind)) else { return Ok(()) };
        let fields = batch.schema_ref().fields();
        let Self { cache, lengths } = self;
        let envelope = Envelope::new(records, root, fields, cache)?;
        macro_rules! written {
            ($items:ident) => {{
                let items = $items::new(records, root, fields, cache)?;
                sink::encode(&Request { envelope: &envelope, items: &items }, lengths, out)?;
                items.give_back(records, cache);
            }};
        }
        match records {
            OtapArrowRecords::Logs(_) => written!(Logs),
            OtapArrowRecords::Metrics(_) => written!(Metrics),
            OtapArrowRecords::Traces(_) => written!(Spans),
        }
        envelope.give_back(records, cache);
        Ok(())
    }
}
