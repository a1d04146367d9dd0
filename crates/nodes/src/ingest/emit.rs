//! Decoding a batch in steps and sending it on.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use catchment_columns::{Budget, Job, Step};
use otel_arrow_dfe_engine::control::CallData;
use otel_arrow_dfe_engine::error::Error;
use otel_arrow_dfe_engine::local::receiver::EffectHandler;
use otel_arrow_dfe_engine::{Interests, MessageSourceLocalEffectHandlerExtension, ProducerEffectHandlerExtension};
use otel_arrow_dfe_otap::pdata::{Context, OtapPdata};

use super::intake::{Intake, Pending, Taken};

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

/// Runs the job of `taken` to its end with a pause after each step, and sends its batches on. Items that do not come out
/// are counted as failed.
pub(super) async fn emit<P: Pending>(
    taken: Taken<P::Job>,
    intake: Rc<Intake<P>>,
    effects: EffectHandler<OtapPdata>,
) -> Result<(), Error> {
    let Taken { mut job, items, bytes, oldest } = taken;
    let mut left = items;
    let mut failure = None;
    // Time of others during the pauses is not the job's.
    let mut worked = Duration::ZERO;
    loop {
        let began = Instant::now();
        let step = job.step(Budget::default());
        worked += began.elapsed();
        intake.books_mut().steps += 1;
        match step {
            Ok(Step::More) => {
                intake.books_mut().yields += 1;
                tokio::task::yield_now().await;
            }
            Ok(Step::Batch(records)) => {
                let count = (records.num_items() as u64).min(left);
                // The column that has a value in every row and that no node has a reason to rewrite.
                let column = records.root_record_batch().and_then(|root| {
                    root.column_by_name("observed_time_unix_nano").or_else(|| root.columns().last()).map(Arc::downgrade)
                });
                let is_alive = Box::new(move || column.as_ref().is_some_and(|column| column.strong_count() > 0));
                let key = intake.in_flight.add(share(bytes, count, items), is_alive);
                let mut pdata = OtapPdata::new(Context::with_capacity(1), records.into());
                let receipt = Receipt { items: count, key };
                effects.subscribe_to(Interests::ACKS_OR_NACKS, receipt.calldata(), &mut pdata);
                // Counted before the send: the acknowledgement may be back before the send returns.
                {
                    let mut books = intake.books_mut();
                    books.sent += count;
                    books.batches += 1;
                }
                if let Err(error) = effects.send_message_with_source_node(pdata).await {
                    intake.books_mut().sent -= count;
                    intake.in_flight.settle(key);
                    failure = Some(Error::from(error));
                    break;
                }
                left -= count;
                if let Some(oldest) = oldest {
                    intake.durations_mut().receipt_to_send.record(oldest.elapsed().as_secs_f64());
                }
            }
            Ok(Step::End) => break,
            Err(error) => {
                otel_arrow_dfe_telemetry::otel_error!(
                    "ingest.batch_failed",
                    error = %error,
                    message = "a batch could not be built; its records are lost and counted as failed"
                );
            }
        }
    }
    intake.durations_mut().decode.record(worked.as_secs_f64());
    intake.books_mut().failed += left;
    failure.map_or(Ok(()), Err)
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
