//! Codec `ipfix-batch-v1`: received records with what explains them. Payloads of logs hold flow records, those of metrics
//! SONiC's telemetry; each says which.
//!
//! The engine decodes such a payload at the first node that needs its records. It does so in one go and not in steps:
//! decoding in steps is what the receiver does by itself (`emit: records`). The receiver makes payloads that become one
//! batch each (`split` of `FlowBatch` and `SonicBatch`), so one decode takes a few milliseconds at most.

use std::sync::Arc;

use bytes::Bytes;
use catchment_columns::flow::{self, FlowJob};
use catchment_columns::sonic::{self, SonicJob};
use catchment_columns::{Job, OtapArrowRecords};
use otel_arrow_dfe_config::SignalType;
use otel_arrow_dfe_pdata_codec::{
    CodecError, CodecMetadata, CodecOperation, CodecRegistration, PdataDecoder, PdataEncoding, register_pdata_codec,
};

/// Name of the encoding.
pub const IPFIX_BATCH: PdataEncoding = PdataEncoding::new(flow::encoded::ENCODING);

static METADATA: CodecMetadata = CodecMetadata::new(IPFIX_BATCH, &[SignalType::Logs, SignalType::Metrics]);

register_pdata_codec!(
    IPFIX_BATCH_CODEC,
    CodecRegistration::new(&METADATA).with_decoder(|_policy| Box::new(Decoder)).with_item_counter(count),
);

/// Every record that was admitted can be decoded, so a payload that is sound at all has no record that could fail alone.
struct Decoder;

/// Why a payload cannot be decoded.
#[derive(Debug, thiserror::Error)]
enum DecodeError {
    /// It is no payload of flow records.
    #[error(transparent)]
    Flows(#[from] flow::encoded::EncodedError),
    /// It is no payload of SONiC's records.
    #[error(transparent)]
    Sonic(#[from] sonic::encoded::EncodedError),
    /// Its tables could not be made.
    #[error(transparent)]
    Columns(#[from] catchment_columns::ColumnsError),
    /// It was not made by the receiver, which makes smaller ones.
    #[error("{items} records or points become {batches} batches, a payload must become one")]
    TooLarge { items: usize, batches: usize },
    /// Nothing becomes traces.
    #[error("payloads of traces do not exist, expected logs or metrics")]
    Signal,
}

impl PdataDecoder for Decoder {
    fn decode(&mut self, signal: SignalType, bytes: &Bytes) -> Result<OtapArrowRecords, CodecError> {
        decode(signal, bytes).map_err(|error| CodecError::operation(&IPFIX_BATCH, CodecOperation::Decode, error))
    }
}

fn decode(signal: SignalType, payload: &[u8]) -> Result<OtapArrowRecords, DecodeError> {
    let (items, mut batches, nothing) = match signal {
        SignalType::Logs => {
            let (batch, mapping) = flow::encoded::decode(payload)?;
            let items = batch.len();
            let batches = FlowJob::with_mapping(batch, &mapping).run()?;
            (items, batches, OtapArrowRecords::Logs(Default::default()))
        }
        SignalType::Metrics => {
            let (batch, mapping) = sonic::encoded::decode(payload)?;
            let items = batch.points();
            let batches = SonicJob::new(batch, Arc::new(mapping)).run()?;
            (items, batches, OtapArrowRecords::Metrics(Default::default()))
        }
        SignalType::Traces => return Err(DecodeError::Signal),
    };
    match (batches.pop(), batches.len()) {
        (Some(records), 0) => Ok(records),
        (None, _) => Ok(nothing),
        (Some(_), others) => Err(DecodeError::TooLarge { items, batches: others + 1 }),
    }
}

fn count(signal: SignalType, payload: &[u8]) -> Option<usize> {
    match signal {
        SignalType::Logs => flow::encoded::count(payload),
        SignalType::Metrics => sonic::encoded::count(payload),
        SignalType::Traces => None,
    }
}

#[cfg(test)]
mod tests;
