//! Codec `syslog-batch-v1`: received syslog messages with what was known when they were read.
//!
//! The engine decodes such a payload at the first node that needs its records. It does so in one go and not in steps:
//! decoding in steps is what the receiver does by itself (`emit: records`). A payload is bounded like any batch of the
//! receiver, so one decode takes a few milliseconds at most.

use bytes::Bytes;
use catchment_columns::syslog::{SyslogJob, encoded};
use catchment_columns::{Job, OtapArrowRecords};
use otel_arrow_dfe_config::SignalType;
use otel_arrow_dfe_pdata_codec::{
    CodecError, CodecMetadata, CodecOperation, CodecRegistration, PdataDecoder, PdataEncoding, register_pdata_codec,
};

/// Name of the encoding.
pub const SYSLOG_BATCH: PdataEncoding = PdataEncoding::new(encoded::ENCODING);

static METADATA: CodecMetadata = CodecMetadata::new(SYSLOG_BATCH, &[SignalType::Logs]);

register_pdata_codec!(
    SYSLOG_BATCH_CODEC,
    CodecRegistration::new(&METADATA).with_decoder(|_policy| Box::new(Decoder)).with_item_counter(count),
);

/// Every message of a payload gives one record, so a payload that is sound at all has no record that could fail alone. A
/// codec whose records can fail would have to skip and count them: failing the payload fails all that is in it.
struct Decoder;

#[derive(Debug, thiserror::Error)]
#[error("{messages} messages are more than the {} records of one batch", catchment_columns::MAX_BATCH_RECORDS)]
struct TooLarge {
    messages: usize,
}

impl PdataDecoder for Decoder {
    fn decode(&mut self, _signal: SignalType, bytes: &Bytes) -> Result<OtapArrowRecords, CodecError> {
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
            CodecError::operation(&SYSLOG_BATCH, CodecOperation::Decode, Boxed(error))
        };
        let (batch, options) = encoded::decode(bytes).map_err(|error| failed(error.into()))?;
        let messages = batch.len();
        let mut batches = SyslogJob::new(batch, options).run().map_err(|error| failed(error.into()))?;
        match (batches.pop(), batches.is_empty()) {
            (Some(records), true) => Ok(records),
            (None, _) => Ok(OtapArrowRecords::Logs(Default::default())),
            (Some(_), false) => Err(failed(TooLarge { messages }.into())),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Boxed(Box<dyn std::error::Error + Send + Sync>);

fn count(_signal: SignalType, bytes: &[u8]) -> Option<usize> {
    encoded::count(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use catchment_columns::syslog::{Receipt, RowOptions, Source, SyslogBatch, Transport};
    use otel_arrow_dfe_pdata_codec::{CodecService, EncodedPdata, OtapPayload};

    use super::*;

    fn payload(messages: usize) -> Vec<u8> {
        let source = Arc::new(Source::new(None, Transport::Tcp, Arc::new(catchment_syslog::Zone::Utc)));
        let mut batch = SyslogBatch::new();
        for number in 0..messages {
            let message = format!("<13>Nov 30 10:00:00 host app: {number}");
            batch.push(message.as_bytes(), &source, Receipt { time_unix_nano: 1, truncated: false });
        }
        encoded::encode(&batch, &RowOptions::default())
    }

    fn decode(payload: Vec<u8>) -> Result<OtapArrowRecords, CodecError> {
        Decoder.decode(SignalType::Logs, &payload.into())
    }

    /// The engine finds the codec by its name, counts without decoding, and decodes.
    #[test]
    fn the_engine_knows_the_codec() {
        let service = CodecService::new().expect("registry");
        let encoded = EncodedPdata::new(service.registry(), &SYSLOG_BATCH, SignalType::Logs, payload(3).into());
        let mut payload: OtapPayload = encoded.expect("registered").into();
        assert_eq!(payload.num_items(), 3);
        let records = payload.try_into_otap(&service).expect("decoded");
        assert_eq!(records.num_items(), 3);
    }

    /// Damage and payloads larger than a batch are errors that say so.
    #[test]
    fn bad_payloads_are_refused() {
        let error = decode(payload(catchment_columns::MAX_BATCH_RECORDS + 1)).expect_err("too large");
        assert!(format!("{error:?}").contains("8193"), "{error:?}");
        let mut cut = payload(3);
        cut.truncate(20);
        assert!(decode(cut).is_err());
        assert_eq!(decode(payload(0)).expect("empty").num_items(), 0);
    }
}
