//! Decoding a batch in steps and sending it on.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use catchment_columns::{Job, Step};
use otel_arrow_dfe_config::SignalType;
use otel_arrow_dfe_engine::control::CallData;
use otel_arrow_dfe_engine::error::Error;
use otel_arrow_dfe_engine::local::receiver::EffectHandler;
use otel_arrow_dfe_engine::runtime_services::CodecEffectHandler;
use otel_arrow_dfe_engine::{Interests, MessageSourceLocalEffectHandlerExtension, ProducerEffectHandlerExtension};
use otel_arrow_dfe_otap::pdata::{Context, OtapPdata};
use otel_arrow_dfe_pdata_codec::{EncodedPdata, OtapPayload, PdataEncoding};

use super::intake::{Intake, Payload, Pending, Taken};

/// What an acknowledgement brings back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Receipt {
    /// Items of the batch.
    pub(super) items: u64,
    /// Its key among those in flight.
    pub(super) key: u64,
}

impl Receipt {
    pub(super) fn of(calldata: &CallData) -> Self {
        let value = |at: usize| calldata.get(at).map(|value| u64::from(*value));
        Self { items: value(0).unwrap_or(0), key: value(1).unwrap_or(u64::MAX) }
    }

    fn calldata(self) -> CallData {
        CallData::from_slice(&[self.items.into(), self.key.into()])
    }
}

/// Sends `taken` on: as it is, or what its job makes of it, with a pause after each step. Items that do not come out are
/// counted as failed.
pub(super) async fn emit<P: Pending>(
    taken: Taken<P::Job>,
    intake: Rc<Intake<P>>,
    effects: EffectHandler<OtapPdata>,
) -> Result<(), Error> {
    let Taken { payload, items, bytes, oldest } = taken;
    let mut out = Out { intake, effects, left: items, items, bytes, oldest };
    let sent = match payload {
        Payload::Job(job) => out.decoded(job).await,
        Payload::Encoded(encoding, signal, payloads) => out.encoded(&encoding, signal, payloads).await,
    };
    out.intake.books_mut().failed += out.left;
    sent
}

/// The way out of one batch of input.
struct Out<P: Pending> {
    intake: Rc<Intake<P>>,
    effects: EffectHandler<OtapPdata>,
    /// Items that have not gone out yet, of so many with so many bytes.
    left: u64,
    items: u64,
    bytes: usize,
    oldest: Option<tokio::time::Instant>,
}

impl<P: Pending> Out<P> {
    async fn decoded(&mut self, mut job: P::Job) -> Result<(), Error> {
        // What is decoded at once anyway needs no pause.
        let budget = job.budget();
        // Time of others during the pauses is not the job's.
        let mut worked = Duration::ZERO;
        let result = loop {
            let began = Instant::now();
            let step = job.step(budget);
            worked += began.elapsed();
            self.intake.books_mut().steps += 1;
            match step {
                Ok(Step::More) => {
                    self.intake.books_mut().yields += 1;
                    // The nodes of this pipeline, and the threads of other pipelines on this core: the kernel would let
                    // those wait for its whole time slice.
                    std::thread::yield_now();
                    tokio::task::yield_now().await;
                }
                Ok(Step::Batch(records)) => {
                    // The column that has a value in every row and that no node has a reason to rewrite.
                    let column = records.root_record_batch().and_then(|root| {
                        let column = root.column_by_name("observed_time_unix_nano").or_else(|| root.columns().last());
                        column.map(Arc::downgrade)
                    });
                    let is_alive = Box::new(move || column.as_ref().is_some_and(|column| column.strong_count() > 0));
                    let count = job.items_in_batch().unwrap_or(records.num_items() as u64);
                    if let Err(error) = self.send(records.into(), count, is_alive).await {
                        break Err(error);
                    }
                }
                Ok(Step::End) => break Ok(()),
                Err(error) => {
                    otel_arrow_dfe_telemetry::otel_error!(
                        "ingest.batch_failed",
                        error = %error,
                        message = "a batch could not be built; its records are lost and counted as failed"
                    );
                }
            }
        };
        let unused = job.unused_items().min(self.left);
        self.left -= unused;
        self.intake.books_mut().unused += unused;
        self.intake.done(&job);
        self.intake.durations_mut().decode.record(worked.as_secs_f64());
        result
    }

    async fn encoded(
        &mut self,
        encoding: &PdataEncoding,
        signal: SignalType,
        payloads: Vec<(u64, Vec<u8>)>,
    ) -> Result<(), Error> {
        for (items, payload) in payloads {
            let alive = Arc::new(());
            let weak = Arc::downgrade(&alive);
            let payload = Bytes::from_owner(Tracked { payload, _alive: alive });
            let encoded = EncodedPdata::new(self.effects.codec_service().registry(), encoding, signal, payload);
            match encoded {
                Ok(encoded) => {
                    let is_alive = Box::new(move || weak.strong_count() > 0);
                    self.send(encoded.into(), items, is_alive).await?;
                }
                Err(error) => {
                    otel_arrow_dfe_telemetry::otel_error!(
                        "ingest.batch_failed",
                        error = %error,
                        message = "the engine does not know the encoding of a batch; its records are lost and counted as failed"
                    );
                }
            }
        }
        Ok(())
    }

    async fn send(&mut self, payload: OtapPayload, items: u64, is_alive: Box<dyn Fn() -> bool>) -> Result<(), Error> {
        let count = items.min(self.left);
        let key = self.intake.in_flight.add(share(self.bytes, count, self.items), is_alive);
        let mut pdata = OtapPdata::new(Context::with_capacity(1), payload);
        let receipt = Receipt { items: count, key };
        self.effects.subscribe_to(Interests::ACKS_OR_NACKS, receipt.calldata(), &mut pdata);
        // Counted before the send: the acknowledgement may be back before the send returns.
        {
            let mut books = self.intake.books_mut();
            books.sent += count;
            books.batches += 1;
        }
        if let Err(error) = self.effects.send_message_with_source_node(pdata).await {
            self.intake.books_mut().sent -= count;
            self.intake.in_flight.settle(key);
            return Err(Error::from(error));
        }
        self.left -= count;
        if let Some(oldest) = self.oldest {
            self.intake.durations_mut().receipt_to_send.record(oldest.elapsed().as_secs_f64());
        }
        Ok(())
    }
}

/// Bytes of which it can be told when they are freed.
struct Tracked {
    payload: Vec<u8>,
    _alive: Arc<()>,
}

impl AsRef<[u8]> for Tracked {
    fn as_ref(&self) -> &[u8] {
        &self.payload
    }
}

/// The part of `bytes` that `count` of `items` items have.
fn share(bytes: usize, count: u64, items: u64) -> usize {
    let share = (bytes as u128 * u128::from(count)).checked_div(u128::from(items)).unwrap_or(0);
    usize::try_from(share).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What goes out with a batch comes back with its outcome.
    #[test]
    fn receipts_come_back() {
        let receipt = Receipt { items: 8_192, key: 7 };
        assert_eq!(Receipt::of(&receipt.calldata()), receipt);
        assert_eq!(Receipt::of(&CallData::new()).items, 0);
    }

    #[test]
    fn bytes_are_shared_by_items() {
        assert_eq!((share(100, 1, 4), share(100, 4, 4), share(100, 0, 0)), (25, 100, 0));
    }
}
