//! Messages to items.

use std::panic::{AssertUnwindSafe, catch_unwind};

use catchment_columns::{ColumnsError, json};
use otel_arrow_dfe_pdata::otap::from_record_messages;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::BatchArrowRecords;
use otel_arrow_dfe_pdata::{Consumer, OtapArrowRecords, OtlpProtoBytes, TryFromWithOptions as _, error::Error};
use serde::{Deserialize, Serialize};

use super::MAX_MESSAGE_BYTES;
use super::ipc::{self, IpcError};
use super::store::{Arrival, Keep, MetricsMessage};

/// What a request or a stream carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// Log records.
    Logs,
    /// Data points.
    Metrics,
    /// Spans.
    Traces,
}

/// A message is not what it should be.
#[derive(Debug, thiserror::Error)]
pub(super) enum DecodeError {
    /// A length in an Arrow stream is wrong.
    #[error("{0}")]
    Ipc(#[from] IpcError),
    /// Not OTAP, or not of the signal of its stream.
    #[error("{0}")]
    Batch(#[from] Error),
    /// The tables do not fit together.
    #[error("{0}")]
    Columns(#[from] ColumnsError),
    /// Arrow's readers check much, but not everything.
    #[error("the decoder panicked")]
    Panic,
}

/// Decodes the next batch of a stream. After an error the consumer has lost track of the stream.
pub(super) fn otap(
    consumer: &mut Consumer,
    signal: Signal,
    batch: BatchArrowRecords,
    keep: Keep,
) -> Result<Arrival, DecodeError> {
    // After a panic the consumer is not used again.
    catch_unwind(AssertUnwindSafe(|| {
        let records = otap_records(consumer, signal, batch)?;
        let items = records.num_items() as u64;
        let mut arrival = Arrival::default();
        match signal {
            Signal::Logs => arrival.logs = items,
            Signal::Metrics => arrival.points = items,
            Signal::Traces => arrival.spans = items,
        }
        match keep {
            Keep::Nothing => {}
            Keep::Objects => json::objects(&records, |object| arrival.objects.push(object))?,
            Keep::Metrics => {
                arrival.metrics = (signal == Signal::Metrics).then(|| MetricsMessage::Otap(Box::new(records)));
            }
        }
        Ok(arrival)
    }))
    .unwrap_or(Err(DecodeError::Panic))
}

/// Decodes the next batch of a stream to a request of OTLP. After an error the consumer has lost track of the stream.
pub(super) fn otap_to_otlp(
    consumer: &mut Consumer,
    signal: Signal,
    batch: BatchArrowRecords,
) -> Result<OtlpProtoBytes, DecodeError> {
    // As in `otap`.
    catch_unwind(AssertUnwindSafe(|| {
        let records = otap_records(consumer, signal, batch)?;
        Ok(OtlpProtoBytes::try_from_with_default(records)?)
    }))
    .unwrap_or(Err(DecodeError::Panic))
}

fn otap_records(
    consumer: &mut Consumer,
    signal: Signal,
    mut batch: BatchArrowRecords,
) -> Result<OtapArrowRecords, DecodeError> {
    for payload in &batch.arrow_payloads {
        ipc::check(&payload.record, MAX_MESSAGE_BYTES)?;
    }
    let messages = consumer.consume_bar(&mut batch)?;
    let mut records = match signal {
        Signal::Logs => OtapArrowRecords::Logs(from_record_messages(messages)?),
        Signal::Metrics => OtapArrowRecords::Metrics(from_record_messages(messages)?),
        Signal::Traces => OtapArrowRecords::Traces(from_record_messages(messages)?),
    };
    records.decode_transport_optimized_ids()?;
    Ok(records)
}
