//! Decoding a batch in steps and sending it on.

use std::rc::Rc;

use catchment_columns::{Budget, Job, Step};
use otel_arrow_dfe_engine::control::CallData;
use otel_arrow_dfe_engine::error::Error;
use otel_arrow_dfe_engine::local::receiver::EffectHandler;
use otel_arrow_dfe_engine::{Interests, MessageSourceLocalEffectHandlerExtension, ProducerEffectHandlerExtension};
use otel_arrow_dfe_otap::pdata::{Context, OtapPdata};

use super::intake::{Intake, Pending};

/// Runs `job` to its end with a pause after each step, and sends its batches on. `items` is the number of items that
/// went into it; those that do not come out are counted as failed.
pub(super) async fn emit<P: Pending>(
    mut job: P::Job,
    items: u64,
    intake: Rc<Intake<P>>,
    effects: EffectHandler<OtapPdata>,
) -> Result<(), Error> {
    let mut left = items;
    let mut failure = None;
    loop {
        match job.step(Budget::default()) {
            Ok(Step::More) => {
                intake.books_mut().yields += 1;
                tokio::task::yield_now().await;
            }
            Ok(Step::Batch(records)) => {
                let count = (records.num_items() as u64).min(left);
                let mut pdata = OtapPdata::new(Context::with_capacity(1), records.into());
                effects.subscribe_to(Interests::ACKS_OR_NACKS, CallData::from_slice(&[count.into()]), &mut pdata);
                // Counted before the send: the acknowledgement may be back before the send returns.
                {
                    let mut books = intake.books_mut();
                    books.sent += count;
                    books.batches += 1;
                }
                if let Err(error) = effects.send_message_with_source_node(pdata).await {
                    intake.books_mut().sent -= count;
                    failure = Some(Error::from(error));
                    break;
                }
                left -= count;
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
    intake.books_mut().failed += left;
    failure.map_or(Ok(()), Err)
}
